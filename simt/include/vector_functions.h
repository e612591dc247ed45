/* vector_functions.h - make_char1() .. make_double4(). C and C++.
 *
 * No operators: CUDA has none for these types, and programs define their own float4 operator+.
 */
#ifndef SIMT_VECTOR_FUNCTIONS_H
#define SIMT_VECTOR_FUNCTIONS_H
#define __VECTOR_FUNCTIONS_H__

#include "vector_types.h"

#define SIMT_MAKE4(name, T)                            \
  static inline name make_##name(T x, T y, T z, T w) { \
    name v = {x, y, z, w};                             \
    return v;                                          \
  }

#define SIMT_MAKE(name, T)                              \
  static inline name##1 make_##name##1(T x) {           \
    name##1 v = {x};                                    \
    return v;                                           \
  }                                                     \
  static inline name##2 make_##name##2(T x, T y) {      \
    name##2 v = {x, y};                                 \
    return v;                                           \
  }                                                     \
  static inline name##3 make_##name##3(T x, T y, T z) { \
    name##3 v = {x, y, z};                              \
    return v;                                           \
  }                                                     \
  SIMT_MAKE4(name##4, T)

SIMT_MAKE(char, signed char)
SIMT_MAKE(uchar, unsigned char)
SIMT_MAKE(short, short)
SIMT_MAKE(ushort, unsigned short)
SIMT_MAKE(int, int)
SIMT_MAKE(uint, unsigned int)
SIMT_MAKE(long, long)
SIMT_MAKE(ulong, unsigned long)
SIMT_MAKE(longlong, long long)
SIMT_MAKE(ulonglong, unsigned long long)
SIMT_MAKE(float, float)
SIMT_MAKE(double, double)

SIMT_MAKE4(long4_16a, long)
SIMT_MAKE4(long4_32a, long)
SIMT_MAKE4(ulong4_16a, unsigned long)
SIMT_MAKE4(ulong4_32a, unsigned long)
SIMT_MAKE4(longlong4_16a, long long)
SIMT_MAKE4(longlong4_32a, long long)
SIMT_MAKE4(ulonglong4_16a, unsigned long long)
SIMT_MAKE4(ulonglong4_32a, unsigned long long)
SIMT_MAKE4(double4_16a, double)
SIMT_MAKE4(double4_32a, double)

#undef SIMT_MAKE
#undef SIMT_MAKE4

#endif /* SIMT_VECTOR_FUNCTIONS_H */
