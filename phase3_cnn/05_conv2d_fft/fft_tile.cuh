/* fft_tile.cuh - real two-dimensional Fourier transforms of many small tiles, T x T with T = 16, 32 or 64, on the GPU.
 *
 *   fft_registers              a complex transform of T numbers in the registers of one thread
 *   fft_tiles_forward_kernel   cuts tiles out of planes (N,C,H,W), pads them with zeros, transforms them
 *   fft_tiles_inverse_kernel   transforms back, stores a part of each tile to its place in planes (N,C,H,W)
 *
 * A tile has T x T real numbers, and so has its spectrum: T^2 complex numbers, of which one half are the conjugates of
 * the other half. A transform of T rows and then of T columns keeps that in every step:
 *
 *   rows      rows j and j + T/2 are the real and the imaginary part of one complex transform. The sums and differences
 *             of its elements v and T - v are the spectra of the two rows (fft_split). Elements 0 and T/2 are real, and
 *             share one complex number. So a row of T floats becomes T/2 complex numbers, in place
 *   columns   T/2 complex transforms. Column 0 holds two real columns, the frequencies 0 and T/2, and is split again
 *
 * Each of both passes has T/2 transforms per tile, one per thread. Spectra lie frequency by frequency: spectrum[f] is a
 * matrix (rows, lanes), lanes contiguous; see FftLayout. A block transforms FftTile<T>::lanes neighbouring lanes of one
 * row, and a warp writes the same frequency of neighbouring lanes together.
 */
#ifndef PHASE3_CNN_FFT_TILE_CUH
#define PHASE3_CNN_FFT_TILE_CUH

#include <cuda_pipeline.h>

#include "common/check.h"
#include "common/shared_memory_limit.cuh"

/* ---- geometry ---- */

template <int T>
struct FftTile {
  static const int half = T / 2;
  static const int frequencies = T * T / 2 + 2;
  static const int lanes = T == 16 ? 32 : T == 32 ? 16 : 4; /* of a block: 4 x 8 bytes are a sector */
  static const int threads = lanes * half;
  /* In shared memory, in float2: from one row of a tile to the next, and from one tile to the next. 16 neighbouring
   * lanes, 16 tiles or 4 neighbouring rows or columns of 4 tiles, use all banks: no conflicts. */
  static const int row = T == 64 ? half + 1 : half, pitch = T * row + (T == 64 ? 4 : 1);
  static const int shared_bytes = lanes * pitch * (int)sizeof(float2);
};

/* How planes (N,C,H,W) are cut into tiles. Tile (i,j) of a plane begins at its row i * step_h - padding_h, column
 * j * step_w - padding_w. Forward: rows and columns of a tile from extent_h, extent_w on, and what lies outside the
 * plane, count as zeros. Inverse: of each tile only extent_h x extent_w elements from (first_h, first_w) on are stored,
 * where they lie inside the plane. */
typedef struct FftPlanes {
  int n, c, h, w;
  int tiles_h, tiles_w, step_h, step_w, padding_h, padding_w;
  int first_h, first_w, extent_h, extent_w;
} FftPlanes;

/* The spectra of planes: matrices (rows, lanes), one for each frequency, with `pitch` complex numbers from one row to
 * the next, a multiple of 32. Lanes are the tiles of all images, rows the channels; or by_channel: lanes are channels,
 * rows the tiles. */
typedef struct FftLayout {
  int rows, lanes, pitch, by_channel;
} FftLayout;

/* What becomes of an element on its way to a plane. */
typedef struct FftEpilogue {
  const float *bias; /* of each channel, is added; NULL: none */
  float least;       /* what is less becomes this. 0: ReLU; -INFINITY: nothing */
} FftEpilogue;

static inline int fft_tiles(FftPlanes p) { return p.n * p.tiles_h * p.tiles_w; }

static inline int fft_pitch(int lanes) { return (lanes + 31) / 32 * 32; }

static inline FftLayout fft_layout(FftPlanes p, bool by_channel) {
  int tiles = fft_tiles(p), lanes = by_channel ? p.c : tiles;
  FftLayout layout = {by_channel ? tiles : p.c, lanes, fft_pitch(lanes), by_channel};
  return layout;
}

/* ---- one transform in registers ---- */

/* cos(2 pi i / 64), 0 <= i <= 32 */
static __host__ __device__ constexpr float fft_cosine(int i) {
  const float quarter[17] = {1.0f,         0.995184727f, 0.980785280f, 0.956940336f, 0.923879533f, 0.881921264f,
                             0.831469612f, 0.773010453f, 0.707106781f, 0.634393284f, 0.555570233f, 0.471396737f,
                             0.382683432f, 0.290284677f, 0.195090322f, 0.098017140f, 0.0f};
  return i <= 16 ? quarter[i] : -quarter[32 - i];
}

