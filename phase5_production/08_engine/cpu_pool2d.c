/* cpu_pool2d.c - pooling and addition of activations (cpu_conv2d.h): shares rows and planes out to threads. */
#include "phase5_production/08_engine/cpu_conv2d.h"
#include "phase5_production/08_engine/cpu_conv2d_tile.h"
#include "phase5_production/08_engine/cpu_threads.h"

enum { CPU_POOL_SMALL = 50000 }; /* numbers read: less is done before a second thread has begun */

static int cpu_pool_threads(size_t numbers, int threads) { return numbers < CPU_POOL_SMALL ? 1 : threads; }

typedef struct PoolCall {
  float *y;
  const float *x;
  CpuShape y_shape, x_shape;
  CpuPool2d pool;
} PoolCall;

/* A row of y in a block of channels. */
static void cpu_pool_task(void *arg, long task, int thread) {
  const PoolCall *call = (const PoolCall *)arg;
  const CpuShape to = call->y_shape, from = call->x_shape;
  const CpuPool2d *pool = &call->pool;
  const size_t plane = task / to.h;
  const int p = (int)(task % to.h), top = p * pool->stride_h - pool->padding_h, bottom = top + pool->kernel_h;
  const int first = top < 0 ? 0 : top;
  CpuPoolRow row = {.x_row = cpu_row(from), .width = to.w, .x_width = from.w, .kernel = pool->kernel_w};
  (void)thread;
  row.y = call->y + plane * cpu_plane(to) + cpu_first(to) + p * cpu_row(to);
  row.x = call->x + plane * cpu_plane(from) + cpu_first(from) + first * cpu_row(from);
  row.rows = (bottom < from.h ? bottom : from.h) - first;
  row.stride = pool->stride_w;
  row.padding = pool->padding_w;
  row.counted = pool->count_padding ? pool->kernel_h * pool->kernel_w : 0;
  (pool->average ? cpu_tile_kernels()->average_row : cpu_tile_kernels()->max_row)(&row);
}

void cpu_pool2d_run(float *y, CpuShape y_shape, const float *x, CpuShape x_shape, CpuPool2d pool, int n, int threads) {
  PoolCall call = {y, x, y_shape, x_shape, pool};
  cpu_parallel((long)n * cpu_blocks(x_shape) * y_shape.h, cpu_pool_threads(n * cpu_count(x_shape), threads),
               cpu_pool_task, &call);
  cpu_border_clear(y, y_shape, n);
}

void cpu_global_avg_pool2d_run(float *y, CpuShape y_shape, const float *x, CpuShape x_shape, int n, int threads) {
  const CpuPool2d all = {x_shape.h, x_shape.w, 1, 1, 0, 0, true, false};
  cpu_pool2d_run(y, y_shape, x, x_shape, all, n, threads);
}

typedef struct AddCall {
  float *y;
  const float *a, *b;
  size_t plane;
  CpuActivation activation;
} AddCall;

static void cpu_add_task(void *arg, long task, int thread) {
  const AddCall *call = (const AddCall *)arg;
  const size_t at = task * call->plane;
  (void)thread;
  cpu_tile_kernels()->add(call->y + at, call->a + at, call->b + at, call->plane, call->activation.least,
                          call->activation.most);
}

void cpu_add_run(float *y, const float *a, const float *b, CpuShape shape, CpuActivation activation, int n,
                 int threads) {
  AddCall call = {y, a, b, cpu_plane(shape), activation};
  cpu_parallel((long)n * cpu_blocks(shape), cpu_pool_threads(n * cpu_count(shape), threads), cpu_add_task, &call);
}
