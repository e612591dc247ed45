/* parts.h - what the parts of the inspector know of each other. */
#ifndef SIMT_INSPECT_PARTS_H
#define SIMT_INSPECT_PARTS_H

#include "inspect.h"

/* ---- memory ---- */

typedef enum Space {
  SPACE_GLOBAL, /* device, managed, pinned memory; __device__ variables */
  SPACE_SHARED,
  SPACE_CONSTANT, /* __constant__ variables and constants of the program */
  SPACE_OTHER     /* nothing that a kernel may touch, or that is judged: see the finding */
} Space;

/* One access as the race detector remembers it, in 63 bits: when, by which thread, where in the source. */
typedef uint64_t Trace;
static inline Trace make_trace(uint32_t time, unsigned site, int rank, unsigned bytes, int atomic) {
  return (uint64_t)time << 32 | (uint64_t)(site & 0xffff) << 16 | (unsigned)rank << 6 | bytes << 2 |
         (unsigned)atomic << 1;
}
static inline uint32_t trace_time(Trace t) { return (uint32_t)(t >> 32); }
static inline unsigned trace_site(Trace t) { return (unsigned)(t >> 16) & 0xffff; }
static inline int trace_rank(Trace t) { return (int)(t >> 6) & 1023; }
static inline unsigned trace_bytes(Trace t) { return (unsigned)(t >> 2) & 15; } /* of the word's four, a bit each */
static inline int trace_host(Trace t) { return (int)t & 1; } /* by host code, while a kernel was queued */
static inline int trace_atomic(Trace t) { return (int)(t >> 1) & 1; }

/* For each aligned word of 4 bytes: the last write, and two reads. */
typedef struct Cell {
  Trace write, read[2];
} Cell;

/* A range of addresses with its shadow. */
typedef struct Region {
  uintptr_t low, high;
  Cell *cells;      /* one for each word; NULL: races are not looked for */
  uint8_t *written; /* a bit for each byte; NULL: all of it counts as initialised */
  uint8_t *held;    /* shared: bytes of asynchronous copies that nobody has waited for; NULL: there was none */
  uint8_t *awaited; /* those of them whose copy has been judged: an earlier access in the same step may be before it */
  uint8_t *touched; /* whether cells of a chunk are in use, to bound their memory; NULL: too small to care */
  int shared;       /* by the threads of one block */
  int bulk;         /* the last asynchronous copy was a bulk copy */
} Region;
enum { CHUNK_SHIFT = 16 };

/* The object that an address belongs to: an allocation, a variable, the dynamic shared memory of the block. */
typedef struct Object {
  uintptr_t low;
  size_t size;
  Space space;
  Region *region;
  unsigned long era; /* it holds until memory is allocated or freed, or the next launch */
} Object;
extern unsigned long simt_object_era;

/* ---- requests ---- */

typedef struct Row { /* one instruction of one warp */
  SimtRequest request;
  uintptr_t pc;
  unsigned site;
  uint32_t odd;         /* lanes whose address is outside `object` */
  uintptr_t low, limit; /* of the object: a lane is inside when address - low <= limit */
  Object object;
  uint64_t before[32]; /* writes: what was there */
} Row;

enum { MAX_ROWS = 256, MAX_CALLS = 32, MAX_SYNCS = 32, MAX_CHAIN = 16 };

/* ---- a thread of the block ---- */

typedef struct Step {
  uint64_t
      place; /* where it will go on: 65535 less the depth of calls (16 bits), address (32), waits passed there (16) */
  uint64_t deep;   /* the depth's part of it */
  uintptr_t block; /* the basic block it is in */
  uintptr_t from;  /* fresh: the one before */
  uint32_t calls;  /* a hash of the calls it is in */
  int fresh;       /* there begins a basic block */
} Step;

typedef struct Sync { /* a __syncwarp() */
  uint32_t time;      /* accesses with a smaller time were before it */
  unsigned lanes;
} Sync;

/* For whom a fence orders: any, but of __threadfence_block() only the threads of the same block. */
typedef enum Reach { OWN_BLOCK, OTHER_BLOCKS, REACHES } Reach;

typedef struct Fenced { /* by a thread's last fence of a reach */
  uint32_t time;        /* 0: none yet */
  uint32_t barrier;     /* the block's last barrier before that */
  Sync sync;            /* the thread's last __syncwarp() before that */
} Fenced;

