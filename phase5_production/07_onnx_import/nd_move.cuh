/* nd_move.cuh - operations that compute nothing: they only put numbers elsewhere.
 *
 *     copy         y = x by strides: Transpose, Slice, Split, Expand, Tile, DepthToSpace, SpaceToDepth
 *     concat       up to 8 arrays behind each other along an axis
 *     pad          constant, edge, reflect, wrap
 *     triangle     Trilu: zeros above or below a diagonal
 *     gather       y[o,j,r] = x[o, index[j], r], and by elements, and by tuples (GatherND)
 *     scatter      y = x, then y[index] = update, or += and so on; the updates of one element come in their order
 *     one_hot      on at the index, else off
 *
 * Numbers are moved as 1, 2, 4 or 8 bytes, whatever they are. A negative index counts from the end. An index beyond an
 * axis is the file's mistake: it reads and writes the nearest element, never other memory.
 */
#ifndef PHASE5_PRODUCTION_ND_MOVE_CUH
#define PHASE5_PRODUCTION_ND_MOVE_CUH

#include "phase5_production/07_onnx_import/nd.cuh"

typedef struct NdCopy {
  int bytes;
  NdAxes axes; /* of y */
  NdStrides strides;
  const void *x;
  void *y;
} NdCopy;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdCopy &o, size_t i) {
  nd_move(o.y, i, o.x, (size_t)nd_place(&o.axes, &o.strides, i), F32 ? 4 : o.bytes);
}

/* y (columns, pixels, rows) of x (rows, columns, pixels), whose rows are turned round: a Transpose and a Slice with the
 * step -1 in one copy. For the exercise. */
static inline void nd_flip_gpu(float *y, const float *x, int rows, int columns, int pixels) {
  const long long row = (long long)columns * pixels;
  NdCopy args = {
      4, {3, {(unsigned)columns, (unsigned)pixels, (unsigned)rows}}, {(rows - 1) * row, {pixels, 1, -row}}, x, y};
  nd_launch<true>(args, (size_t)rows * columns * pixels);
}

static inline void nd_flip_cpu(float *y, const float *x, int rows, int columns, int pixels) {
  for (int c = 0; c < columns; c++)
    for (int p = 0; p < pixels; p++)
      for (int r = 0; r < rows; r++)
        y[((size_t)c * pixels + p) * rows + r] = x[((size_t)(rows - 1 - r) * columns + c) * pixels + p];
}

/* y (outer, all); x[k] (outer, start[k+1] - start[k]) fills the columns from start[k] on. */
typedef struct NdConcat {
  int bytes, inputs;
  unsigned start[NODE_MAX_INPUTS + 1];
  const void *x[NODE_MAX_INPUTS];
  void *y;
} NdConcat;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdConcat &o, size_t i) {
  size_t row = i;
  const unsigned column = nd_split(&row, o.start[o.inputs]);
  int k = 0;
  while (column >= o.start[k + 1]) k++;
  nd_move(o.y, i, o.x[k], row * (o.start[k + 1] - o.start[k]) + (column - o.start[k]), F32 ? 4 : o.bytes);
}

typedef enum NdPadMode { ND_PAD_CONSTANT, ND_PAD_EDGE, ND_PAD_REFLECT, ND_PAD_WRAP } NdPadMode;

typedef struct NdPad {
  int bytes;
  NdPadMode mode;
  NdAxes axes; /* of y */
  NdStrides strides;
  int before[ND_RANK], size[ND_RANK]; /* of x; before may be negative */
  const void *x, *value;              /* value: one element, NULL: 0 */
  void *y;
} NdPad;

/* Which element of a line of n stands at place i, which may lie outside of it. */
static __host__ __device__ inline int nd_pad_inside(NdPadMode mode, int i, int n) {
  if (i >= 0 && i < n) return i;
  if (mode == ND_PAD_EDGE || n == 1) return i < 0 ? 0 : n - 1;
  if (mode == ND_PAD_WRAP) return (i % n + n) % n;
  const int period = 2 * (n - 1), at = (i % period + period) % period; /* 0 1 2 3 2 1 0 1 ... */
  return at < n ? at : period - at;
}

