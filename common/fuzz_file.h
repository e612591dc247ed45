/* fuzz_file.h - hands a fuzzer's bytes to a reader that wants a path, without touching a disk. */
#ifndef COMMON_FUZZ_FILE_H
#define COMMON_FUZZ_FILE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create; so this header comes first */
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The path of a file with these bytes, valid until the next call. */
static inline const char *fuzz_file(const uint8_t *bytes, size_t size) {
  static int fd = -1;
  static char path[64];
  if (fd < 0) {
    fd = memfd_create("fuzz", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) abort();
  return path;
}

#endif /* COMMON_FUZZ_FILE_H */
