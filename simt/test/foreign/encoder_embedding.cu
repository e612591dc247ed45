// Token + position embedding: forward with float4, backward with atomics and with a deterministic gather.
#include "llm_common.h"

__device__ inline float4 add_float4(const float4& a, const float4& b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void encoder_forward_kernel(float4* out, const int* inp, const float4* wte, const float4* wpe, int B, int T, int C) {
    int C4 = C / 4;
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int N = B * T * C4;
    if (idx < N) {
        int bt = idx / C4;
        int b = bt / T;
        int t = bt % T;
        int c4 = idx % C4;
        int ix = inp[b * T + t];
        out[b * T * C4 + t * C4 + c4] = add_float4(wte[ix * C4 + c4], wpe[t * C4 + c4]);
    }
}

__global__ void encoder_backward_atomic(float* dwte, float* dwpe, const float* dout, const int* inp, int B, int T, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * T * C) {
        int bt = idx / C, t = bt % T, c = idx % C;
        atomicAdd(&dwte[inp[bt] * C + c], dout[idx]);
        atomicAdd(dwpe + t * C + c, dout[idx]);
    }
}

// one thread per channel walks over the positions: slow, but without atomics
__global__ void encoder_backward_walk(float* dwte, float* dwpe, const float* dout, const int* inp, int B, int T, int C) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= C) { return; }
    int BT = B * T;
    for (int i = 0; i < BT; i++) {
        int t = i % T;
        int ix = inp[i];
        float dout_btc = dout[i * C + c];
        dwte[ix * C + c] += dout_btc;
        dwpe[t * C + c] += dout_btc;
    }
}

int main() {
    int B = 4, T = 64, C = 96, V = 257;
    float *wte = make_random_float(V * C), *wpe = make_random_float(T * C), *dout = make_random_float(B * T * C);
    int* inp = make_random_int(B * T, V);
    float *out = (float*)malloc(B * T * C * 4), *dwte = (float*)calloc(V * C, 4), *dwpe = (float*)calloc(T * C, 4);
    for (int bt = 0; bt < B * T; bt++)
        for (int c = 0; c < C; c++) {
            out[bt * C + c] = wte[inp[bt] * C + c] + wpe[(bt % T) * C + c];
            dwte[inp[bt] * C + c] += dout[bt * C + c];
            dwpe[(bt % T) * C + c] += dout[bt * C + c];
        }
    float *d_wte, *d_wpe, *d_out, *d_dout, *d_dwte, *d_dwpe;
    int* d_inp;
    // one allocation for everything, as frameworks do
    size_t sizes[] = {(size_t)V * C, (size_t)T * C, (size_t)B * T * C, (size_t)B * T * C, (size_t)V * C, (size_t)T * C};
    float** ptrs[] = {&d_wte, &d_wpe, &d_out, &d_dout, &d_dwte, &d_dwpe};
    size_t total = 0;
    for (size_t s : sizes) total += s;
    float* arena;
    cudaCheck(cudaMalloc((void**)&arena, total * sizeof(float)));
    float* it = arena;
    for (int i = 0; i < 6; i++) { *(ptrs[i]) = it; it += sizes[i]; }
    cudaCheck(cudaMalloc(&d_inp, B * T * sizeof(int)));
    cudaCheck(cudaMemcpy(d_wte, wte, V * C * 4, cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_wpe, wpe, T * C * 4, cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_dout, dout, B * T * C * 4, cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_inp, inp, B * T * 4, cudaMemcpyHostToDevice));

    const int block = 128;
    encoder_forward_kernel<<<ceil_div(B * T * C / 4, block), block>>>((float4*)d_out, d_inp, (const float4*)d_wte, (float4*)d_wpe, B, T, C);
    cudaCheck(cudaGetLastError());
    validate_result(d_out, out, "out", B * T * C, 0.f);
    printf("forward: exact\n");
    for (int version = 0; version < 2; version++) {
        cudaCheck(cudaMemset(d_dwte, 0, V * C * 4));
        cudaCheck(cudaMemset(d_dwpe, 0, T * C * 4));
        if (version == 0) encoder_backward_atomic<<<ceil_div(B * T * C, block), block>>>(d_dwte, d_dwpe, d_dout, d_inp, B, T, C);
        else encoder_backward_walk<<<ceil_div(C, 32), 32>>>(d_dwte, d_dwpe, d_dout, d_inp, B, T, C);
        cudaCheck(cudaGetLastError());
        validate_result(d_dwte, dwte, "dwte", V * C, 1e-5f);
        validate_result(d_dwpe, dwpe, "dwpe", T * C, 1e-5f);
        printf("backward %d: match\n", version);
    }
    cudaFree(arena); cudaFree(d_inp);
    free(wte); free(wpe); free(dout); free(inp); free(out); free(dwte); free(dwpe);
    printf("OK\n");
    return 0;
}
