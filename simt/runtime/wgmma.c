/* wgmma.c - products of a warpgroup, four warps, whose factors lie in shared memory; a may be in registers.
 *
 *     sum (64,columns) = a (64,K) b (K,columns) + sum        K: as many as there are in 32 bytes
 *
 * Each of the 128 threads starts a product; when all have, it can be computed, and it is when a thread waits for it
 * (hopper.h says when else). Until then the sums in the threads' registers, here arrays, are NaN, and are found again
 * as they were left: what a kernel does to them meanwhile is a fault. So it is for a's registers, whose values are
 * taken at the start.
 *
 * Products are exact, and added up in float, one after the other. Tensor cores add in another order, and truncate.
 * Those of integers are added up in int32_t, which has the place of the float; beyond its range they wrap around, as
 * on a GPU without .satfinite.
 */
#include "hopper.h"

enum { THREADS = 128, ROWS = 64, ROW_BYTES = 32, MOST_DEPTH = 32, MOST_SUMS = 128, SUM_SETS = 8 };

typedef struct Sums { /* of the warpgroup: the registers of one or several products */
  int used, count;    /* of each thread */
  float *place[THREADS];
  float *value;           /* (THREADS, count); beside each thread's, what it last got back */
  unsigned last[THREADS]; /* number + 1 of the thread's last product in them */
  unsigned char in_flight[THREADS];
  unsigned fenced[THREADS]; /* the thread's fences when it got them back; UINT_MAX: it never did */
} Sums;

typedef struct Left { /* four registers of a thread that hold its part of an a */
  const uint32_t *place;
  uint32_t value[4];
  int in_flight;           /* the thread has not waited for the product */
  unsigned number, fences; /* of the product; of the thread until it started it */
} Left;

typedef struct Lefts {
  Left *left;
  int count, room;
} Lefts;

typedef struct Product {
  Sums *sums;
  uint64_t a, b;
  SimtFactors factors;
  int columns, flags, started; /* started: by so many threads */
  int registers;               /* a is there */
  unsigned group;
  const char *file;
  int line;
} Product;

struct Warpgroup {
  Product *product; /* those from `done` on, in a ring */
  unsigned room, done, begun;
  unsigned
      warp_done[THREADS / SIMT_WARP_SIZE]; /* products whose part of this warp has been computed; `done`: the least */
  struct {
    unsigned started, committed, fences; /* products; groups */
    unsigned in_groups;                  /* products before the last commit */
  } thread[THREADS];
  Sums *sums[SUM_SETS];
  Lefts lefts[THREADS];
};

static void *need(void *memory) {
  if (!memory) abort();
  return memory;
}

void simt_wgmma_begin(Hopper *h) {
  for (int g = 0; g < SIMT_MAX_BLOCK_THREADS / THREADS; g++) {
    Warpgroup *group = h->group[g];
    if (!group) continue;
    group->done = group->begun = 0;
    memset(group->warp_done, 0, sizeof group->warp_done);
    memset(group->thread, 0, sizeof group->thread);
    for (int i = 0; i < SUM_SETS; i++)
      if (group->sums[i]) group->sums[i]->used = 0;
    for (int t = 0; t < THREADS; t++) group->lefts[t].count = 0;
  }
}

static Warpgroup *own_group(const char *what, const char *file, int line) {
  Worker *w = simt_worker;
  int rank = simt_current_rank(), first = rank / THREADS * THREADS;
  simt_need_hopper(what, file, line);
  if (simt_threads.count - first < THREADS)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "%s: a warpgroup is four warps, 128 threads; the last one of a block of %d threads has %d", what,
                      simt_threads.count, simt_threads.count - first);
  Hopper *h = simt_hopper(w);
  if (!h->group[rank / THREADS]) h->group[rank / THREADS] = need(calloc(1, sizeof(Warpgroup)));
  return h->group[rank / THREADS];
}

static Product *product_at(const Warpgroup *g, unsigned number) { return &g->product[number % g->room]; }

