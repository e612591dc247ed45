/* vector_types.h - char1 .. double4, and dim3. C and C++.
 *
 * Plain structs whose alignment is the GPU's: a type of 2, 4, 8 or 16 bytes moves in one access, so it is aligned to
 * its size; larger ones to 16 bytes; those with three members as a member. The inspector sees a float4 copy as one
 * access of
 * 128 bits because nothing here has a constructor or a union.
 */
#ifndef SIMT_VECTOR_TYPES_H
#define SIMT_VECTOR_TYPES_H
#define __VECTOR_TYPES_H__

#define SIMT_ALIGN(bytes) __attribute__((aligned(bytes)))

#define SIMT_VECTOR_TYPES(name, T, align2, align4) \
  typedef struct name##1 {                         \
    T x;                                           \
  }                                                \
  name##1;                                         \
  typedef struct SIMT_ALIGN(align2) name##2 {      \
    T x, y;                                        \
  }                                                \
  name##2;                                         \
  typedef struct name##3 {                         \
    T x, y, z;                                     \
  }                                                \
  name##3;                                         \
  typedef struct SIMT_ALIGN(align4) name##4 {      \
    T x, y, z, w;                                  \
  }                                                \
  name##4

SIMT_VECTOR_TYPES(char, signed char, 2, 4);
SIMT_VECTOR_TYPES(uchar, unsigned char, 2, 4);
SIMT_VECTOR_TYPES(short, short, 4, 8);
SIMT_VECTOR_TYPES(ushort, unsigned short, 4, 8);
SIMT_VECTOR_TYPES(int, int, 8, 16);
SIMT_VECTOR_TYPES(uint, unsigned int, 8, 16);
SIMT_VECTOR_TYPES(long, long, 2 * sizeof(long), 16);
SIMT_VECTOR_TYPES(ulong, unsigned long, 2 * sizeof(long), 16);
SIMT_VECTOR_TYPES(longlong, long long, 16, 16);
SIMT_VECTOR_TYPES(ulonglong, unsigned long long, 16, 16);
SIMT_VECTOR_TYPES(float, float, 8, 16);
SIMT_VECTOR_TYPES(double, double, 16, 16);

#undef SIMT_VECTOR_TYPES

/* CUDA 13's names, which say the alignment; there the old ones are the 16-byte ones, as here. */
#define SIMT_VECTOR_ALIGNED(name, T)         \
  typedef name name##_16a;                   \
  typedef struct SIMT_ALIGN(32) name##_32a { \
    T x, y, z, w;                            \
  } name##_32a

SIMT_VECTOR_ALIGNED(long4, long);
SIMT_VECTOR_ALIGNED(ulong4, unsigned long);
SIMT_VECTOR_ALIGNED(longlong4, long long);
SIMT_VECTOR_ALIGNED(ulonglong4, unsigned long long);
SIMT_VECTOR_ALIGNED(double4, double);

#undef SIMT_VECTOR_ALIGNED

/* A grid's or a block's extent. In C++ the missing dimensions are 1, so an integer is a dim3 too. */
typedef struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  constexpr dim3(unsigned int width = 1, unsigned int height = 1, unsigned int depth = 1)
      : x(width), y(height), z(depth) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
} dim3;

#endif /* SIMT_VECTOR_TYPES_H */