template <bool F32>
static __host__ __device__ inline void nd_one(const NdPad &o, size_t i) {
  long long place = o.strides.offset;
  size_t rest = i;
  bool inside = true;
  for (int k = o.axes.rank - 1; k >= 0; k--) {
    long long at = k > 0 ? nd_split(&rest, o.axes.dim[k]) : (long long)rest;
    if (o.size[k] > 0) { /* 0: the batch, of which nothing is padded */
      at -= o.before[k];
      inside &= at >= 0 && at < o.size[k];
      at = nd_pad_inside(o.mode, (int)at, o.size[k]);
    }
    place += at * o.strides.step[k];
  }
  const uint64_t zero = 0;
  if (inside || o.mode != ND_PAD_CONSTANT)
    nd_move(o.y, i, o.x, (size_t)place, o.bytes);
  else
    nd_move(o.y, i, o.value ? o.value : &zero, 0, o.bytes);
}

/* Of the last two axes (rows, columns): what is at or below the diagonal `shift` columns to the right stays, or what is
 * at or above it. */
typedef struct NdTriangle {
  int bytes, rows, columns, upper;
  long long shift;
  const void *x;
  void *y;
} NdTriangle;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdTriangle &o, size_t i) {
  size_t rest = i;
  const long long column = nd_split(&rest, (unsigned)o.columns), row = nd_split(&rest, (unsigned)o.rows);
  const uint64_t zero = 0;
  const bool stays = o.upper ? column >= row + o.shift : column <= row + o.shift;
  if (stays)
    nd_move(o.y, i, o.x, i, o.bytes);
  else
    nd_move(o.y, i, &zero, 0, o.bytes);
}

/* ----------------------------------------------------------------------------------------------------------- gather */

/* Index i of `indices`, int32 or int64, into an axis of n elements. */
static __host__ __device__ inline long long nd_index(const void *indices, DType type, size_t i, long long n) {
  long long at = nd_load<int64_t>(indices, type, i);
  if (at < 0) at += n;
  if (at >= n) at = n - 1;
  return at < 0 ? 0 : at;
}

/* x (outer, n, inner), indices (count) -> y (outer, count, inner). batched: `count` indices per sample, and outer 1. */
typedef struct NdGather {
  int bytes, batched;
  unsigned n, inner, count;
  DType index_type;
  const void *x, *indices;
  void *y;
} NdGather;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdGather &o, size_t i) {
  size_t row = i;
  const unsigned r = nd_split(&row, o.inner);
  size_t outer = row;
  const size_t j = o.batched ? row : nd_split(&outer, o.count);
  if (o.batched) outer = 0;
  const long long at = nd_index(o.indices, o.index_type, j, o.n);
  nd_move(o.y, i, o.x, (outer * o.n + (size_t)at) * o.inner + r, o.bytes);
}

/* y = x with its index along one axis replaced: y[i,j] = x[i, indices[i,j]]. The strides are those of x, 0 along the
 * axis; y and indices have `axes`. */
typedef struct NdGatherElements {
  int bytes;
  unsigned n;
  long long axis_step;
  DType index_type;
  NdAxes axes;
  NdStrides strides;
  const void *x, *indices;
  void *y;
} NdGatherElements;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdGatherElements &o, size_t i) {
  const long long at = nd_index(o.indices, o.index_type, i, o.n);
  nd_move(o.y, i, o.x, (size_t)(nd_place(&o.axes, &o.strides, i) + at * o.axis_step), o.bytes);
}

/* Tuples of `length` indices choose slices of `slice` elements: x (groups, n[0], n[1], ..., slice), indices
 * (groups, tuples, length) -> y (groups, tuples, slice). groups: the axes batch_dims that both share. */
typedef struct NdTuples {
  int length;
  unsigned n[ND_RANK], slice, tuples;
  long long group; /* elements of x in one group */
  DType index_type;
  const void *indices;
} NdTuples;

