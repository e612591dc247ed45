/* text.h - strings that grow, strings that stay, and whole files.
 *
 *     Text text = {0};
 *     text_printf(&text, "%d exercises\n", count);
 *     if (text_write_file(path, text.bytes, text.length, &err) != 0) die("%s", err.message);
 *     text_free(&text);
 *
 * What a tree or an exercise is made of lives as long as the program: keep() copies it to where nobody needs to free.
 */
#ifndef LEARN_TEXT_H
#define LEARN_TEXT_H

#include "common/error.h" /* first: it asks the C library for all it has */

#include <ctype.h>
#include <stdbool.h>

#include "common/atomic_file.h"
#include "common/runfiles.h"

typedef struct Text {
  char *bytes; /* ends with a '\0' that length does not count; NULL while empty */
  size_t length, capacity;
} Text;

static inline void text_append(Text *text, const char *bytes, size_t length) {
  if (length > (size_t)1 << 40) die("a text of %zu bytes", length);
  if (text->length + length + 1 > text->capacity) {
    text->capacity = 2 * (text->length + length + 1);
    text->bytes = (char *)realloc(text->bytes, text->capacity);
    if (text->bytes == NULL) die("out of memory: %zu bytes were asked for", text->capacity);
  }
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = '\0';
}

static inline void text_add(Text *text, const char *string) { text_append(text, string, strlen(string)); }

__attribute__((format(printf, 2, 3))) static inline void text_printf(Text *text, const char *format, ...) {
  char *line = NULL;
  va_list args;
  va_start(args, format);
  int length = vasprintf(&line, format, args);
  va_end(args);
  if (length < 0) die("out of memory");
  text_append(text, line, (size_t)length);
  free(line);
}

static inline void text_free(Text *text) {
  free(text->bytes);
  memset(text, 0, sizeof *text);
}

/* ---- strings that stay ---- */

typedef struct Kept {
  struct Kept *next;
  char bytes[];
} Kept;
static Kept *kept_strings;

static inline char *keep_bytes(const char *bytes, size_t length) {
  Kept *kept = (Kept *)xmalloc(sizeof *kept + length + 1);
  memcpy(kept->bytes, bytes, length);
  kept->bytes[length] = '\0';
  kept->next = kept_strings;
  kept_strings = kept;
  return kept->bytes;
}

static inline char *keep(const char *string) { return keep_bytes(string, strlen(string)); }

/* Keeps what is in the text, and empties it. */
static inline char *keep_text(Text *text) {
  char *kept = keep_bytes(text->bytes != NULL ? text->bytes : "", text->length);
  text_free(text);
  return kept;
}

__attribute__((format(printf, 1, 2))) static inline char *keep_printf(const char *format, ...) {
  char *line = NULL;
  va_list args;
  va_start(args, format);
  int length = vasprintf(&line, format, args);
  va_end(args);
  if (length < 0) die("out of memory");
  char *kept = keep_bytes(line, (size_t)length);
  free(line);
  return kept;
}

/* A count as people write it: 31740 and not 3.174e+04, 3.5, 0.25. */
static inline const char *keep_number(double x) {
  if (x != x) return "NaN";
  if (x > -1e15 && x < 1e15 && x == (double)(long long)x) return keep_printf("%lld", (long long)x);
  return keep_printf(x >= 1000 ? "%.1f" : "%.4g", x);
}

/* Gives back what was kept since then: Kept *then = kept_strings; ... keep_only(then). Nobody may use it any more. */
static inline void keep_only(Kept *then) {
  while (kept_strings != then) {
    Kept *next = kept_strings->next;
    free(kept_strings);
    kept_strings = next;
  }
}

/* ---- lines ---- */

static inline bool starts_with(const char *string, const char *prefix) {
  return strncmp(string, prefix, strlen(prefix)) == 0;
}
static inline bool ends_with(const char *string, const char *suffix) {
  size_t length = strlen(string), end = strlen(suffix);
  return length >= end && strcmp(string + length - end, suffix) == 0;
}

/* A copy of bytes [begin, end) without white space at both ends. */
static inline char *keep_trimmed(const char *bytes, size_t begin, size_t end) {
  while (begin < end && isspace((unsigned char)bytes[begin])) begin++;
  while (end > begin && isspace((unsigned char)bytes[end - 1])) end--;
  return keep_bytes(bytes + begin, end - begin);
}

/* Where the line that begins at `at` ends: past its '\n', or the end of the text. */
static inline size_t line_end(const char *bytes, size_t length, size_t at) {
  const char *newline = at < length ? (const char *)memchr(bytes + at, '\n', length - at) : NULL;
  return newline == NULL ? length : (size_t)(newline - bytes) + 1;
}

