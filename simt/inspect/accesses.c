/* accesses.c - what the compiler calls for every memory access (gcc's ThreadSanitizer interface; the sanitizer's
 * own library is not linked).
 *
 * The lanes of a warp execute a basic block one after the other. The k-th access of each is put into row k, so that a
 * row is what the GPU issues as one request: one instruction, up to 32 addresses. When all lanes have come to the end
 * of the block, the rows are judged and counted (simt_flush_rows).
 */
#include "parts.h"

__thread Inspector *simt_inspector __attribute__((tls_model("local-exec")));

#define HERE ((uintptr_t)__builtin_return_address(0))

/* ---- rows ---- */

static void new_row(Inspector *in, Row *row, uintptr_t address, unsigned bytes, unsigned access, uintptr_t pc) {
  row->request.mask = 0;
  row->request.bytes = (uint16_t)bytes;
  row->request.access = (uint8_t)access;
  row->pc = pc;
  row->site = simt_site_of(pc);
  row->odd = 0;
  if (row->site >= in->object_count) {
    unsigned count = 2 * row->site + 64;
    in->objects = realloc(in->objects, count * sizeof *in->objects);
    if (!in->objects) abort();
    memset(in->objects + in->object_count, 0, (count - in->object_count) * sizeof *in->objects);
    in->object_count = count;
  }
  Object *last = &in->objects[row->site];
  int known = last->era == simt_object_era && address - last->low < last->size;
  if (!known) known = simt_find_object(in, address, last);
  if (known && last->size >= bytes) {
    row->object = *last;
    row->low = last->low;
    row->limit = last->size - bytes;
  } else { /* no lane is inside */
    row->low = UINTPTR_MAX;
    row->limit = 0;
  }
}

/* Row k is another instruction's: code that the compiler did not instrument called simt_inspect_read() and its kin. */
static Row *other_row(Inspector *in, uintptr_t address, unsigned bytes, unsigned access, uintptr_t pc) {
  for (int i = 0; i < in->used; i++)
    if (in->rows[i].pc == pc && !(in->rows[i].request.mask & in->bit)) return &in->rows[i];
  if (in->used == MAX_ROWS) simt_flush_rows(in);
  new_row(in, &in->rows[in->used], address, bytes, access, pc);
  return &in->rows[in->used++];
}

static void count_local(unsigned access, uintptr_t pc) {
  simt_counts(simt_site_of(pc))[access & SIMT_ACCESS_WRITE ? SIMT_LOCAL_STORES : SIMT_LOCAL_LOADS]++;
}

static inline __attribute__((always_inline)) uint64_t peek(uintptr_t address, unsigned bytes) {
  uint64_t value = 0;
  memcpy(&value, (const void *)address, bytes < 8 ? bytes : 8);
  return value;
}

/* What an index is used for that is too large for its array: for the thread's next access, if that is not to memory
 * that was allocated, where the compiler knows no sizes. */
static __attribute__((noinline)) void use_index(Inspector *in, uintptr_t address, unsigned bytes, unsigned access) {
  if (in->rank != in->indexed_rank || address - simt_watched_low[0] < simt_watched_size[0]) return;
  simt_index_used(in->indexed, access & 7, (int)bytes);
  in->indexed = 0;
}