/* Where in x the slice of tuple t, counted over all groups, begins. */
static __host__ __device__ inline size_t nd_tuple_place(const NdTuples &o, size_t t) {
  long long at = 0;
  for (int k = 0; k < o.length; k++) at = at * o.n[k] + nd_index(o.indices, o.index_type, t * o.length + k, o.n[k]);
  return (size_t)((long long)(t / o.tuples) * o.group + at * o.slice);
}

typedef struct NdGatherNd {
  int bytes;
  NdTuples tuples;
  const void *x;
  void *y;
} NdGatherNd;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdGatherNd &o, size_t i) {
  size_t t = i;
  const unsigned r = nd_split(&t, o.tuples.slice);
  nd_move(o.y, i, o.x, nd_tuple_place(o.tuples, t) + r, o.bytes);
}

/* ---------------------------------------------------------------------------------------------------------- scatter */

typedef enum NdScatterKind {
  ND_SCATTER_SET,
  ND_SCATTER_ADD,
  ND_SCATTER_MUL,
  ND_SCATTER_MAX,
  ND_SCATTER_MIN
} NdScatterKind;

static __host__ __device__ inline void nd_scatter_into(void *y, DType type, size_t place, const void *updates, size_t u,
                                                       NdScatterKind kind, int bytes) {
  if (kind == ND_SCATTER_SET) {
    nd_move(y, place, updates, u, bytes);
    return;
  }
  const double old = nd_load<double>(y, type, place), more = nd_load<double>(updates, type, u);
  const double sum = kind == ND_SCATTER_ADD   ? old + more
                     : kind == ND_SCATTER_MUL ? old * more
                     : kind == ND_SCATTER_MAX ? (more > old ? more : old)
                                              : (more < old ? more : old);
  nd_store<double>(y, type, place, sum);
}

/* One thread per line along the axis: y and x (outer, n, inner) with inner columns, indices and updates the smaller
 * `axes` with `count` along the axis. Line i of the updates: its indices have `own` strides, those of y `strides`. */
typedef struct NdScatterElements {
  int bytes;
  NdScatterKind kind;
  unsigned n, count;
  long long axis_step, own_step; /* of y, of the updates */
  DType type, index_type;
  NdAxes axes; /* of lines */
  NdStrides own, strides;
  const void *indices, *updates;
  void *y;
} NdScatterElements;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdScatterElements &o, size_t i) {
  long long from, to;
  nd_places(&o.axes, &o.own, &o.strides, i, &from, &to);
  for (unsigned j = 0; j < o.count; j++) {
    const size_t u = (size_t)(from + j * o.own_step);
    const long long at = nd_index(o.indices, o.index_type, u, o.n);
    nd_scatter_into(o.y, o.type, (size_t)(to + at * o.axis_step), o.updates, u, o.kind, o.bytes);
  }
}

/* One thread per element of a slice, so that the updates of a place come in their order. */
typedef struct NdScatterNd {
  int bytes;
  NdScatterKind kind;
  DType type;
  NdTuples tuples;
  size_t count; /* tuples of all groups */
  const void *updates;
  void *y;
} NdScatterNd;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdScatterNd &o, size_t r) {
  for (size_t t = 0; t < o.count; t++)
    nd_scatter_into(o.y, o.type, nd_tuple_place(o.tuples, t) + r, o.updates, t * o.tuples.slice + r, o.kind, o.bytes);
}

/* indices (outer, inner) -> y (outer, depth, inner): values[1] at the index, else values[0]. An index outside of
 * -depth..depth-1 has no place. */
typedef struct NdOneHot {
  int bytes;
  unsigned depth, inner;
  DType index_type;
  const void *indices, *values;
  void *y;
} NdOneHot;

template <bool F32>
static __host__ __device__ inline void nd_one(const NdOneHot &o, size_t i) {
  size_t rest = i;
  const unsigned r = nd_split(&rest, o.inner), at = nd_split(&rest, o.depth);
  long long index = nd_load<int64_t>(o.indices, o.index_type, rest * o.inner + r);
  if (index < 0) index += o.depth;
  nd_move(o.y, i, o.values, index == (long long)at, o.bytes);
}

#endif /* PHASE5_PRODUCTION_ND_MOVE_CUH */
