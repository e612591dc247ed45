// Decoding with a key/value cache, llama style: rotary embedding, grouped-query attention of one token, SwiGLU, RMSNorm, argmax
// sampling; one transformer layer, run token by token against a host copy of the same loop.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cub/cub.cuh>

#define CUCHK(err) cuda_check((err), __FILE__, __LINE__)
inline void cuda_check(cudaError_t error_code, const char *file, int line)
{
    if (error_code != cudaSuccess)
    {
        fprintf(stderr, "CUDA Error %d: %s. In file '%s' on line %d\n", error_code, cudaGetErrorString(error_code), file, line);
        fflush(stderr);
        exit(error_code);
    }
}

typedef struct {
    int dim, hidden_dim, n_heads, n_kv_heads, vocab_size, seq_len;
} Config;

int divUp(int a, int b) { return (a - 1) / b + 1; }
const int num_threads_lrg = 1024, num_threads_med = 256;

__global__ void rmsnorm_kernel(float* o, float* x, float* weight, int size, int elementsPerThread) {
    float ss = 0.0f;
    for (int i = 0; i < elementsPerThread; i++) {
        int j = threadIdx.x + i * num_threads_lrg;
        if (j < size) ss += x[j] * x[j];
    }
    using BlockReduce = cub::BlockReduce<float, num_threads_lrg>;
    __shared__ typename BlockReduce::TempStorage temp;
    ss = BlockReduce(temp).Sum(ss);
    // serialization point to calculate normalization factor
    __shared__ float shared_ss;
    if (threadIdx.x == 0) {
        ss /= size;
        ss += 1e-5f;
        ss = 1.0f / sqrtf(ss);
        shared_ss = ss;
    }
    __syncthreads();
    ss = shared_ss;
    for (int i = 0; i < elementsPerThread; i++) {
        int j = threadIdx.x + i * num_threads_lrg;
        if (j < size) o[j] = weight[j] * (ss * x[j]);
    }
}

// W (d,n) @ x (n,) -> xout (d,): one warp for each row
__global__ void matvec(float* xout, const float* x, const float* w, int n, int d) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= d) return;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < n; j += 32) sum += w[row * n + j] * x[j];
    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, m);
    if (threadIdx.x == 0) xout[row] = sum;
}

__global__ void RoPe_rotation_kernel(int pos, float *sq, float *sk, int kv_dim, int head_size) {
    int i = threadIdx.x * 2 + blockIdx.x * head_size;
    int head_dim = i % head_size;
    float freq = 1.0f / powf(10000.0f, head_dim / (float)head_size);
    float val = pos * freq, fcr, fci;
    sincosf(val, &fci, &fcr);
    int rotn = i < kv_dim ? 2 : 1; // how many vectors? 2 = q & k, 1 = q only
    for (int v = 0; v < rotn; v++) {
        float* vec = v == 0 ? sq : sk;
        float v0 = vec[i], v1 = vec[i+1];
        vec[i]   = v0 * fcr - v1 * fci;
        vec[i+1] = v0 * fci + v1 * fcr;
    }
}

__device__ void softmax_gpu(float* __restrict__ x, int size) {
    int tid = threadIdx.x, step = blockDim.x;
    float max_val = tid < size ? x[tid] : -INFINITY;
    for (int i = tid + step; i < size; i += step) if (x[i] > max_val) max_val = x[i];
    using BlockReduce = cub::BlockReduce<float, num_threads_med>;
    __shared__ typename BlockReduce::TempStorage temp;
    __shared__ float shared_val;
    max_val = BlockReduce(temp).Reduce(max_val, [] __device__(float a, float b) { return a > b ? a : b; });
    if (threadIdx.x == 0) shared_val = max_val;
    __syncthreads();
    max_val = shared_val;
    float sum = 0.0f;
    for (int i = tid; i < size; i += step) { x[i] = expf(x[i] - max_val); sum += x[i]; }
    __syncthreads();
    sum = BlockReduce(temp).Sum(sum);
    if (threadIdx.x == 0) shared_val = sum;
    __syncthreads();
    sum = shared_val;
    for (int i = tid; i < size; i += step) x[i] /= sum;
}

