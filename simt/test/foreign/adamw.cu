// One AdamW step, fp32 and bf16 parameters with stochastic rounding and fp32 master copies; gradient clipping by norm.
#include "llm_common.h"
#include <cstdint>

// Implements linear interpolation using only two floating-point operations (as opposed to three in a naive implementation).
__device__ inline float lerp(float start, float end, float weight) {
    return fma(weight, end, fma(-weight, start, start));
}

__device__ __host__ constexpr unsigned int SquirrelNoise5(unsigned int positionX, unsigned int seed) {
    unsigned int mangled = positionX;
    mangled *= 0xd2a80a3fu; mangled += seed; mangled ^= (mangled >> 9);
    mangled += 0xa884f197u; mangled ^= (mangled >> 11); mangled *= 0x6c736f4bu;
    mangled ^= (mangled >> 13); mangled += 0xb79f3abbu; mangled ^= (mangled >> 15);
    return mangled;
}

__device__ __forceinline__ void stochastic_rounding(float in, __nv_bfloat16 *out, unsigned int random) {
    // makes sure each thread gets a different random number
    unsigned int threshold = random & 0xFFFF;
    unsigned int float_bits = __float_as_uint(in);
    unsigned int rounded_bits = float_bits & 0x0000FFFF;
    float_bits = (rounded_bits > threshold) ? (float_bits | 0xFFFF) : (float_bits  & ~0xFFFF);
    *out = __float2bfloat16_rn(__uint_as_float(float_bits));
}
__device__ __forceinline__ void stochastic_rounding(float in, float *out, unsigned int) { *out = in; }

template <typename Tp, typename Tg>
__global__ void adamw_kernel(Tp* params_memory, float* master, const Tg* grads_memory, float* m_memory, float* v_memory,
                             size_t num_parameters, float learning_rate, float beta1, float beta2, float beta1_correction,
                             float beta2_correction, float eps, float weight_decay, float grad_scale, unsigned int seed) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= num_parameters) { return; }
    float grad = grad_scale * (float)grads_memory[idx];
    float m = m_memory[idx];
    float v = v_memory[idx];
    m = lerp(grad, m, beta1);
    m_memory[idx] = m;
    v = lerp(grad * grad, v, beta2);
    v_memory[idx] = v;
    m /= beta1_correction;  // m_hat
    v /= beta2_correction;  // v_hat
    float old_param = (master != NULL) ? master[idx] : (float)params_memory[idx];
    float param = old_param - (learning_rate * (m / (sqrtf(v) + eps) + weight_decay * old_param));
    stochastic_rounding(param, &params_memory[idx], SquirrelNoise5(idx, seed));
    if (master != NULL) { master[idx] = param; }
}

template<class T>
__global__ void norm_squared_kernel(float* out, const T* data, size_t count) {
    size_t index = blockIdx.x * blockDim.x + threadIdx.x;
    size_t grid_width = blockDim.x * gridDim.x;
    float accumulator = 0.f;
    for(size_t i = index; i < count; i += grid_width) {
        accumulator += (float)data[i] * (float)data[i];
    }
    for (int offset = 16; offset; offset >>= 1) accumulator += __shfl_down_sync(0xffffffff, accumulator, offset);
    if ((threadIdx.x & 31) == 0) atomicAdd(out, accumulator);
}