/* sin(2 pi i / 64), 0 <= i <= 32 */
static __host__ __device__ constexpr float fft_sine(int i) { return i <= 16 ? fft_cosine(16 - i) : fft_cosine(i - 16); }

/* The bits of i < count in reverse order; count is a power of 2. */
static __host__ __device__ constexpr int fft_reversed(int i, int count) {
  int reversed = 0;
  for (int bit = 1; bit < count; bit *= 2, i /= 2) reversed = 2 * reversed + i % 2;
  return reversed;
}

/* z[fft_reversed(k, T)] = sum over j of z[j] exp(SIGN 2 pi i j k / T); SIGN -1: forward, +1: inverse, not divided by T.
 * Decimation in frequency: a step turns each run of 2 * half numbers into two transforms of half the length, the even
 * frequencies from sums, the odd ones from differences times the twiddle factors exp(SIGN 2 pi i j / (2 half)). */
template <int T, int SIGN>
static __device__ __forceinline__ void fft_registers(float2 (&z)[T]) {
#pragma unroll
  for (int runs = 1; runs < T; runs *= 2) {
    const int half = T / 2 / runs;
#pragma unroll
    for (int butterfly = 0; butterfly < T / 2; butterfly++) {
      const int j = butterfly % half, i = butterfly / half * 2 * half + j, angle = j * 32 / half;
      const float c = fft_cosine(angle), s = SIGN * fft_sine(angle); /* the twiddle factor c + i s */
      // >>> exercise fft_butterfly: z[i] becomes the sum of z[i] and z[i + half], and z[i + half] their difference,
      // first minus second, times the twiddle factor
      // hint: z[i] is overwritten, and the difference needs what it held: keep both in variables
      // hint: (d.x + i d.y) (c + i s) has two products in the real part and two in the imaginary part
      // hint: for angle 0 the factor is 1, and for angle 16 it is i or, in the forward transform, -i: no products
      float2 a = z[i], b = z[i + half], d = make_float2(a.x - b.x, a.y - b.y);
      z[i] = make_float2(a.x + b.x, a.y + b.y);
      z[i + half] = angle == 0    ? d
                    : angle == 16 ? make_float2(-SIGN * d.y, SIGN * d.x)
                                  : make_float2(d.x * c - d.y * s, d.y * c + d.x * s);
      // <<< exercise
    }
  }
}

/* p and q are elements v and T - v of the spectrum of a + i b, with a and b real: element v of the spectra of a, b. */
static __device__ __forceinline__ void fft_split(float2 *a, float2 *b, float2 p, float2 q) {
  // >>> exercise fft_real_pair: *a and *b from p and q
  // hint: p = a + i b and, as the spectrum of real numbers has conj(a) at T - v, q = conj(a) + i conj(b)
  // hint: so conj(q) = a - i b
  // hint: p + conj(q) = 2 a, and p - conj(q) = 2 i b
  *a = make_float2(0.5f * (p.x + q.x), 0.5f * (p.y - q.y));
  *b = make_float2(0.5f * (p.y + q.y), 0.5f * (q.x - p.x));
  // <<< exercise
}

/* The way back: elements v and T - v of the spectrum of a + i b. */
static __device__ __forceinline__ void fft_merge(float2 *p, float2 *q, float2 a, float2 b) {
  *p = make_float2(a.x - b.y, a.y + b.x);
  *q = make_float2(a.x + b.y, b.x - a.y);
}

/* ---- planes and tiles ---- */

/* Where the tiles of a block lie in the planes. */
typedef struct FftOrigin {
  size_t plane; /* first element of the plane */
  int row, col; /* of the tile's first element; a large row: there is no such lane */
} FftOrigin;

enum { FFT_NO_LANE = 1 << 29 };

static __device__ __forceinline__ FftOrigin fft_origin(FftPlanes p, FftLayout layout, int row, int lane) {
  FftOrigin origin = {0, FFT_NO_LANE, 0};
  if (lane >= layout.lanes) return origin;
  int channel = layout.by_channel ? lane : row, tile = layout.by_channel ? row : lane;
  int j = tile % p.tiles_w, i = tile / p.tiles_w % p.tiles_h, n = tile / p.tiles_w / p.tiles_h;
  origin.plane = ((size_t)n * p.c + channel) * p.h * p.w;
  origin.row = i * p.step_h - p.padding_h;
  origin.col = j * p.step_w - p.padding_w;
  return origin;
}

/* The tiles of a block, from global to shared memory. A thread copies one column of each tile, every `down`-th row, so
 * that neighbouring threads load neighbouring columns. All copies (cp.async) are under way at the same time; those of
 * what counts as zero copy no byte and fill. */
