/* curand_device_test.cu - curand_kernel.h: NVIDIA's sequences (checksums made with the toolkit's header, version 10.4),
 * known answers of the papers, skipping, distributions. On a GPU: nvcc, without a library. */
#include <curand_kernel.h>
#include <math.h>

#include "map.cuh"

typedef curandStatePhilox4_32_10_t Philox;
typedef curandStateXORWOW_t Xorwow;
typedef curandStateMRG32k3a_t Mrg;

static uint64_t checksum(const void *bytes, size_t count) { /* FNV-1a */
  uint64_t sum = 14695981039346656037ull;
  for (size_t i = 0; i < count; i++) sum = (sum ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
  return sum;
}

/* NVIDIA's sizes: a kernel that loads its state from memory moves as much. */
static_assert(sizeof(curandState) == 48 && sizeof(curandState_t) == 48 && sizeof(Mrg) == 48, "");
static_assert(sizeof(Philox) == 64, "");

/* ---- sequences ---- */

/* Eight words from the thread's own subsequence. */
template <class State>
static __global__ void words_kernel(uint32_t *out, unsigned long long seed, unsigned long long offset) {
  State state;
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, thread, offset, &state);
  out += thread * 8;
  out[0] = curand(&state);
  out[1] = __float_as_uint(curand_uniform(&state));
  double u = curand_uniform_double(&state);
  memcpy(&out[2], &u, sizeof u);
  skipahead(1000003, &state);
  out[4] = curand(&state);
  skipahead_sequence(5, &state);
  out[5] = curand(&state);
  out[6] = curand_poisson(&state, 4.0);
  out[7] = curand(&state);
}

struct Words {
  unsigned long long seed, offset;
  uint32_t thread_1[8];
  uint64_t sum; /* of 1024 threads */
};

template <class State>
static void check_words(const Words *expected) {
  for (int turn = 0; turn < 3; turn++, expected++) {
    uint32_t *d = device_array<uint32_t>(1024 * 8);
    words_kernel<State><<<16, 64>>>(d, expected->seed, expected->offset);
    std::vector<uint32_t> words = download(d, 1024 * 8);
    for (int i = 0; i < 8; i++) assert_int_equal(words[8 + i], expected->thread_1[i]);
    assert_true(checksum(words.data(), words.size() * 4) == expected->sum);
  }
}

static void philox_is_nvidias(void **state) {
  (void)state;
  const Words expected[3] = {{0,
                              0,
                              {0x844515e1, 0x3f708d6f, 0xa8000000, 0x3fae3380, 0xb82a6341, 0x11b1a27e, 3, 0x7b5b88cf},
                              0x7179dbc082b44c4bull},
                             {1234,
                              0,
                              {0xd115a128, 0x3ea5f8f9, 0xe3000000, 0x3fe8fe67, 0x2ebe2629, 0x61f6f348, 5, 0xbefd07db},
                              0x62453410fdc08924ull},
                             {0x123456789abcdefull,
                              1ull << 40,
                              {0x11712b0b, 0x3ea27b10, 0x01400000, 0x3fd7ad5c, 0x9054aa5d, 0x26533ad4, 2, 0xd24f2aa7},
                              0x15286b9e02e666f1ull}};
  check_words<Philox>(expected);
}

static void xorwow_is_nvidias(void **state) {
  (void)state;
  const Words expected[3] = {{0,
                              0,
                              {0xebc63fb7, 0x3eebb4e3, 0x71bbcd2d, 0x3fd7d75f, 0x33327ead, 0x27144654, 4, 0x7a5f6f48},
                              0xf05eb4fc7de87f92ull},
                             {1234,
                              0,
                              {0xd1f7605a, 0x3f6d29ae, 0xdd830eda, 0x3fe133f7, 0xc8b75d5b, 0x60226dff, 1, 0x02484f72},
                              0xedc83aa17bce2539ull},
                             {0x123456789abcdefull,
                              1ull << 40,
                              {0x052aa2d5, 0x3f2c3bad, 0x5b81e5d2, 0x3fe2e8b7, 0x56fe2ad1, 0xa6e14c73, 7, 0xa575e06a},
                              0xb0dd690b139e5c5dull}};
  check_words<Xorwow>(expected);
}

static void mrg32k3a_is_nvidias(void **state) {
  (void)state;
  const Words expected[3] = {{0,
                              0,
                              {0x14537e00, 0x3ef5ef0f, 0x37ac758e, 0x3feb7760, 0x9f1c3fb1, 0x46081fad, 2, 0xcbf57761},
                              0x5a31cee15cb7e9b6ull},
                             {1234,
                              0,
                              {0x26f0d612, 0x3f2c5069, 0x2218cde5, 0x3fe47b79, 0x84d29d46, 0x8d9ea988, 2, 0xbceefa07},
                              0xb555cdbaaacd8d15ull},
                             {0x123456789abcdefull,
                              1ull << 40,
                              {0x097f25e0, 0x3e8a9e91, 0x3dd6710b, 0x3fa5d958, 0x01f14d81, 0x1b97e3aa, 0, 0x9d67a58a},
                              0x2e3c775112ca7e8dull}};
  check_words<Mrg>(expected);
}

