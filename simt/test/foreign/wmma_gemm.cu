// Tensor core GEMMs through the wmma API: half in, float out; bf16; tf32; int8; fused C; one warp per 16x16 tile; shared-memory tiles.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <vector>
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda;

#define cudaErrCheck(stat) { cudaErrCheck_((stat), __FILE__, __LINE__); }
void cudaErrCheck_(cudaError_t stat, const char *file, int line) {
   if (stat != cudaSuccess) {
      fprintf(stderr, "CUDA Error: %s %s %d\n", cudaGetErrorString(stat), file, line);
      exit(1);
   }
}

// Must be multiples of 16 for wmma code to work
#define MATRIX_M 128
#define MATRIX_N 96
#define MATRIX_K 160

// The only dimensions currently supported by WMMA
const int WMMA_M = 16;
const int WMMA_N = 16;
const int WMMA_K = 16;

// all column-major: alpha A B + beta C
__global__ void wmma_example(half *a, half *b, float *c, int M, int N, int K, float alpha, float beta) {
   // Leading dimensions. Packed with no transpositions.
   int lda = M;
   int ldb = K;
   int ldc = M;

   // Tile using a 2D grid
   int warpM = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
   int warpN = (blockIdx.y * blockDim.y + threadIdx.y);

   // Declare the fragments
   wmma::fragment<wmma::matrix_a, WMMA_M, WMMA_N, WMMA_K, half, wmma::col_major> a_frag;
   wmma::fragment<wmma::matrix_b, WMMA_M, WMMA_N, WMMA_K, half, wmma::col_major> b_frag;
   wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> acc_frag;
   wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> c_frag;

   wmma::fill_fragment(acc_frag, 0.0f);

   // Loop over k
   for (int i = 0; i < K; i += WMMA_K) {
      int aRow = warpM * WMMA_M;
      int aCol = i;
      int bRow = i;
      int bCol = warpN * WMMA_N;

      // Bounds checking
      if (aRow < M && aCol < K && bRow < K && bCol < N) {
         // Load the inputs
         wmma::load_matrix_sync(a_frag, a + aRow + aCol * lda, lda);
         wmma::load_matrix_sync(b_frag, b + bRow + bCol * ldb, ldb);

         // Perform the matrix multiplication
         wmma::mma_sync(acc_frag, a_frag, b_frag, acc_frag);
      }
   }

   // Load in the current value of c, scale it by beta, and add this our result scaled by alpha
   int cRow = warpM * WMMA_M;
   int cCol = warpN * WMMA_N;
   if (cRow < M && cCol < N) {
      wmma::load_matrix_sync(c_frag, c + cRow + cCol * ldc, ldc, wmma::mem_col_major);
      for(int i=0; i < c_frag.num_elements; i++) {
         c_frag.x[i] = alpha * acc_frag.x[i] + beta * c_frag.x[i];
      }
      // Store the output
      wmma::store_matrix_sync(c + cRow + cCol * ldc, c_frag, ldc, wmma::mem_col_major);
   }
}

__global__ void convertFp32ToFp16 (half *out, float *in, int n) {
   int idx = blockDim.x * blockIdx.x + threadIdx.x;
   if (idx < n) {
      out[idx] = in[idx];
   }
}

// row-major, tiles of 32x32 through shared memory by 4 warps; generic in the type
template <typename T, int WK, typename Frag>
__global__ void gemm_shared(const T *A, const T *B, float *C, int M, int N, int K) {
   __shared__ __align__(32) T As[32][WK + 16 / sizeof(T)], Bs[WK][32 + 16 / sizeof(T)];
   const int warp = threadIdx.x / 32, wr = warp / 2, wc = warp % 2, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
   wmma::fragment<wmma::accumulator, 16, 16, WK, float> acc;
   wmma::fill_fragment(acc, 0.f);
   for (int k0 = 0; k0 < K; k0 += WK) {
      for (int i = threadIdx.x; i < 32 * WK; i += blockDim.x) {
         As[i / WK][i % WK] = A[(r0 + i / WK) * K + k0 + i % WK];
         Bs[i / 32][i % 32] = B[(k0 + i / 32) * N + c0 + i % 32];
      }
      __syncthreads();
      wmma::fragment<wmma::matrix_a, 16, 16, WK, Frag, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, 16, 16, WK, Frag, wmma::row_major> b;
      wmma::load_matrix_sync(a, &As[wr * 16][0], WK + 16 / sizeof(T));
      wmma::load_matrix_sync(b, &Bs[0][wc * 16], 32 + 16 / sizeof(T));
      if constexpr (WK == 8) {
#pragma unroll
         for (int t = 0; t < a.num_elements; t++) a.x[t] = wmma::__float_to_tf32(a.x[t]);
#pragma unroll
         for (int t = 0; t < b.num_elements; t++) b.x[t] = wmma::__float_to_tf32(b.x[t]);
      }
      wmma::mma_sync(acc, a, b, acc);
      __syncthreads();
   }
   wmma::store_matrix_sync(C + (r0 + wr * 16) * N + c0 + wc * 16, acc, N, wmma::mem_row_major);
}