static inline __attribute__((always_inline)) void note(const void *pointer, unsigned bytes, unsigned access,
                                                       uintptr_t pc) {
  Inspector *in = simt_inspector;
  uintptr_t address = (uintptr_t)pointer;
  if (!in) {
    if (address - simt_watched_low[0] < simt_watched_size[0] || address - simt_watched_low[1] < simt_watched_size[1] ||
        address - simt_watched_low[2] < simt_watched_size[2])
      if (!simt_worker) simt_judge_host(address, (int)bytes, access, pc);
    return;
  }
  if (__builtin_expect(in->indexed, 0)) use_index(in, address, bytes, access);
  if (address - in->stack_low < SIMT_STACK_BYTES) {
    count_local(access, pc);
    return;
  }
  if (address - in->arguments_low < in->arguments_size) return; /* the launch's copy of a structure, on its way in */
  if (__builtin_expect(in->cursor == MAX_ROWS, 0)) {            /* a very long block: the lanes meet here */
    simt_inspect_sync_point();
    simt_arrive(in);
  }
  int k = in->cursor++;
  Row *row = &in->rows[k];
  if (k >= in->used) {
    if (k > in->used) {
      row = other_row(in, address, bytes, access, pc);
    } else {
      new_row(in, row, address, bytes, access, pc);
      in->used++;
    }
  } else if (__builtin_expect(row->pc != pc, 0)) {
    row = other_row(in, address, bytes, access, pc);
  }
  row->request.mask |= in->bit;
  row->request.address[in->lane] = address;
  if (__builtin_expect(address - row->low > row->limit, 0)) {
    row->odd |= in->bit;
  } else if (access & SIMT_ACCESS_WRITE) {
    row->before[in->lane] = peek(address, bytes);
  }
  if (access & SIMT_ACCESS_ATOMIC) in->self->last_atomic = address;
  if (access & SIMT_ACCESS_WRITE) {
    in->progressed |= access & SIMT_ACCESS_ATOMIC ? TRIED : CHANGED;
  } else if (access & (SIMT_ACCESS_VOLATILE | SIMT_ACCESS_ATOMIC)) {
    in->spun = 1;
  }
}

void simt_flush_rows(Inspector *in) {
  int used = in->used;
  in->used = 0;
  for (int i = 0; i < used; i++) {
    Row *row = &in->rows[i];
    const unsigned both = SIMT_ACCESS_ATOMIC | SIMT_ACCESS_WRITE;
    if ((row->request.access & both) == both && simt_changed_something(row)) in->progressed |= CHANGED;
    simt_judge_row(in, row);
  }
}

/* ---- plain accesses ---- */

#define ACCESSES(bytes)                                                                                          \
  void __tsan_read##bytes(void *p) { note(p, bytes, SIMT_ACCESS_READ, HERE); }                                   \
  void __tsan_write##bytes(void *p) { note(p, bytes, SIMT_ACCESS_WRITE, HERE); }                                 \
  void __tsan_unaligned_read##bytes(void *p) { note(p, bytes, SIMT_ACCESS_READ, HERE); }                         \
  void __tsan_unaligned_write##bytes(void *p) { note(p, bytes, SIMT_ACCESS_WRITE, HERE); }                       \
  void __tsan_volatile_read##bytes(void *p) { note(p, bytes, SIMT_ACCESS_READ | SIMT_ACCESS_VOLATILE, HERE); }   \
  void __tsan_volatile_write##bytes(void *p) { note(p, bytes, SIMT_ACCESS_WRITE | SIMT_ACCESS_VOLATILE, HERE); } \
  void __tsan_unaligned_volatile_read##bytes(void *p) {                                                          \
    note(p, bytes, SIMT_ACCESS_READ | SIMT_ACCESS_VOLATILE, HERE);                                               \
  }                                                                                                              \
  void __tsan_unaligned_volatile_write##bytes(void *p) {                                                         \
    note(p, bytes, SIMT_ACCESS_WRITE | SIMT_ACCESS_VOLATILE, HERE);                                              \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

/* A struct that is not aligned to its size is copied member by member on a GPU; its members are not known here, and
 * taken to be of 4 bytes where that divides the size. */
static inline __attribute__((always_inline)) void note_range(void *p, size_t bytes, unsigned access, uintptr_t pc) {
  unsigned piece = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
  if (simt_inspector) {
    simt_inspector->told[access & SIMT_ACCESS_WRITE].address = (uintptr_t)p;
    simt_inspector->told[access & SIMT_ACCESS_WRITE].bytes = bytes;
  }
  for (size_t i = 0; i < bytes; i += piece) note((char *)p + i, piece, access | (i ? SIMT_ACCESS_MEMBER : 0u), pc);
}

