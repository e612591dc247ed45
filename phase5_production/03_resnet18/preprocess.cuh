/* preprocess.cuh - a picture of any size becomes the input of a network for ImageNet, as torchvision's transforms make
 * it of a PIL image: its shorter side is resized to 256, the middle 224 x 224 are kept, and each channel is normalised.
 *
 *     picture (H,W,3) uint8 -> resized (R,R H/W,3) or (R W/H,R,3) uint8 -> x (3,S,S) = (pixel / 255 - mean) / stddev
 *
 * Resizing is bilinear with antialiasing, separately along rows and columns. Output i of `out` looks at the line of
 * `in` pixels from its middle, (i + 1/2) in / out, and weighs pixel j, whose middle is j + 1/2, by a triangle that is
 * max(1, in / out) wide on each side. Multiplied by 2 out, with m = max(in, out), the weight is a whole number:
 *
 *     n(j) = 2 m - |(2 j + 1) out - (2 i + 1) in|      where that is positive
 *
 * Weights are shares of their sum, rounded to 22 bits behind the point, and each pass rounds to 8 bits: these are
 * Pillow's rules, and as everything is whole numbers, the CPU, the GPU and Pillow give the same bytes. Only the pixels
 * that the crop keeps are computed.
 *
 *   preprocess_cpu      plain loops
 *   preprocess_direct   one thread per number of x: for each row under its window it sums that row again, with weights
 *                       that it divides out again
 *   preprocess_gpu      a kernel for the weights, one along the rows, and one along the columns that also normalises
 */
#ifndef PHASE5_PRODUCTION_PREPROCESS_CUH
#define PHASE5_PRODUCTION_PREPROCESS_CUH

#include "common/check.h"
#include "phase2_mlp/05_batches/batches.cuh"

enum { PREPROCESS_BITS = 22, PREPROCESS_ROUND = 1 << (PREPROCESS_BITS - 1), PREPROCESS_BLOCK = 256 };

/* What a network expects. */
typedef struct PreprocessRecipe {
  int resize, crop; /* the shorter side; what is kept of the middle, at most as much */
  float mean[3], stddev[3];
} PreprocessRecipe;