static Product *new_product(Warpgroup *g) {
  if (g->begun - g->done == g->room) {
    unsigned room = g->room ? 2 * g->room : 16;
    Product *bigger = need(calloc(room, sizeof *bigger));
    for (unsigned i = g->done; i != g->begun; i++) bigger[i % room] = g->product[i % g->room];
    free(g->product);
    g->product = bigger;
    g->room = room;
  }
  return product_at(g, g->begun++);
}

/* ---- factors ---- */

/* What a matrix descriptor says. */
typedef struct Descriptor {
  uint32_t start, leading, stride; /* bytes; those two are the descriptor's byte offsets */
  unsigned swizzle;                /* width in bytes, or 0 */
} Descriptor;

static Descriptor read_descriptor(uint64_t bits) {
  static const unsigned widths[] = {0, 128, 64, 32};
  return (Descriptor){(uint32_t)(bits & 0x3fff) << 4, (uint32_t)(bits >> 16 & 0x3fff) << 4,
                      (uint32_t)(bits >> 32 & 0x3fff) << 4, widths[bits >> 62]};
}

/* Where 16 bytes lie: number `chunk` in the direction in which elements follow each other, which is K unless
 * along_outer; at `across` in the other one. */
static uint32_t chunk_address(const Descriptor *d, int along_outer, uint32_t chunk, int across) {
  uint32_t address = d->start, group = (uint32_t)(across / 8);
  unsigned in_row = d->swizzle ? d->swizzle / 16 : 1, row = d->swizzle ? d->swizzle : 16;
  address += (uint32_t)(across % 8) * row;
  if (!along_outer) /* groups of 8 rows; without a swizzle K is cut in columns of 16 bytes */
    address += group * d->stride + (d->swizzle ? chunk * 16 : chunk * d->leading);
  else if (d->swizzle)
    address += group * d->stride + chunk / in_row * d->leading + chunk % in_row * 16;
  else
    address += group * d->leading + chunk * d->stride;
  return simt_swizzle(address, d->swizzle);
}

typedef struct Factor {
  Descriptor descriptor;
  SimtFactors type;
  int along_outer, outer; /* outer: rows of a, columns of b */
} Factor;

static int is_integer(SimtFactors type) { return type == SIMT_WGMMA_INT8 || type == SIMT_WGMMA_INT8_UINT8; }
static int bytes_of(SimtFactors type) {
  return type == SIMT_WGMMA_TF32 ? 4 : type == SIMT_WGMMA_E4M3 || is_integer(type) ? 1 : 2;
}
static int depth_of(SimtFactors type) { return ROW_BYTES / bytes_of(type); }

/* The chunks of 16 bytes, one after the other. */
static uint32_t factor_chunk(const Factor *f, int i, int *k, int *outer) {
  int elements = 16 / bytes_of(f->type), per_row = (f->along_outer ? f->outer : depth_of(f->type)) / elements;
  int along = i % per_row * elements, across = i / per_row;
  *k = f->along_outer ? across : along;
  *outer = f->along_outer ? along : across;
  return chunk_address(&f->descriptor, f->along_outer, (uint32_t)(i % per_row), across);
}
static int factor_chunks(const Factor *f) { return f->outer * (ROW_BYTES / 16); }

/* A finite number of so many bits of exponent and, behind them, of fraction. */
static float widen_small(uint32_t x, int exponent_bits, int fraction_bits) {
  uint32_t exponent = x >> fraction_bits & ((1u << exponent_bits) - 1), fraction = x & ((1u << fraction_bits) - 1);
  uint32_t bias = (1u << (exponent_bits - 1)) - 1, power = (exponent ? exponent + 127 - bias : 128 - bias) << 23;
  float wide;
  memcpy(&wide, &power, sizeof wide);
  wide *= (exponent ? 1.f : 0.f) + (float)fraction / (float)(1u << fraction_bits);
  return x >> (exponent_bits + fraction_bits) & 1 ? -wide : wide;
}

