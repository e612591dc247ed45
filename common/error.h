/* error.h - errors as values for libraries, as one sentence for people.
 *
 * A function that can fail for a reason outside the program (a file, a device, the user's input) takes an `Error *`
 * last, returns 0 on success and -1 on failure, and leaves one sentence in it: what happened, where, what to try.
 * Only a program's outermost code turns that into an exit:
 *
 *     Error err;
 *     if (idx_read("train-images-idx3-ubyte", &images, &err) != 0) die("%s", err.message);
 *
 * The sentence is for people. A caller that must tell one failure from another looks at `code`, and one that knows
 * better what to try replaces that part of the sentence with error_advise(); no caller searches the text.
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

/* The failures that some caller treats differently from all others. */
typedef enum ErrorCode {
  ERROR_NONE,
  ERROR_OTHER,         /* the caller can only pass the sentence on */
  ERROR_INTERRUPTED,   /* the user pressed Ctrl-C */
  ERROR_NOT_INSTALLED, /* a program that the work needs is missing on this machine */
} ErrorCode;

typedef struct Error {
  char message[1024]; /* "what failed; what to try" */
  ErrorCode code;
  size_t advice; /* where "; what to try" begins in message; 0: there is none */
} Error;

__attribute__((format(printf, 3, 0))) static inline int error_set_list(Error *err, ErrorCode code, const char *format,
                                                                       va_list args) {
  if (err == NULL) return -1;
  vsnprintf(err->message, sizeof err->message, format, args);
  err->code = code;
  err->advice = 0;
  return -1;
}

/* Stores the formatted sentence and returns -1, so that `return error_set(err, ...)` reads well. err may be NULL. */
__attribute__((format(printf, 2, 3))) static inline int error_set(Error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  error_set_list(err, ERROR_OTHER, format, args);
  va_end(args);
  return -1;
}

/* The same for a failure that a caller recognises. */
__attribute__((format(printf, 3, 4))) static inline int error_set_code(Error *err, ErrorCode code, const char *format,
                                                                       ...) {
  va_list args;
  va_start(args, format);
  error_set_list(err, code, format, args);
  va_end(args);
  return -1;
}

/* Appends "; what to try", in place of the advice that the sentence has. Returns -1. */
__attribute__((format(printf, 2, 3))) static inline int error_advise(Error *err, const char *format, ...) {
  if (err == NULL) return -1;
  if (err->advice == 0) err->advice = strlen(err->message);
  const size_t left = sizeof err->message - err->advice;
  const int separator = snprintf(err->message + err->advice, left, "; ");
  va_list args;
  va_start(args, format);
  if ((size_t)separator < left)
    vsnprintf(err->message + err->advice + separator, left - (size_t)separator, format, args);
  va_end(args);
  return -1;
}

/* Takes the advice off again, for a reader who cannot follow it. */
static inline void error_drop_advice(Error *err) {
  if (err->advice > 0) err->message[err->advice] = '\0';
  err->advice = 0;
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
