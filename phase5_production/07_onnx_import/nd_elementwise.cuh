/* nd_elementwise.cuh - operations element by element: of one array, of two with broadcasting, and the choice between
 * two.
 *
 *     unary     y = f(x), the types of x and y may differ (Cast)
 *     binary    y = f(a, b), axes of size 1 and missing axes are repeated: their stride is 0
 *     where     y = condition ? a : b
 *
 * The kinds are ONNX's operators; formulas are in ONNX's Operators.md. Integers are divided as in C, towards zero; a
 * division by 0 gives 0. Mod has the sign of the divisor, and with fmod that of the dividend.
 */
#ifndef PHASE5_PRODUCTION_ND_ELEMENTWISE_CUH
#define PHASE5_PRODUCTION_ND_ELEMENTWISE_CUH

#include "phase5_production/07_onnx_import/nd.cuh"

typedef enum NdUnaryKind {
  ND_COPY, /* and Cast */
  ND_ABS,
  ND_ACOS,
  ND_ACOSH,
  ND_AFFINE, /* alpha x + beta */
  ND_ASIN,
  ND_ASINH,
  ND_ATAN,
  ND_ATANH,
  ND_CEIL,
  ND_CELU,
  ND_CLIP, /* between low and high, or alpha and beta */
  ND_COS,
  ND_COSH,
  ND_ELU,
  ND_ERF,
  ND_EXP,
  ND_FLOOR,
  ND_GELU,
  ND_HARD_SIGMOID,
  ND_HARD_SWISH,
  ND_IS_INF, /* alpha, beta: whether -inf and inf count */
  ND_IS_NAN,
  ND_LEAKY_RELU,
  ND_LOG,
  ND_MISH,
  ND_NEG,
  ND_NOT,
  ND_RECIPROCAL,
  ND_RELU,
  ND_ROUND,
  ND_SELU,
  ND_SHRINK,
  ND_SIGMOID,
  ND_SIGN,
  ND_SIN,
  ND_SINH,
  ND_SOFTPLUS,
  ND_SOFTSIGN,
  ND_SQRT,
  ND_TAN,
  ND_TANH,
  ND_THRESHOLDED_RELU
} NdUnaryKind;

typedef enum NdBinaryKind {
  ND_ADD,
  ND_AND,
  ND_DIV,
  ND_EQUAL,
  ND_FMOD,
  ND_GREATER,
  ND_GREATER_OR_EQUAL,
  ND_LESS,
  ND_LESS_OR_EQUAL,
  ND_MAX,
  ND_MIN,
  ND_MOD,
  ND_MUL,
  ND_OR,
  ND_POW,
  ND_PRELU,
  ND_SHIFT_LEFT,
  ND_SHIFT_RIGHT,
  ND_SUB,
  ND_XOR
} NdBinaryKind;

/* ------------------------------------------------------------------------------------------------------------ unary */

typedef struct NdUnary {
  float least, most; /* of ND_CLIP of float32 */
  NdUnaryKind kind;
  NdCompute compute;
  DType from, to;
  double alpha, beta;
  long long low, high; /* of ND_CLIP of whole numbers */
  const void *x;
  void *y;
} NdUnary;

