// Dynamic programming along anti-diagonals: Smith-Waterman scores (one launch per diagonal) and longest common subsequence
// (one block walks all diagonals with a rolling buffer of three in shared memory), edit distance by a warp.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <algorithm>

#define MATCH 5
#define MISMATCH -3
#define GAP 4

#define gpuErr(stmt) \
    { if (cudaError_t e = stmt) { std::printf("%s in line %d\n", cudaGetErrorString(e), __LINE__); return EXIT_FAILURE; } }

__device__ __host__ inline int matchMissmatchScore(char a, char b) { return a == b ? MATCH : MISMATCH; }

// H is (n+1) x (m+1), row-major; diagonal i + j = diag
__global__ void sw_diagonal(const char *a, const char *b, int *H, int m, int diag, int first, int count, int *best)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    int v = 0;
    if (k < count) {
        int i = first + k, j = diag - i;
        size_t index = (size_t)i * (m + 1) + j;
        int up = H[index - (m + 1)] - GAP;
        int left = H[index - 1] - GAP;
        int d = H[index - (m + 1) - 1] + matchMissmatchScore(a[i - 1], b[j - 1]);
        v = max(max(up, left), max(d, 0));
        H[index] = v;
    }
    v = __reduce_max_sync(0xffffffffu, v);
    if (threadIdx.x % 32 == 0) atomicMax(best, v);
}

__global__ void lcs_block(const char *a, int n, const char *b, int m, int *result)
{
    extern __shared__ int rows[];   // three diagonals of n + 1
    int *d0 = rows, *d1 = rows + n + 1, *d2 = rows + 2 * (n + 1);
    for (int i = threadIdx.x; i <= n; i += blockDim.x) d0[i] = d1[i] = d2[i] = 0;
    __syncthreads();
    for (int diag = 2; diag <= n + m; diag++) {
        for (int i = max(1, diag - m) + (int)threadIdx.x; i <= min(n, diag - 1); i += blockDim.x) {
            int j = diag - i;
            d2[i] = a[i - 1] == b[j - 1] ? d0[i - 1] + 1 : max(d1[i - 1], d1[i]);
        }
        __syncthreads();
        int *t = d0; d0 = d1; d1 = d2; d2 = t;
    }
    if (threadIdx.x == 0) *result = d1[n];
}

// edit distance of words of at most 32 letters, a warp for each pair: lane i has row i
__global__ void levenshtein(const char (*words)[33], const int *len, const char *query, int qlen, int *out)
{
    int lane = threadIdx.x & 31, w = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    const char *word = words[w];
    const int n = len[w];
    // column 0: lane holds D[lane+1][0] = lane+1
    int cur = lane + 1, left = lane + 1, diag = lane;
    for (int step = 0; step < qlen + 31; step++) {
        int up = __shfl_up_sync(0xffffffff, cur, 1);    // D[lane][col+1], computed in the step before
        int col = step - lane;
        if (lane == 0) up = col + 1;
        if (col >= 0 && col < qlen) {
            int v = min(min(up, left) + 1, diag + (word[lane] != query[col]));
            diag = up;
            left = v;
            cur = v;
        }
    }
    int d = __shfl_sync(0xffffffff, cur, max(n - 1, 0));
    if (lane == 0) out[w] = d;
}

