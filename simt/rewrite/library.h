/* library.h - functions of the libraries by name: which a kernel may call, and what to write instead of the others. */
#ifndef SIMT_REWRITE_LIBRARY_H
#define SIMT_REWRITE_LIBRARY_H

#include <stdbool.h>

/* Names between single spaces, for is_among(). */
extern const char KERNEL_FUNCTIONS[]; /* functions of C that CUDA has for kernels as well */
extern const char KERNEL_STANDARD[];  /* of the C++ library; nvcc takes them for __host__ __device__ */
extern const char VECTOR_ACCESS[];    /* members of Thrust's vectors that a kernel may call */
extern const char DEVICE_RUNTIME[];   /* of the device's runtime (nvcc -rdc=true), those that launch nothing */

/* What to write in a kernel instead of a function of C's library or of CUDA's for the host. NULL: nothing is known. */
const char *instead_of(const char *name);
/* The same for std::name; whether it is constexpr in C++17. */
const char *instead_of_standard(const char *name, bool *is_constexpr);
/* Refuse a call in the function `caller`. */
void refuse_library(const char *file, int line, const char *name, const char *caller);
void refuse_standard(const char *file, int line, const char *name, const char *caller, const char *instead);

#endif /* SIMT_REWRITE_LIBRARY_H */
