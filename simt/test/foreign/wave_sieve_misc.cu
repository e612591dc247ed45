#include <iostream>
#include <string>
#include <vector>
#include <array>
#include <algorithm>
#include <cmath>
#include <cuda/std/array>
#include <cuda/atomic>
#include <cuda/std/complex>
#include <cuda/std/tuple>
using namespace std;

// A weekend's worth of small kernels: 1D wave equation, prime sieve with bit atomics, Collatz, Pascal's triangle, matrix powers with
// constexpr structs, polynomial evaluation with cuda::std::array, cuda::atomic_ref, complex numbers from cuda::std.

#define TRY(x) if (auto rc = (x); rc != cudaSuccess) { cerr << __LINE__ << ' ' << cudaGetErrorString(rc) << endl; return 1; }

__global__ void wave(const float *u, const float *up, float *un, int n, float c2)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) un[i] = 2 * u[i] - up[i] + c2 * (u[i + 1] - 2 * u[i] + u[i - 1]);
    else if (i < n) un[i] = 0;
}

__global__ void sieve(unsigned *bits, unsigned n)
{
    unsigned p = blockIdx.x + 2;
    for (unsigned d = 2; d * d <= p; d++) if (p % d == 0) return;   // not a prime: nothing to strike out
    for (unsigned m = p * p + threadIdx.x * p; m < n; m += blockDim.x * p) atomicOr(&bits[m / 32], 1u << m % 32);
}

__global__ void collatz(unsigned long long *best, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i > n) return;
    unsigned long long x = i;
    unsigned steps = 0;
    while (x != 1) { x = x & 1 ? 3 * x + 1 : x >> 1; steps++; }
    atomicMax(best, (unsigned long long)steps << 32 | (0xffffffffu - i));   // the longest; of equals the smallest
}

__global__ void pascal(unsigned *row, int n)
{
    __shared__ unsigned a[64];
    int k = threadIdx.x;
    a[k] = k == 0;
    for (int r = 1; r <= n; r++) {
        __syncthreads();
        unsigned left = k ? a[k - 1] : 0;
        __syncthreads();
        a[k] += left;
    }
    row[k] = a[k];
}

template <int N> struct Matrix {
    unsigned long long m[N][N];
    __host__ __device__ constexpr Matrix() : m{} {}
    __host__ __device__ static constexpr Matrix identity() { Matrix r; for (int i = 0; i < N; i++) r.m[i][i] = 1; return r; }
    __host__ __device__ friend constexpr Matrix operator*(const Matrix &a, const Matrix &b)
    {
        Matrix r;
        for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) for (int k = 0; k < N; k++) r.m[i][j] += a.m[i][k] * b.m[k][j];
        return r;
    }
};
template <int N> __host__ __device__ Matrix<N> power(Matrix<N> a, unsigned e)
{
    Matrix<N> r = Matrix<N>::identity();
    for (; e; e >>= 1, a = a * a) if (e & 1) r = r * a;
    return r;
}
__global__ void fibonacci(unsigned long long *f, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    Matrix<2> q;
    q.m[0][0] = q.m[0][1] = q.m[1][0] = 1;
    f[i] = power(q, i).m[0][1];
}

__device__ constexpr int kDegree = 4;
using Poly = cuda::std::array<double, kDegree + 1>;
__global__ void horner(Poly p, const double *x, double *y, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        double v = 0;
        for (int k = kDegree; k >= 0; --k) v = fma(v, x[i], p[k]);
        y[i] = v;
    }
}

__global__ void complex_roots(cuda::std::complex<float> *z, int n)
{
    int k = threadIdx.x;
    if (k < n) {
        cuda::std::complex<float> w(cosf(2 * 3.14159265f * k / n), sinf(2 * 3.14159265f * k / n)), r(1, 0);
        for (int i = 0; i < n; i++) r *= w;
        z[k] = r;
    }
}

__global__ void counters(int *plain, cuda::atomic<int, cuda::thread_scope_device> *a)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(*plain);
    ref.fetch_add(2, cuda::memory_order_relaxed);
    a->fetch_add(threadIdx.x, cuda::std::memory_order_relaxed);
    auto t = cuda::std::make_tuple(1, 2.5f);
    if (cuda::std::get<1>(t) > 3) ref.store(0);
}

