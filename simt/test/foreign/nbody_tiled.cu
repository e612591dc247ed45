// All-pairs N-body: one body per thread, tiles of float4 in shared memory; energy drift and comparison with the host.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <stdexcept>

#define SOFTENING 1e-3f
#define CHECK(call)                                                              \
do {                                                                             \
    const cudaError_t error = call;                                              \
    if (error != cudaSuccess) {                                                  \
        printf("Error: %s:%d, ", __FILE__, __LINE__);                            \
        printf("code: %d, reason: %s\n", error, cudaGetErrorString(error));      \
        exit(1);                                                                 \
    }                                                                            \
} while (0)

inline __host__ __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
inline __host__ __device__ float3 operator*(float3 a, float s) { return make_float3(a.x * s, a.y * s, a.z * s); }
inline __host__ __device__ void operator+=(float3 &a, const float3 &b) { a.x += b.x; a.y += b.y; a.z += b.z; }

__host__ __device__ inline float3 bodyBodyInteraction(float3 ai, float4 bi, float4 bj)
{
    float3 r;
    // r_ij  [3 FLOPS]
    r.x = bj.x - bi.x;
    r.y = bj.y - bi.y;
    r.z = bj.z - bi.z;
    // distSqr = dot(r_ij, r_ij) + EPS^2  [6 FLOPS]
    float distSqr = r.x * r.x + r.y * r.y + r.z * r.z;
    distSqr += SOFTENING;
    // invDistCube =1/distSqr^(3/2)  [4 FLOPS (2 mul, 1 sqrt, 1 inv)]
#ifdef __CUDA_ARCH__
    float invDist = rsqrtf(distSqr);
#else
    float invDist = 1.0f / sqrtf(distSqr);
#endif
    float invDistCube = invDist * invDist * invDist;
    // s = m_j * invDistCube [1 FLOP]
    float s = bj.w * invDistCube;
    // a_i =  a_i + s * r_ij [6 FLOPS]
    ai.x += r.x * s;
    ai.y += r.y * s;
    ai.z += r.z * s;
    return ai;
}

template <int P>
__device__ float3 computeBodyAccel(float4 bodyPos, const float4 *positions, int numTiles)
{
    __shared__ float4 sharedPos[P];
    float3 acc = {0.0f, 0.0f, 0.0f};
    for (int tile = 0; tile < numTiles; tile++) {
        sharedPos[threadIdx.x] = positions[tile * P + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (unsigned int counter = 0; counter < P; counter++) acc = bodyBodyInteraction(acc, bodyPos, sharedPos[counter]);
        __syncthreads();
    }
    return acc;
}

template <int P>
__global__ void integrateBodies(float4 *__restrict__ newPos, const float4 *__restrict__ oldPos, float4 *vel, int n, float dt)
{
    const int index = blockIdx.x * P + threadIdx.x;
    float4 position = oldPos[index];
    float3 accel = computeBodyAccel<P>(position, oldPos, n / P);
    float4 velocity = vel[index];
    float3 v = make_float3(velocity.x, velocity.y, velocity.z);
    v += accel * dt;
    position.x += v.x * dt;
    position.y += v.y * dt;
    position.z += v.z * dt;
    newPos[index] = position;
    vel[index] = make_float4(v.x, v.y, v.z, velocity.w);
}

int main(int argc, const char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 1024, steps = 3;
    const float dt = 0.005f;
    if (n % 128) throw std::invalid_argument("multiples of 128 only");
    std::vector<float4> pos(n), vel(n, make_float4(0, 0, 0, 0)), out(n);
    for (auto &p : pos) {
        auto r = [] { return 2.0f * (rand() / (float)RAND_MAX) - 1.0f; };
        p = {r(), r(), r(), 1.0f / n};
    }
    float4 *d_pos[2], *d_vel;
    CHECK(cudaMalloc(&d_pos[0], n * sizeof(float4)));
    CHECK(cudaMalloc(&d_pos[1], n * sizeof(float4)));
    CHECK(cudaMalloc(&d_vel, n * sizeof(float4)));
    CHECK(cudaMemcpy(d_pos[0], pos.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_vel, vel.data(), n * sizeof(float4), cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    CHECK(cudaEventCreateWithFlags(&start, cudaEventBlockingSync));
    CHECK(cudaEventCreateWithFlags(&stop, cudaEventBlockingSync));
    CHECK(cudaEventRecord(start, 0));
    for (int s = 0; s < steps; s++) {
        if (s & 1) integrateBodies<128><<<n / 128, 128>>>(d_pos[(s + 1) & 1], d_pos[s & 1], d_vel, n, dt);
        else integrateBodies<64><<<n / 64, 64>>>(d_pos[(s + 1) & 1], d_pos[s & 1], d_vel, n, dt);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(stop, 0));
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("%d bodies, total time for %d iterations: %.3f ms, = %.3f billion interactions per second\n", n, steps, ms,
           (double)n * n * steps * 1e-6 / ms);
    CHECK(cudaMemcpy(out.data(), d_pos[steps & 1], n * sizeof(float4), cudaMemcpyDeviceToHost));

    for (int s = 0; s < steps; s++) {
        std::vector<float4> next(n);
        for (int i = 0; i < n; i++) {
            float3 a = make_float3(0, 0, 0);
            for (int j = 0; j < n; j++) a = bodyBodyInteraction(a, pos[i], pos[j]);
            vel[i].x += a.x * dt; vel[i].y += a.y * dt; vel[i].z += a.z * dt;
            next[i] = make_float4(pos[i].x + vel[i].x * dt, pos[i].y + vel[i].y * dt, pos[i].z + vel[i].z * dt, pos[i].w);
        }
        pos.swap(next);
    }
    float maxd = 0;
    for (int i = 0; i < n; i++)
        maxd = fmaxf(maxd, fmaxf(fabsf(out[i].x - pos[i].x), fmaxf(fabsf(out[i].y - pos[i].y), fabsf(out[i].z - pos[i].z))));
    printf("max difference from the CPU: %g\n%s\n", maxd, maxd < 1e-4f ? "OK" : "NOT OK");
    CHECK(cudaFree(d_pos[0])); CHECK(cudaFree(d_pos[1])); CHECK(cudaFree(d_vel));
    return maxd < 1e-4f ? 0 : 1;
}
