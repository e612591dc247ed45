// Quantised inference: row-wise absmax quantisation to int8, dot products with __dp4a, dequantisation; 4-bit unpacking; W8A8 GEMM.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define QK 32
typedef struct {
    half    d;              // delta
    int8_t  qs[QK];         // quants
} block_q8_0;
static_assert(sizeof(block_q8_0) == sizeof(half) + QK, "wrong q8_0 block size/padding");
typedef struct {
    half    d;
    uint8_t qs[QK / 2];     // nibbles / quants
} block_q4_0;

#define CUDA_ASSERT(call) do { cudaError_t err_ = (call); if (err_ != cudaSuccess) { fprintf(stderr, "CUDA error: %s (%s:%d)\n", cudaGetErrorString(err_), __FILE__, __LINE__); abort(); } } while (0)

static __device__ __forceinline__ float warp_reduce_max(float x) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, mask, 32));
    return x;
}

// one warp quantises one block of 32 values
static __global__ void quantize_q8_0(const float * __restrict__ x, void * __restrict__ vy, const int k) {
    const int i = blockDim.x*blockIdx.x + threadIdx.x;
    if (i >= k) return;
    block_q8_0 * y = (block_q8_0 *) vy;
    const int ib = i / QK;
    const int iqs = i % QK;
    const float xi = x[i];
    float amax = warp_reduce_max(fabsf(xi));
    const float d = amax / 127;
    const int8_t q = amax == 0.0f ? 0 : roundf(xi / d);
    y[ib].qs[iqs] = q;
    if (iqs > 0) return;
    y[ib].d = __float2half(d);
}

static __device__ __forceinline__ int get_int_from_int8(const int8_t * x8, const int & i32) {
    const uint16_t * x16 = (const uint16_t *) (x8 + sizeof(int) * i32); // assume at least 2 byte alignment
    int x32 = 0;
    x32 |= x16[0] <<  0;
    x32 |= x16[1] << 16;
    return x32;
}

static __device__ __forceinline__ float vec_dot_q8_0(const block_q8_0 * a, const block_q8_0 * b) {
    int sumi = 0;
#pragma unroll
    for (int i = 0; i < QK / 4; ++i) sumi = __dp4a(get_int_from_int8(a->qs, i), get_int_from_int8(b->qs, i), sumi);
    return sumi * __half2float(a->d) * __half2float(b->d);
}

// q4 times q8: nibbles are offset by 8
static __device__ __forceinline__ float vec_dot_q4_0(const block_q4_0 * a, const block_q8_0 * b) {
    int sumi = 0;
    for (int i = 0; i < QK / 8; ++i) {
        const int v = get_int_from_int8((const int8_t *)a->qs, i);
        const int lo = __vsubss4((v >> 0) & 0x0F0F0F0F, 0x08080808), hi = __vsubss4((v >> 4) & 0x0F0F0F0F, 0x08080808);
        sumi = __dp4a(lo, get_int_from_int8(b->qs, i), sumi);
        sumi = __dp4a(hi, get_int_from_int8(b->qs, i + QK / 8), sumi);
    }
    return __low2float(__halves2half2(a->d, a->d)) * __half2float(b->d) * sumi;
}

template <typename block_t, float (*vec_dot)(const block_t *, const block_q8_0 *)>
static __global__ void mul_mat_vec_q(const void * __restrict__ vx, const void * __restrict__ vy, float * __restrict__ dst, const int ncols, const int nrows) {
    const int row = blockIdx.x*blockDim.y + threadIdx.y;
    if (row >= nrows) return;
    const int blocks_per_row = ncols / QK;
    const block_t * x = (const block_t *) vx + row * blocks_per_row;
    const block_q8_0 * y = (const block_q8_0 *) vy;
    float tmp = 0.0f; // partial sum for each thread
    for (int i = threadIdx.x; i < blocks_per_row; i += 32) tmp += vec_dot(&x[i], &y[i]);
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) tmp += __shfl_xor_sync(0xffffffff, tmp, mask, 32);
    if (threadIdx.x == 0) dst[row] = tmp;
}

// int8 GEMM with int accumulators: C = A B^T
__global__ void gemm_s8(const char4 *A, const char4 *B, int *C, int M, int N, int K4) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= M || c >= N) return;
    int acc = 0;
    for (int k = 0; k < K4; k++) acc = __dp4a(A[r * K4 + k], B[c * K4 + k], acc);
    C[r * N + c] = acc;
}

