// Dot product, in the way of the classic textbook: a per-thread cache in shared memory, partial sums finished on the CPU.
#include <stdio.h>
#include <stdlib.h>

static void HandleError( cudaError_t err, const char *file, int line ) {
    if (err != cudaSuccess) {
        printf( "%s in %s at line %d\n", cudaGetErrorString( err ), file, line );
        exit( EXIT_FAILURE );
    }
}
#define HANDLE_ERROR( err ) (HandleError( err, __FILE__, __LINE__ ))
#define HANDLE_NULL( a ) {if (a == NULL) { \
                            printf( "Host memory failed in %s at line %d\n", \
                                    __FILE__, __LINE__ ); \
                            exit( EXIT_FAILURE );}}
#define imin(a,b) (a<b?a:b)

const int N = 33 * 1024;
const int threadsPerBlock = 256;
const int blocksPerGrid =
            imin( 32, (N+threadsPerBlock-1) / threadsPerBlock );

__global__ void dot( float *a, float *b, float *c ) {
    __shared__ float cache[threadsPerBlock];
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;

    float   temp = 0;
    while (tid < N) {
        temp += a[tid] * b[tid];
        tid += blockDim.x * gridDim.x;
    }

    // set the cache values
    cache[cacheIndex] = temp;

    // synchronize threads in this block
    __syncthreads();

    // for reductions, threadsPerBlock must be a power of 2
    int i = blockDim.x/2;
    while (i != 0) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
        i /= 2;
    }

    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

struct Lock {
    int *mutex;
    Lock( void ) {
        HANDLE_ERROR( cudaMalloc( (void**)&mutex, sizeof(int) ) );
        HANDLE_ERROR( cudaMemset( mutex, 0, sizeof(int) ) );
    }
    ~Lock( void ) { }
    void release( void ) { cudaFree( mutex ); }
    __device__ void lock( void ) {
        while( atomicCAS( mutex, 0, 1 ) != 0 );
        __threadfence();
    }
    __device__ void unlock( void ) {
        __threadfence();
        atomicExch( mutex, 0 );
    }
};

// the same, with the final sum guarded by a mutex
__global__ void dot_locked( Lock lock, float *a, float *b, volatile float *c ) {
    __shared__ float cache[threadsPerBlock];
    float temp = 0;
    for (int tid = threadIdx.x + blockIdx.x * blockDim.x; tid < N; tid += blockDim.x * gridDim.x)
        temp += a[tid] * b[tid];
    cache[threadIdx.x] = temp;
    __syncthreads();
    for (int i = blockDim.x/2; i != 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        lock.lock();
        *c += cache[0];
        lock.unlock();
    }
}

int main( void ) {
    float   *a, *b, c, *partial_c, c2 = 0;
    float   *dev_a, *dev_b, *dev_partial_c, *dev_c;

    a = (float*)malloc( N*sizeof(float) );
    HANDLE_NULL( a );
    b = (float*)malloc( N*sizeof(float) );
    HANDLE_NULL( b );
    partial_c = (float*)malloc( blocksPerGrid*sizeof(float) );
    HANDLE_NULL( partial_c );

    HANDLE_ERROR( cudaMalloc( (void**)&dev_a, N*sizeof(float) ) );
    HANDLE_ERROR( cudaMalloc( (void**)&dev_b, N*sizeof(float) ) );
    HANDLE_ERROR( cudaMalloc( (void**)&dev_partial_c, blocksPerGrid*sizeof(float) ) );
    HANDLE_ERROR( cudaMalloc( (void**)&dev_c, sizeof(float) ) );

    for (int i=0; i<N; i++) {
        a[i] = i;
        b[i] = i*2;
    }

    HANDLE_ERROR( cudaMemcpy( dev_a, a, N*sizeof(float), cudaMemcpyHostToDevice ) );
    HANDLE_ERROR( cudaMemcpy( dev_b, b, N*sizeof(float), cudaMemcpyHostToDevice ) );
    HANDLE_ERROR( cudaMemcpy( dev_c, &c2, sizeof(float), cudaMemcpyHostToDevice ) );

    dot<<<blocksPerGrid,threadsPerBlock>>>( dev_a, dev_b, dev_partial_c );
    Lock lock;
    dot_locked<<<blocksPerGrid,threadsPerBlock>>>( lock, dev_a, dev_b, dev_c );

    HANDLE_ERROR( cudaMemcpy( partial_c, dev_partial_c, blocksPerGrid*sizeof(float), cudaMemcpyDeviceToHost ) );
    HANDLE_ERROR( cudaMemcpy( &c2, dev_c, sizeof(float), cudaMemcpyDeviceToHost ) );

    // finish up on the CPU side
    c = 0;
    for (int i=0; i<blocksPerGrid; i++) {
        c += partial_c[i];
    }

    #define sum_squares(x)  (x*(x+1)*(2*x+1)/6)
    float want = 2 * sum_squares( (float)(N - 1) );
    printf( "Does GPU value %.6g = %.6g?\n", c, want );
    printf( "and with the lock:  %.6g\n", c2 );
    int ok = c > 0.9999f*want && c < 1.0001f*want && c2 > 0.9999f*want && c2 < 1.0001f*want;

    lock.release();
    cudaFree( dev_a );
    cudaFree( dev_b );
    cudaFree( dev_partial_c );
    cudaFree( dev_c );
    free( a );
    free( b );
    free( partial_c );
    puts( ok ? "Yes, it does." : "No, it does not!" );
    return ok ? 0 : 1;
}