static float widen(uint32_t bits, SimtFactors type) {
  float wide;
  switch (type) {
    case SIMT_WGMMA_HALF:
      if ((bits & 0x7c00) != 0x7c00) return widen_small(bits, 5, 10);
      bits = (bits & 0x8000) << 16 | 0x7f800000 | (bits & 1023) << 13;
      break;
    case SIMT_WGMMA_E4M3:
      if ((bits & 0x7f) != 0x7f) return widen_small(bits, 4, 3);
      bits = 0x7fc00000; /* NaN */
      break;
    case SIMT_WGMMA_TF32:
      bits &= ~0x1fffu;
      break;
    case SIMT_WGMMA_BFLOAT16:
      bits <<= 16;
      break;
    case SIMT_WGMMA_INT8:
      return (float)(int8_t)bits;
    case SIMT_WGMMA_INT8_UINT8:
      return (float)(uint8_t)bits;
  }
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}

/* Element e of those of `bytes` each that begin in word[0]. */
static uint32_t element(const uint32_t *word, int bytes, int e) {
  int at = e * bytes;
  return bytes == 4 ? word[e] : word[at / 4] >> 8 * (at % 4) & ((1u << 8 * bytes) - 1);
}

/* As (K, outer). Of a, the rows of one warp; -1: all. */
static void read_factor(const Worker *w, const Factor *f, int warp, float *out) {
  int bytes = bytes_of(f->type);
  for (int i = 0; i < factor_chunks(f); i++) {
    int k, outer;
    uint32_t chunk[4];
    uint32_t address = factor_chunk(f, i, &k, &outer);
    if (warp >= 0 && outer / 16 != warp) continue;
    memcpy(chunk, simt_shared_bytes(w, address, sizeof chunk), sizeof chunk);
    for (int e = 0; e < 16 / bytes; e++)
      out[f->along_outer ? k * f->outer + outer + e : (k + e) * f->outer + outer] =
          widen(element(chunk, bytes, e), f->type);
  }
}

static Factor factor_of(uint64_t descriptor, SimtFactors type, int along_outer, int outer) {
  return (Factor){read_descriptor(descriptor), type, along_outer, outer};
}
static Factor left_factor(const Product *p) {
  const SimtFactors type = p->factors == SIMT_WGMMA_INT8_UINT8 ? SIMT_WGMMA_INT8 : p->factors;
  return factor_of(p->a, type, p->flags & SIMT_WGMMA_A_ALONG_M, ROWS);
}
static Factor right_factor(const Product *p) {
  return factor_of(p->b, p->factors, p->flags & SIMT_WGMMA_B_ALONG_N, p->columns);
}

static void check_factor(const char *name, uint64_t bits, const Factor *f, const void *pc, const char *file, int line) {
  (void)pc;
  const Worker *w = simt_worker;
  if (bits >> 49 & 7)
    simt_kernel_fault(
        cudaErrorNotSupported, file, line,
        "wgmma: the descriptor of %s has the base offset %d, which is not emulated; let the swizzled tile "
        "begin at a multiple of 1024 bytes",
        name, (int)(bits >> 49 & 7));
  for (int i = 0; i < factor_chunks(f); i++) {
    int k, outer;
    uint32_t address = factor_chunk(f, i, &k, &outer);
    const void *chunk = simt_shared_bytes(w, address, 16);
    if (!chunk)
      simt_kernel_fault(cudaErrorIllegalAddress, file, line,
                        "wgmma: the descriptor of %s (start 0x%x, leading byte offset %u, stride byte offset %u, "
                        "%u-byte swizzle) leads to shared address 0x%x for k = %d, %s %d: that is not in the block's "
                        "shared memory",
                        name, f->descriptor.start, f->descriptor.leading, f->descriptor.stride, f->descriptor.swizzle,
                        address, k, name[0] == 'a' ? "row" : "column", outer);
    BulkSite began;
    if (simt_copy_under_way(w, chunk, 16, &began))
      simt_kernel_fault(
          cudaErrorLaunchFailure, file, line,
          "wgmma: a copy to its factor %s is under way, which began at %s:%d: mbarrier_wait() for it first", name,
          began.file, began.line);
    TELL_INSPECTOR(async_reads(pc, chunk, 16));
  }
}

