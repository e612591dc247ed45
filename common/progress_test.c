#include "common/progress.h"
#include "common/sparkline.h"
#include "common/test.h"

#include <fcntl.h>
#include <pty.h>

static int real_stderr, source; /* `source` gives what the test writes on stderr */

/* Sends stderr to a file, or to a terminal. */
static void capture_file(void) {
  char path[4096];
  test_path(path, sizeof path, "stderr");
  source = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
  int writer = open(path, O_WRONLY | O_APPEND);
  assert_true(source >= 0 && writer >= 0);
  dup2(writer, 2);
  close(writer);
}

static void capture_terminal(unsigned short columns) {
  int slave;
  struct winsize window = {24, columns, 0, 0};
  if (openpty(&source, &slave, NULL, NULL, &window) != 0) skip(); /* a sandbox without pseudo-terminals */
  fcntl(source, F_SETFL, O_NONBLOCK);
  dup2(slave, 2);
  close(slave);
}

static const char *captured(void) {
  static char text[8192];
  ssize_t length = 0, got;
  while ((got = read(source, text + length, sizeof text - 1 - length)) > 0) length += got;
  text[length] = '\0';
  return text;
}

static int setup(void **state) {
  (void)state;
  real_stderr = dup(2);
  source = -1;
  unsetenv("COLUMNS");
  unsetenv("NO_COLOR");
  return setenv("TERM", "xterm", 1);
}

static int teardown(void **state) {
  (void)state;
  dup2(real_stderr, 2);
  close(real_stderr);
  if (source >= 0) close(source);
  return 0;
}

static void a_plain_line_now_and_then(void **state) {
  (void)state;
  Progress progress;
  capture_file();
  progress_begin(&progress, "epoch 1/5", "images", 0, 1000);
  for (long i = 1; i <= 1000; i++) progress_update(&progress, i, "loss %.3f", 1.0);
  assert_string_equal(captured(), ""); /* it was over before anyone wondered */
  progress.last_shown -= 10;
  for (long i = 1; i <= 1000; i++) progress_update(&progress, i, "loss %.3f", 1.0 / (double)i);
  const char *line = captured();
  assert_int_equal(strncmp(line, "epoch 1/5   0% 1/1000 ", 22), 0);
  assert_string_equal(line + strlen(line) - 12, " loss 1.000\n");
  assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1); /* one line */
  progress_end(&progress);
  assert_string_equal(captured(), "");
}

static void figures(void **state) {
  (void)state;
  Progress progress;
  capture_file();
  progress_begin(&progress, "epoch 1/5", "images", 0, 1000);
  progress_show(&progress, 500, progress.start + 2, "loss 0.123 acc 96.1%");
  assert_string_equal(captured(), "epoch 1/5  50% 500/1000 250 images/s 0:02 left  loss 0.123 acc 96.1%\n");
  progress_show(&progress, 3, progress.start + 2, "");
  assert_string_equal(captured(), "epoch 1/5   0% 3/1000 1.50 images/s 11:05 left\n");
  progress_show(&progress, 1, progress.start + 100, "");
  assert_string_equal(captured(), "epoch 1/5   0% 1/1000 0.01 images/s 27:45:00 left\n");
  progress_show(&progress, 0, progress.start, "starting");
  assert_string_equal(captured(), "epoch 1/5   0% 0/1000  starting\n");
  progress_show(&progress, 1100, progress.start + 11, "");
  assert_string_equal(captured(), "epoch 1/5 100% 1100/1000 100 images/s 0:00 left\n");
  progress_begin(&progress, "resumed", "steps", 900, 1000); /* what an earlier run did says nothing of the rate */
  progress_show(&progress, 950, progress.start + 5, "");
  assert_string_equal(captured(), "resumed  95% 950/1000 10 steps/s 0:05 left\n");
  progress_begin(&progress, "reading", "lines", 0, 0);
  progress_show(&progress, 40, progress.start + 2, "");
  assert_string_equal(captured(), "reading 40 20 lines/s\n");
}

static void a_bar_on_a_terminal(void **state) {
  (void)state;
  Progress progress;
  capture_terminal(60);
  progress_begin(&progress, "epoch 1", "images", 0, 1000);
  progress_show(&progress, 500, progress.start + 2, "loss 0.5");
  /* 59 columns, 7 for the label and 42 for the figures: no room for a bar */
  assert_string_equal(captured(), "\repoch 1  50% 500/1000 250 images/s 0:02 left  loss 0.5\033[K");
  setenv("COLUMNS", "61", 1); /* the user's word beats the window's width */
  progress_show(&progress, 500, progress.start + 2, "loss 0.5");
  assert_string_equal(captured(),
                      "\repoch 1 [\033[32m====>   \033[0m] 500/1000 250 images/s 0:02 left  loss 0.5\033[K");
  setenv("COLUMNS", "62", 1);
  setenv("NO_COLOR", "1", 1);
  progress_begin(&progress, "epoch 1", "images", 0, 1000);
  progress_show(&progress, 1000, progress.start + 4, "loss 0.5");
  assert_string_equal(captured(), "\repoch 1 [========] 1000/1000 250 images/s 0:00 left  loss 0.5\033[K");
  setenv("COLUMNS", "23", 1);
  progress_show(&progress, 1000, progress.start + 4, "loss 0.5");
  assert_string_equal(captured(), "\repoch 1 100% 1000/1000\033[K");
  progress_end(&progress);
  assert_string_equal(captured(), "\r\033[K");
}

