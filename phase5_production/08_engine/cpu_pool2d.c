/* cpu_pool2d.c - pooling and addition of activations (cpu_conv2d.h): shares rows and planes out to threads. */
#include "phase5_production/08_engine/cpu_conv2d.h"
#include "phase5_production/08_engine/cpu_conv2d_tile.h"

enum { CPU_POOL_SMALL = 50000 }; /* numbers read: less is done before a second thread has begun */

static int cpu_pool_threads(size_t numbers, int threads) { return numbers < CPU_POOL_SMALL ? 1 : threads; }

void cpu_pool2d_run(float *y, CpuShape y_shape, const float *x, CpuShape x_shape, CpuPool2d pool, int n, int threads) {
  const int planes = n * cpu_blocks(x_shape);
  const CpuTileKernels *kernels = cpu_tile_kernels();
  threads = cpu_pool_threads(planes * cpu_plane(x_shape), threads);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int task = 0; task < planes * y_shape.h; task++) {
    const int plane = task / y_shape.h, p = task % y_shape.h;
    const int top = p * pool.stride_h - pool.padding_h, bottom = top + pool.kernel_h, from = top < 0 ? 0 : top;
    const CpuPoolRow row = {y + plane * cpu_plane(y_shape) + cpu_first(y_shape) + p * cpu_row(y_shape),
                            x + plane * cpu_plane(x_shape) + cpu_first(x_shape) + from * cpu_row(x_shape),
                            cpu_row(x_shape),
                            (bottom < x_shape.h ? bottom : x_shape.h) - from,
                            y_shape.w,
                            x_shape.w,
                            pool.kernel_w,
                            pool.stride_w,
                            pool.padding_w,
                            pool.count_padding ? pool.kernel_h * pool.kernel_w : 0};
    (pool.average ? kernels->average_row : kernels->max_row)(&row);
  }
  cpu_border_clear(y, y_shape, n);
}

void cpu_global_avg_pool2d_run(float *y, CpuShape y_shape, const float *x, CpuShape x_shape, int n, int threads) {
  const CpuPool2d all = {x_shape.h, x_shape.w, 1, 1, 0, 0, true, false};
  cpu_pool2d_run(y, y_shape, x, x_shape, all, n, threads);
}

void cpu_add_run(float *y, const float *a, const float *b, CpuShape shape, CpuActivation activation, int n,
                 int threads) {
  const size_t plane = cpu_plane(shape);
  const int planes = n * cpu_blocks(shape);
  const CpuTileKernels *kernels = cpu_tile_kernels();
  threads = cpu_pool_threads(planes * plane, threads);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int i = 0; i < planes; i++)
    kernels->add(y + i * plane, a + i * plane, b + i * plane, plane, activation.least, activation.most);
}