typedef struct Lane {
  Step now;
  int entered;            /* a function, whose first block follows */
  Fenced fence[REACHES];  /* order.c */
  uint64_t observed;      /* of releases, up to this one: known of */
  uint64_t seen[REACHES]; /* those of the own block, of others: happened before what it does now */
  uintptr_t guess;        /* where it read what others change atomically, without being ordered */
  unsigned guess_site;
  uint32_t async_fence; /* accesses with a smaller time were before its last fence_async_proxy() */
  int spins;            /* yields in a row at the object of its last atomic operation */
  uintptr_t spins_at, last_atomic;
} Lane;

typedef struct Call { /* that a lane is in */
  Step caller;
  uintptr_t back; /* where it returns to */
} Call;

typedef struct WarpView {
  int begun;
  uint32_t working;  /* lanes that have read or written device memory */
  unsigned deferred; /* lanes that wait in a loop: others go first */
  int patience;      /* steps until they are asked again */
  Sync sync[MAX_SYNCS];
  unsigned syncs;
} WarpView;

/* What is followed on one OS thread. */
enum { OBJECTS = 16 };
enum { TRIED = 1, CHANGED = 2 }; /* Inspector's progressed: an atomic operation; it, or a store, had an effect */

typedef struct Inspector {
  /* the running lane: the hooks need these */
  int lane, rank;
  uint32_t bit;
  int cursor;   /* rows it has filled in this step */
  int position; /* blocks it has passed in this step without a stop */
  uintptr_t stack_low;
  uintptr_t arguments_low;
  size_t arguments_size;
  Lane *self;

  /* the running step */
  int warp;
  uint32_t group, todo;       /* lanes of the warp in it; those that have not run it yet */
  int used;                   /* rows */
  int whole;                  /* all lanes of the warp are in it */
  uint8_t goes_on[MAX_CHAIN]; /* by position: the lanes need not stop behind that block */
  int split;                  /* lanes arrived at different places */
  int arrived;                /* there is a first arrival */
  uintptr_t block;
  Step next;            /* where the first lane arrived */
  int spun, progressed; /* it read a flag or found a lock taken; it wrote something: TRIED | CHANGED */
  int futile;           /* steps in a row that only spun */
  int steps_in_warp, steps_in_turn;
  int preferred;                   /* 1 + the warp to go on next; 0: none */
  int stuck;                       /* steps in a row without an effect */
  uint32_t fenced, fenced_for_all; /* lanes that did a fence in this step; one for other blocks, too */
  uint32_t async_fenced;           /* and fence_async_proxy() */
  int pending_barrier, pending_syncs;
  struct {
    int warp;
    unsigned lanes;
  } pending[MAX_SYNCS];

  unsigned indexed; /* site of an index too large, whose use is awaited; 0: none */
  int indexed_rank;

  struct { /* the last range, read and written */
    uintptr_t address;
    size_t bytes;
  } told[2];

  /* the block */
  Worker *worker;
  unsigned long long block_number;
  int threads, warps;
  int interleaved;                   /* blocks of the launch run in turn */
  uint32_t block_time, barrier_time; /* accesses with a smaller time were before the block, before its last barrier */
  /* As Lane.observed and Lane.seen: for all threads, by the last barrier; the most of any. */
  uint64_t block_observed, most_observed, block_seen[REACHES], most_seen[REACHES];
  uintptr_t observed_object[OBJECTS]; /* of the last atomic operations that read, or volatile reads; the latest first */

  Region fixed, dynamic; /* shared memory: static, dynamic */
  Region remote[16][2];  /* of the other blocks of the cluster, by rank; without a look for races */
  Object *objects;       /* by site: what it touched last */
  unsigned object_count;
  WarpView warp_view[SIMT_MAX_WARPS];
  Lane lanes[SIMT_MAX_BLOCK_THREADS];
  Call calls[SIMT_MAX_BLOCK_THREADS][MAX_CALLS];
  Row rows[MAX_ROWS];
} Inspector;

extern __thread Inspector *simt_inspector __attribute__((tls_model("local-exec"))); /* NULL: nothing is inspected */

/* ---- a kernel's results ---- */

