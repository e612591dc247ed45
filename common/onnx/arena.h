/* arena.h - the memory of one ONNX model: counted, limited, and freed as a whole.
 *
 * protobuf-c allocates by it while it reads, build.h while a model is made. A hostile file can ask for much memory in
 * few bytes (an empty message is two bytes in a file and 200 in memory); `limit` bounds that.
 */
#ifndef COMMON_ONNX_ARENA_H
#define COMMON_ONNX_ARENA_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct OnnxBlock { /* lies before the memory that is handed out, and keeps it aligned to 16 bytes */
  struct OnnxBlock *previous, *next;
  size_t size, unused;
} OnnxBlock;

typedef struct OnnxArena {
  OnnxBlock *blocks;
  size_t used, limit; /* bytes; limit 0: none */
} OnnxArena;

/* NULL where memory or the limit is exhausted. */
static inline void *onnx_arena_try(OnnxArena *arena, size_t size) {
  if (size > PTRDIFF_MAX - sizeof(OnnxBlock)) return NULL;
  const size_t total = size + sizeof(OnnxBlock);
  if (arena->limit > 0 && (arena->used > arena->limit || total > arena->limit - arena->used)) return NULL;
  OnnxBlock *block = (OnnxBlock *)malloc(total);
  if (block == NULL) return NULL;
  block->previous = NULL;
  block->next = arena->blocks;
  block->size = size;
  if (arena->blocks != NULL) arena->blocks->previous = block;
  arena->blocks = block;
  arena->used += total;
  return block + 1;
}

static inline size_t onnx_arena_size(const void *memory) { return ((const OnnxBlock *)memory - 1)->size; }

static inline void onnx_arena_release(OnnxArena *arena, void *memory) {
  if (memory == NULL) return;
  OnnxBlock *block = (OnnxBlock *)memory - 1;
  if (block->previous != NULL) block->previous->next = block->next;
  if (block->next != NULL) block->next->previous = block->previous;
  if (arena->blocks == block) arena->blocks = block->next;
  arena->used -= block->size + sizeof(OnnxBlock);
  free(block);
}

static inline void onnx_arena_free(OnnxArena *arena) {
  for (OnnxBlock *block = arena->blocks, *next; block != NULL; block = next) {
    next = block->next;
    free(block);
  }
  arena->blocks = NULL;
  arena->used = 0;
}

/* Memory of zeros; ends the program where there is none, as xcalloc() does. */
static inline void *onnx_arena_get(OnnxArena *arena, size_t size) {
  void *memory = onnx_arena_try(arena, size);
  if (memory == NULL) die("out of memory: an ONNX model asked for %zu bytes", size);
  memset(memory, 0, size);
  return memory;
}

#endif /* COMMON_ONNX_ARENA_H */
