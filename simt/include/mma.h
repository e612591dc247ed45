/* mma.h - nvcuda::wmma: a warp multiplies small matrices together, as tensor cores do.
 *
 *     D (M,N) = A (M,K) x B (K,N) + C (M,N)
 *
 *     A, B                            C, D            M x N x K
 *     __half                          float, __half   16x16x16, 32x8x16, 8x32x16
 *     __nv_bfloat16                   float           16x16x16, 32x8x16, 8x32x16
 *     signed char, unsigned char      int             16x16x16, 32x8x16, 8x32x16
 *     precision::tf32                 float           16x16x8
 *     double                          double          8x8x4
 *
 * A fragment is a lane's share of a matrix. CUDA does not say which elements that is; here it is what PTX says of
 * mma.sync: the matrix is cut into blocks of 8 rows, each row of a block is held by 4 lanes, and each of them holds
 * neighbours that fill 32 bits (for C and D: two). A fragment of B is one of its transpose. C and D of equal shape
 * agree, whatever their type, so that code may work on x[i] one by one.
 *
 * Products are exact, and added up in float (int, double), one after the other with C's element first; a result in
 * half is rounded once. Tensor cores add in another order, and truncate: expect differences in the last bits. Of a
 * tf32 operand the
 * 13 low bits are ignored, as there, so a forgotten __float_to_tf32() shows as a lack of precision.
 */
#ifndef SIMT_MMA_H
#define SIMT_MMA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "simt/warp.h"

namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32 {};
}  // namespace precision

namespace details {

template <class T>
struct Element { /* how an element is stored, and what products are added up in */
  typedef T stored;
  typedef float sum;
  static constexpr int copies = 1;
};
template <>
struct Element<precision::tf32> {
  typedef float stored;
  typedef float sum;
  static constexpr int copies = 1;
};
template <>
struct Element<signed char> {
  typedef signed char stored;
  typedef int sum;
  static constexpr int copies = 1;
};
template <>
struct Element<unsigned char> {
  typedef unsigned char stored;
  typedef int sum;
  static constexpr int copies = 1;
};
template <>
struct Element<int> {
  typedef int stored;
  typedef int sum;
};
template <>
struct Element<double> {
  typedef double stored;
  typedef double sum;
  static constexpr int copies = 1;
};

template <class T, int M, int N, int K>
constexpr bool supported() {
  constexpr bool wide =
      (M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16);
  if (std::is_same_v<T, precision::tf32>) return M == 16 && N == 16 && K == 8;
  if (std::is_same_v<T, double>) return M == 8 && N == 8 && K == 4;
  if (std::is_same_v<T, float>) return wide || (M == 16 && N == 16 && K == 8);
  return wide && (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, signed char> ||
                  std::is_same_v<T, unsigned char> || std::is_same_v<T, int>);
}

/* Element `i` of a lane's share of a matrix with `rows`; `together` neighbours of a row are in one lane. */
template <int rows, int together>
SIMT_UNSEEN inline __attribute__((always_inline)) int row_of(int lane, int i) {
  return lane / 4 + i / together % (rows / 8) * 8;
}
template <int rows, int together>
SIMT_UNSEEN inline __attribute__((always_inline)) int column_of(int lane, int i) {
  return lane % 4 * together + i % together + i / together / (rows / 8) * 4 * together;
}

SIMT_UNSEEN inline float widen(__half value) { return __half2float(value); }
SIMT_UNSEEN inline float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
SIMT_UNSEEN inline int widen(signed char value) { return value; }
SIMT_UNSEEN inline int widen(unsigned char value) { return value; }
SIMT_UNSEEN inline int widen(int value) { return value; }
SIMT_UNSEEN inline float widen(float value) { return value; }
SIMT_UNSEEN inline double widen(double value) { return value; }

}  // namespace details

/* Use is matrix_a, matrix_b or accumulator; Layout, for the first two, row_major or col_major. */
template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(details::supported<T, M, N, K>(),
                "this shape and type are not among those of mma.h: see the table at its top");
  typedef T element_type;
  typedef typename details::Element<T>::stored storage_element_type;

  static constexpr bool is_accumulator = std::is_same_v<Use, accumulator>;
  static constexpr bool is_b = std::is_same_v<Use, matrix_b>;
  /* The matrix as it is dealt out: B as its transpose. */
  static constexpr int rows = is_b ? N : M;
  static constexpr int columns = is_accumulator ? N : K;
  static constexpr int together = is_accumulator                      ? 2
                                  : sizeof(storage_element_type) >= 4 ? 1
                                                                      : 4 / (int)sizeof(storage_element_type);
  static constexpr int held = rows * columns / SIMT_WARP_SIZE;
  /* Of half operands CUDA has 16 elements in each lane, whatever their shape; the surplus repeats the first ones. */
  static constexpr int num_elements = !is_accumulator && std::is_same_v<T, __half> ? 16 : held;

  storage_element_type x[num_elements];
};

