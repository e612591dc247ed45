/* The vendor's random numbers are ours, in the order that random_init_curand.cuh describes. */
#include "phase1_building_blocks/11_random_init/random_init_curand.cuh"

#include "common/test_arrays.h"

/* More than 65536 subsequences of four: the second round of blocks takes part. */
enum { N = 4 * RANDOM_CURAND_SUBSEQUENCES + 4 * 1000 };
static const uint64_t seed = 0x0123456789abcdefu;
static float x[N], y[N];

static PhiloxBlock host_api_block(size_t q) {
  return philox4x32(seed, (uint32_t)(q % RANDOM_CURAND_SUBSEQUENCES), q / RANDOM_CURAND_SUBSEQUENCES);
}

static curandGenerator_t generator_open(void) {
  curandGenerator_t generator;
  CURAND_CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  CURAND_CHECK(curandSetPseudoRandomGeneratorSeed(generator, seed));
  return generator;
}

static void the_device_api_has_our_numbers(void **state) {
  (void)state;
  test_requires_gpu();
  const size_t sizes[] = {1, 3, 4, 1021, N};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    float *device_x = guard_alloc(DEVICE_GPU, sizes[i]);
    random_uniform_curand_device(device_x, sizes[i], -2, 5, seed, 3);
    arrays_download(DEVICE_GPU, x, device_x, sizes[i], "x");
    random_uniform_fill_cpu(y, sizes[i], -2, 5, seed, 3);
    assert_comparison(compare_runs(y, x, sizes[i]));
  }
}

/* cuRAND's uniform: word * 2^-32 + 2^-33, in float. */
static void the_host_api_has_our_words_in_its_order(void **state) {
  (void)state;
  test_requires_gpu();
  curandGenerator_t generator = generator_open();
  float *device_x = guard_alloc(DEVICE_GPU, N);
  CURAND_CHECK(curandGenerateUniform(generator, device_x, N));
  arrays_download(DEVICE_GPU, x, device_x, N, "x");
  for (size_t i = 0; i < N; i++) {
    uint32_t word = host_api_block(i / 4).word[i % 4];
    y[i] = (float)((double)word * 0x1p-32 + 0x1p-33);
    assert_true(x[i] > 0 && x[i] <= 1);
  }
  assert_comparison(compare_arrays(x, y, 1, N, tolerance_make(FLT_EPSILON, 0x1p-32)));
  CURAND_CHECK(curandDestroyGenerator(generator));
}

/* Both of its roundings and its quick sine and cosine (at most 2^-21.4 off each, and the radius is below 6.7): */
static void the_host_api_has_our_normals_sine_first(void **state) {
  (void)state;
  test_requires_gpu();
  curandGenerator_t generator = generator_open();
  float *device_x = guard_alloc(DEVICE_GPU, N);
  CURAND_CHECK(curandGenerateNormal(generator, device_x, N, 1, 0.5f));
  arrays_download(DEVICE_GPU, x, device_x, N, "x");
  for (size_t i = 0; i < N; i += 2) {
    PhiloxBlock block = host_api_block(i / 4);
    double u = block.word[i % 4] * 0x1p-32 + 0x1p-33, v = block.word[i % 4 + 1] * 0x1p-32 + 0x1p-33;
    double radius = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;
    y[i] = (float)(1 + 0.5 * radius * sin(angle));
    y[i + 1] = (float)(1 + 0.5 * radius * cos(angle));
  }
  /* u in float is off by up to 2^-25, which near u = 1, where log u is as small, moves a radius of sqrt(2^-24). */
  assert_comparison(compare_arrays(x, y, 1, N, tolerance_make(FLT_EPSILON, 0.5 * (6.7 * 0x1p-21 + 0x1.8p-12))));
  CURAND_CHECK(curandDestroyGenerator(generator));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_device_api_has_our_numbers),
      cmocka_unit_test(the_host_api_has_our_words_in_its_order),
      cmocka_unit_test(the_host_api_has_our_normals_sine_first),
  };
  return TEST_MAIN("random_init_curand", tests);
}
