/* cpu_int8_blocks.cuh - a graph of int8 operations (int8_lower.cuh) computes on a CPU by the kernels of
 * cpu_conv2d_int8.h.
 *
 *     Graph *q = int8_lower(g, scale, weights, DEVICE_CPU, &store, &err);
 *     cpu_int8_blocks(q);                  // before model_open(); parameters keep their names and their order
 *
 * Int8 arrays are only read by int8 operations, between QuantizeLinear and DequantizeLinear. So all of them change
 * their layout at once, to blocks of 16 channels, and no node is added: QuantizeLinear writes blocks,
 * DequantizeLinear and the last linear layer write plain float32. An array has a border as wide as the largest
 * padding of the convolutions that read it; arrays that are added to each other have one border.
 *
 * Weights are packed when a node computes for the first time: then its parameters are filled.
 */
#ifndef PHASE5_PRODUCTION_CPU_INT8_BLOCKS_CUH
#define PHASE5_PRODUCTION_CPU_INT8_BLOCKS_CUH

#include "common/threads.h"
#include "phase5_production/09_int8/cpu_conv2d_int8.h"
#include "phase5_production/09_int8/int8_op.cuh"

/* Attributes of a node in blocks. */
typedef struct CpuInt8Block {
  CpuShape x, y;
  bool y_positive;
  union {
    Int8Conv conv;
    Int8Pool pool;
    Int8Add add;
    Int8Quantize quantize;
  } was; /* its attributes before */
} CpuInt8Block;

static_assert(sizeof(CpuInt8Block) <= NODE_ATTRIBUTE_BYTES, "a node has space for them");

static inline const CpuInt8Block *cpu_int8_block(const Node *node) {
  return (const CpuInt8Block *)node->attributes.bytes;
}

/* One within a parallel region: there other threads have the other samples. */
static inline int cpu_int8_threads(void) {
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

static inline void cpu_int8_no_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context, (void)a;
  die("%s computes with int8 and has no backward pass; open the model for MODEL_INFER", node->name);
}

/* ----------------------------------------------------------------------------------------------------- convolutions */

/* With a node of a model. */
typedef struct CpuInt8Kept {
  CpuInt8 *plan; /* NULL: not packed yet */
} CpuInt8Kept;

static inline int cpu_int8_open(Context *, const Node *, int, int, void **kept, Error *) {
  *kept = xcalloc(1, sizeof(CpuInt8Kept));
  return 0;
}

static inline void cpu_int8_close_kept(void *kept) {
  cpu_int8_close(((CpuInt8Kept *)kept)->plan);
  free(kept);
}

static inline bool cpu_int8_is_linear(const Int8Conv *own) {
  const Conv2dShape s = own->shape;
  return s.h == 1 && s.w == 1 && s.r == 1 && s.s == 1 && s.groups == 1;
}

/* Of dense filters (K',R,S,C') those channels that x has: the kernels need not multiply the zeros of the others. */
static inline int8_t *cpu_int8_narrow_weights(const int8_t *w, int rows, int channels, int pitch) {
  int8_t *narrow = (int8_t *)xmalloc((size_t)rows * channels);
  for (int i = 0; i < rows; i++) memcpy(narrow + (size_t)i * channels, w + (size_t)i * pitch, channels);
  return narrow;
}

static inline CpuInt8 *cpu_int8_plan(const Node *node, const OpArrays *a) {
  const CpuInt8Block *b = cpu_int8_block(node);
  const Int8Conv *own = &b->was.conv;
  const int8_t *w = (const int8_t *)a->param[INT8_CONV_WEIGHT];
  const CpuInt8End end = {a->param[INT8_CONV_SCALE],
                          (const int32_t *)a->param[INT8_CONV_BIAS],
                          own->middle,
                          own->added_scale,
                          own->relu != 0,
                          node->type == DTYPE_FLOAT32,
                          own->x_positive != 0,
                          b->y_positive,
                          own->added_positive != 0};
  CpuInt8 *plan;
  Error err;
  int status;
  Conv2dShape s = own->shape;
  CpuShape x = b->x;
  s.k = b->y.c;
  if (cpu_int8_is_linear(own)) {
    x.c = int8_channels(x.c); /* as the weights have them */
    status = cpu_int8_linear_open(&plan, x, s.k, w, end, &err);
  } else if (s.groups > 1) {
    status = cpu_int8_conv2d_open(&plan, s, x, b->y, w, end, &err);
  } else {
    int8_t *narrow = cpu_int8_narrow_weights(w, s.k * s.r * s.s, x.c, s.c);
    s.c = x.c;
    status = cpu_int8_conv2d_open(&plan, s, x, b->y, narrow, end, &err);
    free(narrow);
  }
  if (status != 0) die("%s: %s", node->name, err.message);
  return plan;
}

