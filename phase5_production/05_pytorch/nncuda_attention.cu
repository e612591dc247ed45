/* nncuda_attention.cu - attention, with the kernels of phase1_building_blocks/14_attention: in float32 by tensor cores
 * with each factor split into two of tf32, in bfloat16 by tensor cores as they are. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase1_building_blocks/14_attention/attention_backward_mma.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_tf32.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core.cuh"
#include "phase1_building_blocks/14_attention/attention_tf32.cuh"

enum { DEPTH_MOST = 128 };
typedef __nv_bfloat16 Bf16;

/* Of one call. */
typedef struct Attention {
  void *o, *lse, *dq, *dk, *dv;
  const void *q, *k, *v, *dout;
  int b, h, s, d, dtype;
  bool causal;
  float *workspace;
} Attention;

static inline void call_attention(Call *call, Attention *a, int dtype, int64_t batch, int64_t heads, int64_t length,
                                  int64_t depth, int causal) {
  call_dtype(call, dtype, NNCUDA_BFLOAT16);
  call_size(call, "batch", batch, 1, INT_MAX);
  call_size(call, "heads", heads, 1, INT_MAX);
  call_size(call, "length", length, 1, INT_MAX);
  call_size(call, "depth", depth, 1, DEPTH_MOST);
  call_count(call, "batch * heads * length", (double)batch * heads * length, INT_MAX);
  call_flag(call, "causal", causal);
  a->b = (int)batch, a->h = (int)heads, a->s = (int)length, a->d = (int)depth;
  a->dtype = dtype;
  a->causal = causal;
}

/* An array of the call's dtype. */
static inline void call_values(Call *call, const char *name, const void *pointer, int dtype) {
  call_array(call, name, pointer, dtype == NNCUDA_BFLOAT16 ? sizeof(Bf16) : sizeof(float));
}

static inline void attention_forward_run_gpu(const Attention *a) {
  if (a->dtype == NNCUDA_FLOAT32)
    attention_tf32((float *)a->o, (float *)a->lse, (const float *)a->q, (const float *)a->k, (const float *)a->v, a->b,
                   a->h, a->s, a->d, a->causal);
  else
    attention_mma((Bf16 *)a->o, (float *)a->lse, (const Bf16 *)a->q, (const Bf16 *)a->k, (const Bf16 *)a->v, a->b, a->h,
                  a->s, a->d, a->causal);
}

static inline void attention_forward_run_cpu(const Attention *a) {
  if (a->dtype == NNCUDA_FLOAT32)
    attention_forward_cpu((float *)a->o, (float *)a->lse, (const float *)a->q, (const float *)a->k, (const float *)a->v,
                          a->b, a->h, a->s, a->d, a->causal);
  else
    attention_bf16_forward_cpu((Bf16 *)a->o, (float *)a->lse, (const Bf16 *)a->q, (const Bf16 *)a->k,
                               (const Bf16 *)a->v, a->b, a->h, a->s, a->d, a->causal);
}

