/* vector_add.cu - the first kernel: where the loop went, and what limits it.
 *
 *     bazel run //phase1_building_blocks:vector_add
 *
 * On the CPU an addition of two arrays is a loop. On the GPU the grid replaces the loop: each thread computes its own
 * number and does the step of that number. Blocks have a fixed size, so the last one may reach past the end of the
 * arrays, and every kernel first tests whether its thread has an element.
 *
 * Before it measures the versions, the program shows a launch without the harness: allocate memory on the GPU, copy the
 * inputs there, launch, copy the result back. Then it tries a launch that is impossible, because CUDA reports an error
 * only when a program checks for one. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/01_vector_add/vector_add_lesson.cuh"

/* A complete CUDA program in a dozen lines. It prints to stderr: stdout is for the results. */
static void first_launch(void) {
  enum { N = 5 };
  const float a[N] = {1, 2, 3, 4, 5}, b[N] = {10, 20, 30, 40, 50};
  float c[N], *gpu_a, *gpu_b, *gpu_c; /* GPU pointers: the CPU may pass them on, but not dereference them */
  CUDA_CHECK(cudaMalloc((void **)&gpu_a, sizeof a));
  CUDA_CHECK(cudaMalloc((void **)&gpu_b, sizeof b));
  CUDA_CHECK(cudaMalloc((void **)&gpu_c, sizeof c));
  CUDA_CHECK(cudaMemcpy(gpu_a, a, sizeof a, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(gpu_b, b, sizeof b, cudaMemcpyHostToDevice));
  vector_add_kernel<<<1, 32>>>(gpu_c, gpu_a, gpu_b, N); /* one block of 32 threads; 27 of them do nothing */
  CUDA_CHECK_LAUNCH();                                  /* was it accepted? It may still be running */
  CUDA_CHECK(cudaMemcpy(c, gpu_c, sizeof c, cudaMemcpyDeviceToHost)); /* waits for the kernel */
  fprintf(stderr, "1 + 10, 2 + 20, ... = %g, %g, %g, %g, %g\n", c[0], c[1], c[2], c[3], c[4]);

  vector_add_kernel<<<1, 2000>>>(gpu_c, gpu_a, gpu_b, N); /* a block has at most 1024 threads */
  cudaError_t status = cudaGetLastError();                /* returns the error and clears it */
  fprintf(stderr, "A block of 2000 threads: %s. CUDA_CHECK_LAUNCH() would have ended the program here.\n",
          cudaGetErrorString(status));
  CUDA_CHECK(cudaFree(gpu_a));
  CUDA_CHECK(cudaFree(gpu_b));
  CUDA_CHECK(cudaFree(gpu_c));
}

int main(int argc, char **argv) {
  Lesson lesson = vector_add_lesson();
  const LessonVersion versions[] = {
      vector_add_version("one_each", vector_add,
                         "One block is launched per 256 elements. A grid-stride loop reuses the threads instead."),
      vector_add_version(
          "grid_stride", vector_add_stride,
          "Any n works with any grid. A thread loads 4 bytes at a time: load a float4, 16 bytes, instead."),
      vector_add_version("float4", vector_add_float4,
                         "The same sectors with a quarter of the requests: memory bandwidth is the limit."),
      lesson_copy_version("Reads and writes without a computation: the speed that can be reached."),
  };
  const LessonTable table = {"Adding two vectors", versions, sizeof versions / sizeof *versions};
  lesson.before = first_launch;
  return lesson_main(argc, argv, &lesson, &table, 1);
}