static __global__ void known_answers_kernel(uint32_t *words, double *numbers) {
  Philox philox;
  Mrg mrg;
  curand_init(0, 0, 0, &philox);
  for (int i = 0; i < 4; i++) words[i] = curand(&philox);
  curand_init(0, 0, 0, &mrg);
  numbers[0] = curand_uniform_double(&mrg);
  numbers[1] = curand_uniform_double(&mrg);
}

/* Philox: the vector of zeros in Random123's kat_vectors. MRG32k3a: L'Ecuyer's, from six seeds 12345, which he
 * divides by m1 + 1 and cuRAND by m1. */
static void papers_answers(void **state) {
  (void)state;
  uint32_t *w = device_array<uint32_t>(4);
  double *u = device_array<double>(2);
  known_answers_kernel<<<1, 1>>>(w, u);
  std::vector<uint32_t> words = download(w, 4);
  std::vector<double> numbers = download(u, 2);
  assert_int_equal(words[0], 0x6627e8d5);
  assert_int_equal(words[1], 0xe169c58d);
  assert_int_equal(words[2], 0xbc57ac4c);
  assert_int_equal(words[3], 0x9b00dbd8);
  assert_true(fabs(numbers[0] - 0.127011122046577) < 1e-9 && fabs(numbers[1] - 0.318527565396794) < 1e-9);
}

/* ---- skipping ---- */

template <class State>
static __global__ void skip_kernel(uint32_t *out) {
  State drawn, skipped, with_offset, sequence, steps;
  const int far = 12345;
  curand_init(77, 3, 0, &drawn);
  curand_init(77, 3, 0, &skipped);
  curand_init(77, 3, far, &with_offset);
  for (int i = 0; i < far; i++) curand(&drawn);
  skipahead(far - 7, &skipped);
  for (int i = 0; i < 7; i++) skipahead(1, &skipped);
  out[0] = curand(&drawn);
  out[1] = curand(&skipped);
  out[2] = curand(&with_offset);
  curand_init(77, 3, 9, &sequence);
  curand_init(77, 10, 9, &steps); /* subsequence 10 lies 7 subsequences after the third */
  skipahead_sequence(7, &sequence);
  out[3] = curand(&sequence);
  out[4] = curand(&steps);
}

template <class State>
static void check_skip(bool sequence_is_subsequence) {
  uint32_t *d = device_array<uint32_t>(5);
  skip_kernel<State><<<1, 1>>>(d);
  std::vector<uint32_t> x = download(d, 5);
  assert_int_equal(x[1], x[0]);
  assert_int_equal(x[2], x[0]);
  if (sequence_is_subsequence) {
    assert_int_equal(x[3], x[4]);
  } else {
    assert_int_not_equal(x[3], x[4]); /* MRG32k3a's sequences are longer: skipahead_subsequence() is its other call */
  }
}

static void skipping_is_drawing(void **state) {
  (void)state;
  check_skip<Philox>(true);
  check_skip<Xorwow>(true);
  check_skip<Mrg>(false);
}

/* Subsequences are 2^67 numbers long: 16 times 2^63. */
static __global__ void far_kernel(uint32_t *out) {
  Xorwow a, b;
  curand_init(5, 1, 0, &a);
  curand_init(5, 0, 0, &b);
  for (int i = 0; i < 16; i++) skipahead(1ull << 63, &b);
  out[0] = curand(&a);
  out[1] = curand(&b);
  Philox c, d; /* 2^66: 8 times */
  curand_init(5, 1, 0, &c);
  curand_init(5, 0, 0, &d);
  for (int i = 0; i < 8; i++) skipahead(1ull << 63, &d);
  out[2] = curand(&c);
  out[3] = curand(&d);
  Mrg e, f;
  curand_init(5, 9, 0, &e);
  curand_init(5, 2, 0, &f);
  skipahead_subsequence(7, &f);
  out[4] = curand(&e);
  out[5] = curand(&f);
}

static void subsequences_are_as_long_as_documented(void **state) {
  (void)state;
  uint32_t *d = device_array<uint32_t>(6);
  far_kernel<<<1, 1>>>(d);
  std::vector<uint32_t> x = download(d, 6);
  assert_int_equal(x[0], x[1]);
  assert_int_equal(x[2], x[3]);
  assert_int_equal(x[4], x[5]);
}

