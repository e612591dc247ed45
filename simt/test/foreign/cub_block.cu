// CUB's block-wide and warp-wide collectives: reduce, scan, radix sort, load/store with transposition, histogram, shuffle, adjacent difference.
#include <cub/cub.cuh>
#include <algorithm>
#include <iostream>
#include <numeric>
#include <vector>
#if CUB_VERSION >= 300000
#include <cuda/functional>
#define CUB_MAX cuda::maximum<>
#else
#define CUB_MAX cub::Max
#endif

using namespace cub;

bool g_verbose = false;

#define CubDebugExitLike(e) do { cudaError_t r = (e); if (r != cudaSuccess) { std::cerr << cudaGetErrorString(r) << " line " << __LINE__ << "\n"; std::exit(1); } } while (0)

template <int BLOCK_THREADS, int ITEMS_PER_THREAD, BlockReduceAlgorithm ALGORITHM>
__global__ void BlockReduceKernel(int *d_in, int *d_out, int *d_max)
{
    // Specialize BlockReduce type for our thread block
    typedef BlockReduce<int, BLOCK_THREADS, ALGORITHM> BlockReduceT;
    // Shared memory
    __shared__ typename BlockReduceT::TempStorage temp_storage;
    int data[ITEMS_PER_THREAD];
    LoadDirectStriped<BLOCK_THREADS>(threadIdx.x, d_in + blockIdx.x * BLOCK_THREADS * ITEMS_PER_THREAD, data);
    int aggregate = BlockReduceT(temp_storage).Sum(data);
    __syncthreads();
    int biggest = BlockReduceT(temp_storage).Reduce(data[0], [] __device__(int a, int b) { return a > b ? a : b; });
    if (threadIdx.x == 0) {
        d_out[blockIdx.x] = aggregate;
        atomicMax(d_max, biggest);
    }
}

template <int BLOCK_THREADS, int ITEMS, BlockScanAlgorithm ALGORITHM>
__global__ void BlockPrefixSumKernel(const int *d_in, int *d_out, int *d_total)
{
    typedef BlockLoad<int, BLOCK_THREADS, ITEMS, BLOCK_LOAD_WARP_TRANSPOSE> BlockLoadT;
    typedef BlockStore<int, BLOCK_THREADS, ITEMS, BLOCK_STORE_WARP_TRANSPOSE> BlockStoreT;
    typedef BlockScan<int, BLOCK_THREADS, ALGORITHM> BlockScanT;
    __shared__ union TempStorage {
        typename BlockLoadT::TempStorage load;
        typename BlockStoreT::TempStorage store;
        typename BlockScanT::TempStorage scan;
    } temp_storage;
    int data[ITEMS];
    const int offset = blockIdx.x * BLOCK_THREADS * ITEMS;
    BlockLoadT(temp_storage.load).Load(d_in + offset, data);
    __syncthreads();
    int aggregate;
    BlockScanT(temp_storage.scan).ExclusiveSum(data, data, aggregate);
    __syncthreads();
    BlockStoreT(temp_storage.store).Store(d_out + offset, data);
    if (threadIdx.x == 0) d_total[blockIdx.x] = aggregate;
}

template <typename Key, int BLOCK_THREADS, int ITEMS_PER_THREAD>
__launch_bounds__(BLOCK_THREADS)
__global__ void BlockSortKernel(Key *d_in, Key *d_out, int *d_values)
{
    enum { TILE_SIZE = BLOCK_THREADS * ITEMS_PER_THREAD };
    using BlockRadixSortT = cub::BlockRadixSort<Key, BLOCK_THREADS, ITEMS_PER_THREAD, int>;
    __shared__ typename BlockRadixSortT::TempStorage temp;
    Key items[ITEMS_PER_THREAD];
    int values[ITEMS_PER_THREAD];
    int block_offset = blockIdx.x * TILE_SIZE;
    cub::LoadDirectBlocked(threadIdx.x, d_in + block_offset, items);
    for (int k = 0; k < ITEMS_PER_THREAD; k++) values[k] = threadIdx.x * ITEMS_PER_THREAD + k;
    BlockRadixSortT(temp).SortBlockedToStriped(items, values);
    cub::StoreDirectStriped<BLOCK_THREADS>(threadIdx.x, d_out + block_offset, items);
    cub::StoreDirectStriped<BLOCK_THREADS>(threadIdx.x, d_values + block_offset, values);
}

