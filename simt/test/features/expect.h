// For the programs here: what is not as expected is printed with its place, and the program fails.
#pragma once
#include <stdio.h>

static int mistakes;

#define EXPECT(condition)                                            \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      mistakes++;                                                    \
    }                                                                \
  } while (0)

// A call of the runtime that must succeed.
#define WORKS(call)                                                                     \
  do {                                                                                  \
    cudaError_t error_ = (call);                                                        \
    if (error_ != cudaSuccess) {                                                        \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      mistakes++;                                                                       \
    }                                                                                   \
  } while (0)
