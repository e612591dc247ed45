/* timeline.h: lines and pictures of spans that are known, and spans from events. */
#include "common/timeline.h"

#include "common/test.h"

enum { FIRST, SECOND, HOST };

static Timeline two_lanes(const char *name) {
  Timeline timeline = timeline_make(name);
  assert_int_equal(timeline_lane(&timeline, "copy"), FIRST);
  assert_int_equal(timeline_lane(&timeline, "work"), SECOND);
  return timeline;
}

/* What `timeline_print` prints. */
static char *printed(const Timeline *timelines, int count) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  timeline_print(out, timelines, count, "ms");
  fclose(out);
  return text;
}

static void lines_are_to_scale(void **state) {
  (void)state;
  Timeline t[2] = {two_lanes("one"), two_lanes("another")};
  char line[TIMELINE_WIDTH + 1], expected[TIMELINE_WIDTH + 1];
  timeline_add(&t[0], FIRST, 7, 0, 1); /* a quarter, a gap of a quarter, a half with a long number */
  timeline_add(&t[0], FIRST, 18, 2, 4);
  timeline_line(&t[0], FIRST, 4, line);
  memset(expected, '.', TIMELINE_WIDTH);
  memset(expected, '7', TIMELINE_WIDTH / 4);
  memset(expected + TIMELINE_WIDTH / 2, '8', TIMELINE_WIDTH / 2);
  expected[TIMELINE_WIDTH] = '\0';
  assert_string_equal(line, expected);
  timeline_add(&t[1], SECOND, 0, 0, 1); /* shorter: nothing after its end; a lane without spans is not shown */
  char *text = printed(t, 2);
  char wanted[4 * TIMELINE_WIDTH];
  snprintf(wanted, sizeof wanted, "one\n  copy %s\nanother\n  work %.*s\n       0%*s\n", expected, TIMELINE_WIDTH / 4,
           "000000000000000000000000000000000000000000000000", TIMELINE_WIDTH - 1, "4 ms");
  assert_string_equal(text, wanted);
  free(text);
  timeline_free(&t[0]);
  timeline_free(&t[1]);
}

static void short_spans_and_none(void **state) {
  (void)state;
  Timeline t = two_lanes("t");
  char *text = printed(&t, 1);
  assert_string_equal(text, ""); /* no time, no axis */
  free(text);
  for (int i = 0; i < 1000; i++) timeline_add(&t, SECOND, i, i, i + 0.5); /* ten a character */
  text = printed(&t, 1);
  assert_null(strstr(text, "..")); /* the axis has 999.5 at its end */
  free(text);
  assert_true(timeline_length(&t) == 999.5);
  t.span[3].begin = t.span[3].end = NAN; /* left out */
  t.span[4].begin = -5;
  text = printed(&t, 1);
  assert_non_null(strstr(text, "work "));
  free(text);
  timeline_free(&t);
}

static void pictures_have_a_box_for_each_span(void **state) {
  (void)state;
  Timeline t[2] = {two_lanes("a 'name'"), two_lanes("b")};
  char path[PATH_MAX], *text;
  Error err;
  for (int i = 0; i < 5; i++) timeline_add(&t[0], i % 2, i, i, i + 1);
  timeline_add(&t[1], FIRST, 0, 0, 2);
  FILE *script = tmpfile();
  TimelinePicture picture = {t, 2, "ms", "title"};
  timeline_print_script(script, &picture, 0);
  long size = ftell(script);
  text = (char *)xcalloc((size_t)size + 1, 1);
  rewind(script);
  assert_int_equal(fread(text, 1, (size_t)size, script), size);
  fclose(script);
  assert_non_null(strstr(text, "\n4 5 0 0xd55e00 4\n"));   /* span 4 in row 0, dark */
  assert_non_null(strstr(text, "\n1 2 1 0x4aa3d8 1\n"));   /* span 1 in row 1, light */
  assert_non_null(strstr(text, "\n0 2 2.5 0xd55e00 0\n")); /* the next timeline, half a row below */
  assert_non_null(strstr(text, "'b: copy' 2.5"));
  free(text);
  if (system("command -v gnuplot > /dev/null") == 0) {
    snprintf(path, sizeof path, "%s/timeline_test.svg", getenv("TEST_TMPDIR") != NULL ? getenv("TEST_TMPDIR") : "/tmp");
    if (timeline_draw(t, 2, "ms", "title", path, &err) != 0) fail_msg("%s", err.message);
    unlink(path);
  }
  t[0].spans = t[1].spans = 0;
  assert_int_equal(timeline_draw(t, 2, "ms", "title", "/tmp/none.svg", &err), -1);
  assert_non_null(strstr(err.message, "no span"));
  timeline_free(&t[0]);
  timeline_free(&t[1]);
}

