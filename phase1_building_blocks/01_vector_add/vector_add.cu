/* vector_add.cu - the first kernel: where the loop went, and what limits it.
 *
 *     bazel run //phase1_building_blocks:vector_add
 *
 * On the CPU an addition of two arrays is a loop. On the GPU the loop is the grid: each thread asks which one it is,
 * and does the step with that number. Blocks have a fixed size, so the last one reaches past the end, and every kernel
 * begins with the question whether this thread has anything to do.
 *
 * Before the versions are measured the program shows what a launch is, with nothing around it: memory on the GPU, a
 * copy there, a launch, a copy back; and what happens when a launch is impossible, because an error that nobody asks
 * for is never heard. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/01_vector_add/vector_add_lesson.cuh"

/* Everything that a CUDA program does, in a dozen lines. On stderr, so that --json has stdout for itself. */
static void first_launch(void) {
  enum { N = 5 };
  const float a[N] = {1, 2, 3, 4, 5}, b[N] = {10, 20, 30, 40, 50};
  float c[N], *gpu_a, *gpu_b, *gpu_c; /* pointers of the GPU: the CPU may pass them on, but not look behind them */
  CUDA_CHECK(cudaMalloc((void **)&gpu_a, sizeof a));
  CUDA_CHECK(cudaMalloc((void **)&gpu_b, sizeof b));
  CUDA_CHECK(cudaMalloc((void **)&gpu_c, sizeof c));
  CUDA_CHECK(cudaMemcpy(gpu_a, a, sizeof a, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(gpu_b, b, sizeof b, cudaMemcpyHostToDevice));
  vector_add_kernel<<<1, 32>>>(gpu_c, gpu_a, gpu_b, N); /* one block, a warp of 32 threads, of which 27 do nothing */
  CUDA_CHECK_LAUNCH();                                  /* could it be launched? It may still be running */
  CUDA_CHECK(cudaMemcpy(c, gpu_c, sizeof c, cudaMemcpyDeviceToHost)); /* waits for it */
  fprintf(stderr, "1 + 10, 2 + 20, ... = %g, %g, %g, %g, %g\n", c[0], c[1], c[2], c[3], c[4]);

  vector_add_kernel<<<1, 2000>>>(gpu_c, gpu_a, gpu_b, N); /* a block has at most 1024 threads */
  cudaError_t status = cudaGetLastError();                /* asks, and forgets */
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
                         "A block comes and goes for every 256 additions. Keep the threads, let them walk."),
      vector_add_version(
          "grid_stride", vector_add_stride,
          "Any n with any grid; 4 bytes a load leave the memory waiting for requests. Load more at once."),
      vector_add_version("float4", vector_add_float4,
                         "A quarter of the requests, and the same sectors: nothing is left but the memory itself."),
      lesson_copy_version("Reading and writing without a computation: what is there to be reached."),
  };
  const LessonTable table = {"Adding two vectors", versions, sizeof versions / sizeof *versions};
  lesson.before = first_launch;
  return lesson_main(argc, argv, &lesson, &table, 1);
}
