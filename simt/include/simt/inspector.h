/* simt/inspector.h - what the inspector counted and found, for the program itself to read.
 *
 * Only in the inspector's build (simtcc --inspect, bazel's --config=inspect or `inspect = True`), where SIMT_INSPECT is
 * defined; a GPU has Nsight Compute instead:
 *
 *     #ifdef SIMT_INSPECT
 *     #include "simt/inspector.h"
 *     uint64_t count[SIMT_COUNTERS];
 *     simt_inspect_forget();
 *     transpose(out, in, 1024, 1024);
 *     cudaDeviceSynchronize();
 *     simt_inspect_counts("transpose", count);
 *     printf("%.1f sectors per request\n", (double)count[SIMT_GLOBAL_LOAD_SECTORS] / count[SIMT_GLOBAL_LOAD_REQUESTS]);
 *     #endif
 */
#ifndef SIMT_INSPECTOR_H
#define SIMT_INSPECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "simt/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The counters: the enumerator; its name in reports; its name in Nsight Compute, NULL where that has no equal; a text.
 *
 *   control flow   A step is one basic block executed by a group of at most 32 lanes of one warp. A branch is a step
 *                  whose block can go on to more than one other; it is uniform when all lanes go on to the same one.
 *   device memory  A request is one instruction of one warp; a sector is 32 bytes. The ideal sectors are those that
 *                  the bytes would need if they were adjacent; bytes are those that the lanes ask for. Lanes that
 *                  access the same address atomically take turns: the longest queue of each request is counted.
 *   shared memory  It has 32 banks of 4 bytes. A wavefront serves each bank once; conflicts are the wavefronts beyond
 *                  those that would be needed if no two lanes met at a bank.
 *   constants      Different addresses of a request are served one after the other.
 *   local memory   Accesses of single lanes to arrays and spilled variables of a thread.
 *   Hopper         What simt/hopper.h has: bulk copies, also of a box of a tensor; wgmma, once for each warpgroup. */
// clang-format off
#define SIMT_COUNTER_LIST(X) \
  X(SIMT_STEPS, "steps", NULL, "basic blocks executed by warps") \
  X(SIMT_STEP_LANES, "step_lanes", NULL, "lanes active in them") \
  X(SIMT_BRANCHES, "branches", "smsp__sass_branch_targets.sum", "branches executed by warps") \
  X(SIMT_UNIFORM_BRANCHES, "uniform_branches", \
    "smsp__sass_branch_targets_threads_uniform.sum", "branches that all active lanes took in the same direction") \
  X(SIMT_GLOBAL_LOAD_REQUESTS, "global_load_requests", \
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "global load requests") \
  X(SIMT_GLOBAL_LOAD_SECTORS, "global_load_sectors", \
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sectors of global loads") \
  X(SIMT_GLOBAL_LOAD_IDEAL_SECTORS, "global_load_ideal_sectors", \
    NULL, "sectors of global loads, if the bytes were adjacent") \
  X(SIMT_GLOBAL_LOAD_BYTES, "global_load_bytes", \
    "smsp__sass_data_bytes_mem_global_op_ld.sum", "bytes that the lanes loaded") \
  X(SIMT_GLOBAL_STORE_REQUESTS, "global_store_requests", \
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "global store requests") \
  X(SIMT_GLOBAL_STORE_SECTORS, "global_store_sectors", \
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sectors of global stores") \
  X(SIMT_GLOBAL_STORE_IDEAL_SECTORS, "global_store_ideal_sectors", \
    NULL, "sectors of global stores, if the bytes were adjacent") \
  X(SIMT_GLOBAL_STORE_BYTES, "global_store_bytes", \
    "smsp__sass_data_bytes_mem_global_op_st.sum", "bytes that the lanes stored") \
  X(SIMT_GLOBAL_ATOMIC_REQUESTS, "global_atomic_requests", NULL, "global atomic requests") \
  X(SIMT_GLOBAL_ATOMIC_SECTORS, "global_atomic_sectors", NULL, "sectors of global atomics") \
  X(SIMT_GLOBAL_ATOMIC_LANES, "global_atomic_lanes", NULL, "global atomics of single lanes") \
  X(SIMT_GLOBAL_ATOMIC_TURNS, "global_atomic_turns", NULL, "turns of lanes at the same global address") \
  X(SIMT_SHARED_LOAD_REQUESTS, "shared_load_requests", \
    "smsp__inst_executed_op_shared_ld.sum", "shared load requests") \
  X(SIMT_SHARED_LOAD_WAVEFRONTS, "shared_load_wavefronts", \
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "wavefronts of shared loads") \
  X(SIMT_SHARED_LOAD_CONFLICTS, "shared_load_conflicts", \
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "bank conflicts of shared loads") \
  X(SIMT_SHARED_STORE_REQUESTS, "shared_store_requests", \
    "smsp__inst_executed_op_shared_st.sum", "shared store requests") \
  X(SIMT_SHARED_STORE_WAVEFRONTS, "shared_store_wavefronts", \
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "wavefronts of shared stores") \
  X(SIMT_SHARED_STORE_CONFLICTS, "shared_store_conflicts", \
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "bank conflicts of shared stores") \
  X(SIMT_SHARED_ATOMIC_REQUESTS, "shared_atomic_requests", NULL, "shared atomic requests") \
  X(SIMT_SHARED_ATOMIC_LANES, "shared_atomic_lanes", NULL, "shared atomics of single lanes") \
  X(SIMT_SHARED_ATOMIC_TURNS, "shared_atomic_turns", NULL, "turns of lanes at the same shared address") \
  X(SIMT_CONSTANT_LOAD_REQUESTS, "constant_load_requests", NULL, "constant load requests") \
  X(SIMT_CONSTANT_LOAD_WORDS, "constant_load_words", NULL, "different addresses in constant load requests") \
  X(SIMT_LOCAL_LOADS, "local_loads", NULL, "loads from a thread's own memory") \
  X(SIMT_LOCAL_STORES, "local_stores", NULL, "stores to a thread's own memory") \
  X(SIMT_BULK_COPIES, "bulk_copies", NULL, "bulk and tensor copies (TMA) started") \
  X(SIMT_BULK_BYTES, "bulk_bytes", NULL, "bytes that they read") \
  X(SIMT_MBARRIER_WAITS, "mbarrier_waits", NULL, "waits of single threads for an mbarrier") \
  X(SIMT_WGMMA_PRODUCTS, "wgmma_products", NULL, "wgmma products of warpgroups") \
  X(SIMT_WGMMA_FLOPS, "wgmma_flops", NULL, "multiplications and additions in them")
