/* steps.c - what may run at the same time, counted in steps: simt/streams.h. */
#include "simt/streams.h"
#include "stream.h"

atomic_int simt_steps_counted;
unsigned long simt_host_step;

unsigned long simt_step_of_next(cudaStream_t s) {
  unsigned long step = s->step;
  simt_step_join(&step, simt_host_step);
  for (cudaStream_t other = simt_all_streams; other; other = other->next)
    if (simt_is_implied(s, other)) simt_step_join(&step, other->step);
  return step;
}

void simt_steps_begin(void) {
  pthread_mutex_lock(&simt_stream_lock);
  for (cudaStream_t s = simt_all_streams; s; s = s->next) s->step = 0;
  simt_host_step = 0;
  atomic_store(&simt_steps_counted, 1);
  pthread_mutex_unlock(&simt_stream_lock);
}

double simt_steps(void) {
  unsigned long step = 0;
  pthread_mutex_lock(&simt_stream_lock);
  for (cudaStream_t s = simt_all_streams; s; s = s->next) simt_step_join(&step, s->step);
  pthread_mutex_unlock(&simt_stream_lock);
  return (double)step;
}

void simt_steps_host_waits(cudaStream_t handle) {
  if (!atomic_load_explicit(&simt_steps_counted, memory_order_relaxed)) return;
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  if (s) simt_step_join(&simt_host_step, s->step);
  pthread_mutex_unlock(&simt_stream_lock);
}
