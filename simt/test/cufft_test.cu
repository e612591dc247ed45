/* cufft_test.cu - cuFFT: transforms of one to three dimensions against the sum in double, for lengths of all kinds,
 * data layouts, in and out of place; streams, graphs; the calls at the edges. On a GPU: nvcc -lcufft. */
#include <cufft.h>
#include <cufftXt.h>
#include <limits.h>
#include <math.h>

#include <complex>

#include "map.cuh"

typedef std::complex<double> Complex;

#define FFT(call)                                                                      \
  do {                                                                                 \
    const cufftResult status = (call);                                                 \
    if (status != 0) fail_msg("line %d: %s: status %d", __LINE__, #call, (int)status); \
  } while (0)

static double next_random() { /* -1 ... 1 */
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) / 8388608.0 - 1;
}

/* ---- the definition ---- */

/* out[u] = sum over x of in[x] exp(sign 2 pi i u x / n), along the dimension of `count` elements, `step` apart. */
static void sum_along(std::vector<Complex> &values, int count, int step, int sign) {
  std::vector<Complex> factors(count), line(count);
  for (int i = 0; i < count; i++) factors[i] = std::polar(1.0, sign * 2 * M_PI * i / count);
  for (size_t first = 0; first < values.size(); first++) {
    if (first / step % count != 0) continue;
    for (int u = 0; u < count; u++) {
      line[u] = 0;
      for (int x = 0; x < count; x++) line[u] += values[first + (size_t)x * step] * factors[(long long)u * x % count];
    }
    for (int u = 0; u < count; u++) values[first + (size_t)u * step] = line[u];
  }
}

static std::vector<Complex> transformed(std::vector<Complex> values, const int *n, int rank, int sign) {
  for (int d = 0, step = (int)values.size(); d < rank; d++) {
    step /= n[d];
    sum_along(values, n[d], step, sign);
  }
  return values;
}

/* ---- one plan against it ---- */

typedef struct Case {
  int rank, n[3], batch;
  bool in_place, strided;
} Case;

template <typename Real>
static void store(std::vector<Real> &array, bool is_real, size_t at, Complex value) {
  if (is_real) {
    array[at] = (Real)value.real();
  } else {
    array[2 * at] = (Real)value.real();
    array[2 * at + 1] = (Real)value.imag();
  }
}

template <typename Real>
static Complex load(const std::vector<Real> &array, bool is_real, size_t at) {
  return is_real ? Complex(array[at], 0) : Complex(array[2 * at], array[2 * at + 1]);
}

/* How one side of a plan lies in memory. */
typedef struct Side {
  bool is_real;
  int embed[3], stride, dist, size; /* size: numbers of its type in all */
} Side;

static Side side_of(const Case &c, bool is_real, bool is_half) {
  Side s = {is_real, {1, 1, 1}, c.strided ? 3 : 1, 0, 0};
  int last = c.n[c.rank - 1], half = last / 2 + 1, count = 1;
  for (int d = 0; d < c.rank; d++) {
    bool is_last = d == c.rank - 1;
    s.embed[d] = is_last && is_half ? half : c.n[d];
    if (is_last && is_real && c.in_place) s.embed[d] = 2 * half;
    if (c.strided) s.embed[d] += d + 1;
    count *= s.embed[d];
  }
  s.dist = count * s.stride + (c.strided ? 5 : 0);
  s.size = s.dist * c.batch;
  return s;
}

static size_t place(const Case &c, const Side &s, int b, const int *at) {
  size_t i = 0;
  for (int d = 0; d < c.rank; d++) i = i * s.embed[d] + at[d];
  return (size_t)b * s.dist + i * s.stride;
}

/* The index of an element among n[0] x n[1] x n[2], as one for each dimension. */
static void indices(const Case &c, int e, int *at) {
  for (int d = c.rank - 1; d >= 0; d--) {
    at[d] = e % c.n[d];
    e /= c.n[d];
  }
}

static void execute(cufftHandle plan, cufftType type, void *in, void *out, int direction) {
  switch (type) {
    case CUFFT_R2C:
      FFT(cufftExecR2C(plan, (float *)in, (float2 *)out));
      break;
    case CUFFT_C2R:
      FFT(cufftExecC2R(plan, (float2 *)in, (float *)out));
      break;
    case CUFFT_C2C:
      FFT(cufftExecC2C(plan, (float2 *)in, (float2 *)out, direction));
      break;
    case CUFFT_D2Z:
      FFT(cufftExecD2Z(plan, (double *)in, (double2 *)out));
      break;
    case CUFFT_Z2D:
      FFT(cufftExecZ2D(plan, (double2 *)in, (double *)out));
      break;
    default:
      FFT(cufftExecZ2Z(plan, (double2 *)in, (double2 *)out, direction));
  }
}

