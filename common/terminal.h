/* terminal.h - what the user's terminal can show, and grey pictures as text.
 *
 *     TerminalArt art = terminal_art(1);                            // for what goes to stdout
 *     terminal_draw_gray(stdout, images, 3, 28, 28, 2, art);        // three pictures side by side
 *
 * A character is about twice as high as wide, so a line of text is two rows of pixels. In colour each character is the
 * upper half of a block on its background: every pixel in its own grey. Without, a character stands for the mean of the
 * two. NO_COLOR is honoured, and a file or a pipe gets no colour either.
 */
#ifndef COMMON_TERMINAL_H
#define COMMON_TERMINAL_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef enum TerminalArt {
  TERMINAL_ASCII,  /* " .:-=+*#%@" */
  TERMINAL_BLOCKS, /* half blocks, black or white: UTF-8, but no colour */
  TERMINAL_COLOUR, /* half blocks in grey */
} TerminalArt;

/* Can the cursor be moved there? */
static inline int terminal_is(int fd) {
  const char *terminal = getenv("TERM");
  return isatty(fd) && terminal != NULL && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

static inline int terminal_has_colour(int fd) {
  const char *no_color = getenv("NO_COLOR");
  return terminal_is(fd) && (no_color == NULL || no_color[0] == '\0');
}

/* Columns: those of COLUMNS or of the window, else 80; from 20 to 200. */
static inline int terminal_width(int fd) {
  const char *columns = getenv("COLUMNS");
  struct winsize window;
  int width = columns != NULL ? atoi(columns) : 0;
  if (width <= 0 && ioctl(fd, TIOCGWINSZ, &window) == 0) width = window.ws_col;
  if (width <= 0) width = 80;
  return width < 20 ? 20 : width > 200 ? 200 : width;
}

static inline TerminalArt terminal_art(int fd) { return terminal_has_colour(fd) ? TERMINAL_COLOUR : TERMINAL_ASCII; }

/* Two pixels, one above the other. `last` is the colour that the terminal has now, -1: none of ours. */
static inline void terminal_draw_pixels(FILE *out, int upper, int lower, TerminalArt art, int last[2]) {
  static const char ramp[] = " .:-=+*#%@";
  if (art == TERMINAL_ASCII) {
    fputc(ramp[(upper + lower) * 10 / 511], out);
  } else if (art == TERMINAL_BLOCKS) {
    const char *const blocks[] = {" ", "\u2584", "\u2580", "\u2588"}; /* none, lower, upper, both */
    fputs(blocks[2 * (upper >= 128) + (lower >= 128)], out);
  } else {
    if (upper != last[0]) fprintf(out, "\033[38;2;%d;%d;%dm", upper, upper, upper);
    if (lower != last[1]) fprintf(out, "\033[48;2;%d;%d;%dm", lower, lower, lower);
    fputs("\u2580", out);
    last[0] = upper;
    last[1] = lower;
  }
}

/* `count` pictures (height,width) side by side, `gap` blanks between them. */
static inline void terminal_draw_gray(FILE *out, const unsigned char *const *images, int count, int height, int width,
                                      int gap, TerminalArt art) {
  for (int y = 0; y < height; y += 2) {
    for (int i = 0; i < count; i++) {
      int last[2] = {-1, -1};
      if (i > 0) fprintf(out, "%*s", gap, "");
      for (int x = 0; x < width; x++) {
        const unsigned char *at = images[i] + (size_t)y * (size_t)width + (size_t)x;
        terminal_draw_pixels(out, at[0], y + 1 < height ? at[width] : 0, art, last);
      }
      if (art == TERMINAL_COLOUR) fputs("\033[0m", out);
    }
    fputc('\n', out);
  }
}

#endif /* COMMON_TERMINAL_H */
