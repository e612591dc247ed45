#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <runner.cuh>
#include <vector>

#define cudaCheck(err) (cudaCheck(err, __FILE__, __LINE__))

int main(int argc, char **argv) {
  int deviceIdx = 0;
  if (getenv("DEVICE") != NULL) {
    deviceIdx = atoi(getenv("DEVICE"));
  }
  cudaCheck(cudaSetDevice(deviceIdx));
  CudaDeviceInfo();

  cublasHandle_t handle;
  if (cublasCreate(&handle)) {
    std::cerr << "Create cublas handle error." << std::endl;
    exit(EXIT_FAILURE);
  };

  float elapsed_time;
  cudaEvent_t beg, end;
  cudaEventCreate(&beg);
  cudaEventCreate(&end);

  std::vector<int> SIZE = {128, 256};
  long m, n, k, max_size = SIZE[SIZE.size() - 1];
  float alpha = 0.5, beta = 3.0;  // GEMM input parameters, C=α*AB+β*C

  float *A = nullptr, *B = nullptr, *C = nullptr, *C_ref = nullptr;
  float *dA = nullptr, *dB = nullptr, *dC = nullptr, *dC_ref = nullptr;
  A = (float *)malloc(sizeof(float) * max_size * max_size);
  B = (float *)malloc(sizeof(float) * max_size * max_size);
  C = (float *)malloc(sizeof(float) * max_size * max_size);
  C_ref = (float *)malloc(sizeof(float) * max_size * max_size);
  randomize_matrix(A, max_size * max_size);
  randomize_matrix(B, max_size * max_size);
  randomize_matrix(C, max_size * max_size);
  cudaCheck(cudaMalloc((void **)&dA, sizeof(float) * max_size * max_size));
  cudaCheck(cudaMalloc((void **)&dB, sizeof(float) * max_size * max_size));
  cudaCheck(cudaMalloc((void **)&dC, sizeof(float) * max_size * max_size));
  cudaCheck(cudaMalloc((void **)&dC_ref, sizeof(float) * max_size * max_size));
  cudaCheck(cudaMemcpy(dA, A, sizeof(float) * max_size * max_size, cudaMemcpyHostToDevice));
  cudaCheck(cudaMemcpy(dB, B, sizeof(float) * max_size * max_size, cudaMemcpyHostToDevice));

  int first = argc > 1 ? std::stoi(argv[1]) : 1, last = argc > 1 ? first : 7;
  for (int kernel_num = first; kernel_num <= last; kernel_num++) {
    for (int size : SIZE) {
      m = n = k = size;
      cudaCheck(cudaMemcpy(dC, C, sizeof(float) * m * n, cudaMemcpyHostToDevice));
      cudaCheck(cudaMemcpy(dC_ref, C, sizeof(float) * m * n, cudaMemcpyHostToDevice));
      run_kernel(0, m, n, k, alpha, dA, dB, beta, dC_ref, handle);
      cudaEventRecord(beg);
      run_kernel(kernel_num, m, n, k, alpha, dA, dB, beta, dC, handle);
      cudaEventRecord(end);
      cudaEventSynchronize(beg);
      cudaEventSynchronize(end);
      cudaCheck(cudaDeviceSynchronize());
      cudaCheck(cudaGetLastError());  // Check for async errors during kernel run
      cudaEventElapsedTime(&elapsed_time, beg, end);
      elapsed_time /= 1000.;
      std::vector<float> out(m * n);
      cudaMemcpy(out.data(), dC, sizeof(float) * m * n, cudaMemcpyDeviceToHost);
      cudaMemcpy(C_ref, dC_ref, sizeof(float) * m * n, cudaMemcpyDeviceToHost);
      if (!verify_matrix(C_ref, out.data(), m * n)) {
        std::cout << "Failed to pass the correctness verification against NVIDIA cuBLAS." << std::endl;
        exit(EXIT_FAILURE);
      }
      long flops = 2 * m * n * k;
      printf("kernel %d: Average elapsed time: (%7.6f) s, performance: (%7.1f) GFLOPS. size: (%ld).\n", kernel_num,
             elapsed_time, (flops * 1e-9) / elapsed_time, m);
      fflush(stdout);
    }
  }
  // and cuBLAS itself against plain loops, on a corner
  float worst = 0;
  cudaMemcpy(C_ref, dC_ref, sizeof(float) * m * n, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++) sum += (double)A[i * k + l] * B[l * n + j];
      worst = std::max(worst, (float)std::abs(alpha * sum + beta * C[i * n + j] - C_ref[i * n + j]));
    }
  std::cout << "cuBLAS against loops: " << worst << std::endl;

  free(A); free(B); free(C); free(C_ref);
  cudaFree(dA); cudaFree(dB); cudaFree(dC); cudaFree(dC_ref);
  cublasDestroy(handle);
  if (worst > 0.01f) return 1;
  std::cout << "all kernels verified" << std::endl;
  return 0;
};
