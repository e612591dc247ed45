/* Causal multi-head attention, forward: scores, softmax and values as three kernels, batched GEMMs from cuBLAS as
   the second opinion. inp is (B, T, 3C) holding the query, key, value vectors; out is (B, T, C). */
#include <stdio.h>
#include <stdlib.h>
#include <float.h>
#include <cublas_v2.h>
#include "llm_common.h"

void attention_forward_cpu(float* out, const float* inp, int B, int T, int C, int NH) {
    int C3 = C*3;
    int hs = C / NH;
    float scale = 1.0 / sqrtf(hs);
    float* att = (float*)malloc(T * sizeof(float));
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++)
            for (int h = 0; h < NH; h++) {
                const float* q = inp + b * T * C3 + t * C3 + h * hs;
                float maxval = -FLT_MAX, sum = 0.f;
                for (int t2 = 0; t2 <= t; t2++) {
                    const float* k = inp + b * T * C3 + t2 * C3 + h * hs + C;
                    float val = 0.0f;
                    for (int i = 0; i < hs; i++) val += q[i] * k[i];
                    att[t2] = val * scale;
                    if (att[t2] > maxval) maxval = att[t2];
                }
                for (int t2 = 0; t2 <= t; t2++) { att[t2] = expf(att[t2] - maxval); sum += att[t2]; }
                float* o = out + b * T * C + t * C + h * hs;
                for (int i = 0; i < hs; i++) o[i] = 0.0f;
                for (int t2 = 0; t2 <= t; t2++) {
                    const float* v = inp + b * T * C3 + t2 * C3 + h * hs + C*2;
                    for (int i = 0; i < hs; i++) o[i] += att[t2] / sum * v[i];
                }
            }
    free(att);
}

__global__ void attention_query_key_kernel1(float* preatt, const float* inp, int B, int T, int C, int NH) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int total_threads = B * NH * T * T;
    if (idx < total_threads) {
        int t2 = idx % T;
        int t = (idx / T) % T;
        if (t2 > t) {
            // autoregressive mask
            preatt[idx] = -INFINITY;
            return;
        }
        int h = (idx / (T * T)) % NH;
        int b = idx / (NH * T * T);
        int C3 = C*3;
        int hs = C / NH; // head size
        const float* query_t = inp + b * T * C3 + t * C3 + h * hs;
        const float* key_t2 = inp + b * T * C3 + t2 * C3 + h * hs + C; // +C because it's key
        float val = 0.0f;
        for (int i = 0; i < hs; i++) val += query_t[i] * key_t2[i];
        val *= 1.0 / sqrtf(hs);
        preatt[idx] = val;
    }
}

__global__ void attention_softmax_kernel1(float* att, const float* preatt, int B, int T, int NH) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * T * NH) {
        int h = idx % NH;
        int t = (idx / NH) % T;
        int b = idx / (NH * T);
        const float* preatt_bth = preatt + b*NH*T*T + h*T*T + t*T;
        float* att_bth = att + b*NH*T*T + h*T*T + t*T;
        float maxval = -FLT_MAX;
        for (int t2 = 0; t2 <= t; t2++) if (preatt_bth[t2] > maxval) maxval = preatt_bth[t2];
        float expsum = 0.0f;
        for (int t2 = 0; t2 <= t; t2++) {
            float expv = expf(preatt_bth[t2] - maxval);
            expsum += expv;
            att_bth[t2] = expv;
        }
        float expsum_inv = expsum == 0.0f ? 0.0f : 1.0f / expsum;
        for (int t2 = 0; t2 < T; t2++) {
            if (t2 <= t) att_bth[t2] *= expsum_inv;
            else att_bth[t2] = 0.0f; // causal attention mask
        }
    }
}

__global__ void attention_value_kernel1(float* out, const float* att, const float* inp, int B, int T, int C, int NH) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * T * NH) {
        int h = idx % NH;
        int t = (idx / NH) % T;
        int b = idx / (NH * T);
        int C3 = C*3, hs = C / NH;
        float* out_bth = out + b * T * C + t * C + h * hs;
        const float* att_bth = att + b*NH*T*T + h*T*T + t*T;
        for (int i = 0; i < hs; i++) { out_bth[i] = 0.0f; }
        for (int t2 = 0; t2 <= t; t2++) {
            const float* value_t2 = inp + b * T * C3 + t2 * C3 + h * hs + C*2; // +C*2 because it's value
            float att_btht2 = att_bth[t2];
            for (int i = 0; i < hs; i++) out_bth[i] += att_btht2 * value_t2[i];
        }
    }
}

__global__ void permute_kernel(float* q, float* k, float* v, const float* inp, int B, int N, int NH, int d) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    // Q[b][nh_][n][d_] = inp[b][n][0][nh_][d_]
    if (idx < B * NH * N * d) {
        int b = idx / (NH * N * d);
        int rest = idx % (NH * N * d);
        int nh_ = rest / (N * d);
        rest = rest % (N * d);
        int n = rest / d;
        int d_ = rest % d;
        int inp_idx = (b * N * 3 * NH * d) + (n * 3 * NH * d) + (0 * NH * d) + (nh_ * d) + d_;
        q[idx] = inp[inp_idx];
        k[idx] = inp[inp_idx + NH * d];
        v[idx] = inp[inp_idx + 2 * (NH * d)];
    }
}

