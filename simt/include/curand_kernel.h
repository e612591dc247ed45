/* curand_kernel.h - cuRAND's device API: a generator for each thread. C++.
 *
 * What equals NVIDIA's: the size of the states, curand(), curand4(), curand_uniform*() bit for bit, for every seed,
 * subsequence and offset; normal and log-normal numbers up to the rounding of log, sin and cos (a GPU's sin and cos are
 * fast ones: compare with an absolute tolerance of 1e-5). Poisson numbers for lambda below 64 and above 4000 too;
 * between, they have the distribution, but are others. MTGP32, the quasi-random states and discrete distributions are
 * not offered.
 */
#ifndef CURAND_KERNEL_H_
#define CURAND_KERNEL_H_

#ifndef __cplusplus
#error "curand_kernel.h is for CUDA C++; C files can include curand.h"
#endif

#include "curand.h"
#include "simt/random.h"

#define CURAND_2POW32_INV (2.3283064e-10f)
#define CURAND_2POW32_INV_DOUBLE (2.3283064365386963e-10)
#define CURAND_2POW53_INV_DOUBLE (1.1102230246251565e-16)
#define CURAND_2PI (6.2831855f)
#define CURAND_PI_DOUBLE (3.1415926535897932)

/* A pair of normal numbers is made at a time; the second waits in the state for the next call of the same kind. */
#define SIMT_NO_EXTRA 0
#define SIMT_EXTRA_NORMAL 1
#define SIMT_EXTRA_LOG_NORMAL 2
#define SIMT_EXTRA                           \
  int boxmuller_flag, boxmuller_flag_double; \
  float boxmuller_extra;                     \
  double boxmuller_extra_double

struct curandStateXORWOW {
  unsigned int d, v[5];
  SIMT_EXTRA;
};

struct curandStateMRG32k3a {
  unsigned int s1[3], s2[3];
  SIMT_EXTRA;
};

struct curandStatePhilox4_32_10 {
  uint4 ctr, output; /* the block that `ctr` gives */
  uint2 key;
  unsigned int STATE; /* 0..3: the word of `output` that comes next */
  SIMT_EXTRA;
};
#undef SIMT_EXTRA

typedef struct curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

SIMT_NOT_OFFERED_TYPE(curandStateSobol32_t, SIMT_CURAND_REASON);
SIMT_NOT_OFFERED_TYPE(curandStateScrambledSobol32_t, SIMT_CURAND_REASON);
SIMT_NOT_OFFERED_TYPE(curandStateSobol64_t, SIMT_CURAND_REASON);
SIMT_NOT_OFFERED_TYPE(curandStateScrambledSobol64_t, SIMT_CURAND_REASON);
SIMT_NOT_OFFERED_TYPE(curandStateMtgp32_t, "MTGP32 has no device API here: curandStatePhilox4_32_10_t is as good");

template <class State>
static inline void simt_no_extra(State *state) {
  state->boxmuller_flag = state->boxmuller_flag_double = SIMT_NO_EXTRA;
  state->boxmuller_extra = 0;
  state->boxmuller_extra_double = 0;
}

/* ---- XORWOW: subsequences are 2^67 numbers apart ---- */

static inline void skipahead(unsigned long long n, curandStateXORWOW_t *state) {
  uint32_t v[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
  simt_xorwow_skip(v, n, 0);
  for (int i = 0; i < 5; i++) state->v[i] = v[i];
  state->d += SIMT_XORWOW_WEYL * (unsigned int)n;
}

static inline void skipahead_sequence(unsigned long long n, curandStateXORWOW_t *state) {
  uint32_t v[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
  simt_xorwow_skip(v, n, SIMT_XORWOW_LOG2_SUBSEQUENCE); /* d's period, 2^32, divides the distance */
  for (int i = 0; i < 5; i++) state->v[i] = v[i];
}

static inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStateXORWOW_t *state) {
  simt_xorwow_seed(seed, state->v, &state->d);
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
  simt_no_extra(state);
}

static inline unsigned int curand(curandStateXORWOW_t *state) { return simt_xorwow(state->v, &state->d); }

/* ---- Philox: subsequences are 2^66 numbers apart, the upper half of the counter ---- */

static inline void simt_add_to_counter(uint4 *counter, unsigned long long n) {
  unsigned long long low = counter->x | (unsigned long long)counter->y << 32;
  unsigned long long high = counter->z | (unsigned long long)counter->w << 32;
  low += n;
  high += low < n;
  *counter = uint4{(unsigned int)low, (unsigned int)(low >> 32), (unsigned int)high, (unsigned int)(high >> 32)};
}

static inline void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *state) {
  state->STATE += (unsigned int)(n % 4);
  simt_add_to_counter(&state->ctr, n / 4 + state->STATE / 4);
  state->STATE %= 4;
  state->output = simt_philox(state->ctr, state->key);
}

static inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state) {
  unsigned long long high = (state->ctr.z | (unsigned long long)state->ctr.w << 32) + n;
  state->ctr.z = (unsigned int)high;
  state->ctr.w = (unsigned int)(high >> 32);
  state->output = simt_philox(state->ctr, state->key);
}

static inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStatePhilox4_32_10_t *state) {
  state->ctr = uint4{0, 0, 0, 0};
  state->key = uint2{(unsigned int)seed, (unsigned int)(seed >> 32)};
  state->STATE = 0;
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
  simt_no_extra(state);
}

static inline unsigned int curand(curandStatePhilox4_32_10_t *state) {
  const uint4 &w = state->output;
  unsigned int next = state->STATE == 0 ? w.x : state->STATE == 1 ? w.y : state->STATE == 2 ? w.z : w.w;
  if (++state->STATE == 4) {
    simt_add_to_counter(&state->ctr, 1);
    state->output = simt_philox(state->ctr, state->key);
    state->STATE = 0;
  }
  return next;
}

/* The next four numbers. */
static inline uint4 curand4(curandStatePhilox4_32_10_t *state) {
  uint4 a = state->output;
  simt_add_to_counter(&state->ctr, 1);
  uint4 b = state->output = simt_philox(state->ctr, state->key);
  switch (state->STATE) {
    case 1:
      return uint4{a.y, a.z, a.w, b.x};
    case 2:
      return uint4{a.z, a.w, b.x, b.y};
    case 3:
      return uint4{a.w, b.x, b.y, b.z};
    default:
      return a;
  }
}

/* ---- MRG32k3a: subsequences are 2^76 numbers apart, sequences 2^127 ---- */

static inline void skipahead(unsigned long long n, curandStateMRG32k3a_t *state) {
  simt_mrg32k3a_skip(state->s1, state->s2, n, 0);
}

static inline void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a_t *state) {
  simt_mrg32k3a_skip(state->s1, state->s2, n, SIMT_MRG_LOG2_SUBSEQUENCE);
}

static inline void skipahead_sequence(unsigned long long n, curandStateMRG32k3a_t *state) {
  simt_mrg32k3a_skip(state->s1, state->s2, n, SIMT_MRG_LOG2_SEQUENCE);
}

static inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStateMRG32k3a_t *state) {
  simt_mrg32k3a_seed(seed, state->s1, state->s2);
  skipahead_subsequence(subsequence, state);
  skipahead(offset, state);
  simt_no_extra(state);
}

static inline unsigned int curand(curandStateMRG32k3a_t *state) {
  return simt_mrg_bits(simt_mrg32k3a(state->s1, state->s2));
}

/* ---- uniform numbers in (0,1] ---- */

template <class State>
static inline float curand_uniform(State *state) {
  return simt_uniform(curand(state));
}

static inline float curand_uniform(curandStateMRG32k3a_t *state) {
  return (float)simt_mrg_uniform(simt_mrg32k3a(state->s1, state->s2));
}

static inline float4 curand_uniform4(curandStatePhilox4_32_10_t *state) {
  uint4 w = curand4(state);
  return float4{simt_uniform(w.x), simt_uniform(w.y), simt_uniform(w.z), simt_uniform(w.w)};
}

static inline double curand_uniform_double(curandStateXORWOW_t *state) {
  unsigned int low = curand(state), high = curand(state);
  return simt_uniform_double53(low, high);
}

static inline double curand_uniform_double(curandStateMRG32k3a_t *state) {
  return simt_mrg_uniform(simt_mrg32k3a(state->s1, state->s2));
}

/* One number of 32 bits makes one double, as NVIDIA has it: a quarter of the values is coarser than curand_uniform().
 * */
static inline double curand_uniform_double(curandStatePhilox4_32_10_t *state) {
  return simt_uniform_double32(curand(state));
}

static inline double2 curand_uniform2_double(curandStatePhilox4_32_10_t *state) {
  uint4 w = curand4(state);
  return double2{simt_uniform_double53(w.x, w.y), simt_uniform_double53(w.z, w.w)};
}

static inline double4 curand_uniform4_double(curandStatePhilox4_32_10_t *state) {
  double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
  return double4{a.x, a.y, b.x, b.y};
}

/* ---- normal numbers, mean 0 and standard deviation 1 ---- */

template <class State>
static inline float2 curand_normal2(State *state) {
  unsigned int x = curand(state), y = curand(state);
  return simt_normal(x, y);
}

static inline float2 curand_normal2(curandStateMRG32k3a_t *state) {
  float u = curand_uniform(state), v = curand_uniform(state);
  return simt_box_muller(u, v * CURAND_2PI);
}

static inline float4 curand_normal4(curandStatePhilox4_32_10_t *state) {
  float2 a = curand_normal2(state), b = curand_normal2(state);
  return float4{a.x, a.y, b.x, b.y};
}

template <class State>
static inline double2 curand_normal2_double(State *state) {
  unsigned int x0 = curand(state), x1 = curand(state), y0 = curand(state), y1 = curand(state);
  return simt_normal_double(x0, x1, y0, y1);
}

static inline double2 curand_normal2_double(curandStateMRG32k3a_t *state) {
  double u = curand_uniform_double(state), v = curand_uniform_double(state);
  return simt_box_muller_double(u, v * 2);
}