namespace details {

/* Meeting for the sake of meeting: no lane reads before all that came before is written. */
SIMT_UNSEEN inline void arrive(unsigned, void *const[]) {}

template <class Fragment, class T>
SIMT_INLINE void load(Fragment &fragment, const T *matrix, unsigned ldm, bool by_rows) {
  constexpr int together = Fragment::together;
  struct Unit {
    T element[together];
  };
  typedef std::conditional_t<sizeof(Unit) == 16, double2, std::conditional_t<sizeof(Unit) == 8, uint2, unsigned>> Word;
  int lane = (int)(simt_thread_rank() % SIMT_WARP_SIZE);
  for (int i = 0; i < Fragment::held; i += together) {
    size_t row = (size_t)row_of<Fragment::rows, together>(lane, i);
    size_t column = (size_t)column_of<Fragment::rows, together>(lane, i);
    const T *from = matrix + (by_rows ? row * ldm + column : row + column * ldm);
    if (sizeof(Unit) == sizeof(Word) && by_rows && (size_t)from % sizeof(Word) == 0) {
      Word word = *(const Word *)from; /* one access, as on a GPU */
      memcpy((void *)&fragment.x[i], &word, sizeof word);
    } else {
      for (int j = 0; j < together; j++) fragment.x[i + j] = from[by_rows ? (size_t)j : j * (size_t)ldm];
    }
  }
  for (int i = Fragment::held; i < Fragment::num_elements; i++) fragment.x[i] = fragment.x[i % Fragment::held];
}

template <class Fragment, class T>
SIMT_INLINE void store(T *matrix, const Fragment &fragment, unsigned ldm, bool by_rows) {
  constexpr int together = Fragment::together;
  struct Unit {
    T element[together];
  };
  typedef std::conditional_t<sizeof(Unit) == 16, double2, std::conditional_t<sizeof(Unit) == 8, uint2, unsigned>> Word;
  int lane = (int)(simt_thread_rank() % SIMT_WARP_SIZE);
  for (int i = 0; i < Fragment::held; i += together) {
    size_t row = (size_t)row_of<Fragment::rows, together>(lane, i);
    size_t column = (size_t)column_of<Fragment::rows, together>(lane, i);
    T *to = matrix + (by_rows ? row * ldm + column : row + column * ldm);
    if (sizeof(Unit) == sizeof(Word) && by_rows && (size_t)to % sizeof(Word) == 0) {
      Word word;
      memcpy(&word, (const void *)&fragment.x[i], sizeof word);
      *(Word *)to = word;
    } else {
      for (int j = 0; j < together; j++) to[by_rows ? (size_t)j : j * (size_t)ldm] = fragment.x[i + j];
    }
  }
}

template <class FragmentD, class FragmentA, class FragmentB, class FragmentC>
struct Multiply {
  FragmentD *d;
  const FragmentA *a;
  const FragmentB *b;
  const FragmentC *c;
  bool saturate;
};

SIMT_UNSEEN inline float operand(float value, float) { return value; }
SIMT_UNSEEN inline float operand(float value, precision::tf32) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  bits &= 0xffffe000u;
  memcpy(&value, &bits, sizeof bits);
  return value;
}
template <class T, class Kind>
SIMT_UNSEEN inline T operand(T value, Kind) {
  return value;
}

SIMT_UNSEEN inline void narrow(__half *to, float value, bool saturate) {
  if (saturate && value > 65504.0f) value = 65504.0f;
  if (saturate && value < -65504.0f) value = -65504.0f;
  *to = __float2half(value);
}
SIMT_UNSEEN inline void narrow(float *to, float value, bool) { *to = value; }
SIMT_UNSEEN inline void narrow(double *to, double value, bool) { *to = value; }
SIMT_UNSEEN inline void narrow(int *to, long long value, bool saturate) {
  if (saturate && value > 0x7fffffff) value = 0x7fffffff;
  if (saturate && value < -0x7fffffff - 1) value = -0x7fffffff - 1;
  *to = (int)value;
}