// one block for each query head; kv_mul query heads share a key/value head
__global__ void multi_head_attention_kernel(int pos, int seq_len, float *sq, float *satt, float *sxb, float *key_cache, float *value_cache,
                                            int kv_dim, int kv_mul, int head_size) {
    int h = blockIdx.x;
    float* q = sq + h * head_size;
    float* att = satt + h * seq_len;
    for (int t = threadIdx.x; t <= pos; t += blockDim.x) {
        float* k = key_cache + t * kv_dim + (h / kv_mul) * head_size;
        float score = 0.0f;
        for (int i = 0; i < head_size; i++) score += q[i] * k[i];
        att[t] = score / sqrtf(head_size);
    }
    __syncthreads();
    softmax_gpu(att, pos + 1);
    __syncthreads();
    for (int i = threadIdx.x; i < head_size; i += blockDim.x) {
        float val = 0.0f;
        for (int t = 0; t <= pos; t++) val += att[t] * value_cache[t * kv_dim + (h / kv_mul) * head_size + i];
        sxb[h * head_size + i] = val;
    }
}

__global__ void f_silu_elementwise_mul_w1_w3_kernel(float *shb, float *shb2, int hidden_dim) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < hidden_dim) {
        float val = shb[i];
        val *= (1.0f / (1.0f + expf(-val)));
        shb[i] = val * shb2[i];
    }
}
__global__ void accum_kernel(float* a, float* b, int size) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < size) a[i] += b[i]; }

// ---- the host's version of the layer ----
static void mv(float* o, const float* x, const float* w, int n, int d) { for (int i = 0; i < d; i++) { double s = 0; for (int j = 0; j < n; j++) s += w[i * n + j] * x[j]; o[i] = s; } }
static void norm(float* o, const float* x, const float* w, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; float r = 1 / sqrt(s / n + 1e-5); for (int i = 0; i < n; i++) o[i] = w[i] * r * x[i]; }

