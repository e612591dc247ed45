/* counts.h - what a launch of a lesson's version costs. */
#ifndef COMMON_LESSON_COUNTS_H
#define COMMON_LESSON_COUNTS_H

/* What the inspector counted: requests are instructions of a warp, sectors 32 bytes of device memory, wavefronts passes
 * over the 32 banks of shared memory. The names are the inspector's. */
typedef struct LessonCounts {
  double global_load_requests, global_load_sectors, global_load_ideal_sectors; /* ideal: had the bytes lain in a row */
  double global_store_requests, global_store_sectors, global_store_ideal_sectors;
  double shared_load_requests, shared_load_wavefronts, shared_load_conflicts;
  double shared_store_requests, shared_store_wavefronts, shared_store_conflicts;
  double global_atomic_requests;
  double launched_blocks, launched_threads;
  double working_blocks, working_warps, working_threads; /* that read or write device memory */
  double stream_steps; /* kernels and copies, those that may run side by side as one (simt/streams.h) */
  double bulk_copies, bulk_bytes, wgmma_products; /* of compute capability 9.0: bytes that TMA reads; per warpgroup */
} LessonCounts;

#endif /* COMMON_LESSON_COUNTS_H */