static void no_line_is_wider_than_the_window(void **state) {
  (void)state;
  Progress progress;
  char columns[16];
  capture_terminal(80);
  setenv("NO_COLOR", "1", 1);
  progress_begin(&progress, "epoch 1/5", "images", 0, 60000);
  for (int width = 20; width <= 210; width++) {
    snprintf(columns, sizeof columns, "%d", width);
    setenv("COLUMNS", columns, 1);
    progress_show(&progress, 27008, progress.start + 1.5, "loss 0.123");
    const char *line = captured();
    size_t visible = strlen(line) - strlen("\r\033[K");
    if (visible > (size_t)width - 1) fail_msg("%zu characters at a width of %d: %s", visible, width, line + 1);
    if (width >= 80 && strchr(line, '>') == NULL) fail_msg("no bar at a width of %d: %s", width, line + 1);
  }
}

static void ten_times_a_second_at_most(void **state) {
  (void)state;
  Progress progress;
  int draws = 0;
  capture_terminal(80);
  progress_begin(&progress, "epoch 1/5", "images", 0, 1000);
  double start = progress.start;
  long updates = 0;
  for (; seconds_now() < start + 0.35; updates++) progress_update(&progress, updates % 1000, "step %ld", updates);
  for (const char *c = captured(); *c != '\0'; c++) draws += *c == '\r';
  if (draws < 1 || draws > 3) fail_msg("%d lines drawn in 0.35 s by %ld updates, expected 1 to 3", draws, updates);
}

static void a_dumb_terminal_is_no_terminal(void **state) {
  (void)state;
  Progress progress;
  const char *terminals[] = {"dumb", ""};
  capture_terminal(80);
  for (int i = 0; i < 2; i++) {
    setenv("TERM", terminals[i], 1);
    progress_begin(&progress, "epoch", "images", 0, 10);
    progress_show(&progress, 5, progress.start + 1, "");
    progress_end(&progress);
    assert_string_equal(captured(), "epoch  50% 5/10 5.00 images/s 0:01 left\r\n"); /* the terminal adds \r */
  }
}

/* ---- the curve beside the bar ---- */

static void a_curve_goes_from_the_lowest_to_the_highest(void **state) {
  (void)state;
  Sparkline curve;
  memset(&curve, 0, sizeof curve);
  assert_string_equal(sparkline_text(&curve, 9).text, "");
  sparkline_add(&curve, 3);
  assert_string_equal(sparkline_text(&curve, 9).text, "\u2581"); /* one value is as low as it is high */
  const double values[] = {NAN, 10, INFINITY, 6.6, 5};
  for (int i = 0; i < 5; i++) sparkline_add(&curve, values[i]);
  assert_string_equal(sparkline_text(&curve, 9).text, "\u2581\u2588\u2585\u2583");
  assert_string_equal(sparkline_text(&curve, 2).text, "\u2588\u2581"); /* means 6.5 and 5.8 */
  assert_string_equal(sparkline_text(&curve, 0).text, "");
}

/* However many there are, the first and the last are in it: 0, 1, 2, ... gives a straight line. */
static void a_curve_shows_all_values(void **state) {
  (void)state;
  Sparkline curve;
  memset(&curve, 0, sizeof curve);
  for (int i = 0; i < 1000; i++) sparkline_add(&curve, i);
  assert_true(curve.count >= SPARKLINE_ROOM / 2 && curve.count < SPARKLINE_ROOM);
  for (int i = 0; i < curve.count; i++) assert_true(curve.mean[i] == curve.each * i + (curve.each - 1) / 2.0);
  assert_string_equal(sparkline_text(&curve, 8).text, "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588");
}

static void the_curve_needs_room_and_utf8(void **state) {
  (void)state;
  setenv("LC_ALL", "C.UTF-8", 1);
  capture_file();
  assert_int_equal(sparkline_columns(), 0);
  close(source);
  capture_terminal(80);
  assert_int_equal(sparkline_columns(), 0);
  setenv("COLUMNS", "100", 1);
  assert_int_equal(sparkline_columns(), 24);
  setenv("LC_ALL", "C", 1);
  assert_int_equal(sparkline_columns(), 0);
  unsetenv("LC_ALL");
  /* A character of three bytes takes one column of the line. */
  Progress progress;
  setenv("NO_COLOR", "1", 1);
  progress_begin(&progress, "epoch 1/5", "img", 0, 1000);
  progress_show(&progress, 500, progress.start + 10, "loss 0.1234 \u2588\u2587\u2586\u2585\u2584\u2583\u2582\u2581");
  const char *line = captured();
  if (strstr(line, "\u2582\u2581") == NULL) fail_msg("%s", line);
  const int columns = progress_columns(line) - (int)strlen("\r\033[K");
  assert_in_range(columns, 90, 99);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_plain_line_now_and_then, setup, teardown),
      cmocka_unit_test_setup_teardown(figures, setup, teardown),
      cmocka_unit_test_setup_teardown(a_bar_on_a_terminal, setup, teardown),
      cmocka_unit_test_setup_teardown(no_line_is_wider_than_the_window, setup, teardown),
      cmocka_unit_test_setup_teardown(ten_times_a_second_at_most, setup, teardown),
      cmocka_unit_test_setup_teardown(a_dumb_terminal_is_no_terminal, setup, teardown),
      cmocka_unit_test(a_curve_goes_from_the_lowest_to_the_highest),
      cmocka_unit_test(a_curve_shows_all_values),
      cmocka_unit_test_setup_teardown(the_curve_needs_room_and_utf8, setup, teardown),
  };
  return TEST_MAIN("progress", tests);
}