/* ---- several numbers at a time ---- */

static __global__ void vector_kernel(uint32_t *out) {
  Philox state, single;
  curand_init(99, 7, 5, &state);
  curand(&state); /* not at the beginning of a block of four */
  uint4 w = curand4(&state);
  float4 f = curand_uniform4(&state);
  curand(&state);
  double2 d = curand_uniform2_double(&state);
  out[0] = w.x;
  out[1] = w.y;
  out[2] = w.z;
  out[3] = w.w;
  out[4] = __float_as_uint(f.x);
  out[5] = __float_as_uint(f.w);
  memcpy(&out[6], &d, 16);
  /* from every place in a block, four at once are the next four */
  out[10] = 0;
  for (int start = 0; start < 4; start++) {
    curand_init(99, 8, start, &state);
    curand_init(99, 8, start, &single);
    for (int turn = 0; turn < 3; turn++) {
      uint4 four = curand4(&state);
      if (four.x != curand(&single) || four.y != curand(&single) || four.z != curand(&single) ||
          four.w != curand(&single)) {
        out[10]++;
      }
    }
  }
}

static void four_at_once(void **state) {
  (void)state;
  const uint32_t expected[11] = {0x3ab9b573, 0x9dab7188, 0xe09c143e, 0x8e9e4573, 0x3f38228c, 0x3ec9832e,
                                 0x07b8c72c, 0x3fec6ecd, 0xb4914437, 0x3fd50cb3, 0};
  uint32_t *d = device_array<uint32_t>(11);
  vector_kernel<<<1, 1>>>(d);
  std::vector<uint32_t> x = download(d, 11);
  for (int i = 0; i < 11; i++) assert_int_equal(x[i], expected[i]);
}

/* ---- normal numbers ---- */

template <class State>
static __global__ void normal_kernel(double *out) {
  State state;
  curand_init(42, 3, 0, &state);
  for (int i = 0; i < 4; i++) out[i] = curand_normal(&state);
  out[4] = curand_normal_double(&state);
  out[5] = curand_log_normal(&state, 0.5f, 0.25f);
  /* a pair at a time; the second of a pair waits for the next call of its kind, and for no other */
  State a, b;
  curand_init(1, 2, 3, &a);
  curand_init(1, 2, 3, &b);
  float2 pair = curand_normal2(&a);
  float first = curand_normal(&b);
  curand_normal_double(&b); /* draws from the generator, leaves the waiting float alone */
  out[6] = pair.x - first;
  out[7] = pair.y - curand_normal(&b);
  curand_init(1, 2, 3, &a);
  curand_init(1, 2, 3, &b);
  double2 wide = curand_normal2_double(&a);
  out[8] = wide.x - curand_normal_double(&b);
  out[9] = wide.y - curand_normal_double(&b);
}

template <class State>
static void check_normals(const double *expected) {
  double *d = device_array<double>(10);
  normal_kernel<State><<<1, 1>>>(d);
  std::vector<double> x = download(d, 10);
  for (int i = 0; i < 10; i++) {
    double value = i < 6 ? expected[i] : 0;
    /* A GPU's sinf is a fast one; the last four are differences of what two inlined copies may fuse differently. */
    double tolerance = i == 4 ? 1e-13 : i < 6 ? 1e-5 : i < 8 ? 2e-7 : 1e-15;
    if (!(fabs(x[i] - value) <= tolerance)) fail_msg("%d: %.17g, expected %.17g", i, x[i], value);
  }
}

static void normal_numbers_are_nvidias(void **state) {
  (void)state;
  const double xorwow[] = {0.45769671, -0.94473368, -0.78473765, -2.3742523, -1.176583635288393, 2.304687};
  const double philox[] = {0.84906006, -2.3877788, -0.46577084, -0.65700448, 2.077642435413046, 1.3126904};
  const double mrg[] = {-0.92125297, -0.63035512, -1.4638472, -0.4941695, -0.5089565609216458, 1.3104584};
  check_normals<Xorwow>(xorwow);
  check_normals<Philox>(philox);
  check_normals<Mrg>(mrg);
}

/* ---- as programs use it: states in memory, set up by one kernel, drawn from by another ---- */

template <class State>
static __global__ void setup_kernel(State *states, unsigned long long seed) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &states[i]);
}

template <class State>
static __global__ void draw_kernel(State *states, float *u, float *normal, unsigned *poisson, float lambda, int count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  State state = states[i];
  for (int k = 0; k < count; k++) {
    u[k * threads + i] = curand_uniform(&state);
    normal[k * threads + i] = curand_normal(&state);
    poisson[k * threads + i] = curand_poisson(&state, lambda);
  }
  states[i] = state;
}

