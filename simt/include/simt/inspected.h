/* inspected.h - for the inspector's build: the C library's functions that touch memory are not instrumented, so a .cu
 * file calls ours instead, which tell the inspector and then do the same. To be included before the C library's
 * headers. */
#ifndef SIMT_INSPECTED_H
#define SIMT_INSPECTED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
extern void *memcpy(void *__restrict to, const void *__restrict from,
                    size_t bytes) noexcept(true) __asm__("simt_inspected_memcpy");
extern void *memmove(void *to, const void *from, size_t bytes) noexcept(true) __asm__("simt_inspected_memmove");
extern void *memset(void *to, int value, size_t bytes) noexcept(true) __asm__("simt_inspected_memset");
extern void *malloc(size_t bytes) noexcept(true) __asm__("simt_inspected_malloc"); /* of a kernel: its heap */
extern void free(void *memory) noexcept(true) __asm__("simt_inspected_free");
}
#endif

#endif /* SIMT_INSPECTED_H */
