/* curand.c - cuRAND's host API (simt/include/curand.h says what equals NVIDIA's).
 *
 * A GPU fills an array with many threads, each with a stretch of the sequence of its own, and what the library promises
 * is the resulting order. XORWOW: 4096 threads, thread t starts at subsequence t and makes the elements t, t + 4096,
 * t + 8192, .. MRG32k3a the same with 81920 threads, 4096 in the legacy order. Here a thread's state is called a
 * lane. An element costs one 32-bit number, or two (double), or is a pair of normal numbers made of two or four; so
 * calls of different kinds move the lanes on by different amounts. Philox: 65536 threads, each makes four elements at
 * a time, from one block of 128 bits or, for double, from two.
 */
#include "curand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "hooks.h"
#include "runtime.h"
#include "simt/random.h"

#define LANES 4096
#define MRG_LANES 81920
#define SUBSEQUENCES 65536   /* Philox */
#define MAX_LAMBDA 400000.0  /* NVIDIA's limit */
#define NORMAL_LAMBDA 2000.0 /* from here on a rounded normal number stands for a Poisson one */

typedef enum Kind { BITS, UNIFORM, UNIFORM_DOUBLE, NORMAL, NORMAL_DOUBLE, LOG_NORMAL, LOG_NORMAL_DOUBLE, POISSON } Kind;

static const size_t kind_bytes[] = {[BITS] = 4,          [UNIFORM] = 4,    [UNIFORM_DOUBLE] = 8,    [NORMAL] = 4,
                                    [NORMAL_DOUBLE] = 8, [LOG_NORMAL] = 4, [LOG_NORMAL_DOUBLE] = 8, [POISSON] = 4};

typedef struct Xorwow {
  uint32_t v[5], d;
} Xorwow;

typedef struct Mrg {
  uint32_t s1[3], s2[3];
} Mrg;

struct curandGenerator_st {
  curandRngType_t type; /* that runs: XORWOW, MRG32K3A or PHILOX4_32_10 */
  int on_host;
  cudaStream_t stream; /* never NULL, which --default-stream per-thread makes the thread's own: not a library's */
  unsigned long long seed, offset;
  unsigned lanes;
  int restart; /* seed, offset or order were set since the last call */

  /* The rest is touched only by queued work, in the stream's order. */
  unsigned long long position; /* elements made so far, the offset included */
  void *states;    /* Xorwow[LANES], Mrg[MRG_LANES], or uint64_t[SUBSEQUENCES]: blocks that each has used up */
  double *poisson; /* for poisson_lambda: P(first + i or less) */
  double poisson_lambda;
  int poisson_first, poisson_count;
};

typedef struct Request {
  curandGenerator_t generator;
  int restart;
  unsigned long long seed, offset;
  unsigned lanes;
  Kind kind;
  void *output;
  size_t count;
  double a, b; /* mean and standard deviation; lambda */
} Request;

/* ---- start of a sequence ---- */

static void restart(curandGenerator_t g, uint64_t seed, uint64_t offset, unsigned lanes) {
  g->position = offset;
  if (g->type == CURAND_RNG_PSEUDO_PHILOX4_32_10) {
    uint64_t *used = g->states, whole = offset / 4;
    for (unsigned i = 0; i < SUBSEQUENCES; i++) used[i] = whole / SUBSEQUENCES + (i < whole % SUBSEQUENCES);
  } else if (g->type == CURAND_RNG_PSEUDO_XORWOW) {
    Xorwow first, *lane = g->states;
    simt_xorwow_seed(seed, first.v, &first.d);
    for (unsigned i = 0; i < lanes; i++) {
      uint64_t steps = offset / lanes + (i < offset % lanes);
      lane[i] = first;
      simt_xorwow_skip(lane[i].v, steps, 0);
      lane[i].d += SIMT_XORWOW_WEYL * (uint32_t)steps;
      simt_xorwow_skip(first.v, 1, SIMT_XORWOW_LOG2_SUBSEQUENCE);
    }
  } else {
    Mrg first, *lane = g->states;
    simt_mrg32k3a_seed(seed, first.s1, first.s2);
    for (unsigned i = 0; i < lanes; i++) {
      lane[i] = first;
      simt_mrg32k3a_skip(lane[i].s1, lane[i].s2, offset / lanes + (i < offset % lanes), 0);
      simt_mrg32k3a_skip(first.s1, first.s2, 1, SIMT_MRG_LOG2_SUBSEQUENCE);
    }
  }
}