// clang-format on

#define SIMT_ENUMERATOR_OF(name, ...) name,
typedef enum SimtCounter { SIMT_COUNTER_LIST(SIMT_ENUMERATOR_OF) SIMT_COUNTERS } SimtCounter;

typedef struct SimtCounterName {
  const char *name;   /* "global_load_sectors" */
  const char *nsight; /* "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", or NULL where Nsight Compute has no equal */
  const char *text;   /* for people */
} SimtCounterName;
extern const SimtCounterName simt_counter_names[SIMT_COUNTERS];

/* A place in the program's source, outside our headers. Unknown: file is "?", line 0. */
typedef struct SimtPlace {
  const char *file, *function;
  int line;
} SimtPlace;

/* One request of a warp, as an example of what is wrong with many. */
typedef struct SimtExample {
  uint32_t lanes;        /* that take part */
  uint32_t racing;       /* of a race: those that meet another thread's access */
  unsigned access;       /* SimtAccessKind bits */
  int bytes;             /* of each lane */
  uintptr_t address[32]; /* where `lanes` has its bit; of shared memory, from where its array begins */
} SimtExample;

/* Kinds of access that may cost more than they need to. */
typedef enum SimtTraffic {
  SIMT_GLOBAL_LOADS,
  SIMT_GLOBAL_STORES,
  SIMT_SHARED_LOADS,
  SIMT_SHARED_STORES,
  SIMT_TRAFFICS
} SimtTraffic;

/* The place where a kernel wastes most. */
typedef struct SimtWorst {
  SimtPlace place;
  uint64_t cost, ideal, of_all; /* sectors or wavefronts: of the place, had they been ideal, of the whole kernel */
  SimtExample example;          /* its request that cost most beyond its ideal */
} SimtWorst;

typedef struct SimtLineReport {
  SimtPlace place;
  uint64_t count[SIMT_COUNTERS];
} SimtLineReport;

typedef struct SimtKernelReport {
  const char *name, *file; /* as launched */
  int line;
  uint3 grid, block;
  size_t static_shared, dynamic_shared;
  uint64_t launches, blocks, inspected_blocks;
  int estimated;                 /* counts were scaled up from a sample */
  uint64_t count[SIMT_COUNTERS]; /* of all lines */
  SimtLineReport *lines;         /* by file and line */
  int line_count;
  SimtWorst worst[SIMT_TRAFFICS]; /* cost 0: each request is ideal */
} SimtKernelReport;

