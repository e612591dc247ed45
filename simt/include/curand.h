/* curand.h - cuRAND's host API. C and C++.
 *
 * What equals NVIDIA's library (13.0), and what does not:
 *
 *   PHILOX4_32_10, XORWOW (the default), MRG32K3A
 *                     32-bit numbers and uniform ones equal bit for bit, in the order of
 * CURAND_ORDERING_PSEUDO_DEFAULT, BEST
 *                     and LEGACY, for any offset and any mixture of calls. Normal and log-normal numbers equal up to
 * the
 *                     rounding of log, sin and cos, which a GPU computes less exactly. Poisson numbers have the
 *                     distribution, but are others.
 *   MTGP32, MT19937   accepted; the numbers are Philox's.
 *   quasi-random      refused with CURAND_STATUS_TYPE_ERROR.
 *   PSEUDO_SEEDED, PSEUDO_DYNAMIC   accepted; the order stays the default one.
 */
#ifndef CURAND_H_
#define CURAND_H_

#include <stddef.h>

#include "cuda_runtime.h"
#include "library_types.h"
#include "simt/not_offered.h"

#define CURANDAPI

#define CURAND_VER_MAJOR 10
#define CURAND_VER_MINOR 4
#define CURAND_VER_PATCH 0
#define CURAND_VERSION (CURAND_VER_MAJOR * 1000 + CURAND_VER_MINOR * 100 + CURAND_VER_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum curandStatus {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED = 101, /* no generator */
  CURAND_STATUS_ALLOCATION_FAILED = 102,
  CURAND_STATUS_TYPE_ERROR = 103,          /* the generator's type cannot do this */
  CURAND_STATUS_OUT_OF_RANGE = 104,        /* an argument is out of range */
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105, /* normal numbers come in pairs: the count must be even */
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE = 202, /* a kernel failed before */
  CURAND_STATUS_INITIALIZATION_FAILED = 203,
  CURAND_STATUS_ARCH_MISMATCH = 204,
  CURAND_STATUS_INTERNAL_ERROR = 999
} curandStatus_t;

typedef enum curandRngType {
  CURAND_RNG_TEST = 0,
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  CURAND_RNG_QUASI_DEFAULT = 200,
  CURAND_RNG_QUASI_SOBOL32 = 201,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
  CURAND_RNG_QUASI_SOBOL64 = 203,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204
} curandRngType_t;

typedef enum curandOrdering {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_SEEDED = 102,
  CURAND_ORDERING_PSEUDO_LEGACY = 103,
  CURAND_ORDERING_PSEUDO_DYNAMIC = 104,
  CURAND_ORDERING_QUASI_DEFAULT = 201
} curandOrdering_t;

typedef struct curandGenerator_st *curandGenerator_t;

/* Numbers go to device memory, in the order of the generator's stream. */
curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type);
/* Numbers go to host memory, at once. */
curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type);
curandStatus_t curandDestroyGenerator(curandGenerator_t generator);
curandStatus_t curandGetVersion(int *version);
curandStatus_t curandGetProperty(libraryPropertyType type, int *value);
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream);

/* Seed, offset and ordering start the sequence anew. */
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed);
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset);
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t ordering);
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned int dimensions);
curandStatus_t curandGenerateSeeds(curandGenerator_t generator);

/* `count` numbers each; (0,1] for uniform. Normal and log-normal: XORWOW and MRG32K3A want an even count. */
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int *output, size_t count);
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long *output, size_t count);
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *output, size_t count);
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *output, size_t count);
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *output, size_t count, float mean, float stddev);
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double *output, size_t count, double mean,
                                          double stddev);
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float *output, size_t count, float mean,
                                       float stddev);
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double *output, size_t count, double mean,
                                             double stddev);
/* 0 < lambda <= 400000, as NVIDIA's. */
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int *output, size_t count, double lambda);

#ifdef __cplusplus
}
#endif

#define SIMT_CURAND_REASON "the emulation offers no quasi-random and no tabulated distributions"
#define SIMT_CURAND_NOT_OFFERED(name) SIMT_NOT_OFFERED_FUNCTION(curandStatus_t, name, SIMT_CURAND_REASON)
SIMT_CURAND_NOT_OFFERED(curandGetDirectionVectors32);
SIMT_CURAND_NOT_OFFERED(curandGetDirectionVectors64);
SIMT_CURAND_NOT_OFFERED(curandGetScrambleConstants32);
SIMT_CURAND_NOT_OFFERED(curandGetScrambleConstants64);
SIMT_CURAND_NOT_OFFERED(curandCreatePoissonDistribution);
SIMT_CURAND_NOT_OFFERED(curandDestroyDistribution);
SIMT_CURAND_NOT_OFFERED(curandGenerateBinomial);
SIMT_NOT_OFFERED_TYPE(curandDirectionVectors32_t, SIMT_CURAND_REASON);
SIMT_NOT_OFFERED_TYPE(curandDirectionVectors64_t, SIMT_CURAND_REASON);
SIMT_NOT_OFFERED_TYPE(curandDirectionVectorSet_t, SIMT_CURAND_REASON);
SIMT_NOT_OFFERED_TYPE(curandDiscreteDistribution_t, SIMT_CURAND_REASON);
#undef SIMT_CURAND_NOT_OFFERED

#endif /* CURAND_H_ */
