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

/* A workspace, and behind it bytes that nobody may write. cudaMalloc() aligns to 256 bytes. */
typedef struct Scratch {
  void *at[2];
  size_t bytes[2];
} Scratch;

enum { SCRATCH_GUARD = 256, SCRATCH_BYTE = 0xA5 };

static inline Scratch scratch_open(size_t cpu_bytes, size_t gpu_bytes) {
  Scratch s = {{NULL, NULL}, {cpu_bytes, gpu_bytes}};
  if (cpu_bytes > 0) s.at[0] = device_alloc(DEVICE_CPU, cpu_bytes + SCRATCH_GUARD);
  if (gpu_bytes > 0) s.at[1] = device_alloc(DEVICE_GPU, gpu_bytes + SCRATCH_GUARD);
  if (cpu_bytes > 0) memset(s.at[0], SCRATCH_BYTE, cpu_bytes + SCRATCH_GUARD);
  if (gpu_bytes > 0) CUDA_CHECK(cudaMemset(s.at[1], SCRATCH_BYTE, gpu_bytes + SCRATCH_GUARD));
  return s;
}

static inline void scratch_close(Scratch *s) {
  for (int on = 0; on < 2; on++) {
    const Device device = on == 1 ? DEVICE_GPU : DEVICE_CPU;
    unsigned char guard[SCRATCH_GUARD];
    if (s->at[on] == NULL) continue;
    device_download(device, guard, (const char *)s->at[on] + s->bytes[on], sizeof guard);
    for (int i = 0; i < SCRATCH_GUARD; i++)
      if (guard[i] != SCRATCH_BYTE) fail_msg("byte %d behind a workspace of %zu bytes was written", i, s->bytes[on]);
    device_free(device, s->at[on]);
  }
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
