/* nncuda_order.cuh - how the kernel of a library gets into order with the program that called it, four ways.
 *
 * The program has put a kernel into its stream that writes x; the library's kernel reads x and writes y; then the
 * program puts a kernel into its stream that reads y. x, y (n).
 *
 *     program    | write x |                       | read y |
 *     library              | y = f(x) |
 *
 *   order_none     the library has a stream of its own, and nothing orders the two: wrong
 *   order_wait     the host waits for the program's stream, and then for the library's: right, and nothing overlaps
 *   order_events   events order the two streams, the host goes on: four calls more
 *   order_given    the kernel is put into the program's stream: no order has to be made
 *
 * order_given is what nncuda.h does: `stream` is an argument. The others are what remains to a library that cannot say
 * where its kernels run.
 */
#ifndef PHASE5_PRODUCTION_NNCUDA_ORDER_CUH
#define PHASE5_PRODUCTION_NNCUDA_ORDER_CUH

#include "common/check.h"
#include "common/error.h"

enum { ORDER_BLOCK = 256, ORDER_PROGRAMS = 2 };

/* One program and its library. */
typedef struct Order {
  float *out, *x, *y; /* (n), on the GPU */
  const float *in;    /* (n), on the GPU */
  int n;
  cudaStream_t program, library;
  cudaEvent_t written, computed; /* to be recorded by order_events() */
} Order;

typedef void OrderVersion(const Order *o);

static __global__ void order_write_kernel(float *x, const float *in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * in[i];
}

static __global__ void order_library_kernel(float *y, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i] + 1;
}

static __global__ void order_read_kernel(float *out, const float *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = y[i] - 3;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void order_cpu(float *out, const float *in, int n) {
  for (int i = 0; i < n; i++) out[i] = 4 * in[i] * in[i] - 2;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Versions: only what the library does */

static inline unsigned order_blocks(int n) { return (unsigned)((n + ORDER_BLOCK - 1) / ORDER_BLOCK); }

static inline void order_launch(const Order *o, cudaStream_t stream) {
  order_library_kernel<<<order_blocks(o->n), ORDER_BLOCK, 0, stream>>>(o->y, o->x, o->n);
  CUDA_CHECK_LAUNCH();
}

static inline void order_none(const Order *o) { order_launch(o, o->library); }

static inline void order_wait(const Order *o) {
  CUDA_CHECK(cudaStreamSynchronize(o->program));
  order_launch(o, o->library);
  CUDA_CHECK(cudaStreamSynchronize(o->library));
}

static inline void order_events(const Order *o) {
  // >>> exercise nncuda_events: order_launch(o, o->library), after `program` has written x and before it reads y
  // hint: an event is a mark in a stream: cudaEventRecord(event, stream) puts it behind what is there already
  // hint: cudaStreamWaitEvent(stream, event, 0) stops a stream, not the host, until the mark has been reached
  // hint: record `written` in program, let library wait; launch; record `computed` in library, let program wait
  CUDA_CHECK(cudaEventRecord(o->written, o->program));
  CUDA_CHECK(cudaStreamWaitEvent(o->library, o->written, 0));
  order_launch(o, o->library);
  CUDA_CHECK(cudaEventRecord(o->computed, o->library));
  CUDA_CHECK(cudaStreamWaitEvent(o->program, o->computed, 0));
  // <<< exercise
}

static inline void order_given(const Order *o) { order_launch(o, o->program); }

/* ---------------------------------------------------------------------------------------------------------------- */
/* The program */

static inline void order_open(Order *o, float *out, const float *in, int n) {
  o->out = out;
  o->in = in;
  o->n = n;
  CUDA_CHECK(cudaMalloc((void **)&o->x, (size_t)n * sizeof *o->x));
  CUDA_CHECK(cudaMalloc((void **)&o->y, (size_t)n * sizeof *o->y));
  CUDA_CHECK(cudaStreamCreateWithFlags(&o->program, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&o->library, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&o->written, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&o->computed, cudaEventDisableTiming));
}

static inline void order_close(Order *o) {
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaEventDestroy(o->computed));
  CUDA_CHECK(cudaEventDestroy(o->written));
  CUDA_CHECK(cudaStreamDestroy(o->library));
  CUDA_CHECK(cudaStreamDestroy(o->program));
  CUDA_CHECK(cudaFree(o->y));
  CUDA_CHECK(cudaFree(o->x));
}

static inline void order_submit(const Order *o, OrderVersion *version) {
  order_write_kernel<<<order_blocks(o->n), ORDER_BLOCK, 0, o->program>>>(o->x, o->in, o->n);
  CUDA_CHECK_LAUNCH();
  version(o);
  order_read_kernel<<<order_blocks(o->n), ORDER_BLOCK, 0, o->program>>>(o->out, o->y, o->n);
  CUDA_CHECK_LAUNCH();
}

/* Several programs with a library each, which have nothing to do with each other: a host that waits for one of them
 * keeps the others waiting. out, in (programs,n). */
static inline void order_run(float *out, const float *in, int programs, int n, OrderVersion *version) {
  Order *o = (Order *)xcalloc((size_t)programs, sizeof *o);
  for (int i = 0; i < programs; i++) order_open(&o[i], out + (size_t)i * n, in + (size_t)i * n, n);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < programs; i++) order_submit(&o[i], version);
  for (int i = 0; i < programs; i++) CUDA_CHECK(cudaStreamSynchronize(o[i].program));
  for (int i = 0; i < programs; i++) order_close(&o[i]);
  free(o);
}

#endif /* PHASE5_PRODUCTION_NNCUDA_ORDER_CUH */