int main() {
    const size_t n = 100003;
    const float lr = 1e-3f, b1 = 0.9f, b2 = 0.999f, eps = 1e-8f, wd = 0.01f, clip = 1.0f;
    float *params = make_random_float(n), *grads = make_random_float(n), *m = make_random_float(n), *v = make_random_float_01(n);
    float *d_params, *d_grads, *d_m, *d_v, *d_norm;
    cudaCheck(cudaMalloc(&d_params, n * sizeof(float)));
    cudaCheck(cudaMalloc(&d_grads, n * sizeof(float)));
    cudaCheck(cudaMalloc(&d_m, n * sizeof(float)));
    cudaCheck(cudaMalloc(&d_v, n * sizeof(float)));
    cudaCheck(cudaMalloc(&d_norm, sizeof(float)));
    cudaCheck(cudaMemcpy(d_params, params, n * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_grads, grads, n * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_m, m, n * sizeof(float), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_v, v, n * sizeof(float), cudaMemcpyHostToDevice));

    for (int t = 1; t <= 3; t++) {
        float norm2, want2 = 0;
        cudaCheck(cudaMemset(d_norm, 0, sizeof(float)));
        norm_squared_kernel<<<16, 512>>>(d_norm, d_grads, n);
        cudaCheck(cudaGetLastError());
        cudaCheck(cudaMemcpy(&norm2, d_norm, sizeof(float), cudaMemcpyDeviceToHost));
        { double s = 0; for (size_t i = 0; i < n; i++) s += (double)grads[i] * grads[i]; want2 = (float)s; }
        if (fabsf(norm2 - want2) > 1e-3f * want2) { printf("norm %f, expected %f\n", norm2, want2); return 1; }
        float grad_scale = sqrtf(norm2) > clip ? clip / sqrtf(norm2) : 1.0f;
        float c1 = 1.0f - powf(b1, t), c2 = 1.0f - powf(b2, t);
        adamw_kernel<float, float><<<ceil_div(n, (size_t)512), 512>>>(d_params, NULL, d_grads, d_m, d_v, n, lr, b1, b2, c1, c2, eps, wd, grad_scale, 7u);
        cudaCheck(cudaGetLastError());
        for (size_t i = 0; i < n; i++) {
            float g = grads[i] * grad_scale;
            m[i] = b1 * m[i] + (1 - b1) * g;
            v[i] = b2 * v[i] + (1 - b2) * g * g;
            params[i] -= lr * ((m[i] / c1) / (sqrtf(v[i] / c2) + eps) + wd * params[i]);
        }
        validate_result(d_m, m, "m", n, 1e-5f);
        validate_result(d_v, v, "v", n, 1e-5f);
        validate_result(d_params, params, "params", n, 1e-5f);
        printf("step %d: grad norm %.4f, parameters match\n", t, sqrtf(norm2));
    }

    // mixed precision: master copy must take the exact step, the bf16 parameter one of the two neighbours
    __nv_bfloat16 *d_p16, *d_g16, *h16 = (__nv_bfloat16*)malloc(n * 2);
    float *d_master, *master = (float*)malloc(n * 4);
    cudaCheck(cudaMalloc(&d_p16, n * 2)); cudaCheck(cudaMalloc(&d_g16, n * 2)); cudaCheck(cudaMalloc(&d_master, n * 4));
    for (size_t i = 0; i < n; i++) h16[i] = __float2bfloat16(grads[i]);
    cudaCheck(cudaMemcpy(d_g16, h16, n * 2, cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(d_master, params, n * 4, cudaMemcpyHostToDevice));
    adamw_kernel<<<(n + 511) / 512, 512>>>(d_p16, d_master, d_g16, d_m, d_v, n, lr, b1, b2, 1.f, 1.f, eps, wd, 1.f, 1234u);
    cudaCheck(cudaGetLastError());
    cudaCheck(cudaMemcpy(h16, d_p16, n * 2, cudaMemcpyDeviceToHost));
    cudaCheck(cudaMemcpy(master, d_master, n * 4, cudaMemcpyDeviceToHost));
    int bad = 0;
    double drift = 0;
    for (size_t i = 0; i < n; i++) {
        float got = __bfloat162float(h16[i]);
        drift += got - master[i];
        if (!(fabsf(got - master[i]) <= fabsf(master[i]) / 128.f + 1e-30f)) bad++;
    }
    printf("bf16: %d bad, mean drift %g\n", bad, drift / n);
    bool ok = bad == 0 && fabs(drift / n) < 1e-4;
    printf(ok ? "OK\n" : "FAILED\n");
    return !ok;
}
