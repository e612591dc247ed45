/* guard.h - buffers that notice writes outside themselves, on either device.
 *
 *     float *y = guard_alloc(device, n);           // n floats of NaN poison (compare.h) between two guard bands
 *     relu_forward(device, x, y, n);
 *     if (guard_check(device, y, n, "y", &err) != 0) fail_msg("%s", err.message);
 *     guard_free(device, y);
 *
 * Neighbouring arrays lie side by side in memory, so a write one past the end faults nowhere and is found nowhere. Here
 * it destroys a pattern that guard_check() knows. The pattern is made of NaNs: a read outside shows in the result.
 */
#ifndef COMMON_GUARD_H
#define COMMON_GUARD_H

#include "common/compare.h"
#include "common/device.h"
#include "common/error.h"

enum { GUARD_BAND = 256 }; /* floats on each side; a multiple of 16 keeps the buffer's alignment */

/* A different NaN at each place, so that a band that moved is noticed as well. */
static inline uint32_t guard_pattern(size_t i) { return 0x7FB00000u + (uint32_t)i; }

/* For elements of any size; the bands begin right before the first and after the last. */
static inline void *guard_alloc_elements(Device device, size_t n, size_t size) {
  const size_t band = GUARD_BAND * sizeof(float), bytes = n * size;
  char *host = (char *)xmalloc(2 * band + bytes + sizeof(float));
  compare_poison((float *)host, (2 * band + bytes) / sizeof(float) + 1);
  for (size_t i = 0; i < GUARD_BAND; i++) {
    uint32_t before = guard_pattern(i), after = guard_pattern(GUARD_BAND + i);
    memcpy(host + i * sizeof before, &before, sizeof before);
    memcpy(host + band + bytes + i * sizeof after, &after, sizeof after);
  }
  char *memory = (char *)device_alloc(device, 2 * band + bytes);
  device_upload(device, memory, host, 2 * band + bytes);
  free(host);
  return memory + band;
}

static inline float *guard_alloc(Device device, size_t n) {
  return (float *)guard_alloc_elements(device, n, sizeof(float));
}

static inline void guard_free(Device device, void *buffer) {
  if (buffer != NULL) device_free(device, (char *)buffer - GUARD_BAND * sizeof(float));
}

/* -1, and a sentence that says on which side of the n elements and how far, if something was written outside. */
static inline int guard_check_elements(Device device, const void *buffer, size_t n, size_t size, const char *name,
                                       Error *err) {
  uint32_t bands[2][GUARD_BAND];
  const char *unit = size == sizeof(float) ? "floats" : "elements";
  device_download(device, bands[0], (const char *)buffer - sizeof bands[0], sizeof bands[0]);
  device_download(device, bands[1], (const char *)buffer + n * size, sizeof bands[1]);
  for (size_t side = 0; side < 2; side++) {
    const size_t elements = sizeof bands[0] / size;
    size_t count = 0, nearest = 0, farthest = 0; /* distances from the buffer, 1 for the next element */
    uint32_t pattern[GUARD_BAND];
    for (size_t i = 0; i < GUARD_BAND; i++) pattern[i] = guard_pattern(side * GUARD_BAND + i);
    for (size_t i = 0; i < elements; i++) {
      if (memcmp((const char *)bands[side] + i * size, (const char *)pattern + i * size, size) == 0) continue;
      size_t distance = side == 0 ? elements - i : i + 1;
      if (count == 0 || distance < nearest) nearest = distance;
      if (distance > farthest) farthest = distance;
      count++;
    }
    if (count > 0)
      return error_set(err, "%s (%zu %s): %zu written %s, %zu to %zu %s away; check the bounds test", name, n, unit,
                       count, side == 0 ? "before its start" : "past its end", nearest, farthest, unit);
  }
  return 0;
}

static inline int guard_check(Device device, const float *buffer, size_t n, const char *name, Error *err) {
  return guard_check_elements(device, buffer, n, sizeof *buffer, name, err);
}

#endif /* COMMON_GUARD_H */