int nncuda_attention_forward(int device, void *stream, int dtype, void *o, void *lse, const void *q, const void *k,
                             const void *v, int64_t batch, int64_t heads, int64_t length, int64_t depth, int causal) {
  Call call = call_begin(__func__, device, stream);
  Attention a = {};
  call_attention(&call, &a, dtype, batch, heads, length, depth, causal);
  call_values(&call, "o", o, dtype);
  CALL_ARRAY(call, lse);
  call_values(&call, "q", q, dtype);
  call_values(&call, "k", k, dtype);
  call_values(&call, "v", v, dtype);
  a.o = o, a.lse = lse, a.q = q, a.k = k, a.v = v;
  CALL_RUN(call, attention_forward_run_gpu(&a), attention_forward_run_cpu(&a));
  return call.status;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Backward */

static inline void attention_backward_run_gpu(const Attention *a) {
  if (a->dtype == NNCUDA_FLOAT32)
    attention_backward_tf32((float *)a->dq, (float *)a->dk, (float *)a->dv, (const float *)a->q, (const float *)a->k,
                            (const float *)a->v, (const float *)a->o, (const float *)a->lse, (const float *)a->dout,
                            a->b, a->h, a->s, a->d, a->causal, a->workspace);
  else
    attention_backward_mma((Bf16 *)a->dq, (Bf16 *)a->dk, (Bf16 *)a->dv, (const Bf16 *)a->q, (const Bf16 *)a->k,
                           (const Bf16 *)a->v, (const Bf16 *)a->o, (const float *)a->lse, (const Bf16 *)a->dout, a->b,
                           a->h, a->s, a->d, a->causal, a->workspace);
}

static inline void widen(float *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = __bfloat162float(((const Bf16 *)from)[i]);
}

static inline void narrow(void *to, const float *from, size_t n) {
  for (size_t i = 0; i < n; i++) ((Bf16 *)to)[i] = __float2bfloat16(from[i]);
}

/* bfloat16 on the CPU: by the reference for float32, in the workspace. */
static inline void attention_backward_run_cpu(const Attention *a) {
  if (a->dtype == NNCUDA_FLOAT32) {
    attention_backward_cpu((float *)a->dq, (float *)a->dk, (float *)a->dv, (const float *)a->q, (const float *)a->k,
                           (const float *)a->v, (const float *)a->o, (const float *)a->lse, (const float *)a->dout,
                           a->b, a->h, a->s, a->d, a->causal);
    return;
  }
  const size_t n = (size_t)a->b * a->h * a->s * a->d;
  const void *const from[] = {a->q, a->k, a->v, a->o, a->dout};
  void *const to[] = {a->dq, a->dk, a->dv};
  float *wide[8];
  for (int i = 0; i < 8; i++) wide[i] = a->workspace + n * i;
  for (int i = 0; i < 5; i++) widen(wide[i], from[i], n);
  attention_backward_cpu(wide[5], wide[6], wide[7], (const float *)wide[0], (const float *)wide[1],
                         (const float *)wide[2], (const float *)wide[3], (const float *)a->lse, (const float *)wide[4],
                         a->b, a->h, a->s, a->d, a->causal);
  for (int i = 0; i < 3; i++) narrow(to[i], wide[5 + i], n);
}

size_t nncuda_attention_backward_workspace(int device, int dtype, int64_t batch, int64_t heads, int64_t length,
                                           int64_t depth) {
  const double rows = (double)batch * heads * length;
  if (batch < 1 || heads < 1 || length < 1 || depth < 1 || depth > DEPTH_MOST || rows > INT_MAX) return 0;
  const int b = (int)batch, h = (int)heads, s = (int)length, d = (int)depth;
  if (device == NNCUDA_CPU) return dtype == NNCUDA_FLOAT32 ? 0 : 8 * (size_t)rows * (size_t)d * sizeof(float);
  if (dtype == NNCUDA_FLOAT32) return attention_backward_tf32_floats(b, h, s, d) * sizeof(float);
  return attention_backward_bf16_floats(b, h, s, d) * sizeof(float);
}

int nncuda_attention_backward(int device, void *stream, int dtype, void *dq, void *dk, void *dv, const void *dout,
                              const void *q, const void *k, const void *v, const void *o, const void *lse,
                              int64_t batch, int64_t heads, int64_t length, int64_t depth, int causal, void *workspace,
                              size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  Attention a = {};
  call_attention(&call, &a, dtype, batch, heads, length, depth, causal);
  call_values(&call, "dq", dq, dtype);
  call_values(&call, "dk", dk, dtype);
  call_values(&call, "dv", dv, dtype);
  call_values(&call, "dout", dout, dtype);
  call_values(&call, "q", q, dtype);
  call_values(&call, "k", k, dtype);
  call_values(&call, "v", v, dtype);
  call_values(&call, "o", o, dtype);
  CALL_ARRAY(call, lse);
  call_workspace(&call, workspace, workspace_bytes,
                 nncuda_attention_backward_workspace(device, dtype, batch, heads, length, depth));
  a.dq = dq, a.dk = dk, a.dv = dv, a.dout = dout, a.q = q, a.k = k, a.v = v;
  a.o = (void *)o, a.lse = (void *)lse, a.workspace = (float *)workspace;
  CALL_RUN(call, attention_backward_run_gpu(&a), attention_backward_run_cpu(&a));
  return call.status;
}
