// Radix-2 FFT: bit reversal, one kernel launch per stage; and a whole transform in shared memory per block (batched).
// complex<float> of the standard library on the host, float2 on the device.
#include <cstdio>
#include <cstdlib>
#include <complex>
#include <vector>
#include <cmath>

typedef float2 Complex;
typedef std::complex<float> cf;

static __device__ __host__ inline Complex ComplexAdd(Complex a, Complex b) { Complex c; c.x = a.x + b.x; c.y = a.y + b.y; return c; }
static __device__ __host__ inline Complex ComplexSub(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }
static __device__ __host__ inline Complex ComplexScale(Complex a, float s) { Complex c; c.x = s * a.x; c.y = s * a.y; return c; }
static __device__ __host__ inline Complex ComplexMul(Complex a, Complex b)
{
    Complex c;
    c.x = a.x * b.x - a.y * b.y;
    c.y = a.x * b.y + a.y * b.x;
    return c;
}

__device__ Complex twiddle(int k, int n, int sign)
{
    float s, c;
    sincospif(2.0f * k / n, &s, &c);
    return make_float2(c, sign * s);
}

__global__ void bitReverse(Complex *out, const Complex *in, int logn)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (1u << logn)) out[__brev(i) >> (32 - logn)] = in[i];
}

__global__ void stage(Complex *a, int n, int half, int sign)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    int k = t % half, i = (t / half) * 2 * half + k;
    Complex w = ComplexMul(twiddle(k, 2 * half, sign), a[i + half]), u = a[i];
    a[i] = ComplexAdd(u, w);
    a[i + half] = ComplexSub(u, w);
}

template <int LOGN>
__global__ void fft_block(Complex *data, int sign)
{
    constexpr int N = 1 << LOGN;
    __shared__ Complex s[N];
    Complex *d = data + blockIdx.x * N;
    for (int i = threadIdx.x; i < N; i += blockDim.x) s[__brev(i) >> (32 - LOGN)] = d[i];
#pragma unroll
    for (int half = 1; half < N; half *= 2) {
        __syncthreads();
        for (int t = threadIdx.x; t < N / 2; t += blockDim.x) {
            int k = t & (half - 1), i = ((t & ~(half - 1)) << 1) + k;
            Complex w = ComplexMul(twiddle(k, 2 * half, sign), s[i + half]), u = s[i];
            s[i] = ComplexAdd(u, w);
            s[i + half] = ComplexSub(u, w);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += blockDim.x) d[i] = s[i];
}

__global__ void pointwiseMulScale(Complex *a, const Complex *b, int size, float scale)
{
    const int numThreads = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += numThreads) a[i] = ComplexScale(ComplexMul(a[i], b[i]), scale);
}

static void launchFFT(Complex *out, const Complex *in, int logn, int sign)
{
    int n = 1 << logn;
    bitReverse<<<(n + 255) / 256, 256>>>(out, in, logn);
    for (int half = 1; half < n; half <<= 1) stage<<<(n / 2 + 127) / 128, 128>>>(out, n, half, sign);
}

int main()
{
    const int LOG = 12, N = 1 << LOG, M = 9, batch = 8;
    std::vector<cf> x(N), y(N), h(N), z(N), big(batch << M);
    for (auto &v : x) v = cf(rand() / (float)RAND_MAX - .5f, rand() / (float)RAND_MAX - .5f);
    for (int i = 0; i < 11; i++) h[i] = cf(1.f / (i + 1), 0);
    for (auto &v : big) v = cf(rand() % 7, rand() % 5);
    Complex *d_x, *d_f, *d_h, *d_g, *d_big;
    size_t bytes = N * sizeof(Complex);
    if (cudaMalloc(&d_x, bytes) || cudaMalloc(&d_f, bytes) || cudaMalloc(&d_h, bytes) || cudaMalloc(&d_g, bytes) || cudaMalloc(&d_big, big.size() * 8)) return 1;
    cudaMemcpy(d_x, x.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_h, h.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_big, big.data(), big.size() * 8, cudaMemcpyHostToDevice);

    launchFFT(d_f, d_x, LOG, -1);
    cudaMemcpy(y.data(), d_f, bytes, cudaMemcpyDeviceToHost);
    double e1 = 0, e2 = 0, e3 = 0;
    for (int k = 0; k < N; k += 61) {
        std::complex<double> s = 0;
        for (int i = 0; i < N; i++) s += std::complex<double>(x[i]) * std::polar(1.0, -2 * M_PI * ((long)i * k % N) / N);
        e1 = fmax(e1, std::abs(s - std::complex<double>(y[k])));
    }
    printf("forward transform of %d: error %g\n", N, e1);

    // convolution through the frequency domain
    launchFFT(d_g, d_h, LOG, -1);
    pointwiseMulScale<<<8, 256>>>(d_f, d_g, N, 1.0f / N);
    launchFFT(d_x, d_f, LOG, 1);
    cudaMemcpy(z.data(), d_x, bytes, cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++) {
        cf s = 0;
        for (int j = 0; j < 11; j++) s += x[(i - j + N) % N] * h[j];
        e2 = fmax(e2, std::abs(s - z[i]));
    }
    printf("convolution: error %g\n", e2);

    fft_block<M><<<batch, 128>>>(d_big, -1);
    fft_block<M><<<batch, 64>>>(d_big, 1);
    std::vector<cf> back(big.size());
    cudaError_t e = cudaMemcpy(back.data(), d_big, big.size() * 8, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < big.size(); i++) e3 = fmax(e3, std::abs(back[i] / (float)(1 << M) - big[i]));
    printf("there and back in shared memory: error %g (%s)\n", e3, cudaGetErrorString(e));
    cudaFree(d_x); cudaFree(d_f); cudaFree(d_h); cudaFree(d_g); cudaFree(d_big);
    bool ok = e1 < 1e-3 && e2 < 1e-4 && e3 < 1e-4 && e == cudaSuccess;
    puts(ok ? "FFT correct" : "FFT incorrect");
    return !ok;
}