template <int T>
static __device__ __forceinline__ void fft_load_tiles(float *tiles, const float *planes, FftPlanes p,
                                                      const FftOrigin *origins) {
  typedef FftTile<T> Tile;
  const int down = Tile::threads / T;
  int j = threadIdx.x % T, first = threadIdx.x / T;
  for (int lane = 0; lane < Tile::lanes; lane++) {
    FftOrigin origin = origins[lane];
    int v = origin.col + j;
    bool inside = (unsigned)v < (unsigned)p.w && j < p.extent_w;
    const float *column = planes + origin.plane + v;
    float *to = tiles + lane * 2 * Tile::pitch + j;
#pragma unroll
    for (int k = 0; k < T / down; k++) {
      int i = first + k * down, h = origin.row + i;
      bool copied = inside && (unsigned)h < (unsigned)p.h && i < p.extent_h;
      __pipeline_memcpy_async(to + i * 2 * Tile::row, copied ? column + h * p.w : planes, sizeof(float),
                              copied ? 0 : sizeof(float));
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

/* The way back. The tile of a lane is of channel first_channel + lane * channel_step. */
template <int T>
static __device__ __forceinline__ void fft_store_tiles(float *planes, const float *tiles, FftEpilogue epilogue,
                                                       FftPlanes p, const FftOrigin *origins, int channel_step,
                                                       int first_channel) {
  typedef FftTile<T> Tile;
  const int down = Tile::threads / T;
  int j = threadIdx.x % T - p.first_w, first = threadIdx.x / T;
  for (int lane = 0; lane < Tile::lanes; lane++) {
    FftOrigin origin = origins[lane];
    int v = origin.col + j;
    if (origin.row == FFT_NO_LANE || (unsigned)v >= (unsigned)p.w || (unsigned)j >= (unsigned)p.extent_w) continue;
    float *column = planes + origin.plane + v;
    const float *from = tiles + lane * 2 * Tile::pitch + threadIdx.x % T;
    float add = epilogue.bias != NULL ? epilogue.bias[first_channel + lane * channel_step] : 0.0f;
#pragma unroll
    for (int k = 0; k < T / down; k++) {
      int row = first + k * down, i = row - p.first_h, h = origin.row + i;
      if ((unsigned)h >= (unsigned)p.h || (unsigned)i >= (unsigned)p.extent_h) continue;
      float value = from[row * 2 * Tile::row] * (1.0f / (T * T)) + add;
      column[h * p.w] = value < epilogue.least ? epilogue.least : value; /* NaN stays NaN */
    }
  }
}

/* ---- kernels ---- */

/* One block per row and group of lanes. */
template <int T>
static __global__ void __launch_bounds__(FftTile<T>::threads)
    fft_tiles_forward_kernel(float2 *spectrum, const float *planes, FftPlanes p, FftLayout layout) {
  typedef FftTile<T> Tile;
  extern __shared__ __align__(16) float2 fft_forward_tiles[]; /* T rows of T floats, later of T/2 complex numbers */
  __shared__ FftOrigin origins[Tile::lanes];
  float2 *tiles = fft_forward_tiles;
  int groups = layout.pitch / Tile::lanes, row = blockIdx.x / groups, lane0 = blockIdx.x % groups * Tile::lanes;
  if (threadIdx.x < Tile::lanes) origins[threadIdx.x] = fft_origin(p, layout, row, lane0 + threadIdx.x);
  __syncthreads();

  fft_load_tiles<T>((float *)tiles, planes, p, origins);
  __syncthreads();

  int lane = threadIdx.x % Tile::lanes, mine = threadIdx.x / Tile::lanes; /* a pair of rows, then a column */
  float2 *tile = tiles + lane * Tile::pitch, z[T];

  float2 *upper = tile + mine * Tile::row, *lower = upper + T / 2 * Tile::row;
#pragma unroll
  for (int i = 0; i < T / 2; i++) {
    float2 a = upper[i], b = lower[i]; /* elements 2i and 2i + 1 of both rows */
    z[2 * i] = make_float2(a.x, b.x);
    z[2 * i + 1] = make_float2(a.y, b.y);
  }
  fft_registers<T, -1>(z);
  upper[0] = make_float2(z[0].x, z[1].x); /* z[1] is frequency T/2 */
  lower[0] = make_float2(z[0].y, z[1].y);
#pragma unroll
  for (int v = 1; v < T / 2; v++) fft_split(&upper[v], &lower[v], z[fft_reversed(v, T)], z[fft_reversed(T - v, T)]);
  __syncthreads();

#pragma unroll
  for (int u = 0; u < T; u++) z[u] = tile[u * Tile::row + mine];
  fft_registers<T, -1>(z);
  size_t matrix = (size_t)layout.rows * layout.pitch; /* from one frequency to the next */
  float2 *to = spectrum + (size_t)row * layout.pitch + lane0 + lane;
  if (mine > 0) {
    to += (T + 2 + (mine - 1) * T) * matrix;
#pragma unroll
    for (int u = 0; u < T; u++) to[u * matrix] = z[fft_reversed(u, T)];
  } else {
#pragma unroll
    for (int u = 0; u <= T / 2; u++) {
      float2 first, last;
      fft_split(&first, &last, z[fft_reversed(u, T)], z[fft_reversed((T - u) % T, T)]);
      to[u * matrix] = first;
      to[(T / 2 + 1 + u) * matrix] = last;
    }
  }
}

/* The same steps backwards. planes = the real tiles / T^2, with the bias and ReLU of the epilogue. */
template <int T>
static __global__ void __launch_bounds__(FftTile<T>::threads)
    fft_tiles_inverse_kernel(float *planes, const float2 *spectrum, FftEpilogue epilogue, FftPlanes p,
                             FftLayout layout) {
  typedef FftTile<T> Tile;
  extern __shared__ __align__(16) float2 fft_inverse_tiles[];
  __shared__ FftOrigin origins[Tile::lanes];
  float2 *tiles = fft_inverse_tiles;
  int groups = layout.pitch / Tile::lanes, row = blockIdx.x / groups, lane0 = blockIdx.x % groups * Tile::lanes;
  if (threadIdx.x < Tile::lanes) origins[threadIdx.x] = fft_origin(p, layout, row, lane0 + threadIdx.x);

  int lane = threadIdx.x % Tile::lanes, mine = threadIdx.x / Tile::lanes; /* a column, then a pair of rows */
  float2 *tile = tiles + lane * Tile::pitch, z[T];
  size_t matrix = (size_t)layout.rows * layout.pitch;
  const float2 *from = spectrum + (size_t)row * layout.pitch + lane0 + lane;
  if (mine > 0) {
    from += (T + 2 + (mine - 1) * T) * matrix;
#pragma unroll
    for (int u = 0; u < T; u++) z[u] = from[u * matrix];
  } else {
#pragma unroll
    for (int u = 0; u <= T / 2; u++)
      fft_merge(&z[u], &z[(T - u) % T], from[u * matrix], from[(T / 2 + 1 + u) * matrix]);
  }
  fft_registers<T, 1>(z);
#pragma unroll
  for (int u = 0; u < T; u++) tile[u * Tile::row + mine] = z[fft_reversed(u, T)];
  __syncthreads();

  float2 *upper = tile + mine * Tile::row, *lower = upper + T / 2 * Tile::row;
  float2 first = upper[0], second = lower[0]; /* frequencies 0 and T/2 of both rows */
  z[0] = make_float2(first.x, second.x);
  z[T / 2] = make_float2(first.y, second.y);
#pragma unroll
  for (int v = 1; v < T / 2; v++) fft_merge(&z[v], &z[T - v], upper[v], lower[v]);
  fft_registers<T, 1>(z);
#pragma unroll
  for (int i = 0; i < T / 2; i++) {
    float2 a = z[fft_reversed(2 * i, T)], b = z[fft_reversed(2 * i + 1, T)];
    upper[i] = make_float2(a.x, b.x);
    lower[i] = make_float2(a.y, b.y);
  }
  __syncthreads();

  fft_store_tiles<T>(planes, (const float *)tiles, epilogue, p, origins, layout.by_channel ? 1 : 0,
                     layout.by_channel ? lane0 : row);
}

/* ---- launchers ---- */

template <int T>
static inline void fft_tiles_forward(float2 *spectrum, const float *planes, FftPlanes p, FftLayout layout) {
  shared_limit_ask((const void *)fft_tiles_forward_kernel<T>, FftTile<T>::shared_bytes);
  fft_tiles_forward_kernel<T>
      <<<(unsigned)(layout.rows * (layout.pitch / FftTile<T>::lanes)), FftTile<T>::threads, FftTile<T>::shared_bytes>>>(
          spectrum, planes, p, layout);
  CUDA_CHECK_LAUNCH();
}

template <int T>
static inline void fft_tiles_inverse(float *planes, const float2 *spectrum, FftEpilogue epilogue, FftPlanes p,
                                     FftLayout layout) {
  shared_limit_ask((const void *)fft_tiles_inverse_kernel<T>, FftTile<T>::shared_bytes);
  fft_tiles_inverse_kernel<T>
      <<<(unsigned)(layout.rows * (layout.pitch / FftTile<T>::lanes)), FftTile<T>::threads, FftTile<T>::shared_bytes>>>(
          planes, spectrum, epilogue, p, layout);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_FFT_TILE_CUH */