/* T: float or double. */
template <typename T>
static __host__ __device__ inline T nd_unary_real(const NdUnary &u, T x) {
  const T alpha = (T)u.alpha, beta = (T)u.beta;
  switch (u.kind) {
    case ND_ABS:
      return fabs(x);
    case ND_ACOS:
      return acos(x);
    case ND_ACOSH:
      return acosh(x);
    case ND_AFFINE:
      return alpha * x + beta;
    case ND_ASIN:
      return asin(x);
    case ND_ASINH:
      return asinh(x);
    case ND_ATAN:
      return atan(x);
    case ND_ATANH:
      return atanh(x);
    case ND_CEIL:
      return ceil(x);
    case ND_CELU:
      return x > 0 ? x : alpha * expm1(x / alpha);
    case ND_CLIP:
      return x < alpha ? alpha : x > beta ? beta : x; /* NaN stays */
    case ND_COS:
      return cos(x);
    case ND_COSH:
      return cosh(x);
    case ND_ELU:
      return x < 0 ? alpha * expm1(x) : x;
    case ND_ERF:
      return erf(x);
    case ND_EXP:
      return exp(x);
    case ND_FLOOR:
      return floor(x);
    case ND_GELU:
      return x / 2 * (1 + erf(x * (T)0.70710678118654752440));
    case ND_HARD_SIGMOID:
    case ND_HARD_SWISH: {
      const T line = alpha * x + beta, bounded = line < 0 ? 0 : line > 1 ? 1 : line;
      return u.kind == ND_HARD_SWISH ? x * bounded : bounded;
    }
    case ND_IS_INF:
      return isinf(x) && (x < 0 ? alpha : beta) != 0;
    case ND_IS_NAN:
      return x != x;
    case ND_LEAKY_RELU:
      return x < 0 ? alpha * x : x;
    case ND_LOG:
      return log(x);
    case ND_MISH:
      return x * tanh(log1p(exp(x)));
    case ND_NEG:
      return -x;
    case ND_NOT:
      return x == 0;
    case ND_RECIPROCAL:
      return 1 / x;
    case ND_RELU:
      return x < 0 ? 0 : x;
    case ND_ROUND:
      return rint(x); /* halves to even */
    case ND_SELU:
      return beta * (x > 0 ? x : alpha * expm1(x));
    case ND_SHRINK:
      return x < -alpha ? x + beta : x > alpha ? x - beta : 0;
    case ND_SIGMOID:
      return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
    case ND_SIGN:
      return x > 0 ? 1 : x < 0 ? -1 : x;
    case ND_SIN:
      return sin(x);
    case ND_SINH:
      return sinh(x);
    case ND_SOFTPLUS:
      return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case ND_SOFTSIGN:
      return x / (1 + fabs(x));
    case ND_SQRT:
      return sqrt(x);
    case ND_TAN:
      return tan(x);
    case ND_TANH:
      return tanh(x);
    case ND_THRESHOLDED_RELU:
      return x > alpha ? x : 0;
    default:
      return x;
  }
}

/* T: int64 or uint64. Other kinds are computed as floating-point numbers. */
template <typename T>
static __host__ __device__ inline T nd_unary_whole(const NdUnary &u, T x) {
  switch (u.kind) {
    case ND_ABS:
      return (long long)x < 0 && (T)-1 < (T)0 ? (T)0 - x : x;
    case ND_CLIP:
      return x < (T)u.low ? (T)u.low : x > (T)u.high ? (T)u.high : x;
    case ND_NEG:
      return (T)0 - x;
    case ND_NOT:
      return x == 0;
    case ND_RELU:
      return x > 0 ? x : 0;
    case ND_SIGN:
      return x == 0 ? (T)0 : x > 0 ? (T)1 : (T)-1;
    default:
      return x;
  }
}

template <bool F32>
static __host__ __device__ inline void nd_one(const NdUnary &u, size_t i) {
  if (F32 || u.compute == ND_FLOAT)
    nd_set<F32, float>(u.y, u.to, i, nd_unary_real<float>(u, nd_get<F32, float>(u.x, u.from, i)));
  else if (u.compute == ND_DOUBLE)
    nd_store<double>(u.y, u.to, i, nd_unary_real<double>(u, nd_load<double>(u.x, u.from, i)));
  else if (u.compute == ND_INT)
    nd_store<int64_t>(u.y, u.to, i, nd_unary_whole<int64_t>(u, nd_load<int64_t>(u.x, u.from, i)));
  else
    nd_store<uint64_t>(u.y, u.to, i, nd_unary_whole<uint64_t>(u, nd_load<uint64_t>(u.x, u.from, i)));
}

/* ----------------------------------------------------------------------------------------------------------- binary */

typedef struct NdBinary {
  NdBinaryKind kind;
  NdCompute compute;
  DType a_type, b_type, to;
  NdAxes axes;
  NdStrides a_strides, b_strides;
  const void *a, *b;
  void *y;
} NdBinary;

static __host__ __device__ inline bool nd_negative(float x) { return x < 0; }
static __host__ __device__ inline bool nd_negative(double x) { return x < 0; }
static __host__ __device__ inline bool nd_negative(int64_t x) { return x < 0; }
static __host__ __device__ inline bool nd_negative(uint64_t) { return false; }

/* What all types have. */
template <typename T>
static __host__ __device__ inline T nd_binary_common(NdBinaryKind kind, T a, T b) {
  switch (kind) {
    case ND_ADD:
      return a + b;
    case ND_AND:
      return a != 0 && b != 0;
    case ND_EQUAL:
      return a == b;
    case ND_GREATER:
      return a > b;
    case ND_GREATER_OR_EQUAL:
      return a >= b;
    case ND_LESS:
      return a < b;
    case ND_LESS_OR_EQUAL:
      return a <= b;
    case ND_MAX:
      return a > b || a != a ? a : b; /* NaN if one is */
    case ND_MIN:
      return a < b || a != a ? a : b;
    case ND_MUL:
      return a * b;
    case ND_OR:
      return a != 0 || b != 0;
    case ND_PRELU:
      return nd_negative(a) ? a * b : a;
    case ND_SUB:
      return a - b;
    case ND_XOR:
      return (a != 0) != (b != 0);
    default:
      return a;
  }
}

