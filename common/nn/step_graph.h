/* step_graph.h - a training step as one CUDA graph: its kernels are launched together, and compute the same bits.
 *
 *     StepGraph graph = {0};
 *     step_graph_begin(&graph);
 *     ... launches ...                     // recorded, not run
 *     step_graph_launch(&graph);           // run, in the thread's own stream
 *
 * Arguments of kernels change from step to step: the learning rate, the place in the data set, the number of the step
 * that dropout draws by. So each step is recorded, and cudaGraphExecUpdate() brings its arguments into the graph that
 * was instantiated once. Where it cannot (the last batch is smaller, and another kernel was chosen), the graph is
 * instantiated again. step_replay.h does without recording each step, for networks that permit it.
 *
 * What can be recorded is the thread's own stream, which is the default stream of a program that is compiled with
 * CUDA_API_PER_THREAD_DEFAULT_STREAM, as this library's BUILD file says.
 */
#ifndef COMMON_NN_STEP_GRAPH_H
#define COMMON_NN_STEP_GRAPH_H

#include "common/check.h"

typedef struct StepGraph {
  cudaGraphExec_t exec;
  long steps, instantiated; /* launched; how often an update did not suffice, the first included */
} StepGraph;

static inline void step_graph_begin(StepGraph *graph) {
  (void)graph;
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
}

/* What was recorded is the graph from now on. */
static inline void step_graph_end(StepGraph *graph) {
  cudaGraph_t recorded;
  CUDA_CHECK(cudaStreamEndCapture(cudaStreamPerThread, &recorded));
  int updated = 0;
  if (graph->exec) {
    cudaGraphExecUpdateResultInfo result;
    updated = cudaGraphExecUpdate(graph->exec, recorded, &result) == cudaSuccess;
    if (!updated) {
      (void)cudaGetLastError(); /* the failed update is no error of ours */
      CUDA_CHECK(cudaGraphExecDestroy(graph->exec));
    }
  }
  if (!updated) {
    CUDA_CHECK(cudaGraphInstantiate(&graph->exec, recorded, 0));
    graph->instantiated++;
  }
  CUDA_CHECK(cudaGraphDestroy(recorded));
}

static inline void step_graph_run(StepGraph *graph) {
  CUDA_CHECK(cudaGraphLaunch(graph->exec, cudaStreamPerThread));
  graph->steps++;
}

static inline void step_graph_launch(StepGraph *graph) {
  step_graph_end(graph);
  step_graph_run(graph);
}

static inline void step_graph_close(StepGraph *graph) {
  if (graph->exec) CUDA_CHECK(cudaGraphExecDestroy(graph->exec));
  memset(graph, 0, sizeof *graph);
}

#endif /* COMMON_NN_STEP_GRAPH_H */
