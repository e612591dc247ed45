/* count.c - sectors, wavefronts and bank conflicts of one request of a warp.
 *
 * The rules are those that Nsight Compute's counters follow on an H200, where they were compared:
 *   device memory   a request costs as many sectors as it touches different aligned 32-byte pieces;
 *   shared memory   a bank is a column of 4-byte words, word w lies in bank w mod 32. In one wavefront a bank delivers
 *                   one word, to every lane that wants it. 8-byte accesses are served for 16 lanes at a time, 16-byte
 *                   ones for 8, so that a group never asks for more than 32 words. Two neighbouring groups go together
 *                   where lanes share so much that they need not ask for more: where each lane i wants the address of
 *                   lane i ^ 1, or each that of lane i ^ 2.
 */
#include "count.h"

#include <string.h>

#define ROW(counter, name, nsight, text) {name, nsight, text},
const SimtCounterName simt_counter_names[SIMT_COUNTERS] = {SIMT_COUNTER_LIST(ROW)};
#undef ROW

/* A set of at most 64 numbers, for one request. */
#define SET_SLOTS 256 /* a power of two, sparse */
typedef struct Set {
  uintptr_t number[SET_SLOTS];
  uint32_t stamp[SET_SLOTS], now;
  uint8_t times[SET_SLOTS];
} Set;
static __thread Set set;

static void set_clear(void) {
  if (++set.now == 0) {
    memset(set.stamp, 0, sizeof set.stamp);
    set.now = 1;
  }
}

/* How often `number` has been put in, this time included. */
static int set_put(uintptr_t number) {
  unsigned slot = (unsigned)((number * 0x9e3779b97f4a7c15u) >> 56) % SET_SLOTS;
  while (set.stamp[slot] == set.now && set.number[slot] != number) slot = (slot + 1) % SET_SLOTS;
  if (set.stamp[slot] != set.now) {
    set.stamp[slot] = set.now;
    set.number[slot] = number;
    set.times[slot] = 0;
  }
  return ++set.times[slot];
}

int simt_count_sectors(const SimtRequest *request, int *ideal) {
  int lanes = __builtin_popcount(request->mask), sectors = 0, sorted = 1;
  uintptr_t last = 0;
  for (uint32_t rest = request->mask; rest; rest &= rest - 1) {
    uintptr_t address = request->address[__builtin_ctz(rest)];
    uintptr_t first = address / 32, end = (address + request->bytes - 1) / 32;
    if (sectors && first < last) {
      sorted = 0;
      break;
    }
    for (uintptr_t sector = first; sector <= end; sector++)
      if (!sectors || sector > last) {
        sectors++;
        last = sector;
      }
  }
  if (!sorted) {
    sectors = 0;
    set_clear();
    for (uint32_t rest = request->mask; rest; rest &= rest - 1) {
      uintptr_t address = request->address[__builtin_ctz(rest)];
      for (uintptr_t sector = address / 32; sector <= (address + request->bytes - 1) / 32; sector++)
        sectors += set_put(sector) == 1;
    }
  }
  int least = (lanes * request->bytes + 31) / 32;
  *ideal = sectors < least ? sectors : least;
  return sectors;
}

/* Lanes of `lanes` whose partner, `distance` away, wants another address. */
static int differ(const SimtRequest *request, uint32_t lanes, int distance) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), partner = lane ^ distance;
    if ((lanes >> partner & 1) && request->address[lane] != request->address[partner]) return 1;
  }
  return 0;
}

int simt_count_wavefronts(const SimtRequest *request, int *ideal) {
  int group = request->bytes <= 4 ? 32 : request->bytes <= 8 ? 16 : 8, next;
  int wavefronts = 0, groups = 0;
  for (int first = 0; first < 32; first = next) {
    next = first + group;
    uint32_t rest = request->mask & (group == 32 ? ~0u : ((1u << group) - 1) << first);
    if (group < 32 && first % (2 * group) == 0) { /* together with the next group? */
      uint32_t both = request->mask & (group == 16 ? ~0u : 0xffffu << first);
      if (!differ(request, both, 1) || !differ(request, both, 2)) {
        rest = both;
        next = first + 2 * group;
      }
    }
    if (!rest) continue;
    uint8_t words[32] = {0}; /* of each bank */
    int most = 1;
    set_clear();
    for (; rest; rest &= rest - 1) {
      uintptr_t address = request->address[__builtin_ctz(rest)];
      for (uintptr_t word = address / 4; word <= (address + request->bytes - 1) / 4; word++)
        if (set_put(word) == 1 && ++words[word % 32] > most) most = words[word % 32];
    }
    wavefronts += most;
    groups++;
  }
  *ideal = groups;
  return wavefronts;
}

int simt_count_addresses(const SimtRequest *request) {
  int addresses = 0;
  set_clear();
  for (uint32_t rest = request->mask; rest; rest &= rest - 1)
    addresses += set_put(request->address[__builtin_ctz(rest)]) == 1;
  return addresses;
}

int simt_count_turns(const SimtRequest *request) {
  int most = 0;
  set_clear();
  for (uint32_t rest = request->mask; rest; rest &= rest - 1) {
    int times = set_put(request->address[__builtin_ctz(rest)]);
    if (times > most) most = times;
  }
  return most;
}
