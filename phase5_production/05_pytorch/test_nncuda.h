/* test_nncuda.h - arrays that lie twice: in the host's memory for NNCUDA_CPU, in that of GPU 0, between guard bands.
 *
 *     Twice x = twice_random(n, 1), y = twice_poison(n);
 *     BOTH(nncuda_activation_forward(device, NULL, NNCUDA_FLOAT32, NNCUDA_RELU, y.at[on], x.at[on], n));
 *     twice_compare(&y, 1, n, 1e-6, 1e-6, "y");          // GPU against CPU; frees y
 *     twice_same(&x, "x");                               // not written; frees x
 */
#ifndef PHASE5_PRODUCTION_TEST_NNCUDA_H
#define PHASE5_PRODUCTION_TEST_NNCUDA_H

#include "common/test_arrays.h"
#include "phase5_production/05_pytorch/nncuda.h"

typedef struct Twice {
  float *at[2]; /* host, GPU */
  size_t n;
} Twice;

/* The call for NNCUDA_CPU, then for GPU 0. */
#define BOTH(call)                                                           \
  for (int on = 0; on < 2; on++) {                                           \
    const int device = on - 1;                                               \
    if ((call) != NNCUDA_OK) fail_msg("%s: %s", #call, nncuda_last_error()); \
  }

static inline Twice twice_of(float *host, size_t n) {
  const Twice t = {{host, arrays_upload(DEVICE_GPU, host, n)}, n};
  return t;
}

static inline Twice twice_random(size_t n, uint64_t seed) { return twice_of(arrays_random(n, seed), n); }

/* What an operation leaves alone is found. */
static inline Twice twice_poison(size_t n) { return twice_of(arrays_poison(n), n); }

static inline Twice twice_bytes(size_t bytes) { return twice_poison((bytes + 3) / 4); }

/* A workspace. cudaMalloc() aligns to 256 bytes. */
typedef struct Scratch {
  void *at[2];
  size_t bytes[2];
} Scratch;

static inline Scratch scratch_open(size_t cpu_bytes, size_t gpu_bytes) {
  Scratch s = {{NULL, NULL}, {cpu_bytes, gpu_bytes}};
  if (cpu_bytes > 0) s.at[0] = device_alloc(DEVICE_CPU, cpu_bytes);
  if (gpu_bytes > 0) s.at[1] = device_alloc(DEVICE_GPU, gpu_bytes);
  if (cpu_bytes > 0) memset(s.at[0], 0xA5, cpu_bytes);
  if (gpu_bytes > 0) CUDA_CHECK(cudaMemset(s.at[1], 0xA5, gpu_bytes));
  return s;
}

static inline void scratch_close(Scratch *s) {
  device_free(DEVICE_CPU, s->at[0]);
  if (s->at[1] != NULL) device_free(DEVICE_GPU, s->at[1]);
}

static inline float *twice_fetch(Twice *t, const char *name) {
  float *got = (float *)xmalloc(t->n * sizeof *got);
  CUDA_CHECK(cudaDeviceSynchronize());
  arrays_download(DEVICE_GPU, got, t->at[1], t->n, name);
  return got;
}

static inline void twice_compare(Twice *t, size_t rows, size_t cols, double relative, double absolute,
                                 const char *name) {
  float *got = twice_fetch(t, name);
  const Comparison c = compare_arrays(got, t->at[0], rows, cols, tolerance_make(relative, absolute));
  if (!c.ok) fail_msg("%s: %s", name, c.message);
  free(got);
  free(t->at[0]);
}

/* Bit by bit: inputs, and what is not a float. */
static inline void twice_same(Twice *t, const char *name) {
  float *got = twice_fetch(t, name);
  if (memcmp(got, t->at[0], t->n * sizeof *got) != 0) fail_msg("%s differs on the two devices", name);
  free(got);
  free(t->at[0]);
}

static inline void twice_free(Twice *t) {
  arrays_download(DEVICE_GPU, NULL, t->at[1], t->n, "an array");
  free(t->at[0]);
}

#endif /* PHASE5_PRODUCTION_TEST_NNCUDA_H */
