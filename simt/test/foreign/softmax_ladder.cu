/*
Kernels for softmax forward pass.

Compile example:
nvcc -O3 --use_fast_math softmax_ladder.cu -o softmax_ladder

version 1: naive, one thread per row
version 2: one block per row, shared memory tree reductions
version 3: one block of exactly 32 threads per row, warp shuffles
version 4: warps in a block, intra-warp shuffles then shared memory
version 5: online softmax, one thread per row
version 6: online softmax, one warp per row with cooperative groups
*/
#include <stdio.h>
#include <stdlib.h>
#include <float.h>
#include <math.h>
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "llm_common.h"

void softmax_forward_cpu(float* out, const float* inp, int N, int C) {
    for (int i = 0; i < N; i++) {
        const float* inp_row = inp + i * C;
        float* out_row = out + i * C;
        float maxval = -INFINITY;
        for (int j = 0; j < C; j++) if (inp_row[j] > maxval) maxval = inp_row[j];
        double sum = 0.0;
        for (int j = 0; j < C; j++) {
            out_row[j] = expf(inp_row[j] - maxval);
            sum += out_row[j];
        }
        float norm = 1.f / (float)sum;
        for (int j = 0; j < C; j++) out_row[j] *= norm;
    }
}

__global__ void softmax_forward_kernel1(float* out, const float* inp, int N, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        const float* inp_row = inp + i * C;
        float* out_row = out + i * C;
        float maxval = -INFINITY;
        for (int j = 0; j < C; j++) maxval = fmaxf(maxval, inp_row[j]);
        double sum = 0.0;
        for (int j = 0; j < C; j++) {
            out_row[j] = expf(inp_row[j] - maxval);
            sum += out_row[j];
        }
        for (int j = 0; j < C; j++) out_row[j] /= (float)sum;
    }
}

__global__ void softmax_forward_kernel2(float* out, const float* inp, int N, int C) {
    extern __shared__ float shared[];
    int idx = blockIdx.x;
    int tid = threadIdx.x;
    int block_size = blockDim.x;
    const float* x = inp + idx * C;
    float maxval = -INFINITY;
    for (int i = tid; i < C; i += block_size) maxval = fmaxf(maxval, x[i]);
    shared[tid] = maxval;
    for (int stride = block_size / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (tid < stride) shared[tid] = fmaxf(shared[tid], shared[tid + stride]);
    }
    __syncthreads();
    float offset = shared[0];
    for (int i = tid; i < C; i += block_size) out[idx * C + i] = expf(x[i] - offset);
    __syncthreads();
    x = out + idx * C;
    float sumval = 0.0f;
    for (int i = tid; i < C; i += block_size) sumval += x[i];
    shared[tid] = sumval;
    for (int stride = block_size / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (tid < stride) shared[tid] += shared[tid + stride];
    }
    __syncthreads();
    float sum = shared[0];
    for (int i = tid; i < C; i += block_size) out[idx * C + i] = x[i] / sum;
}

__device__ float warpReduceMax(float val) {
    for (int offset = 16; offset > 0; offset /= 2) val = fmaxf(val, __shfl_down_sync(0xFFFFFFFF, val, offset));
    return val;
}

__device__ float warpReduceSum(float val) {
    for (int offset = 16; offset > 0; offset /= 2) val += __shfl_down_sync(0xFFFFFFFF, val, offset);
    return val;
}

__global__ void softmax_forward_kernel3(float* out, const float* inp, int N, int C) {
    int idx = blockIdx.x;
    int tid = threadIdx.x;
    const float* x = inp + idx * C;
    float maxval = -INFINITY;
    for (int i = tid; i < C; i += blockDim.x) maxval = fmaxf(maxval, x[i]);
    maxval = warpReduceMax(maxval);
    // broadcast maxval within the warp
    float offset = __shfl_sync(0xFFFFFFFF, maxval, 0);
    for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = expf(x[i] - offset);
    x = out + idx * C;
    float sumval = 0.0f;
    for (int i = tid; i < C; i += blockDim.x) sumval += x[i];
    sumval = warpReduceSum(sumval);
    float sum = __shfl_sync(0xFFFFFFFF, sumval, 0);
    for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = x[i] / sum;
}