template <class State>
static void check_statistics(double lambda) {
  enum { BLOCKS = 32, THREADS = 64, TOTAL = BLOCKS * THREADS, COUNT = 40 };
  size_t n = TOTAL * COUNT * 2;
  State *states = device_array<State>(TOTAL);
  float *u = device_array<float>(n), *normal = device_array<float>(n);
  unsigned *poisson = device_array<unsigned>(n);
  setup_kernel<<<BLOCKS, THREADS>>>(states, 2024);
  for (int turn = 0; turn < 2; turn++) { /* the second goes on where the first ended */
    draw_kernel<<<BLOCKS, THREADS>>>(states, u + turn * n / 2, normal + turn * n / 2, poisson + turn * n / 2,
                                     (float)lambda, COUNT);
  }
  CHECK(cudaFree(states));
  double sum[3] = {0}, squares[3] = {0}, cells[64] = {0};
  std::vector<float> x = download(u, n), z = download(normal, n);
  std::vector<unsigned> k = download(poisson, n);
  for (size_t i = 0; i < n; i++) {
    assert_true(x[i] > 0 && x[i] <= 1);
    double values[3] = {x[i] - 0.5, z[i], k[i] - lambda};
    for (int j = 0; j < 3; j++) {
      sum[j] += values[j];
      squares[j] += values[j] * values[j];
    }
    cells[(int)(x[i] * 63.9999)]++;
  }
  const double variance[3] = {1 / 12.0, 1, lambda}, fourth[3] = {1 / 80.0, 3, lambda + 3 * lambda * lambda};
  for (int j = 0; j < 3; j++) {
    assert_true(fabs(sum[j] / n) < 5 * sqrt(variance[j] / n));
    assert_true(fabs(squares[j] / n - variance[j]) < 5 * sqrt((fourth[j] - variance[j] * variance[j]) / n));
  }
  double chi = 0;
  for (double cell : cells) chi += (cell - n / 64.0) * (cell - n / 64.0) / (n / 64.0);
  assert_true(fabs(chi - 63) < 5 * sqrt(2 * 63));
}

static void numbers_have_their_distribution(void **state) {
  (void)state;
  for (double lambda : {0.3, 20.0, 63.9, 64.0, 500.0, 4000.0, 9000.0}) {
    check_statistics<Philox>(lambda);
    check_statistics<Xorwow>(lambda);
    check_statistics<Mrg>(lambda);
  }
}

static __global__ void poisson4_kernel(unsigned *out, double lambda) {
  Philox state;
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(4, i, 0, &state);
  uint4 k = curand_poisson4(&state, lambda);
  out[4 * i] = k.x;
  out[4 * i + 1] = k.y;
  out[4 * i + 2] = k.z;
  out[4 * i + 3] = k.w;
}

static void four_poisson_numbers(void **state) {
  (void)state;
  for (double lambda : {7.0, 200.0, 5000.0}) {
    unsigned *d = device_array<unsigned>(1024 * 4);
    poisson4_kernel<<<16, 64>>>(d, lambda);
    double sum[4] = {0};
    std::vector<unsigned> k = download(d, 1024 * 4);
    for (size_t i = 0; i < k.size(); i++) sum[i % 4] += k[i];
    for (double s : sum) assert_true(fabs(s / 1024 - lambda) < 5 * sqrt(lambda / 1024));
  }
}

static __global__ void pi_kernel(unsigned *inside, int trials) {
  curandState state;
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, hits = 0;
  curand_init(31415, i, 0, &state);
  for (int k = 0; k < trials; k++) {
    float x = curand_uniform(&state), y = curand_uniform(&state);
    hits += x * x + y * y <= 1;
  }
  atomicAdd(inside, hits);
}

static void pi_by_monte_carlo(void **state) {
  (void)state;
  unsigned *inside = upload(std::vector<unsigned>(1, 0u));
  pi_kernel<<<64, 64>>>(inside, 250);
  double n = 64.0 * 64 * 250, pi = 4 * download(inside, 1)[0] / n;
  assert_true(fabs(pi - 3.14159265) < 5 * 1.65 / sqrt(n));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_is_nvidias),
      cmocka_unit_test(xorwow_is_nvidias),
      cmocka_unit_test(mrg32k3a_is_nvidias),
      cmocka_unit_test(papers_answers),
      cmocka_unit_test(skipping_is_drawing),
      cmocka_unit_test(subsequences_are_as_long_as_documented),
      cmocka_unit_test(four_at_once),
      cmocka_unit_test(normal_numbers_are_nvidias),
      cmocka_unit_test(numbers_have_their_distribution),
      cmocka_unit_test(four_poisson_numbers),
      cmocka_unit_test(pi_by_monte_carlo),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
