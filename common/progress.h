/* progress.h - how far a long loop has come, on stderr.
 *
 *     Progress progress;
 *     progress_begin(&progress, "epoch 1/5", "images", 0, 60000);
 *     for (...) {
 *       ...
 *       progress_update(&progress, seen, "loss %.3f", loss);
 *     }
 *     progress_end(&progress);
 *
 * On a terminal this is one line, redrawn at most ten times a second and gone at the end:
 *
 *     epoch 1/5 [=======>         ] 27008/60000 18342 images/s 0:02 left  loss 0.123
 *
 * Elsewhere (a file, a CI log, TERM=dumb) it is a plain line every ten seconds. An update costs a look at the clock;
 * its note is formatted only when it is shown. NO_COLOR is honoured, and the width follows COLUMNS or the window.
 */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include "common/error.h"
#include "common/terminal.h"
#include "common/timer.h"

#include <time.h>

typedef struct Progress {
  const char *label, *unit;
  long first, total; /* counting begins at `first`, above 0 in a resumed run; total 0: unknown */
  double start, last_shown;
  int terminal, colour;
} Progress;

static inline void progress_begin(Progress *progress, const char *label, const char *unit, long first, long total) {
  progress->label = label;
  progress->unit = unit;
  progress->first = first;
  progress->total = total;
  progress->start = progress->last_shown = seconds_now();
  progress->terminal = terminal_is(2);
  progress->colour = terminal_has_colour(2);
}

/* "0:07", "12:34", "1:02:03". */
static inline void progress_time_format(char *text, size_t size, double seconds) {
  long s = seconds < 360000 ? (long)(seconds + 0.5) : 359999;
  if (s >= 3600) {
    snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  } else {
    snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
  }
}

/* Columns of a text in UTF-8: bytes that begin a character. */
static inline int progress_columns(const char *text) {
  int columns = 0;
  for (; *text != '\0'; text++) columns += ((unsigned char)*text & 0xC0) != 0x80;
  return columns;
}

/* Writes the line in one go, so that it cannot mix with what other threads write. */
static inline void progress_show(Progress *progress, long done, double now, const char *note) {
  enum { BAR_MAX = 40, BAR_MIN = 8, SIZE = 320 };
  char facts[SIZE], gauge[BAR_MAX + 32] = "", left[32];
  int used;
  double elapsed = now - progress->start, rate = elapsed > 0 ? (double)(done - progress->first) / elapsed : 0;
  long total = progress->total, shown = done < 0 ? 0 : done > total ? total : done;

  used = total > 0 ? snprintf(facts, SIZE, " %ld/%ld", done, total) : snprintf(facts, SIZE, " %ld", done);
  if (rate > 0)
    used += snprintf(facts + used, SIZE - used, " %.*f %.40s/s", rate < 9.995 ? 2 : 0, rate, progress->unit);
  if (total > 0 && rate > 0) {
    progress_time_format(left, sizeof left, (double)(total - shown) / rate);
    used += snprintf(facts + used, SIZE - used, " %s left", left);
  }
  if (note[0] != '\0') snprintf(facts + used, SIZE - used, "  %.127s", note);

  /* Between label and facts stands a bar, or the percentage where there is no room for one. */
  int width = progress->terminal ? terminal_width(2) - 1 : 0; /* a full line would wrap in some terminals */
  int room = width - progress_columns(progress->label) - progress_columns(facts) - (int)strlen(" []");
  if (total > 0 && room >= BAR_MIN) {
    char bar[BAR_MAX + 1];
    if (room > BAR_MAX) room = BAR_MAX;
    int full = (int)((double)room * shown / total);
    memset(bar, ' ', room);
    memset(bar, '=', full);
    if (full < room) bar[full] = '>';
    bar[room] = '\0';
    snprintf(gauge, sizeof gauge, progress->colour ? " [\033[32m%s\033[0m]" : " [%s]", bar);
    fprintf(stderr, "\r%s%s%s\033[K", progress->label, gauge, facts);
    return;
  }
  if (total > 0) snprintf(gauge, sizeof gauge, " %3d%%", (int)(100.0 * shown / total));
  if (progress->terminal) {
    char line[2 * SIZE];
    snprintf(line, sizeof line, "%.200s%s%s", progress->label, gauge, facts);
    fprintf(stderr, "\r%.*s\033[K", width, line);
  } else {
    fprintf(stderr, "%s%s%s\n", progress->label, gauge, facts);
  }
}

__attribute__((format(printf, 3, 4))) static inline void progress_update(Progress *progress, long done,
                                                                         const char *note_format, ...) {
  double now = seconds_now();
  if (now - progress->last_shown < (progress->terminal ? 0.1 : 10.0)) return;
  char note[128];
  va_list args;
  va_start(args, note_format);
  vsnprintf(note, sizeof note, note_format, args);
  va_end(args);
  progress->last_shown = now;
  progress_show(progress, done, now, note);
}

/* Clears the line, so that what the program prints next begins at its start. */
static inline void progress_end(Progress *progress) {
  if (progress->terminal) fputs("\r\033[K", stderr);
}

#endif /* COMMON_PROGRESS_H */
