/* error.h - errors as values for libraries, as one sentence for people.
 *
 * A function that can fail for a reason outside the program (a file, a device, the user's input) takes an `Error *`
 * last, returns 0 on success and -1 on failure, and leaves one sentence in it: what happened, where, what to try.
 * Only a program's outermost code turns that into an exit:
 *
 *     Error err;
 *     if (idx_read("train-images-idx3-ubyte", &images, &err) != 0) die("%s", err.message);
 *
 * An allocation that fails is not worth a code path in a course: xmalloc() and xcalloc() end the program.
 */
#ifndef COMMON_ERROR_H
#define COMMON_ERROR_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* what g++ always has */
#endif
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __cplusplus
extern char *program_invocation_short_name; /* for whoever included a system header first */
#endif

typedef struct Error {
  char message[1024];
} Error;

/* Stores the formatted sentence and returns -1, so that `return error_set(err, ...)` reads well. err may be NULL. */
__attribute__((format(printf, 2, 3))) static inline int error_set(Error *err, const char *format, ...) {
  if (err != NULL) {
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
  }
  return -1;
}

/* Prints `program: error: sentence` on stderr and exits with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fflush(stdout);
  fprintf(stderr, "%s: error: ", program_invocation_short_name);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

/* How many results could not be written. Weak: all files of a program that include this header share it. */
__attribute__((weak)) int results_lost;

/* Prints `program: error: sentence` for a result that is lost, a picture for example, while the program goes on. At the
 * end stdout_finish() (train_log.h) makes the exit status 1. */
static inline void result_lost(const Error *why) {
  results_lost++;
  fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, why->message);
}

static inline void *xcalloc(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size ? size : 1);
  if (memory == NULL) die("out of memory: %zu x %zu bytes were asked for; try a smaller batch", count, size);
  return memory;
}

static inline void *xmalloc(size_t size) {
  void *memory = malloc(size ? size : 1);
  if (memory == NULL) die("out of memory: %zu bytes were asked for; try a smaller batch", size);
  return memory;
}

#endif /* COMMON_ERROR_H */
