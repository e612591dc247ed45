/* preprocess.cuh against Pillow: the CRC-32 of what it makes of pictures that both sides compute (testdata/crops.txt,
 * of tools/golden/resnet18_golden.py crops). */
#include <zlib.h>

#include "common/device.h"
#include "common/runfiles.h"
#include "common/test.h"
#include "phase5_production/03_resnet18/preprocess_lesson.cuh"

enum { CROPS = 10 };

typedef struct Crop {
  int width, height, resize, crop;
  unsigned long crc;
} Crop;

static Crop crops[CROPS];

static void read_crops(void) {
  Error err;
  char path[PATH_MAX];
  if (runfiles_find("phase5_production/03_resnet18/testdata/crops.txt", path, sizeof path, &err) != 0)
    die("%s", err.message);
  FILE *file = fopen(path, "r");
  if (file == NULL) die("%s cannot be opened", path);
  for (int i = 0; i < CROPS; i++) {
    Crop *c = &crops[i];
    if (fscanf(file, "%d %d %d %d %lu", &c->width, &c->height, &c->resize, &c->crop, &c->crc) != 5)
      die("%s: line %d", path, i + 1);
  }
  fclose(file);
}

/* As picture() of resnet18_golden.py. */
static uint8_t *picture(int width, int height) {
  const size_t count = 3 * (size_t)width * (size_t)height;
  uint8_t *bytes = (uint8_t *)xmalloc(count);
  for (size_t i = 0; i < count; i++) {
    uint32_t word = (uint32_t)i * 2654435761u + 12345u;
    word = (word ^ word >> 15) * 2246822519u;
    bytes[i] = (uint8_t)(word ^ word >> 13);
  }
  return bytes;
}

/* Its numbers are the bytes / 255. */
static PreprocessPlan plan_of(const Crop *c) {
  const PreprocessRecipe recipe = {c->resize, c->crop, {0, 0, 0}, {1, 1, 1}};
  return preprocess_plan(c->width, c->height, recipe);
}

/* Of the bytes (crop,crop,3) that x (3,crop,crop) was made of. */
static unsigned long crc_of(const float *x, int crop) {
  const size_t plane = (size_t)crop * (size_t)crop;
  uint8_t *bytes = (uint8_t *)xmalloc(3 * plane);
  for (size_t i = 0; i < 3 * plane; i++) bytes[i] = (uint8_t)lrintf(255 * x[i % 3 * plane + i / 3]);
  const unsigned long crc = crc32(0, bytes, (uInt)(3 * plane));
  free(bytes);
  return crc;
}

static void the_loops_give_the_bytes_of_pillow(void **state) {
  (void)state;
  for (int i = 0; i < CROPS; i++) {
    const Crop *c = &crops[i];
    const PreprocessPlan plan = plan_of(c);
    uint8_t *bytes = picture(c->width, c->height);
    float *x = (float *)xmalloc(3 * (size_t)c->crop * (size_t)c->crop * sizeof(float));
    void *workspace = xmalloc(preprocess_workspace_bytes(plan));
    preprocess_cpu(x, bytes, workspace, plan);
    if (crc_of(x, c->crop) != c->crc)
      fail_msg("%d x %d to %d, crop %d: other bytes than Pillow's", c->width, c->height, c->resize, c->crop);
    free(workspace);
    free(x);
    free(bytes);
  }
}

static void check_kernels(PreprocessLauncher *launch, int largest) {
  for (int i = 0; i < CROPS; i++) {
    const Crop *c = &crops[i];
    if (c->crop > largest) continue;
    const PreprocessPlan plan = plan_of(c);
    const size_t count = 3 * (size_t)c->crop * (size_t)c->crop, size = 3 * (size_t)c->width * (size_t)c->height;
    uint8_t *bytes = picture(c->width, c->height), *on_gpu = (uint8_t *)device_alloc(DEVICE_GPU, size);
    float *x = (float *)xmalloc(count * sizeof *x), *x_gpu = (float *)device_alloc(DEVICE_GPU, count * sizeof *x);
    void *workspace = device_alloc(DEVICE_GPU, preprocess_workspace_bytes(plan));
    device_upload(DEVICE_GPU, on_gpu, bytes, size);
    launch(x_gpu, on_gpu, workspace, plan);
    device_download(DEVICE_GPU, x, x_gpu, count * sizeof *x);
    if (crc_of(x, c->crop) != c->crc)
      fail_msg("%d x %d to %d, crop %d: other bytes than Pillow's", c->width, c->height, c->resize, c->crop);
    device_free(DEVICE_GPU, workspace);
    device_free(DEVICE_GPU, x_gpu);
    device_free(DEVICE_GPU, on_gpu);
    free(x);
    free(bytes);
  }
}

static void the_kernels_give_the_same_bytes(void **state) {
  (void)state;
  test_requires_gpu();
  check_kernels(preprocess_gpu, 224);
}

static void one_kernel_gives_the_same_bytes(void **state) {
  (void)state;
  test_requires_gpu();
  check_kernels(preprocess_direct, 100);
}

/* Weights of any window are shares of one: their sum is 2^22, but for half a unit of each. */
static void weights_add_up_to_one(void **state) {
  (void)state;
  const int sizes[][2] = {{1, 256}, {7, 5}, {5, 7}, {16384, 256}, {16384, 3}, {255, 256}, {256, 256}, {3, 16384}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const PreprocessAxis a = preprocess_axis(sizes[s][0], sizes[s][1], 1);
    for (int i = 0; i < a.out; i += 1 + a.out / 300) {
      const PreprocessWindow window = preprocess_window(a, i);
      long long sum = 0;
      assert_true(window.first >= 0 && window.count >= 1 && window.first + window.count <= a.in);
      assert_true(window.count <= a.most);
      for (int j = 0; j < window.count; j++) {
        const int weight = preprocess_weight(a, window, i, window.first + j);
        assert_true(preprocess_share(a, i, window.first + j) > 0 && weight >= 0);
        sum += weight;
      }
      assert_true(llabs(sum - (1 << PREPROCESS_BITS)) <= window.count / 2 + 1);
      /* the next pixels on both sides do not count */
      assert_true(window.first == 0 || preprocess_share(a, i, window.first - 1) <= 0);
      assert_true(window.first + window.count == a.in || preprocess_share(a, i, window.first + window.count) <= 0);
    }
  }
}

int main(void) {
  read_crops();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_loops_give_the_bytes_of_pillow), cmocka_unit_test(the_kernels_give_the_same_bytes),
      cmocka_unit_test(one_kernel_gives_the_same_bytes), cmocka_unit_test(weights_add_up_to_one)};
  return TEST_MAIN("preprocess", tests);
}