int simt_product_reads(const Worker *w, const char *to, size_t bytes, BulkSite *site) {
  for (int i = 0; w->hopper && i < SIMT_MAX_BLOCK_THREADS / THREADS; i++) {
    const Warpgroup *g = w->hopper->group[i];
    for (unsigned n = g ? g->done : 0; g && n != g->begun; n++) {
      const Product *p = product_at(g, n);
      const Factor factor[] = {left_factor(p), right_factor(p)};
      for (int f = p->registers ? 1 : 0; f < 2; f++)
        for (int c = 0; c < factor_chunks(&factor[f]); c++) {
          int k, outer;
          const char *chunk = simt_shared_bytes(w, factor_chunk(&factor[f], c, &k, &outer), 16);
          if (chunk + 16 <= to || chunk >= to + bytes) continue;
          if (f == 0 && (int)(g->warp_done[outer / 16] - n) > 0) continue;
          *site = (BulkSite){p->file, p->line};
          return 1;
        }
    }
  }
  return 0;
}

/* ---- computing ---- */

/* a of a warp from the registers of its threads, as (K, row): register i of a thread holds 4 bytes of row
 * lane / 4 + i % 2 * 8 from byte lane % 4 * 4 + i / 2 * 16 on. */
static void read_registers(const Warpgroup *g, SimtFactors type, unsigned number, int warp, float *out) {
  int bytes = bytes_of(type);
  for (int lane = 0; lane < SIMT_WARP_SIZE; lane++) {
    const Lefts *lefts = &g->lefts[SIMT_WARP_SIZE * warp + lane];
    const Left *left = lefts->left;
    while (!left->in_flight || left->number != number) left++;
    for (int i = 0; i < 4; i++)
      for (int e = 0; e < 4 / bytes; e++) {
        int row = 16 * warp + lane / 4 + i % 2 * 8, k = (lane % 4 * 4 + i / 2 * 16) / bytes + e;
        out[k * ROWS + row] = widen(element(&left->value[i], bytes, e), type);
      }
  }
}

/* An int32_t at `sum`, plus 32 products of int8, which a float holds exactly. */
static void add_integers(float *sum, float products, int add) {
  uint32_t bits = 0;
  if (add) memcpy(&bits, sum, sizeof bits);
  bits += (uint32_t)(int32_t)products;
  memcpy(sum, &bits, sizeof bits);
}

/* Element i of a thread's sums is in row thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8 and in column i / 4 * 8 +
 * thread % 4 * 2 + i % 2 of 64 x columns. */
static void compute(const Worker *w, const Warpgroup *g, unsigned number, int warp) {
  static __thread float a[MOST_DEPTH * ROWS], b[MOST_DEPTH * 256], sum[256];
  const Product *p = product_at(g, number);
  int columns = p->columns, depth = depth_of(p->factors), integers = is_integer(p->factors);
  Factor left = left_factor(p), right = right_factor(p);
  if (p->registers)
    read_registers(g, left.type, number, warp, a);
  else
    read_factor(w, &left, warp, a);
  read_factor(w, &right, -1, b);
  for (int row = 16 * warp; row < 16 * warp + 16; row++) {
    /* The four threads that have the row: first + 0 .. 3, in their sums with the same i / 2 % 2. */
    int first = SIMT_WARP_SIZE * warp + row % 8 * 4, upper = row % 16 / 8 * 2;
    for (int j = 0; j < columns; j++) {
      const float *value = p->sums->value + (size_t)(first + j % 8 / 2) * MOST_SUMS * 2;
      sum[j] = p->flags & SIMT_WGMMA_ADD && !integers ? value[j / 8 * 4 + upper + j % 2] : 0;
    }
    for (int k = 0; k < depth; k++) {
      float x = a[k * ROWS + row];
      const float *y = b + k * columns;
      for (int j = 0; j < columns; j++) sum[j] += x * y[j];
    }
    for (int j = 0; j < columns; j++) {
      float *value = p->sums->value + (size_t)(first + j % 8 / 2) * MOST_SUMS * 2;
      float *own = &value[j / 8 * 4 + upper + j % 2];
      if (integers)
        add_integers(own, sum[j], p->flags & SIMT_WGMMA_ADD);
      else
        *own = sum[j];
    }
  }
}

