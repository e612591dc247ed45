// Warp operations with masks of all kinds, and memory that only __syncwarp() keeps apart.
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

#define ALL 0xffffffffu

// Only the first warp shuffles: the branch is the same for all its lanes.
__global__ void shuffle_in_branch_of_one_warp(int *x) {
  int value = x[threadIdx.x];
  if (threadIdx.x < 32) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  }
  x[threadIdx.x] = value;
}

// Four groups of eight lanes, each with its own mask and its own number of turns.
__global__ void groups_with_own_trip_counts(int *x) {
  int lane = threadIdx.x % 32, group = lane / 8, value = x[threadIdx.x];
  unsigned mask = 0xffu << (8 * group);
  for (int turn = 0; turn <= group; turn++) value += __shfl_sync(mask, value, 0, 8);
  x[threadIdx.x] = value;
}

// The two branches of one `if` shuffle at the same time with disjoint masks.
__global__ void shuffles_in_both_branches(int *x) {
  int lane = threadIdx.x, value = x[lane];
  if (lane % 2)
    value = __shfl_sync(0xaaaaaaaau, value, 31);
  else
    value = -__shfl_sync(0x55555555u, value, 30);
  x[lane] = value;
}

// Who takes part is asked first: a ragged end.
__global__ void ballot_then_shuffle(const int *x, int n, int *sums) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  unsigned mask = __ballot_sync(ALL, i < n);
  if (i < n) {
    int sum = x[i], lanes = __popc(mask);
    for (int step = 16; step > 0; step /= 2) {
      int other = __shfl_down_sync(mask, sum, step);
      if (lane + step < lanes) sum += other;  // what a lane outside the mask gives is not used
    }
    if (lane == 0) sums[i / 32] = sum;
  }
}

// The lanes beyond n have returned; a full mask waits for the others only.
__global__ void vote_after_some_returned(const int *x, int n, unsigned *votes) {
  int i = threadIdx.x;
  if (i >= n) return;
  unsigned vote = __ballot_sync(ALL, x[i] % 2 == 0);
  if (i % 32 == 0) votes[i / 32] = vote;
}

// A block of 40 threads: the second warp has eight lanes.
__global__ void full_mask_in_partial_warp(const int *x, int *max_of_warp) {
  int value = x[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(ALL, value, step));
  if (threadIdx.x == 0) max_of_warp[0] = value;
}

// Lanes with the same key add once: a leader for each group.
__global__ void aggregated_atomics(const int *key, int *count) {
  unsigned same = __match_any_sync(ALL, key[threadIdx.x]);
  if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&count[key[threadIdx.x]], __popc(same));
}

// A compaction: lanes that keep their element count those before them.
__global__ void compact(const int *x, int n, int *out, int *kept) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  bool keep = i < n && x[i] > 50;
  unsigned mask = __ballot_sync(ALL, keep);
  int first = 0;
  if (lane == 0) first = atomicAdd(kept, __popc(mask));
  first = __shfl_sync(ALL, first, 0);
  if (keep) out[first + __popc(mask & ((1u << lane) - 1))] = x[i];
}

// A row of shared memory for each warp, __syncwarp() between write and read, and before the next write.
__global__ void warp_private_rows(int *x) {
  __shared__ int s[4][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, value = x[threadIdx.x];
  for (int turn = 0; turn < 3; turn++) {
    s[warp][lane] = value;
    __syncwarp();
    value = s[warp][31 - lane] + turn;
    __syncwarp();
  }
  x[threadIdx.x] = value;
}

// Half a warp exchanges through shared memory, with a mask of its own.
__global__ void half_warps_exchange(int *x) {
  __shared__ int s[64];
  int t = threadIdx.x, lane = t % 32;
  unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  s[t] = x[t];
  __syncwarp(half);
  x[t] = s[t ^ 15];
}

// volatile and __syncwarp() together.
__global__ void volatile_with_syncwarp(const int *x, int *sum) {
  __shared__ int s[32];
  volatile int *v = s;
  int t = threadIdx.x;
  v[t] = x[t];
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    int other = t < half ? v[t + half] : 0;
    __syncwarp();
    if (t < half) v[t] += other;
    __syncwarp();
  }
  if (t == 0) *sum = v[0];
}