/* Kinds of findings: the enumerator; what simt_finding_name() gives. */
// clang-format off
#define SIMT_FINDING_LIST(X) \
  X(SIMT_DATA_RACE, "data race") \
  X(SIMT_OUT_OF_BOUNDS, "out of bounds") \
  X(SIMT_USE_AFTER_FREE, "use after free") \
  X(SIMT_UNINITIALISED_READ, "uninitialised read") \
  X(SIMT_MISALIGNED, "misaligned address") \
  X(SIMT_HOST_POINTER, "host pointer in a kernel") /* a kernel uses memory of the host */ \
  X(SIMT_DEVICE_POINTER, "device memory used by host code") \
  X(SIMT_NULL_POINTER, "null pointer") \
  X(SIMT_READ_ONLY_WRITE, "write to constant memory") /* a kernel writes constant memory */ \
  X(SIMT_MISSING_SYNC, "missing synchronisation") /* host code did not wait for work that is still queued */ \
  X(SIMT_STREAM_RACE, "race between streams") /* two streams use the same memory, and nothing orders them */ \
  X(SIMT_WRONG_DEVICE, "memory of another device") /* used by a kernel without access to that peer */
// clang-format on
typedef enum SimtFindingKind { SIMT_FINDING_LIST(SIMT_ENUMERATOR_OF) SIMT_FINDING_KINDS } SimtFindingKind;
#undef SIMT_ENUMERATOR_OF

typedef enum SimtAccessKind {
  SIMT_ACCESS_READ = 0,
  SIMT_ACCESS_WRITE = 1,
  SIMT_ACCESS_ATOMIC = 2,
  SIMT_ACCESS_VOLATILE = 4,
  SIMT_ACCESS_INDEX = 128 /* only the index was seen, not what is done with it */
} SimtAccessKind;

/* Who did it. */
typedef struct SimtParty {
  SimtPlace place;
  unsigned access; /* SimtAccessKind bits */
  int bytes;
  unsigned long long block; /* linear; UINT64_MAX: unknown */
  uint3 block_index, thread_index;
  int host; /* host code, or a copy */
} SimtParty;

typedef struct SimtFinding {
  SimtFindingKind kind;
  int kernel; /* in the report's kernels, or -1 */
  int parties;
  SimtParty party[2]; /* the later one first */
  const char *scope;  /* races: "between blocks", "between warps of a block", "between lanes of a warp" */
  char *memory;       /* "s_tile (static shared, 4224 bytes), byte 128" */
  char *advice;
  uint64_t occurrences;
  SimtExample example; /* races: the request that met another access; lanes 0: none */
} SimtFinding;

typedef struct SimtInspectReport {
  SimtKernelReport *kernels;
  int kernel_count;
  SimtFinding *findings;
  int finding_count;
  uint64_t findings_dropped; /* beyond the most that are kept */
  const char *const *told;   /* diagnoses of the runtime, printed when they were made; each first line, or more */
  int told_count;
  const char *notes[8]; /* what was not checked, and why */
  int note_count;
} SimtInspectReport;

/* "data race", "out of bounds", ... */
const char *simt_finding_name(SimtFindingKind kind);
/* "reads 4 bytes", "atomically writes 8 bytes", ... */
const char *simt_access_text(unsigned access, int bytes, char *text, size_t size);

/* ---- to ask from within the program; nothing may be running on the GPU meanwhile ---- */

/* Counts and findings begin anew. */
void simt_inspect_forget(void);
/* The counts since then, of all kernels whose name as launched contains `kernel`; NULL: of all. Not scaled up from
 * the blocks that SIMT_INSPECT_SAMPLE leaves.
 * Returns how many launches these were. */
uint64_t simt_inspect_counts(const char *kernel, uint64_t count[SIMT_COUNTERS]);

/* How much of the grids did work: a thread works if it reads or writes device memory, a warp and a block if one of its
 * threads works. The sum over all launches. */
typedef struct SimtWork {
  uint64_t launches, blocks, threads; /* as launched */
  uint64_t working_blocks, working_warps, working_threads;
} SimtWork;
/* Of the kernels that simt_inspect_counts() would count. */
SimtWork simt_inspect_work(const char *kernel);
/* What findings call an allocation of device memory, where no parameter of the kernel leads to it; until it is freed.
 * `name` is kept by the caller. */
void simt_inspect_name(const void *allocation, const char *name);
/* How many findings since then; simt_inspect_report() may join some. */
int simt_inspect_findings(void);

/* All that is known so far; valid until the next call. */
const SimtInspectReport *simt_inspect_report(void);
/* Which lane of a warp meets which sector or bank at the place where the kernel wastes most of that kind, what would be
 * ideal, the line of the source, and its share: some lines of at most 100 columns. Nothing where nothing is wasted.
 * Gives what is wasted. */
uint64_t simt_inspect_draw(FILE *out, const SimtKernelReport *kernel, SimtTraffic traffic);
/* One finding in words: kernel, places, threads, what to try. Several lines. */
void simt_inspect_print_finding(FILE *out, const SimtInspectReport *report, const SimtFinding *finding);

#ifdef __cplusplus
}
#endif

#endif /* SIMT_INSPECTOR_H */