__global__ void unpermute_kernel(float* out, const float *inp, int B, int N, int NH, int d) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * NH * N * d) {
        int b = idx / (NH * N * d), rest = idx % (NH * N * d);
        int nh_ = rest / (N * d);
        rest = rest % (N * d);
        out[(b * NH * N * d) + ((rest / d) * NH * d) + (nh_ * d) + rest % d] = __ldcs(&inp[idx]);
    }
}

// one block per row of the scores, scaled and masked inside the softmax
__global__ void scaled_softmax_block(float* att, float scale, int T) {
    const int t = blockIdx.x, tid = threadIdx.x;
    float* row = att + ((size_t)blockIdx.y * T + t) * T;
    __shared__ float red[64];
    float m = -FLT_MAX, s = 0.f;
    for (int j = tid; j <= t; j += blockDim.x) m = fmaxf(m, row[j] * scale);
    red[tid] = m;
    __syncthreads();
    for (int w = blockDim.x >> 1; w; w >>= 1) { if (tid < w) red[tid] = fmaxf(red[tid], red[tid + w]); __syncthreads(); }
    m = red[0];
    __syncthreads();
    for (int j = tid; j <= t; j += blockDim.x) s += row[j] = __expf(row[j] * scale - m);
    red[tid] = s;
    __syncthreads();
    for (int w = blockDim.x >> 1; w; w >>= 1) { if (tid < w) red[tid] += red[tid + w]; __syncthreads(); }
    s = red[0];
    for (int j = tid; j < T; j += blockDim.x) row[j] = j <= t ? row[j] / s : 0.f;
}

cublasHandle_t cublas_handle;

void attention_forward3(float* out, float* vaccum, float* qkvr, float* att, const float* inp, int B, int T, int C, int NH, int block_size) {
    int HS = C / NH;
    float *q = qkvr + 0 * B * T * C, *k = qkvr + 1 * B * T * C, *v = qkvr + 2 * B * T * C;
    permute_kernel<<<ceil_div(B * T * C, block_size), block_size>>>(q, k, v, inp, B, T, NH, HS);
    const float alpha = 1.0f, beta = 0.0f;
    if (cublasSgemmStridedBatched(cublas_handle, CUBLAS_OP_T, CUBLAS_OP_N, T, T, HS, &alpha, k, HS, T * HS, q, HS, T * HS,
                                  &beta, att, T, T * T, B * NH)) exit(EXIT_FAILURE);
    scaled_softmax_block<<<dim3(T, B * NH), 64>>>(att, 1.f / sqrtf(HS), T);
    // y = att @ v : (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
    if (cublasSgemmStridedBatched(cublas_handle, CUBLAS_OP_N, CUBLAS_OP_N, HS, T, T, &alpha, v, HS, T * HS, att, T, T * T,
                                  &beta, vaccum, HS, T * HS, B * NH)) exit(EXIT_FAILURE);
    unpermute_kernel<<<ceil_div(B * T * C, block_size), block_size>>>(out, vaccum, B, T, NH, HS);
}

int main(int argc, char **argv) {
    srand(0);
    int B = 2, T = 65, C = 48, NH = 3;
    float* out = (float*)malloc(B * T * C * sizeof(float));
    float* inp = make_random_float(B * T * 3 * C);
    float *d_out, *d_vaccum, *d_qkvr, *d_preatt, *d_att, *d_inp;
    cudaCheck(cudaMalloc(&d_out, B * T * C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_vaccum, B * T * C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_qkvr, B * T * 3 * C * sizeof(float)));
    cudaCheck(cudaMalloc(&d_preatt, B * NH * T * T * sizeof(float)));
    cudaCheck(cudaMalloc(&d_att, B * NH * T * T * sizeof(float)));
    cudaCheck(cudaMalloc(&d_inp, B * T * 3 * C * sizeof(float)));
    cudaCheck(cudaMemcpy(d_inp, inp, B * T * 3 * C * sizeof(float), cudaMemcpyHostToDevice));
    if (cublasCreate(&cublas_handle) != CUBLAS_STATUS_SUCCESS) return 1;
    attention_forward_cpu(out, inp, B, T, C, NH);

    int block_size = 256;
    attention_query_key_kernel1<<<ceil_div(B * NH * T * T, block_size), block_size>>>(d_preatt, d_inp, B, T, C, NH);
    attention_softmax_kernel1<<<ceil_div(B * T * NH, block_size), block_size>>>(d_att, d_preatt, B, T, NH);
    attention_value_kernel1<<<ceil_div(B * T * NH, block_size), block_size>>>(d_out, d_att, d_inp, B, T, C, NH);
    cudaCheck(cudaGetLastError());
    validate_result(d_out, out, "out", B * T * C, 1e-4f);
    printf("three kernels: match\n");

    cudaCheck(cudaMemset(d_out, 0, B * T * C * sizeof(float)));
    attention_forward3(d_out, d_vaccum, d_qkvr, d_att, d_inp, B, T, C, NH, 128);
    cudaCheck(cudaGetLastError());
    validate_result(d_out, out, "out", B * T * C, 1e-4f);
    printf("cuBLAS batched: match\n");

    cublasDestroy(cublas_handle);
    cudaFree(d_out); cudaFree(d_vaccum); cudaFree(d_qkvr); cudaFree(d_preatt); cudaFree(d_att); cudaFree(d_inp);
    free(out); free(inp);
    puts("All results match. Ending.");
    return 0;
}
