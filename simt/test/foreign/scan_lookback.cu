// Single-pass inclusive scan with decoupled look-back: every tile publishes first its aggregate, then its prefix,
// packed with a flag into one 64-bit word, so that a reader never sees one without the other.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define cudaErrCheck(stat) { cudaErrCheck_((stat), __FILE__, __LINE__); }
void cudaErrCheck_(cudaError_t stat, const char *file, int line) {
  if (stat != cudaSuccess) {
    fprintf(stderr, "CUDA Error: %s %s %d\n", cudaGetErrorString(stat), file, line);
    exit(1);
  }
}

enum : uint32_t { kInvalid = 0, kAggregate = 1, kPrefix = 2 };

constexpr int kThreads = 128;
constexpr int kItems = 4;
constexpr int kTile = kThreads * kItems;

__device__ __forceinline__ unsigned long long pack(uint32_t flag, uint32_t value) {
  return (static_cast<unsigned long long>(flag) << 32) | value;
}

__device__ __forceinline__ unsigned long long peek(unsigned long long *p) {
  return atomicAdd(p, 0ull);  // an atomic read
}

__device__ uint32_t warp_inclusive_scan(uint32_t v) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    uint32_t u = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += u;
  }
  return v;
}

__global__ void __launch_bounds__(kThreads) scan_kernel(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, int n,
                                                        unsigned long long *state, unsigned int *ticket) {
  __shared__ unsigned int s_tile;
  __shared__ uint32_t s_warp[kThreads / 32];
  __shared__ uint32_t s_prefix;

  // tiles are numbered in the order in which blocks start, so a predecessor is always running or done
  if (threadIdx.x == 0) s_tile = atomicAdd(ticket, 1u);
  __syncthreads();
  const unsigned int tile = s_tile;
  const int base = tile * kTile + threadIdx.x * kItems;

  uint32_t v[kItems], sum = 0;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    v[k] = base + k < n ? in[base + k] : 0u;
    sum += v[k];
    v[k] = sum;
  }
  uint32_t inc = warp_inclusive_scan(sum);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 31) s_warp[warp] = inc;
  __syncthreads();
  uint32_t before = inc - sum;
  for (int w = 0; w < warp; ++w) before += s_warp[w];

  if (threadIdx.x == kThreads - 1) {
    const uint32_t aggregate = before + sum;
    atomicExch(&state[tile], pack(tile == 0 ? kPrefix : kAggregate, aggregate));
    uint32_t prefix = 0;
    for (int t = static_cast<int>(tile) - 1; t >= 0;) {
      const unsigned long long w = peek(&state[t]);
      const uint32_t flag = static_cast<uint32_t>(w >> 32);
      if (flag == kInvalid) continue;  // spin
      prefix += static_cast<uint32_t>(w);
      if (flag == kPrefix) break;
      --t;
    }
    if (tile != 0) atomicExch(&state[tile], pack(kPrefix, prefix + aggregate));
    s_prefix = prefix;
  }
  __syncthreads();
  before += s_prefix;
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (base + k < n) out[base + k] = v[k] + before;
}

int main() {
  const int sizes[] = {1, 511, 512, 513, 65536, 1000003};
  bool ok = true;
  for (int n : sizes) {
    std::vector<uint32_t> h(n), r(n);
    for (auto &x : h) x = rand() % 1000;
    const int tiles = (n + kTile - 1) / kTile;
    uint32_t *in, *out;
    unsigned long long *state;
    unsigned int *ticket;
    cudaErrCheck(cudaMalloc(&in, n * sizeof(uint32_t)));
    cudaErrCheck(cudaMalloc(&out, n * sizeof(uint32_t)));
    cudaErrCheck(cudaMalloc(&state, tiles * sizeof(*state)));
    cudaErrCheck(cudaMalloc(&ticket, sizeof(*ticket)));
    cudaErrCheck(cudaMemset(state, 0, tiles * sizeof(*state)));
    cudaErrCheck(cudaMemset(ticket, 0, sizeof(*ticket)));
    cudaErrCheck(cudaMemcpy(in, h.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
    scan_kernel<<<tiles, kThreads>>>(in, out, n, state, ticket);
    cudaErrCheck(cudaGetLastError());
    cudaErrCheck(cudaMemcpy(r.data(), out, n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    uint32_t sum = 0;
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
      sum += h[i];
      if (r[i] != sum && wrong++ == 0) printf("first difference at %d: %u, expected %u\n", i, r[i], sum);
    }
    printf("n = %8d, %5d tiles: %s\n", n, tiles, wrong ? "WRONG" : "correct");
    ok = ok && !wrong;
    cudaFree(in); cudaFree(out); cudaFree(state); cudaFree(ticket);
  }
  return ok ? 0 : 1;
}
