/* Every version brings every batch, whatever the order of the streams; what overlaps; what a missing wait does. On the
 * emulator the program runs itself again with streams in other orders (SIMT_STREAMS). */
#include "phase2_mlp/06_streams/input_pipeline_lesson.cuh"
#include "phase2_mlp/06_streams/input_pipeline_mlp.cuh"

#include "common/lesson/verify.h"
#include "common/test.h"

static const struct {
  const char *name;
  FeedVersion *feed;
  int copies, overlaps; /* 1: it copies, and copies run beside work */
} versions[] = {{"feed_pageable", feed_pageable, 1, 0},     {"feed_pinned", feed_pinned, 1, 0},
                {"feed_overlapped", feed_overlapped, 1, 1}, {"feed_staged", feed_staged, 1, 1},
                {"feed_mapped", feed_mapped, 0, 0},         {"feed_resident", feed_resident, 0, 0}};
enum { VERSIONS = sizeof versions / sizeof *versions };

static void every_version_brings_every_batch(void **state) {
  (void)state;
  test_requires_gpu();
  Lesson lesson = feed_lesson();
  for (int v = 0; v < VERSIONS; v++) {
    LessonVersion version = feed_version(versions[v].name, versions[v].feed, "");
    LessonResult result;
    if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
  }
}

/* Batches of one size through `feed`; the work is a copy of the images to their place. */
typedef struct Keep {
  uint8_t *kept; /* (batches, bytes), on the GPU */
  size_t bytes;
} Keep;

static __global__ void keep_kernel(uint8_t *to, const uint8_t *from, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

static void keep_work(const uint8_t *images, int batch, void *context) {
  const Keep *keep = (const Keep *)context;
  keep_kernel<<<(unsigned)((keep->bytes + 255) / 256), 256>>>(keep->kept + (size_t)batch * keep->bytes, images,
                                                              keep->bytes);
  CUDA_CHECK_LAUNCH();
}

/* How many of the batches came as they were sent. */
static int batches_that_came(FeedVersion *version, int batches, size_t bytes, Timeline *timeline) {
  const size_t all = (size_t)batches * bytes;
  uint8_t *images = (uint8_t *)xmalloc(all), *came = (uint8_t *)xmalloc(all);
  for (size_t i = 0; i < all; i++) images[i] = (uint8_t)philox4x32(1, 0, i).word[0];
  Keep keep = {(uint8_t *)device_alloc(DEVICE_GPU, all), bytes};
  Feed feed;
  feed_open(&feed, images, batches, bytes, keep_work, &keep);
  feed_forget(&feed);
  feed_run(&feed, version, timeline);
  device_download(DEVICE_GPU, came, keep.kept, all);
  feed_close(&feed);
  device_free(DEVICE_GPU, keep.kept);
  int right = 0;
  for (int i = 0; i < batches; i++) right += memcmp(images + i * bytes, came + i * bytes, bytes) == 0;
  free(images);
  free(came);
  return right;
}

/* More than 64 KiB, so that no pageable copy is over before it has begun; not a multiple of feed_fill()'s pieces. */
static void large_batches(void **state) {
  (void)state;
  test_requires_gpu();
  for (int v = 0; v < VERSIONS; v++) {
    Timeline timeline = feed_timeline("");
    assert_int_equal(batches_that_came(versions[v].feed, 5, 3 * 65536 + 17, &timeline), 5);
    timeline_free(&timeline);
  }
}

/* The spans of the timeline are what the version says it does. */
static void timelines_show_what_overlaps(void **state) {
  (void)state;
  test_requires_gpu();
  enum { BATCHES = 8 };
  for (int v = 0; v < VERSIONS; v++) {
    Timeline timeline = feed_timeline("");
    double end_of_copy[BATCHES] = {0}, begin_of_work[BATCHES], end_of_work[BATCHES], begin_of_copy[BATCHES] = {0};
    int spans[2] = {0, 0};
    batches_that_came(versions[v].feed, BATCHES, 100000, &timeline);
    for (size_t i = 0; i < timeline.spans; i++) {
      const TimelineSpan *span = &timeline.span[i];
      if (span->lane == FEED_HOST) continue;
      spans[span->lane]++;
      if (span->lane == FEED_COPY) begin_of_copy[span->number] = span->begin;
      if (span->lane == FEED_COPY) end_of_copy[span->number] = span->end;
      if (span->lane == FEED_WORK) begin_of_work[span->number] = span->begin;
      if (span->lane == FEED_WORK) end_of_work[span->number] = span->end;
    }
    assert_int_equal(spans[FEED_COPY], versions[v].copies ? BATCHES : 0);
    assert_int_equal(spans[FEED_WORK], BATCHES);
    for (int i = 0; i < BATCHES; i++) {
      assert_true(end_of_copy[i] <= begin_of_work[i]);
      if (i >= FEED_BUFFERS && versions[v].copies) assert_true(end_of_work[i - FEED_BUFFERS] <= begin_of_copy[i]);
    }
#ifdef SIMT_REWRITTEN /* steps: each copy one, each work one */
    double length = timeline_length(&timeline);
    assert_true(length == (!versions[v].copies ? BATCHES : versions[v].overlaps ? BATCHES + 1 : 2 * BATCHES));
#endif
    timeline_free(&timeline);
  }
}

/* ---- faults: on the emulator with streams in another order they must show ---- */

#ifdef SIMT_REWRITTEN
// >>> hidden feed_overlapped
static void work_waits_for_nothing(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    uint8_t *buffer = feed->buffer[i % FEED_BUFFERS];
    if (i >= FEED_BUFFERS) CUDA_CHECK(cudaStreamWaitEvent(feed->copies, feed_worked(feed, i - FEED_BUFFERS), 0));
    feed_copy(feed, i, buffer, feed->pinned + i * feed->bytes, feed->copies);
    feed_work(feed, i, buffer);
  }
}
static void copies_wait_for_nothing(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    uint8_t *buffer = feed->buffer[i % FEED_BUFFERS];
    feed_copy(feed, i, buffer, feed->pinned + i * feed->bytes, feed->copies);
    CUDA_CHECK(cudaStreamWaitEvent(0, feed_copied(feed, i), 0));
    feed_work(feed, i, buffer);
  }
}
static void the_host_waits_for_nothing(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    uint8_t *buffer = feed->buffer[i % FEED_BUFFERS], *staging = feed->staging[i % FEED_BUFFERS];
    feed_fill(staging, feed->pageable + i * feed->bytes, feed->bytes);
    if (i >= FEED_BUFFERS) CUDA_CHECK(cudaStreamWaitEvent(feed->copies, feed_worked(feed, i - FEED_BUFFERS), 0));
    feed_copy(feed, i, buffer, staging, feed->copies);
    CUDA_CHECK(cudaStreamWaitEvent(0, feed_copied(feed, i), 0));
    feed_work(feed, i, buffer);
  }
}
// <<< hidden

