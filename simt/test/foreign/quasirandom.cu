// Sobol sequence (Gray code, direction numbers built on the host) and Halton sequence; integration in five dimensions.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define DIMENSIONS 5
#define BITS 32
#define k_2powneg32 2.3283064E-10F

__constant__ unsigned int directions[DIMENSIONS][BITS];

static void err(cudaError_t e, int line) { if (e != cudaSuccess) { printf("line %d: %s\n", line, cudaGetErrorString(e)); exit(EXIT_FAILURE); } }
#define ERR(x) err((x), __LINE__)

// one block row per dimension; each thread strides through the sequence by powers of two (Bratley and Fox with Gray code)
__global__ void sobolGPU_kernel(unsigned n_vectors, float *d_output)
{
    __shared__ unsigned int v[BITS];
    const unsigned dim = blockIdx.y;
    float *out = d_output + n_vectors * dim;
    if (threadIdx.x < BITS) v[threadIdx.x] = directions[dim][threadIdx.x];
    __syncthreads();
    int i0 = threadIdx.x + blockIdx.x * blockDim.x;
    int stride = gridDim.x * blockDim.x;

    // Get the gray code of the index, then the number itself
    unsigned int g = i0 ^ (i0 >> 1);
    unsigned int X = 0, mask;
    for (unsigned int k = 0; k < __ffs(stride) - 1; k++)
    {
        mask = -(g & 1);
        X ^= mask & v[k];
        g = g >> 1;
    }
    for (unsigned k = __ffs(stride) - 1; g; g >>= 1, k++) X ^= (-(g & 1)) & v[k];
    if (i0 < n_vectors) out[i0] = (float)X * k_2powneg32;

    // the next element of this thread differs in two direction numbers
    unsigned int v_log2stridem1 = v[__ffs(stride) - 2];
    unsigned int v_stridemask = stride - 1;
    for (unsigned int i = i0 + stride; i < n_vectors; i += stride)
    {
        X ^= v_log2stridem1 ^ v[__ffs(~((i - stride) | v_stridemask)) - 1];
        out[i] = (float)X * k_2powneg32;
    }
}

__device__ __host__ inline double radical_inverse(unsigned n, unsigned base)
{
    double inv = 1.0 / base, f = inv, x = 0;
    for (; n; n /= base, f *= inv) x += f * (n % base);
    return x;
}

__global__ void halton(double *out, unsigned n)
{
    const unsigned primes[DIMENSIONS] = {2, 3, 5, 7, 11};
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
#pragma unroll
        for (int d = 0; d < DIMENSIONS; d++) out[d * n + i] = radical_inverse(i + 1, primes[d]);
    }
}

// product of (4 x - 2)^2 * 3/4 over dimensions: integral 1
template <typename T>
__global__ void integrate(const T *x, unsigned n, double *sum)
{
    double s = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        double f = 1;
        for (int d = 0; d < DIMENSIONS; d++) { double t = 4. * (double)x[d * n + i] - 2.; f *= 0.75 * t * t; }
        s += f;
    }
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, s);
}

int main(int argc, char *argv[])
{
    const unsigned n = argc > 1 ? atoi(argv[1]) : 1 << 15;
    // primitive polynomials and starting values of the first dimensions (Joe and Kuo); dimension 0 is van der Corput
    const unsigned s[DIMENSIONS] = {0, 1, 2, 3, 3}, a[DIMENSIONS] = {0, 0, 1, 1, 2}, m[DIMENSIONS][3] = {{0}, {1}, {1, 3}, {1, 3, 1}, {1, 1, 1}};
    unsigned dir[DIMENSIONS][BITS];
    for (int d = 0; d < DIMENSIONS; d++)
        for (unsigned k = 0; k < BITS; k++) {
            if (d == 0) { dir[0][k] = 1u << (31 - k); continue; }
            if (k < s[d]) { dir[d][k] = m[d][k] << (31 - k); continue; }
            unsigned v = dir[d][k - s[d]] ^ (dir[d][k - s[d]] >> s[d]);
            for (unsigned j = 1; j < s[d]; j++) if ((a[d] >> (s[d] - 1 - j)) & 1) v ^= dir[d][k - j];
            dir[d][k] = v;
        }
    ERR(cudaMemcpyToSymbol(directions, dir, sizeof dir, 0, cudaMemcpyHostToDevice));
    float *d_out;
    double *d_halton, *d_sum, sums[2] = {0, 0};
    ERR(cudaMalloc((void **)&d_out, n * DIMENSIONS * sizeof(float)));
    ERR(cudaMalloc((void **)&d_halton, n * DIMENSIONS * sizeof(double)));
    ERR(cudaMalloc((void **)&d_sum, sizeof sums));
    ERR(cudaMemset(d_sum, 0, sizeof sums));
    dim3 dimGrid(16, DIMENSIONS), dimBlock(64);
    sobolGPU_kernel<<<dimGrid, dimBlock>>>(n, d_out);
    ERR(cudaGetLastError());
    halton<<<(n + 127) / 128, 128>>>(d_halton, n);
    integrate<float><<<16, 128>>>(d_out, n, d_sum);
    integrate<double><<<16, 128>>>(d_halton, n, d_sum + 1);
    std::vector<float> got(n * DIMENSIONS);
    std::vector<double> hal(n * DIMENSIONS);
    ERR(cudaMemcpy(got.data(), d_out, n * DIMENSIONS * sizeof(float), cudaMemcpyDeviceToHost));
    ERR(cudaMemcpy(hal.data(), d_halton, n * DIMENSIONS * sizeof(double), cudaMemcpyDeviceToHost));
    ERR(cudaMemcpy(sums, d_sum, sizeof sums, cudaMemcpyDeviceToHost));

    long wrong = 0, differ = 0;
    for (int d = 0; d < DIMENSIONS; d++) {
        unsigned X = 0;
        for (unsigned i = 0; i < n; i++) {
            if (i) X ^= dir[d][__builtin_ctz(~(i - 1))];
            wrong += got[d * n + i] != (float)X * k_2powneg32;
        }
        const unsigned primes[] = {2, 3, 5, 7, 11};
        for (unsigned i = 0; i < n; i += 97) differ += std::fabs(hal[d * n + i] - radical_inverse(i + 1, primes[d])) > 1e-15;
    }
    printf("Sobol: %ld of %u numbers wrong, integral %.5f\nHalton: %ld wrong, integral %.5f\n", wrong, n * DIMENSIONS, sums[0] / n, differ, sums[1] / n);
    bool ok = !wrong && !differ && std::fabs(sums[0] / n - 1) < 0.02 && std::fabs(sums[1] / n - 1) < 0.02;
    cudaFree(d_out); cudaFree(d_halton); cudaFree(d_sum);
    printf(ok ? "Test PASSED\n" : "Test FAILED\n");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