static inline double4 curand_normal4_double(curandStatePhilox4_32_10_t *state) {
  double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
  return double4{a.x, a.y, b.x, b.y};
}

template <class State>
static inline float curand_normal(State *state) {
  if (state->boxmuller_flag == SIMT_EXTRA_NORMAL) {
    state->boxmuller_flag = SIMT_NO_EXTRA;
    return state->boxmuller_extra;
  }
  float2 pair = curand_normal2(state);
  state->boxmuller_flag = SIMT_EXTRA_NORMAL;
  state->boxmuller_extra = pair.y;
  return pair.x;
}

template <class State>
static inline double curand_normal_double(State *state) {
  if (state->boxmuller_flag_double == SIMT_EXTRA_NORMAL) {
    state->boxmuller_flag_double = SIMT_NO_EXTRA;
    return state->boxmuller_extra_double;
  }
  double2 pair = curand_normal2_double(state);
  state->boxmuller_flag_double = SIMT_EXTRA_NORMAL;
  state->boxmuller_extra_double = pair.y;
  return pair.x;
}

/* ---- log-normal numbers: exp(mean + stddev * normal) ---- */

template <class State>
static inline float2 curand_log_normal2(State *state, float mean, float stddev) {
  float2 pair = curand_normal2(state);
  return float2{expf(mean + stddev * pair.x), expf(mean + stddev * pair.y)};
}

static inline float4 curand_log_normal4(curandStatePhilox4_32_10_t *state, float mean, float stddev) {
  float2 a = curand_log_normal2(state, mean, stddev), b = curand_log_normal2(state, mean, stddev);
  return float4{a.x, a.y, b.x, b.y};
}

template <class State>
static inline double2 curand_log_normal2_double(State *state, double mean, double stddev) {
  double2 pair = curand_normal2_double(state);
  return double2{exp(mean + stddev * pair.x), exp(mean + stddev * pair.y)};
}

static inline double4 curand_log_normal4_double(curandStatePhilox4_32_10_t *state, double mean, double stddev) {
  double2 a = curand_log_normal2_double(state, mean, stddev), b = curand_log_normal2_double(state, mean, stddev);
  return double4{a.x, a.y, b.x, b.y};
}

template <class State>
static inline float curand_log_normal(State *state, float mean, float stddev) {
  if (state->boxmuller_flag == SIMT_EXTRA_LOG_NORMAL) {
    state->boxmuller_flag = SIMT_NO_EXTRA;
    return state->boxmuller_extra;
  }
  float2 pair = curand_log_normal2(state, mean, stddev);
  state->boxmuller_flag = SIMT_EXTRA_LOG_NORMAL;
  state->boxmuller_extra = pair.y;
  return pair.x;
}

template <class State>
static inline double curand_log_normal_double(State *state, double mean, double stddev) {
  if (state->boxmuller_flag_double == SIMT_EXTRA_LOG_NORMAL) {
    state->boxmuller_flag_double = SIMT_NO_EXTRA;
    return state->boxmuller_extra_double;
  }
  double2 pair = curand_log_normal2_double(state, mean, stddev);
  state->boxmuller_flag_double = SIMT_EXTRA_LOG_NORMAL;
  state->boxmuller_extra_double = pair.y;
  return pair.x;
}

/* ---- Poisson numbers ---- */

/* lambda < 64: as many uniform numbers as can be multiplied before e^lambda falls to 1 or below. */
template <class State>
static inline unsigned int simt_poisson_small(State *state, float lambda) {
  unsigned int factors = 0;
  float product = expf(lambda);
  do {
    factors++;
    product *= curand_uniform(state);
  } while (product > 1.0f);
  return factors - 1;
}

template <class State>
static inline unsigned int simt_poisson_middle(State *state, double lambda) {
  double k;
  do {
    double u = curand_uniform(state), v = curand_uniform(state);
    k = simt_poisson_trial(lambda, u, v);
  } while (k < 0);
  return (unsigned int)k;
}

/* lambda > 4000: the nearest integer to a normal number. */
static inline unsigned int simt_poisson_large(double lambda, double normal) {
  return (unsigned int)(sqrt(lambda) * normal + lambda + 0.5);
}

template <class State>
static inline unsigned int curand_poisson(State *state, double lambda) {
  if (lambda < 64) return simt_poisson_small(state, (float)lambda);
  if (lambda > 4000) return simt_poisson_large(lambda, curand_normal_double(state));
  return simt_poisson_middle(state, lambda);
}

static inline uint4 curand_poisson4(curandStatePhilox4_32_10_t *state, double lambda) {
  unsigned int k[4];
  if (lambda > 4000) {
    double4 normal = curand_normal4_double(state);
    return uint4{simt_poisson_large(lambda, normal.x), simt_poisson_large(lambda, normal.y),
                 simt_poisson_large(lambda, normal.z), simt_poisson_large(lambda, normal.w)};
  }
  for (int i = 0; i < 4; i++) {
    k[i] = lambda < 64 ? simt_poisson_small(state, (float)lambda) : simt_poisson_middle(state, lambda);
  }
  return uint4{k[0], k[1], k[2], k[3]};
}

#endif /* CURAND_KERNEL_H_ */
