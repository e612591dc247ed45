/* nncuda_workspace.cuh - several arrays in the caller's workspace, each at a multiple of 256 bytes.
 *
 *     Workspace w = workspace_begin(workspace);                       // NULL: only to count the bytes
 *     int *known = (int *)workspace_take(&w, rows, sizeof *known);
 *     ...
 *     return w.bytes;                                                 // what NAME_workspace() gives
 *
 * The function that asks for the size and the one that uses the memory are the same: they cannot differ.
 */
#ifndef PHASE5_PRODUCTION_NNCUDA_WORKSPACE_CUH
#define PHASE5_PRODUCTION_NNCUDA_WORKSPACE_CUH

#include <stddef.h>
#include <stdint.h>

#include "common/check.h"

typedef struct Workspace {
  char *memory;
  size_t bytes; /* taken so far */
} Workspace;

static __host__ __device__ inline Workspace workspace_begin(void *memory) {
  const Workspace w = {(char *)memory, 0};
  return w;
}

/* Room for `count` elements; NULL where the workspace is only measured, or count is 0. */
static __host__ __device__ inline void *workspace_take(Workspace *w, size_t count, size_t size) {
  void *array = NULL;
  // >>> exercise nncuda_workspace: the array, and w->bytes grows so that the next one begins at a multiple of 256
  // hint: the array begins at w->memory + w->bytes, unless w->memory is NULL or nothing is wanted
  // hint: count * size bytes are taken, rounded up to a multiple of 256
  // hint: if (w->memory != NULL && count > 0) array = w->memory + w->bytes;
  // hint: w->bytes += (count * size + 255) / 256 * 256;
  if (w->memory != NULL && count > 0) array = w->memory + w->bytes;
  w->bytes += (count * size + 255) / 256 * 256;
  // <<< exercise
  return array;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What the exercise's check runs: `plans` workspaces of three arrays each, of count (plans,3) elements of 1, 4 and 12
 * bytes. place (plans,3): where they begin, -1: nowhere; bytes (plans): of all. */

enum { WORKSPACE_ARRAYS = 3 };

static __host__ __device__ inline void workspace_plan(int *place, int *bytes, const int *count) {
  const size_t size[WORKSPACE_ARRAYS] = {1, 4, 12};
  char *const memory = (char *)4096; /* nobody looks there */
  Workspace w = workspace_begin(memory), measured = workspace_begin(NULL);
  for (int i = 0; i < WORKSPACE_ARRAYS; i++) {
    const char *array = (const char *)workspace_take(&w, (size_t)count[i], size[i]);
    place[i] = array == NULL ? -1 : (int)(array - memory);
    if (workspace_take(&measured, (size_t)count[i], size[i]) != NULL) place[i] = -2;
  }
  *bytes = (int)measured.bytes;
}

static __global__ void workspace_plan_kernel(int *place, int *bytes, const int *count, int plans) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < plans) workspace_plan(place + WORKSPACE_ARRAYS * i, bytes + i, count + WORKSPACE_ARRAYS * i);
}

static inline void workspace_plans(int *place, int *bytes, const int *count, int plans) {
  workspace_plan_kernel<<<(plans + 127) / 128, 128>>>(place, bytes, count, plans);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_NNCUDA_WORKSPACE_CUH */