/* Threads with other samples may come here at once. */
static inline CpuInt8 *cpu_int8_plan_once(const Node *node, const OpArrays *a) {
  CpuInt8Kept *kept = (CpuInt8Kept *)node->kept;
  CpuInt8 *plan = __atomic_load_n(&kept->plan, __ATOMIC_ACQUIRE);
  if (plan != NULL) return plan;
#pragma omp critical(cpu_int8_plans)
  {
    plan = __atomic_load_n(&kept->plan, __ATOMIC_ACQUIRE);
    if (plan == NULL) {
      plan = cpu_int8_plan(node, a);
      __atomic_store_n(&kept->plan, plan, __ATOMIC_RELEASE);
    }
  }
  return plan;
}

static inline void cpu_int8_conv_forward(const Context *, const Node *node, const OpArrays *a) {
  const CpuInt8 *plan = cpu_int8_plan_once(node, a);
  const int threads = cpu_int8_threads(), floats = node->type == DTYPE_FLOAT32;
  cpu_int8_run(plan, floats ? a->workspace : a->y, a->x[0], node->inputs > 1 ? a->x[1] : NULL, a->batch, threads);
  if (floats) cpu_unpack(a->y, a->workspace, cpu_int8_block(node)->y, a->batch, threads);
}

static inline size_t cpu_int8_conv_floats(const Context *, const Node *node, int batch) {
  return node->type == DTYPE_FLOAT32 ? cpu_count(cpu_int8_block(node)->y) * (size_t)batch : 0;
}

/* ----------------------------------------------------------------------------------------------------------- others */

static inline void cpu_int8_quantize_forward(const Context *, const Node *node, const OpArrays *a) {
  const CpuInt8Block *b = cpu_int8_block(node);
  cpu_int8_quantize(a->y, a->x[0], b->was.quantize.scale, b->y_positive, b->y, a->batch, cpu_int8_threads());
}

static inline void cpu_int8_dequantize_forward(const Context *, const Node *node, const OpArrays *a) {
  const CpuInt8Block *b = cpu_int8_block(node);
  const Int8Quantize *own = &b->was.quantize;
  cpu_int8_dequantize(a->y, a->x[0], own->scale, own->positive != 0, b->x, a->batch, cpu_int8_threads());
}

static inline void cpu_int8_pool_forward(const Context *, const Node *node, const OpArrays *a) {
  const CpuInt8Block *b = cpu_int8_block(node);
  const Int8Pool *own = &b->was.pool;
  const Pool2dShape s = own->shape;
  const CpuInt8Pool pool = {
      {s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.pad_h, s.pad_w, own->unit != 0, own->include_pad != 0},
      own->unit,
      own->x_positive != 0,
      b->y_positive};
  cpu_int8_pool2d_run(a->y, b->y, a->x[0], b->x, pool, a->batch, cpu_int8_threads());
}

static inline void cpu_int8_add_forward(const Context *, const Node *node, const OpArrays *a) {
  const CpuInt8Block *b = cpu_int8_block(node);
  const Int8Add *own = &b->was.add;
  const CpuInt8Add add = {own->scale_a,         own->scale_b,         own->relu != 0,
                          own->a_positive != 0, own->b_positive != 0, b->y_positive};
  cpu_int8_add_run(a->y, a->x[0], a->x[1], b->y, add, a->batch, cpu_int8_threads());
}

inline const OpKeeping cpu_int8_conv_op = {
    {"QLinearConv", 0, OP_KEEPS, NULL, cpu_int8_conv_floats, cpu_int8_conv_forward, cpu_int8_no_backward},
    cpu_int8_open,
    cpu_int8_close_kept};
inline const Op cpu_int8_quantize_op = {"QuantizeLinear",    0, 0, NULL, NULL, cpu_int8_quantize_forward,
                                        cpu_int8_no_backward};
inline const Op cpu_int8_dequantize_op = {"DequantizeLinear",  0, 0, NULL, NULL, cpu_int8_dequantize_forward,
                                          cpu_int8_no_backward};
inline const Op cpu_int8_pool_op = {"QLinearPool", 0, 0, NULL, NULL, cpu_int8_pool_forward, cpu_int8_no_backward};
inline const Op cpu_int8_add_op = {"QLinearAdd", 0, 0, NULL, NULL, cpu_int8_add_forward, cpu_int8_no_backward};

/* --------------------------------------------------------------------------------------------------------- the pass */

