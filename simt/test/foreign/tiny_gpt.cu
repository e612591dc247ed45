/*
A GPT-2 like forward pass, tiny: encoder, layernorm, fused qkv matmul, causal attention, residual, MLP with GELU, logits, loss.
B,T,C in one file, parameters in one allocation, every kernel the obvious one; the CPU does the same in plain loops.
*/
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include "llm_common.h"

typedef struct {
    int max_seq_len; // max sequence length, e.g. 1024
    int vocab_size;
    int num_layers;
    int num_heads;
    int channels;
} GPT2Config;

// the parameters of the model
#define NUM_PARAMETER_TENSORS 16
typedef struct {
    float* wte; // (V, C)
    float* wpe; // (maxT, C)
    float* ln1w; // (L, C)
    float* ln1b; // (L, C)
    float* qkvw; // (L, 3*C, C)
    float* qkvb; // (L, 3*C)
    float* attprojw; // (L, C, C)
    float* attprojb; // (L, C)
    float* ln2w; // (L, C)
    float* ln2b; // (L, C)
    float* fcw; // (L, 4*C, C)
    float* fcb; // (L, 4*C)
    float* fcprojw; // (L, C, 4*C)
    float* fcprojb; // (L, C)
    float* lnfw; // (C)
    float* lnfb; // (C)
} ParameterTensors;
static_assert(sizeof(ParameterTensors) == NUM_PARAMETER_TENSORS * sizeof(void*), "Inconsistent sizes!");

void fill_in_parameter_sizes(size_t* param_sizes, GPT2Config config) {
    size_t Vp = config.vocab_size, C = config.channels, maxT = config.max_seq_len, L = config.num_layers;
    size_t s[NUM_PARAMETER_TENSORS] = {Vp * C, maxT * C, L * C, L * C, L * (3 * C) * C, L * (3 * C), L * C * C, L * C, L * C, L * C,
                                       L * (4 * C) * C, L * (4 * C), L * C * (4 * C), L * C, C, C};
    memcpy(param_sizes, s, sizeof s);
}

void point(ParameterTensors* p, float* memory, const size_t* sizes) {
    float** ptrs[] = {&p->wte, &p->wpe, &p->ln1w, &p->ln1b, &p->qkvw, &p->qkvb, &p->attprojw, &p->attprojb, &p->ln2w, &p->ln2b,
                      &p->fcw, &p->fcb, &p->fcprojw, &p->fcprojb, &p->lnfw, &p->lnfb};
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) { *ptrs[i] = memory; memory += sizes[i]; }
}

// ---- both: the definition of each operation for one output, so that host and device cannot differ but by rounding ----
__host__ __device__ float dot_row(const float* a, const float* b, int n, float s) { for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
__host__ __device__ void layernorm_row(float* o, const float* x, const float* w, const float* b, int C) {
    float m = 0, v = 0;
    for (int i = 0; i < C; i++) m += x[i];
    m /= C;
    for (int i = 0; i < C; i++) v += (x[i] - m) * (x[i] - m);
    float s = 1.0f / sqrtf(v / C + 1e-5f);
    for (int i = 0; i < C; i++) o[i] = s * (x[i] - m) * w[i] + b[i];
}
__host__ __device__ void attention_head(float* out, const float* qkv, float* att, int t, int h, int T, int C, int NH) {
    int hs = C / NH;
    const float* q = qkv + t * 3 * C + h * hs;
    float scale = 1.f / sqrtf(hs), maxval = -1e30f, sum = 0;
    for (int t2 = 0; t2 <= t; t2++) maxval = fmaxf(maxval, att[t2] = dot_row(q, qkv + t2 * 3 * C + C + h * hs, hs, 0.f) * scale);
    for (int t2 = 0; t2 <= t; t2++) sum += att[t2] = expf(att[t2] - maxval);
    for (int i = 0; i < hs; i++) {
        float o = 0;
        for (int t2 = 0; t2 <= t; t2++) o += att[t2] / sum * qkv[t2 * 3 * C + 2 * C + h * hs + i];
        out[t * C + h * hs + i] = o;
    }
}
__host__ __device__ float gelu1(float x) { return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

__global__ void encoder_k(float* out, const int* inp, const float* wte, const float* wpe, int T, int C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = wte[inp[i / C] * C + i % C] + wpe[(i / C % T) * C + i % C];
}
__global__ void layernorm_k(float* out, const float* inp, const float* w, const float* b, int N, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) layernorm_row(out + i * C, inp + i * C, w, b, C);
}
__global__ void matmul_k(float* out, const float* inp, const float* weight, const float* bias, int BT, int C, int OC) {
    int bt = blockIdx.x * blockDim.x + threadIdx.x, oc = blockIdx.y * blockDim.y + threadIdx.y;
    if (bt < BT && oc < OC) out[bt * OC + oc] = dot_row(inp + bt * C, weight + oc * C, C, bias != NULL ? bias[oc] : 0.0f);
}
__global__ void attention_k(float* out, const float* qkv, float* att, int B, int T, int C, int NH) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * T * NH) return;
    int h = i % NH, t = i / NH % T, b = i / NH / T;
    attention_head(out + b * T * C, qkv + b * T * 3 * C, att + ((b * NH + h) * T + t) * T, t, h, T, C, NH);
}
__global__ void residual_k(float* out, const float* a, const float* b, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = __ldcs(&a[i]) + __ldcs(&b[i]);
}
__global__ void gelu_k(float* out, const float* inp, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) out[i] = gelu1(inp[i]);
}
__global__ void loss_k(float* losses, const float* logits, const int* targets, int N, int V) {
    int n = blockIdx.x, lane = threadIdx.x;
    if (n >= N) return;
    float m = -1e30f, s = 0;
    for (int i = lane; i < V; i += 32) m = fmaxf(m, logits[n * V + i]);
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    for (int i = lane; i < V; i += 32) s += expf(logits[n * V + i] - m);
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(0xffffffff, s, o);
    if (lane == 0) losses[n] = m + logf(s) - logits[n * V + targets[n]];
}

