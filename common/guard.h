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

static inline float *guard_alloc(Device device, size_t n) {
  size_t total = n + 2 * GUARD_BAND;
  float *host = (float *)xmalloc(total * sizeof *host);
  compare_poison(host, total);
  for (size_t i = 0; i < GUARD_BAND; i++) {
    uint32_t before = guard_pattern(i), after = guard_pattern(GUARD_BAND + i);
    memcpy(&host[i], &before, sizeof before);
    memcpy(&host[GUARD_BAND + n + i], &after, sizeof after);
  }
  float *memory = (float *)device_alloc(device, total * sizeof *memory);
  device_upload(device, memory, host, total * sizeof *memory);
  free(host);
  return memory + GUARD_BAND;
}

static inline void guard_free(Device device, float *buffer) {
  if (buffer != NULL) device_free(device, buffer - GUARD_BAND);
}

/* -1, and a sentence that says on which side of the n floats and how far, if something was written outside. */
static inline int guard_check(Device device, const float *buffer, size_t n, const char *name, Error *err) {
  float bands[2][GUARD_BAND];
  device_download(device, bands[0], buffer - GUARD_BAND, sizeof bands[0]);
  device_download(device, bands[1], buffer + n, sizeof bands[1]);
  for (size_t side = 0; side < 2; side++) {
    size_t count = 0, nearest = 0, farthest = 0; /* distances from the buffer, 1 for the next float */
    for (size_t i = 0; i < GUARD_BAND; i++) {
      if (compare_bits(&bands[side][i]) == guard_pattern(side * GUARD_BAND + i)) continue;
      size_t distance = side == 0 ? GUARD_BAND - i : i + 1;
      if (count == 0 || distance < nearest) nearest = distance;
      if (distance > farthest) farthest = distance;
      count++;
    }
    if (count > 0)
      return error_set(err, "%s (%zu floats): %zu written %s, %zu to %zu floats away; check the bounds test", name, n,
                       count, side == 0 ? "before its start" : "past its end", nearest, farthest);
  }
  return 0;
}

#endif /* COMMON_GUARD_H */
