/* dropout.c - dropout. The states, on the device, count the calls; the reserve space has a byte for each element. */
#include "dnn.h"

enum { STATE_BYTES = 64 };

typedef struct State {
  unsigned long long seed, calls;
} State;

struct cudnnDropoutStruct {
  int set;
  float dropout;
  void *states;
  unsigned long long seed;
};

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *desc) {
  if (!desc) return bad_here("the place for the descriptor is NULL");
  *desc = calloc(1, sizeof **desc);
  return *desc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t desc) {
  free(desc);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes) {
  if (!handle || !bytes) return bad_here("the handle or the place for the size is NULL");
  *bytes = STATE_BYTES;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x_desc, size_t *bytes) {
  if (!x_desc || !bytes || x_desc->t.rank == 0)
    return bad_here("xdesc or the place for the size is NULL, or never set");
  *bytes = (size_t)element_count(&x_desc->t);
  return CUDNN_STATUS_SUCCESS;
}

static void work_seed(Call *call) { *(State *)call->o[0].data = (State){call->seed, 0}; }

static cudnnStatus_t set_dropout(Call *call, cudnnDropoutDescriptor_t desc, float dropout, void *states, size_t bytes,
                                 unsigned long long seed) {
  if (!desc) return bad(call, "dropoutDesc is NULL");
  if (!(dropout >= 0 && dropout <= 1)) return bad(call, "dropout is %g: it is a probability", dropout);
  if (states && bytes < STATE_BYTES)
    return bad(call, "the states have %zu bytes, but need %d: cudnnDropoutGetStatesSize()", bytes, STATE_BYTES);
  *desc = (struct cudnnDropoutStruct){1, dropout, states, seed};
  return CUDNN_STATUS_SUCCESS;
}

/* Without states only the probability changes, as NVIDIA's. */
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle, float dropout,
                                        void *states, size_t bytes, unsigned long long seed) {
  BEGIN(call);
  void *before = desc ? desc->states : NULL;
  TRY(set_dropout(&call, desc, dropout, states ? states : before, states ? bytes : STATE_BYTES, seed));
  if (!states) return CUDNN_STATUS_SUCCESS;
  call.seed = seed;
  TRY(add_bytes(&call, "states", states, STATE_BYTES, 1));
  return submit(&call, work_seed);
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle, float dropout,
                                            void *states, size_t bytes, unsigned long long seed) {
  BEGIN(call);
  if (!states) return bad(&call, "states is NULL");
  return set_dropout(&call, desc, dropout, states, bytes, seed);
}

cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle, float *dropout,
                                        void **states, unsigned long long *seed) {
  if (!desc || !handle) return bad_here("the descriptor or the handle is NULL");
  if (dropout) *dropout = desc->dropout;
  if (states) *states = desc->states;
  if (seed) *seed = desc->seed;
  return CUDNN_STATUS_SUCCESS;
}

/* A number in [0,1) for each call and element: the bits of a product, folded twice. */
static double random_at(const State *state, long long i) {
  unsigned long long z =
      state->seed + 0x9e3779b97f4a7c15u * (state->calls + 1) + 0xd1342543de82ef95u * (unsigned long long)(i + 1);
  for (int round = 0; round < 2; round++) {
    z = (z ^ z >> 32) * 0xdaba0b6eb09322e3u;
    z ^= z >> 29;
  }
  return (double)(z >> 11) * 0x1p-53;
}

/* Operands in, out, reserve and, forward, states. */
static void work(Call *call, int forward) {
  float *made, *owned;
  const float *from = dense(call, 0, &made);
  float *to = result(call, 1, 1, 0, &owned);
  unsigned char *kept = call->o[2].data;
  const float scale = call->factor < 1 ? (float)(1 / (1 - call->factor)) : 0;
  if (from && to) {
    const long long count = element_count(&call->o[0].t);
    State *state = forward ? call->o[3].data : NULL;
    PARALLEL
    for (long long i = 0; i < count; i++) {
      if (forward) kept[i] = random_at(state, i) >= call->factor;
      to[i] = kept[i] ? from[i] * scale : 0;
    }
    if (forward) state->calls++;
    deliver(call, 1, to, 1, 0);
  }
  free(made);
  free(owned);
}

static void work_forward(Call *call) { work(call, 1); }
static void work_backward(Call *call) { work(call, 0); }

static cudnnStatus_t dropout(Call *call, const cudnnDropoutDescriptor_t desc, void *reserve, size_t bytes,
                             int forward) {
  const size_t needed = (size_t)element_count(&call->o[0].t);
  if (!desc || !desc->set) return bad(call, "dropoutDesc is NULL, or was never set");
  if (!desc->states) return bad(call, "dropoutDesc has no states: cudnnSetDropoutDescriptor() with memory for them");
  TRY(need_same_dims(call, 0, 1));
  TRY(need_same_type(call, 0, 1));
  if (!reserve || bytes < needed)
    return bad(call, "the reserve space has %zu bytes, but needs %zu: cudnnDropoutGetReserveSpaceSize()",
               reserve ? bytes : 0, needed);
  TRY(add_bytes(call, "reserveSpace", reserve, needed, forward));
  if (forward) TRY(add_bytes(call, "states", desc->states, STATE_BYTES, 1));
  call->factor = desc->dropout;
  return submit(call, forward ? work_forward : work_backward);
}

cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t desc,
                                  const cudnnTensorDescriptor_t x_desc, const void *x,
                                  const cudnnTensorDescriptor_t y_desc, void *y, void *reserve, size_t bytes) {
  BEGIN(call);
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  return dropout(&call, desc, reserve, bytes, 1);
}

cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t desc,
                                   const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                   const cudnnTensorDescriptor_t dx_desc, void *dx, void *reserve, size_t bytes) {
  BEGIN(call);
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TENSOR(&call, "dx", dx_desc, dx, 1);
  return dropout(&call, desc, reserve, bytes, 0);
}