__global__ void softmax_forward_kernel4(float* out, const float* inp, int N, int C) {
    extern __shared__ float shared[];
    int idx = blockIdx.x;
    int tid = threadIdx.x;
    int warpId = threadIdx.x / 32; // warp index within a block
    int laneId = threadIdx.x % 32; // thread index within a warp
    int warpsPerBlock = blockDim.x / 32;

    // shared[] must be allocated to have 2 * warpsPerBlock elements: max values, then sums
    float* maxvals = shared;
    float* sumvals = &shared[warpsPerBlock];
    const float* x = inp + idx * C;

    float maxval = -INFINITY;
    for (int i = tid; i < C; i += blockDim.x) maxval = fmaxf(maxval, x[i]);
    maxval = warpReduceMax(maxval);
    if (laneId == 0) maxvals[warpId] = maxval;
    __syncthreads();
    // now the 0th thread reduces the maxvals in shared memory, i.e. across warps
    if (tid == 0) {
        float val = maxvals[tid];
        for (int i = 1; i < warpsPerBlock; i++) val = fmaxf(val, maxvals[i]);
        maxvals[0] = val;
    }
    __syncthreads();
    float offset = maxvals[0];
    float sumval = 0.0f;
    for (int i = tid; i < C; i += blockDim.x) {
        float v = __expf(x[i] - offset);
        __stcs(out + idx * C + i, v);
        sumval += v;
    }
    sumval = warpReduceSum(sumval);
    if (laneId == 0) sumvals[warpId] = sumval;
    __syncthreads();
    if (tid == 0) {
        float val = sumvals[tid];
        for (int i = 1; i < warpsPerBlock; ++i) val += sumvals[i];
        sumvals[0] = val;
    }
    __syncthreads();
    float sum = sumvals[0];
    for (int i = tid; i < C; i += blockDim.x) out[idx * C + i] = __fdividef(__ldcs(&out[idx * C + i]), sum);
}

__global__ void softmax_forward_online_kernel1(float* out, const float* inp, int N, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        const float* inp_row = inp + i * C;
        float* out_row = out + i * C;
        float maxval = -INFINITY;
        double sum = 0.0f;
        for (int j = 0; j < C; j++) {
            float maxval_prev = maxval;
            if (inp_row[j] > maxval) {
                maxval = inp_row[j];
                sum = sum * expf(maxval_prev - maxval) + expf(inp_row[j] - maxval);
            } else {
                sum += expf(inp_row[j] - maxval);
            }
        }
        for (int j = 0; j < C; j++) out_row[j] = expf(inp_row[j] - maxval) / sum;
    }
}

// struct for the reduction operation, guarantees 8-byte alignment
struct __align__(8) SumMax {
    float maxval;
    float sum;
};

// forceinline helps avoid function call overhead
__device__ __forceinline__ SumMax reduce_sum_max_op(SumMax a, SumMax b) {
    bool a_bigger = (a.maxval > b.maxval);
    SumMax bigger_m = a_bigger ? a : b;
    SumMax smaller_m = a_bigger ? b : a;
    SumMax res;
    res.maxval = bigger_m.maxval;
    res.sum = bigger_m.sum + smaller_m.sum * expf(smaller_m.maxval - bigger_m.maxval);
    return res;
}

__global__ void softmax_forward_online_kernel2(float* out, const float* inp, int N, int C) {
    namespace cg = cooperative_groups;
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= N) return;
    const float* x = inp + row * C;

    SumMax sm_partial;
    sm_partial.maxval = -FLT_MAX;
    sm_partial.sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
        sm_partial = reduce_sum_max_op(sm_partial, { x[i], 1.0f });
    }
    SumMax sm_total = cg::reduce(warp, sm_partial, reduce_sum_max_op);
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
        // the below is equivalent to out[row * C + i] = ..., with a streaming hint
        __stcs(out + row * C + i, expf(x[i] - sm_total.maxval) / sm_total.sum);
    }
}

