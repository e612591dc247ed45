/* device_count.h - how many bytes device_alloc() (device.h) has given out on each device, now and at most.
 *
 *     const size_t before = device_allocated(DEVICE_GPU).now;
 *     ...
 *     printf("%zu bytes\n", device_allocated(DEVICE_GPU).now - before);
 *
 * The sizes are in a list beside the memory, so that its alignment stays as it is. Threads may allocate at once. */
#ifndef COMMON_DEVICE_COUNT_H
#define COMMON_DEVICE_COUNT_H

#include "common/error.h" /* first: it asks the C library for all it has */

#include <stdint.h>

typedef struct DeviceBytes {
  size_t now, most; /* not yet given back; the largest `now` since the beginning */
} DeviceBytes;

typedef struct DeviceBlock {
  struct DeviceBlock *next;
  uintptr_t hidden; /* ~address: a leak detector must not take the list for the owner of the memory */
  size_t bytes;
} DeviceBlock;

/* By device, which is one of enum Device (device.h). Weak: all files of a program that include this header share it. */
__attribute__((weak)) DeviceBlock *device_count_blocks[2];
__attribute__((weak)) DeviceBytes device_count_bytes[2];
__attribute__((weak)) char device_count_locked;

static inline void device_count_lock(void) {
  while (__atomic_test_and_set(&device_count_locked, __ATOMIC_ACQUIRE)) continue;
}

static inline void device_count_unlock(void) { __atomic_clear(&device_count_locked, __ATOMIC_RELEASE); }

static inline void device_count_take(int device, void *memory, size_t bytes) {
  DeviceBlock *block = (DeviceBlock *)xmalloc(sizeof *block);
  DeviceBytes *count = &device_count_bytes[device];
  device_count_lock();
  block->next = device_count_blocks[device];
  block->hidden = ~(uintptr_t)memory;
  block->bytes = bytes;
  device_count_blocks[device] = block;
  count->now += bytes;
  if (count->now > count->most) count->most = count->now;
  device_count_unlock();
}

/* Before the memory is given back: another thread may get its address at once. */
static inline void device_count_give(int device, const void *memory) {
  DeviceBlock **at = &device_count_blocks[device], *block;
  device_count_lock();
  while (*at && (*at)->hidden != ~(uintptr_t)memory) at = &(*at)->next;
  block = *at;
  if (block) {
    *at = block->next;
    device_count_bytes[device].now -= block->bytes;
  }
  device_count_unlock();
  free(block);
}

static inline DeviceBytes device_allocated(int device) {
  device_count_lock();
  const DeviceBytes bytes = device_count_bytes[device];
  device_count_unlock();
  return bytes;
}

#endif /* COMMON_DEVICE_COUNT_H */
