// Memory on the device's own heap: malloc and free in kernels, new and delete of arrays and of polymorphic objects, memcpy and
// memset in kernels, placement new, a per-block allocation shared by its threads, a linked list built on the device.
#include <assert.h>
#include <algorithm>
#include <new>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define NUM_BLOCKS 20

__device__ int *dataptr[NUM_BLOCKS]; // Per-block pointer

__global__ void allocmem()
{
    // Only the first thread in the block does the allocation since we want only one allocation per block.
    if (threadIdx.x == 0)
        dataptr[blockIdx.x] = (int *)malloc(blockDim.x * sizeof(int));
    __syncthreads();
    // Check for failure
    if (dataptr[blockIdx.x] == NULL) return;
    // Zero the data with all threads in parallel
    dataptr[blockIdx.x][threadIdx.x] = 0;
}

__global__ void usemem()
{
    int *ptr = dataptr[blockIdx.x];
    if (ptr != NULL) ptr[threadIdx.x] += threadIdx.x;
}

__global__ void freemem(int *sums)
{
    int *ptr = dataptr[blockIdx.x];
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    if (ptr != NULL) atomicAdd(&s, ptr[threadIdx.x]);
    __syncthreads();
    // Only free from one thread!
    if (threadIdx.x == 0) { free(ptr); sums[blockIdx.x] = s; }
}

template <class T>
class Container {
public:
    __device__ Container() {}
    __device__ virtual ~Container() {}
    __device__ virtual void push(T e) = 0;
    __device__ virtual bool pop(T &e) = 0;
};

template <class T>
class Vector : public Container<T> {
public:
    __device__ Vector(int max_size) : m_top(-1) { m_data = new T[max_size]; }
    __device__ ~Vector() { delete[] m_data; }
    __device__ virtual void push(T e)
    {
        int idx = atomicAdd(&m_top, 1);
        m_data[idx + 1] = e;
    }
    __device__ virtual bool pop(T &e)
    {
        int idx = atomicAdd(&m_top, -1);
        if (idx >= 0) e = m_data[idx];
        return idx >= 0;
    }
private:
    int m_top;
    T *m_data;
};

__global__ void vectorCreate(Container<int> **g_container, int max_size) { *g_container = new Vector<int>(max_size); }
__global__ void containerFill(Container<int> **c) { if (threadIdx.x % 2 == 0) (*c)->push(blockIdx.x * blockDim.x + threadIdx.x); }
__global__ void containerConsume(Container<int> **c, int *d_result)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x, v;
    d_result[idx] = (*c)->pop(v) ? v : -1;
}
__global__ void containerDelete(Container<int> **g_container) { delete *g_container; }

struct Particle {
    float x[3];
    int id;
    __device__ Particle(int i) : id(i) { for (int k = 0; k < 3; k++) x[k] = i + k * 0.25f; }
    __device__ float sum() const { return x[0] + x[1] + x[2]; }
};

struct Item { int value; Item *next; };

__global__ void list_and_scratch(float *out, int *order)
{
    __shared__ Item *head;
    __shared__ __align__(16) char raw[64 * sizeof(Particle)];
    const int t = threadIdx.x;
    if (t == 0) head = nullptr;
    // objects in raw shared memory
    Particle *p = new (raw + t * sizeof(Particle)) Particle(t);
    __syncthreads();
    // scratch of its own for every thread
    float *scratch = (float *)malloc((t + 1) * sizeof(float));
    memset(scratch, 0, (t + 1) * sizeof(float));
    memcpy(scratch, p->x, min(t + 1, 3) * sizeof(float));
    float s = 0;
    for (int i = 0; i <= t; i++) s += scratch[i];
    free(scratch);
    out[t] = s + ((Particle *)raw)[(t + 1) % blockDim.x].sum();
    // a lock-free push of one item each
    Item *item = new Item{t, nullptr}, *old;
    do {
        item->next = old = *(Item *volatile *)&head;
    } while (atomicCAS((unsigned long long *)&head, (unsigned long long)old, (unsigned long long)item) != (unsigned long long)old);
    __syncthreads();
    if (t == 0)
        for (int k = 0; head; k++) { Item *i = head; head = i->next; order[k] = i->value; delete i; }
}

int main()
{
    cudaError_t e = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 * 1024 * 1024);
    size_t heap = 0;
    cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize);
    printf("heap of %zu bytes, %s\n", heap, cudaGetErrorString(e));
    int *sums, bad = 0;
    cudaMallocManaged(&sums, NUM_BLOCKS * sizeof(int));
    allocmem<<<NUM_BLOCKS, 10>>>();
    usemem<<<NUM_BLOCKS, 10>>>();
    usemem<<<NUM_BLOCKS, 10>>>();
    usemem<<<NUM_BLOCKS, 10>>>();
    freemem<<<NUM_BLOCKS, 10>>>(sums);
    cudaDeviceSynchronize();
    for (int b = 0; b < NUM_BLOCKS; b++) bad += sums[b] != 135;

    Container<int> **d_container;
    int *d_result, n = 8 * 64;
    cudaMalloc((void **)&d_container, sizeof(Container<int> *));
    cudaMalloc(&d_result, n * sizeof(int));
    vectorCreate<<<1, 1>>>(d_container, n);
    containerFill<<<8, 64>>>(d_container);
    containerConsume<<<8, 64>>>(d_container, d_result);
    containerDelete<<<1, 1>>>(d_container);
    std::vector<int> result(n);
    cudaMemcpy(result.data(), d_result, n * sizeof(int), cudaMemcpyDeviceToHost);
    std::sort(result.begin(), result.end());
    for (int i = 0; i < n; i++) bad += result[i] != (i < n / 2 ? -1 : (i - n / 2) * 2);

    float *out;
    int *order;
    cudaMallocManaged(&out, 64 * sizeof(float));
    cudaMallocManaged(&order, 64 * sizeof(int));
    list_and_scratch<<<1, 64>>>(out, order);
    e = cudaDeviceSynchronize();
    std::sort(order, order + 64);
    for (int t = 0; t < 64; t++) {
        float s = 0, u = 0;
        for (int k = 0; k < 3; k++) { if (k <= t) s += t + k * 0.25f; u += (t + 1) % 64 + k * 0.25f; }
        bad += out[t] != s + u || order[t] != t;
    }
    cudaFree(sums); cudaFree(d_container); cudaFree(d_result); cudaFree(out); cudaFree(order);
    printf("%s, %d wrong\n%s\n", cudaGetErrorString(e), bad, bad || e ? "device heap FAILED" : "device heap OK");
    return bad || e;
}