__global__ void gemm_s8(const signed char *A, const signed char *B, int *C, int N, int K) {
   wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
   wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
   wmma::fragment<wmma::accumulator, 16, 16, 16, int> acc;
   wmma::fill_fragment(acc, 0);
   for (int k = 0; k < K; k += 16) {
      wmma::load_matrix_sync(a, A + blockIdx.y * 16 * K + k, K);
      wmma::load_matrix_sync(b, B + blockIdx.x * 16 * K + k, K);
      wmma::mma_sync(acc, a, b, acc);
   }
   wmma::store_matrix_sync(C + blockIdx.y * 16 * N + blockIdx.x * 16, acc, N, wmma::mem_row_major);
}

int main(int argc, char* argv[]) {
   const int M = MATRIX_M, N = MATRIX_N, K = MATRIX_K;
   std::vector<float> a(M * K), b(K * N), c(M * N), out(M * N);
   for (auto &v : a) v = (rand() % 2001 - 1000) / 1000.f;
   for (auto &v : b) v = (rand() % 2001 - 1000) / 1000.f;
   for (auto &v : c) v = (rand() % 2001 - 1000) / 100.f;
   float *a_fp32, *b_fp32, *c_wmma;
   half *a_fp16, *b_fp16;
   __nv_bfloat16 *a_bf, *b_bf;
   cudaErrCheck(cudaMalloc((void**)&a_fp32, M * K * sizeof(float)));
   cudaErrCheck(cudaMalloc((void**)&b_fp32, K * N * sizeof(float)));
   cudaErrCheck(cudaMalloc((void**)&a_fp16, M * K * sizeof(half)));
   cudaErrCheck(cudaMalloc((void**)&b_fp16, K * N * sizeof(half)));
   cudaErrCheck(cudaMalloc((void**)&a_bf, M * K * sizeof(*a_bf)));
   cudaErrCheck(cudaMalloc((void**)&b_bf, K * N * sizeof(*b_bf)));
   cudaErrCheck(cudaMalloc((void**)&c_wmma, M * N * sizeof(float)));
   cudaErrCheck(cudaMemcpy(a_fp32, a.data(), M * K * sizeof(float), cudaMemcpyHostToDevice));
   cudaErrCheck(cudaMemcpy(b_fp32, b.data(), K * N * sizeof(float), cudaMemcpyHostToDevice));
   convertFp32ToFp16 <<< (M * K + 255) / 256, 256 >>> (a_fp16, a_fp32, M * K);
   convertFp32ToFp16 <<< (K * N + 255) / 256, 256 >>> (b_fp16, b_fp32, K * N);

   int bad = 0;
   float alpha = 2.0f, beta = -0.5f;
   cudaErrCheck(cudaMemcpy(c_wmma, c.data(), M * N * sizeof(float), cudaMemcpyHostToDevice));
   dim3 gridDim;
   dim3 blockDim;
   // blockDim.x must be a multple of warpSize: 64x2 means we have 4 warps and a block computes a 32x32 output tile
   blockDim.x = 64;
   blockDim.y = 2;
   gridDim.x = (M + (WMMA_M * blockDim.x / 32 - 1)) / (WMMA_M * blockDim.x / 32);
   gridDim.y = (N + WMMA_N * blockDim.y - 1) / (WMMA_N * blockDim.y);
   printf("Running with wmma...\n");
   wmma_example <<< gridDim, blockDim >>> (a_fp16, b_fp16, c_wmma, M, N, K, alpha, beta);
   cudaErrCheck(cudaGetLastError());
   cudaErrCheck(cudaMemcpy(out.data(), c_wmma, M * N * sizeof(float), cudaMemcpyDeviceToHost));
   double worst = 0;
   for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++) {
         double s = 0;
         for (int k = 0; k < K; k++) s += (double)__half2float(__float2half(a[i + k * M])) * __half2float(__float2half(b[k + j * K]));
         worst = fmax(worst, fabs(alpha * s + beta * c[i + j * M] - out[i + j * M]));
      }
   printf("half, column-major: worst error %g\n", worst);
   bad += !(worst < 1e-3);

   for (int kind = 0; kind < 3; kind++) {
      dim3 grid(N / 32, M / 32);
      cudaErrCheck(cudaMemset(c_wmma, 0xff, M * N * sizeof(float)));
      if (kind == 0) gemm_shared<half, 16, half><<<grid, 128>>>(a_fp16, b_fp16, c_wmma, M, N, K);
      if (kind == 1) {
         std::vector<__nv_bfloat16> ab(M * K), bb(K * N);
         for (int i = 0; i < M * K; i++) ab[i] = __float2bfloat16(a[i]);
         for (int i = 0; i < K * N; i++) bb[i] = __float2bfloat16(b[i]);
         cudaErrCheck(cudaMemcpy(a_bf, ab.data(), M * K * 2, cudaMemcpyHostToDevice));
         cudaErrCheck(cudaMemcpy(b_bf, bb.data(), K * N * 2, cudaMemcpyHostToDevice));
         gemm_shared<__nv_bfloat16, 16, __nv_bfloat16><<<grid, 128>>>(a_bf, b_bf, c_wmma, M, N, K);
      }
      if (kind == 2) gemm_shared<float, 8, wmma::precision::tf32><<<grid, 128>>>(a_fp32, b_fp32, c_wmma, M, N, K);
      cudaErrCheck(cudaGetLastError());
      cudaErrCheck(cudaMemcpy(out.data(), c_wmma, M * N * sizeof(float), cudaMemcpyDeviceToHost));
      worst = 0;
      for (int i = 0; i < M; i++)
         for (int j = 0; j < N; j++) {
            double s = 0;
            for (int k = 0; k < K; k++) s += (double)a[i * K + k] * b[k * N + j];
            worst = fmax(worst, fabs(s - out[i * N + j]));
         }
      const char *names[] = {"half", "bf16", "tf32"};
      const double limits[] = {0.01, 0.08, 0.01};
      printf("%s through shared memory: worst error %g\n", names[kind], worst);
      bad += !(worst < limits[kind]);
   }

   std::vector<signed char> ai(M * K), bi(K * N);
   for (auto &v : ai) v = rand() % 255 - 127;
   for (auto &v : bi) v = rand() % 255 - 127;
   std::vector<int> ci(M * N);
   signed char *d_ai = (signed char *)a_fp32, *d_bi = (signed char *)b_fp32;
   cudaErrCheck(cudaMemcpy(d_ai, ai.data(), M * K, cudaMemcpyHostToDevice));
   cudaErrCheck(cudaMemcpy(d_bi, bi.data(), K * N, cudaMemcpyHostToDevice));
   gemm_s8<<<dim3(N / 16, M / 16), 32>>>(d_ai, d_bi, (int *)c_wmma, N, K);
   cudaErrCheck(cudaGetLastError());
   cudaErrCheck(cudaMemcpy(ci.data(), c_wmma, M * N * sizeof(int), cudaMemcpyDeviceToHost));
   int wrong = 0;
   for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
         int s = 0;
         for (int k = 0; k < K; k++) s += ai[i * K + k] * bi[j * K + k];
         wrong += s != ci[i * N + j];
      }
   printf("int8: %d wrong\n", wrong);
   bad += wrong;
   cudaErrCheck(cudaFree(a_fp32)); cudaErrCheck(cudaFree(b_fp32)); cudaErrCheck(cudaFree(a_fp16)); cudaErrCheck(cudaFree(b_fp16));
   cudaErrCheck(cudaFree(a_bf)); cudaErrCheck(cudaFree(b_bf)); cudaErrCheck(cudaFree(c_wmma));
   cudaErrCheck(cudaDeviceReset());
   printf(bad ? "WMMA does not agree!\n" : "Results verified\n\n");
   return bad != 0;
}
