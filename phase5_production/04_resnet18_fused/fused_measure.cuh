/* fused_measure.cuh - what a rung costs and how far it is from float64: for the program resnet18_fused. */
#ifndef PHASE5_PRODUCTION_FUSED_MEASURE_CUH
#define PHASE5_PRODUCTION_FUSED_MEASURE_CUH

#include "common/timer.h"
#include "phase5_production/04_resnet18_fused/fused_rungs.cuh"

enum { FUSED_ROUNDS = 15, FUSED_INFERENCES = 10, FUSED_LAUNCHED = 4 };

/* Of one inference. Times in seconds; NAN where there are none: an emulated GPU has no speed. */
typedef struct FusedResult {
  const FusedRung *rung;
  int kernels;
  double bytes, error; /* bytes: what passes between operations */
  double memory;       /* bytes: parameters, arrays, scratch */
  double gpu;          /* its kernels, without waiting for the host: recorded in a graph */
  double wall;         /* from one inference to the next, launched as the rung does */
  double host;         /* what the host needs to launch it */
} FusedResult;

/* The largest difference of `n` logits to float64, as a part of the largest of them. */
static inline double fused_error(const float *logits, const double *expected, size_t n) {
  double most = 0, worst = 0;
  for (size_t i = 0; i < n; i++) {
    if (isnan(logits[i])) return NAN;
    most = fmax(most, fabs(expected[i]));
    worst = fmax(worst, fabs(logits[i] - expected[i]));
  }
  return worst / most;
}

/* As a part of the largest logit, what rounding may do: of weights, and of each array between operations. */
static inline double fused_tolerance(FusedType type) {
  return type == FUSED_FP32 ? 2e-5 : type == FUSED_TF32 ? 4e-3 : type == FUSED_FP16 ? 6e-3 : 5e-2;
}

static inline double fused_median(double *samples) { return timer_stats(samples, FUSED_ROUNDS).median; }

/* Seconds from one inference to the next, on the GPU's clock. */
static inline double fused_time(Fused *f) {
  GpuTimer timer = gpu_timer_open();
  double samples[FUSED_ROUNDS];
  for (int round = -2; round < FUSED_ROUNDS; round++) { /* two warm up */
    gpu_timer_start(&timer);
    for (int i = 0; i < FUSED_INFERENCES; i++) fused_infer(f);
    const double seconds = gpu_timer_stop(&timer) / FUSED_INFERENCES;
    if (round >= 0) samples[round] = seconds;
  }
  gpu_timer_close(&timer);
  return fused_median(samples);
}

/* Seconds of the host until all is launched; it waits for nothing, as long as there are few. */
static inline double fused_host_time(Fused *f) {
  double samples[FUSED_ROUNDS];
  for (int round = -2; round < FUSED_ROUNDS; round++) {
    device_synchronize(DEVICE_GPU);
    const double start = seconds_now();
    for (int i = 0; i < FUSED_LAUNCHED; i++) fused_infer(f);
    const double seconds = (seconds_now() - start) / FUSED_LAUNCHED;
    if (round >= 0) samples[round] = seconds;
  }
  device_synchronize(DEVICE_GPU);
  return fused_median(samples);
}

static inline void fused_measure_times(FusedResult *result, Fused *f) {
  result->wall = fused_time(f);
  result->host = fused_host_time(f);
  if (f->graph.exec) {
    result->gpu = result->wall;
    return;
  }
  fused_record(f);
  result->gpu = fused_time(f);
  step_graph_close(&f->graph);
}

/* Seconds of node i alone, many times in a row. */
static inline double fused_node_time(const Fused *f, int i) {
  GpuTimer timer = gpu_timer_open();
  StepGraph graph;
  double samples[FUSED_ROUNDS];
  memset(&graph, 0, sizeof graph);
  step_graph_begin(&graph);
  for (int j = 0; j < FUSED_INFERENCES; j++) model_forward_node(&f->model, i, f->batch);
  step_graph_end(&graph);
  for (int round = -2; round < FUSED_ROUNDS; round++) {
    gpu_timer_start(&timer);
    step_graph_run(&graph);
    const double seconds = gpu_timer_stop(&timer) / FUSED_INFERENCES;
    if (round >= 0) samples[round] = seconds;
  }
  step_graph_close(&graph);
  gpu_timer_close(&timer);
  return fused_median(samples);
}

/* Each operation of the rung: its time, alone, and the rates that this means. */
static inline void fused_print_operations(FILE *out, const Fused *f) {
  double sum = 0;
  fprintf(out, "\n%-24s%-20s%-14s%10s%10s%10s\n", f->rung->name, "operation", "output", "us", "TFLOP/s", "GB/s");
  for (int i = 0; i < f->model.graph->count; i++) {
    const Node *node = &f->model.graph->nodes[i];
    if (!fused_node_runs(node)) continue;
    const double seconds = fused_node_time(f, i), bytes = fused_node_bytes(f->model.graph, i, f->batch);
    fprintf(out, "%-24s%-20s%-14s%10.2f", node->name, node->op->name, shape_text(node->shape).text, seconds * 1e6);
    fprintf(out, "%10.1f%10.0f\n", node->flops * f->batch / seconds * 1e-12, bytes / seconds * 1e-9);
    sum += seconds;
  }
  fprintf(out, "%-58s%10.2f\n", "sum", sum * 1e6);
}

#endif /* PHASE5_PRODUCTION_FUSED_MEASURE_CUH */
