// Cooperative groups, one after the other: block, tiles of every size, coalesced, labelled and binary partitions, collectives.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <stdio.h>

using namespace cooperative_groups;
namespace cg = cooperative_groups;

#define EXPECT(c) if (!(c)) { printf("line %d, thread %d: %s\n", __LINE__, (int)threadIdx.x, #c); atomicAdd(bad, 1); }

// a function that works on any group
template <typename Group>
__device__ int sumReduction(Group const &g, int *x, int val)
{
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        x[lane] = val;
        g.sync();
        if (lane < i) val += x[lane + i];
        g.sync();
    }
    return g.thread_rank() == 0 ? val : -1;
}

__device__ int plain_group(thread_group g, int *x, int val)
{
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        x[lane] = val;
        g.sync();
        if (lane < i) val += x[lane + i];
        g.sync();
    }
    return val;
}

template <unsigned SIZE>
__device__ void tile_tests(const thread_block &block, int *bad)
{
    thread_block_tile<SIZE> tile = tiled_partition<SIZE>(block);
    const int r = tile.thread_rank(), t = block.thread_rank();
    EXPECT(tile.size() == SIZE && tile.num_threads() == SIZE);
    EXPECT(r == t % (int)SIZE && tile.meta_group_rank() == t / SIZE && tile.meta_group_size() == block.size() / SIZE);
    EXPECT(tile.shfl(t, 0) == t - r);
    EXPECT(tile.shfl_down(r, 1) == (r + 1 < SIZE ? r + 1 : r));
    EXPECT(tile.shfl_up(r, 1) == (r ? r - 1 : r));
    EXPECT(tile.shfl_xor(r, SIZE / 2) == (r ^ (SIZE / 2)));
    EXPECT(tile.any(r == 0) && tile.all(r < SIZE) && !tile.all(SIZE > 1 && r == 0));
    EXPECT(tile.ballot(r == SIZE - 1) == 1u << (SIZE - 1));
    EXPECT(tile.match_any(r / 2) == (SIZE == 1 ? 1u : 3u << (r & ~1)));
    EXPECT(reduce(tile, r, plus<int>()) == SIZE * (SIZE - 1) / 2);
    EXPECT(reduce(tile, r, greater<int>()) == SIZE - 1);
    EXPECT(reduce(tile, 1u << r, bit_or<unsigned>()) == (SIZE == 32 ? ~0u : (1u << SIZE) - 1));
    EXPECT(inclusive_scan(tile, 2) == 2 * (r + 1));
    EXPECT(exclusive_scan(tile, r, plus<int>()) == r * (r - 1) / 2);
    EXPECT(inclusive_scan(tile, r, greater<int>()) == r);
    tile.sync();
}

__global__ void cgkernel(int *bad)
{
    thread_block block = this_thread_block();
    extern __shared__ int workspace[];
    const int t = threadIdx.x, n = block.size();
    int out = sumReduction(block, workspace, t);
    if (block.thread_rank() == 0) EXPECT(out == n * (n - 1) / 2);
    block.sync();
    auto tile16 = tiled_partition<16>(block);
    int *mine = workspace + t - tile16.thread_rank();
    out = sumReduction(tile16, mine, tile16.thread_rank());
    if (tile16.thread_rank() == 0) EXPECT(out == 120);
    block.sync();
    thread_group dynamic = tiled_partition(block, 8);
    out = plain_group(dynamic, workspace + t - dynamic.thread_rank(), 1);
    if (dynamic.thread_rank() == 0) EXPECT(out == 8);
    EXPECT(block.group_index().x == blockIdx.x && block.thread_index().x == threadIdx.x && block.dim_threads().x == blockDim.x);
    EXPECT(block.group_dim().x == blockDim.x);

    tile_tests<32>(block, bad);
    tile_tests<16>(block, bad);
    tile_tests<8>(block, bad);
    tile_tests<4>(block, bad);
    tile_tests<2>(block, bad);
    tile_tests<1>(block, bad);

    // a tile of a tile
    auto tile32 = tiled_partition<32>(block);
    auto tile4 = tiled_partition<4>(tile32);
    EXPECT(tile4.meta_group_size() == 8 && tile4.meta_group_rank() == (t % 32) / 4);
    EXPECT(tile4.shfl(t, 3) == (t | 3));

    // whoever is here
    if (t % 3 == 0) {
        coalesced_group g = coalesced_threads();
        int me = g.thread_rank();
        EXPECT(g.size() >= 1 && me < (int)g.size());
        int sum = reduce(g, 1, plus<int>());
        EXPECT(sum == (int)g.size());
        EXPECT(g.shfl(t, me) == t);
        EXPECT(g.any(1) && g.all(t % 3 == 0));
        g.sync();
    }
    // by label and by predicate
    auto labelled = labeled_partition(tile32, t % 5);
    int members = 0;
    for (int l = t & ~31; l < (t & ~31) + 32; l++) members += l % 5 == t % 5;
    EXPECT((int)labelled.size() == members);
    EXPECT(reduce(labelled, t % 5, plus<int>()) == members * (t % 5));
    auto binary = binary_partition(tile32, t % 32 < 10);
    EXPECT(binary.size() == (t % 32 < 10 ? 10u : 22u));
    EXPECT(binary.shfl(t % 32, 0) == (t % 32 < 10 ? 0 : 10));
    int v = -1;
    invoke_one(tile32, [&] { v = t; });
    EXPECT(tile32.any(v >= 0));
    cg::sync(block);
}

int main()
{
    int blockSize = 128, *bad, h = -1;
    cudaMalloc(&bad, sizeof(int));
    cudaMemset(bad, 0, sizeof(int));
    printf("Launching a single block with %d threads...\n\n", blockSize);
    cgkernel<<<3, blockSize, blockSize * sizeof(int)>>>(bad);
    cudaError_t err = cudaDeviceSynchronize();
    cudaMemcpy(&h, bad, sizeof(int), cudaMemcpyDeviceToHost);
    cudaFree(bad);
    printf("%s, %d failures\n%s\n", cudaGetErrorString(err), h, err || h ? "...Failed" : "...Done");
    return err || h;
}
