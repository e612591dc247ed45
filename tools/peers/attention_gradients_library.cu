/* attention_gradients_library.cu - attention forward and backward (lesson 14) as a shared library, for
 * attention_gradients_torch.py:
 *
 *     nvcc -std=c++17 -O3 -I. -gencode=arch=compute_90a,code=sm_90a -Xcompiler=-fPIC -shared
 *         tools/peers/attention_gradients_library.cu -o attention_gradients.so
 *
 * Each function takes dq, dk, dv, q, k, v, dout (b,h,s,d) in GPU memory; it launches on the default stream. */
#include "phase1_building_blocks/14_attention/attention_backward_tf32.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_wgmma.cuh"

#define GRADIENTS(type, name)                                                                               \
  extern "C" void library_##name(type *dq, type *dk, type *dv, const type *q, const type *k, const type *v, \
                                 const type *dout, int b, int h, int s, int d, int causal) {                \
    name(dq, dk, dv, q, k, v, dout, b, h, s, d, causal != 0);                                               \
  }

GRADIENTS(float, attention_gradients_flash)
GRADIENTS(float, attention_gradients_tf32)
GRADIENTS(__nv_bfloat16, attention_gradients_mma)
GRADIENTS(__nv_bfloat16, attention_gradients_wgmma)
