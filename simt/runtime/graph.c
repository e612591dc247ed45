/* graph.c - CUDA graphs: work that is written down once and launched many times.
 *
 * A graph is the list of its nodes in the order in which they were captured or added. That is one of the orders that
 * its dependencies permit, since a node can only depend on those that existed before it; a launch runs them one by one.
 * Arguments of kernels were copied when the node was made, as on a GPU.
 */
#include "host.h"

#define GRAPH_MAGIC 0x62a9fu
#define EXECUTABLE_MAGIC 0xe8ec3u

struct CUgraphNode_st {
  Work work;
  enum cudaGraphNodeType type;
  size_t index;
};

struct CUgraph_st {
  unsigned magic;
  cudaGraphNode_t *nodes;
  size_t count;
};

struct CUgraphExec_st {
  unsigned magic;
  atomic_int uses; /* its owner, and each launch that is queued */
  Work *works;
  enum cudaGraphNodeType *types;
  size_t count;
};

static void *need(void *memory) {
  if (memory) return memory;
  fputs("=== simt: out of memory for graphs\n", stderr);
  abort();
}

static int is_graph(cudaGraph_t graph) { return graph && graph->magic == GRAPH_MAGIC; }
static int is_executable(cudaGraphExec_t executable) { return executable && executable->magic == EXECUTABLE_MAGIC; }

cudaGraph_t simt_graph_new(void) {
  cudaGraph_t graph = need(calloc(1, sizeof *graph));
  graph->magic = GRAPH_MAGIC;
  return graph;
}

static void run_executable(void *context);
static void release(cudaGraphExec_t executable);
/* The executable graph that a node of cudaGraphNodeTypeGraph runs; the node is one of its users. */
static cudaGraphExec_t child_of(const Work *work) { return *(cudaGraphExec_t *)work->context; }
static void do_nothing(void *context) { (void)context; }

static enum cudaGraphNodeType type_of(const Work *work) {
  if (work->run == do_nothing) return cudaGraphNodeTypeEmpty;
  if (work->run == run_executable) return cudaGraphNodeTypeGraph;
  if (strncmp(work->what, "cudaMemcpy", 10) == 0) return cudaGraphNodeTypeMemcpy;
  if (strncmp(work->what, "cudaMemset", 10) == 0) return cudaGraphNodeTypeMemset;
  if (strcmp(work->what, "cudaLaunchHostFunc") == 0) return cudaGraphNodeTypeHost;
  return cudaGraphNodeTypeKernel;
}

void simt_graph_append(cudaGraph_t graph, const Work *work) {
  cudaGraphNode_t node = need(calloc(1, sizeof *node));
  node->work = simt_work_copy(work);
  node->type = type_of(work);
  node->index = graph->count;
  if ((graph->count & (graph->count - 1)) == 0)
    graph->nodes = need(realloc(graph->nodes, (2 * graph->count + 1) * sizeof *graph->nodes));
  graph->nodes[graph->count++] = node;
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags) {
  RETURN_IF_STICKY;
  if (!graph || flags) return simt_error(cudaErrorInvalidValue);
  *graph = simt_graph_new();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!is_graph(graph)) return simt_error(cudaErrorInvalidValue);
  for (size_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i]->type == cudaGraphNodeTypeGraph) release(child_of(&graph->nodes[i]->work));
    simt_work_free(&graph->nodes[i]->work);
    free(graph->nodes[i]);
  }
  graph->magic = 0;
  free(graph->nodes);
  free(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  RETURN_IF_STICKY;
  if (!clone || !is_graph(graph)) return simt_error(cudaErrorInvalidValue);
  *clone = simt_graph_new();
  for (size_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i]->type == cudaGraphNodeTypeGraph) atomic_fetch_add(&child_of(&graph->nodes[i]->work)->uses, 1);
    simt_graph_append(*clone, &graph->nodes[i]->work);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  RETURN_IF_STICKY;
  if (!is_graph(graph) || !count) return simt_error(cudaErrorInvalidValue);
  for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < graph->count ? graph->nodes[i] : NULL;
  if (!nodes || *count > graph->count) *count = graph->count;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
  RETURN_IF_STICKY;
  if (!node || !type) return simt_error(cudaErrorInvalidValue);
  *type = node->type;
  return cudaSuccess;
}

/* ---- nodes by hand: the ordinary call, on a stream that only writes down ---- */

static cudaError_t added(cudaError_t error, cudaGraphNode_t *node, cudaGraph_t graph, size_t count_before) {
  if (error != cudaSuccess) return error;
  if (graph->count == count_before) /* a copy of no bytes: still a node */
    simt_graph_append(graph, &(Work){.run = do_nothing, .what = "empty"});
  *node = graph->nodes[graph->count - 1];
  return cudaSuccess;
}