template <typename Real>
static void check(Case c, cufftType type, int direction) {
  bool from_real = type == CUFFT_R2C || type == CUFFT_D2Z, to_real = type == CUFFT_C2R || type == CUFFT_Z2D;
  int sign = from_real ? -1 : to_real ? 1 : direction, count = 1;
  for (int d = 0; d < c.rank; d++) count *= c.n[d];
  Side in = side_of(c, from_real, to_real), out = side_of(c, to_real, from_real);
  const Real gap = (Real)-77;
  size_t in_numbers = (size_t)in.size * (from_real ? 1 : 2), out_numbers = (size_t)out.size * (to_real ? 1 : 2);
  size_t numbers = in_numbers > out_numbers ? in_numbers : out_numbers;
  std::vector<Real> data(c.in_place ? numbers : in_numbers, gap), result(c.in_place ? numbers : out_numbers, gap);
  std::vector<bool> written(result.size());
  std::vector<std::vector<Complex>> expected;

  for (int b = 0; b < c.batch; b++) {
    std::vector<Complex> values(count);
    for (Complex &v : values) v = Complex(next_random(), from_real || to_real ? 0 : next_random());
    if (to_real) { /* the spectrum of real numbers, which are then expected, times count */
      expected.push_back(values);
      for (Complex &v : expected.back()) v *= count;
      values = transformed(values, c.n, c.rank, -1);
    } else {
      expected.push_back(transformed(values, c.n, c.rank, sign));
    }
    for (int e = 0; e < count; e++) {
      int at[3];
      indices(c, e, at);
      bool half = at[c.rank - 1] > c.n[c.rank - 1] / 2;
      if (!to_real || !half) store(data, from_real, place(c, in, b, at), values[e]);
      if (from_real && half) continue;
      size_t to = place(c, out, b, at);
      if (to_real) {
        written[to] = true;
      } else {
        written[2 * to] = written[2 * to + 1] = true;
      }
    }
  }

  cufftHandle plan;
  int n[3] = {c.n[0], c.n[1], c.n[2]};
  FFT(cufftPlanMany(&plan, c.rank, n, c.strided ? in.embed : NULL, in.stride, in.dist, c.strided ? out.embed : NULL,
                    out.stride, out.dist, type, c.batch));
  Real *device_in = upload(data), *device_out = c.in_place ? device_in : upload(result);
  execute(plan, type, device_in, device_out, direction);
  CHECK(cudaDeviceSynchronize());
  result = download(device_out, result.size());
  if (!c.in_place) CHECK(cudaFree(device_in));
  FFT(cufftDestroy(plan));

  double worst = 0, largest = 0;
  for (int b = 0; b < c.batch; b++) {
    for (int e = 0; e < count; e++) {
      int at[3];
      indices(c, e, at);
      if (from_real && at[c.rank - 1] > c.n[c.rank - 1] / 2) continue;
      Complex got = load(result, to_real, place(c, out, b, at));
      double error = std::abs(got - expected[b][e]);
      if (!(error <= worst)) worst = error;
      largest = fmax(largest, std::abs(expected[b][e]));
    }
  }
  double tolerance = (sizeof(Real) == 4 ? 1.2e-7 : 2.3e-16) * (8 + 4 * log2((double)count)) * largest;
  if (!(worst <= tolerance)) {
    fail_msg("type %x of %d x %d x %d, %d times%s%s: error %g, tolerance %g", (int)type, c.n[0], c.n[1], c.n[2],
             c.batch, c.in_place ? ", in place" : "", c.strided ? ", strided" : "", worst, tolerance);
  }
  for (size_t i = 0; i < result.size() && !c.in_place; i++) {
    if (!written[i] && result[i] != gap) fail_msg("type %x: number %zu between the results was written", (int)type, i);
  }
}

