/* The same numbers on the GPU as on the CPU, and as cuRAND's device generator draws. */
#include "common/device.h"
#include "common/philox.h"
#include "common/test.h"

#if __has_include(<curand_kernel.h>)
#include <curand_kernel.h>
#define HAVE_CURAND 1
#else
#define HAVE_CURAND 0
#endif

enum { N = 1 << 18, ITEMS = 1021 };
static const uint64_t seed = 0x0123456789abcdefu;
static const uint32_t stream = 0xfedcba98u;

typedef struct Draw {
  PhiloxBlock block;
  float uniform, positive, normal[2];
  uint32_t below;
} Draw;

__host__ __device__ static Draw draw(uint64_t seed, uint32_t stream, uint64_t index) {
  Draw d;
  d.block = philox4x32(seed, stream, index);
  d.uniform = philox_uniform(d.block.word[2]);
  d.positive = philox_uniform_positive(d.block.word[3]);
  philox_normal(d.block, &d.normal[0], &d.normal[1]);
  d.below = philox_below(0xc0000001u, seed, stream, index);
  return d;
}

/* Indices on both sides of 2^32, so that the counter's upper word takes part. */
__host__ __device__ static uint64_t index_of(int i) { return 0xffffffffu - N / 2 + (uint64_t)i; }

__global__ void draw_kernel(Draw *draws, uint64_t seed, uint32_t stream) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) draws[i] = draw(seed, stream, index_of(i));
}

__global__ void shuffle_kernel(uint32_t *items, uint64_t seed, uint32_t stream) {
  for (uint32_t i = 0; i < ITEMS; i++) items[i] = i;
  philox_shuffle(items, ITEMS, seed, stream);
}

static void gpu_draws_what_the_cpu_draws(void **state) {
  (void)state;
  test_requires_gpu();
  Draw *gpu = (Draw *)device_alloc(DEVICE_GPU, N * sizeof(Draw)), *draws = (Draw *)xmalloc(N * sizeof(Draw));
  draw_kernel<<<(N + 255) / 256, 256>>>(gpu, seed, stream);
  CUDA_CHECK_LAUNCH();
  device_download(DEVICE_GPU, draws, gpu, N * sizeof(Draw));
  for (int i = 0; i < N; i++) {
    Draw cpu = draw(seed, stream, index_of(i));
    assert_memory_equal(&draws[i], &cpu, sizeof cpu);
  }
  device_free(DEVICE_GPU, gpu);
  free(draws);
}

static void gpu_shuffles_as_the_cpu_shuffles(void **state) {
  (void)state;
  test_requires_gpu();
  uint32_t items[ITEMS], cpu[ITEMS];
  uint32_t *gpu = (uint32_t *)device_alloc(DEVICE_GPU, sizeof items);
  shuffle_kernel<<<1, 1>>>(gpu, seed, stream);
  CUDA_CHECK_LAUNCH();
  device_download(DEVICE_GPU, items, gpu, sizeof items);
  for (uint32_t i = 0; i < ITEMS; i++) cpu[i] = i;
  philox_shuffle(cpu, ITEMS, seed, stream);
  assert_memory_equal(items, cpu, sizeof items);
  device_free(DEVICE_GPU, gpu);
}

#if HAVE_CURAND
__global__ void curand_kernel(PhiloxBlock *blocks, uint64_t seed, uint32_t stream) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, stream, 4 * index_of(i), &state);
  uint4 words = curand4(&state);
  blocks[i].word[0] = words.x;
  blocks[i].word[1] = words.y;
  blocks[i].word[2] = words.z;
  blocks[i].word[3] = words.w;
}
#endif

static void curand_draws_the_same_words(void **state) {
  (void)state;
#if HAVE_CURAND
  test_requires_gpu();
  PhiloxBlock *gpu = (PhiloxBlock *)device_alloc(DEVICE_GPU, N * sizeof *gpu);
  PhiloxBlock *blocks = (PhiloxBlock *)xmalloc(N * sizeof *blocks);
  curand_kernel<<<(N + 255) / 256, 256>>>(gpu, seed, stream);
  CUDA_CHECK_LAUNCH();
  device_download(DEVICE_GPU, blocks, gpu, N * sizeof *blocks);
  for (int i = 0; i < N; i++) {
    PhiloxBlock block = philox4x32(seed, stream, index_of(i));
    assert_memory_equal(&blocks[i], &block, sizeof block);
  }
  device_free(DEVICE_GPU, gpu);
  free(blocks);
#else
  print_message("skipped: the toolkit has no cuRAND headers\n");
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gpu_draws_what_the_cpu_draws),
      cmocka_unit_test(gpu_shuffles_as_the_cpu_shuffles),
      cmocka_unit_test(curand_draws_the_same_words),
  };
  return TEST_MAIN("philox_gpu", tests);
}
