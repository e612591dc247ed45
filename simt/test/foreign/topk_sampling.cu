// What a language model does after the logits: top-k by repeated argmax and by threshold bisection, softmax with temperature,
// nucleus sampling; a small beam search where each block expands one beam.
#include <iostream>
#include <vector>
#include <algorithm>
#include <numeric>
#include <limits>
#include <cmath>
#include <cstdint>

#define TRY(...) do { if (cudaError_t e = (__VA_ARGS__); e != cudaSuccess) { std::cerr << #__VA_ARGS__ << ": " << cudaGetErrorName(e) << "\n"; std::exit(1); } } while (0)

template <typename T>
struct ArgMax {
    T value;
    int index;
    __device__ __host__ ArgMax() : value(std::numeric_limits<T>::lowest()), index(-1) {}
    __device__ __host__ ArgMax(T v, int i) : value(v), index(i) {}
    __device__ __host__ friend bool operator<(const ArgMax& a, const ArgMax& b) { return a.value < b.value || (a.value == b.value && a.index > b.index); }
};

template <typename T>
__device__ ArgMax<T> warpArgMax(ArgMax<T> a) {
    for (int o = 16; o > 0; o /= 2) {
        ArgMax<T> b(__shfl_down_sync(0xffffffff, a.value, o), __shfl_down_sync(0xffffffff, a.index, o));
        if (a < b) a = b;
    }
    return a;
}

// k rounds; each finds the largest that comes after the previous one
template <typename T, int THREADS>
__global__ void topk_kernel(const T* __restrict__ logits, int n, int k, T* values, int* indices) {
    __shared__ T sv[THREADS / 32];
    __shared__ int si[THREADS / 32];
    const T* row = logits + (size_t)blockIdx.x * n;
    T last_v = std::numeric_limits<T>::max();
    int last_i = -1;
    for (int round = 0; round < k; ++round) {
        ArgMax<T> best;
        for (int i = threadIdx.x; i < n; i += THREADS) {
            const ArgMax<T> c(row[i], i);
            const bool taken = c.value > last_v || (c.value == last_v && i <= last_i);
            if (!taken && best < c) best = c;
        }
        best = warpArgMax(best);
        if (threadIdx.x % 32 == 0) { sv[threadIdx.x / 32] = best.value; si[threadIdx.x / 32] = best.index; }
        __syncthreads();
        if (threadIdx.x < 32) {
            best = threadIdx.x < THREADS / 32 ? ArgMax<T>(sv[threadIdx.x], si[threadIdx.x]) : ArgMax<T>();
            best = warpArgMax(best);
            if (threadIdx.x == 0) {
                sv[0] = best.value; si[0] = best.index;
                values[blockIdx.x * k + round] = best.value;
                indices[blockIdx.x * k + round] = best.index;
            }
        }
        __syncthreads();
        last_v = sv[0]; last_i = si[0];
        __syncthreads();
    }
}

// how many are >= t; bisection on the bits of ordered floats gives the k-th largest exactly
__device__ unsigned ordered(float f) { unsigned u = __float_as_uint(f); return u & 0x80000000u ? ~u : u | 0x80000000u; }
__device__ float unordered(unsigned u) { return __uint_as_float(u & 0x80000000u ? u & 0x7fffffffu : ~u); }
__global__ void kth_by_bisection(const float* logits, int n, int k, float* kth) {
    const float* row = logits + (size_t)blockIdx.x * n;
    unsigned lo = 0, hi = 0xffffffffu;
    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2 + 1;
        int mine = 0, total = 0;
        for (int base = 0; base < n; base += blockDim.x) {
            int i = base + threadIdx.x;
            mine = i < n && ordered(row[i]) >= mid;
            total += __syncthreads_count(mine);
        }
        if (total >= k) lo = mid; else hi = mid - 1;
    }
    if (threadIdx.x == 0) kth[blockIdx.x] = unordered(lo);
}

__global__ void sample_top_p(const float* values, const int* indices, int k, float temperature, float top_p, const float* u, int* token) {
    int row = threadIdx.x;
    const float* v = values + row * k;
    float sum = 0, keep = 0;
    for (int i = 0; i < k; ++i) sum += expf((v[i] - v[0]) / temperature);
    int last = 0;
    for (; last < k; ++last) { keep += expf((v[last] - v[0]) / temperature); if (keep >= top_p * sum) break; }
    last = min(last, k - 1);
    float r = u[row] * keep, c = 0;
    int pick = last;
    for (int i = 0; i <= last; ++i) { c += expf((v[i] - v[0]) / temperature); if (r < c) { pick = i; break; } }
    token[row] = indices[row * k + pick];
}

// beam search over a table of transition costs (V x V): each block extends one beam, one thread per next token
constexpr int BEAMS = 4;
struct Beam { float score; int parent, token; };
__global__ void expand(const float* cost, int V, const float* score, const int* token, Beam* out) {
    extern __shared__ __align__(16) unsigned char raw[];
    Beam* s = reinterpret_cast<Beam*>(raw);
    int b = blockIdx.x, t = threadIdx.x;
    s[t] = {score[b] + cost[token[b] * V + t], b, t};
    for (int size = 2; size <= blockDim.x; size <<= 1)
        for (int stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            int p = t ^ stride;
            if (p > t) {
                bool up = (t & size) == 0;
                bool less = s[p].score < s[t].score || (s[p].score == s[t].score && s[p].token < s[t].token);
                if (less == up) { Beam x = s[t]; s[t] = s[p]; s[p] = x; }
            }
        }
    __syncthreads();
    if (t < BEAMS) out[b * BEAMS + t] = s[t];
}

