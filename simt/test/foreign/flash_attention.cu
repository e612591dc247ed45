// Minimal flash attention, forward: tiles of K and V in shared memory, running maximum and sum per query row.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>

#define CUDA_ERR(x) do { cudaError_t _e = (x); if (_e != cudaSuccess) { \
    std::fprintf(stderr, "%s(%d): %s -> %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(_e)); std::exit(1); } } while (0)

__global__
void forward_kernel(const float* Q, const float* K, const float* V, const int N, const int d,
                    const int Tc, const int Tr, const int Bc, const int Br, const float softmax_scale,
                    float* l, float *m, float* O) {
    int tx = threadIdx.x;
    int bx = blockIdx.x; int by = blockIdx.y;  // batch and head index

    // Offset into Q,K,V,O,l,m - different for each batch and head
    int qkv_offset = (bx * gridDim.y * N * d) + (by * N * d);
    int lm_offset = (bx * gridDim.y * N) + (by * N);

    // Define SRAM for Q,K,V,S
    extern __shared__ float sram[];
    int tile_size = Bc * d;  // size of Qi, Kj, Vj
    float* Qi = sram;
    float* Kj = &sram[tile_size];
    float* Vj = &sram[tile_size * 2];
    float* S = &sram[tile_size * 3];

    for (int j = 0; j < Tc; j++) {
        // Load Kj, Vj to SRAM
        for (int x = 0; x < d; x++) {
            Kj[(tx * d) + x] = K[qkv_offset + (tile_size * j) + (tx * d) + x];
            Vj[(tx * d) + x] = V[qkv_offset + (tile_size * j) + (tx * d) + x];
        }
        __syncthreads();  // such that the inner loop can use the correct Kj, Vj

        for (int i = 0; i < Tr; i++)  {
            // Load Qi to SRAM, l and m to registers
            for (int x = 0; x < d; x++) Qi[(tx * d) + x] = Q[qkv_offset + (tile_size * i) + (tx * d) + x];
            float row_m_prev = m[lm_offset + (Br * i) + tx];
            float row_l_prev = l[lm_offset + (Br * i) + tx];

            // S = QK^T, row_m = rowmax(S)
            float row_m = -INFINITY;
            for (int y = 0; y < Bc; y++) {
                float sum = 0;
                for (int x = 0; x < d; x++) sum += Qi[(tx * d) + x] * Kj[(y * d) + x];
                sum *= softmax_scale;
                S[(Bc * tx) + y] = sum;
                if (sum > row_m) row_m = sum;
            }

            // P = exp(S - row_m), row_l = rowsum(P)
            float row_l = 0;
            for (int y = 0; y < Bc; y++) {
                S[(Bc * tx) + y] = __expf(S[(Bc * tx) + y] - row_m);
                row_l += S[(Bc * tx) + y];
            }

            // Compute new m and l
            float row_m_new = max(row_m_prev, row_m);
            float row_l_new = (__expf(row_m_prev - row_m_new) * row_l_prev) + (__expf(row_m - row_m_new) * row_l);

            // Write O, l, m to HBM
            for (int x = 0; x < d; x++) {
                float pv = 0;  // Pij * Vj
                for (int y = 0; y < Bc; y++) pv += S[(Bc * tx) + y] * Vj[(y * d) + x];
                O[qkv_offset + (tile_size * i) + (tx * d) + x] = (1 / row_l_new)
                    * ((row_l_prev * __expf(row_m_prev - row_m_new) * O[qkv_offset + (tile_size * i) + (tx * d) + x])
                    + (__expf(row_m - row_m_new) * pv));
            }
            m[lm_offset + (Br * i) + tx] = row_m_new;
            l[lm_offset + (Br * i) + tx] = row_l_new;
        }
        __syncthreads();  // otherwise, thread can use the wrong Kj, Vj in inner loop
    }
}

// The second version: one warp per query row, K tile of 32 keys, causal, everything else in registers.
template <int D>
__global__ void flash_v2(const float *__restrict__ Q, const float *__restrict__ K, const float *__restrict__ V,
                         float *__restrict__ O, int N, float scale) {
    __shared__ float Ks[32][D + 1], Vs[32][D];
    const int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    const size_t base = (size_t)blockIdx.y * N * D;
    float q[D], acc[(D + 31) / 32] = {};
    for (int x = 0; x < D; ++x) q[x] = row < N ? Q[base + (size_t)row * D + x] : 0.f;
    float m = -INFINITY, l = 0.f;
    const int last = min(N, (int)((blockIdx.x + 1) * blockDim.y));
    for (int j0 = 0; j0 < last; j0 += 32) {
        for (int e = threadIdx.y * 32 + lane; e < 32 * D; e += 32 * blockDim.y) {
            int r = e / D, c = e % D;
            Ks[r][c] = j0 + r < N ? K[base + (size_t)(j0 + r) * D + c] : 0.f;
            Vs[r][c] = j0 + r < N ? V[base + (size_t)(j0 + r) * D + c] : 0.f;
        }
        __syncthreads();
        float s = 0.f;
        for (int x = 0; x < D; ++x) s = fmaf(q[x], Ks[lane][x], s);
        s = j0 + lane <= row ? s * scale : -INFINITY;
        float mt = s;
        for (int o = 16; o; o >>= 1) mt = fmaxf(mt, __shfl_xor_sync(~0u, mt, o));
        float mn = fmaxf(m, mt), corr = mn == -INFINITY ? 1.f : __expf(m - mn);
        float p = mn == -INFINITY ? 0.f : __expf(s - mn), pl = p;
        for (int o = 16; o; o >>= 1) pl += __shfl_xor_sync(~0u, pl, o);
        l = l * corr + pl;
#pragma unroll
        for (int k = 0; k < (D + 31) / 32; ++k) acc[k] *= corr;
        for (int j = 0; j < 32; ++j) {
            float pj = __shfl_sync(~0u, p, j);
#pragma unroll
            for (int k = 0; k < (D + 31) / 32; ++k) acc[k] += pj * Vs[j][k * 32 + lane];
        }
        m = mn;
        __syncthreads();
    }
    if (row < N)
        for (int k = 0; k < (D + 31) / 32; ++k) O[base + (size_t)row * D + k * 32 + lane] = acc[k] / l;
}

static void reference(const std::vector<float> &Q, const std::vector<float> &K, const std::vector<float> &V,
                      std::vector<float> &O, int heads, int N, int d, bool causal) {
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < N; i++) {
            std::vector<double> s(N);
            double m = -1e30, l = 0;
            int end = causal ? i + 1 : N;
            for (int j = 0; j < end; j++) {
                double a = 0;
                for (int x = 0; x < d; x++) a += (double)Q[(h * N + i) * d + x] * K[(h * N + j) * d + x];
                s[j] = a / std::sqrt((double)d);
                m = std::max(m, s[j]);
            }
            for (int j = 0; j < end; j++) l += s[j] = std::exp(s[j] - m);
            for (int x = 0; x < d; x++) {
                double o = 0;
                for (int j = 0; j < end; j++) o += s[j] / l * V[(h * N + j) * d + x];
                O[(h * N + i) * d + x] = (float)o;
            }
        }
}

