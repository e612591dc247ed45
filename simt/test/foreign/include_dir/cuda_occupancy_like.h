#pragma once
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

// a header found only through -I
#define checkError(e) checkError_impl((e), #e, __FILE__, __LINE__)
static inline void checkError_impl(cudaError_t e, const char *expr, const char *file, int line) {
  if (e != cudaSuccess) throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + " " + expr + " " + cudaGetErrorString(e));
}