#define ADD(call)                                                                                        \
  do {                                                                                                   \
    RETURN_IF_STICKY;                                                                                    \
    if (!node || !is_graph(graph) || (count && !dependencies)) return simt_error(cudaErrorInvalidValue); \
    size_t before = graph->count;                                                                        \
    cudaStream_t stream = simt_recorder_open(graph);                                                     \
    cudaError_t error = (call);                                                                          \
    simt_recorder_close(stream);                                                                         \
    return simt_error(added(error, node, graph, before));                                                \
  } while (0)

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaKernelNodeParams *p) {
  if (!p || p->extra) return simt_error(cudaErrorInvalidValue);
  ADD(cudaLaunchKernel(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes, stream));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaMemcpy3DParms *p) {
  ADD(cudaMemcpy3DAsync(p, stream));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                     size_t count, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  ADD(cudaMemcpyAsync(to, from, bytes, kind, stream));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaMemsetParams *p) {
  if (!p) return simt_error(cudaErrorInvalidValue);
  ADD(simt_memset_elements(p, stream));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                 size_t count, const struct cudaHostNodeParams *p) {
  if (!p) return simt_error(cudaErrorInvalidValue);
  ADD(cudaLaunchHostFunc(stream, p->fn, p->userData));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                  size_t count) {
  (void)count, (void)dependencies;
  RETURN_IF_STICKY;
  if (!node || !is_graph(graph)) return simt_error(cudaErrorInvalidValue);
  return simt_error(added(cudaSuccess, node, graph, graph->count));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                       size_t count, cudaGraph_t child) {
  cudaGraphExec_t executable;
  (void)count, (void)dependencies;
  RETURN_IF_STICKY;
  if (!node || !is_graph(graph) || !is_graph(child)) return simt_error(cudaErrorInvalidValue);
  cudaError_t error = cudaGraphInstantiate(&executable, child, 0);
  if (error != cudaSuccess) return error;
  simt_graph_append(graph, &(Work){run_executable, &executable, sizeof executable, "graph", NULL, 0});
  return simt_error(added(cudaSuccess, node, graph, 0));
}

/* ---- executable graphs ---- */

static void fill(cudaGraphExec_t e, cudaGraph_t graph) {
  e->count = graph->count;
  e->works = need(calloc(graph->count + 1, sizeof *e->works));
  e->types = need(calloc(graph->count + 1, sizeof *e->types));
  for (size_t i = 0; i < graph->count; i++) {
    e->works[i] = simt_work_copy(&graph->nodes[i]->work);
    e->types[i] = graph->nodes[i]->type;
    if (e->types[i] == cudaGraphNodeTypeGraph) atomic_fetch_add(&child_of(&e->works[i])->uses, 1);
  }
}

static void empty(cudaGraphExec_t e) {
  for (size_t i = 0; i < e->count; i++) {
    if (e->types[i] == cudaGraphNodeTypeGraph) release(child_of(&e->works[i]));
    simt_work_free(&e->works[i]);
  }
  free(e->works);
  free(e->types);
}

static void release(cudaGraphExec_t e) {
  if (atomic_fetch_sub(&e->uses, 1) > 1) return;
  empty(e);
  free(e);
}

static void run_executable(void *context) {
  cudaGraphExec_t e = *(cudaGraphExec_t *)context;
  for (size_t i = 0; i < e->count && simt_error_pending() == cudaSuccess; i++) e->works[i].run(e->works[i].context);
}

static void run_and_release(void *context) {
  run_executable(context);
  release(*(cudaGraphExec_t *)context);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
  RETURN_IF_STICKY;
  if (!executable || !is_graph(graph) || flags > 15) return simt_error(cudaErrorInvalidValue);
  cudaGraphExec_t e = need(calloc(1, sizeof *e));
  e->magic = EXECUTABLE_MAGIC;
  atomic_store(&e->uses, 1);
  fill(e, graph);
  *executable = e;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t stream) {
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (!is_executable(e)) return simt_error(cudaErrorInvalidValue);
  if (simt_stream_captures(stream)) return simt_error(cudaErrorStreamCaptureUnsupported);
  atomic_fetch_add(&e->uses, 1);
  cudaError_t error =
      simt_stream_submit(stream, run_and_release, &e, sizeof e, "cudaGraphLaunch", site.file, site.line);
  if (error != cudaSuccess && error != simt_error_pending()) release(e); /* nobody took it */
  return simt_error(error);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t e, cudaStream_t stream) {
  (void)stream;
  RETURN_IF_STICKY;
  return simt_error(is_executable(e) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
  if (!is_executable(e)) return simt_error(cudaErrorInvalidValue);
  e->magic = 0;
  release(e);
  return cudaSuccess;
}

/* The same kinds of nodes in the same order may have other arguments. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t e, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result) {
  cudaGraphExecUpdateResultInfo info = {cudaGraphExecUpdateSuccess, NULL, NULL};
  RETURN_IF_STICKY;
  if (!is_executable(e) || !is_graph(graph)) return simt_error(cudaErrorInvalidValue);
  simt_stream_drain();
  if (graph->count != e->count) info.result = cudaGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < e->count && info.result == cudaGraphExecUpdateSuccess; i++) {
    if (e->types[i] == graph->nodes[i]->type) continue;
    info.result = cudaGraphExecUpdateErrorNodeTypeChanged;
    info.errorNode = graph->nodes[i];
  }
  if (result) *result = info;
  if (info.result != cudaGraphExecUpdateSuccess) return simt_error(cudaErrorGraphExecUpdateFailure);
  empty(e);
  fill(e, graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *p) {
  RETURN_IF_STICKY;
  if (!is_executable(e) || !node || !p || node->index >= e->count || e->types[node->index] != cudaGraphNodeTypeKernel)
    return simt_error(cudaErrorInvalidValue);
  cudaGraphNode_t added_node;
  cudaGraph_t one = simt_graph_new();
  cudaError_t error = cudaGraphAddKernelNode(&added_node, one, NULL, 0, p);
  simt_stream_drain();
  if (error == cudaSuccess) {
    Work before = e->works[node->index];
    e->works[node->index] = one->nodes[0]->work;
    one->nodes[0]->work = before;
  }
  cudaGraphDestroy(one);
  return simt_error(error);
}