void __tsan_read_range(void *p, size_t bytes) { note_range(p, bytes, SIMT_ACCESS_READ, HERE); }
void __tsan_write_range(void *p, size_t bytes) { note_range(p, bytes, SIMT_ACCESS_WRITE, HERE); }
void __tsan_vptr_read(void **p) { note(p, sizeof *p, SIMT_ACCESS_READ, HERE); }
void __tsan_vptr_update(void **p, void *value) {
  (void)value;
  note(p, sizeof *p, SIMT_ACCESS_WRITE, HERE);
}

/* What header code tells of itself; one row for each 16 bytes at most. */
static void note_told(const void *address, size_t bytes, unsigned access, uintptr_t pc) {
  const char *p = address;
  while (bytes) {
    unsigned piece = bytes >= 16 ? 16 : bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
    while ((uintptr_t)p % piece) piece /= 2;
    note(p, piece, access, pc);
    p += piece;
    bytes -= piece;
  }
}

void simt_inspect_read(const void *p, size_t bytes) { note_told(p, bytes, SIMT_ACCESS_READ, HERE); }
void simt_inspect_write(const void *p, size_t bytes) { note_told(p, bytes, SIMT_ACCESS_WRITE, HERE); }
void simt_inspect_atomic(const void *p, size_t bytes) {
  note_told(p, bytes, SIMT_ACCESS_WRITE | SIMT_ACCESS_ATOMIC, HERE);
}

/* ---- the C library's, called by a .cu file (inspected.h) ---- */

/* The compiler copies a large struct by memcpy(), and has told of it already. */
static int told_of(uintptr_t address, size_t bytes, int write) {
  Inspector *in = simt_inspector;
  if (!in || in->told[write].address != address || in->told[write].bytes != bytes) return 0;
  in->told[write].bytes = 0;
  return 1;
}

static void note_bytes(const void *address, size_t bytes, unsigned access, uintptr_t pc) {
  if (told_of((uintptr_t)address, bytes, (access & SIMT_ACCESS_WRITE) != 0)) return;
  if (simt_inspector) {
    note_told(address, bytes, access, pc);
  } else if (bytes) { /* the host: one look is enough */
    note(address, 1, access, pc);
    note((const char *)address + bytes - 1, 1, access, pc);
  }
}

void *simt_inspected_memcpy(void *to, const void *from, size_t bytes);
void *simt_inspected_memcpy(void *to, const void *from, size_t bytes) {
  note_bytes(from, bytes, SIMT_ACCESS_READ, HERE);
  note_bytes(to, bytes, SIMT_ACCESS_WRITE, HERE);
  return memcpy(to, from, bytes);
}

void *simt_inspected_memmove(void *to, const void *from, size_t bytes);
void *simt_inspected_memmove(void *to, const void *from, size_t bytes) {
  note_bytes(from, bytes, SIMT_ACCESS_READ, HERE);
  note_bytes(to, bytes, SIMT_ACCESS_WRITE, HERE);
  return memmove(to, from, bytes);
}

void *simt_inspected_memset(void *to, int value, size_t bytes);
void *simt_inspected_memset(void *to, int value, size_t bytes) {
  note_bytes(to, bytes, SIMT_ACCESS_WRITE, HERE);
  return memset(to, value, bytes);
}

void *simt_inspected_malloc(size_t bytes);
void *simt_inspected_malloc(size_t bytes) {
  void *memory = malloc(bytes);
  if (simt_worker && memory) simt_heap_add((uintptr_t)memory, bytes);
  return memory;
}

void simt_inspected_free(void *memory);
void simt_inspected_free(void *memory) {
  if (simt_worker && memory) {
    simt_inspect_sync_point(); /* the lanes meet here: what they did to their memory is judged while it is theirs */
    simt_inspect_passed();
    simt_heap_remove((uintptr_t)memory);
  }
  free(memory);
}

