#include "common/terminal.h"

#include <fcntl.h>

#include "common/test.h"

/* Two 4 x 3 pictures; the third row stands above nothing. */
static const unsigned char first[12] = {0, 255, 100, 200, 0, 255, 200, 100, 255, 0, 127, 128};
static const unsigned char second[12] = {0};

static void draw(TerminalArt art, int count, char *text, size_t size) {
  const unsigned char *const images[] = {first, second};
  FILE *out = fmemopen(text, size, "w");
  assert_non_null(out);
  terminal_draw_gray(out, images, count, 3, 4, 2, art);
  fclose(out);
}

static void characters_are_as_dark_as_their_pixels(void **state) {
  (void)state;
  char text[256] = "";
  draw(TERMINAL_ASCII, 1, text, sizeof text);
  assert_string_equal(text, " @++\n= ::\n");
  draw(TERMINAL_ASCII, 2, text, sizeof text);
  assert_string_equal(text, " @++      \n= ::      \n");
}

static void blocks_are_halves(void **state) {
  (void)state;
  char text[256] = "";
  draw(TERMINAL_BLOCKS, 1, text, sizeof text);
  assert_string_equal(text, " \u2588\u2584\u2580\n\u2580  \u2580\n");
}

/* A colour is told when it changes, and taken back at the picture's edge. */
static void colour_has_both_pixels(void **state) {
  (void)state;
  char text[1024] = "";
  draw(TERMINAL_COLOUR, 1, text, sizeof text);
  const char *line =
      "\033[38;2;0;0;0m\033[48;2;0;0;0m\u2580\033[38;2;255;255;255m\033[48;2;255;255;255m\u2580"
      "\033[38;2;100;100;100m\033[48;2;200;200;200m\u2580\033[38;2;200;200;200m\033[48;2;100;100;100m"
      "\u2580\033[0m\n";
  assert_memory_equal(text, line, strlen(line));
  draw(TERMINAL_COLOUR, 2, text, sizeof text);
  assert_non_null(strstr(text, "\033[0m  \033[38;2;0;0;0m\033[48;2;0;0;0m\u2580\u2580\u2580\u2580\033[0m\n"));
}

/* A pipe is no terminal: no colour, whatever the environment says. */
static void a_pipe_gets_no_colour(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  assert_int_equal(terminal_is(ends[1]), 0);
  assert_int_equal(terminal_art(ends[1]), TERMINAL_ASCII);
  close(ends[0]);
  close(ends[1]);
  int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (terminal < 0) return;
  assert_int_equal(terminal_art(terminal), TERMINAL_COLOUR);
  setenv("NO_COLOR", "1", 1);
  assert_int_equal(terminal_art(terminal), TERMINAL_ASCII);
  setenv("NO_COLOR", "", 1);
  assert_int_equal(terminal_art(terminal), TERMINAL_COLOUR);
  setenv("TERM", "dumb", 1);
  assert_int_equal(terminal_art(terminal), TERMINAL_ASCII);
  close(terminal);
}

static void the_width_is_that_of_columns(void **state) {
  (void)state;
  setenv("COLUMNS", "132", 1);
  assert_int_equal(terminal_width(-1), 132);
  setenv("COLUMNS", "5", 1);
  assert_int_equal(terminal_width(-1), 20);
  setenv("COLUMNS", "100000", 1);
  assert_int_equal(terminal_width(-1), 200);
  unsetenv("COLUMNS");
  assert_int_equal(terminal_width(-1), 80);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(characters_are_as_dark_as_their_pixels),
      cmocka_unit_test(blocks_are_halves),
      cmocka_unit_test(colour_has_both_pixels),
      cmocka_unit_test(a_pipe_gets_no_colour),
      cmocka_unit_test(the_width_is_that_of_columns),
  };
  return TEST_MAIN("terminal", tests);
}
