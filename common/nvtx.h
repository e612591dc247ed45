/* nvtx.h - names for stretches of a program, which Nsight Systems and Nsight Compute show and can select:
 *
 *     nvtx_begin("conv1 forward");
 *     ... launches ...
 *     nvtx_end();
 *
 *     ncu --nvtx --nvtx-include "conv1 forward/" PROGRAM         the kernels that were launched in there
 *
 * A range costs some tens of nanoseconds, more while a profiler is attached, so programs have an option for it. Without
 * a CUDA compiler, and with the emulator, the two functions do nothing.
 */
#ifndef COMMON_NVTX_H
#define COMMON_NVTX_H

#if defined(__CUDACC__) && !defined(SIMT_REWRITTEN)
#include <nvtx3/nvToolsExt.h>

static inline void nvtx_begin(const char *name) { nvtxRangePushA(name); }
static inline void nvtx_end(void) { nvtxRangePop(); }
#else
static inline void nvtx_begin(const char *name) { (void)name; }
static inline void nvtx_end(void) {}
#endif

#endif /* COMMON_NVTX_H */
