/* random_init_op.cuh - the distributions of random_init.cuh as an Init of common/nn/op.h. */
#ifndef PHASE1_BUILDING_BLOCKS_RANDOM_INIT_OP_CUH
#define PHASE1_BUILDING_BLOCKS_RANDOM_INIT_OP_CUH

#include "common/nn/op.h"
#include "phase1_building_blocks/11_random_init/random_init.cuh"

static inline void he_normal_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  he_normal_init(w, p->count, p->fan_in, seed, stream);
}
static inline void he_uniform_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  he_uniform_init(w, p->count, p->fan_in, seed, stream);
}
static inline void xavier_normal_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  xavier_normal_init(w, p->count, p->fan_in, p->fan_out, seed, stream);
}
static inline void xavier_uniform_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  xavier_uniform_init(w, p->count, p->fan_in, p->fan_out, seed, stream);
}
/* PyTorch's default for linear layers and convolutions: uniform in +-1 / sqrt(fan_in), weights and biases alike. The
 * bias takes the upper half of the streams: the weight of the same node has the lower one. */
static inline void torch_default_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  const float a = 1 / sqrtf((float)p->fan_in);
  random_uniform_fill_cpu(w, p->count, -a, a, seed, p->rank == 1 ? stream | 0x80000000u : stream);
}

static const Init he_normal = {"he_normal", he_normal_fill};
static const Init he_uniform = {"he_uniform", he_uniform_fill};
static const Init xavier_normal = {"xavier_normal", xavier_normal_fill};
static const Init xavier_uniform = {"xavier_uniform", xavier_uniform_fill};
static const Init torch_default = {"torch", torch_default_fill};

/* By name; -1 with the names that exist. */
static inline int init_named(const char *name, const Init **init, Error *err) {
  static const Init *const all[] = {&he_normal,     &he_uniform, &xavier_normal, &xavier_uniform,
                                    &torch_default, &init_zero,  &init_one};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (strcmp(all[i]->name, name) == 0) {
      *init = all[i];
      return 0;
    }
  return error_set(err,
                   "unknown initialisation \"%.40s\"; expected he_normal, he_uniform, xavier_normal, xavier_uniform, "
                   "torch, zero or one",
                   name);
}

#endif /* PHASE1_BUILDING_BLOCKS_RANDOM_INIT_OP_CUH */