static void a_missing_wait_shows(void **state) {
  (void)state;
  enum { BATCHES = 16 };
  FeedVersion *const wrong[] = {work_waits_for_nothing, copies_wait_for_nothing, the_host_waits_for_nothing};
  const char *mode = getenv("SIMT_STREAMS");
  if (mode == NULL || strncmp(mode, "random", 6) != 0) skip();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Timeline timeline = feed_timeline("");
    assert_in_range(batches_that_came(wrong[i], BATCHES, 1000, &timeline), 0, BATCHES - 1);
    timeline_free(&timeline);
  }
}
#endif

/* ---- the work of the lesson ---- */

/* By hand, for 65,536 images per batch and one hidden unit: 54.0 MB more for each batch on the GPU, 108 MB on the host,
 * after 103 MB of buffers and 0.21 GB of the network. */
static void so_many_batches_fit(void **state) {
  (void)state;
  const double gb = 1e9, plenty = 1e15;
  assert_true(feed_mlp_most_batches(65536, 1, plenty, 20 * gb) == 364);
  assert_true(feed_mlp_most_batches(65536, 1, 20 * gb, plenty) == 182);
  assert_true(feed_mlp_most_batches(65536, 1, 0.4 * gb, plenty) == 0);
#ifdef SIMT_REWRITTEN /* what really lies there, of a small case; a GPU gives memory by the 2 MB */
  FeedMlp mlp;
  const double before = device_memory(DEVICE_GPU);
  feed_mlp_open(&mlp, DEVICE_GPU, 40, 300, 700, 1);
  uint8_t *images = feed_mlp_images(40, 300, 1);
  Feed feed;
  feed_open(&feed, images, 40, feed_mlp_bytes(&mlp), feed_mlp_work, &mlp);
  const double taken = before - device_memory(DEVICE_GPU);
  feed_close(&feed);
  feed_mlp_close(&mlp);
  free(images);
  assert_true(feed_mlp_most_batches(300, 700, plenty, taken * 1.01) >= 38);
  assert_true(feed_mlp_most_batches(300, 700, plenty, taken * 1.01) <= 42);
#endif
}

