/* check.h - what the programs of this folder share: run a kernel, compare with the host's answer, count.
 *
 * Each kernel here looks suspicious and is right: the emulator must give its result in every order of threads, and
 * neither the runtime nor the inspector may accuse it. */
#ifndef SIMT_TEST_CHECK_H
#define SIMT_TEST_CHECK_H

#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures;

#define TRY(call)                                                                                \
  do {                                                                                           \
    cudaError_t error_ = (call);                                                                 \
    if (error_ != cudaSuccess) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

/* One kernel's result. */
static void check(const char *what, int right) {
  checks++;
  if (right) return;
  failures++;
  fprintf(stderr, "WRONG: %s\n", what);
}

/* Waits for the launch before it, too: an error of the kernel is told here. */
template <class T>
static void fetch(T *host, const T *device, size_t count) {
  TRY(cudaGetLastError());
  TRY(cudaMemcpy(host, device, count * sizeof(T), cudaMemcpyDeviceToHost));
}

template <class T>
static T *to_device(const T *host, size_t count) {
  T *device = NULL;
  TRY(cudaMalloc((void **)&device, count * sizeof(T)));
  TRY(cudaMemcpy(device, host, count * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

template <class T>
static T *zeros_on_device(size_t count) {
  T *device = NULL;
  TRY(cudaMalloc((void **)&device, count * sizeof(T)));
  TRY(cudaMemset(device, 0, count * sizeof(T)));
  return device;
}

/* Not a byte of it set. */
template <class T>
static T *raw_on_device(size_t count) {
  T *device = NULL;
  TRY(cudaMalloc((void **)&device, count * sizeof(T)));
  return device;
}

static int finish(void) {
  TRY(cudaDeviceSynchronize());
  printf("%d of %d right\n", checks - failures, checks);
  return failures != 0;
}

#endif /* SIMT_TEST_CHECK_H */