int main() {
    const int B = 2, nh = 3, N = 64, d = 32, n = B * nh * N * d;
    std::vector<float> Q(n), K(n), V(n), O(n), R(n), m(B * nh * N, -INFINITY);
    for (int i = 0; i < n; i++) { Q[i] = drand48() * 2 - 1; K[i] = drand48() * 2 - 1; V[i] = drand48() * 2 - 1; }
    float *dQ, *dK, *dV, *dO, *dl, *dm;
    CUDA_ERR(cudaMalloc(&dQ, n * 4)); CUDA_ERR(cudaMalloc(&dK, n * 4)); CUDA_ERR(cudaMalloc(&dV, n * 4));
    CUDA_ERR(cudaMalloc(&dO, n * 4)); CUDA_ERR(cudaMalloc(&dl, m.size() * 4)); CUDA_ERR(cudaMalloc(&dm, m.size() * 4));
    CUDA_ERR(cudaMemcpy(dQ, Q.data(), n * 4, cudaMemcpyHostToDevice));
    CUDA_ERR(cudaMemcpy(dK, K.data(), n * 4, cudaMemcpyHostToDevice));
    CUDA_ERR(cudaMemcpy(dV, V.data(), n * 4, cudaMemcpyHostToDevice));
    CUDA_ERR(cudaMemcpy(dm, m.data(), m.size() * 4, cudaMemcpyHostToDevice));
    CUDA_ERR(cudaMemset(dl, 0, m.size() * 4));
    CUDA_ERR(cudaMemset(dO, 0, n * 4));

    const int Bc = 32, Br = 32;
    const int Tc = ceil((float) N / Bc), Tr = ceil((float) N / Br);
    const float softmax_scale = 1.0 / sqrt(d);
    const int sram_size = (3 * Bc * d * sizeof(float)) + (Bc * Br * sizeof(float));
    int max_sram_size;
    cudaDeviceGetAttribute(&max_sram_size, cudaDevAttrMaxSharedMemoryPerBlock, 0);
    printf("Max shared memory: %d, requested shared memory: %d \n", max_sram_size, sram_size);

    dim3 grid_dim(B, nh);  // batch_size x num_heads
    dim3 block_dim(Bc);    // Bc threads per block
    forward_kernel<<<grid_dim, block_dim, sram_size>>>(dQ, dK, dV, N, d, Tc, Tr, Bc, Br, softmax_scale, dl, dm, dO);
    CUDA_ERR(cudaGetLastError());
    CUDA_ERR(cudaMemcpy(O.data(), dO, n * 4, cudaMemcpyDeviceToHost));
    reference(Q, K, V, R, B * nh, N, d, false);
    double e1 = 0, e2 = 0;
    for (int i = 0; i < n; i++) e1 = std::fmax(e1, std::fabs(O[i] - R[i]));

    flash_v2<32><<<dim3((N + 3) / 4, B * nh), dim3(32, 4)>>>(dQ, dK, dV, dO, N, softmax_scale);
    CUDA_ERR(cudaGetLastError());
    CUDA_ERR(cudaMemcpy(O.data(), dO, n * 4, cudaMemcpyDeviceToHost));
    reference(Q, K, V, R, B * nh, N, d, true);
    for (int i = 0; i < n; i++) e2 = std::fmax(e2, std::fabs(O[i] - R[i]));
    printf("attn values sanity check: %s (%g), causal: %s (%g)\n", e1 < 1e-4 ? "True" : "False", e1,
           e2 < 1e-4 ? "True" : "False", e2);
    cudaFree(dQ); cudaFree(dK); cudaFree(dV); cudaFree(dO); cudaFree(dl); cudaFree(dm);
    return e1 < 1e-4 && e2 < 1e-4 ? 0 : 1;
}
