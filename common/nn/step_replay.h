/* step_replay.h - training steps that are recorded once and launched again and again: no kernel's arguments change.
 *
 *     StepReplay replay;
 *     if (step_replay_check(&net, &err) == 0)
 *       step_replay_open(&replay, &net, &set, batch, batch, epoch_steps);         // records
 *     step_replay_load(&replay, values, steps, image);                            // once per epoch
 *     while (steps_left > 0) steps_left -= step_replay_launch(&replay, steps_left); // one launch each
 *
 * Recording each step anew and updating a graph by it (step_graph.h) costs the host as much time as a small network's
 * step costs the GPU. What differs from step to step is little: the place in the data set, the learning rate and Adam's
 * bias corrections. Here kernels read them in the device's memory. A window of STEP_REPLAY_STEPS steps has their
 * StepValues and the order of their images; a kernel at the beginning of each launch fills it from the epoch's, at a
 * position that it advances. So a graph of STEP_REPLAY_STEPS steps is launched again and again, and one of a single
 * step for what is left. An augmentation reads the epoch's key in the device's memory, too. The bits are those of steps
 * that are launched kernel by kernel.
 *
 * step_replay_check() says which networks: the optimizer reads StepValues, and no operation draws random numbers by the
 * number of the step (OP_DRAWS).
 */
#ifndef COMMON_NN_STEP_REPLAY_H
#define COMMON_NN_STEP_REPLAY_H

#include "common/nn/device_set.h"
#include "common/nn/step_graph.h"

enum { STEP_REPLAY_STEPS = 10, STEP_REPLAY_BLOCK = 256 };

/* On the device: where in the epoch the next launch is. */
typedef struct StepPlace {
  uint32_t step, image;
} StepPlace;

typedef struct StepReplay {
  Model *net;
  const DeviceSet *set;
  int batch, part;            /* images of a step, and of a part of it (device_set_train_step()) */
  StepValues *values, *epoch; /* of the window's steps; of the epoch's from the position on that was loaded */
  uint32_t *order;            /* (STEP_REPLAY_STEPS, batch): the window's images */
  StepPlace *place;
  int room;            /* steps in `epoch` */
  StepGraph many, one; /* of STEP_REPLAY_STEPS steps, of one */
} StepReplay;

/* -1: the steps of this network cannot be recorded once; the message says why. err may be NULL. */
static inline int step_replay_check(const Model *net, Error *err) {
  if (net->context.device != DEVICE_GPU) return error_set(err, "the network is not on a GPU");
  if (net->optimizer == NULL) return error_set(err, "the network has no optimizer");
  if (!(net->optimizer->reads & OPTIMIZER_READS_VALUES))
    return error_set(err, "%s takes the learning rate as an argument of its kernels", net->optimizer->name);
  for (int i = 0; i < net->graph->count; i++) {
    const Node *node = &net->graph->nodes[i];
    if (node->op && (node->op->flags & OP_DRAWS))
      return error_set(err, "%s draws other random numbers in each step", node->name);
  }
  return 0;
}

#ifdef __CUDACC__
/* One block: the next `steps` steps of `batch` images come into the window, and the place goes on. */
static __global__ void step_replay_window_kernel(StepValues *values, uint32_t *order, StepPlace *place,
                                                 const StepValues *epoch, const uint32_t *epoch_order, int steps,
                                                 int batch) {
  const StepPlace here = *place;
  for (int i = threadIdx.x; i < steps; i += blockDim.x) values[i] = epoch[here.step + i];
  for (int i = threadIdx.x; i < steps * batch; i += blockDim.x) order[i] = epoch_order[here.image + i];
  __syncthreads(); /* all threads have read the place */
  if (threadIdx.x == 0) {
    place->step = here.step + steps;
    place->image = here.image + steps * batch;
  }
}

/* Into the graph, in the place of what was there. */
static inline void step_replay_record(StepReplay *r, StepGraph *graph, int steps) {
  Model *net = r->net;
  const Context before = net->context;
  DeviceSet window = *r->set;
  window.order = r->order;
  step_graph_begin(graph);
  step_replay_window_kernel<<<1, STEP_REPLAY_BLOCK>>>(r->values, r->order, r->place, r->epoch, r->set->order, steps,
                                                      r->batch);
  CUDA_CHECK_LAUNCH();
  for (int i = 0; i < steps; i++) {
    net->context.values = &r->values[i];
    device_set_train_step(&window, net, i * r->batch, r->batch, r->part);
  }
  net->context = before;
  step_graph_end(graph);
}

/* Records: the kernels are loaded then. The set's order may change, and the network's other settings may not.
 * `epoch_steps`: room for so many steps of an epoch. */
static inline void step_replay_open(StepReplay *r, Model *net, const DeviceSet *set, int batch, int part,
                                    int epoch_steps) {
  memset(r, 0, sizeof *r);
  r->net = net;
  r->set = set;
  r->batch = batch;
  r->part = part;
  r->room = epoch_steps;
  r->values = (StepValues *)device_alloc(DEVICE_GPU, STEP_REPLAY_STEPS * sizeof *r->values);
  r->epoch = (StepValues *)device_alloc(DEVICE_GPU, (size_t)epoch_steps * sizeof *r->epoch);
  r->order = (uint32_t *)device_alloc(DEVICE_GPU, (size_t)STEP_REPLAY_STEPS * batch * sizeof *r->order);
  r->place = (StepPlace *)device_alloc(DEVICE_GPU, sizeof *r->place);
  step_replay_record(r, &r->one, 1);
  step_replay_record(r, &r->many, STEP_REPLAY_STEPS);
}

static inline void step_replay_close(StepReplay *r) {
  if (r->net == NULL) return;
  step_graph_close(&r->one);
  step_graph_close(&r->many);
  device_free(DEVICE_GPU, r->values);
  device_free(DEVICE_GPU, r->epoch);
  device_free(DEVICE_GPU, r->order);
  device_free(DEVICE_GPU, r->place);
  memset(r, 0, sizeof *r);
}

/* The next launches are of the steps from image `image` of the set's order on; values (steps). */
static inline void step_replay_load(StepReplay *r, const StepValues *values, int steps, int image) {
  const StepPlace place = {0, (uint32_t)image};
  if (steps > r->room) die("%d steps in an epoch that was made for %d", steps, r->room);
  device_upload(DEVICE_GPU, r->epoch, values, (size_t)steps * sizeof *values);
  device_upload(DEVICE_GPU, r->place, &place, sizeof place);
}

/* As many of the `left` loaded steps as a graph has; returns how many. Does not wait. */
static inline int step_replay_launch(StepReplay *r, int left) {
  const int steps = left >= STEP_REPLAY_STEPS ? STEP_REPLAY_STEPS : 1;
  step_graph_run(steps == 1 ? &r->one : &r->many);
  r->net->context.step += steps;
  return steps;
}
#endif

#endif /* COMMON_NN_STEP_REPLAY_H */
