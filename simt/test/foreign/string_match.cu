#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <ctype.h>

/* Searching text on the GPU: naive matching of a pattern, counting words, Rabin-Karp for many patterns, a caesar cipher
   with char arithmetic; patterns in constant memory, letters counted in shared memory. */

#define MAX_PATTERN 32
#define NPAT 4
__constant__ char pattern[MAX_PATTERN];
__constant__ unsigned pat_hash[NPAT];
__constant__ char pats[NPAT][8];

#define CU_OK(call) { cudaError_t rc = call; if (rc != cudaSuccess) { fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(rc)); return 3; } }

__global__ void match(const char *text, int n, int m, int *count, int *where, int max_where)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > n - m) return;
    int k = 0;
    while (k < m && text[i + k] == pattern[k]) k++;
    if (k == m) {
        int slot = atomicAdd(count, 1);
        if (slot < max_where) where[slot] = i;
    }
}

__device__ __forceinline__ bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

__global__ void wordcount(const char *text, int n, int *words)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int starts = i < n && letter(text[i]) && (i == 0 || !letter(text[i - 1]));
    int total = __syncthreads_count(starts);
    if (threadIdx.x == 0) atomicAdd(words, total);
}

__host__ __device__ unsigned hash4(const char *s)
{
    unsigned h = 0;
    for (int k = 0; k < 4; k++) h = h * 257u + (unsigned char)s[k];
    return h;
}

__global__ void rabin_karp(const char *text, int n, unsigned *hits)
{
    __shared__ unsigned local[NPAT];
    if (threadIdx.x < NPAT) local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 4 <= n) {
        unsigned h = hash4(text + i);
        for (int p = 0; p < NPAT; p++) {
            if (h != pat_hash[p]) continue;
            bool same = true;
            for (int k = 0; k < 4; k++) same = same && text[i + k] == pats[p][k];
            if (same) atomicInc(&local[p], 0xffffffffu);
        }
    }
    __syncthreads();
    if (threadIdx.x < NPAT) atomicAdd(&hits[threadIdx.x], local[threadIdx.x]);
}

__global__ void caesar(char *text, int n, int key)
{
    for (int i = threadIdx.x + blockDim.x * blockIdx.x; i < n; i += blockDim.x * gridDim.x) {
        char c = text[i];
        if (c >= 'a' && c <= 'z') text[i] = 'a' + (c - 'a' + key + 26) % 26;
        else if (c >= 'A' && c <= 'Z') text[i] = 'A' + (c - 'A' + key + 26) % 26;
    }
}

int main(void)
{
    const char *sentences[] = { "The quick brown fox jumps over the lazy dog. ", "A warp is 32 threads; ",
                                "threads of a block share memory, ", "and the the grid has blocks.\n" };
    int n = 0, cap = 200000;
    char *text = (char *)malloc(cap + 64);
    while (n < cap - 64) { const char *s = sentences[rand() % 4]; strcpy(text + n, s); n += strlen(s); }
    const char *want = "the";
    const char hp[NPAT][8] = { "lazy", "bloc", "warp", "zzzz" };
    unsigned hh[NPAT], hits[NPAT] = {0, 0, 0, 0}, ref_hits[NPAT] = {0};
    for (int p = 0; p < NPAT; p++) hh[p] = hash4(hp[p]);
    int m = strlen(want), ref = 0, ref_words = 0;
    long ref_pos = 0;
    for (int i = 0; i + m <= n; i++) if (!strncmp(text + i, want, m)) { ref++; ref_pos += i; }
    for (int i = 0; i < n; i++) ref_words += isalpha(text[i]) && (i == 0 || !isalpha(text[i - 1]));
    for (int p = 0; p < NPAT; p++) for (int i = 0; i + 4 <= n; i++) ref_hits[p] += !memcmp(text + i, hp[p], 4);

    char *d_text, *back = (char *)malloc(n);
    int *d_count, count[2] = {0, 0}, *d_where, *where = (int *)malloc(n * sizeof(int));
    unsigned *d_hits;
    CU_OK(cudaMalloc((void **)&d_text, n));
    CU_OK(cudaMalloc((void **)&d_count, 2 * sizeof(int)));
    CU_OK(cudaMalloc((void **)&d_where, n * sizeof(int)));
    CU_OK(cudaMalloc((void **)&d_hits, sizeof hits));
    CU_OK(cudaMemcpy(d_text, text, n, cudaMemcpyHostToDevice));
    CU_OK(cudaMemcpy(d_count, count, sizeof count, cudaMemcpyHostToDevice));
    CU_OK(cudaMemcpy(d_hits, hits, sizeof hits, cudaMemcpyHostToDevice));
    CU_OK(cudaMemcpyToSymbol(pattern, want, m + 1));
    CU_OK(cudaMemcpyToSymbol(pat_hash, hh, sizeof hh));
    CU_OK(cudaMemcpyToSymbol(pats, hp, sizeof hp));

    int blocks = (n + 255) / 256;
    match<<<blocks, 256>>>(d_text, n, m, d_count, d_where, n);
    wordcount<<<blocks, 256>>>(d_text, n, d_count + 1);
    rabin_karp<<<blocks, 256>>>(d_text, n, d_hits);
    CU_OK(cudaGetLastError());
    CU_OK(cudaMemcpy(count, d_count, sizeof count, cudaMemcpyDeviceToHost));
    CU_OK(cudaMemcpy(where, d_where, count[0] * sizeof(int), cudaMemcpyDeviceToHost));
    CU_OK(cudaMemcpy(hits, d_hits, sizeof hits, cudaMemcpyDeviceToHost));
    long pos = 0;
    for (int i = 0; i < count[0]; i++) pos += where[i];
    printf("\"%s\": %d times (%d); %d words (%d)\n", want, count[0], ref, count[1], ref_words);
    for (int p = 0; p < NPAT; p++) printf("\"%s\": %u (%u)\n", hp[p], hits[p], ref_hits[p]);

    caesar<<<7, 96>>>(d_text, n, 13);
    CU_OK(cudaMemcpy(back, d_text, n, cudaMemcpyDeviceToHost));
    printf("encrypted: %.44s\n", back);
    int changed = memcmp(back, text, n) != 0;
    caesar<<<7, 96>>>(d_text, n, -13);
    CU_OK(cudaMemcpy(back, d_text, n, cudaMemcpyDeviceToHost));
    int ok = count[0] == ref && pos == ref_pos && count[1] == ref_words && !memcmp(hits, ref_hits, sizeof hits) && changed && !memcmp(back, text, n);
    cudaFree(d_text); cudaFree(d_count); cudaFree(d_where); cudaFree(d_hits);
    free(text); free(back); free(where);
    printf("%s\n", ok ? "strings ok" : "strings WRONG");
    return ok ? 0 : 1;
}
