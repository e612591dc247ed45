/* pipeline.c - asynchronous copies to shared memory: what they bring is there when their thread has waited, not before.
 *
 * The header copies at once, so that the inspector sees the accesses in their place, and hands the bytes over; until
 * the wait the destination holds SIMT_FILL, NaN. For the inspector it counts as not written. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "hooks.h"

typedef struct Copy {
  unsigned char *to;
  unsigned char data[16];
  unsigned bytes;
  unsigned batch; /* commits of the thread before it */
  int next;       /* of the same thread, or free; -1: none */
} Copy;

static __thread struct {
  Copy *copies;
  int count, room, free;
  int pending; /* in this block */
  struct {
    int first, last; /* in the order of their issue; -1: none */
    unsigned batch;  /* commits so far */
  } thread[SIMT_MAX_BLOCK_THREADS];
} line;

/* A new block: what its predecessor did not wait for went with its shared memory. */
void simt_pipeline_begin(void) {
  if (line.pending < 0) return; /* no copy since the last one */
  line.count = line.pending = 0;
  line.free = -1;
  for (int i = 0; i < SIMT_MAX_BLOCK_THREADS; i++) {
    line.thread[i].first = line.thread[i].last = -1;
    line.thread[i].batch = 0;
  }
  line.pending = -1;
}

void simt_pipeline_hold(void *shared, size_t bytes) {
  int rank = simt_current_rank(), i = line.free;
  if (line.pending < 0) line.pending = 0;
  if (i >= 0) {
    line.free = line.copies[i].next;
  } else {
    if (line.count == line.room) {
      line.room = line.room ? 2 * line.room : 256;
      line.copies = realloc(line.copies, (size_t)line.room * sizeof *line.copies);
      if (!line.copies) abort();
    }
    i = line.count++;
  }
  Copy *copy = &line.copies[i];
  *copy = (Copy){.to = shared, .bytes = (unsigned)bytes, .batch = line.thread[rank].batch, .next = -1};
  memcpy(copy->data, shared, bytes);
  memset(shared, SIMT_FILL, bytes);
  if (line.thread[rank].last >= 0)
    line.copies[line.thread[rank].last].next = i;
  else
    line.thread[rank].first = i;
  line.thread[rank].last = i;
  line.pending++;
  TELL_INSPECTOR(held(shared, bytes, 1));
}

void simt_pipeline_commit(void) {
  if (line.pending >= 0) line.thread[simt_current_rank()].batch++;
}

/* Until at most the last `prior` batches of this thread are under way. */
void simt_pipeline_wait(size_t prior) {
  if (line.pending <= 0) return;
  int rank = simt_current_rank(), i;
  while ((i = line.thread[rank].first) >= 0) {
    Copy *copy = &line.copies[i];
    if ((size_t)copy->batch + prior >= line.thread[rank].batch) return;
    memcpy(copy->to, copy->data, copy->bytes);
    TELL_INSPECTOR(held(copy->to, copy->bytes, 0));
    line.thread[rank].first = copy->next;
    if (copy->next < 0) line.thread[rank].last = -1;
    copy->next = line.free;
    line.free = i;
    line.pending--;
  }
}