typedef struct SiteCounts {
  uint64_t count[SIMT_COUNTERS];
  uint64_t left, left_apart; /* steps of this block; those whose lanes went on to different ones */
  SimtExample *worst;        /* NULL: each request was ideal so far */
  int waste;                 /* of that one: sectors or wavefronts beyond the ideal */
} SiteCounts;

typedef struct KernelEntry {
  SimtKernelReport report;
  SimtWork work;
  SiteCounts **site; /* by site; NULL: never executed */
  unsigned sites;
} KernelEntry;

typedef struct RaceParty {
  unsigned site;
  int rank; /* -1: host code */
  unsigned access;
  int bytes;
  unsigned long long block;
  SimtPlace place; /* where there is no site: of a call of the host */
} RaceParty;

/* ---- symbols ---- */

/* The number of a place in the program, 1 .. 65535; 0 when there are too many. */
unsigned simt_site_of(uintptr_t pc);
uintptr_t simt_site_pc(unsigned site);
unsigned simt_site_count(void); /* the largest number + 1 */
extern uintptr_t simt_text_low, simt_load_base;

/* What is known of a basic block, or of an access. */
typedef struct SiteFlow {
  uintptr_t next[2];                /* two different blocks that followed it */
  uintptr_t branch;                 /* its conditional jump */
  uint16_t rank, again;             /* see flow.c; 0: not known */
  uint8_t looked, branches, single; /* single: just one other can follow */
  uint8_t is_guess;                 /* what is read there is the first guess of a loop with a compare-and-swap */
  uint8_t is_volatile;
} SiteFlow;
SiteFlow *simt_site_flow(unsigned site);

/* A variable of the program that holds `address`; in the static shared memory (at tls_low), `address` is relative to
 * it. */
typedef struct Variable {
  uintptr_t low;
  size_t size;
  const char *name; /* as the linker knows it */
} Variable;
void simt_symbols_open(void);
const Variable *simt_find_shared(uintptr_t offset, int before); /* before: or the nearest one that ends below */
const Variable *simt_find_variable(uintptr_t address, int before);
int simt_function_at(uintptr_t pc, uintptr_t *first, uintptr_t *end); /* up to the next one; 0: unknown */
/* "s_tile" of "_ZZ9transposePKfPfiE6s_tile" */
const char *simt_variable_text(const Variable *variable, char *text, size_t size);
/* The program's read-only data and code. */
int simt_is_read_only(uintptr_t address);
int simt_is_image(uintptr_t address);
/* The block of thread-local variables of this OS thread: low and size; 0 where there is none. */
uintptr_t simt_tls_low(size_t *size);

/* File, line and function of a site's address. */
SimtPlace simt_place_of(uintptr_t pc);

/* ---- the parts ---- */

/* flow.c: of the basic block that begins there. */
const SiteFlow *simt_flow_at(uintptr_t block);
#if defined(__x86_64__)
#define simt_after_call(address) ((address) + 5)
#else
#define simt_after_call(address) ((address) + 4)
#endif

/* accesses.c */
void simt_flush_rows(Inspector *in);

/* lockstep.c */
void simt_arrive(Inspector *in);

/* memory.c */
/* Beside SimtAccessKind: an atomic store, which does not read; an operation that publishes, or sees what others have
 * published, without a fence; a piece of a struct that is copied, other than its first. */
enum { SIMT_ACCESS_BLIND = 8, SIMT_ACCESS_RELEASE = 16, SIMT_ACCESS_MEMBER = 32, SIMT_ACCESS_ACQUIRE = 64 };
void simt_memory_open(void);
void simt_memory_launch(const SimtKernel *kernel);
void simt_memory_block(Inspector *in);
int simt_is_reachable(const SimtMemory *memory); /* 1: the running kernel's device may use it */
int simt_find_object(Inspector *in, uintptr_t address, Object *object);
int simt_find_remote(Inspector *in, uintptr_t address, Object *object); /* hopper.c: in another block of the cluster */
void simt_heap_add(uintptr_t address, size_t bytes);                    /* malloc() in a kernel */
void simt_heap_remove(uintptr_t address);
int simt_was_on_heap(uintptr_t address); /* and a kernel has freed it */
/* Not in a __device__ or __constant__ variable, but between or behind them. */
int simt_behind_device_variable(uintptr_t address);
/* With its shadow: of managed or pinned memory, or of a variable; NULL: there are too many. */
Region *simt_region_of(uintptr_t address, const SimtMemory *memory);
/* "s_tile (static shared, 4096 bytes), byte 128"; malloc()ed */
char *simt_memory_words(Inspector *in, uintptr_t address);
/* What host code may not touch, roughly: device memory, variables; if streams are lazy, pinned and managed memory. */
extern uintptr_t simt_watched_low[3], simt_watched_size[3];
extern int simt_writes_unseen; /* a kernel ran, or a block of it, that was not inspected */

