/* sparkline.h - a curve in a line of text: ▇▅▄▃▂▂▁▁
 *
 *     Sparkline curve = {{0}, 0, 0, 0, 0};
 *     sparkline_add(&curve, loss);                         // as often as one likes
 *     printf("%s\n", sparkline_text(&curve, 24).text);
 *
 * It always shows all values from the first to the last: when there is no room for more, neighbours become their mean.
 */
#ifndef COMMON_SPARKLINE_H
#define COMMON_SPARKLINE_H

#include "common/error.h" /* first: it asks the C library for all it has */

#include <math.h>
#include <strings.h>

#include "common/terminal.h"

enum { SPARKLINE_ROOM = 64, SPARKLINE_LEVELS = 8 };

typedef struct Sparkline {
  double mean[SPARKLINE_ROOM]; /* each of `each` values */
  int count;
  int each;   /* 0: as 1 */
  int open;   /* values of the next mean so far */
  double sum; /* of these */
} Sparkline;

typedef struct SparklineText {
  char text[3 * SPARKLINE_ROOM + 1];
} SparklineText;

/* What is not finite is left out. */
static inline void sparkline_add(Sparkline *s, double value) {
  if (!isfinite(value)) return;
  if (s->each < 1) s->each = 1;
  s->sum += value;
  if (++s->open < s->each) return;
  s->mean[s->count++] = s->sum / s->each;
  s->open = 0;
  s->sum = 0;
  if (s->count < SPARKLINE_ROOM) return;
  s->count /= 2;
  s->each *= 2;
  for (int i = 0; i < s->count; i++) s->mean[i] = (s->mean[2 * i] + s->mean[2 * i + 1]) / 2;
}

/* Of at most `columns` columns, from the lowest value to the highest. */
static inline SparklineText sparkline_text(const Sparkline *s, int columns) {
  SparklineText line = {""};
  double shown[SPARKLINE_ROOM], low = INFINITY, high = -INFINITY;
  if (columns > s->count) columns = s->count;
  char *at = line.text;
  for (int c = 0; c < columns; c++) {
    const int begin = c * s->count / columns, end = (c + 1) * s->count / columns;
    shown[c] = 0;
    for (int i = begin; i < end; i++) shown[c] += s->mean[i] / (end - begin);
    low = fmin(low, shown[c]);
    high = fmax(high, shown[c]);
  }
  for (int c = 0; c < columns; c++) {
    int level = high > low ? (int)((shown[c] - low) / (high - low) * SPARKLINE_LEVELS) : 0;
    if (level >= SPARKLINE_LEVELS) level = SPARKLINE_LEVELS - 1;
    *at++ = (char)0xE2; /* U+2581, the lowest block, to U+2588, the full one */
    *at++ = (char)0x96;
    *at++ = (char)(0x81 + level);
  }
  return line;
}

/* How many columns there are for one beside a progress bar on stderr; 0: it is not a terminal, too narrow, or its
 * characters are not UTF-8. */
static inline int sparkline_columns(void) {
  enum { BESIDES = 76, LEAST = 8, MOST = 32 };
  const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  const char *locale = NULL;
  for (int i = 0; i < 3 && (locale == NULL || locale[0] == '\0'); i++) locale = getenv(names[i]);
  if (!terminal_is(2) || locale == NULL || (strcasestr(locale, "utf-8") == NULL && strcasestr(locale, "utf8") == NULL))
    return 0;
  const int columns = terminal_width(2) - BESIDES;
  return columns < LEAST ? 0 : columns > MOST ? MOST : columns;
}

#endif /* COMMON_SPARKLINE_H */