static void check_types(Case c) {
  check<float>(c, CUFFT_R2C, 0);
  check<float>(c, CUFFT_C2R, 0);
  check<float>(c, CUFFT_C2C, CUFFT_FORWARD);
  check<float>(c, CUFFT_C2C, CUFFT_INVERSE);
  check<double>(c, CUFFT_D2Z, 0);
  check<double>(c, CUFFT_Z2D, 0);
  check<double>(c, CUFFT_Z2Z, CUFFT_FORWARD);
  check<double>(c, CUFFT_Z2Z, CUFFT_INVERSE);
}

static void one_dimension_of_any_length(void **state) {
  (void)state;
  const int lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31, 45, 64, 77, 100, 101, 128, 169, 251};
  for (int n : lengths) check_types({1, {n, 1, 1}, n % 4 + 1, false, false});
}

static void two_and_three_dimensions(void **state) {
  (void)state;
  const int sizes[][3] = {{4, 8, 1}, {5, 6, 1}, {6, 5, 1}, {1, 9, 1}, {9, 1, 1}, {16, 16, 1}, {13, 11, 1}};
  for (const int *n : sizes) check_types({2, {n[0], n[1], 1}, 3, false, false});
  const int boxes[][3] = {{3, 4, 5}, {2, 3, 8}, {1, 1, 6}, {4, 1, 3}, {5, 7, 2}};
  for (const int *n : boxes) check_types({3, {n[0], n[1], n[2]}, 2, false, false});
}

static void in_place(void **state) {
  (void)state;
  const Case cases[] = {{1, {8, 1, 1}, 3, true, false}, {1, {7, 1, 1}, 2, true, false}, {2, {5, 6, 1}, 2, true, false},
                        {2, {4, 9, 1}, 1, true, false}, {3, {3, 4, 5}, 2, true, false}, {3, {2, 3, 6}, 3, true, false}};
  for (const Case &c : cases) check_types(c);
}

static void strides_and_gaps(void **state) {
  (void)state;
  const Case cases[] = {{1, {8, 1, 1}, 3, false, true},
                        {1, {15, 1, 1}, 1, false, true},
                        {2, {6, 7, 1}, 2, false, true},
                        {2, {4, 8, 1}, 3, false, true},
                        {3, {3, 4, 5}, 2, false, true}};
  for (const Case &c : cases) check_types(c);
}

/* Element e of transform b at b + e * batch: all transforms' first elements, then all second ones, and so on. */
static void interleaved_batches(void **state) {
  (void)state;
  enum { N = 6, BATCH = 5 };
  std::vector<float> data(2 * N * BATCH);
  for (float &x : data) x = (float)next_random();
  float2 *d = (float2 *)upload(data);
  int n[1] = {N};
  cufftHandle plan;
  FFT(cufftPlanMany(&plan, 1, n, n, BATCH, 1, n, BATCH, 1, CUFFT_C2C, BATCH));
  FFT(cufftExecC2C(plan, d, d, CUFFT_FORWARD));
  CHECK(cudaDeviceSynchronize());
  std::vector<float> got = download((float *)d, data.size());
  for (int b = 0; b < BATCH; b++) {
    std::vector<Complex> values(N);
    for (int e = 0; e < N; e++) values[e] = Complex(data[2 * (b + e * BATCH)], data[2 * (b + e * BATCH) + 1]);
    values = transformed(values, n, 1, -1);
    for (int e = 0; e < N; e++) {
      Complex v(got[2 * (b + e * BATCH)], got[2 * (b + e * BATCH) + 1]);
      assert_true(std::abs(v - values[e]) < 1e-5);
    }
  }
  FFT(cufftDestroy(plan));
}