int main() {
    const int rows = 12, n = 5003, k = 20;
    std::vector<float> logits(rows * n), values(rows * k), kth(rows), u(rows);
    std::vector<int> indices(rows * k), tokens(rows);
    srand(4);
    for (auto& v : logits) v = std::round((rand() / (float)RAND_MAX - 0.5f) * 4000) / 100;   // with ties
    for (auto& v : u) v = rand() / (RAND_MAX + 1.0f);
    float *d_logits, *d_values, *d_kth, *d_u;
    int *d_indices, *d_tokens;
    TRY(cudaMalloc(&d_logits, logits.size() * 4)); TRY(cudaMalloc(&d_values, values.size() * 4)); TRY(cudaMalloc(&d_kth, rows * 4));
    TRY(cudaMalloc(&d_u, rows * 4)); TRY(cudaMalloc(&d_indices, indices.size() * 4)); TRY(cudaMalloc(&d_tokens, rows * 4));
    TRY(cudaMemcpy(d_logits, logits.data(), logits.size() * 4, cudaMemcpyHostToDevice));
    TRY(cudaMemcpy(d_u, u.data(), rows * 4, cudaMemcpyHostToDevice));
    topk_kernel<float, 128><<<rows, 128>>>(d_logits, n, k, d_values, d_indices);
    kth_by_bisection<<<rows, 512>>>(d_logits, n, k, d_kth);
    sample_top_p<<<1, rows>>>(d_values, d_indices, k, 0.7f, 0.9f, d_u, d_tokens);
    TRY(cudaGetLastError());
    TRY(cudaMemcpy(values.data(), d_values, values.size() * 4, cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(indices.data(), d_indices, indices.size() * 4, cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(kth.data(), d_kth, rows * 4, cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(tokens.data(), d_tokens, rows * 4, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int r = 0; r < rows; ++r) {
        std::vector<int> order(n);
        std::iota(order.begin(), order.end(), 0);
        const float* row = &logits[r * n];
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int a, int b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
        for (int i = 0; i < k; ++i) bad += indices[r * k + i] != order[i] || values[r * k + i] != row[order[i]];
        bad += kth[r] != row[order[k - 1]];
        bad += std::find(order.begin(), order.begin() + k, tokens[r]) == order.begin() + k;
    }
    std::cout << "top-" << k << " of " << n << ": " << bad << " wrong; sampled";
    for (int t : tokens) std::cout << ' ' << t;
    std::cout << std::endl;

    const int V = 64, steps = 6;
    std::vector<float> cost(V * V);
    for (auto& c : cost) c = rand() % 1000 / 10.f;
    float *d_cost, *d_score;
    int* d_token;
    Beam* d_out;
    TRY(cudaMalloc(&d_cost, V * V * 4)); TRY(cudaMalloc(&d_score, BEAMS * 4)); TRY(cudaMalloc(&d_token, BEAMS * 4)); TRY(cudaMalloc(&d_out, BEAMS * BEAMS * sizeof(Beam)));
    TRY(cudaMemcpy(d_cost, cost.data(), V * V * 4, cudaMemcpyHostToDevice));
    std::vector<float> score{0}, ref_score{0};
    std::vector<int> token{0}, ref_token{0};
    for (int step = 0; step < steps; ++step) {
        int beams = score.size();
        TRY(cudaMemcpy(d_score, score.data(), beams * 4, cudaMemcpyHostToDevice));
        TRY(cudaMemcpy(d_token, token.data(), beams * 4, cudaMemcpyHostToDevice));
        expand<<<beams, V, V * sizeof(Beam)>>>(d_cost, V, d_score, d_token, d_out);
        std::vector<Beam> cand(beams * BEAMS);
        TRY(cudaMemcpy(cand.data(), d_out, cand.size() * sizeof(Beam), cudaMemcpyDeviceToHost));
        auto better = [](const Beam& a, const Beam& b) { return a.score != b.score ? a.score < b.score : a.parent != b.parent ? a.parent < b.parent : a.token < b.token; };
        std::sort(cand.begin(), cand.end(), better);
        std::vector<Beam> all;
        for (int b = 0; b < (int)ref_score.size(); ++b) for (int t = 0; t < V; ++t) all.push_back({ref_score[b] + cost[ref_token[b] * V + t], b, t});
        std::sort(all.begin(), all.end(), better);
        score.clear(); token.clear(); ref_score.clear(); ref_token.clear();
        for (int b = 0; b < BEAMS; ++b) { score.push_back(cand[b].score); token.push_back(cand[b].token); ref_score.push_back(all[b].score); ref_token.push_back(all[b].token); }
        bad += score != ref_score || token != ref_token;
    }
    std::cout << "best beam " << score[0] << ", expected " << ref_score[0] << std::endl;
    for (void* p : {(void*)d_logits, (void*)d_values, (void*)d_kth, (void*)d_u, (void*)d_indices, (void*)d_tokens, (void*)d_cost, (void*)d_score, (void*)d_token, (void*)d_out}) cudaFree(p);
    std::cout << (bad ? "FAILED" : "PASSED") << std::endl;
    return bad != 0;
}
