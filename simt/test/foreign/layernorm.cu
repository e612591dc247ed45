/* LayerNorm forward and backward over (B,T,C) activations.
   forward 1: thread per row; 2: warp per row (cooperative groups); 3: block per row, float4 through Packed128
   backward 1: thread per row with atomics; 2: warp per row, gradients of weight and bias in shared memory */
#include <stdio.h>
#include <stdlib.h>
#include <assert.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "llm_common.h"
namespace cg = cooperative_groups;

void layernorm_forward_cpu(float* out, float* mean, float* rstd, const float* inp, const float* weight, const float* bias,
                           int N, int C) {
    float eps = 1e-5f;
    for (int n = 0; n < N; n++) {
        const float* x = inp + n * C;
        double m = 0, v = 0;
        for (int i = 0; i < C; i++) m += x[i];
        m /= C;
        for (int i = 0; i < C; i++) v += (x[i] - m) * (x[i] - m);
        float s = 1.0f / sqrtf(v / C + eps);
        for (int i = 0; i < C; i++) out[n * C + i] = s * (x[i] - (float)m) * weight[i] + bias[i];
        mean[n] = m;
        rstd[n] = s;
    }
}

void layernorm_backward_cpu(float* dinp, float* dweight, float* dbias, const float* dout, const float* inp,
                            const float* weight, const float* mean, const float* rstd, int N, int C) {
    for (int n = 0; n < N; n++) {
        const float *dy = dout + n * C, *x = inp + n * C;
        double dnorm_mean = 0, dnorm_norm_mean = 0;
        for (int i = 0; i < C; i++) {
            float norm = (x[i] - mean[n]) * rstd[n], dnorm = weight[i] * dy[i];
            dnorm_mean += dnorm;
            dnorm_norm_mean += dnorm * norm;
        }
        dnorm_mean /= C;
        dnorm_norm_mean /= C;
        for (int i = 0; i < C; i++) {
            float norm = (x[i] - mean[n]) * rstd[n], dnorm = weight[i] * dy[i];
            dbias[i] += dy[i];
            dweight[i] += norm * dy[i];
            dinp[n * C + i] += (dnorm - dnorm_mean - norm * dnorm_norm_mean) * rstd[n];
        }
    }
}

__global__ void layernorm_forward_kernel1(float* out, float* mean, float* rstd, const float* inp, const float* weight,
                                          const float* bias, int N, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    float eps = 1e-5f;
    if (idx < N) {
        const float* x = inp + idx * C;
        float m = 0.0f;
        for (int i = 0; i < C; i++) m += x[i];
        m = m / C;
        float v = 0.0f;
        for (int i = 0; i < C; i++) { float xshift = x[i] - m; v += xshift * xshift; }
        v = v / C;
        float s = 1.0f / sqrtf(v + eps);
        for (int i = 0; i < C; i++) out[idx * C + i] = (s * (x[i] - m)) * weight[i] + bias[i];
        mean[idx] = m;
        rstd[idx] = s;
    }
}

__global__ void layernorm_forward_kernel2(float* __restrict__ out, float* __restrict__ mean, float* __restrict__ rstd,
                                          const float*  __restrict__ inp, const float*  __restrict__ weight,
                                          const float* __restrict__ bias, int N, int C) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if(idx >= N) {
        return;
    }
    const float* x = inp + idx * C;

    float sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += x[i];
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float m = sum / C;
    if(warp.thread_rank() == 0 && mean != nullptr) {
        __stcs(mean + idx, m);
    }

    sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
        float diff = x[i] - m;
        sum += diff * diff;
    }
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float s = rsqrtf(sum / C + 1e-5f);
    if(warp.thread_rank() == 0 && rstd != nullptr) {
        __stcs(rstd + idx, s);
    }

    float* o = out + idx * C;
    for (int c = warp.thread_rank(); c < C; c += warp.size()) {
        float n = s * (__ldcs(x+c) - m);
        __stcs(o+c, n * weight[c] + bias[c]);
    }
}