#define LAUNCHED() cudaCheck(cudaGetLastError())

typedef struct { float *x, *ln, *qkv, *att, *y, *fch, *logits, *losses; } Activations;

void forward(GPT2Config c, ParameterTensors p, Activations a, const int* inp, const int* tgt, int B, int T) {
    int C = c.channels, NH = c.num_heads, V = c.vocab_size, BT = B * T, N = BT * C;
    const int bs = 128;
    dim3 mb(16, 8);
    #define MATMUL(out, in, w, b, C_, OC_) matmul_k<<<dim3(ceil_div(BT, 16), ceil_div((OC_), 8)), \
                                                      mb>>>(out, in, w, b, \
                                                            BT, C_, OC_); LAUNCHED()
    encoder_k<<<ceil_div(N, bs), bs>>>(a.x, inp, p.wte, p.wpe, T, C, N); LAUNCHED();
    for (int l = 0; l < c.num_layers; l++) {
        layernorm_k<<<ceil_div(BT, 32), 32>>>(a.ln, a.x, p.ln1w + l * C, p.ln1b + l * C, BT, C); LAUNCHED();
        MATMUL(a.qkv, a.ln, p.qkvw + l * 3 * C * C, p.qkvb + l * 3 * C, C, 3 * C);
        attention_k<<<ceil_div(BT * NH, 64), 64>>>(a.y, a.qkv, a.att, B, T, C, NH); LAUNCHED();
        MATMUL(a.ln, a.y, p.attprojw + l * C * C, p.attprojb + l * C, C, C);
        residual_k<<<ceil_div(N, bs), bs>>>(a.x, a.x, a.ln, N); LAUNCHED();
        layernorm_k<<<ceil_div(BT, 32), 32>>>(a.ln, a.x, p.ln2w + l * C, p.ln2b + l * C, BT, C); LAUNCHED();
        MATMUL(a.fch, a.ln, p.fcw + l * 4 * C * C, p.fcb + l * 4 * C, C, 4 * C);
        gelu_k<<<ceil_div(4 * N, bs), bs>>>(a.fch, a.fch, 4 * N); LAUNCHED();
        MATMUL(a.ln, a.fch, p.fcprojw + l * C * 4 * C, p.fcprojb + l * C, 4 * C, C);
        residual_k<<<ceil_div(N, bs), bs>>>(a.x, a.x, a.ln, N); LAUNCHED();
    }
    layernorm_k<<<ceil_div(BT, 32), 32>>>(a.ln, a.x, p.lnfw, p.lnfb, BT, C); LAUNCHED();
    MATMUL(a.logits, a.ln, p.wte, (float*)NULL, C, V);
    loss_k<<<BT, 32>>>(a.losses, a.logits, tgt, BT, V); LAUNCHED();
}