// A whole block's sum: warps by shuffles, then the first warp over the warps' sums.
__global__ void block_sum_by_warps(const int *x, int n, int *sum) {
  __shared__ int s[32];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = (blockDim.x + 31) / 32, value = 0;
  for (int i = t; i < n; i += blockDim.x) value += x[i];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(ALL, value, step);
  if (lane == 0) s[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < warps ? s[lane] : 0;
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(ALL, value, step);
    if (lane == 0) *sum = value;
  }
}

// The second stage shuffles among the eight lanes that hold a sum; what lanes beyond give is thrown away.
__global__ void second_stage_with_small_mask(const int *x, int *sum) {
  __shared__ int s[8];
  int t = threadIdx.x, value = x[t];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(ALL, value, step);
  if (t % 32 == 0) s[t / 32] = value;
  __syncthreads();
  if (t < 8) {
    value = s[t];
    for (int step = 4; step > 0; step /= 2) value += __shfl_down_sync(0xffu, value, step);
    if (t == 0) *sum = value;
  }
}

// Segmented scan: heads are found by a ballot, each lane sums back to its head.
__global__ void segmented_scan(const int *x, const int *head, int *out) {
  int lane = threadIdx.x, value = x[lane];
  unsigned heads = __ballot_sync(ALL, head[lane] != 0) | 1;
  int first = 31 - __clz(heads & (ALL >> (31 - lane)));
  for (int reach = 1; reach < 32; reach *= 2) {
    int left = __shfl_up_sync(ALL, value, reach);
    if (lane - reach >= first) value += left;
  }
  out[lane] = value;
}

// One lane leaves the loop after the other; the rest vote on with what is left.
__global__ void lanes_leave_a_loop(int *x) {
  int lane = threadIdx.x, turns = x[lane] % 7, done = 0;
  unsigned active = ALL;
  while (true) {
    unsigned left = __ballot_sync(active, turns > 0);
    if (turns == 0) break;
    active = left;
    turns--;
    done += __popc(active);
  }
  __syncwarp();
  x[lane] = done;
}

// What happens to be active together may be any subset: right for all of them.
__global__ void coalesced_group(const int *x, int *count) {
  if (x[threadIdx.x] % 3 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(count, (int)active.size());
  }
}

// Tiles of 16 with their own sums, in a branch that whole tiles take.
__global__ void tiles_of_sixteen(int *x) {
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
  int value = x[threadIdx.x];
  if (tile.meta_group_rank() % 2 == 0)
    for (int step = 8; step > 0; step /= 2) value += tile.shfl_xor(value, step);
  x[threadIdx.x] = value;
}

// 64-bit values and doubles through shuffles.
__global__ void wide_shuffles(double *x, long long *y) {
  int lane = threadIdx.x;
  x[lane] = __shfl_sync(ALL, x[lane], 31 - lane);
  y[lane] = __shfl_up_sync(ALL, y[lane], 1);
}