__global__ void warp_things(const float *in, float *sums, int *scan, float *maxima)
{
    using WarpReduceT = cub::WarpReduce<float>;
    using WarpScanT = cub::WarpScan<int>;
    __shared__ WarpReduceT::TempStorage reduce[4];
    __shared__ WarpScanT::TempStorage scans[4];
    int warp = threadIdx.x / 32, i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = WarpReduceT(reduce[warp]).Sum(in[i]);
    if (threadIdx.x % 32 == 0) sums[i / 32] = s;
    __syncwarp();
    float m = WarpReduceT(reduce[warp]).Reduce(in[i], CUB_MAX{});
    if (threadIdx.x % 32 == 0) maxima[i / 32] = m;
    int x = (int)in[i], y;
    WarpScanT(scans[warp]).InclusiveSum(x, y);
    scan[i] = y;
}

template <int THREADS, int ITEMS, int BINS>
__global__ void histo(const unsigned char *in, unsigned *out)
{
    typedef BlockHistogram<unsigned char, THREADS, ITEMS, BINS, BLOCK_HISTO_ATOMIC> BlockHistogramT;
    __shared__ typename BlockHistogramT::TempStorage temp;
    __shared__ unsigned bins[BINS];
    unsigned char data[ITEMS];
    LoadDirectBlocked(threadIdx.x, in + blockIdx.x * THREADS * ITEMS, data);
    BlockHistogramT(temp).Histogram(data, bins);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += THREADS) atomicAdd(&out[b], bins[b]);
}