/* C++'s new and delete. */
void *_Znwm(size_t bytes);
void *_Znwm(size_t bytes) {
  void *memory = simt_inspected_malloc(bytes ? bytes : 1);
  if (!memory) abort();
  return memory;
}
void *_Znam(size_t bytes);
void *_Znam(size_t bytes) { return _Znwm(bytes); }
void _ZdlPv(void *memory);
void _ZdlPv(void *memory) { simt_inspected_free(memory); }
void _ZdaPv(void *memory);
void _ZdaPv(void *memory) { simt_inspected_free(memory); }
void _ZdlPvm(void *memory, size_t bytes);
void _ZdlPvm(void *memory, size_t bytes) {
  (void)bytes;
  simt_inspected_free(memory);
}
void _ZdaPvm(void *memory, size_t bytes);
void _ZdaPvm(void *memory, size_t bytes) {
  (void)bytes;
  simt_inspected_free(memory);
}

/* ---- atomic operations: noted, then done. A relaxed one orders nothing without fences, as CUDA's atomicAdd(). ---- */

static inline __attribute__((always_inline)) unsigned ordered(unsigned access, int order) {
  if (order >= __ATOMIC_RELEASE) access |= SIMT_ACCESS_RELEASE;
  return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE ? access | SIMT_ACCESS_ACQUIRE : access;
}

/* The lock was taken: the operation was no progress. */
static inline __attribute__((always_inline)) void in_vain(int progressed) {
  Inspector *in = simt_inspector;
  if (!in) return;
  in->progressed = progressed;
  in->spun = 1;
}

#define NOTE_ATOMIC(T, access) note((const void *)p, sizeof(T), ordered(access, order), HERE)
#define FETCH(bits, T, name, operation)                            \
  T __tsan_atomic##bits##_fetch_##name(T *p, T value, int order) { \
    NOTE_ATOMIC(T, SIMT_ACCESS_ATOMIC | SIMT_ACCESS_WRITE);        \
    return __atomic_fetch_##operation(p, value, __ATOMIC_SEQ_CST); \
  }
#define ATOMICS(bits, T)                                                                                               \
  T __tsan_atomic##bits##_load(const T *p, int order) {                                                                \
    NOTE_ATOMIC(T, SIMT_ACCESS_ATOMIC);                                                                                \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                       \
  }                                                                                                                    \
  void __tsan_atomic##bits##_store(T *p, T value, int order) {                                                         \
    NOTE_ATOMIC(T, SIMT_ACCESS_ATOMIC | SIMT_ACCESS_WRITE | SIMT_ACCESS_BLIND);                                        \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                                      \
  }                                                                                                                    \
  T __tsan_atomic##bits##_exchange(T *p, T value, int order) {                                                         \
    int progressed = simt_inspector ? simt_inspector->progressed : 0;                                                  \
    NOTE_ATOMIC(T, SIMT_ACCESS_ATOMIC | SIMT_ACCESS_WRITE);                                                            \
    T old = __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                                           \
    if (old == value) in_vain(progressed);                                                                             \
    return old;                                                                                                        \
  }                                                                                                                    \
  FETCH(bits, T, add, add)                                                                                             \
  FETCH(bits, T, sub, sub)                                                                                             \
  FETCH(bits, T, and, and)                                                                                             \
  FETCH(bits, T, or, or)                                                                                               \
  FETCH(bits, T, xor, xor)                                                                                             \
  FETCH(bits, T, nand, nand)                                                                                           \
  T __tsan_atomic##bits##_compare_exchange_val(T *p, T expected, T value, int order, int failure) {                    \
    (void)failure;                                                                                                     \
    int progressed = simt_inspector ? simt_inspector->progressed : 0;                                                  \
    NOTE_ATOMIC(T, SIMT_ACCESS_ATOMIC | SIMT_ACCESS_WRITE);                                                            \
    if (!__atomic_compare_exchange_n(p, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) in_vain(progressed); \
    return expected;                                                                                                   \
  }                                                                                                                    \
  int __tsan_atomic##bits##_compare_exchange_strong(T *p, T *expected, T value, int order, int failure) {              \
    (void)failure;                                                                                                     \
    int progressed = simt_inspector ? simt_inspector->progressed : 0;                                                  \
    NOTE_ATOMIC(T, SIMT_ACCESS_ATOMIC | SIMT_ACCESS_WRITE);                                                            \
    int done = __atomic_compare_exchange_n(p, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                 \
    if (!done) in_vain(progressed);                                                                                    \
    return done;                                                                                                       \
  }                                                                                                                    \
  int __tsan_atomic##bits##_compare_exchange_weak(T *p, T *expected, T value, int order, int failure) {                \
    (void)failure;                                                                                                     \
    int progressed = simt_inspector ? simt_inspector->progressed : 0;                                                  \
    NOTE_ATOMIC(T, SIMT_ACCESS_ATOMIC | SIMT_ACCESS_WRITE);                                                            \
    int done = __atomic_compare_exchange_n(p, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                 \
    if (!done) in_vain(progressed);                                                                                    \
    return done;                                                                                                       \
  }

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order) { __atomic_thread_fence(order); }
void __tsan_atomic_signal_fence(int order) { __atomic_signal_fence(order); }

