#pragma once
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

void cudaCheck(cudaError_t error, const char *file, int line);  // CUDA error check
void CudaDeviceInfo();                                          // print CUDA information
void range_init_matrix(float *mat, int N);
void randomize_matrix(float *mat, int N);
void zero_init_matrix(float *mat, int N);
bool verify_matrix(float *mat1, float *mat2, int N);
void run_kernel(int kernel_num, int m, int n, int k, float alpha, float *A, float *B, float beta, float *C,
                cublasHandle_t handle);