static inline const Op *cpu_int8_op_of(const Node *node) {
  return node->op == &int8_conv_op         ? &cpu_int8_conv_op.op
         : node->op == &int8_quantize_op   ? &cpu_int8_quantize_op
         : node->op == &int8_dequantize_op ? &cpu_int8_dequantize_op
         : node->op == &int8_pool_op       ? &cpu_int8_pool_op
         : node->op == &int8_add_op        ? &cpu_int8_add_op
                                           : NULL;
}

static inline bool cpu_int8_is_narrow(const Node *node) {
  return node->type == DTYPE_INT8 || node->type == DTYPE_UINT8;
}

/* Whether the kernels compute all that has to do with int8 in the graph. */
static inline bool cpu_int8_blocks_fit(const Graph *g) {
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    const Int8Pool *pool = (const Int8Pool *)node->attributes.bytes;
    const bool other = cpu_int8_op_of(node) == NULL;
    if (other && cpu_int8_is_narrow(node)) return false;
    for (int k = 0; k < node->inputs; k++)
      if (other && cpu_int8_is_narrow(&g->nodes[node->input[k]])) return false;
    if (node->shape.rank != 1 && node->shape.rank != 3 && !other) return false;
    if (node->op == &int8_pool_op &&
        (pool->shape.dilation_h != 1 || pool->shape.dilation_w != 1 || (pool->shape.ceil_mode && pool->include_pad)))
      return false;
  }
  return true;
}

static inline int cpu_int8_family(const int *family, int i) {
  while (family[i] != i) i = family[i];
  return i;
}

/* border[i] at the number of i's family. */
static inline void cpu_int8_borders(const Graph *g, int *family, int *border) {
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    family[i] = i;
    border[i] = 0;
    const bool narrow = cpu_int8_is_narrow(node);
    if (node->op == &int8_conv_op && node->inputs > 1 && narrow)
      family[cpu_int8_family(family, i)] = cpu_int8_family(family, node->input[1]);
    for (int k = 0; k < 2 && node->op == &int8_add_op; k++)
      family[cpu_int8_family(family, node->input[k])] = cpu_int8_family(family, i);
  }
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    if (node->op != &int8_conv_op) continue;
    const Conv2dShape s = ((const Int8Conv *)node->attributes.bytes)->shape;
    const int most = s.padding_h > s.padding_w ? s.padding_h : s.padding_w;
    int *own = &border[cpu_int8_family(family, node->input[0])];
    if (*own < most) *own = most;
  }
}

/* Of a node as it was, (C,H,W) or (features). */
static inline CpuShape cpu_int8_shape(Shape s, int border) {
  return s.rank == 3 ? cpu_shape(s.dim[0], s.dim[1], s.dim[2], border) : cpu_shape(s.dim[0], 1, 1, border);
}

/* 1: all int8 operations of g compute in blocks now. 0: some have no such kernel, and g is as it was. */
static inline int cpu_int8_blocks(Graph *g) {
  if (!cpu_int8_blocks_fit(g)) return 0;
  const size_t n = (size_t)g->count + 1;
  int *family = (int *)xcalloc(n, sizeof *family), *border = (int *)xcalloc(n, sizeof *border);
  CpuShape *shape = (CpuShape *)xcalloc(n, sizeof *shape);
  cpu_int8_borders(g, family, border);
  for (int i = 0; i < g->count; i++) shape[i] = cpu_int8_shape(g->nodes[i].shape, border[cpu_int8_family(family, i)]);
  for (int i = 0; i < g->count; i++) {
    Node *node = &g->nodes[i];
    const Op *op = cpu_int8_op_of(node);
    if (op == NULL) continue;
    CpuInt8Block b;
    memset(&b, 0, sizeof b);
    b.x = shape[node->input[0]];
    b.y = shape[i];
    b.y_positive = node->type == DTYPE_UINT8;
    memcpy(&b.was, node->attributes.bytes, sizeof b.was);
    node->op = op;
    if (cpu_int8_is_narrow(node)) {
      const Shape blocks = {4, {cpu_blocks(b.y), b.y.h + 2 * b.y.border, b.y.w + 2 * b.y.border, CPU_BLOCK}};
      node->shape = blocks;
      node->layout = LAYOUT_PLAIN;
      if (cpu_int8_bytes() == 2) node->type = DTYPE_INT16;
    }
    memcpy(node->attributes.bytes, &b, sizeof b);
  }
  free(family);
  free(border);
  free(shape);
  return 1;
}

#endif /* PHASE5_PRODUCTION_CPU_INT8_BLOCKS_CUH */
