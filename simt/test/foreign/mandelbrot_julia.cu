// Fractals: a complex class with device operators, Julia and Mandelbrot sets, ASCII picture, escape counts against the CPU.
#include <stdio.h>
#include <stdlib.h>
#include <cuComplex.h>

#define DIM 240

struct complexf {
    float   r;
    float   i;
    __host__ __device__ complexf( float a, float b ) : r(a), i(b)  {}
    __host__ __device__ float magnitude2( void ) { return r * r + i * i; }
    __host__ __device__ complexf operator*(const complexf& a) { return complexf(r*a.r - i*a.i, i*a.r + r*a.i); }
    __host__ __device__ complexf operator+(const complexf& a) { return complexf(r+a.r, i+a.i); }
};

__host__ __device__ int julia( int x, int y ) {
    const float scale = 1.5;
    float jx = scale * (float)(DIM/2 - x)/(DIM/2);
    float jy = scale * (float)(DIM/2 - y)/(DIM/2);

    complexf c(-0.8, 0.156);
    complexf a(jx, jy);

    int i = 0;
    for (i=0; i<200; i++) {
        a = a * a + c;
        if (a.magnitude2() > 1000)
            return 0;
    }
    return 1;
}

__global__ void julia_kernel( unsigned char *ptr ) {
    // map from blockIdx to pixel position: one block per pixel
    int x = blockIdx.x;
    int y = blockIdx.y;
    int offset = x + y * gridDim.x;

    int juliaValue = julia( x, y );
    ptr[offset*4 + 0] = 255 * juliaValue;
    ptr[offset*4 + 1] = 0;
    ptr[offset*4 + 2] = 0;
    ptr[offset*4 + 3] = 255;
}

__host__ __device__ int mandel(cuDoubleComplex c, int max_iter)
{
    cuDoubleComplex z = make_cuDoubleComplex(0, 0);
    int k = 0;
    while (k < max_iter && cuCreal(z) * cuCreal(z) + cuCimag(z) * cuCimag(z) <= 4.0) {
        z = cuCadd(cuCmul(z, z), c);
        ++k;
    }
    return k;
}

__global__ void mandel_kernel(int *out, int w, int h, double x0, double y0, double dx, double dy, int max_iter)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px < w && py < h) out[py * w + px] = mandel(make_cuDoubleComplex(x0 + dx * px, y0 + dy * py), max_iter);
}

int main( void ) {
    unsigned char *dev_bitmap, *bitmap = (unsigned char*)malloc( DIM * DIM * 4 );
    if (cudaMalloc( (void**)&dev_bitmap, DIM * DIM * 4 ) != cudaSuccess) return 1;
    dim3    grid(DIM,DIM);
    julia_kernel<<<grid,1>>>( dev_bitmap );
    cudaMemcpy( bitmap, dev_bitmap, DIM * DIM * 4, cudaMemcpyDeviceToHost );
    cudaFree( dev_bitmap );
    int inside = 0, differ = 0;
    for (int y=0; y<DIM; y++)
        for (int x=0; x<DIM; x++) {
            int v = bitmap[(y*DIM + x)*4] == 255;
            inside += v;
            differ += v != julia(x, y);
        }
    for (int y = DIM/5; y < DIM*4/5; y += 12) {
        for (int x = 0; x < DIM; x += 4) putchar( bitmap[(y*DIM + x)*4] ? '#' : '.' );
        putchar('\n');
    }
    printf( "Julia: %d points inside, %d differ from the CPU\n", inside, differ );

    const int w = 160, h = 96, iters = 256;
    int *d, *v = (int*)malloc(w * h * sizeof(int)), diff2 = 0;
    cudaMalloc(&d, w * h * sizeof(int));
    dim3 threads(16, 8);
    mandel_kernel << < dim3((w + threads.x - 1) / threads.x, (h + threads.y - 1) / threads.y), threads >> > (d, w, h, -2.2, -1.2, 3.2 / w, 2.4 / h, iters);
    if (cudaMemcpy(v, d, w * h * sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    long sum = 0;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            sum += v[y * w + x];
            diff2 += v[y * w + x] != mandel(make_cuDoubleComplex(-2.2 + 3.2 / w * x, -1.2 + 2.4 / h * y), iters);
        }
    printf("Mandelbrot: %ld iterations, %d pixels differ\n", sum, diff2);
    cudaFree(d);
    free(v);
    free(bitmap);
    // a pixel on the edge may fall to either side when a multiply and an add are fused
    int ok = differ <= DIM * DIM / 200 && inside > 100 && diff2 <= w * h / 100;
    puts(ok ? "OK" : "BAD");
    return ok ? 0 : 1;
}
