// Variables in every memory space, with every order of words; symbols by address, offset, async; two-dimensional tables,
// structs, pointers kept on the device, function pointers in constant memory, const tables.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <cuda_runtime.h>

#define CE(x) do { cudaError_t e_ = (x); if (e_) { printf("line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

struct Cell { int id; float weight; char tag[8]; };
typedef float (*unary_t)(float);

__device__ int counter;
__device__ int started = 41;
static __device__ float grid2d[6][8];
__device__ static volatile int flag_a, flag_b = 7;
__constant__ float coefficients[2][3] = {{1, 2, 3}, {4, 5, 6}};
static __constant__ Cell cells[4];
__constant__ static int c_scale = 3;
__constant__ double late[2] = {1.5, 2.5};
__device__ float *d_pointer;
__device__ __constant__ int both_words = 9;
__device__ const int primes[] = {2, 3, 5, 7, 11, 13};
const __device__ char message[] = "device string";
__device__ unsigned long long wide = 1ull << 40;
__device__ dim3 shape(3, 2, 1);
namespace deep { __device__ int hidden[3] = {10, 20, 30}; namespace er { __constant__ int level = 2; } }
template <typename T> __device__ T template_value() { static __device__ T v = T(5); return v; }

__device__ float square(float x) { return x * x; }
__device__ float cube(float x) { return x * x * x; }
__device__ unary_t table[2] = {square, cube};
__device__ unary_t chosen = cube;

__global__ void use(int *out, float *fout, unary_t fn)
{
    __shared__ struct { int a; float b[2]; } s;
    volatile __shared__ int v[32];
    __shared__ int x, y[3], (*p)[3];
    __shared__ alignas(16) unsigned char raw[64];
    float __shared__ late_word[4];
    int t = threadIdx.x;
    v[t] = t;
    if (t == 0) { s.a = 5; s.b[0] = 0.5f; s.b[1] = 0.25f; x = 1; y[0] = y[1] = y[2] = 2; p = &y; late_word[3] = 8.f; }
    raw[2 * t] = raw[2 * t + 1] = (unsigned char)t;
    __syncthreads();
    atomicAdd(&counter, 1);
    if (t == 0 && blockIdx.x == 0) {
        out[0] = started + flag_b + flag_a;
        out[1] = cells[2].id * c_scale + both_words;
        out[2] = primes[5] + (*p)[1] + x;
        out[3] = deep::hidden[2] + deep::er::level;
        out[4] = message[7];
        out[5] = (int)(wide >> 38) + template_value<int>();
        out[6] = shape.x * 10 + shape.y;
        out[7] = s.a + raw[63] + v[31];
        out[8] = (int)late[1];
        for (int i = 0; i < 3; i++) fout[i] = coefficients[1][i] + s.b[1];
        fout[3] = grid2d[5][7] + grid2d[0][1];
        fout[4] = d_pointer[2];
        fout[5] = table[0](3.f) + (*chosen)(2.f) + fn(4.f) + late_word[3];
        fout[6] = cells[3].weight;
        flag_a = 100;
    }
}

int main()
{
    int out[9], *d_out;
    float fout[7], *d_fout, g[6][8];
    CE(cudaMalloc(&d_out, sizeof out));
    CE(cudaMalloc(&d_fout, sizeof fout));
    for (int i = 0; i < 48; i++) (&g[0][0])[i] = i;
    CE(cudaMemcpyToSymbol(grid2d, g, sizeof g));
    Cell h[4];
    memset(h, 0, sizeof h);
    for (int i = 0; i < 4; i++) { h[i].id = 100 + i; h[i].weight = i / 4.f; strcpy(h[i].tag, "cell"); }
    CE(cudaMemcpyToSymbol(cells, h, sizeof h, 0, cudaMemcpyHostToDevice));
    float row[3] = {40, 50, 60};
    CE(cudaMemcpyToSymbol(coefficients, row, sizeof row, 3 * sizeof(float)));
    float values[4] = {1, 2, 33, 4}, *d_values;
    CE(cudaMalloc(&d_values, sizeof values));
    CE(cudaMemcpy(d_values, values, sizeof values, cudaMemcpyHostToDevice));
    CE(cudaMemcpyToSymbol(d_pointer, &d_values, sizeof d_values));
    unary_t fn;
    CE(cudaMemcpyFromSymbol(&fn, chosen, sizeof fn));
    void *address = NULL;
    size_t size = 0;
    CE(cudaGetSymbolAddress(&address, grid2d));
    CE(cudaGetSymbolSize(&size, grid2d));
    int bad = size != sizeof g;
    float one = 1000.f;
    CE(cudaMemcpy((float *)address + 1, &one, sizeof one, cudaMemcpyHostToDevice));
    int *started_address;
    CE(cudaGetSymbolAddress((void **)&started_address, started));
    CE(cudaMemset(started_address, 0, sizeof(int)));
    int forty = 40;
    cudaStream_t s;
    CE(cudaStreamCreate(&s));
    CE(cudaMemcpyToSymbolAsync(started, &forty, sizeof forty, 0, cudaMemcpyHostToDevice, s));
    CE(cudaStreamSynchronize(s));

    use<<<2, 32>>>(d_out, d_fout, fn);
    CE(cudaGetLastError());
    CE(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
    CE(cudaMemcpy(fout, d_fout, sizeof fout, cudaMemcpyDeviceToHost));
    int count = -1, a = -1;
    CE(cudaMemcpyFromSymbolAsync(&count, counter, sizeof count, 0, cudaMemcpyDeviceToHost, s));
    CE(cudaMemcpyFromSymbolAsync(&a, flag_a, sizeof a, 0, cudaMemcpyDeviceToHost, s));
    CE(cudaStreamSynchronize(s));
    int want[9] = {47, 102 * 3 + 9, 13 + 2 + 1, 32, 's', 4 + 5, 32, 5 + 31 + 31, 2};
    float fwant[7] = {40.25f, 50.25f, 60.25f, 47 + 1000.f, 33, 9 + 8 + 64 + 8, 0.75f};
    for (int i = 0; i < 9; i++) if (out[i] != want[i]) { printf("out[%d] is %d, not %d\n", i, out[i], want[i]); bad++; }
    for (int i = 0; i < 7; i++) if (fout[i] != fwant[i]) { printf("fout[%d] is %g, not %g\n", i, fout[i], fwant[i]); bad++; }
    bad += count != 64 || a != 100;
    CE(cudaStreamDestroy(s));
    cudaFree(d_out); cudaFree(d_fout); cudaFree(d_values);
    printf("%d threads counted\n%s\n", count, bad ? "symbols FAILED" : "symbols PASSED");
    return bad != 0;
}