int main(void) {
  int x[256], y[256], ok, want;
  for (int i = 0; i < 256; i++) x[i] = (i * 37 + 11) % 101;
  int *dx = to_device(x, 256), *dy = zeros_on_device<int>(256), *dz = zeros_on_device<int>(1);

  shuffle_in_branch_of_one_warp<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  want = 0;
  for (int i = 0; i < 32; i++) want += x[i];
  check("shuffle in one warp's branch", y[0] == want && y[31] == want && y[32] == x[32]);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  groups_with_own_trip_counts<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) {
    int value = x[i], first = x[i / 8 * 8];
    for (int turn = 0; turn <= i % 32 / 8; turn++) value += first, first *= 2;
    ok &= y[i] == value;
  }
  check("groups of eight lanes with their own turns", ok);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  shuffles_in_both_branches<<<1, 32>>>(dx);
  fetch(y, dx, 32);
  check("shuffles in both branches", y[1] == x[31] && y[0] == -x[30] && y[31] == x[31]);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  ballot_then_shuffle<<<2, 64>>>(dx, 75, dy);
  fetch(y, dy, 3);
  want = 0;
  for (int i = 64; i < 75; i++) want += x[i];
  check("ballot, then shuffles among those who take part", y[2] == want);

  vote_after_some_returned<<<1, 64>>>(dx, 40, (unsigned *)dy);
  fetch(y, dy, 2);
  unsigned vote = 0;
  for (int i = 32; i < 40; i++) vote |= (unsigned)(x[i] % 2 == 0) << (i - 32);
  check("vote after some lanes have returned", (unsigned)y[1] == vote);

  full_mask_in_partial_warp<<<1, 40>>>(dx, dy);
  fetch(y, dy, 1);
  want = 0;
  for (int i = 0; i < 32; i++) want = x[i] > want ? x[i] : want;
  check("full mask in a partial warp", y[0] == want);

  int key[128], count[8] = {0};
  for (int i = 0; i < 128; i++) count[key[i] = x[i] % 8]++;
  TRY(cudaMemcpy(dx, key, sizeof key, cudaMemcpyHostToDevice));
  TRY(cudaMemset(dy, 0, 256 * sizeof(int)));
  aggregated_atomics<<<1, 128>>>(dx, dy);
  fetch(y, dy, 8);
  check("atomics by the leaders of groups", memcmp(y, count, sizeof count) == 0);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  compact<<<4, 64>>>(dx, 250, dy, dz);
  fetch(y, dz, 1);
  want = 0;
  for (int i = 0; i < 250; i++) want += x[i] > 50;
  int kept = y[0];
  fetch(y, dy, 256);
  ok = kept == want;
  for (int i = 0; i < want; i++) ok &= y[i] > 50;
  check("compaction", ok);

  warp_private_rows<<<1, 128>>>(dx);
  fetch(y, dx, 128);
  ok = 1;
  for (int i = 0; i < 128; i++) ok &= y[i] == x[i / 32 * 32 + 31 - i % 32] + 3;
  check("a row of shared memory for each warp", ok);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  half_warps_exchange<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == x[i ^ 15];
  check("half warps exchange", ok);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  volatile_with_syncwarp<<<1, 32>>>(dx, dy);
  fetch(y, dy, 1);
  want = 0;
  for (int i = 0; i < 32; i++) want += x[i];
  check("volatile with __syncwarp", y[0] == want);

  block_sum_by_warps<<<1, 160>>>(dx, 250, dy);
  fetch(y, dy, 1);
  want = 0;
  for (int i = 0; i < 250; i++) want += x[i];
  check("sum of a block by warps", y[0] == want);

  second_stage_with_small_mask<<<1, 256>>>(dx, dy);
  fetch(y, dy, 1);
  for (int i = 250; i < 256; i++) want += x[i];
  check("second stage with a mask of eight", y[0] == want);

  int head[32];
  for (int i = 0; i < 32; i++) head[i] = i % 5 == 3;
  TRY(cudaMemcpy(dy, head, sizeof head, cudaMemcpyHostToDevice));
  segmented_scan<<<1, 32>>>(dx, dy, dy + 64);
  fetch(y, dy + 64, 32);
  ok = 1;
  for (int i = 0, sum = 0; i < 32; i++) {
    sum = head[i] ? x[i] : sum + x[i];
    ok &= y[i] == sum;
  }
  check("segmented scan", ok);

  lanes_leave_a_loop<<<1, 32>>>(dx);
  fetch(y, dx, 32);
  ok = 1;
  for (int i = 0; i < 32; i++) {
    want = 0;
    for (int turn = 0; turn < x[i] % 7; turn++)
      for (int j = 0; j < 32; j++) want += x[j] % 7 > turn;
    ok &= y[i] == want;
  }
  check("lanes leave a loop", ok);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  TRY(cudaMemset(dz, 0, sizeof(int)));
  coalesced_group<<<1, 128>>>(dx, dz);
  fetch(y, dz, 1);
  want = 0;
  for (int i = 0; i < 128; i++) want += x[i] % 3 == 0;
  check("a coalesced group counts its lanes", y[0] == want);

  tiles_of_sixteen<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  want = 0;
  for (int i = 32; i < 48; i++) want += x[i];
  check("tiles of sixteen", y[32] == want && y[47] == want && y[16] == x[16]);

  double a[32];
  long long b[32];
  for (int i = 0; i < 32; i++) a[i] = i / 3.0, b[i] = (1ll << 40) + i;
  double *da = to_device(a, 32);
  long long *db = to_device(b, 32);
  wide_shuffles<<<1, 32>>>(da, db);
  fetch(a, da, 32);
  fetch(b, db, 32);
  check("wide shuffles", a[0] == 31 / 3.0 && b[5] == (1ll << 40) + 4 && b[0] == 1ll << 40);

  TRY(cudaFree(dx));
  TRY(cudaFree(dy));
  TRY(cudaFree(dz));
  TRY(cudaFree(da));
  TRY(cudaFree(db));
  return finish();
}
