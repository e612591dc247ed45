/* pooling.c - pooling in two dimensions. */
#include "dnn.h"

/* ---- output dimensions ---- */

static int out_dim(const struct cudnnPoolingStruct *p, const Tensor *x, int axis) {
  int room = x->dim[2 + axis] + 2 * p->padding[axis] - p->window[axis];
  return room < 0 ? 0 : 1 + room / p->stride[axis];
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t desc,
                                                const cudnnTensorDescriptor_t x_desc, int rank, int dim[]) {
  if (!desc || !desc->set || !x_desc || !dim) return bad_here("a descriptor or the array is NULL, or was never set");
  if (x_desc->t.rank != 4 || rank != 4)
    return bad_here("nbDims is %d and the input has %d dimensions: both must be 4", rank, x_desc->t.rank);
  for (int axis = 0; axis < 2; axis++) {
    dim[axis] = x_desc->t.dim[axis];
    dim[2 + axis] = out_dim(desc, &x_desc->t, axis);
    if (dim[2 + axis] < 1)
      return bad_here("the window of %d x %d is larger than the padded input of %d x %d", desc->window[0],
                      desc->window[1], x_desc->t.dim[2] + 2 * desc->padding[0],
                      x_desc->t.dim[3] + 2 * desc->padding[1]);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t desc,
                                                const cudnnTensorDescriptor_t x_desc, int *n, int *c, int *h, int *w) {
  int dim[4] = {0};
  if (!n || !c || !h || !w) return bad_here("the place for n, c, h or w is NULL");
  TRY(cudnnGetPoolingNdForwardOutputDim(desc, x_desc, 4, dim));
  *n = dim[0], *c = dim[1], *h = dim[2], *w = dim[3];
  return CUDNN_STATUS_SUCCESS;
}

/* ---- one plane ---- */

/* The part of a window that lies in the input. */
typedef struct Window {
  int begin[2], end[2];
} Window;

static Window window_at(const struct cudnnPoolingStruct *p, const int *in, int i, int j) {
  const int at[2] = {i * p->stride[0] - p->padding[0], j * p->stride[1] - p->padding[1]};
  Window w;
  for (int a = 0; a < 2; a++) {
    w.begin[a] = at[a] < 0 ? 0 : at[a];
    w.end[a] = at[a] + p->window[a] < in[a] ? at[a] + p->window[a] : in[a];
  }
  return w;
}

static int is_max(const struct cudnnPoolingStruct *p) {
  return p->mode == CUDNN_POOLING_MAX || p->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/* By how many an average is divided. */
static float divisor(const struct cudnnPoolingStruct *p, const Window *w) {
  if (p->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING) return (float)(p->window[0] * p->window[1]);
  return (float)((w->end[0] - w->begin[0]) * (w->end[1] - w->begin[1]));
}

/* Of the first largest element; -1 where all are NaN and these are passed over. */
static int largest(const struct cudnnPoolingStruct *p, const Window *w, const float *x, int width) {
  int best = -1;
  for (int i = w->begin[0]; i < w->end[0]; i++) {
    for (int j = w->begin[1]; j < w->end[1]; j++) {
      const int at = i * width + j;
      if (isnan(x[at])) {
        if (p->nan == CUDNN_PROPAGATE_NAN) return at;
      } else if (best < 0 || x[at] > x[best]) {
        best = at;
      }
    }
  }
  return best;
}

static float pooled(const struct cudnnPoolingStruct *p, const Window *w, const float *x, int width) {
  if (is_max(p)) {
    const int best = largest(p, w, x, width);
    return best < 0 ? -INFINITY : x[best];
  }
  double sum = 0;
  for (int i = w->begin[0]; i < w->end[0]; i++)
    for (int j = w->begin[1]; j < w->end[1]; j++) sum += x[i * width + j];
  return (float)(sum / divisor(p, w));
}

/* Operands x, y. */
static void work_forward(Call *call) {
  float *made, *owned;
  const float *x = dense(call, 0, &made);
  float *y = result(call, 1, call->alpha, call->beta, &owned);
  if (x && y) {
    const int *in = call->o[0].t.dim + 2, *out = call->o[1].t.dim + 2;
    const long long planes = (long long)call->o[0].t.dim[0] * call->o[0].t.dim[1];
    PARALLEL
    for (long long plane = 0; plane < planes; plane++) {
      const float *from = x + plane * in[0] * in[1];
      float *to = y + plane * out[0] * out[1];
      for (int i = 0; i < out[0]; i++)
        for (int j = 0; j < out[1]; j++) {
          const Window w = window_at(&call->pooling, in, i, j);
          *to++ = pooled(&call->pooling, &w, from, in[1]);
        }
    }
    deliver(call, 1, y, call->alpha, call->beta);
  }
  free(made);
  free(owned);
}

static void unpool(const struct cudnnPoolingStruct *p, const int *in, const int *out, const float *x, const float *dy,
                   float *dx) {
  memset(dx, 0, (size_t)in[0] * in[1] * sizeof *dx);
  for (int i = 0; i < out[0]; i++) {
    for (int j = 0; j < out[1]; j++, dy++) {
      const Window w = window_at(p, in, i, j);
      if (is_max(p)) {
        const int best = largest(p, &w, x, in[1]);
        if (best >= 0) dx[best] += *dy;
        continue;
      }
      const float share = *dy / divisor(p, &w);
      for (int r = w.begin[0]; r < w.end[0]; r++)
        for (int s = w.begin[1]; s < w.end[1]; s++) dx[r * in[1] + s] += share;
    }
  }
}

/* Operands dy, x, dx (and y, which x tells). */
static void work_backward(Call *call) {
  float *made[2], *owned;
  const float *dy = dense(call, 0, &made[0]), *x = dense(call, 1, &made[1]);
  float *dx = result(call, 2, call->alpha, call->beta, &owned);
  if (dy && x && dx) {
    const int *in = call->o[1].t.dim + 2, *out = call->o[0].t.dim + 2;
    const long long planes = (long long)call->o[1].t.dim[0] * call->o[1].t.dim[1];
    PARALLEL
    for (long long plane = 0; plane < planes; plane++)
      unpool(&call->pooling, in, out, x + plane * in[0] * in[1], dy + plane * out[0] * out[1],
             dx + plane * in[0] * in[1]);
    deliver(call, 2, dx, call->alpha, call->beta);
  }
  for (int i = 0; i < 2; i++) free(made[i]);
  free(owned);
}

/* ---- calls ---- */

static cudnnStatus_t set_pooling(Call *call, const cudnnPoolingDescriptor_t desc, int x, int y) {
  char first[100], second[100];
  const Tensor *in = &call->o[x].t, *out = &call->o[y].t;
  if (!desc || !desc->set) return bad(call, "poolingDesc is NULL, or was never set");
  TRY(need_4d(call, x));
  TRY(need_4d(call, y));
  call->pooling = *desc;
  if (out->dim[0] == in->dim[0] && out->dim[1] == in->dim[1] && out->dim[2] == out_dim(desc, in, 0) &&
      out->dim[3] == out_dim(desc, in, 1))
    return CUDNN_STATUS_SUCCESS;
  return bad(call,
             "%s is %s, but pooling %s %s with a window of %d x %d, padding %d x %d and stride %d x %d gives "
             "(%d,%d,%d,%d)",
             call->o[y].name, dims_text(out, first, sizeof first), call->o[x].name,
             dims_text(in, second, sizeof second), desc->window[0], desc->window[1], desc->padding[0], desc->padding[1],
             desc->stride[0], desc->stride[1], in->dim[0], in->dim[1], out_dim(desc, in, 0), out_dim(desc, in, 1));
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t desc, const void *alpha,
                                  const cudnnTensorDescriptor_t x_desc, const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t y_desc, void *y) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TRY(set_pooling(&call, desc, 0, 1));
  TRY(need_same_type(&call, 0, 1));
  return submit(&call, work_forward);
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t desc, const void *alpha,
                                   const cudnnTensorDescriptor_t y_desc, const void *y,
                                   const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                   const cudnnTensorDescriptor_t x_desc, const void *x, const void *beta,
                                   const cudnnTensorDescriptor_t dx_desc, void *dx) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "dx", dx_desc, dx, 1);
  TENSOR(&call, "y", y_desc, y, 0);
  TRY(need_same_dims(&call, 3, 0));
  TRY(need_same_dims(&call, 1, 2));
  TRY(set_pooling(&call, desc, 1, 0));
  for (int i = 1; i < 4; i++) TRY(need_same_type(&call, 0, i));
  return submit(&call, work_backward);
}
