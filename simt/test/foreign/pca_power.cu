// Principal components by power iteration with deflation, cuBLAS level 1 and 2 in double, custom kernels for the rest.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(err)                                                                            \
    do {                                                                                           \
        cudaError_t err_ = (err);                                                                  \
        if (err_ != cudaSuccess) {                                                                 \
            std::printf("CUDA error %d at %s:%d\n", err_, __FILE__, __LINE__);                     \
            std::exit(EXIT_FAILURE);                                                               \
        }                                                                                          \
    } while (0)
#define CUBLAS_CHECK(err)                                                                          \
    do {                                                                                           \
        cublasStatus_t err_ = (err);                                                               \
        if (err_ != CUBLAS_STATUS_SUCCESS) {                                                       \
            std::printf("cublas error %d at %s:%d\n", err_, __FILE__, __LINE__);                   \
            std::exit(EXIT_FAILURE);                                                               \
        }                                                                                          \
    } while (0)

// X is n x d, column-major; one block per column
__global__ void center_columns(double *X, int n) {
    extern __shared__ double partial[];
    double *col = X + (size_t)blockIdx.x * n, sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += col[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s; s >>= 1) {
        if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
        __syncthreads();
    }
    const double mean = partial[0] / n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) col[i] -= mean;
}

// C -= lambda v v^T
__global__ void deflate(double *C, const double *v, double lambda, int d) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < d && j < d) C[j * d + i] -= lambda * v[i] * v[j];
}

int main() {
    const int n = 2000, d = 24, components = 3;
    std::vector<double> X(n * d), basis(d * components);
    srand48(9);
    // data with three dominant, orthogonal directions, of standard deviation 10, 6 and 3, noise 0.1
    const double sd[components] = {10, 6, 3};
    for (int c = 0; c < components; c++)
        for (int j = 0; j < d; j++) basis[c * d + j] = (j % components == c) / std::sqrt((double)d / components);
    auto gauss = [] { double s = -6; for (int i = 0; i < 12; i++) s += drand48(); return s; };
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++) X[j * n + i] = 0.1 * gauss() + j;
        for (int c = 0; c < components; c++) {
            double g = sd[c] * gauss();
            for (int j = 0; j < d; j++) X[j * n + i] += g * basis[c * d + j];
        }
    }

    cublasHandle_t handle;
    CUBLAS_CHECK(cublasCreate(&handle));
    double *dX, *dC, *dv, *dw;
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void **>(&dX), sizeof(double) * n * d));
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void **>(&dC), sizeof(double) * d * d));
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void **>(&dv), sizeof(double) * d));
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void **>(&dw), sizeof(double) * d));
    CUBLAS_CHECK(cublasSetMatrix(n, d, sizeof(double), X.data(), n, dX, n));
    center_columns<<<d, 128, 128 * sizeof(double)>>>(dX, n);
    CUDA_CHECK(cudaGetLastError());
    const double one = 1, zero = 0, inv = 1.0 / (n - 1);
    CUBLAS_CHECK(cublasDgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, d, d, n, &inv, dX, n, dX, n, &zero, dC, d));

    bool ok = true;
    for (int c = 0; c < components; c++) {
        std::vector<double> v(d, 1.0);
        for (int j = 0; j < d; j++) v[j] += 0.1 * drand48();
        CUBLAS_CHECK(cublasSetVector(d, sizeof(double), v.data(), 1, dv, 1));
        double lambda = 0, norm;
        int it = 0;
        for (; it < 1000; it++) {
            CUBLAS_CHECK(cublasDgemv(handle, CUBLAS_OP_N, d, d, &one, dC, d, dv, 1, &zero, dw, 1));
            double rayleigh;
            CUBLAS_CHECK(cublasDdot(handle, d, dv, 1, dw, 1, &rayleigh));
            CUBLAS_CHECK(cublasDnrm2(handle, d, dw, 1, &norm));
            const double scale = 1.0 / norm;
            CUBLAS_CHECK(cublasDscal(handle, d, &scale, dw, 1));
            CUBLAS_CHECK(cublasDcopy(handle, d, dw, 1, dv, 1));
            if (it > 3 && std::fabs(rayleigh - lambda) < 1e-12 * rayleigh) break;
            lambda = rayleigh;
        }
        CUBLAS_CHECK(cublasGetVector(d, sizeof(double), dv, 1, v.data(), 1));
        double dot = 0;
        for (int j = 0; j < d; j++) dot += v[j] * basis[c * d + j];
        std::printf("component %d: variance %.3f (about %.0f), |cos| with the truth %.6f, %d iterations\n", c, lambda, sd[c] * sd[c],
                    std::fabs(dot), it);
        ok = ok && std::fabs(dot) > 0.995 && std::fabs(lambda / (sd[c] * sd[c]) - 1) < 0.15;
        deflate<<<dim3((d + 15) / 16, (d + 15) / 16), dim3(16, 16)>>>(dC, dv, lambda, d);
        CUDA_CHECK(cudaGetLastError());
    }
    // what is left is noise
    int imax;
    double asum;
    CUBLAS_CHECK(cublasIdamax(handle, d * d, dC, 1, &imax));
    CUBLAS_CHECK(cublasDasum(handle, d * d, dC, 1, &asum));
    std::vector<double> C(d * d);
    CUBLAS_CHECK(cublasGetMatrix(d, d, sizeof(double), dC, d, C.data(), d));
    std::printf("left over: largest %.4f at %d, sum %.4f\n", C[imax - 1], imax, asum);
    ok = ok && std::fabs(C[imax - 1]) < 0.05;
    CUBLAS_CHECK(cublasDestroy(handle));
    CUDA_CHECK(cudaFree(dX)); CUDA_CHECK(cudaFree(dC)); CUDA_CHECK(cudaFree(dv)); CUDA_CHECK(cudaFree(dw));
    std::puts(ok ? "PCA correct" : "PCA wrong");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
