// LSD radix sort, 4 bits per pass: block-local split by ballot, digit histograms, scan of histograms, scatter.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#define THROW_IF(e)                                                                     \
    if (const cudaError_t _rc = (e); _rc != cudaSuccess) {                              \
        std::cerr << "line " << __LINE__ << ": " << cudaGetErrorString(_rc) << '\n';    \
        std::abort();                                                                   \
    }

constexpr unsigned RADIX_BITS = 4, RADIX = 1u << RADIX_BITS, BLOCK = 256;

__global__ void histogram_kernel(const uint32_t* keys, unsigned n, unsigned shift, unsigned* histograms) {
    __shared__ unsigned local[RADIX];
    if (threadIdx.x < RADIX) local[threadIdx.x] = 0;
    __syncthreads();
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) atomicAdd_block(&local[(keys[i] >> shift) & (RADIX - 1)], 1u);
    __syncthreads();
    // column-major: all blocks of digit 0 first
    if (threadIdx.x < RADIX) histograms[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

// exclusive scan of any length by one block
__global__ void scan_kernel(unsigned* data, unsigned n) {
    __shared__ unsigned warp_sums[32];
    __shared__ unsigned carry;
    if (threadIdx.x == 0) carry = 0;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (unsigned base = 0; base < n; base += blockDim.x) {
        const unsigned i = base + threadIdx.x;
        const unsigned v = i < n ? data[i] : 0;
        unsigned s = v;
        for (unsigned d = 1; d < 32; d *= 2) {
            const unsigned t = __shfl_up_sync(0xffffffff, s, d);
            if (lane >= d) s += t;
        }
        if (lane == 31) warp_sums[warp] = s;
        __syncthreads();
        if (warp == 0) {
            unsigned w = lane < blockDim.x / 32 ? warp_sums[lane] : 0;
            for (unsigned d = 1; d < 32; d *= 2) {
                const unsigned t = __shfl_up_sync(0xffffffff, w, d);
                if (lane >= d) w += t;
            }
            warp_sums[lane] = w;
        }
        __syncthreads();
        const unsigned before = carry + (warp ? warp_sums[warp - 1] : 0) + s - v;
        if (i < n) data[i] = before;
        __syncthreads();
        if (threadIdx.x == blockDim.x - 1) carry = before + v;
        __syncthreads();
    }
}

template <typename Value>
__global__ void scatter_kernel(const uint32_t* keys, const Value* values, uint32_t* out_keys, Value* out_values, unsigned n,
                               unsigned shift, const unsigned* offsets) {
    __shared__ unsigned warp_count[BLOCK / 32][RADIX];
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool valid = i < n;
    const uint32_t key = valid ? keys[i] : 0xffffffffu;
    const unsigned digit = valid ? (key >> shift) & (RADIX - 1) : RADIX;
    unsigned rank_in_warp = 0;
    for (unsigned d = 0; d < RADIX; ++d) {
        const unsigned same = __ballot_sync(0xffffffff, digit == d);
        if (digit == d) rank_in_warp = __popc(same & ((1u << lane) - 1));
        if (lane == 0) warp_count[warp][d] = __popc(same);
    }
    __syncthreads();
    if (valid) {
        unsigned pos = offsets[digit * gridDim.x + blockIdx.x] + rank_in_warp;
        for (unsigned w = 0; w < warp; ++w) pos += warp_count[w][digit];
        out_keys[pos] = key;
        out_values[pos] = values[i];
    }
}

struct Payload {
    float weight;
    uint16_t tag[2];
};

int main() {
    std::mt19937 rng(123);
    bool ok = true;
    for (unsigned n : {1u, 255u, 4096u, 100000u}) {
        std::vector<uint32_t> keys(n), sorted(n);
        std::vector<Payload> values(n), out(n);
        for (unsigned i = 0; i < n; ++i) {
            keys[i] = n == 4096u ? rng() % 7 : rng();
            values[i] = {static_cast<float>(i), {static_cast<uint16_t>(i), static_cast<uint16_t>(i >> 16)}};
        }
        const unsigned blocks = (n + BLOCK - 1) / BLOCK;
        uint32_t *k0, *k1;
        Payload *v0, *v1;
        unsigned* hist;
        THROW_IF(cudaMalloc(&k0, n * sizeof *k0));
        THROW_IF(cudaMalloc(&k1, n * sizeof *k1));
        THROW_IF(cudaMalloc(&v0, n * sizeof *v0));
        THROW_IF(cudaMalloc(&v1, n * sizeof *v1));
        THROW_IF(cudaMalloc(&hist, blocks * RADIX * sizeof *hist));
        THROW_IF(cudaMemcpy(k0, keys.data(), n * sizeof *k0, cudaMemcpyHostToDevice));
        THROW_IF(cudaMemcpy(v0, values.data(), n * sizeof *v0, cudaMemcpyHostToDevice));
        const auto start = std::chrono::high_resolution_clock::now();
        for (unsigned shift = 0; shift < 32; shift += RADIX_BITS) {
            histogram_kernel<<<blocks, BLOCK>>>(k0, n, shift, hist);
            scan_kernel<<<1, 512>>>(hist, blocks * RADIX);
            scatter_kernel<Payload><<<blocks, BLOCK>>>(k0, v0, k1, v1, n, shift, hist);
            std::swap(k0, k1);
            std::swap(v0, v1);
        }
        THROW_IF(cudaGetLastError());
        THROW_IF(cudaDeviceSynchronize());
        const std::chrono::duration<double, std::milli> ms = std::chrono::high_resolution_clock::now() - start;
        THROW_IF(cudaMemcpy(sorted.data(), k0, n * sizeof *k0, cudaMemcpyDeviceToHost));
        THROW_IF(cudaMemcpy(out.data(), v0, n * sizeof *v0, cudaMemcpyDeviceToHost));
        std::vector<unsigned> index(n);
        for (unsigned i = 0; i < n; ++i) index[i] = i;
        std::stable_sort(index.begin(), index.end(), [&](unsigned a, unsigned b) { return keys[a] < keys[b]; });
        bool good = true;
        for (unsigned i = 0; i < n; ++i)
            good = good && sorted[i] == keys[index[i]] && (out[i].tag[0] | (out[i].tag[1] << 16)) == static_cast<int>(index[i]);
        std::cout << n << " pairs in " << ms.count() << " ms: " << (good ? "sorted, stable" : "WRONG") << std::endl;
        ok = ok && good;
        cudaFree(k0); cudaFree(k1); cudaFree(v0); cudaFree(v1); cudaFree(hist);
    }
    return ok ? 0 : 1;
}