/* ---- indices of arrays whose size the compiler knows (-fsanitize=bounds) ---- */

typedef struct BoundsType {
  uint16_t kind, info;
  char name[];
} BoundsType;
typedef struct BoundsSite {
  const char *file;
  uint32_t line, column;
  const BoundsType *array, *index;
} BoundsSite;

static void outside_of_array(const BoundsSite *at, uintptr_t index, uintptr_t pc) {
  Inspector *in = simt_inspector;
  if (!in && simt_worker) return;
  unsigned site = simt_site_of(pc);
  if (simt_found_before(SIMT_OUT_OF_BOUNDS, site, 0)) return;
  RaceParty party[2] = {
      {.site = site, .rank = in ? in->rank : -1, .access = SIMT_ACCESS_INDEX, .block = in ? in->block_number : 0}};
  char *memory = NULL;
  long long number = (at->index->info & 1) && at->index->info >> 1 < 6 ? (long long)(int32_t)index : (long long)index;
  if (asprintf(&memory, "index %lld of an array of type %s", number, at->array->name) < 0) abort();
  simt_find(SIMT_OUT_OF_BOUNDS, 1, party, NULL, memory, "compare the index with the size of the array");
  if (in) {
    in->indexed = site;
    in->indexed_rank = in->rank;
  }
}

void __ubsan_handle_out_of_bounds(const BoundsSite *at, uintptr_t index) { outside_of_array(at, index, HERE); }
void __ubsan_handle_out_of_bounds_abort(const BoundsSite *at, uintptr_t index) { outside_of_array(at, index, HERE); }

/* ---- accesses by pointers into objects whose size the compiler knows, as of a thread's own array that was handed to a
 * function which is inlined (-fsanitize=object-size) ---- */

typedef struct ObjectSite {
  const char *file;
  uint32_t line, column;
  const BoundsType *type;
  unsigned char alignment, access; /* access: 0 and others read, 1 writes */
} ObjectSite;

void __ubsan_handle_type_mismatch_v1(const ObjectSite *at, uintptr_t address);
void __ubsan_handle_type_mismatch_v1_abort(const ObjectSite *at, uintptr_t address);

static void outside_of_object(const ObjectSite *at, uintptr_t address, uintptr_t pc) {
  Inspector *in = simt_inspector;
  if (!in || address - in->stack_low >= SIMT_STACK_BYTES) return; /* elsewhere the address itself tells */
  unsigned site = simt_site_of(pc);
  if (simt_found_before(SIMT_OUT_OF_BOUNDS, site, 0)) return;
  unsigned access = at->access == 1 ? SIMT_ACCESS_WRITE : SIMT_ACCESS_READ;
  RaceParty party[2] = {{.site = site, .rank = in->rank, .access = access, .block = in->block_number}};
  char *memory = NULL;
  if (asprintf(&memory, "a local array, outside of its elements of type %s", at->type->name) < 0) abort();
  simt_find(SIMT_OUT_OF_BOUNDS, 1, party, NULL, memory, "compare the index with the size of the array");
}

void __ubsan_handle_type_mismatch_v1(const ObjectSite *at, uintptr_t address) { outside_of_object(at, address, HERE); }
void __ubsan_handle_type_mismatch_v1_abort(const ObjectSite *at, uintptr_t address) {
  outside_of_object(at, address, HERE);
}
