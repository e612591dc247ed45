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

typedef struct Workspace {
  char *memory;
  size_t bytes; /* taken so far */
} Workspace;

static inline Workspace workspace_begin(void *memory) {
  const Workspace w = {(char *)memory, 0};
  return w;
}

/* Room for `count` elements; NULL where the workspace is only measured, or count is 0. */
static inline void *workspace_take(Workspace *w, size_t count, size_t size) {
  void *array = NULL;
  // >>> exercise nncuda_workspace: the array, and w->bytes grows so that the next one begins at a multiple of 256
  // hint: the array begins at w->memory + w->bytes, unless w->memory is NULL or nothing is wanted
  // hint: count * size bytes are taken, rounded up to a multiple of 256
  // hint: if (w->memory != NULL && count > 0) array = w->memory + w->bytes; w->bytes += (count * size + 255) / 256 * 256;
  if (w->memory != NULL && count > 0) array = w->memory + w->bytes;
  w->bytes += (count * size + 255) / 256 * 256;
  // <<< exercise
  return array;
}

#endif /* PHASE5_PRODUCTION_NNCUDA_WORKSPACE_CUH */
