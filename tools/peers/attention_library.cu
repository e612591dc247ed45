/* attention_library.cu - attention in bfloat16 as a shared library, for tools/peers/attention_torch.py:
 *
 *     nvcc -std=c++17 -O3 -I. -gencode=arch=compute_90a,code=sm_90a -default-stream=per-thread -Xcompiler=-fPIC -shared
 *         tools/peers/attention_library.cu -o attention.so
 *
 * Each function takes pointers to o, lse, q, k, v in GPU memory, their sizes, whether the attention is causal, and a
 * stream. */
#include "phase1_building_blocks/14_attention/attention_wgmma.cuh"

/* The launchers use the thread's default stream. It waits for `stream`, and `stream` then waits for it: the calls are in
 * order with what else the stream does, and a capture of the stream contains them. */
static void in_stream(cudaStream_t stream, AttentionBf16Launcher *launch, __nv_bfloat16 *o, float *lse,
                      const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, int b, int h, int s,
                      int d, bool causal) {
  cudaEvent_t event;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventRecord(event, stream));
  CUDA_CHECK(cudaStreamWaitEvent(cudaStreamPerThread, event, 0));
  launch(o, lse, q, k, v, b, h, s, d, causal);
  CUDA_CHECK(cudaEventRecord(event, cudaStreamPerThread));
  CUDA_CHECK(cudaStreamWaitEvent(stream, event, 0));
  CUDA_CHECK(cudaEventDestroy(event));
}

#define FUNCTION(name)                                                                                         \
  extern "C" void library_##name(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k, \
                                 const __nv_bfloat16 *v, int b, int h, int s, int d, int causal,               \
                                 cudaStream_t stream) {                                                        \
    in_stream(stream, name, o, lse, q, k, v, b, h, s, d, causal != 0);                                         \
  }
FUNCTION(attention_mma)
FUNCTION(attention_wgmma_alternate)
FUNCTION(attention_wgmma_turns)
FUNCTION(attention_wgmma)
#ifdef ATTENTION_LIBRARY_MORE
#include ATTENTION_LIBRARY_MORE
#endif