/* torchvision's for its ImageNet classifiers. */
static const PreprocessRecipe preprocess_imagenet = {256, 224, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

/* One direction: `in` pixels become `out`, of which `crop` from `first` on are kept. */
typedef struct PreprocessAxis {
  int in, out, first, crop;
  int most; /* pixels under a window, at most */
} PreprocessAxis;

typedef struct PreprocessPlan {
  PreprocessAxis x, y;
  float mean[3], stddev[3];
} PreprocessPlan;

/* The middle, as Python's round() finds it: halves go to the even number. */
static inline int preprocess_crop_first(int size, int crop) {
  const int space = size - crop, half = space / 2;
  return space % 2 == 0 ? half : half + half % 2;
}

static inline PreprocessAxis preprocess_axis(int in, int out, int crop) {
  const int m = in > out ? in : out;
  const PreprocessAxis axis = {in, out, preprocess_crop_first(out, crop), crop, (2 * m + out - 1) / out + 1};
  return axis;
}

/* For a picture of width x height pixels. The longer side becomes resize * longer / shorter, rounded down. */
static inline PreprocessPlan preprocess_plan(int width, int height, PreprocessRecipe recipe) {
  const int shorter = width < height ? width : height;
  const long long w = (long long)recipe.resize * width / shorter, h = (long long)recipe.resize * height / shorter;
  PreprocessPlan plan;
  plan.x = preprocess_axis(width, (int)w, recipe.crop);
  plan.y = preprocess_axis(height, (int)h, recipe.crop);
  memcpy(plan.mean, recipe.mean, sizeof plan.mean);
  memcpy(plan.stddev, recipe.stddev, sizeof plan.stddev);
  return plan;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Weights */

/* A window: its pixels are first to first + count - 1. */
typedef struct PreprocessWindow {
  int first, count;
  long long sum; /* of their weights n(j) */
} PreprocessWindow;

/* n(j) of output i, before it is divided; 0 or less: the window does not reach pixel j. */
static inline __host__ __device__ long long preprocess_share(PreprocessAxis a, int i, int j) {
  long long share = 0;
  // >>> exercise preprocess_triangle: how much pixel j of `a.in` counts for output i of `a.out`: n(j), a whole number
  // hint: the middle of pixel j is j + 1/2 in pixels of the picture, that of output i is (i + 1/2) a.in / a.out
  // hint: times 2 a.out: their distance is |(2 j + 1) a.out - (2 i + 1) a.in|; the triangle's height is 2 m
  // hint: m is the larger of a.in and a.out: a smaller picture needs a wider window, a larger one looks at neighbours
  const long long m = a.in > a.out ? a.in : a.out, d = (2ll * j + 1) * a.out - (2ll * i + 1) * a.in;
  share = 2 * m - (d < 0 ? -d : d);
  // <<< exercise
  return share;
}

/* The window of output i. */
static inline __host__ __device__ PreprocessWindow preprocess_window(PreprocessAxis a, int i) {
  const long long m = a.in > a.out ? a.in : a.out, middle = (2ll * i + 1) * a.in;
  const long long low = middle - 2 * m,
                  high = middle + 2 * m; /* in units of 1 / (2 a.out): between them lie its middles */
  PreprocessWindow window;
  window.first = low < a.out ? 0 : (int)((low - a.out) / (2ll * a.out)) + 1;
  const long long end = (high - a.out + 2ll * a.out - 1) / (2ll * a.out);
  window.count = (int)(end < a.in ? end : a.in) - window.first;
  window.sum = 0;
  for (int j = 0; j < window.count; j++) window.sum += preprocess_share(a, i, window.first + j);
  return window;
}

/* The weight of pixel j, in units of 2^-22. */
static inline __host__ __device__ int preprocess_weight(PreprocessAxis a, PreprocessWindow window, int i, int j) {
  const long long scaled = preprocess_share(a, i, j) << (PREPROCESS_BITS + 1);
  return window.sum > 0 ? (int)((scaled + window.sum) / (2 * window.sum)) : 0;
}

/* 8 bits of a sum of weighted pixels. Rounded weights may add up to a little more than 1. */
static inline __host__ __device__ uint8_t preprocess_round(int sum) {
  const int value = (sum + PREPROCESS_ROUND) >> PREPROCESS_BITS;
  return (uint8_t)(value > 255 ? 255 : value);
}

/* A table of weights (2 + most, crop): of each output that is kept a column of the first pixel, how many there are, and
 * the weights. Threads of neighbouring outputs read neighbours. */
static inline size_t preprocess_table_ints(PreprocessAxis a) { return (size_t)a.crop * (size_t)(2 + a.most); }

static inline __host__ __device__ void preprocess_table_column(int *table, PreprocessAxis a, int kept) {
  const int i = a.first + kept;
  const PreprocessWindow window = preprocess_window(a, i);
  int *to = table + kept;
  to[0] = window.first;
  to[a.crop] = window.count;
  for (int j = 0; j < window.count; j++) to[(2 + j) * a.crop] = preprocess_weight(a, window, i, window.first + j);
}

/* Rows of the picture that the kept outputs look at. */
typedef struct PreprocessRows {
  int first, count;
} PreprocessRows;

static inline PreprocessRows preprocess_rows_needed(PreprocessAxis y) {
  const PreprocessWindow top = preprocess_window(y, y.first), bottom = preprocess_window(y, y.first + y.crop - 1);
  const PreprocessRows rows = {top.first, bottom.first + bottom.count - top.first};
  return rows;
}

/* Bytes beside picture and x: two tables, and the rows that are resized along x alone. */
static inline size_t preprocess_workspace_bytes(PreprocessPlan plan) {
  const size_t rows = (size_t)preprocess_rows_needed(plan.y).count * 3 * (size_t)plan.x.crop;
  return (preprocess_table_ints(plan.x) + preprocess_table_ints(plan.y)) * sizeof(int) + rows;
}

/* The pieces of a workspace. */
typedef struct PreprocessWork {
  int *x, *y;    /* tables */
  uint8_t *rows; /* (rows needed, crop, 3) */
} PreprocessWork;

static inline PreprocessWork preprocess_work(void *workspace, PreprocessPlan plan) {
  PreprocessWork work;
  work.x = (int *)workspace;
  work.y = work.x + preprocess_table_ints(plan.x);
  work.rows = (uint8_t *)(work.y + preprocess_table_ints(plan.y));
  return work;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void preprocess_rows_cpu(PreprocessWork work, const uint8_t *picture, PreprocessPlan plan) {
  const PreprocessRows rows = preprocess_rows_needed(plan.y);
  const int stride = plan.x.crop;
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows.count; r++) {
    const uint8_t *line = picture + (size_t)(rows.first + r) * 3 * (size_t)plan.x.in;
    for (int q = 0; q < stride; q++)
      for (int c = 0; c < 3; c++) {
        const int *table = work.x + q;
        int sum = 0;
        // >>> hidden preprocess_row_sum
        for (int j = 0; j < table[stride]; j++) sum += table[(2 + j) * stride] * line[3 * (table[0] + j) + c];
        // <<< hidden
        work.rows[((size_t)r * stride + q) * 3 + c] = preprocess_round(sum);
      }
  }
}

static inline void preprocess_columns_cpu(float *x, PreprocessWork work, PreprocessPlan plan) {
  const int top = preprocess_rows_needed(plan.y).first, width = plan.x.crop, stride = plan.y.crop;
#pragma omp parallel for schedule(static)
  for (int p = 0; p < plan.y.crop; p++)
    for (int c = 0; c < 3; c++)
      for (int q = 0; q < width; q++) {
        const int *table = work.y + p;
        const uint8_t *column = work.rows + ((size_t)(table[0] - top) * width + q) * 3 + c;
        int sum = 0;
        for (int j = 0; j < table[stride]; j++) sum += table[(2 + j) * stride] * column[(size_t)j * 3 * width];
        // >>> hidden preprocess_normalize
        x[((size_t)c * stride + p) * width + q] = batch_normalize(preprocess_round(sum), plan.mean[c], plan.stddev[c]);
        // <<< hidden
      }
}

static inline void preprocess_cpu(float *x, const uint8_t *picture, void *workspace, PreprocessPlan plan) {
  const PreprocessWork work = preprocess_work(workspace, plan);
  for (int i = 0; i < plan.x.crop; i++) preprocess_table_column(work.x, plan.x, i);
  for (int i = 0; i < plan.y.crop; i++) preprocess_table_column(work.y, plan.y, i);
  preprocess_rows_cpu(work, picture, plan);
  preprocess_columns_cpu(x, work, plan);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One kernel */

/* The pixel (row, output i) of channel c, resized along the row. */
static __device__ __forceinline__ int preprocess_row_pixel(const uint8_t *line, PreprocessAxis a,
                                                           PreprocessWindow window, int i, int c) {
  int sum = 0;
  for (int j = window.first; j < window.first + window.count; j++)
    sum += preprocess_weight(a, window, i, j) * line[3 * j + c];
  return preprocess_round(sum);
}

/* One thread per number of x (3,S,S). */
static __global__ void preprocess_direct_kernel(float *x, const uint8_t *picture, PreprocessPlan plan) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, plane = plan.x.crop * plan.y.crop;
  if (i >= 3 * plane) return;
  const int c = i / plane, p = plan.y.first + i % plane / plan.x.crop, q = plan.x.first + i % plan.x.crop;
  const PreprocessWindow rows = preprocess_window(plan.y, p), columns = preprocess_window(plan.x, q);
  int sum = 0;
  for (int j = rows.first; j < rows.first + rows.count; j++)
    sum += preprocess_weight(plan.y, rows, p, j) *
           preprocess_row_pixel(picture + (size_t)j * 3 * plan.x.in, plan.x, columns, q, c);
  // >>> hidden preprocess_normalize
  x[i] = batch_normalize(preprocess_round(sum), plan.mean[c], plan.stddev[c]);
  // <<< hidden
}

static inline void preprocess_direct(float *x, const uint8_t *picture, void *workspace, PreprocessPlan plan) {
  (void)workspace;
  const int n = 3 * plan.x.crop * plan.y.crop;
  preprocess_direct_kernel<<<(n + PREPROCESS_BLOCK - 1) / PREPROCESS_BLOCK, PREPROCESS_BLOCK>>>(x, picture, plan);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A table of weights, then rows, then columns */

/* One thread per column of the two tables. */
static __global__ void preprocess_table_kernel(PreprocessWork work, PreprocessPlan plan) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, kept = i - plan.x.crop;
  if (i < plan.x.crop)
    preprocess_table_column(work.x, plan.x, i);
  else if (kept < plan.y.crop)
    preprocess_table_column(work.y, plan.y, kept);
}

/* One thread per byte of work.rows (rows,S,3): neighbours are the channels of a pixel, then the next pixel. */
static __global__ void preprocess_rows_kernel(PreprocessWork work, const uint8_t *picture, PreprocessPlan plan,
                                              PreprocessRows rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, width = 3 * plan.x.crop;
  if (i >= rows.count * width) return;
  const int r = i / width, q = i % width / 3, c = i % 3, stride = plan.x.crop;
  const uint8_t *line = picture + (size_t)(rows.first + r) * 3 * plan.x.in; /* row r of those needed */
  const int *table = work.x + q, first = table[0], count = table[stride];   /* the window; its weights follow */
  // >>> exercise preprocess_row_sum: byte i of work.rows: the weighted sum of channel c of `count` pixels from `first`
  // hint: the table has a column for each output: the weight of pixel first + j is table[(2 + j) * stride]
  // hint: the channels of a pixel lie side by side: channel c of pixel j is byte 3 * j + c of the line
  // hint: sum the products in an int, over j below `count`; then work.rows[i] = preprocess_round(sum)
  int sum = 0;
  for (int j = 0; j < count; j++) sum += table[(2 + j) * stride] * line[3 * (first + j) + c];
  work.rows[i] = preprocess_round(sum);
  // <<< exercise
}

/* One thread per number of x (3,S,S): neighbours are in a row of x, and read every third byte of work.rows. */
static __global__ void preprocess_columns_kernel(float *x, PreprocessWork work, PreprocessPlan plan, int top) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, plane = plan.x.crop * plan.y.crop;
  if (i >= 3 * plane) return;
  const int width = plan.x.crop, stride = plan.y.crop, c = i / plane, p = i % plane / width, q = i % width;
  const int *table = work.y + p, count = table[stride];
  const uint8_t *column = work.rows + ((size_t)(table[0] - top) * width + q) * 3 + c;
  int sum = 0;
  for (int j = 0; j < count; j++) sum += table[(2 + j) * stride] * column[(size_t)j * 3 * width];
  // >>> exercise preprocess_normalize: x[i]: the byte that `sum` rounds to, normalised as its channel is
  // hint: preprocess_round(sum) is the byte of the resized picture; batch_normalize(byte, mean, stddev) its number
  // hint: each channel has a mean and a deviation of its own: plan.mean[c], plan.stddev[c]
  // hint: x[i] = batch_normalize(preprocess_round(sum), plan.mean[c], plan.stddev[c]);
  x[i] = batch_normalize(preprocess_round(sum), plan.mean[c], plan.stddev[c]);
  // <<< exercise
}

/* workspace: preprocess_workspace_bytes(plan) of the GPU's memory. */
static inline void preprocess_gpu(float *x, const uint8_t *picture, void *workspace, PreprocessPlan plan) {
  const PreprocessWork work = preprocess_work(workspace, plan);
  const PreprocessRows rows = preprocess_rows_needed(plan.y);
  const int block = PREPROCESS_BLOCK, tables = plan.x.crop + plan.y.crop;
  const int bytes = rows.count * 3 * plan.x.crop, n = 3 * plan.x.crop * plan.y.crop;
  preprocess_table_kernel<<<(tables + block - 1) / block, block>>>(work, plan);
  CUDA_CHECK_LAUNCH();
  preprocess_rows_kernel<<<(bytes + block - 1) / block, block>>>(work, picture, plan, rows);
  CUDA_CHECK_LAUNCH();
  preprocess_columns_kernel<<<(n + block - 1) / block, block>>>(x, work, plan, rows.first);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_PREPROCESS_CUH */