static __global__ void spin(unsigned *x, int turns) {
  for (int i = 0; i < turns; i++) x[0] = x[0] * 3 + 1;
}

/* Two kernels in a row, and one beside them in another stream; the host's lane. */
static void spans_come_from_events(void **state) {
  (void)state;
  test_requires_gpu();
  unsigned *x, *y;
  cudaStream_t other;
  TimelineRecorder r = timeline_open(3, HOST);
  Timeline t = two_lanes("t");
  timeline_lane(&t, "host");
  CUDA_CHECK(cudaMalloc((void **)&x, sizeof *x));
  CUDA_CHECK(cudaMalloc((void **)&y, sizeof *y));
  CUDA_CHECK(cudaMemset(x, 0, sizeof *x));
  CUDA_CHECK(cudaMemset(y, 0, sizeof *y));
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  for (int round = 0; round < 2; round++) { /* the second tells less: what it did not record is not there */
    timeline_start(&r);
    for (int i = 0; i < 3; i += 2) {
      timeline_begin(&r, FIRST, i, 0);
      spin<<<1, 1>>>(x, 1000);
      CUDA_CHECK_LAUNCH();
      timeline_end(&r, FIRST, i, 0);
    }
    if (round == 0) {
      timeline_begin(&r, SECOND, 1, other);
      spin<<<1, 1, 0, other>>>(y, 1000);
      CUDA_CHECK_LAUNCH();
      timeline_end(&r, SECOND, 1, other);
      CUDA_CHECK(cudaEventSynchronize(timeline_ended(&r, SECOND, 1)));
      timeline_host_begin(&r, 2);
      timeline_host_end(&r, 2);
    }
    double length = timeline_stop(&r, &t);
    assert_true(length == timeline_length(&t) && length > 0);
    assert_int_equal(timeline_lane_used(&t, FIRST), 1);
    assert_int_equal(timeline_lane_used(&t, SECOND), round == 0);
    assert_true(t.span[0].number == 0 && t.span[1].number == 2);
    assert_true(t.span[0].begin >= 0 && t.span[0].end > t.span[0].begin && t.span[1].begin >= t.span[0].end);
#ifdef SIMT_REWRITTEN
    assert_string_equal(TIMELINE_UNIT, "steps");
    assert_int_equal(t.spans, round == 0 ? 3 : 2); /* the host takes no steps */
    assert_true(t.span[0].begin == 0 && t.span[0].end == 1 && t.span[1].end == 2 && length == 2);
    if (round == 0) assert_true(t.span[2].begin == 0 && t.span[2].end == 1);
#else
    assert_int_equal(t.spans, round == 0 ? 4 : 2);
    if (round == 0) assert_true(t.span[3].lane == HOST && t.span[3].end >= t.span[3].begin && t.span[3].begin > 0);
#endif
  }
  timeline_free(&t);
  timeline_close(&r);
  CUDA_CHECK(cudaStreamDestroy(other));
  CUDA_CHECK(cudaFree(x));
  CUDA_CHECK(cudaFree(y));
}

static void too_many_lanes(void) {
  Timeline t = two_lanes("t");
  timeline_lane(&t, "three");
  timeline_lane(&t, "four");
}

static void a_fourth_lane_is_refused(void **state) {
  (void)state;
  char output[512];
  assert_int_equal(test_fork(too_many_lanes, output, sizeof output), 1);
  assert_non_null(strstr(output, "at most 3 lanes"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_fourth_lane_is_refused), /* forks, before CUDA is there */
      cmocka_unit_test(lines_are_to_scale),
      cmocka_unit_test(short_spans_and_none),
      cmocka_unit_test(pictures_have_a_box_for_each_span),
      cmocka_unit_test(spans_come_from_events),
  };
  return TEST_MAIN("timeline", tests);
}
