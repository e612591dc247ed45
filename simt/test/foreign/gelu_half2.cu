// GELU forward/backward: fp32 scalar, half2 vectorised, bf16 with Packed128; tanh approximation and erf.
#include "llm_common.h"
#include <vector>

#define GELU_SCALING_FACTOR sqrtf(2.0f / M_PI)

template <typename T> __device__ float to_f(T v) { return (float)v; }
template <> __device__ float to_f<__nv_bfloat16>(__nv_bfloat16 v) { return __bfloat162float(v); }
template <> __device__ float to_f<half>(half v) { return __half2float(v); }

__host__ __device__ inline float gelu_tanh(float x) {
    float cube = 0.044715f * x * x * x;
    return 0.5f * x * (1.0f + tanhf(GELU_SCALING_FACTOR * (x + cube)));
}
__host__ __device__ inline float gelu_erf(float x) { return 0.5f * x * (1.f + erff(x * (float)M_SQRT1_2)); }
__host__ __device__ inline float gelu_grad(float x) {
    float cube = 0.044715f * x * x * x;
    float tanh_arg = GELU_SCALING_FACTOR * (x + cube);
    float tanh_out = tanhf(tanh_arg);
    float coshf_out = coshf(tanh_arg);
    float sech_out = 1.0f / (coshf_out * coshf_out);
    return 0.5f * (1.0f + tanh_out) + x * 0.5f * sech_out * GELU_SCALING_FACTOR * (1.0f + 3.0f * 0.044715f * x * x);
}

__global__ void gelu_forward_f32(float* out, const float* inp, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = gelu_tanh(inp[i]);
}

__global__ void gelu_erf_f32(float* out, const float* inp, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = gelu_erf(inp[i]);
}

__global__ void gelu_forward_h2(half* out, const half* inp, int N) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    if (i + 1 < N) {
        half2 x = *reinterpret_cast<const half2*>(inp + i);
        const half2 k = __float2half2_rn(0.044715f), one = __half2half2(__float2half(1.f));
        half2 inner = __hmul2(__hmul2(x, x), x);
        inner = __hfma2(k, inner, x);
        inner = __hmul2(inner, __float2half2_rn(0.7978845608f));
        float2 f = __half22float2(inner);
        half2 t = __floats2half2_rn(tanhf(f.x), tanhf(f.y));
        half2 y = __hmul2(__hmul2(x, __float2half2_rn(0.5f)), __hadd2(one, t));
        *reinterpret_cast<half2*>(out + i) = y;
    } else if (i < N) {
        out[i] = __float2half(gelu_tanh(__half2float(inp[i])));
    }
}

template <typename floatX>
__global__ void gelu_forward_packed(floatX* out, const floatX* inp) {
    typedef Packed128<floatX> x128;
    int idx = (blockIdx.x * blockDim.x + threadIdx.x) * x128::size;
    x128 packed_out;
    x128 packed_inp = load128cs(inp + idx); // load and do not keep in cache
    for(int k = 0; k < packed_inp.size; ++k) {
        packed_out[k] = (floatX)gelu_tanh(to_f(packed_inp[k]));
    }
    // store instead of storecs (without cache streaming) in case it is useful for the data to be in the cache
    store128(out + idx, packed_out);
}

template <typename floatX>
__global__ void gelu_backward(floatX* dinp, const floatX* inp, const floatX* dout, const int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float local_grad = gelu_grad((float)inp[i]);
        dinp[i] = (floatX)(local_grad * (float)dout[i]);
    }
}

int main() {
    const int N = 8 * 1024 * 16;
    float* inp = make_random_float(N);
    for (int i = 0; i < N; i++) inp[i] *= 4.f;
    std::vector<half> hh(N);
    std::vector<__nv_bfloat16> hb(N);
    std::vector<float> ref(N), ref_h(N), ref_b(N), ref_erf(N), ref_grad(N);
    for (int i = 0; i < N; i++) {
        hh[i] = __float2half(inp[i]);
        hb[i] = __float2bfloat16(inp[i]);
        ref[i] = gelu_tanh(inp[i]);
        ref_erf[i] = gelu_erf(inp[i]);
        ref_h[i] = gelu_tanh(__half2float(hh[i]));
        ref_b[i] = gelu_tanh(__bfloat162float(hb[i]));
        ref_grad[i] = gelu_grad(inp[i]) * ref[i];
    }
    float *d_in, *d_out, *d_grad;
    half *h_in, *h_out;
    __nv_bfloat16 *b_in, *b_out;
    cudaCheck(cudaMalloc(&d_in, N * sizeof(float)));
    cudaCheck(cudaMalloc(&d_out, N * sizeof(float)));
    cudaCheck(cudaMalloc(&d_grad, N * sizeof(float)));
    cudaCheck(cudaMalloc(&h_in, N * sizeof(half)));
    cudaCheck(cudaMalloc(&h_out, N * sizeof(half)));
    cudaCheck(cudaMalloc(&b_in, N * sizeof(__nv_bfloat16)));
    cudaCheck(cudaMalloc(&b_out, N * sizeof(__nv_bfloat16)));
    cudaCheck(cudaMemcpy(d_in, inp, N * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(h_in, hh.data(), N * sizeof(half), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(b_in, hb.data(), N * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice));

    gelu_erf_f32<<<ceil_div(N, 256), 256>>>(d_out, d_in, N);
    cudaCheck(cudaGetLastError());
    validate_result(d_out, ref_erf.data(), "erf", N, 1e-5f);

    gelu_forward_f32<<<ceil_div(N, 256), 256>>>(d_out, d_in, N);
    cudaCheck(cudaGetLastError());
    validate_result(d_out, ref.data(), "fp32", N, 1e-5f);

    gelu_forward_h2<<<ceil_div(N - 1, 2 * 128), 128>>>(h_out, h_in, N - 1);
    cudaCheck(cudaGetLastError());
    validate_result(h_out, ref_h.data(), "half2", N - 1, 1e-2f);

    gelu_forward_packed<__nv_bfloat16><<<N / (8 * 256), 256>>>(b_out, b_in);
    cudaCheck(cudaGetLastError());
    validate_result(b_out, ref_b.data(), "bf16", N, 1e-2f);

    gelu_backward<float><<<ceil_div(N, 128), 128>>>(d_grad, d_in, d_out, N);
    cudaCheck(cudaGetLastError());
    validate_result(d_grad, ref_grad.data(), "dinp", N, 1e-4f);

    printf("All results match.\n");
    cudaFree(d_in); cudaFree(d_out); cudaFree(d_grad); cudaFree(h_in); cudaFree(h_out); cudaFree(b_in); cudaFree(b_out);
    free(inp);
}