/* judge.c */
void simt_judge_launch(void);
void simt_judge_row(Inspector *in, Row *row); /* bounds, alignment, initialisation, races, counts */
void simt_judge_host(uintptr_t address, int bytes, unsigned access, uintptr_t pc);

/* race.c */
extern const char *const simt_race_scopes[3]; /* from the narrowest to the widest */
int simt_changed_something(const Row *row);
extern uint32_t simt_race_clock;
void simt_race_launch(const SimtKernel *kernel);
int simt_race_forget(void); /* 1 when the traces take much memory: they are dropped */
void simt_race_block(Inspector *in);
void simt_race_barrier(Inspector *in);
void simt_race_warp(Inspector *in, int warp, unsigned lanes);
void simt_race_grid(void);
/* side_by_side: the lanes' addresses ascend without gaps. */
void simt_race_row(Inspector *in, Row *row, Region *region, uint32_t lanes, int side_by_side);

/* order.c */
void simt_race_turn(const Inspector *in); /* its block runs from now on, in turn with others */
unsigned long long simt_block_at(uint32_t time);
void simt_order_launch(uint32_t time);
void simt_order_grid(uint32_t time);
void simt_order_block(Inspector *in);
void simt_order_barrier(Inspector *in);
void simt_order_warp(Inspector *in, int warp, unsigned lanes);
void simt_order_fence(Inspector *in, uint32_t lanes, Reach reach); /* of the running warp */
/* An atomic operation, or a volatile access that is as good as one. */
void simt_order_atomic(Inspector *in, int rank, uintptr_t object, unsigned access);
void simt_order_signal(uintptr_t object); /* a write to it that may tell others something */
/* What the thread did at `time` happened, for threads of the own block or of others, before what comes behind the
 * release `seen`. */
int simt_order_published(unsigned long long block, int rank, uint32_t time, uint64_t seen, Reach reach);
/* NARROW: there is a fence, but it reaches only the threads of its block. */
typedef enum SimtMissing { SIMT_NO_SIGNAL, SIMT_NO_FENCE_BEFORE, SIMT_NO_FENCE_BEHIND, SIMT_NARROW_FENCE } SimtMissing;
/* Why what the thread `rank` of `block` did at `time` is not ordered before what `reader` does now; *object: by which
 * operations the one told the other. */
SimtMissing simt_order_missing(const Inspector *in, int reader, unsigned long long block, int rank, uint32_t time,
                               uintptr_t *object);

/* report.c */
SiteCounts *simt_site_counts(unsigned site);
static inline uint64_t *simt_counts(unsigned site) { return simt_site_counts(site)->count; }
/* Notes a finding once for its kind and sites; `words` makes the text of the memory when it is new. Gives 0 when it was
 * known before. */
void simt_find(SimtFindingKind kind, int parties, const RaceParty party[2], const char *scope, char *memory,
               const char *advice);
void simt_find_example(SimtFindingKind kind, unsigned site, unsigned other, const SimtRequest *request,
                       uint32_t racing);
/* 1, and it is counted once more, when these sites have been found before. */
int simt_found_before(SimtFindingKind kind, unsigned site, unsigned other);
/* Like it for a race that is found again with `scope`, of simt_race_scopes: 0 when that reaches further than before. */
int simt_race_known(unsigned site, unsigned other, const char *scope);
/* The access that the index of a finding of SIMT_ACCESS_INDEX was for. */
void simt_index_used(unsigned site, unsigned access, int bytes);
void simt_note(const char *text);               /* what was not checked */
int simt_wants_block(unsigned long long block); /* and counts it */
void simt_count_work(const Inspector *in);      /* of a block that ends */

#endif /* SIMT_INSPECT_PARTS_H */