int main() {
    const int rows = 200, cols = 1024, nb = cols / QK;
    srand(11);
    std::vector<float> W(rows * cols), x(cols), y(rows), y4(rows);
    for (auto &v : W) v = rand() / (float)RAND_MAX - 0.5f;
    for (auto &v : x) v = 2.f * rand() / (float)RAND_MAX - 1.f;
    std::vector<block_q4_0> w4(rows * nb);
    std::vector<float> W4(rows * cols);   // what the nibbles mean
    for (int b = 0; b < rows * nb; b++) {
        const float *p = &W[b * QK];
        float m = 0;
        for (int i = 0; i < QK; i++) if (std::fabs(p[i]) > std::fabs(m)) m = p[i];
        w4[b].d = __float2half(m / -8);
        float d = __half2float(w4[b].d);
        for (int i = 0; i < QK / 2; i++) {
            int lo = std::min(15, (int)(p[i] / d + 8.5f)), hi = std::min(15, (int)(p[i + QK / 2] / d + 8.5f));
            w4[b].qs[i] = lo | hi << 4;
            W4[b * QK + i] = (lo - 8) * d;
            W4[b * QK + i + QK / 2] = (hi - 8) * d;
        }
    }
    float *d_W, *d_x, *d_y;
    void *q_W, *q_x, *q_W4;
    CUDA_ASSERT(cudaMalloc(&d_W, W.size() * 4)); CUDA_ASSERT(cudaMalloc(&d_x, cols * 4)); CUDA_ASSERT(cudaMalloc(&d_y, rows * 4));
    CUDA_ASSERT(cudaMalloc(&q_W, rows * nb * sizeof(block_q8_0))); CUDA_ASSERT(cudaMalloc(&q_x, nb * sizeof(block_q8_0)));
    CUDA_ASSERT(cudaMalloc(&q_W4, rows * nb * sizeof(block_q4_0)));
    CUDA_ASSERT(cudaMemcpy(d_W, W.data(), W.size() * 4, cudaMemcpyHostToDevice));
    CUDA_ASSERT(cudaMemcpy(d_x, x.data(), cols * 4, cudaMemcpyHostToDevice));
    CUDA_ASSERT(cudaMemcpy(q_W4, w4.data(), w4.size() * sizeof(block_q4_0), cudaMemcpyHostToDevice));
    quantize_q8_0<<<rows * cols / 256, 256>>>(d_W, q_W, rows * cols);
    quantize_q8_0<<<cols / 256, 256>>>(d_x, q_x, cols);
    const dim3 block_dims(32, 4, 1);
    mul_mat_vec_q<block_q8_0, vec_dot_q8_0><<<(rows + 3) / 4, block_dims>>>(q_W, q_x, d_y, cols, rows);
    CUDA_ASSERT(cudaGetLastError());
    CUDA_ASSERT(cudaMemcpy(y.data(), d_y, rows * 4, cudaMemcpyDeviceToHost));
    mul_mat_vec_q<block_q4_0, vec_dot_q4_0><<<(rows + 3) / 4, block_dims>>>(q_W4, q_x, d_y, cols, rows);
    CUDA_ASSERT(cudaGetLastError());
    CUDA_ASSERT(cudaMemcpy(y4.data(), d_y, rows * 4, cudaMemcpyDeviceToHost));
    double e8 = 0, e4 = 0, size = 0;
    for (int r = 0; r < rows; r++) {
        double s = 0, s4 = 0;
        for (int c = 0; c < cols; c++) s += (double)W[r * cols + c] * x[c], s4 += (double)W4[r * cols + c] * x[c];
        e8 = std::fmax(e8, std::fabs(s - y[r]));
        e4 = std::fmax(e4, std::fabs(s4 - y4[r]));
        size = std::fmax(size, std::fabs(s));
    }
    printf("values up to %.2f; q8 error %.4f, q4 error (against its own weights) %.4f\n", size, e8, e4);

    const int M = 65, N = 50, K = 96;
    std::vector<int8_t> A(M * K), B(N * K);
    for (auto &v : A) v = rand() % 256 - 128;
    for (auto &v : B) v = rand() % 256 - 128;
    char4 *dA, *dB;
    int *dC, bad = 0;
    std::vector<int> C(M * N);
    CUDA_ASSERT(cudaMalloc(&dA, M * K)); CUDA_ASSERT(cudaMalloc(&dB, N * K)); CUDA_ASSERT(cudaMalloc(&dC, M * N * 4));
    CUDA_ASSERT(cudaMemcpy(dA, A.data(), M * K, cudaMemcpyHostToDevice));
    CUDA_ASSERT(cudaMemcpy(dB, B.data(), N * K, cudaMemcpyHostToDevice));
    gemm_s8<<<dim3((N + 15) / 16, (M + 7) / 8), dim3(16, 8)>>>(dA, dB, dC, M, N, K / 4);
    CUDA_ASSERT(cudaGetLastError());
    CUDA_ASSERT(cudaMemcpy(C.data(), dC, M * N * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            int s = 0;
            for (int k = 0; k < K; k++) s += A[i * K + k] * B[j * K + k];
            bad += s != C[i * N + j];
        }
    printf("int8 gemm: %d wrong\n", bad);
    for (void *p : std::vector<void *>{d_W, d_x, d_y, q_W, q_x, q_W4, dA, dB, dC}) CUDA_ASSERT(cudaFree(p));
    bool ok = e8 < 0.15 && e4 < 0.15 && !bad;
    puts(ok ? "quantised OK" : "quantised FAILED");
    return !ok;
}