/* Computes this warp's part of the products before number `end` that all threads have started; 1: these are all. Each
 * warp by itself: on a GPU, too, one may be done while another is not. */
static int compute_until(const Worker *w, Warpgroup *g, int warp, unsigned end) {
  unsigned *done = &g->warp_done[warp];
  while (*done != end && *done != g->begun && product_at(g, *done)->started == THREADS) compute(w, g, (*done)++, warp);
  unsigned least = g->warp_done[0];
  for (int i = 1; i < THREADS / SIMT_WARP_SIZE; i++)
    if ((int)(g->warp_done[i] - least) < 0) least = g->warp_done[i];
  g->done = least;
  return (int)(*done - end) >= 0;
}

/* ---- the thread's sums ---- */

static const uint32_t IN_FLIGHT = 0xffffdeadu; /* NaN */

static float *values_of(Sums *s, int thread) { return s->value + (size_t)thread * MOST_SUMS * 2; }

static Sums *find_sums(Warpgroup *g, int thread, float *place, int count) {
  Sums *unused = NULL;
  for (int i = 0; i < SUM_SETS; i++) {
    Sums *s = g->sums[i];
    if (s && s->used && s->place[thread] == place && s->count == count) return s;
    int busy = 0;
    for (int t = 0; s && s->used && t < THREADS; t++) busy |= s->in_flight[t];
    for (unsigned n = g->done; n != g->begun; n++) busy |= product_at(g, n)->sums == s;
    if (!busy && (!unused || !s || (unused->used && !s->used))) {
      if (!s) {
        s = g->sums[i] = need(calloc(1, sizeof *s));
        s->value = need(malloc(sizeof(float) * THREADS * MOST_SUMS * 2));
      }
      unused = s;
    }
  }
  if (!unused) return NULL;
  unused->used = 1;
  unused->count = count;
  for (int t = 0; t < THREADS; t++) {
    unused->place[t] = NULL;
    unused->in_flight[t] = 0;
    unused->fenced[t] = UINT32_MAX;
  }
  return unused;
}

/* The registers pass to the tensor cores. */
static void take(Warpgroup *g, Sums *s, int thread, float *place, const char *file, int line) {
  float *value = values_of(s, thread), *returned = value + MOST_SUMS;
  unsigned fences = g->thread[thread].fences;
  size_t bytes = sizeof(float) * (size_t)s->count;
  if (!fences)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "wgmma: no wgmma_fence() came before: the sums may still be on their way to the registers");
  if (s->fenced[thread] == fences && s->place[thread] == place && memcmp(place, returned, bytes) != 0)
    simt_kernel_fault(
        cudaErrorIllegalInstruction, file, line,
        "wgmma: the thread has changed its sums since wgmma_wait(), and no wgmma_fence() came after that");
  s->place[thread] = place;
  s->in_flight[thread] = 1;
  memcpy(value, place, bytes);
  for (int i = 0; i < s->count; i++) memcpy(&place[i], &IN_FLIGHT, sizeof IN_FLIGHT);
}

/* Those whose products are done come back. */
static void give_back(Warpgroup *g, int thread, const char *file, int line) {
  for (int i = 0; i < SUM_SETS; i++) {
    Sums *s = g->sums[i];
    if (!s || !s->used || !s->in_flight[thread] || (int)(g->warp_done[thread / SIMT_WARP_SIZE] - s->last[thread]) < 0)
      continue;
    float *place = s->place[thread], *value = values_of(s, thread);
    for (int e = 0; e < s->count; e++)
      if (memcmp(&place[e], &IN_FLIGHT, sizeof IN_FLIGHT) != 0)
        simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                          "wgmma: sum[%d] was written before wgmma_wait(): until then it belongs to the tensor cores",
                          e);
    memcpy(place, value, sizeof(float) * (size_t)s->count);
    memcpy(value + MOST_SUMS, value, sizeof(float) * (size_t)s->count);
    s->in_flight[thread] = 0;
    s->fenced[thread] = g->thread[thread].fences;
  }
}

