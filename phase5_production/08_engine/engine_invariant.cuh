/* engine_invariant.cuh - --batch-invariant on a GPU: of which graphs each sum is in the same order, however large the
 * batch is, and whether that holds.
 *
 * Most kernels compute an output in an order that follows from the layer alone; which tile it lies in does not matter.
 * Two things may depend on the batch: how the kernel with wgmma copies its boxes, which the nodes can fix
 * (CONV2D_INFER_ONE_ORDER), and into how many parts a sum is divided, which kernels of float32 do. So a graph of
 * operations of the first kind is run as it is. Any other is run in groups of ENGINE_GROUP samples (engine_state.cuh).
 */
#ifndef PHASE5_PRODUCTION_ENGINE_INVARIANT_CUH
#define PHASE5_PRODUCTION_ENGINE_INVARIANT_CUH

#include "phase5_production/08_engine/engine_state.cuh"
#include "phase5_production/08_engine/half_infer_op.cuh"

static inline int engine_has_one_order(const Op *op) {
  const Op *const known[] = {&conv2d_infer_half_op,
                             &conv2d_relu_half_op,
                             &residual_end_half_op,
                             &conv2d_tf32_op,
                             &conv2d_relu_tf32_op,
                             &residual_end_tf32_op,
                             &stem_pool_half_op,
                             &stem_pool_tf32_op,
                             &pool_linear_half_op,
                             &pool_linear_tf32_op,
                             &add_relu_one_half_op,
                             &add_relu_op,
                             &add_op,
                             &relu_half_op,
                             &max_pool2d_op,
                             &max_pool2d_half_op,
                             &relu_max_pool2d_half_op,
                             &global_avg_pool2d_half_op,
                             &add_half_op,
                             &add_relu_half_op,
                             &cast_op,
                             &channels_last_op,
                             &depthwise_half_op,
                             &clip_half_op,
                             &concat_half_op,
                             &activation_ops[ACTIVATION_RELU]};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (op == known[i]) return 1;
  return 0;
}

/* Whether every operation of the graph has; its convolutions are told to. */
static inline int engine_fix_order(Graph *g) {
  for (int i = 0; i < g->count; i++)
    if (fused_node_runs(&g->nodes[i]) && !engine_has_one_order(g->nodes[i].op)) return 0;
  for (int i = 0; i < g->count; i++) {
    const Op *op = g->nodes[i].op;
    if (op == &conv2d_infer_half_op || op == &conv2d_relu_half_op || op == &residual_end_half_op ||
        op == &conv2d_tf32_op || op == &conv2d_relu_tf32_op || op == &residual_end_tf32_op)
      g->nodes[i].attributes.bytes[CONV2D_INFER_ONE_ORDER] = 1;
  }
  return 1;
}

/* All outputs of the first `samples` of a batch, to be freed. */
static inline float *engine_outputs_of(const EngineShape *shape, int batch, int samples, size_t *floats) {
  const Model *m = &shape->model;
  const Graph *g = m->graph;
  size_t at = 0;
  *floats = 0;
  for (int i = 0; i < engine_graph_outputs(g); i++) *floats += engine_floats(g, engine_output_node(g, i), samples);
  float *y = (float *)xmalloc((*floats + 1) * sizeof *y);
  engine_launch_nodes(m, batch);
  device_synchronize(m->context.device);
  for (int i = 0; i < engine_graph_outputs(g); i++) {
    const int node = engine_output_node(g, i);
    const size_t count = engine_floats(g, node, samples);
    device_download(m->context.device, y + at, model_output(m, node), count * sizeof *y);
    at += count;
  }
  return y;
}

/* Whether random samples get the same bits in the largest batch and in small ones: what is claimed above is looked at
 * on the device that is there. */
static inline int engine_order_holds(const EngineShape *shape) {
  const int most = shape->model.max_batch;
  size_t floats;
  int holds = 1;
  implementation_fill(&shape->model);
  for (int batch = 1; batch < most && holds; batch = batch * 3 + 1) {
    float *all = engine_outputs_of(shape, most, batch, &floats), *few = engine_outputs_of(shape, batch, batch, &floats);
    holds = memcmp(all, few, floats * sizeof *all) == 0;
    free(all);
    free(few);
  }
  return holds;
}

#endif /* PHASE5_PRODUCTION_ENGINE_INVARIANT_CUH */