int main()
{
    const int n = 300, m = 260;
    std::string a, b;
    srand(5);
    for (int i = 0; i < n; i++) a += "ACGT"[rand() % 4];
    for (int j = 0; j < m; j++) b += j > 60 && j < 200 && rand() % 10 ? a[j + 20] : "ACGT"[rand() % 4];
    std::vector<std::vector<int>> H(n + 1, std::vector<int>(m + 1, 0)), L = H;
    int want = 0;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            H[i][j] = std::max({0, H[i - 1][j] - GAP, H[i][j - 1] - GAP, H[i - 1][j - 1] + matchMissmatchScore(a[i - 1], b[j - 1])});
            want = std::max(want, H[i][j]);
            L[i][j] = a[i - 1] == b[j - 1] ? L[i - 1][j - 1] + 1 : std::max(L[i - 1][j], L[i][j - 1]);
        }

    char *d_a, *d_b;
    int *d_H, *d_best, best = 0, lcs = 0;
    gpuErr(cudaMalloc(&d_a, n));
    gpuErr(cudaMalloc(&d_b, m));
    gpuErr(cudaMalloc(&d_H, (n + 1) * (m + 1) * sizeof(int)));
    gpuErr(cudaMalloc(&d_best, 2 * sizeof(int)));
    gpuErr(cudaMemset(d_H, 0, (n + 1) * (m + 1) * sizeof(int)));
    gpuErr(cudaMemset(d_best, 0, 2 * sizeof(int)));
    gpuErr(cudaMemcpy(d_a, a.c_str(), n, cudaMemcpyHostToDevice));
    gpuErr(cudaMemcpy(d_b, b.data(), m, cudaMemcpyHostToDevice));
    for (int diag = 2; diag <= n + m; diag++) {
        int first = std::max(1, diag - m), count = std::min(n, diag - 1) - first + 1;
        sw_diagonal<<<(count + 127) / 128, 128>>>(d_a, d_b, d_H, m, diag, first, count, d_best);
    }
    lcs_block<<<1, 128, 3 * (n + 1) * sizeof(int)>>>(d_a, n, d_b, m, d_best + 1);
    gpuErr(cudaGetLastError());
    gpuErr(cudaMemcpy(&best, d_best, sizeof(int), cudaMemcpyDeviceToHost));
    gpuErr(cudaMemcpy(&lcs, d_best + 1, sizeof(int), cudaMemcpyDeviceToHost));
    std::printf("Smith-Waterman score %d (%d), LCS %d (%d)\n", best, want, lcs, L[n][m]);

    const char *dict[] = {"kitten", "sitting", "warp", "swap", "transpose", "transport", "a", "thread", "thready", "block", "clock", "grid",
                          "parallelism", "barrier", "carrier", "shuffle"};
    char words[16][33] = {};
    int len[16], got[16], bad = 0;
    const std::string query = "transported";
    for (int w = 0; w < 16; w++) { strcpy(words[w], dict[w]); len[w] = strlen(dict[w]); }
    char *d_words, *d_q;
    int *d_len, *d_out;
    gpuErr(cudaMalloc(&d_words, sizeof words)); gpuErr(cudaMalloc(&d_q, query.size()));
    gpuErr(cudaMalloc(&d_len, sizeof len)); gpuErr(cudaMalloc(&d_out, sizeof got));
    gpuErr(cudaMemcpy(d_words, words, sizeof words, cudaMemcpyHostToDevice));
    gpuErr(cudaMemcpy(d_q, query.data(), query.size(), cudaMemcpyHostToDevice));
    gpuErr(cudaMemcpy(d_len, len, sizeof len, cudaMemcpyHostToDevice));
    levenshtein<<<4, 128>>>((const char (*)[33])d_words, d_len, d_q, (int)query.size(), d_out);
    gpuErr(cudaMemcpy(got, d_out, sizeof got, cudaMemcpyDeviceToHost));
    for (int w = 0; w < 16; w++) {
        std::vector<int> row(query.size() + 1);
        for (size_t j = 0; j <= query.size(); j++) row[j] = j;
        for (int i = 1; i <= len[w]; i++) {
            int diag = row[0];
            row[0] = i;
            for (size_t j = 1; j <= query.size(); j++) {
                int t = row[j];
                row[j] = std::min({row[j] + 1, row[j - 1] + 1, diag + (words[w][i - 1] != query[j - 1])});
                diag = t;
            }
        }
        bad += got[w] != row.back();
    }
    std::printf("edit distances: %s-%s %d, %d wrong\n", dict[5], query.c_str(), got[5], bad);
    cudaFree(d_a); cudaFree(d_b); cudaFree(d_H); cudaFree(d_best); cudaFree(d_words); cudaFree(d_q); cudaFree(d_len); cudaFree(d_out);
    bool ok = best == want && lcs == L[n][m] && !bad;
    std::puts(ok ? "alignment ok" : "alignment WRONG");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