int main()
{
    const int THREADS = 128, ITEMS = 4, TILE = THREADS * ITEMS, blocks = 9, n = TILE * blocks;
    std::vector<int> h(n), out(n), part(blocks), values(n);
    for (auto &v : h) v = rand() % 1000 - 300;
    int *d_in, *d_out, *d_part, *d_max, maximum = -1000000, bad = 0;
    CubDebugExitLike(cudaMalloc((void **)&d_in, n * sizeof(int)));
    CubDebugExitLike(cudaMalloc((void **)&d_out, n * sizeof(int)));
    CubDebugExitLike(cudaMalloc((void **)&d_part, n * sizeof(int)));
    CubDebugExitLike(cudaMalloc((void **)&d_max, sizeof(int)));
    CubDebugExitLike(cudaMemcpy(d_in, h.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    for (int a = 0; a < 3; a++) {
        CubDebugExitLike(cudaMemcpy(d_max, &maximum, sizeof(int), cudaMemcpyHostToDevice));
        if (a == 0) BlockReduceKernel<THREADS, ITEMS, BLOCK_REDUCE_RAKING><<<blocks, THREADS>>>(d_in, d_part, d_max);
        if (a == 1) BlockReduceKernel<THREADS, ITEMS, BLOCK_REDUCE_WARP_REDUCTIONS><<<blocks, THREADS>>>(d_in, d_part, d_max);
        if (a == 2) BlockReduceKernel<THREADS, ITEMS, BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY><<<blocks, THREADS>>>(d_in, d_part, d_max);
        CubDebugExitLike(cudaGetLastError());
        CubDebugExitLike(cudaMemcpy(part.data(), d_part, blocks * sizeof(int), cudaMemcpyDeviceToHost));
        for (int b = 0; b < blocks; b++) bad += part[b] != std::accumulate(&h[b * TILE], &h[b * TILE] + TILE, 0);
        int m, want = maximum;
        CubDebugExitLike(cudaMemcpy(&m, d_max, sizeof(int), cudaMemcpyDeviceToHost));
        for (int b = 0; b < blocks; b++) for (int t = 0; t < THREADS; t++) want = std::max(want, h[b * TILE + t]);
        bad += m != want;
    }
    std::cout << "reduce: " << bad << " wrong" << std::endl;

    for (int a = 0; a < 2; a++) {
        if (a == 0) BlockPrefixSumKernel<THREADS, ITEMS, BLOCK_SCAN_RAKING><<<blocks, THREADS>>>(d_in, d_out, d_part);
        else BlockPrefixSumKernel<THREADS, ITEMS, BLOCK_SCAN_WARP_SCANS><<<blocks, THREADS>>>(d_in, d_out, d_part);
        CubDebugExitLike(cudaGetLastError());
        CubDebugExitLike(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
        CubDebugExitLike(cudaMemcpy(part.data(), d_part, blocks * sizeof(int), cudaMemcpyDeviceToHost));
        for (int b = 0; b < blocks; b++) {
            int s = 0;
            for (int i = 0; i < TILE; i++) { bad += out[b * TILE + i] != s; s += h[b * TILE + i]; }
            bad += part[b] != s;
        }
    }
    std::cout << "scan: " << bad << " wrong" << std::endl;

    BlockSortKernel<int, THREADS, ITEMS><<<blocks, THREADS>>>(d_in, d_out, d_part);
    CubDebugExitLike(cudaGetLastError());
    CubDebugExitLike(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
    CubDebugExitLike(cudaMemcpy(values.data(), d_part, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks; b++) {
        std::vector<int> index(TILE);
        std::iota(index.begin(), index.end(), 0);
        std::stable_sort(index.begin(), index.end(), [&](int x, int y) { return h[b * TILE + x] < h[b * TILE + y]; });
        for (int i = 0; i < TILE; i++) bad += values[b * TILE + i] != index[i] || out[b * TILE + i] != h[b * TILE + index[i]];
    }
    std::cout << "sort: " << bad << " wrong" << std::endl;

    std::vector<float> f(512), sums(16), maxima(16);
    std::vector<int> scan(512);
    for (auto &v : f) v = rand() % 50;
    float *d_f, *d_sums, *d_maxima;
    int *d_scan;
    CubDebugExitLike(cudaMalloc((void **)&d_f, 512 * 4)); CubDebugExitLike(cudaMalloc((void **)&d_sums, 64)); CubDebugExitLike(cudaMalloc((void **)&d_maxima, 64));
    CubDebugExitLike(cudaMalloc((void **)&d_scan, 512 * 4));
    CubDebugExitLike(cudaMemcpy(d_f, f.data(), 512 * 4, cudaMemcpyHostToDevice));
    warp_things<<<4, 128>>>(d_f, d_sums, d_scan, d_maxima);
    CubDebugExitLike(cudaMemcpy(sums.data(), d_sums, 64, cudaMemcpyDeviceToHost));
    CubDebugExitLike(cudaMemcpy(maxima.data(), d_maxima, 64, cudaMemcpyDeviceToHost));
    CubDebugExitLike(cudaMemcpy(scan.data(), d_scan, 512 * 4, cudaMemcpyDeviceToHost));
    for (int w = 0; w < 16; w++) {
        float s = 0, m = 0;
        for (int i = 0; i < 32; i++) { s += f[w * 32 + i]; m = std::max(m, f[w * 32 + i]); bad += scan[w * 32 + i] != (int)s; }
        bad += sums[w] != s || maxima[w] != m;
    }
    std::cout << "warps: " << bad << " wrong" << std::endl;

    std::vector<unsigned char> bytes(256 * 8 * 3);
    std::vector<unsigned> bins(256, 0), want(256, 0);
    for (auto &b : bytes) { b = rand() % 256; want[b]++; }
    unsigned char *d_bytes;
    unsigned *d_bins;
    CubDebugExitLike(cudaMalloc((void **)&d_bytes, bytes.size())); CubDebugExitLike(cudaMalloc((void **)&d_bins, 1024));
    CubDebugExitLike(cudaMemcpy(d_bytes, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    CubDebugExitLike(cudaMemset(d_bins, 0, 1024));
    histo<256, 8, 256><<<3, 256>>>(d_bytes, d_bins);
    CubDebugExitLike(cudaMemcpy(bins.data(), d_bins, 1024, cudaMemcpyDeviceToHost));
    bad += bins != want;
    for (void *p : {(void *)d_in, (void *)d_out, (void *)d_part, (void *)d_max, (void *)d_f, (void *)d_sums, (void *)d_maxima, (void *)d_scan, (void *)d_bytes, (void *)d_bins}) cudaFree(p);
    std::cout << (bad ? "CUB FAILED" : "CUB all CORRECT") << std::endl;
    return bad != 0;
}