__device__ inline float blockReduceSum(float val) {
    __shared__ float shared_val[32];
    const int lane_id = threadIdx.x % 32, warp_id = threadIdx.x / 32, num_warps = blockDim.x / 32;
    for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xFFFFFFFF, val, offset);
    if (lane_id == 0) { shared_val[warp_id] = val; }
    __syncthreads();
    val = (lane_id < num_warps) ? shared_val[lane_id] : 0.f;
    for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xFFFFFFFF, val, offset);
    __syncthreads(); // shared_val is reused by the next call
    return val;
}

__global__ void layernorm_forward_kernel3(float* out, float* mean, float* rstd, const float* inp, const float* weight,
                                          const float* bias, int N, int C) {
    int n = blockIdx.x;
    inp += n * C;
    out += n * C;
    float s1 = 0, s2 = 0;
    for (int i = threadIdx.x * f128::size; i < C; i += blockDim.x * f128::size) {
        f128 x = load128(inp + i);
        #pragma unroll
        for (int k = 0; k < f128::size; k++) { s1 += x[k]; s2 += x[k] * x[k]; }
    }
    float m = blockReduceSum(s1) / C;
    float v = blockReduceSum(s2) / C - m * m;
    float s = rsqrtf(v + 1e-5f);
    for (int i = threadIdx.x * f128::size; i < C; i += blockDim.x * f128::size) {
        f128 x = load128cs(inp + i), w = load128(weight + i), b = load128(bias + i), y;
        for (int k = 0; k < f128::size; k++) y[k] = s * (x[k] - m) * w[k] + b[k];
        store128cs(out + i, y);
    }
    if (threadIdx.x == 0) { mean[n] = m; rstd[n] = s; }
}

__global__ void layernorm_backward_kernel1(float* dinp, float* dweight, float* dbias, const float* dout, const float* inp,
                                           const float* weight, const float* mean, const float* rstd, int N, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= N) return;
    const float *dy = dout + idx * C, *x = inp + idx * C;
    const float m = mean[idx], s = rstd[idx];
    float dnorm_mean = 0.0f, dnorm_norm_mean = 0.0f;
    for (int i = 0; i < C; i++) {
        float norm = (x[i] - m) * s, dnorm = weight[i] * dy[i];
        dnorm_mean += dnorm;
        dnorm_norm_mean += dnorm * norm;
    }
    dnorm_mean /= C;
    dnorm_norm_mean /= C;
    for (int i = 0; i < C; i++) {
        float norm = (x[i] - m) * s, dnorm = weight[i] * dy[i];
        atomicAdd(&dbias[i], dy[i]);
        atomicAdd(&dweight[i], norm * dy[i]);
        dinp[idx * C + i] += (dnorm - dnorm_mean - norm * dnorm_norm_mean) * s;
    }
}