/* All ways to make the same plan. */
static void plans_of_all_functions(void **state) {
  (void)state;
  const int sizes[3] = {3, 4, 5};
  for (int way = 0; way < 9; way++) {
    int rank = way % 3 + 1, n[3] = {3, 4, 5}, count = 1;
    long long n64[3] = {3, 4, 5};
    for (int d = 0; d < rank; d++) count *= n[d];
    cufftHandle plan;
    size_t work = 12345;
    if (way < 3) {
      FFT(way == 0   ? cufftPlan1d(&plan, 3, CUFFT_Z2Z, 1)
          : way == 1 ? cufftPlan2d(&plan, 3, 4, CUFFT_Z2Z)
                     : cufftPlan3d(&plan, 3, 4, 5, CUFFT_Z2Z));
    } else {
      FFT(cufftCreate(&plan));
      if (way == 3) FFT(cufftMakePlan1d(plan, 3, CUFFT_Z2Z, 1, &work));
      if (way == 4) FFT(cufftMakePlan2d(plan, 3, 4, CUFFT_Z2Z, &work));
      if (way == 5) FFT(cufftMakePlan3d(plan, 3, 4, 5, CUFFT_Z2Z, &work));
      if (way == 6) FFT(cufftMakePlanMany(plan, rank, n, NULL, 1, 0, NULL, 1, 0, CUFFT_Z2Z, 1, &work));
      if (way == 7) FFT(cufftMakePlanMany64(plan, rank, n64, NULL, 1, 0, NULL, 1, 0, CUFFT_Z2Z, 1, &work));
      if (way == 8) {
        FFT(cufftXtMakePlanMany(plan, rank, n64, NULL, 1, 0, CUDA_C_64F, NULL, 1, 0, CUDA_C_64F, 1, &work, CUDA_C_64F));
      }
      size_t again;
      FFT(cufftGetSize(plan, &again));
      assert_true(work == again);
    }
    std::vector<double> data(2 * count);
    for (double &x : data) x = next_random();
    double2 *d = (double2 *)upload(data);
    if (way % 2) {
      FFT(cufftXtExec(plan, d, d, CUFFT_INVERSE));
    } else {
      FFT(cufftExecZ2Z(plan, d, d, CUFFT_INVERSE));
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<Complex> values(count);
    for (int e = 0; e < count; e++) values[e] = Complex(data[2 * e], data[2 * e + 1]);
    values = transformed(values, sizes, rank, 1);
    std::vector<double> got = download((double *)d, data.size());
    for (int e = 0; e < count; e++) assert_true(std::abs(Complex(got[2 * e], got[2 * e + 1]) - values[e]) < 1e-12);
    FFT(cufftDestroy(plan));
  }
}

/* A given work area serves as well; its size is what the plan asked for. */
static void given_work_areas(void **state) {
  (void)state;
  cufftHandle plan;
  size_t bytes = 0, estimate = 0;
  FFT(cufftCreate(&plan));
  FFT(cufftSetAutoAllocation(plan, 0));
  FFT(cufftEstimate1d(1000, CUFFT_C2C, 3, &estimate));
  FFT(cufftMakePlan1d(plan, 1000, CUFFT_C2C, 3, &bytes));
  std::vector<float> data(6000, 0);
  data[2] = 1; /* element 1: its spectrum is the circle */
  float2 *d = (float2 *)upload(data);
  char *area = NULL;
  CHECK(cudaMalloc((void **)&area, bytes + 256));
  FFT(cufftSetWorkArea(plan, area));
  FFT(cufftExecC2C(plan, d, d, CUFFT_FORWARD));
  CHECK(cudaDeviceSynchronize());
  data = download((float *)d, data.size());
  for (int u = 0; u < 1000; u++) {
    Complex expected = std::polar(1.0, -2 * M_PI * u / 1000);
    assert_true(std::abs(Complex(data[2 * u], data[2 * u + 1]) - expected) < 1e-5);
  }
  FFT(cufftDestroy(plan));
  CHECK(cudaFree(area));
}

/* ---- streams ---- */

static __global__ void fill(float2 *d, int n, float value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) d[i] = make_float2(value, 0);
}

/* Transforms are done in their stream's order: after the kernel before them, before the copy after them. */
static void transforms_keep_the_streams_order(void **state) {
  (void)state;
  enum { N = 1024 };
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  float2 *d = device_array<float2>(N), *host;
  CHECK(cudaMallocHost((void **)&host, N * sizeof *host));
  cufftHandle plan;
  FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
  FFT(cufftSetStream(plan, stream));
  fill<<<N / 256, 256, 0, stream>>>(d, N, 2);
  FFT(cufftExecC2C(plan, d, d, CUFFT_FORWARD));
  CHECK(cudaMemcpyAsync(host, d, N * sizeof *d, cudaMemcpyDeviceToHost, stream));
  fill<<<N / 256, 256, 0, stream>>>(d, N, 3);
  CHECK(cudaStreamSynchronize(stream));
  assert_true(fabsf(host[0].x - 2 * N) < 1e-2f);
  for (int i = 1; i < N; i++) assert_true(fabsf(host[i].x) < 1e-2f && fabsf(host[i].y) < 1e-2f);
  FFT(cufftDestroy(plan));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(d));
  CHECK(cudaFreeHost(host));
}

