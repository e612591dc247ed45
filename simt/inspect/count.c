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

const SimtCounterName simt_counter_names[SIMT_COUNTERS] = {
    [SIMT_STEPS] = {"steps", NULL, "basic blocks executed by warps"},
    [SIMT_STEP_LANES] = {"step_lanes", NULL, "lanes active in them"},
    [SIMT_BRANCHES] = {"branches", "smsp__sass_branch_targets.sum", "branches executed by warps"},
    [SIMT_UNIFORM_BRANCHES] = {"uniform_branches", "smsp__sass_branch_targets_threads_uniform.sum",
                               "branches that all active lanes took in the same direction"},
    [SIMT_GLOBAL_LOAD_REQUESTS] = {"global_load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                   "global load requests"},
    [SIMT_GLOBAL_LOAD_SECTORS] = {"global_load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                  "sectors of global loads"},
    [SIMT_GLOBAL_LOAD_IDEAL_SECTORS] = {"global_load_ideal_sectors", NULL,
                                        "sectors of global loads, if the bytes were adjacent"},
    [SIMT_GLOBAL_LOAD_BYTES] = {"global_load_bytes", "smsp__sass_data_bytes_mem_global_op_ld.sum",
                                "bytes that the lanes loaded"},
    [SIMT_GLOBAL_STORE_REQUESTS] = {"global_store_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
                                    "global store requests"},
    [SIMT_GLOBAL_STORE_SECTORS] = {"global_store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                   "sectors of global stores"},
    [SIMT_GLOBAL_STORE_IDEAL_SECTORS] = {"global_store_ideal_sectors", NULL,
                                         "sectors of global stores, if the bytes were adjacent"},
    [SIMT_GLOBAL_STORE_BYTES] = {"global_store_bytes", "smsp__sass_data_bytes_mem_global_op_st.sum",
                                 "bytes that the lanes stored"},
    [SIMT_GLOBAL_ATOMIC_REQUESTS] = {"global_atomic_requests", NULL, "global atomic requests"},
    [SIMT_GLOBAL_ATOMIC_SECTORS] = {"global_atomic_sectors", NULL, "sectors of global atomics"},
    [SIMT_GLOBAL_ATOMIC_LANES] = {"global_atomic_lanes", NULL, "global atomics of single lanes"},
    [SIMT_GLOBAL_ATOMIC_TURNS] = {"global_atomic_turns", NULL, "turns of lanes at the same global address"},
    [SIMT_SHARED_LOAD_REQUESTS] = {"shared_load_requests", "smsp__inst_executed_op_shared_ld.sum",
                                   "shared load requests"},
    [SIMT_SHARED_LOAD_WAVEFRONTS] = {"shared_load_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                                     "wavefronts of shared loads"},
    [SIMT_SHARED_LOAD_CONFLICTS] = {"shared_load_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                                    "bank conflicts of shared loads"},
    [SIMT_SHARED_STORE_REQUESTS] = {"shared_store_requests", "smsp__inst_executed_op_shared_st.sum",
                                    "shared store requests"},
    [SIMT_SHARED_STORE_WAVEFRONTS] = {"shared_store_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
                                      "wavefronts of shared stores"},
    [SIMT_SHARED_STORE_CONFLICTS] = {"shared_store_conflicts",
                                     "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
                                     "bank conflicts of shared stores"},
    [SIMT_SHARED_ATOMIC_REQUESTS] = {"shared_atomic_requests", NULL, "shared atomic requests"},
    [SIMT_SHARED_ATOMIC_LANES] = {"shared_atomic_lanes", NULL, "shared atomics of single lanes"},
    [SIMT_SHARED_ATOMIC_TURNS] = {"shared_atomic_turns", NULL, "turns of lanes at the same shared address"},
    [SIMT_CONSTANT_LOAD_REQUESTS] = {"constant_load_requests", NULL, "constant load requests"},
    [SIMT_CONSTANT_LOAD_WORDS] = {"constant_load_words", NULL, "different addresses in constant load requests"},
    [SIMT_LOCAL_LOADS] = {"local_loads", NULL, "loads from a thread's own memory"},
    [SIMT_LOCAL_STORES] = {"local_stores", NULL, "stores to a thread's own memory"},
};

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
