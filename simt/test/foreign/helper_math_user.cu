// A soft-body cube: float3/float4 algebra with the operators that everybody writes for himself, own overloads of min, max, clamp,
// atomicMax(float), swap; typedefs and macros with greedy names.
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;

#define PI 3.14159265358979f
#define N 4096
#define T float
#define SQR(x) ((x) * (x))

#ifndef __CUDACC__
inline float fminf(float a, float b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#endif

inline __host__ __device__ float2 make_float2(float s) { return make_float2(s, s); }
inline __host__ __device__ float3 make_float3(float s) { return make_float3(s, s, s); }
inline __host__ __device__ float3 make_float3(float4 a) { return make_float3(a.x, a.y, a.z); }
inline __host__ __device__ float4 make_float4(float3 a, float w) { return make_float4(a.x, a.y, a.z, w); }
inline __host__ __device__ int3 make_int3(float3 a) { return make_int3(int(a.x), int(a.y), int(a.z)); }
inline __host__ __device__ float3 operator-(float3 &a) { return make_float3(-a.x, -a.y, -a.z); }
inline __host__ __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
inline __host__ __device__ void operator+=(float3 &a, float3 b) { a.x += b.x; a.y += b.y; a.z += b.z; }
inline __host__ __device__ float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
inline __host__ __device__ float3 operator*(float3 a, float b) { return make_float3(a.x * b, a.y * b, a.z * b); }
inline __host__ __device__ float3 operator*(float b, float3 a) { return make_float3(b * a.x, b * a.y, b * a.z); }
inline __host__ __device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
inline __host__ __device__ bool operator==(const int3 &a, const int3 &b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
inline __host__ __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline __host__ __device__ float3 cross(float3 a, float3 b) { return make_float3(a.y*b.z - a.z*b.y, a.z*b.x - a.x*b.z, a.x*b.y - a.y*b.x); }
inline __host__ __device__ float length(float3 v) { return sqrtf(dot(v, v)); }
inline __host__ __device__ float3 normalize(float3 v)
{
#ifdef __CUDA_ARCH__
    float invLen = rsqrtf(dot(v, v));
#else
    float invLen = 1.0f / sqrtf(dot(v, v));
#endif
    return v * invLen;
}
inline __device__ __host__ float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
inline __device__ __host__ int clamp(int f, int a, int b) { return max(a, min(f, b)); }
inline __device__ __host__ float3 clamp(float3 v, float a, float b) { return make_float3(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b)); }
inline __device__ __host__ float lerp(float a, float b, float t) { return a + t * (b - a); }
inline __device__ __host__ float3 lerp(float3 a, float3 b, float t) { return a + t * (b - a); }
inline __host__ __device__ float3 fminf(float3 a, float3 b) { return make_float3(fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z)); }
inline __host__ __device__ float3 fmaxf(float3 a, float3 b) { return make_float3(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z)); }
inline __host__ __device__ float3 floorf(float3 v) { return make_float3(floorf(v.x), floorf(v.y), floorf(v.z)); }
inline __host__ __device__ float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
inline __device__ __host__ float smoothstep(float a, float b, float x)
{
    float y = clamp((x - a) / (b - a), 0.0f, 1.0f);
    return (y * y * (3.0f - (2.0f * y)));
}