int main() {
    Config p = {64, 176, 8, 4, 97, 24};
    int hs = p.dim / p.n_heads, kv_dim = p.dim * p.n_kv_heads / p.n_heads, kv_mul = p.n_heads / p.n_kv_heads;
    enum { EMB, ATTN, Q, K, V, O, FFN, W1, W2, W3, FINAL, NW };
    int sizes[NW] = {p.vocab_size * p.dim, p.dim, p.dim * p.dim, kv_dim * p.dim, kv_dim * p.dim, p.dim * p.dim, p.dim, p.hidden_dim * p.dim,
                     p.dim * p.hidden_dim, p.hidden_dim * p.dim, p.dim};
    float *w[NW], *dw[NW];
    srand(99);
    for (int k = 0; k < NW; k++) {
        w[k] = (float*)malloc(sizes[k] * sizeof(float));
        for (int i = 0; i < sizes[k]; i++) w[k][i] = (rand() / (float)RAND_MAX - 0.5f) * 0.4f + (k == ATTN || k == FFN || k == FINAL ? 1.f : 0.f);
        CUCHK(cudaMalloc((void**)&dw[k], sizes[k] * sizeof(float)));
        CUCHK(cudaMemcpy(dw[k], w[k], sizes[k] * sizeof(float), cudaMemcpyHostToDevice));
    }
    float *x, *xb, *xb2, *hb, *hb2, *q, *att, *logits, *kc, *vc;
    struct { float** at; int n; } buffers[] = {{&x, p.dim}, {&xb, p.dim}, {&xb2, p.dim}, {&hb, p.hidden_dim}, {&hb2, p.hidden_dim}, {&q, p.dim},
                                               {&att, p.n_heads * p.seq_len}, {&logits, p.vocab_size}, {&kc, p.seq_len * kv_dim}, {&vc, p.seq_len * kv_dim}};
    for (auto& b : buffers) CUCHK(cudaMalloc((void**)b.at, b.n * sizeof(float)));
    static float hx[64], hxb[64], hxb2[64], hhb[176], hhb2[176], hq[64], hkc[24 * 32], hvc[24 * 32], hl[97], gl[97];
    int token = 1, bad = 0;
    dim3 mvb(32, 4);
    float worst = 0;
    for (int pos = 0; pos < p.seq_len; pos++) {
        CUCHK(cudaMemcpy(x, dw[EMB] + token * p.dim, p.dim * sizeof(float), cudaMemcpyDeviceToDevice));
        rmsnorm_kernel<<<1, num_threads_lrg>>>(xb, x, dw[ATTN], p.dim, divUp(p.dim, num_threads_lrg));
        matvec<<<divUp(p.dim, 4), mvb>>>(q, xb, dw[Q], p.dim, p.dim);
        matvec<<<divUp(kv_dim, 4), mvb>>>(kc + pos * kv_dim, xb, dw[K], p.dim, kv_dim);
        matvec<<<divUp(kv_dim, 4), mvb>>>(vc + pos * kv_dim, xb, dw[V], p.dim, kv_dim);
        RoPe_rotation_kernel<<<p.n_heads, hs / 2>>>(pos, q, kc + pos * kv_dim, kv_dim, hs);
        multi_head_attention_kernel<<<p.n_heads, num_threads_med>>>(pos, p.seq_len, q, att, xb, kc, vc, kv_dim, kv_mul, hs);
        matvec<<<divUp(p.dim, 4), mvb>>>(xb2, xb, dw[O], p.dim, p.dim);
        accum_kernel<<<divUp(p.dim, 64), 64>>>(x, xb2, p.dim);
        rmsnorm_kernel<<<1, num_threads_lrg>>>(xb, x, dw[FFN], p.dim, 1);
        matvec<<<divUp(p.hidden_dim, 4), mvb>>>(hb, xb, dw[W1], p.dim, p.hidden_dim);
        matvec<<<divUp(p.hidden_dim, 4), mvb>>>(hb2, xb, dw[W3], p.dim, p.hidden_dim);
        f_silu_elementwise_mul_w1_w3_kernel<<<divUp(p.hidden_dim, 64), 64>>>(hb, hb2, p.hidden_dim);
        matvec<<<divUp(p.dim, 4), mvb>>>(xb, hb, dw[W2], p.hidden_dim, p.dim);
        accum_kernel<<<divUp(p.dim, 64), 64>>>(x, xb, p.dim);
        rmsnorm_kernel<<<1, num_threads_lrg>>>(x, x, dw[FINAL], p.dim, 1);
        matvec<<<divUp(p.vocab_size, 4), mvb>>>(logits, x, dw[EMB], p.dim, p.vocab_size);
        CUCHK(cudaGetLastError());
        CUCHK(cudaMemcpy(gl, logits, sizeof gl, cudaMemcpyDeviceToHost));

        memcpy(hx, w[EMB] + token * p.dim, sizeof hx);
        norm(hxb, hx, w[ATTN], p.dim);
        mv(hq, hxb, w[Q], p.dim, p.dim);
        mv(hkc + pos * kv_dim, hxb, w[K], p.dim, kv_dim);
        mv(hvc + pos * kv_dim, hxb, w[V], p.dim, kv_dim);
        for (int i = 0; i < p.dim; i += 2)
            for (int v = 0; v < (i < kv_dim ? 2 : 1); v++) {
                float* vec = v ? hkc + pos * kv_dim : hq;
                double a = pos / pow(10000.0, (i % hs) / (double)hs), v0 = vec[i], v1 = vec[i + 1];
                vec[i] = v0 * cos(a) - v1 * sin(a);
                vec[i + 1] = v0 * sin(a) + v1 * cos(a);
            }
        for (int h = 0; h < p.n_heads; h++) {
            double s[24], sum = 0, m = -1e30;
            for (int t = 0; t <= pos; t++) {
                s[t] = 0;
                for (int i = 0; i < hs; i++) s[t] += hq[h * hs + i] * hkc[t * kv_dim + h / kv_mul * hs + i];
                s[t] /= sqrt((double)hs);
                m = fmax(m, s[t]);
            }
            for (int t = 0; t <= pos; t++) sum += s[t] = exp(s[t] - m);
            for (int i = 0; i < hs; i++) {
                double o = 0;
                for (int t = 0; t <= pos; t++) o += s[t] / sum * hvc[t * kv_dim + h / kv_mul * hs + i];
                hxb[h * hs + i] = o;
            }
        }
        mv(hxb2, hxb, w[O], p.dim, p.dim);
        for (int i = 0; i < p.dim; i++) hx[i] += hxb2[i];
        norm(hxb, hx, w[FFN], p.dim);
        mv(hhb, hxb, w[W1], p.dim, p.hidden_dim);
        mv(hhb2, hxb, w[W3], p.dim, p.hidden_dim);
        for (int i = 0; i < p.hidden_dim; i++) hhb[i] = hhb[i] / (1 + exp(-hhb[i])) * hhb2[i];
        mv(hxb, hhb, w[W2], p.hidden_dim, p.dim);
        for (int i = 0; i < p.dim; i++) hx[i] += hxb[i];
        norm(hx, hx, w[FINAL], p.dim);
        mv(hl, hx, w[EMB], p.dim, p.vocab_size);
        int best = 0;
        for (int i = 0; i < p.vocab_size; i++) { worst = fmaxf(worst, fabsf(hl[i] - gl[i])); if (gl[i] > gl[best]) best = i; }
        printf("%d ", token);
        token = (best + pos) % p.vocab_size;   // keeps it from repeating itself
    }
    bad = !(worst < 1e-3f);
    printf("\nlargest difference of a logit: %g\n%s\n", worst, bad ? "decode FAILED" : "decode matches");
    for (auto& b : buffers) CUCHK(cudaFree(*b.at));
    for (int k = 0; k < NW; k++) { CUCHK(cudaFree(dw[k])); free(w[k]); }
    return bad;
}