static void a_graph_holds_transforms(void **state) {
  (void)state;
  enum { N = 60 };
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  float2 *d = device_array<float2>(N);
  cufftHandle plan;
  FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
  FFT(cufftSetStream(plan, stream));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  FFT(cufftExecC2C(plan, d, d, CUFFT_FORWARD));
  FFT(cufftExecC2C(plan, d, d, CUFFT_INVERSE));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  std::vector<float2> data(N, make_float2(1, -1));
  CHECK(cudaMemcpy(d, data.data(), N * sizeof *d, cudaMemcpyHostToDevice));
  for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(data.data(), d, N * sizeof *d, cudaMemcpyDeviceToHost));
  for (float2 v : data) assert_true(fabsf(v.x - N * N) < 1e-1f && fabsf(v.y + N * N) < 1e-1f);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  FFT(cufftDestroy(plan));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(d));
}

/* ---- the calls ---- */

static void statuses(void **state) {
  (void)state;
  cufftHandle plan, other;
  int version = 0;
  size_t bytes;
  assert_int_equal(cufftPlan1d(&plan, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan1d(&plan, -3, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan1d(&plan, 8, CUFFT_C2C, 0), CUFFT_INVALID_SIZE);
  assert_int_equal(cufftPlan1d(&plan, 8, (cufftType)5, 1), CUFFT_INVALID_TYPE);
  assert_int_equal(cufftPlan1d(NULL, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftCreate(NULL), CUFFT_INVALID_VALUE);
  int n[4] = {8, 2, 2, 2};
  assert_int_equal(cufftPlanMany(&plan, 4, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 0, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 1, NULL, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 1, n, n, 0, 8, n, 1, 8, CUFFT_C2C, 2), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 1, n, n, 1, 0, n, 1, 0, CUFFT_C2C, 2), CUFFT_INVALID_VALUE);
  FFT(cufftPlan1d(&plan, 8, CUFFT_R2C, 1));
  FFT(cufftPlan1d(&other, 8, CUFFT_C2C, 1));
  assert_true(plan != other);
  float2 *d = device_array<float2>(64);
  assert_int_equal(cufftExecC2C(other, d, d, 0), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftExecC2C(other, d, (float2 *)((float *)d + 1), CUFFT_FORWARD), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftMakePlan1d(plan, 8, CUFFT_R2C, 1, &bytes), CUFFT_INVALID_PLAN); /* it is made */
  assert_int_equal(cufftGetSize(plan, NULL), CUFFT_INVALID_VALUE);
  cufftHandle empty;
  FFT(cufftCreate(&empty));
  assert_int_equal(cufftGetSize(empty, &bytes), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftExecC2C(empty, d, d, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftMakePlan1d(empty, 8, CUFFT_C2C, 1, NULL), CUFFT_INVALID_VALUE);
  FFT(cufftDestroy(empty));
  FFT(cufftDestroy(CUFFT_PLAN_NULL));
  assert_int_equal(cufftSetStream(99, 0), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftExecC2C(99, d, d, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftGetSize(99, &bytes), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftDestroy(99), CUFFT_INVALID_PLAN);
  FFT(cufftDestroy(other));
  assert_int_equal(cufftDestroy(other), CUFFT_INVALID_PLAN);
  assert_int_equal(cufftExecC2C(other, d, d, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
  FFT(cufftDestroy(plan));
  FFT(cufftGetVersion(&version));
  assert_true(version >= 10000);
  CHECK(cudaFree(d));
}

/* What only the emulator can say. The last test: afterwards the device is reset. */
static void pointers_are_checked(void **state) {
  (void)state;
#ifndef SIMT_REWRITTEN
  skip();
#else
  for (int turn = 0; turn < 5; turn++) {
    cufftHandle plan;
    FFT(cufftPlan1d(&plan, 8, CUFFT_C2C, 8));
    float2 *d = device_array<float2>(64), host[64];
    cufftResult status = CUFFT_SUCCESS;
    if (turn == 0) status = cufftExecC2C(plan, host, d, CUFFT_FORWARD);
    if (turn == 1) status = cufftExecC2C(plan, d, host, CUFFT_FORWARD);
    if (turn == 2) status = cufftExecC2C(plan, d + 1, d + 1, CUFFT_FORWARD);
    if (turn == 3) status = cufftExecC2C(plan, NULL, d, CUFFT_FORWARD);
    if (turn == 4) {
      CHECK(cudaFree(d));
      status = cufftExecC2C(plan, d, d, CUFFT_FORWARD);
    }
    assert_int_equal(status, CUFFT_EXEC_FAILED);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    FFT(cufftDestroy(plan));
    CHECK(cudaDeviceReset());
  }
#endif
}

/* Where the emulator is stricter than cuFFT. */
static void misuse_is_refused(void **state) {
  (void)state;
#ifndef SIMT_REWRITTEN
  skip();
#else
  cufftHandle plan;
  size_t bytes;
  float2 *d = device_array<float2>(64);
  assert_int_equal(cufftPlan2d(&plan, 8, 0, CUFFT_C2C), CUFFT_INVALID_SIZE);
  /* Layouts that go backwards, or beyond all memory; the first embed is not used. */
  int n2[2] = {2, 8}, unused[2] = {-5, 8}, zero[2] = {2, 0}, back[2] = {2, -8};
  int n3[3] = {2, 2, 2}, wide[3] = {2, INT_MAX, INT_MAX};
  assert_int_equal(cufftPlanMany(&plan, 2, n2, zero, 1, 16, n2, 1, 16, CUFFT_C2C, 2), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 2, n2, n2, 1, 16, back, 1, 1000, CUFFT_C2C, 2), CUFFT_INVALID_VALUE);
  assert_int_equal(cufftPlanMany(&plan, 3, n3, n3, 1, 8, wide, INT_MAX, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
  FFT(cufftPlanMany(&plan, 2, n2, unused, 1, 16, unused, 1, 16, CUFFT_C2C, 2));
  FFT(cufftExecC2C(plan, d, d, CUFFT_FORWARD));
  FFT(cufftDestroy(plan));
  FFT(cufftPlan1d(&plan, 8, CUFFT_R2C, 1));
  assert_int_equal(cufftExecC2C(plan, d, d, CUFFT_FORWARD), CUFFT_INVALID_TYPE);
  assert_int_equal(cufftExecD2Z(plan, (double *)d, (double2 *)d), CUFFT_INVALID_TYPE);
  assert_int_equal(cufftExecR2C(plan, (float *)d + 33, d), CUFFT_INVALID_VALUE); /* real data, half a number further */
  assert_int_equal(cufftExecR2C(plan, (float *)((char *)d + 2), d + 32), CUFFT_INVALID_VALUE);
  FFT(cufftDestroy(plan));
  FFT(cufftCreate(&plan));
  FFT(cufftSetAutoAllocation(plan, 0));
  FFT(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &bytes));
  assert_true(bytes > 0);
  cufftHandle inverse;
  FFT(cufftPlan2d(&inverse, 4, 4, CUFFT_C2R));
  FFT(cufftExecC2R(inverse, d, (float *)d + 64));
  CHECK(cudaDeviceSynchronize());
  float2 spoilt;
  CHECK(cudaMemcpy(&spoilt, d, sizeof spoilt, cudaMemcpyDeviceToHost));
  assert_true(isnan(spoilt.x) && isnan(spoilt.y));
  FFT(cufftDestroy(inverse));
  assert_int_equal(cufftExecC2C(plan, d, d, CUFFT_FORWARD), CUFFT_NO_WORKSPACE);
  FFT(cufftDestroy(plan));
  FFT(cufftCreate(&plan));
  long long n[1] = {8};
  assert_int_equal(
      cufftXtMakePlanMany(plan, 1, n, NULL, 1, 0, CUDA_C_16F, NULL, 1, 0, CUDA_C_16F, 1, &bytes, CUDA_C_16F),
      CUFFT_NOT_SUPPORTED);
  FFT(cufftDestroy(plan));
  CHECK(cudaFree(d));
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_dimension_of_any_length),
      cmocka_unit_test(two_and_three_dimensions),
      cmocka_unit_test(in_place),
      cmocka_unit_test(strides_and_gaps),
      cmocka_unit_test(interleaved_batches),
      cmocka_unit_test(plans_of_all_functions),
      cmocka_unit_test(given_work_areas),
      cmocka_unit_test(transforms_keep_the_streams_order),
      cmocka_unit_test(a_graph_holds_transforms),
      cmocka_unit_test(statuses),
      cmocka_unit_test(misuse_is_refused),
      cmocka_unit_test(pointers_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