/* ---- Poisson numbers: one uniform number, looked up in the summed probabilities ---- */

static int prepare_poisson(curandGenerator_t g, double lambda) {
  if (g->poisson && g->poisson_lambda == lambda) return 1;
  double reach = 10 * sqrt(lambda) + 30; /* what lies further out has a probability below 2^-60 */
  int first = lambda > reach ? (int)(lambda - reach) : 0, count = (int)(lambda + reach) - first + 1;
  double *sums = realloc(g->poisson, (size_t)count * sizeof *sums), sum = 0;
  if (!sums) return 0;
  for (int i = 0; i < count; i++) {
    double k = first + i;
    sum += exp(k * log(lambda) - lambda - simt_log_factorial(k));
    sums[i] = sum;
  }
  g->poisson = sums;
  g->poisson_lambda = lambda;
  g->poisson_first = first;
  g->poisson_count = count;
  return 1;
}

static unsigned find_poisson(const struct curandGenerator_st *g, double u) {
  int low = 0, high = g->poisson_count - 1;
  while (low < high) {
    int middle = (low + high) / 2;
    if (u <= g->poisson[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return (unsigned)(g->poisson_first + low);
}

static unsigned round_poisson(double lambda, double normal) {
  double k = floor(lambda + sqrt(lambda) * normal + 0.5);
  return k > 0 ? (unsigned)k : 0;
}

/* ---- one thread's turn ---- */

/* Elements of a pair of normal numbers, into output[0] and output[1]. */
static void put_normal(const Request *r, float2 normal, float *output) {
  float pair[2] = {(float)r->a + (float)r->b * normal.x, (float)r->a + (float)r->b * normal.y};
  for (int i = 0; i < 2; i++) output[i] = r->kind == LOG_NORMAL ? expf(pair[i]) : pair[i];
}

static void put_normal_double(const Request *r, double2 normal, double *output) {
  double pair[2] = {r->a + r->b * normal.x, r->a + r->b * normal.y};
  for (int i = 0; i < 2; i++) output[i] = r->kind == LOG_NORMAL_DOUBLE ? exp(pair[i]) : pair[i];
}

/* Four elements from the block `counter` and, when they take 64 bits each, the next one. Gives the blocks used. */
static int philox_four(const Request *r, uint64_t block, uint32_t subsequence, void *output) {
  uint2 key = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
  uint4 counter = {(uint32_t)block, (uint32_t)(block >> 32), subsequence, 0};
  uint4 w = simt_philox(counter, key), x = {0, 0, 0, 0};
  uint32_t words[4] = {w.x, w.y, w.z, w.w};
  int wide = kind_bytes[r->kind] == 8 || (r->kind == POISSON && r->a > NORMAL_LAMBDA);
  if (wide) {
    counter.x++;
    counter.y += counter.x == 0;
    x = simt_philox(counter, key);
  }
  switch (r->kind) {
    case BITS:
      memcpy(output, words, sizeof words);
      break;
    case UNIFORM:
      for (int i = 0; i < 4; i++) ((float *)output)[i] = simt_uniform(words[i]);
      break;
    case UNIFORM_DOUBLE: {
      double four[4] = {simt_uniform_double53(w.x, w.y), simt_uniform_double53(w.z, w.w),
                        simt_uniform_double53(x.x, x.y), simt_uniform_double53(x.z, x.w)};
      memcpy(output, four, sizeof four);
      break;
    }
    case NORMAL:
    case LOG_NORMAL:
      put_normal(r, simt_normal(w.x, w.y), output);
      put_normal(r, simt_normal(w.z, w.w), (float *)output + 2);
      break;
    case NORMAL_DOUBLE:
    case LOG_NORMAL_DOUBLE:
      put_normal_double(r, simt_normal_double(w.x, w.y, w.z, w.w), output);
      put_normal_double(r, simt_normal_double(x.x, x.y, x.z, x.w), (double *)output + 2);
      break;
    case POISSON:
      if (wide) {
        double2 p = simt_normal_double(w.x, w.y, w.z, w.w), q = simt_normal_double(x.x, x.y, x.z, x.w);
        double normal[4] = {p.x, p.y, q.x, q.y};
        for (int i = 0; i < 4; i++) ((unsigned *)output)[i] = round_poisson(r->a, normal[i]);
      } else {
        for (int i = 0; i < 4; i++) {
          ((unsigned *)output)[i] = find_poisson(r->generator, simt_uniform_double32(words[i]));
        }
      }
      break;
  }
  return wide ? 2 : 1;
}

/* One element (two for normal kinds) of an XORWOW lane. */
static void xorwow_one(const Request *r, Xorwow *s, void *output) {
  uint32_t w[4];
  int normal_poisson = r->kind == POISSON && r->a > NORMAL_LAMBDA;
  int words = 1;
  if (r->kind == UNIFORM_DOUBLE || r->kind == NORMAL || r->kind == LOG_NORMAL) words = 2;
  if (r->kind == NORMAL_DOUBLE || r->kind == LOG_NORMAL_DOUBLE || normal_poisson) words = 4;
  for (int i = 0; i < words; i++) w[i] = simt_xorwow(s->v, &s->d);
  switch (r->kind) {
    case BITS:
      *(uint32_t *)output = w[0];
      break;
    case UNIFORM:
      *(float *)output = simt_uniform(w[0]);
      break;
    case UNIFORM_DOUBLE:
      *(double *)output = simt_uniform_double53(w[0], w[1]);
      break;
    case NORMAL:
    case LOG_NORMAL:
      put_normal(r, simt_normal(w[0], w[1]), output);
      break;
    case NORMAL_DOUBLE:
    case LOG_NORMAL_DOUBLE:
      put_normal_double(r, simt_normal_double(w[0], w[1], w[2], w[3]), output);
      break;
    case POISSON:
      *(unsigned *)output = normal_poisson ? round_poisson(r->a, simt_normal_double(w[0], w[1], w[2], w[3]).x)
                                           : find_poisson(r->generator, simt_uniform_double32(w[0]));
      break;
  }
}

/* The same for MRG32k3a, whose numbers are integers modulo m1, not bits. */
static void mrg_one(const Request *r, Mrg *s, void *output) {
  const float two_pi = 6.2831855f;
  uint32_t z = simt_mrg32k3a(s->s1, s->s2);
  double u = simt_mrg_uniform(z), v = 0;
  int normal_poisson = r->kind == POISSON && r->a > NORMAL_LAMBDA;
  if ((r->kind >= NORMAL && r->kind <= LOG_NORMAL_DOUBLE) || normal_poisson) {
    v = simt_mrg_uniform(simt_mrg32k3a(s->s1, s->s2));
  }
  switch (r->kind) {
    case BITS:
      *(uint32_t *)output = simt_mrg_bits(z);
      break;
    case UNIFORM:
      *(float *)output = (float)u;
      break;
    case UNIFORM_DOUBLE:
      *(double *)output = u;
      break;
    case NORMAL:
    case LOG_NORMAL:
      put_normal(r, simt_box_muller((float)u, (float)v * two_pi), output);
      break;
    case NORMAL_DOUBLE:
    case LOG_NORMAL_DOUBLE:
      put_normal_double(r, simt_box_muller_double(u, v * 2), output);
      break;
    case POISSON:
      *(unsigned *)output =
          normal_poisson ? round_poisson(r->a, simt_box_muller_double(u, v * 2).x) : find_poisson(r->generator, u);
      break;
  }
}

/* ---- an array ---- */

static void generate(void *context) {
  const Request *r = context;
  curandGenerator_t g = r->generator;
  size_t bytes = kind_bytes[r->kind];
  char *output = r->output, *end = output + r->count * bytes;

  if (r->restart) restart(g, r->seed, r->offset, r->lanes);
  if (r->kind == POISSON && r->a <= NORMAL_LAMBDA && !prepare_poisson(g, r->a)) {
    simt_report_host("curandGeneratePoisson: no memory for the table of lambda %g", r->a);
    simt_error_sticky(cudaErrorMemoryAllocation);
    return;
  }
  if (g->type == CURAND_RNG_PSEUDO_PHILOX4_32_10) {
    for (size_t left = r->count, taken; left > 0; left -= taken) {
      double four[4]; /* of any kind */
      uint32_t subsequence = (uint32_t)(g->position / 4 % SUBSEQUENCES);
      uint64_t *used = (uint64_t *)g->states + subsequence;
      size_t from = g->position % 4;
      taken = left < 4 - from ? left : 4 - from;
      int blocks = philox_four(r, *used, subsequence, four);
      memcpy(output, (char *)four + from * bytes, taken * bytes);
      if (from + taken == 4) *used += blocks; /* a group that is cut short is made again by the next call */
      output += taken * bytes;
      g->position += taken;
    }
  } else {
    if (r->kind >= NORMAL && r->kind <= LOG_NORMAL_DOUBLE) bytes *= 2;
    size_t lane = g->position % r->lanes;
    for (; output < end; output += bytes) {
      if (g->type == CURAND_RNG_PSEUDO_XORWOW) {
        xorwow_one(r, (Xorwow *)g->states + lane, output);
      } else {
        mrg_one(r, (Mrg *)g->states + lane, output);
      }
      g->position++;
      if (++lane == r->lanes) lane = 0;
    }
  }
  if (!g->on_host) TELL_INSPECTOR(host_wrote(r->output, r->count * kind_bytes[r->kind]));
}

/* 1 when `count` elements fit at `output`, in memory that the generator may write to. */
static int output_is_good(curandGenerator_t g, const char *call, const void *caller, const void *output, size_t bytes) {
  SimtMemory memory;
  char where[600], text[600];
  int live = simt_memory_find(output, &memory);
  simt_where((const char *)caller - 1, where, sizeof where);
  if (g->on_host) {
    if (output && simt_memory_host_may_use(output)) return 1;
    simt_report_host(
        "%s at %s: output is %s, but this generator writes to host memory; curandCreateGenerator() makes one "
        "that writes to device memory",
        call, where, output ? "a device pointer" : "NULL");
    return 0;
  }
  if (!live || memory.kind == SIMT_CONSTANT_MEMORY) {
    simt_report_host(
        "%s at %s: output is %s, but this generator writes to device memory (cudaMalloc); "
        "curandCreateGeneratorHost() makes one that writes to host memory",
        call, where,
        !output        ? "NULL"
        : memory.freed ? "freed memory"
                       : "a host pointer");
    return 0;
  }
  if (bytes > memory.size - (size_t)((const char *)output - (const char *)memory.base)) {
    simt_report_host("%s at %s: %zu bytes of output leave %s", call, where, bytes,
                     simt_memory_text(&memory, text, sizeof text));
    return 0;
  }
  return 1;
}

static curandStatus_t submit(curandGenerator_t g, const char *call, const void *caller, Kind kind, void *output,
                             size_t count, double a, double b) {
  if (!g) return CURAND_STATUS_NOT_INITIALIZED;
  if (kind >= NORMAL && kind <= LOG_NORMAL_DOUBLE && count % 2 && g->type != CURAND_RNG_PSEUDO_PHILOX4_32_10) {
    return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  }
  if (kind == POISSON && !(a > 0 && a <= MAX_LAMBDA)) return CURAND_STATUS_OUT_OF_RANGE;
  if (count == 0) return CURAND_STATUS_SUCCESS;
  if (simt_error_pending() != cudaSuccess) return CURAND_STATUS_PREEXISTING_FAILURE;
  if (!output_is_good(g, call, caller, output, count * kind_bytes[kind])) {
    simt_error_sticky(cudaErrorIllegalAddress);
    return CURAND_STATUS_LAUNCH_FAILURE;
  }
  Request request = {g, g->restart, g->seed, g->offset, g->lanes, kind, output, count, a, b};
  g->restart = 0;
  if (g->on_host) {
    generate(&request);
    return CURAND_STATUS_SUCCESS;
  }
  cudaError_t error = simt_stream_submit(g->stream, generate, &request, sizeof request, call, NULL, 0);
  return error == cudaSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

#define SUBMIT(kind, output, count, a, b) \
  submit(generator, __func__, __builtin_return_address(0), kind, output, count, a, b)

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int *output, size_t count) {
  return SUBMIT(BITS, output, count, 0, 0);
}

curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long *output, size_t count) {
  (void)output;
  (void)count;
  return generator ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_NOT_INITIALIZED; /* Sobol64's only */
}

curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *output, size_t count) {
  return SUBMIT(UNIFORM, output, count, 0, 0);
}

curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *output, size_t count) {
  return SUBMIT(UNIFORM_DOUBLE, output, count, 0, 0);
}

curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *output, size_t count, float mean,
                                    float stddev) {
  return SUBMIT(NORMAL, output, count, mean, stddev);
}

curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double *output, size_t count, double mean,
                                          double stddev) {
  return SUBMIT(NORMAL_DOUBLE, output, count, mean, stddev);
}

curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float *output, size_t count, float mean,
                                       float stddev) {
  return SUBMIT(LOG_NORMAL, output, count, mean, stddev);
}

curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double *output, size_t count, double mean,
                                             double stddev) {
  return SUBMIT(LOG_NORMAL_DOUBLE, output, count, mean, stddev);
}

curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int *output, size_t count, double lambda) {
  return SUBMIT(POISSON, output, count, lambda, 0);
}

/* ---- generators ---- */

static curandStatus_t create(curandGenerator_t *generator, curandRngType_t type, int on_host) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  switch (type) {
    case CURAND_RNG_PSEUDO_DEFAULT:
      type = CURAND_RNG_PSEUDO_XORWOW;
      break;
    case CURAND_RNG_PSEUDO_MTGP32:
    case CURAND_RNG_PSEUDO_MT19937:
      type = CURAND_RNG_PSEUDO_PHILOX4_32_10;
      break;
    case CURAND_RNG_PSEUDO_XORWOW:
    case CURAND_RNG_PSEUDO_MRG32K3A:
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
      break;
    case CURAND_RNG_QUASI_DEFAULT:
    case CURAND_RNG_QUASI_SOBOL32:
    case CURAND_RNG_QUASI_SCRAMBLED_SOBOL32:
    case CURAND_RNG_QUASI_SOBOL64:
    case CURAND_RNG_QUASI_SCRAMBLED_SOBOL64:
      simt_report_host(
          "curandCreateGenerator: the emulation has no quasi-random generators (Sobol); use "
          "CURAND_RNG_PSEUDO_PHILOX4_32_10, say, or run on a GPU");
      return CURAND_STATUS_TYPE_ERROR;
    default:
      return CURAND_STATUS_TYPE_ERROR;
  }
  curandGenerator_t g = calloc(1, sizeof *g);
  size_t state_bytes = type == CURAND_RNG_PSEUDO_PHILOX4_32_10 ? SUBSEQUENCES * sizeof(uint64_t)
                       : type == CURAND_RNG_PSEUDO_XORWOW      ? LANES * sizeof(Xorwow)
                                                               : MRG_LANES * sizeof(Mrg);
  void *states = malloc(state_bytes);
  if (!g || !states) {
    free(g);
    free(states);
    return CURAND_STATUS_ALLOCATION_FAILED;
  }
  g->type = type;
  g->on_host = on_host;
  g->stream = cudaStreamLegacy;
  g->states = states;
  g->lanes = type == CURAND_RNG_PSEUDO_MRG32K3A ? MRG_LANES : LANES;
  g->restart = 1;
  *generator = g;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type) {
  return create(generator, type, 0);
}

curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type) {
  return create(generator, type, 1);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (!generator->on_host) cudaStreamSynchronize(generator->stream);
  free(generator->states);
  free(generator->poisson);
  free(generator);
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (!generator->on_host) cudaStreamSynchronize(generator->stream); /* its states are in use there */
  generator->stream = stream ? stream : cudaStreamLegacy;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->seed = seed;
  generator->restart = 1;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->offset = offset;
  generator->restart = 1;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t ordering) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (ordering < CURAND_ORDERING_PSEUDO_BEST || ordering > CURAND_ORDERING_PSEUDO_DYNAMIC ||
      (generator->on_host && ordering == CURAND_ORDERING_PSEUDO_DYNAMIC)) {
    return CURAND_STATUS_OUT_OF_RANGE;
  }
  int many = generator->type == CURAND_RNG_PSEUDO_MRG32K3A && ordering != CURAND_ORDERING_PSEUDO_LEGACY;
  generator->lanes = many ? MRG_LANES : LANES;
  generator->restart = 1;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned int dimensions) {
  (void)dimensions;
  return generator ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_NOT_INITIALIZED;
}

curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED; /* the first numbers do it */
}

curandStatus_t curandGetVersion(int *version) {
  if (!version) return CURAND_STATUS_OUT_OF_RANGE;
  *version = CURAND_VERSION;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetProperty(libraryPropertyType type, int *value) {
  static const int version[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH};
  if (!value || (unsigned)type > PATCH_LEVEL) return CURAND_STATUS_OUT_OF_RANGE;
  *value = version[type];
  return CURAND_STATUS_SUCCESS;
}
