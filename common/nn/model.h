/* model.h - a graph with memory: parameters, gradients, the optimizer's state, and one arena for all that passes by.
 *
 *     Model model;
 *     if (model_open(&model, graph, context, &sgd, max_batch, MODEL_TRAIN, &err) != 0) ...
 *     model_init(&model, seed);
 *     ... fill model_input(&model, 0) and model_targets(&model, 0) ...
 *     model_train_step(&model, batch);
 *
 * Everything is allocated once, by model_open(), which refuses what does not fit before it allocates anything. A step
 * neither allocates nor waits: losses are added up on the device, and model_read_totals() fetches the sums. All state
 * is in the Model, so several models, in several host threads and on several GPUs, do not meet.
 *
 * All trained parameters lie in one array, those with weight decay first, their gradients and the optimizer's slots in
 * arrays of the same layout: an update is one launch.
 *
 *     model_arrays.h   what a Model is, and where its arrays lie
 *     model_open.h     its memory, its first parameters
 *     model_step.h     what a step does; to be read first
 */
#ifndef COMMON_NN_MODEL_H
#define COMMON_NN_MODEL_H

#include "common/nn/model_open.h"
#include "common/nn/model_step.h"

static inline double model_mib(size_t bytes) { return (double)bytes / 1048576.0; }

/* A line per node: output, trained parameters, FLOPs of forward for one sample, bytes kept for backward; the sums. */
static inline void model_print_summary(FILE *out, const Model *m) {
  size_t parameters = 0, kept = 0;
  double flops = 0;
  fprintf(out, "%-24s %-16s %-14s %12s %12s %14s\n", "node", "operation", "output", "trained", "MFLOP", "kept, bytes");
  for (int i = 0; i < m->graph->count; i++) {
    const Node *node = &m->graph->nodes[i];
    size_t count = 0;
    for (int k = 0; k < node->params; k++) count += node->param[k].trained ? node->param[k].count : 0;
    const size_t bytes = m->use == MODEL_TRAIN ? plan_kept_bytes(&m->plan, i) : 0;
    fprintf(out, "%-24s %-16s %-14s %12zu %12.3f %14zu\n", node->name, node->op ? node->op->name : "input",
            shape_text(node->shape).text, count, node->flops * 1e-6, bytes);
    parameters += count;
    kept += bytes;
    flops += node->flops;
  }
  fprintf(out, "%-24s %-16s %-14s %12zu %12.3f %14zu\n", "sum", "", "", parameters, flops * 1e-6, kept);
  const double weights = model_mib(m->parameter_count * sizeof(float)), infer = model_inference_bytes(m) / 1048576;
  if (m->use == MODEL_TRAIN)
    fprintf(out, "training, batch %d: %.2f MiB, of which %.2f MiB pass by (%.2f MiB are alive at one moment)\n",
            m->max_batch, model_bytes(m) / 1048576, model_mib(m->plan.arena_bytes), model_mib(m->plan.live_bytes));
  fprintf(out, "inference, batch %d: %.2f MiB; parameters: %.2f MiB\n", m->max_batch, infer, weights);
}

#endif /* COMMON_NN_MODEL_H */