static void logits_are_those_of_the_cpu(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][3] = {{1, 1, 1}, {3, 1, 3}, {2, 3, 127}, {5, 7, 16}}; /* batches, images, hidden units */
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const int batches = shapes[s][0], batch = shapes[s][1], hidden = shapes[s][2];
    double seconds;
    uint8_t *images = feed_mlp_images(batches, batch, 1);
    float *expected = feed_mlp_reference(images, batches, batch, hidden, 1, &seconds);
    FeedMlp mlp;
    Feed feed;
    feed_mlp_open(&mlp, DEVICE_GPU, batches, batch, hidden, 1);
    feed_open(&feed, images, batches, feed_mlp_bytes(&mlp), feed_mlp_work, &mlp);
    for (int v = 0; v < VERSIONS; v++) {
      Timeline timeline = feed_timeline("");
      feed_forget(&feed);
      feed_mlp_forget(&mlp);
      assert_false(feed_mlp_check(&mlp, expected).ok); /* nothing is left of the run before */
      feed_run(&feed, versions[v].feed, &timeline);
      Comparison c = feed_mlp_check(&mlp, expected);
      if (!c.ok) fail_msg("%s, %d batches of %d, %d hidden: %s", versions[v].name, batches, batch, hidden, c.message);
      timeline_free(&timeline);
    }
    feed_close(&feed);
    feed_mlp_close(&mlp);
    free(expected);
    free(images);
  }
}

/* The reference against the formulas, in double, for one image and two hidden units. */
static void reference_is_right_by_hand(void **state) {
  (void)state;
  enum { HIDDEN = 2 };
  double seconds;
  FeedMlp mlp;
  uint8_t *images = feed_mlp_images(1, 1, 3);
  float *logits = feed_mlp_reference(images, 1, 1, HIDDEN, 3, &seconds);
  feed_mlp_open(&mlp, DEVICE_CPU, 1, 1, HIDDEN, 3);
  const float *w1 = model_param(&mlp.network, model_find_param(&mlp.network, "fc1.weight")); /* no biases yet */
  const float *w2 = model_param(&mlp.network, model_find_param(&mlp.network, "fc2.weight"));
  double h[HIDDEN] = {0};
  for (int j = 0; j < HIDDEN; j++) {
    for (int i = 0; i < FEED_MLP_PIXELS; i++) h[j] += w1[j * FEED_MLP_PIXELS + i] * ((images[i] / 255.0 - 0.5) / 0.29);
    h[j] = fmax(h[j], 0);
  }
  for (int k = 0; k < FEED_MLP_CLASSES; k++)
    assert_true(fabs(logits[k] - (w2[k * HIDDEN] * h[0] + w2[k * HIDDEN + 1] * h[1])) < 1e-4);
  feed_mlp_close(&mlp);
  free(logits);
  free(images);
}

int main(int argc, char **argv) {
  (void)argc;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_version_brings_every_batch),
      cmocka_unit_test(so_many_batches_fit),
      cmocka_unit_test(large_batches),
      cmocka_unit_test(timelines_show_what_overlaps),
#ifdef SIMT_REWRITTEN
      cmocka_unit_test(a_missing_wait_shows),
#endif
      cmocka_unit_test(logits_are_those_of_the_cpu),
      cmocka_unit_test(reference_is_right_by_hand),
  };
  int failed = TEST_MAIN("feed", tests);
#ifdef SIMT_REWRITTEN
  const char *mode = getenv("SIMT_STREAMS"), *next = NULL;
  if (mode == NULL) next = "lazy";
  if (mode != NULL && strcmp(mode, "lazy") == 0) next = "random:1";
  if (!failed && next != NULL) {
    setenv("SIMT_STREAMS", next, 1);
    execv("/proc/self/exe", argv);
  }
#endif
  (void)argv;
  return failed;
}
