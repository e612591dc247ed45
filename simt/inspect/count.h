/* count.h - what one request of a warp costs: plain arithmetic, tested alone. */
#ifndef SIMT_INSPECT_COUNT_H
#define SIMT_INSPECT_COUNT_H

#include <stdint.h>

#include "simt/inspector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The accesses of up to 32 lanes by one instruction: address[lane] counts where the mask has its bit. */
typedef struct SimtRequest {
  uint32_t mask;
  uint16_t bytes; /* of each lane */
  uint8_t access; /* SimtAccessKind bits */
  uintptr_t address[32];
} SimtRequest;

static inline SimtExample simt_example_of(const SimtRequest *request, uint32_t racing) {
  SimtExample e = {.lanes = request->mask, .racing = racing, .access = request->access & 7u, .bytes = request->bytes};
  for (int i = 0; i < 32; i++)
    if (request->mask >> i & 1) e.address[i] = request->address[i];
  return e;
}

/* Distinct 32-byte sectors; *ideal those that as many bytes would fill side by side, never more than that. */
int simt_count_sectors(const SimtRequest *request, int *ideal);
/* Passes over the 32 banks; *ideal without conflicts. Lanes are served in groups: 32 for up to 4 bytes, 16 for 8, 8
 * for 16. */
int simt_count_wavefronts(const SimtRequest *request, int *ideal);
/* Distinct addresses. */
int simt_count_addresses(const SimtRequest *request);
/* The most lanes with the same address. */
int simt_count_turns(const SimtRequest *request);

#ifdef __cplusplus
}
#endif

#endif /* SIMT_INSPECT_COUNT_H */