/* ---- a in the thread's registers ---- */

static Left *new_left(Lefts *l) {
  if (l->count == l->room) {
    l->room = l->room ? 2 * l->room : 8;
    l->left = need(realloc(l->left, (size_t)l->room * sizeof *l->left));
  }
  return &l->left[l->count++];
}

static void take_left(Warpgroup *g, int thread, const uint32_t *place, unsigned number, const char *file, int line) {
  Lefts *l = &g->lefts[thread];
  Left *free_one = NULL;
  unsigned fences = g->thread[thread].fences;
  for (int i = 0; i < l->count; i++) {
    if (l->left[i].place != place) continue;
    if (l->left[i].fences == fences && memcmp(l->left[i].value, place, sizeof l->left[i].value) != 0)
      simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                        "wgmma: the thread has changed the registers of a since a product that reads them, and no "
                        "wgmma_fence() came after that; products that run at the same time have an array each");
    if (!l->left[i].in_flight) free_one = &l->left[i];
  }
  if (!free_one) free_one = new_left(l);
  *free_one = (Left){.place = place, .in_flight = 1, .number = number, .fences = fences};
  memcpy(free_one->value, place, sizeof free_one->value);
}

/* Of the products that are done: a must be as it was. */
static void give_back_left(Warpgroup *g, int thread, const char *file, int line) {
  Lefts *l = &g->lefts[thread];
  for (int i = 0; i < l->count; i++) {
    Left *left = &l->left[i];
    if (!left->in_flight || (int)(g->warp_done[thread / SIMT_WARP_SIZE] - left->number) <= 0) continue;
    left->in_flight = 0;
    for (int e = 0; e < 4; e++)
      if (left->value[e] != left->place[e])
        simt_kernel_fault(
            cudaErrorIllegalInstruction, file, line,
            "wgmma: a[%d] was written before wgmma_wait(): until then the registers of a belong to the tensor cores; "
            "products that run at the same time have an array each",
            e);
  }
}

/* ---- instructions ---- */

void simt_wgmma_fence(const char *file, int line) {
  Warpgroup *g = own_group("wgmma_fence()", file, line);
  g->thread[simt_current_rank() % THREADS].fences++;
}

void simt_wgmma(void *sum, int columns, SimtFactors factors, uint64_t a, const uint32_t *a_registers, uint64_t b,
                int flags, const char *file, int line) {
  Warpgroup *g = own_group("wgmma", file, line);
  int thread = simt_current_rank() % THREADS, registers = a_registers != NULL;
  unsigned number = g->thread[thread].started++, committed = g->thread[thread].committed;
  if (is_integer(factors) && columns > 32 && columns % 16 != 0)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "wgmma: %d columns; of integers there are 8, 16, 24, 32, 48, 64, 80 and so on up to 256",
                      columns);
  if (number == g->begun) {
    Product product = {NULL, a, b, factors, columns, flags, 0, registers, committed, file, line};
    Factor left = left_factor(&product), right = right_factor(&product);
    const void *pc = __builtin_return_address(0);
    if (!registers) check_factor("a", a, &left, pc, file, line);
    check_factor("b", b, &right, pc, file, line);
    product.sums = find_sums(g, thread, sum, columns / 2);
    if (!product.sums)
      simt_kernel_fault(cudaErrorLaunchOutOfResources, file, line,
                        "wgmma: more than %d arrays of sums at a time: wgmma_wait() for some first", SUM_SETS);
    *new_product(g) = product;
    TELL_INSPECTOR(counted(pc, SIMT_WGMMA_PRODUCTS, 1));
    TELL_INSPECTOR(counted(pc, SIMT_WGMMA_FLOPS, 2u * ROWS * (unsigned)(depth_of(factors) * columns)));
  }
  Product *p = product_at(g, number);
  if (p->a != a || p->b != b || p->columns != columns || p->flags != flags || p->factors != factors ||
      p->registers != registers)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "wgmma: the threads of the warpgroup give it different %s; another one was at %s:%d",
                      p->a != a || p->b != b ? "descriptors" : "shapes, or only some of them want to add", p->file,
                      p->line);
  if (p->group != committed)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "wgmma: a thread of the warpgroup has done another number of wgmma_commit() than the others");
  Sums *s = p->sums;
  if (s->in_flight[thread] && s->place[thread] != sum)
    simt_kernel_fault(cudaErrorIllegalInstruction, file, line,
                      "wgmma: the threads of the warpgroup use their arrays of sums in different order");
  if (!s->in_flight[thread]) take(g, s, thread, sum, file, line);
  if (registers) take_left(g, thread, a_registers, number, file, line);
  s->last[thread] = number + 1;
  if (++p->started < THREADS || !simt_happens_early(simt_worker)) return;
  for (int warp = 0; warp < THREADS / SIMT_WARP_SIZE; warp++) compute_until(simt_worker, g, warp, number + 1);
}