// ----------------------------------------------------------------------------
// kernel launchers
void softmax_forward1(float* out, const float* inp, int N, int C, const int block_size) {
    const int grid_size = ceil_div(N, block_size);
    softmax_forward_kernel1<<<grid_size, block_size>>>(out, inp, N, C);
    cudaCheck(cudaGetLastError());
}
void softmax_forward2(float* out, const float* inp, int N, int C, const int block_size) {
    size_t shared_mem_size = block_size * sizeof(float);
    softmax_forward_kernel2<<<N, block_size, shared_mem_size>>>(out, inp, N, C);
}
void softmax_forward3(float* out, const float* inp, int N, int C, int block_size) {
    block_size = 32; // awkward but ok. this one only works with block size 32
    softmax_forward_kernel3<<<N, block_size>>>(out, inp, N, C);
    cudaCheck(cudaGetLastError());
}
void softmax_forward4(float* out, const float* inp, int N, int C, int block_size) {
    size_t shared_mem_size = 2 * block_size / 32 * sizeof(float);
    softmax_forward_kernel4<<<N, block_size, shared_mem_size>>>(out, inp, N, C);
}
void softmax_forward_online1(float* out, const float* inp, int N, int C, int block_size) {
    softmax_forward_online_kernel1<<<ceil_div(N, block_size), block_size>>>(out, inp, N, C);
    cudaCheck(cudaGetLastError());
}
void softmax_forward_online2(float* out, const float* inp, int N, int C, int block_size) {
    softmax_forward_online_kernel2<<<ceil_div(N * 32, block_size), block_size>>>(out, inp, N, C);
    cudaCheck(cudaGetLastError());
}

void softmax_forward(int kernel_num, float* out, const float* inp, int N, int C, const int block_size) {
    switch (kernel_num) {
        case 1: softmax_forward1(out, inp, N, C, block_size); break;
        case 2: softmax_forward2(out, inp, N, C, block_size); break;
        case 3: softmax_forward3(out, inp, N, C, block_size); break;
        case 4: softmax_forward4(out, inp, N, C, block_size); break;
        case 5: softmax_forward_online1(out, inp, N, C, block_size); break;
        case 6: softmax_forward_online2(out, inp, N, C, block_size); break;
        default:
            printf("Invalid kernel number\n");
            exit(1);
    }
}

int main(int argc, char **argv) {
    srand(0);
    int N = 128, V = 2049;
    float* out = (float*)malloc(N * V * sizeof(float));
    float* inp = make_random_float(N * V);
    // make the input less uniformly random: a few peaks per row
    for (int i = 0; i < N; i++) for (int k = 0; k < 3; k++) inp[i * V + (rand() % V)] *= 20.f;

    float *d_out, *d_inp;
    cudaCheck(cudaMalloc(&d_out, N * V * sizeof(float)));
    cudaCheck(cudaMalloc(&d_inp, N * V * sizeof(float)));
    cudaCheck(cudaMemcpy(d_inp, inp, N * V * sizeof(float), cudaMemcpyHostToDevice));
    softmax_forward_cpu(out, inp, N, V);

    int block_sizes[] = {32, 128, 512};
    int first = argc > 1 ? atoi(argv[1]) : 1, last = argc > 1 ? first : 6;
    for (int kernel_num = first; kernel_num <= last; kernel_num++) {
        printf("Using kernel %d\n", kernel_num);
        for (int block_size : block_sizes) {
            cudaCheck(cudaMemset(d_out, 0, N * V * sizeof(float)));
            float ms = benchmark_kernel(2, softmax_forward, kernel_num, d_out, d_inp, N, V, block_size);
            validate_result(d_out, out, "out", N * V, 1e-4f);
            printf("block_size %4d | time %.4f ms | per token %.2f us\n", block_size, ms, ms * 1000 / N);
        }
    }
    printf("All results match. Ending.\n");
    free(out);
    free(inp);
    cudaCheck(cudaFree(d_out));
    cudaCheck(cudaFree(d_inp));
    return 0;
}
