/* block.h - a rendezvous of all threads of a block, as core.h has one of a warp.
 *
 * Each thread links a post on its own stack into a list, and all meet at a barrier. The first thread that goes on
 * computes for all; the others find that it has been done. Threads of a block run on one OS thread: nothing to lock.
 */
#ifndef SIMT_BLOCK_H
#define SIMT_BLOCK_H

#include "simt/warp.h"

namespace simt {

struct BlockPost;
typedef void BlockComplete(BlockPost **posts, int count); /* in the order of the threads' ranks */

struct BlockPost {
  BlockPost *next;
  BlockComplete *complete;
  unsigned rank;
  int done;
};

template <class Unused> /* a template, for the linker to keep one */
struct BlockPosts {
  static __thread BlockPost *first;
};
template <class Unused>
__thread BlockPost *BlockPosts<Unused>::first = NULL;

SIMT_UNSEEN inline void block_rendezvous(BlockPost *post, BlockComplete *complete, const char *what, const char *file,
                                         int line) {
  post->rank = simt_thread_rank();
  post->complete = complete;
  post->done = 0;
  post->next = BlockPosts<void>::first;
  BlockPosts<void>::first = post;
  simt_block_barrier(0, what, file, line);
  if (post->done) return;
  BlockPost *by_rank[SIMT_MAX_BLOCK_THREADS] = {}, *rest = NULL;
  for (BlockPost *p = BlockPosts<void>::first, *next; p; p = next) {
    next = p->next;
    if (p->complete == complete) {
      by_rank[p->rank] = p;
      p->done = 1;
    } else { /* of another collective: a fault that the barrier has reported */
      p->next = rest;
      rest = p;
    }
  }
  BlockPosts<void>::first = rest;
  int count = 0;
  for (int r = 0; r < SIMT_MAX_BLOCK_THREADS; r++)
    if (by_rank[r]) by_rank[count++] = by_rank[r];
  void *paused = simt_inspect_pause(); /* operators of the program run in it */
  complete(by_rank, count);
  simt_inspect_continue(paused);
}

}  // namespace simt

#endif /* SIMT_BLOCK_H */
