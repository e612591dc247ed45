/* simt/streams.h - what ran beside what, for a program that draws it: in steps, since emulated time means nothing.
 *
 *     simt_steps_begin();
 *     ... streams, copies, kernels, events ...
 *     double at = simt_event_step(event);
 *
 * Each kernel, each copy and each memset is one step long, and begins when all that it has to wait for has ended: what
 * is before it in its stream, the events that its stream waits for, the rules of the default stream, and what the host
 * had waited for when it was submitted. A step says what may run side by side, not how long it takes.
 */
#ifndef SIMT_STREAMS_H
#define SIMT_STREAMS_H

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on steps are counted, from 0. */
void simt_steps_begin(void);

/* The step at which the last of all operations ends. */
double simt_steps(void);

/* The step at which the event happened that was recorded last; -1 when none was, or no steps were counted. */
double simt_event_step(cudaEvent_t event);

#ifdef __cplusplus
}
#endif

#endif /* SIMT_STREAMS_H */