template <class Sum, int M, int N, int K, class Call>
SIMT_UNSEEN void multiply_complete(unsigned lanes, void *const posts[]) {
  typedef std::remove_reference_t<decltype(*((Call *)0)->d)> D;
  typedef std::remove_const_t<std::remove_reference_t<decltype(*((Call *)0)->a)>> A;
  typedef std::remove_const_t<std::remove_reference_t<decltype(*((Call *)0)->b)>> B;
  typedef std::conditional_t<std::is_same_v<Sum, int>, long long, Sum> Wide;
  Sum a[M][K] = {}, b[K][N] = {};
  Wide c[M][N] = {};
  for (int lane = 0; lane < SIMT_WARP_SIZE; lane++) {
    if (!(lanes >> lane & 1)) continue; /* a warp without all its lanes cannot do this on a GPU */
    const Call *call = (const Call *)posts[lane];
    for (int i = 0; i < A::held; i++)
      a[row_of<M, A::together>(lane, i)][column_of<M, A::together>(lane, i)] =
          (Sum)operand(widen(call->a->x[i]), typename A::element_type());
    for (int i = 0; i < B::held; i++)
      b[column_of<N, B::together>(lane, i)][row_of<N, B::together>(lane, i)] =
          (Sum)operand(widen(call->b->x[i]), typename B::element_type());
    for (int i = 0; i < D::held; i++) c[row_of<M, 2>(lane, i)][column_of<M, 2>(lane, i)] = widen(call->c->x[i]);
  }
  for (int i = 0; i < M; i++)
    for (int k = 0; k < K; k++)
      for (int j = 0; j < N; j++) c[i][j] += (Wide)(a[i][k] * b[k][j]);
  for (int lane = 0; lane < SIMT_WARP_SIZE; lane++) {
    if (!(lanes >> lane & 1)) continue;
    const Call *call = (const Call *)posts[lane];
    for (int i = 0; i < D::held; i++)
      narrow(&call->d->x[i], c[row_of<M, 2>(lane, i)][column_of<M, 2>(lane, i)], call->saturate);
  }
}

}  // namespace details

/* `matrix` points to the first element; rows (or columns) are `ldm` elements apart. */
template <class Use, int M, int N, int K, class T, class Layout>
SIMT_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &a,
                                  const typename details::Element<T>::stored *matrix, unsigned ldm, SIMT_SITE) {
  static_assert(!std::is_void_v<Layout>,
                "an accumulator is loaded with a layout: load_matrix_sync(c, matrix, ldm, mem_row_major)");
  simt_warp_rendezvous(0xffffffffu, NULL, details::arrive, "load_matrix_sync", SIMT_PASS_SITE);
  details::load(a, matrix, ldm, std::is_same_v<Layout, row_major> != std::is_same_v<Use, matrix_b>);
}

template <int M, int N, int K, class T>
SIMT_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T> &c, const T *matrix, unsigned ldm, layout_t layout,
                                  SIMT_SITE) {
  simt_warp_rendezvous(0xffffffffu, NULL, details::arrive, "load_matrix_sync", SIMT_PASS_SITE);
  details::load(c, matrix, ldm, layout == mem_row_major);
}

template <int M, int N, int K, class T>
SIMT_INLINE void store_matrix_sync(T *matrix, const fragment<accumulator, M, N, K, T> &c, unsigned ldm, layout_t layout,
                                   SIMT_SITE) {
  simt_warp_rendezvous(0xffffffffu, NULL, details::arrive, "store_matrix_sync", SIMT_PASS_SITE);
  details::store(matrix, c, ldm, layout == mem_row_major);
}

template <class Use, int M, int N, int K, class T, class Layout, class V>
SIMT_INLINE void fill_fragment(fragment<Use, M, N, K, T, Layout> &a, const V &value) {
  for (int i = 0; i < a.num_elements; i++) a.x[i] = (typename details::Element<T>::stored)value;
}

/* D = A x B + C; D and C may be the same. `saturate` keeps results finite. */
template <int M, int N, int K, class TD, class TA, class LayoutA, class TB, class LayoutB, class TC>
SIMT_UNSEEN void mma_sync(fragment<accumulator, M, N, K, TD> &d, const fragment<matrix_a, M, N, K, TA, LayoutA> &a,
                          const fragment<matrix_b, M, N, K, TB, LayoutB> &b,
                          const fragment<accumulator, M, N, K, TC> &c, bool saturate = false, SIMT_SITE) {
  typedef typename details::Element<TA>::sum Sum;
  static_assert(std::is_same_v<TA, TB>, "A and B have the same type");
  static_assert(std::is_same_v<TD, Sum> || (std::is_same_v<TA, __half> && std::is_same_v<TD, __half>),
                "D is float (of half: or half; of chars: int; of double: double)");
  static_assert(std::is_same_v<TC, Sum> || (std::is_same_v<TA, __half> && std::is_same_v<TC, __half>),
                "C is float (of half: or half; of chars: int; of double: double)");
  typedef details::Multiply<fragment<accumulator, M, N, K, TD>, fragment<matrix_a, M, N, K, TA, LayoutA>,
                            fragment<matrix_b, M, N, K, TB, LayoutB>, fragment<accumulator, M, N, K, TC>>
      Call;
  Call call = {&d, &a, &b, &c, saturate};
  simt_warp_rendezvous(0xffffffffu, &call, details::multiply_complete<Sum, M, N, K, Call>, "mma_sync", SIMT_PASS_SITE);
}

/* Rounded to the 10 bits of fraction that tf32 has; halves away from zero. */
SIMT_UNSEEN inline float __float_to_tf32(float value) {
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & 0xffffe000u;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

}  // namespace wmma
}  // namespace nvcuda

#endif /* SIMT_MMA_H */