void simt_wgmma_commit(const char *file, int line) {
  Warpgroup *g = own_group("wgmma_commit()", file, line);
  int thread = simt_current_rank() % THREADS;
  g->thread[thread].committed++;
  g->thread[thread].in_groups = g->thread[thread].started;
}

typedef struct Wait {
  Worker *worker;
  Warpgroup *group;
  int warp;
  unsigned end; /* products before it */
} Wait;

static int ready(void *context) {
  Wait *wait = context;
  return compute_until(wait->worker, wait->group, wait->warp, wait->end);
}

void simt_wgmma_wait(unsigned pending, const char *file, int line) {
  Worker *w = simt_worker;
  Warpgroup *g = own_group("wgmma_wait()", file, line);
  int thread = simt_current_rank() % THREADS;
  unsigned committed = g->thread[thread].committed, end = g->thread[thread].in_groups;
  while ((int)(end - g->done) > 0 && product_at(g, end - 1)->group + pending >= committed) end--;
  Wait wait = {w, g, thread / SIMT_WARP_SIZE, end};
  w->own_conditions++;
  simt_wait_until(ready, &wait, "wgmma_wait()", file, line);
  w->own_conditions--;
  give_back(g, thread, file, line);
  give_back_left(g, thread, file, line);
}

void simt_describe_products(Worker *w) {
  for (int i = 0; i < SIMT_MAX_BLOCK_THREADS / THREADS; i++) {
    const Warpgroup *g = w->hopper->group[i];
    const Product *p = g && g->done != g->begun ? product_at(g, g->done) : NULL;
    if (p && p->started < THREADS)
      fprintf(stderr, "    %d of the 128 threads of warpgroup %d have started the product at %s:%d\n", p->started, i,
              p->file, p->line);
  }
}

void simt_wgmma_end(Worker *w) {
  if (atomic_load(&w->job->failed)) return;
  for (int i = 0; i < SIMT_MAX_BLOCK_THREADS / THREADS; i++) {
    Warpgroup *g = w->hopper->group[i];
    for (int s = 0; g && s < SUM_SETS; s++) {
      if (!g->sums[s] || !g->sums[s]->used) continue;
      int in_flight = 0;
      for (int t = 0; t < THREADS; t++) in_flight += g->sums[s]->in_flight[t];
      if (!in_flight) continue;
      simt_report_block(
          "wgmma_commit() after the last product of a group, then wgmma_wait<0>() before the sums are used",
          "wgmma: %d threads returned without having waited for their products", in_flight);
      if (simt_settings.strict) atomic_store(&w->job->failed, (int)cudaErrorLaunchFailure);
      return;
    }
  }
}

void simt_setmaxnreg(int registers, const char *file, int line) {
  (void)registers;
  own_group("setmaxnreg", file, line);
}
