/* sgd_op.cuh - sgd.cuh as an Optimizer of common/nn: one slot, the velocity, by PyTorch's name; and a model that it
 * trains. */
#ifndef PHASE2_MLP_SGD_OP_CUH
#define PHASE2_MLP_SGD_OP_CUH

#include "common/nn/model.h"
#include "phase2_mlp/03_mlp/sgd.cuh"

static inline void sgd_op_step(const Context *context, float *w, float *const *slot, const float *grad, size_t n,
                               size_t decayed, const Hyper *h) {
  const float *recorded = context->values ? &context->values->lr : NULL;
  ON_DEVICE(context->device,
            sgd_step_parts_gpu(w, slot[0], grad, n, decayed, h->lr, recorded, h->momentum, h->weight_decay), {
              sgd_step_cpu_fast(w, slot[0], grad, decayed, h->lr, h->momentum, h->weight_decay);
              sgd_step_cpu_fast(w + decayed, slot[0] + decayed, grad + decayed, n - decayed, h->lr, h->momentum, 0);
            });
}

static const Optimizer sgd = {"sgd", 1, {"momentum_buffer"}, sgd_op_step, OPTIMIZER_READS_VALUES, NULL, NULL};

/* A model of the graph to be trained by SGD. Ends the program with a sentence where the graph is wrong or too large. */
static inline void sgd_model_open(Model *m, Graph *graph, Device device, int max_batch) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  if (model_open(m, graph, context, &sgd, max_batch, MODEL_TRAIN, &err) != 0) die("%s", err.message);
}

static inline void sgd_update(Model *m, float lr, float momentum) {
  m->hyper.lr = lr;
  m->hyper.momentum = momentum;
  model_update(m);
}

static inline void sgd_train_step(Model *m, int batch, float lr, float momentum) {
  m->hyper.lr = lr;
  m->hyper.momentum = momentum;
  model_train_step(m, batch);
}

#endif /* PHASE2_MLP_SGD_OP_CUH */