// what CUDA does not have
__device__ static float atomicMax(float *address, float val)
{
    int *address_as_i = (int *)address;
    int old = *address_as_i, assumed;
    do {
        assumed = old;
        old = ::atomicCAS(address_as_i, assumed, __float_as_int(::fmaxf(val, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}
__device__ __forceinline__ float atomicMin(float *addr, float value)
{
    return value >= 0 ? __int_as_float(atomicMin((int *)addr, __float_as_int(value))) : __uint_as_float(atomicMax((uint *)addr, __float_as_uint(value)));
}
template <typename U> __host__ __device__ inline void swap(U &a, U &b) { U c(a); a = b; b = c; }

struct __align__(16) Params { float3 gravity; float dt; float3 lo, hi; float damping; uint steps; };
__constant__ Params params;

__host__ __device__ void step_particle(float3 &p, float3 &v, const Params &q)
{
    v += q.gravity * q.dt;
    p += v * q.dt;
    float3 in = clamp(p, -1.0f, 1.0f);
    if (p.x != in.x) v.x *= -q.damping;
    if (p.y != in.y) v.y *= -q.damping;
    if (p.z != in.z) v.z *= -q.damping;
    p = fminf(fmaxf(in, q.lo), q.hi);
}

__global__ void integrate(float4 *pos, float4 *vel, float *extremes, uint n)
{
    uint index = __umul24(blockIdx.x, blockDim.x) + threadIdx.x;
    if (index >= n) return;
    volatile float4 posData = pos[index];
    volatile float4 velData = vel[index];
    float3 p = make_float3(posData.x, posData.y, posData.z), v = make_float3(velData.x, velData.y, velData.z);
    for (uint s = 0; s < params.steps; s++) step_particle(p, v, params);
    pos[index] = make_float4(p, posData.w);
    vel[index] = make_float4(v, velData.w);
    atomicMax(&extremes[0], length(p));
    atomicMin(&extremes[1], length(p));
    T a = length(cross(p, v)), b = SQR(dot(normalize(p + make_float3(2.f)), make_float3(0, 1, 0)));
    swap(a, b);
    if (b < 0 || a > 1.001f) extremes[2] = 1;
}

int main(int, char **)
{
    static float4 pos[N], vel[N], gp[N], gv[N];
    Params q = {make_float3(0, -9.81f, 0.5f), 0.002f, make_float3(-1), make_float3(1, 1, 1), 0.8f, 60};
    for (int i = 0; i < N; i++) {
        pos[i] = make_float4(sinf(i * PI / 100), cosf(i * 0.37f), (i % 200) / 100.f - 1.f, i);
        vel[i] = make_float4(normalize(make_float3(i % 7 + 1, i % 5, i % 3)), 1.f);
    }
    float extremes[3] = {0, 1e30f, 0}, *d_ext, want[2] = {0, 1e30f}, worst = 0;
    float4 *d_pos, *d_vel;
    cudaMalloc((void **)&d_pos, sizeof pos); cudaMalloc((void **)&d_vel, sizeof vel); cudaMalloc((void **)&d_ext, sizeof extremes);
    cudaMemcpy(d_pos, pos, sizeof pos, cudaMemcpyHostToDevice);
    cudaMemcpy(d_vel, vel, sizeof vel, cudaMemcpyHostToDevice);
    cudaMemcpy(d_ext, extremes, sizeof extremes, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(params, &q, sizeof(Params));
    const uint threads = std::min((uint)256, (uint)N);
    integrate<<<(N + threads - 1) / threads, threads>>>(d_pos, d_vel, d_ext, N);
    cudaMemcpy(gp, d_pos, sizeof gp, cudaMemcpyDeviceToHost);
    cudaMemcpy(gv, d_vel, sizeof gv, cudaMemcpyDeviceToHost);
    cudaError_t e = cudaMemcpy(extremes, d_ext, sizeof extremes, cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++) {
        float3 p = make_float3(pos[i]), v = make_float3(vel[i]);
        for (uint s = 0; s < q.steps; s++) step_particle(p, v, q);
        worst = std::max(worst, length(p - make_float3(gp[i])));
        want[0] = std::max(want[0], length(make_float3(gp[i])));
        want[1] = std::min(want[1], length(make_float3(gp[i])));
    }
    bool ok = e == cudaSuccess && worst < 2e-2f && fabsf(extremes[0] - want[0]) < 1e-5f && fabsf(extremes[1] - want[1]) < 1e-5f && extremes[2] == 0;
    float3 r = reflect(make_float3(1, -1, 0), make_float3(0, 1, 0)), l = lerp(make_float3(0), make_float3(2), 0.5f);
    ok = ok && r.y == 1 && l.z == 1 && smoothstep(0, 1, 0.5f) == 0.5f && make_int3(floorf(make_float3(2.5f))) == make_int3(2, 2, 2);
    printf("worst %g, extremes %g %g (%g %g) %s\n%s\n", worst, extremes[0], extremes[1], want[0], want[1], cudaGetErrorString(e), ok ? "vectors OK" : "vectors FAILED");
    cudaFree(d_pos); cudaFree(d_vel); cudaFree(d_ext);
    return !ok;
}