/* Why these bytes are not the text of a program; NULL: they may be. */
static inline const char *text_refused(const char *bytes, size_t length) {
  const bool marked = length >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0);
  if (marked || (length >= 2 && (bytes[0] == '\0') != (bytes[1] == '\0')))
    return "the file is UTF-16, which compilers do not read: save it as UTF-8";
  const char *zero = length > 0 ? (const char *)memchr(bytes, '\0', length) : NULL;
  if (zero == NULL) return NULL;
  int line = 1;
  for (const char *at = bytes; at < zero; at++) line += *at == '\n';
  return keep_printf("line %d holds a zero byte, which your editor may not show: write that line again", line);
}

/* ---- words ---- */

/* How many letters must be put in, taken out, changed or exchanged with their neighbour to make one word of another. */
static inline int word_distance(const char *a, const char *b) {
  enum { MOST = 64 };
  int row[3][MOST + 1];
  const size_t m = strlen(a), n = strlen(b);
  if (m > MOST || n > MOST) return MOST;
  for (size_t j = 0; j <= n; j++) row[0][j] = (int)j;
  for (size_t i = 1; i <= m; i++) {
    const int *above = row[(i - 1) % 3], *two_above = row[(i + 1) % 3];
    int *here = row[i % 3];
    here[0] = (int)i;
    for (size_t j = 1; j <= n; j++) {
      int least = above[j - 1] + (a[i - 1] != b[j - 1]);
      if (above[j] + 1 < least) least = above[j] + 1;
      if (here[j - 1] + 1 < least) least = here[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1 < least)
        least = two_above[j - 2] + 1;
      here[j] = least;
    }
  }
  return row[m % 3][n];
}

/* "; did you mean a, b or c?": the words that contain what was typed, else those that are nearest to it. "" when none
 * is near. */
static inline const char *words_near(const char *typed, const char *const *word, int count) {
  enum { MOST = 4 };
  const char *near[MOST];
  int found = 0, best = 1 + (int)strlen(typed) / 3;
  for (int i = 0; i < count && found < MOST && strlen(typed) >= 3; i++)
    if (strstr(word[i], typed) != NULL) near[found++] = word[i];
  for (int i = 0; i < count && (found == 0 || strstr(near[0], typed) == NULL); i++) {
    const int distance = word_distance(typed, word[i]);
    if (distance < best) found = 0;
    if (distance <= best && found < MOST) near[found++] = word[i];
    if (distance < best) best = distance;
  }
  Text text = {0};
  text_add(&text, found > 0 ? "; did you mean " : "");
  for (int i = 0; i < found; i++) text_printf(&text, "%s%s", i == 0 ? "" : i + 1 < found ? ", " : " or ", near[i]);
  text_add(&text, found > 0 ? "?" : "");
  return keep_text(&text);
}

/* ---- files ---- */

enum { TEXT_FILE_MAX = 16 << 20 };

static inline int text_read_file(Text *text, const char *path, Error *err) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would keep us waiting */
  FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
  if (file == NULL) return error_set(err, "cannot read %s: %s", path, strerror(errno));
  if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > TEXT_FILE_MAX) {
    fclose(file);
    return error_set(err, "cannot read %s: it is not a file of at most %d MB", path, TEXT_FILE_MAX >> 20);
  }
  char block[16384];
  size_t got;
  text_add(text, ""); /* an empty file is an empty string, not NULL */
  while ((got = fread(block, 1, sizeof block, file)) > 0) text_append(text, block, got);
  int failed = ferror(file);
  fclose(file);
  return failed ? error_set(err, "cannot read %s: %s", path, strerror(EIO)) : 0;
}

/* The folder that the file lies in, made when it is not there. */
static inline int make_parent(const char *path, Error *err) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return 0;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
  return make_directories(folder, err);
}

/* Whole or not at all: a kill in the middle leaves what was there. */
static inline int text_write_file(const char *path, const char *bytes, size_t length, Error *err) {
  AtomicFile file;
  if (make_parent(path, err) != 0 || atomic_file_open(&file, path, err) != 0) return -1;
  fwrite(bytes, 1, length, file.stream);
  return atomic_file_commit(&file, err);
}

/* Without the sync to the disk, for files that can be made again. */
static inline int text_write_quick(const char *path, const char *bytes, size_t length, Error *err) {
  if (make_parent(path, err) != 0) return -1;
  FILE *file = fopen(path, "wb");
  if (file == NULL) return error_set(err, "cannot write %s: %s", path, strerror(errno));
  size_t written = fwrite(bytes, 1, length, file);
  if (fclose(file) != 0 || written != length) return error_set(err, "cannot write %s: %s", path, strerror(errno));
  return 0;
}

#endif /* LEARN_TEXT_H */