int main() {
    GPT2Config c = {.max_seq_len = 24, .vocab_size = 101, .num_layers = 2, .num_heads = 4, .channels = 48};
    int B = 2, T = 20, C = c.channels, V = c.vocab_size, BT = B * T;
    size_t sizes[NUM_PARAMETER_TENSORS], total = 0;
    fill_in_parameter_sizes(sizes, c);
    for (size_t s : sizes) total += s;
    printf("num_parameters: %zu\n", total);
    srand(1337);
    float* params = make_random_float(total);
    for (size_t i = 0; i < total; i++) params[i] *= 0.2f;
    ParameterTensors h, d;
    point(&h, params, sizes);
    for (int i = 0; i < c.num_layers * C; i++) { h.ln1w[i] += 1; h.ln2w[i] += 1; }
    float* d_params;
    cudaCheck(cudaMalloc(&d_params, total * sizeof(float)));
    cudaCheck(cudaMemcpy(d_params, params, total * sizeof(float), cudaMemcpyHostToDevice));
    point(&d, d_params, sizes);
    int *tokens = make_random_int(BT + 1, V), *d_tokens;
    cudaCheck(cudaMalloc(&d_tokens, (BT + 1) * sizeof(int)));
    cudaCheck(cudaMemcpy(d_tokens, tokens, (BT + 1) * sizeof(int), cudaMemcpyHostToDevice));

    Activations a;
    size_t n[] = {(size_t)BT * C, (size_t)BT * C, (size_t)BT * 3 * C, (size_t)B * c.num_heads * T * T, (size_t)BT * C, (size_t)BT * 4 * C, (size_t)BT * V, (size_t)BT};
    float** pa[] = {&a.x, &a.ln, &a.qkv, &a.att, &a.y, &a.fch, &a.logits, &a.losses};
    for (int i = 0; i < 8; i++) cudaCheck(cudaMalloc((void**)pa[i], n[i] * sizeof(float)));
    forward(c, d, a, d_tokens, d_tokens + 1, B, T);
    cudaCheck(cudaDeviceSynchronize());

    // the same on the host
    Activations r;
    float** pr[] = {&r.x, &r.ln, &r.qkv, &r.att, &r.y, &r.fch, &r.logits, &r.losses};
    for (int i = 0; i < 8; i++) *pr[i] = (float*)calloc(n[i], sizeof(float));
    auto matmul = [&](float* o, const float* in, const float* w, const float* b, int IC, int OC) {
        for (int i = 0; i < BT; i++) for (int j = 0; j < OC; j++) o[i * OC + j] = dot_row(in + i * IC, w + j * IC, IC, b ? b[j] : 0.f);
    };
    for (int i = 0; i < BT * C; i++) r.x[i] = h.wte[tokens[i / C] * C + i % C] + h.wpe[(i / C % T) * C + i % C];
    for (int l = 0; l < c.num_layers; l++) {
        for (int i = 0; i < BT; i++) layernorm_row(r.ln + i * C, r.x + i * C, h.ln1w + l * C, h.ln1b + l * C, C);
        matmul(r.qkv, r.ln, h.qkvw + l * 3 * C * C, h.qkvb + l * 3 * C, C, 3 * C);
        for (int b = 0; b < B; b++) for (int t = 0; t < T; t++) for (int hd = 0; hd < c.num_heads; hd++)
            attention_head(r.y + b * T * C, r.qkv + b * T * 3 * C, r.att, t, hd, T, C, c.num_heads);
        matmul(r.ln, r.y, h.attprojw + l * C * C, h.attprojb + l * C, C, C);
        for (int i = 0; i < BT * C; i++) r.x[i] += r.ln[i];
        for (int i = 0; i < BT; i++) layernorm_row(r.ln + i * C, r.x + i * C, h.ln2w + l * C, h.ln2b + l * C, C);
        matmul(r.fch, r.ln, h.fcw + l * 4 * C * C, h.fcb + l * 4 * C, C, 4 * C);
        for (int i = 0; i < BT * 4 * C; i++) r.fch[i] = gelu1(r.fch[i]);
        matmul(r.ln, r.fch, h.fcprojw + l * C * 4 * C, h.fcprojb + l * C, 4 * C, C);
        for (int i = 0; i < BT * C; i++) r.x[i] += r.ln[i];
    }
    for (int i = 0; i < BT; i++) layernorm_row(r.ln + i * C, r.x + i * C, h.lnfw, h.lnfb, C);
    matmul(r.logits, r.ln, h.wte, NULL, C, V);
    float mean = 0;
    for (int i = 0; i < BT; i++) {
        double s = 0;
        for (int j = 0; j < V; j++) s += exp(r.logits[i * V + j]);
        r.losses[i] = log(s) - r.logits[i * V + tokens[i + 1]];
        mean += r.losses[i] / BT;
    }
    validate_result(a.logits, r.logits, "logits", BT * V, 1e-3f);
    validate_result(a.losses, r.losses, "losses", BT, 1e-3f);
    printf("loss %f (uniform would be %f)\nOVERALL OKAY\n", mean, logf(V));
    for (int i = 0; i < 8; i++) { cudaCheck(cudaFree(*pa[i])); free(*pr[i]); }
    cudaCheck(cudaFree(d_params)); cudaCheck(cudaFree(d_tokens));
    free(params); free(tokens);
    return 0;
}