int main()
{
    int bad = 0;
    // wave: a plucked string, compared after 200 steps
    const int n = 1000, steps = 200;
    vector<float> u(n), up(n), un(n), got(n);
    for (int i = 0; i < n; i++) up[i] = u[i] = i && i < n - 1 ? exp(-0.01f * (i - 300) * (i - 300)) : 0;
    array<float *, 3> d;
    for (auto &p : d) TRY(cudaMalloc(&p, n * sizeof(float)));
    TRY(cudaMemcpy(d[0], u.data(), n * 4, cudaMemcpyHostToDevice));
    TRY(cudaMemcpy(d[1], u.data(), n * 4, cudaMemcpyHostToDevice));
    for (int s = 0; s < steps; s++) {
        wave<<<(n + 127) / 128, 128>>>(d[0], d[1], d[2], n, 0.25f);
        rotate(d.begin(), d.begin() + 2, d.end());
        for (int i = 1; i < n - 1; i++) un[i] = 2 * u[i] - up[i] + 0.25f * (u[i + 1] - 2 * u[i] + u[i - 1]);
        un[0] = un[n - 1] = 0;
        swap(up, u);
        swap(u, un);
    }
    TRY(cudaMemcpy(got.data(), d[0], n * 4, cudaMemcpyDeviceToHost));
    float worst = 0;
    for (int i = 0; i < n; i++) worst = max(worst, abs(got[i] - u[i]));
    cout << "wave: " << worst << endl;
    bad += !(worst < 1e-3f);

    const unsigned N = 100000;
    unsigned *bits;
    TRY(cudaMalloc(&bits, (N / 32 + 1) * 4));
    TRY(cudaMemset(bits, 0, (N / 32 + 1) * 4));
    sieve<<<(int)sqrt((double)N), 64>>>(bits, N);
    vector<unsigned> hb(N / 32 + 1);
    TRY(cudaMemcpy(hb.data(), bits, hb.size() * 4, cudaMemcpyDeviceToHost));
    int primes = 0;
    for (unsigned i = 2; i < N; i++) primes += !(hb[i / 32] >> i % 32 & 1);
    cout << primes << " primes below " << N << endl;
    bad += primes != 9592;

    unsigned long long *best, h_best = 0;
    TRY(cudaMallocManaged(&best, 64 * 8));
    *best = 0;
    collatz<<<(100000 + 255) / 256, 256>>>(best, 100000);
    TRY(cudaDeviceSynchronize());
    h_best = *best;
    cout << "Collatz: " << 0xffffffffu - (unsigned)h_best << " takes " << (h_best >> 32) << " steps" << endl;
    bad += 0xffffffffu - (unsigned)h_best != 77031 || h_best >> 32 != 350;

    pascal<<<1, 64>>>(bits, 30);
    TRY(cudaMemcpy(hb.data(), bits, 64 * 4, cudaMemcpyDeviceToHost));
    cout << "30 choose 15 = " << hb[15] << endl;
    bad += hb[15] != 155117520u || hb[31] != 0;
    fibonacci<<<1, 64>>>(best, 64);
    TRY(cudaDeviceSynchronize());
    cout << "fibonacci(63) = " << best[63] << endl;
    bad += best[63] != 6557470319842ull || best[10] != 55;

    Poly p{1, -2, 0, 3, 0.5};
    double *x, *y;
    TRY(cudaMallocManaged(&x, 100 * 8));
    TRY(cudaMallocManaged(&y, 100 * 8));
    for (int i = 0; i < 100; i++) x[i] = i * 0.1 - 5;
    horner<<<1, 32>>>(p, x, y, 100);
    TRY(cudaDeviceSynchronize());
    for (int i = 0; i < 100; i++) bad += fabs(y[i] - (1 - 2 * x[i] + 3 * pow(x[i], 3) + 0.5 * pow(x[i], 4))) > 1e-9;

    cuda::std::complex<float> *z;
    TRY(cudaMallocManaged(&z, 16 * sizeof(*z)));
    complex_roots<<<1, 16>>>(z, 16);
    TRY(cudaDeviceSynchronize());
    for (int k = 0; k < 16; k++) bad += !(fabs(z[k].real() - 1) < 1e-4f && fabs(z[k].imag()) < 1e-4f);

    int *plain;
    cuda::atomic<int, cuda::thread_scope_device> *a;
    TRY(cudaMallocManaged(&plain, sizeof *plain));
    TRY(cudaMallocManaged(&a, sizeof *a));
    *plain = 0;
    new (a) cuda::atomic<int, cuda::thread_scope_device>(5);
    counters<<<4, 100>>>(plain, a);
    TRY(cudaDeviceSynchronize());
    cout << "counters " << *plain << ' ' << a->load() << endl;
    bad += *plain != 800 || a->load() != 5 + 4 * 4950;
    for (auto q : d) cudaFree(q);
    cudaFree(bits); cudaFree(best); cudaFree(x); cudaFree(y); cudaFree(z); cudaFree(plain); cudaFree(a);
    cout << (bad ? "FAILED " + to_string(bad) : string("all fine")) << endl;
    return bad != 0;
}