template <typename T>
static __host__ __device__ inline T nd_binary_real(NdBinaryKind kind, T a, T b) {
  if (kind == ND_DIV) return a / b;
  if (kind == ND_POW) return pow(a, b);
  if (kind == ND_FMOD) return fmod(a, b);
  if (kind == ND_MOD) {
    const T rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  return nd_binary_common<T>(kind, a, b);
}

/* a to the power b, exact modulo 2^64. */
template <typename T>
static __host__ __device__ inline T nd_power(T a, T b) {
  if (nd_negative(b)) return a == 1 ? 1 : a == (T)-1 ? (b % 2 == 0 ? (T)1 : a) : 0;
  uint64_t result = 1, base = (uint64_t)a;
  for (uint64_t left = (uint64_t)b; left > 0; left /= 2) {
    if (left % 2 == 1) result *= base;
    base *= base;
  }
  return (T)result;
}

template <typename T>
static __host__ __device__ inline T nd_binary_whole(NdBinaryKind kind, T a, T b) {
  const bool minus_one = (T)-1 < (T)0 && b == (T)-1; /* of which the smallest number has no quotient */
  switch (kind) {
    case ND_DIV:
      return b == 0 ? (T)0 : minus_one ? (T)(0 - (uint64_t)a) : a / b;
    case ND_MOD:
    case ND_FMOD: {
      if (b == 0 || minus_one) return 0;
      const T rest = a % b;
      return kind == ND_MOD && rest != 0 && nd_negative(rest) != nd_negative(b) ? rest + b : rest;
    }
    case ND_POW:
      return nd_power<T>(a, b);
    case ND_SHIFT_LEFT:
      return (uint64_t)b < 64 ? (T)((uint64_t)a << b) : (T)0;
    case ND_SHIFT_RIGHT:
      return (uint64_t)b < 64 ? (T)((uint64_t)a >> b) : (T)0;
    default:
      return nd_binary_common<T>(kind, a, b);
  }
}

template <bool F32>
static __host__ __device__ inline void nd_one(const NdBinary &o, size_t i) {
  long long a, b;
  nd_places(&o.axes, &o.a_strides, &o.b_strides, i, &a, &b);
  if (F32 || o.compute == ND_FLOAT)
    nd_set<F32, float>(o.y, o.to, i,
                       nd_binary_real<float>(o.kind, nd_get<F32, float>(o.a, o.a_type, (size_t)a),
                                             nd_get<F32, float>(o.b, o.b_type, (size_t)b)));
  else if (o.compute == ND_DOUBLE)
    nd_store<double>(o.y, o.to, i,
                     nd_binary_real<double>(o.kind, nd_load<double>(o.a, o.a_type, (size_t)a),
                                            nd_load<double>(o.b, o.b_type, (size_t)b)));
  else if (o.compute == ND_INT)
    nd_store<int64_t>(o.y, o.to, i,
                      nd_binary_whole<int64_t>(o.kind, nd_load<int64_t>(o.a, o.a_type, (size_t)a),
                                               nd_load<int64_t>(o.b, o.b_type, (size_t)b)));
  else
    nd_store<uint64_t>(o.y, o.to, i,
                       nd_binary_whole<uint64_t>(o.kind, nd_load<uint64_t>(o.a, o.a_type, (size_t)a),
                                                 nd_load<uint64_t>(o.b, o.b_type, (size_t)b)));
}

/* ------------------------------------------------------------------------------------------------------------ where */

typedef struct NdWhere {
  int bytes; /* of an element of a, b and y */
  NdAxes axes;
  NdStrides condition_strides, a_strides, b_strides;
  const unsigned char *condition;
  const void *a, *b;
  void *y;
} NdWhere;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdWhere &o, size_t i) {
  if (o.condition[nd_place(&o.axes, &o.condition_strides, i)])
    nd_move(o.y, i, o.a, (size_t)nd_place(&o.axes, &o.a_strides, i), o.bytes);
  else
    nd_move(o.y, i, o.b, (size_t)nd_place(&o.axes, &o.b_strides, i), o.bytes);
}

#endif /* PHASE5_PRODUCTION_ND_ELEMENTWISE_CUH */