__global__ void layernorm_backward_kernel2(float* dinp, float* dweight, float* dbias, const float* dout, const float* inp,
                                           const float* weight, const float* mean, const float* rstd, int N, int C) {
    extern __shared__ float shared[]; // size = 2 * C
    namespace cg = cooperative_groups;
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    float* dbias_shared = shared;
    float* dweight_shared = shared + C;
    for (int i = threadIdx.x; i < C; i += blockDim.x) {
        dbias_shared[i] = 0.0f;
        dweight_shared[i] = 0.0f;
    }
    block.sync();
    if (idx < N) {
        const float *dy = dout + idx * C, *x = inp + idx * C;
        const float m = mean[idx], s = rstd[idx];
        float2 acc = make_float2(0.f, 0.f);
        for (int i = warp.thread_rank(); i < C; i += warp.size()) {
            float norm = (x[i] - m) * s, dnorm = weight[i] * dy[i];
            acc.x += dnorm;
            acc.y += dnorm * norm;
        }
        acc.x = cg::reduce(warp, acc.x, cg::plus<float>{}) / C;
        acc.y = cg::reduce(warp, acc.y, cg::plus<float>{}) / C;
        for (int i = warp.thread_rank(); i < C; i += warp.size()) {
            float norm = (__ldcs(&x[i]) - m) * s, dnorm = weight[i] * dy[i];
            atomicAdd(&dbias_shared[i], dy[i]);
            atomicAdd(&dweight_shared[i], norm * dy[i]);
            dinp[idx * C + i] += (dnorm - acc.x - norm * acc.y) * s;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < C; i += blockDim.x) {
        atomicAdd(&dbias[i], dbias_shared[i]);
        atomicAdd(&dweight[i], dweight_shared[i]);
    }
}

int main() {
    const int N = 200, C = 256;
    float *inp = make_random_float(N * C), *weight = make_random_float(C), *bias = make_random_float(C);
    float *dout = make_random_float(N * C);
    float *out = (float*)malloc(N * C * sizeof(float)), *mean = (float*)malloc(N * sizeof(float));
    float *rstd = (float*)malloc(N * sizeof(float));
    float *dinp = (float*)calloc(N * C, sizeof(float)), *dweight = (float*)calloc(C, sizeof(float));
    float *dbias = (float*)calloc(C, sizeof(float));
    layernorm_forward_cpu(out, mean, rstd, inp, weight, bias, N, C);
    layernorm_backward_cpu(dinp, dweight, dbias, dout, inp, weight, mean, rstd, N, C);

    float *d_inp, *d_weight, *d_bias, *d_dout, *d_out, *d_mean, *d_rstd, *d_dinp, *d_dweight, *d_dbias;
    cudaCheck(cudaMalloc(&d_inp, N * C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_weight, C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_bias, C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_dout, N * C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_out, N * C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_mean, N * sizeof(float)));
    cudaCheck(cudaMalloc(&d_rstd, N * sizeof(float)));
    cudaCheck(cudaMalloc(&d_dinp, N * C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_dweight, C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_dbias, C * sizeof(float)));
    cudaCheck(cudaMemcpy(d_inp, inp, N * C * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_weight, weight, C * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_bias, bias, C * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_dout, dout, N * C * sizeof(float), cudaMemcpyHostToDevice));

    int block_sizes[] = {32, 128, 512};
    for (int version = 1; version <= 3; version++) {
        for (int block_size : block_sizes) {
            cudaCheck(cudaMemset(d_out, 0xff, N * C * sizeof(float)));
            if (version == 1) layernorm_forward_kernel1<<<ceil_div(N, block_size), block_size>>>(d_out, d_mean, d_rstd, d_inp, d_weight, d_bias, N, C);
            if (version == 2) layernorm_forward_kernel2<<<ceil_div(N * 32, block_size), block_size>>>(d_out, d_mean, d_rstd, d_inp, d_weight, d_bias, N, C);
            if (version == 3) layernorm_forward_kernel3<<<N, block_size>>>(d_out, d_mean, d_rstd, d_inp, d_weight, d_bias, N, C);
            cudaCheck(cudaGetLastError());
            validate_result(d_out, out, "out", N * C, 1e-4f);
            validate_result(d_mean, mean, "mean", N, 1e-4f);
            validate_result(d_rstd, rstd, "rstd", N, 1e-4f);
        }
        printf("forward %d ok\n", version);
    }
    for (int version = 1; version <= 2; version++) {
        for (int block_size : block_sizes) {
            cudaCheck(cudaMemset(d_dinp, 0, N * C * sizeof(float)));
            cudaCheck(cudaMemset(d_dweight, 0, C * sizeof(float)));
            cudaCheck(cudaMemset(d_dbias, 0, C * sizeof(float)));
            if (version == 1) layernorm_backward_kernel1<<<ceil_div(N, block_size), block_size>>>(d_dinp, d_dweight, d_dbias, d_dout, d_inp, d_weight, d_mean, d_rstd, N, C);
            if (version == 2) layernorm_backward_kernel2<<<ceil_div(N * 32, block_size), block_size, 2 * C * sizeof(float)>>>(d_dinp, d_dweight, d_dbias, d_dout, d_inp, d_weight, d_mean, d_rstd, N, C);
            cudaCheck(cudaGetLastError());
            validate_result(d_dinp, dinp, "dinp", N * C, 1e-3f);
            validate_result(d_dweight, dweight, "dweight", C, 1e-3f);
            validate_result(d_dbias, dbias, "dbias", C, 1e-3f);
        }
        printf("backward %d ok\n", version);
    }
    printf("All results match.\n");
    void *all[] = {d_inp, d_weight, d_bias, d_dout, d_out, d_mean, d_rstd, d_dinp, d_dweight, d_dbias};
    for (void *p : all) cudaCheck(cudaFree(p));
    return 0;
}
