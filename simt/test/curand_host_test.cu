/* curand_host_test.cu - cuRAND's host API: the sequences of NVIDIA's library (checksums made with libcurand 10.4, on
 * its CPU generators), their statistics, the calls at the edges. On a GPU: nvcc -lcurand. */
#include <curand.h>
#include <math.h>

#include <algorithm>

#include "map.cuh"

#define RAND(call)                                                                     \
  do {                                                                                 \
    const curandStatus_t status = (call);                                              \
    if (status != 0) fail_msg("line %d: %s: status %d", __LINE__, #call, (int)status); \
  } while (0)

static const curandRngType_t types[] = {CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_PSEUDO_XORWOW,
                                        CURAND_RNG_PSEUDO_MRG32K3A};

static uint64_t checksum(const void *bytes, size_t count) { /* FNV-1a */
  uint64_t sum = 14695981039346656037ull;
  for (size_t i = 0; i < count; i++) sum = (sum ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
  return sum;
}

static curandGenerator_t open(bool on_host, curandRngType_t type, unsigned long long seed,
                              unsigned long long offset = 0) {
  curandGenerator_t g = NULL;
  RAND(on_host ? curandCreateGeneratorHost(&g, type) : curandCreateGenerator(&g, type));
  RAND(curandSetPseudoRandomGeneratorSeed(g, seed));
  RAND(curandSetGeneratorOffset(g, offset));
  return g;
}

/* The numbers that generate(output, count) makes: in the generator's memory, between guards that it must leave alone.
 * */
template <class T, class Generate>
static std::vector<T> draw(bool on_host, size_t count, Generate generate) {
  enum { GUARD = 16 };
  std::vector<T> numbers(count + 2 * GUARD);
  memset((void *)numbers.data(), 0x77, numbers.size() * sizeof(T));
  const std::vector<T> before = numbers;
  if (on_host) {
    RAND(generate(numbers.data() + GUARD, count));
  } else {
    T *d = upload(numbers);
    RAND(generate(d + GUARD, count));
    numbers = download(d, numbers.size());
  }
  if (memcmp(numbers.data(), before.data(), GUARD * sizeof(T)) != 0 ||
      memcmp(numbers.data() + GUARD + count, before.data(), GUARD * sizeof(T)) != 0) {
    fail_msg("something was written before or after the %zu numbers", count);
  }
  return std::vector<T>(numbers.begin() + GUARD, numbers.end() - GUARD);
}

static std::vector<unsigned> bits(curandGenerator_t g, bool on_host, size_t count) {
  return draw<unsigned>(on_host, count, [g](unsigned *out, size_t n) { return curandGenerate(g, out, n); });
}
static std::vector<float> uniform(curandGenerator_t g, bool on_host, size_t count) {
  return draw<float>(on_host, count, [g](float *out, size_t n) { return curandGenerateUniform(g, out, n); });
}
static std::vector<double> uniform_double(curandGenerator_t g, bool on_host, size_t count) {
  return draw<double>(on_host, count, [g](double *out, size_t n) { return curandGenerateUniformDouble(g, out, n); });
}
static std::vector<float> normal(curandGenerator_t g, bool on_host, size_t count, float mean, float stddev) {
  return draw<float>(on_host, count,
                     [=](float *out, size_t n) { return curandGenerateNormal(g, out, n, mean, stddev); });
}
static std::vector<double> normal_double(curandGenerator_t g, bool on_host, size_t count, double mean, double stddev) {
  return draw<double>(on_host, count,
                      [=](double *out, size_t n) { return curandGenerateNormalDouble(g, out, n, mean, stddev); });
}
static std::vector<float> log_normal(curandGenerator_t g, bool on_host, size_t count, float mean, float stddev) {
  return draw<float>(on_host, count,
                     [=](float *out, size_t n) { return curandGenerateLogNormal(g, out, n, mean, stddev); });
}
static std::vector<unsigned> poisson(curandGenerator_t g, bool on_host, size_t count, double lambda) {
  return draw<unsigned>(on_host, count,
                        [=](unsigned *out, size_t n) { return curandGeneratePoisson(g, out, n, lambda); });
}

/* ---- the sequences ---- */

struct Expected {
  curandRngType_t type;
  curandOrdering_t ordering;
  unsigned long long offset;
  unsigned first[3], last; /* of 400000 */
  uint64_t bits, few_bits, uniform, uniform_double, more_bits;
  double normal[5], normal_double[5], log_normal[5]; /* the first four, the last */
  uint64_t last_bits;
};
static const Expected expected[] = {
    {CURAND_RNG_PSEUDO_PHILOX4_32_10,
     CURAND_ORDERING_PSEUDO_DEFAULT,
     0,
     {0xe01a407a, 0xd34a311b, 0x50e2fb25},
     0x5bacbeea,
     0xfe5da87cfff72acfull,
     0x6fa9f1c48776cedfull,
     0xc2664c3800d2b815ull,
     0xe2305d139aab33bdull,
     0x78f012a48ba8fa40ull,
     {-1.2549446, 1.0467464, 1.1803894, 4.4409027, -0.046387196},
     {1.519545433812743, 5.733376439905118, -2.402868513065569, 1.20815195972402, 1.560986991420319},
     {0.38226026, 0.83134609, 1.1007006, 1.2176774, 0.97601843},
     0x89392bdbe465fb47ull},
    {CURAND_RNG_PSEUDO_XORWOW,
     CURAND_ORDERING_PSEUDO_DEFAULT,
     100003,
     {0x926ce0ee, 0xe00a0be9, 0x61524b68},
     0xf887f67e,
     0x103ac858da00c271ull,
     0x808eb10cf0341db9ull,
     0x4223b11b30c65ea4ull,
     0x9ebf2bc61dfa5d6bull,
     0xe6753e05f658a633ull,
     {2.1740954, 2.8096452, 1.6746148, 0.42777169, 2.8679321},
     {-0.2266192369342961, -2.097559310952823, 2.399930526803836, 3.406954976403691, -2.693707653914176},
     {0.62604368, 0.76244038, 0.83773327, 1.1007155, 1.3402848},
     0xe1699c88905a0d8bull},
    {CURAND_RNG_PSEUDO_MRG32K3A,
     CURAND_ORDERING_PSEUDO_DEFAULT,
     0,
     {0xb9bfa15f, 0xa7078649, 0x30909b71},
     0x0e81e47b,
     0x34d53b0b10e60751ull,
     0x19e4db22a87269ecull,
     0x28b3c5880300bba5ull,
     0x21b19004f1b417edull,
     0xfe419472aadcdb40ull,
     {-1.5170088, 3.6976221, 2.659863, -1.2044899, 0.12413436},
     {-0.7147220528517246, 2.044352745860361, -2.351295562978129, 1.025820932053243, -2.322984944825113},
     {0.64729321, 0.77349716, 1.306078, 0.95553166, 1.0571873},
     0x89b5c84de1dca4efull},
    {CURAND_RNG_PSEUDO_MRG32K3A,
     CURAND_ORDERING_PSEUDO_LEGACY,
     0,
     {0xb9bfa15f, 0xa7078649, 0x30909b71},
     0xda6fc816,
     0xc98a7c6faa006febull,
     0x87beeaa8be266f94ull,
     0xad92338488244a2aull,
     0x10f79545a35669a8ull,
     0xfb8d5a71a6b31458ull,
     {4.1067119, 2.348999, -1.200774, -1.4515376, 1.2774634},
     {-1.273138819470535, 2.690091286577393, 2.08482328785659, 4.764997568615112, -0.1518123526122499},
     {0.92443681, 1.0831299, 1.0434803, 0.81293261, 0.75516939},
     0x2b30e04121f83481ull},
};

static void sum_is(const char *what, const Expected &e, bool on_host, uint64_t got, uint64_t sum) {
  if (got != sum) {
    fail_msg("%s, type %d, order %d, on the %s: checksum %016llx, expected %016llx", what, (int)e.type, (int)e.ordering,
             on_host ? "host" : "device", (unsigned long long)got, (unsigned long long)sum);
  }
}

template <class T>
static void samples_are(const char *what, const Expected &e, const std::vector<T> &got, const double *samples,
                        double tolerance) {
  for (int i = 0; i < 5; i++) {
    double x = i < 4 ? got[i] : got.back();
    if (!(fabs(x - samples[i]) <= tolerance)) {
      fail_msg("%s %d, type %d, order %d: %.17g, expected %.17g", what, i, (int)e.type, (int)e.ordering, x, samples[i]);
    }
  }
}

/* Calls of all kinds after one another: each goes on where the last one ended. */
static void sequences_are_nvidias(void **state) {
  (void)state;
  for (const Expected &e : expected) {
    for (bool on_host : {false, true}) {
      curandGenerator_t g = open(on_host, e.type, 20240607, e.offset);
      if (e.ordering != CURAND_ORDERING_PSEUDO_DEFAULT) RAND(curandSetGeneratorOrdering(g, e.ordering));
      std::vector<unsigned> x = bits(g, on_host, 400000);
      assert_int_equal(x[0], e.first[0]);
      assert_int_equal(x[1], e.first[1]);
      assert_int_equal(x[2], e.first[2]);
      assert_int_equal(x.back(), e.last);
      sum_is("numbers", e, on_host, checksum(x.data(), x.size() * 4), e.bits);
      sum_is("7 numbers", e, on_host, checksum(bits(g, on_host, 7).data(), 28), e.few_bits);
      sum_is("uniform", e, on_host, checksum(uniform(g, on_host, 300001).data(), 300001 * 4), e.uniform);
      sum_is("uniform double", e, on_host, checksum(uniform_double(g, on_host, 300003).data(), 300003 * 8),
             e.uniform_double);
      sum_is("more numbers", e, on_host, checksum(bits(g, on_host, 100000).data(), 400000), e.more_bits);
      /* a GPU's sin and cos are fast ones */
      samples_are("normal", e, normal(g, on_host, 10002, 1, 2), e.normal, 1e-5);
      samples_are("normal double", e, normal_double(g, on_host, 10002, 1, 2), e.normal_double, 1e-12);
      samples_are("log-normal", e, log_normal(g, on_host, 10002, 0, 0.5f), e.log_normal, 1e-5);
      sum_is("last numbers", e, on_host, checksum(bits(g, on_host, 100000).data(), 400000), e.last_bits);
      RAND(curandDestroyGenerator(g));
    }
  }
}

static void default_type_is_xorwow_and_default_seed_zero(void **state) {
  (void)state;
  curandGenerator_t a, b = open(false, CURAND_RNG_PSEUDO_XORWOW, 0);
  RAND(curandCreateGenerator(&a, CURAND_RNG_PSEUDO_DEFAULT));
  assert_true(bits(a, false, 5000) == bits(b, false, 5000));
  RAND(curandDestroyGenerator(a));
  RAND(curandDestroyGenerator(b));
}

static void cut_in_pieces_a_sequence_stays_the_same(void **state) {
  (void)state;
  for (curandRngType_t type : types) {
    for (bool on_host : {false, true}) {
      enum { COUNT = 300000 };
      curandGenerator_t whole = open(on_host, type, 7), pieces = open(on_host, type, 7),
                        late = open(on_host, type, 7, 12345);
      std::vector<unsigned> x = bits(whole, on_host, COUNT), y;
      for (size_t piece : {1, 2, 5, 4096, 1, 100000, 3, 65536}) {
        std::vector<unsigned> part = bits(pieces, on_host, piece);
        y.insert(y.end(), part.begin(), part.end());
      }
      assert_true(std::equal(y.begin(), y.end(), x.begin()));
      y = bits(late, on_host, COUNT - 12345); /* an offset skips */
      assert_true(std::equal(y.begin(), y.end(), x.begin() + 12345));
      RAND(curandDestroyGenerator(whole));
      RAND(curandDestroyGenerator(pieces));
      RAND(curandDestroyGenerator(late));
    }
  }
}

static void seeds_make_other_sequences(void **state) {
  (void)state;
  for (curandRngType_t type : types) {
    const unsigned long long seeds[] = {1, 2, 1ull << 32, (1ull << 32) + 1};
    std::vector<std::vector<unsigned>> x;
    for (unsigned long long seed : seeds) {
      curandGenerator_t g = open(false, type, seed);
      x.push_back(bits(g, false, 1000));
      RAND(curandDestroyGenerator(g));
    }
    for (size_t i = 0; i < x.size(); i++) {
      for (size_t j = 0; j < i; j++) {
        int same = 0;
        for (int k = 0; k < 1000; k++) same += x[i][k] == x[j][k];
        assert_true(same < 3);
      }
    }
  }
}

/* ---- statistics: fixed seeds, bounds of four or five standard deviations ---- */

/* Pearson's chi-square, as the number of standard deviations by which it exceeds its mean. */
static double excess(const std::vector<double> &observed, const std::vector<double> &probability, double n) {
  double sum = 0, freedom = -1;
  for (size_t i = 0; i < observed.size(); i++) {
    double mean = n * probability[i];
    sum += (observed[i] - mean) * (observed[i] - mean) / mean;
    freedom++;
  }
  return (sum - freedom) / sqrt(2 * freedom);
}

static void numbers_are_equally_distributed(void **state) {
  (void)state;
  const curandRngType_t all[] = {types[0], types[1], types[2], CURAND_RNG_PSEUDO_MTGP32, CURAND_RNG_PSEUDO_MT19937};
  for (curandRngType_t type : all) {
    curandGenerator_t g = NULL;
    RAND(curandCreateGenerator(&g, type));
    RAND(curandSetPseudoRandomGeneratorSeed(g, 3));
    const std::vector<unsigned> x = bits(g, false, 1 << 20);
    for (int shift : {0, 8, 24}) { /* a byte; MRG32k3a's lowest bits are sound, too */
      std::vector<double> count(256);
      for (unsigned number : x) count[number >> shift & 255]++;
      assert_true(fabs(excess(count, std::vector<double>(256, 1.0 / 256), (double)x.size())) < 4.5);
    }
    std::vector<double> pairs(256); /* neighbours */
    for (size_t i = 0; i + 1 < x.size(); i += 2) pairs[(x[i] >> 28) * 16 + (x[i + 1] >> 28)]++;
    assert_true(fabs(excess(pairs, std::vector<double>(256, 1.0 / 256), (double)x.size() / 2)) < 4.5);
    const std::vector<float> u = uniform(g, false, 1 << 20);
    double sum = 0, squares = 0, low = 1, high = 0;
    for (float v : u) {
      sum += v;
      squares += (v - 0.5) * (v - 0.5);
      low = fmin(low, v);
      high = fmax(high, v);
    }
    double n = (double)u.size();
    assert_true(low > 0 && high <= 1);
    assert_true(fabs(sum / n - 0.5) < 5 * sqrt(1 / 12.0 / n) && fabs(squares / n - 1 / 12.0) < 5 * sqrt(1 / 180.0 / n));
    RAND(curandDestroyGenerator(g));
  }
}

template <class T>
static void check_normal(const std::vector<T> &x, double mean, double stddev) {
  double n = (double)x.size(), moments[5] = {0};
  std::vector<double> count(64), probability(64, 1.0 / 64);
  for (T v : x) {
    double z = (v - mean) / stddev, power = 1;
    for (int k = 1; k <= 4; k++) moments[k] += power *= z;
    count[std::min(63, (int)(64 * 0.5 * erfc(-z / sqrt(2))))]++;
  }
  assert_true(fabs(moments[1] / n) < 5 / sqrt(n) && fabs(moments[2] / n - 1) < 5 * sqrt(2 / n));
  assert_true(fabs(moments[3] / n) < 5 * sqrt(15 / n) && fabs(moments[4] / n - 3) < 5 * sqrt(96 / n));
  assert_true(fabs(excess(count, probability, n)) < 4.5);
}

static void normal_numbers_have_their_moments(void **state) {
  (void)state;
  for (curandRngType_t type : types) {
    curandGenerator_t g = open(false, type, 11);
    check_normal(normal(g, false, 1 << 18, -3, 0.5f), -3, 0.5);
    check_normal(normal_double(g, false, 1 << 18, 100, 7), 100, 7);
    std::vector<float> y = log_normal(g, false, 1 << 18, 0.25f, 0.75f);
    for (float &v : y) v = logf(v);
    check_normal(y, 0.25, 0.75);
    std::vector<double> z = draw<double>(
        false, 1 << 18, [g](double *out, size_t n) { return curandGenerateLogNormalDouble(g, out, n, -1, 2); });
    for (double &v : z) v = log(v);
    check_normal(z, -1, 2);
    RAND(curandDestroyGenerator(g));
  }
}

static void poisson_numbers_have_their_distribution(void **state) {
  (void)state;
  for (curandRngType_t type : types) {
    curandGenerator_t g = open(false, type, 13);
    for (double lambda : {0.1, 1.0, 12.0, 63.5, 64.0, 700.0, 1999.0, 2500.0, 30000.0}) {
      size_t n = 200001;
      std::vector<unsigned> x = poisson(g, false, n, lambda);
      double sum = 0, squares = 0;
      std::vector<double> count(3000), probability(3000);
      for (unsigned k : x) {
        sum += k;
        squares += (k - lambda) * (k - lambda);
        if (k < 3000) count[k]++;
      }
      assert_true(fabs(sum / n - lambda) < 5 * sqrt(lambda / n));
      assert_true(fabs(squares / n - lambda) < 5 * sqrt((lambda + 2 * lambda * lambda) / n));
      if (lambda > 2000) continue; /* normal numbers, rounded */
      /* values that are expected at least 20 times */
      std::vector<double> observed, wanted;
      double total = 0, seen = 0;
      for (int k = 0; k < 3000; k++) {
        probability[k] = exp(k * log(lambda) - lambda - lgamma(k + 1.0));
        if (probability[k] * n < 20) continue;
        observed.push_back(count[k]);
        wanted.push_back(probability[k]);
        total += probability[k];
        seen += count[k];
      }
      observed.push_back((double)n - seen);
      wanted.push_back(1 - total);
      assert_true(fabs(excess(observed, wanted, (double)n)) < 4.5);
    }
    RAND(curandDestroyGenerator(g));
  }
}

/* ---- the calls ---- */

static void statuses(void **state) {
  (void)state;
  curandGenerator_t g = open(false, CURAND_RNG_PSEUDO_XORWOW, 1), philox = open(false, types[0], 1), none = NULL;
  int version = 0;
  unsigned *d = device_array<unsigned>(64);
  assert_int_equal(curandGenerate(NULL, d, 4), CURAND_STATUS_NOT_INITIALIZED);
  assert_int_equal(curandDestroyGenerator(NULL), CURAND_STATUS_NOT_INITIALIZED);
  assert_int_equal(curandSetStream(NULL, 0), CURAND_STATUS_NOT_INITIALIZED);
  assert_int_equal(curandCreateGenerator(&none, (curandRngType_t)7), CURAND_STATUS_TYPE_ERROR);
  assert_int_equal(curandGenerate(g, d, 0), CURAND_STATUS_SUCCESS);
  assert_int_equal(curandGenerateNormal(g, (float *)d, 3, 0, 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  assert_int_equal(curandGenerateNormalDouble(g, (double *)d, 3, 0, 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  assert_int_equal(curandGenerateLogNormal(g, (float *)d, 3, 0, 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  assert_int_equal(curandGenerateLogNormalDouble(g, (double *)d, 3, 0, 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  assert_int_equal(curandGenerateNormal(philox, (float *)d, 3, 0, 1), CURAND_STATUS_SUCCESS);
  assert_int_equal(curandGeneratePoisson(g, d, 4, 0), CURAND_STATUS_OUT_OF_RANGE);
  assert_int_equal(curandGeneratePoisson(g, d, 4, -1), CURAND_STATUS_OUT_OF_RANGE);
  assert_int_equal(curandGeneratePoisson(g, d, 4, 400001), CURAND_STATUS_OUT_OF_RANGE);
  assert_int_equal(curandGenerateLongLong(g, (unsigned long long *)d, 4), CURAND_STATUS_TYPE_ERROR);
  assert_int_equal(curandSetQuasiRandomGeneratorDimensions(g, 2), CURAND_STATUS_TYPE_ERROR);
  assert_int_equal(curandSetGeneratorOrdering(g, (curandOrdering_t)7), CURAND_STATUS_OUT_OF_RANGE);
  assert_int_equal(curandSetGeneratorOrdering(g, CURAND_ORDERING_QUASI_DEFAULT), CURAND_STATUS_OUT_OF_RANGE);
  RAND(curandSetGeneratorOrdering(g, CURAND_ORDERING_PSEUDO_BEST));
  RAND(curandGenerateSeeds(g));
  RAND(curandGetVersion(&version));
  assert_true(version >= 10000);
  RAND(curandDestroyGenerator(g));
  RAND(curandDestroyGenerator(philox));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(d));
}

/* The number of a generator in a stream arrive after what was queued there before, and before what is queued after. */
static void numbers_come_in_the_streams_order(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  curandGenerator_t g = open(false, types[0], 5), again = open(false, types[0], 5);
  RAND(curandSetStream(g, stream));
  unsigned *d = device_array<unsigned>(COUNT), *host = NULL;
  CHECK(cudaMallocHost((void **)&host, COUNT * sizeof *host));
  CHECK(cudaMemsetAsync(d, 0, COUNT * sizeof *d, stream));
  RAND(curandGenerate(g, d, COUNT));
  RAND(curandSetPseudoRandomGeneratorSeed(g, 99)); /* for the next call, not for the one that may be waiting */
  CHECK(cudaMemcpyAsync(host, d, COUNT * sizeof *d, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<unsigned> x = bits(again, false, COUNT);
  assert_memory_equal(host, x.data(), COUNT * sizeof *host);
  RAND(curandDestroyGenerator(g));
  RAND(curandDestroyGenerator(again));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(d));
  CHECK(cudaFreeHost(host));
}

/* What only the emulator can say. The last test: afterwards the device is reset. */
static void pointers_are_checked(void **state) {
  (void)state;
#ifndef SIMT_REWRITTEN
  skip();
#else
  for (int turn = 0; turn < 4; turn++) {
    curandGenerator_t device = open(false, types[0], 1), host = open(true, types[0], 1), none = NULL;
    unsigned *d = device_array<unsigned>(64), h[64];
    curandStatus_t status = CURAND_STATUS_SUCCESS;
    assert_int_equal(curandCreateGenerator(&none, CURAND_RNG_QUASI_SOBOL32), CURAND_STATUS_TYPE_ERROR);
    if (turn == 0) status = curandGenerate(device, h, 64);
    if (turn == 1) status = curandGenerate(host, d, 64);
    if (turn == 2) status = curandGenerate(device, d, 65);
    if (turn == 3) status = curandGenerate(device, NULL, 1);
    assert_int_equal(status, CURAND_STATUS_LAUNCH_FAILURE);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    RAND(curandDestroyGenerator(device));
    RAND(curandDestroyGenerator(host));
    CHECK(cudaDeviceReset());
  }
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequences_are_nvidias),
      cmocka_unit_test(default_type_is_xorwow_and_default_seed_zero),
      cmocka_unit_test(cut_in_pieces_a_sequence_stays_the_same),
      cmocka_unit_test(seeds_make_other_sequences),
      cmocka_unit_test(numbers_are_equally_distributed),
      cmocka_unit_test(normal_numbers_have_their_moments),
      cmocka_unit_test(poisson_numbers_have_their_distribution),
      cmocka_unit_test(statuses),
      cmocka_unit_test(numbers_come_in_the_streams_order),
      cmocka_unit_test(pointers_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
