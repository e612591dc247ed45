/* dnn.h - what the files of cuDNN have in common.
 *
 * A call is described by a Call: its tensors, with their descriptors and pointers, its factors, and what the
 * operation needs besides. It is checked, copied into the stream's queue, and done by a function of type Work: at
 * once, or when the stream is waited for.
 *
 * An operation computes on packed floats, in the order of the dimensions (n,c,h,w). dense() gives a tensor in this
 * form, result() a place for a result, and deliver() puts that where it belongs: alpha * result + beta * what is
 * there, whatever the layout and type. Where a tensor is packed floats already, both are the tensor itself.
 *
 *   handle.c        the handle, errors
 *   descriptors.c   tensors, filters, activations, pooling
 *   tensors.c       dense(), result(), deliver(); element by element: add, op, transform, scale, set
 *   reduce.c        reductions
 *   activation.c    activations and softmax
 *   pooling.c       pooling
 *   batch_norm.c    batch normalization
 *   dropout.c       dropout
 *   convolution.c   convolutions: the descriptor, the calls
 *   algorithms.c    their algorithms and workspaces
 *   onednn.c        convolutions of oneDNN; onednn.h: its versions 2 and 3
 *   attributes.c    the graph API: descriptors and their attributes
 *   plan.c          the graph API: what a graph computes
 *   execute.c       the graph API: pointwise operations, execution
 *   graph.c         the graph API: engines, finalization, reading
 */
#ifndef SIMT_DNN_H
#define SIMT_DNN_H

#include "cudnn.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "hooks.h"
#include "runtime.h"

struct cudnnContext {
  cudaStream_t stream;
};

/* Of a tensor or a filter. rank 0: never set. */
typedef struct Tensor {
  cudnnDataType_t type;
  int rank, dim[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
} Tensor;

struct cudnnTensorStruct {
  Tensor t;
};

struct cudnnFilterStruct {
  Tensor t; /* k, c, h, w with their strides */
  cudnnTensorFormat_t format;
};

struct cudnnActivationStruct {
  int set;
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coef, swish_beta;
};

struct cudnnPoolingStruct {
  int set;
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int window[2], padding[2], stride[2];
};

struct cudnnConvolutionStruct {
  int set;
  int padding[2], stride[2], dilation[2], groups;
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute;
  cudnnMathType_t math;
  cudnnReorderType_t reorder;
};

typedef enum Pass { FORWARD, BACKWARD_DATA, BACKWARD_FILTER } Pass;

/* A convolution, its x, w, y as in the forward pass. */
typedef struct Convolution {
  Pass pass;
  Tensor x, w, y;
  struct cudnnConvolutionStruct c;
} Convolution;

typedef struct Operand {
  const char *name; /* as the API calls it */
  Tensor t;
  void *data;  /* NULL: not given */
  int written; /* for the inspector */
} Operand;

/* A pointwise operation of a graph on the value before it: value = f(alpha1 * value, alpha2 * other). */
typedef struct Pointwise {
  cudnnPointwiseMode_t mode;
  int other, out; /* numbers of operands; -1: none, or the result is virtual */
  int swapped;    /* the value before is the second argument, and `other` the first */
  int by_value;   /* `other` is a number, which came with the pointers */
  float value, alpha1, alpha2;
  double lower, upper, slope, elu_alpha, softplus_beta, swish_beta;
} Pointwise;

enum { CALL_OPERANDS = 12, CALL_STEPS = 8 };

typedef struct Call Call;
typedef void Work(Call *call);

struct Call {
  cudaStream_t stream;
  Work *work;
  const char *name;   /* of the function that was called */
  const void *caller; /* return address */
  int operands;
  Operand o[CALL_OPERANDS];
  float alpha, beta, alpha2, beta2;
  double epsilon, factor;
  int mode, algorithm, op;
  unsigned long long seed;
  Convolution convolution;
  struct cudnnActivationStruct activation;
  struct cudnnPoolingStruct pooling;
  int x, w, y, steps; /* of a graph: operands, -1 for none; pointwise operations after the convolution */
  Pointwise step[CALL_STEPS];
};

/* ---- checks ---- */

#define CALLER __func__, __builtin_return_address(0)

/* What every call of the handle begins with. */
Call call_of(cudnnHandle_t handle, const char *function, const void *caller);
#define BEGIN(call)                                                                                               \
  if (!handle)                                                                                                    \
    return refuse_plainly(CUDNN_STATUS_NOT_INITIALIZED, __func__, "the handle is NULL: cudnnCreate() makes one"); \
  Call call = call_of(handle, CALLER)

/* Keeps the reason for cudnnGetLastErrorString(), reports it with the place of the call, and gives the status. */
cudnnStatus_t refuse(const Call *call, cudnnStatus_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same without a report: for descriptors and for questions. */
cudnnStatus_t refuse_plainly(cudnnStatus_t status, const char *function, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define bad(call, ...) refuse(call, CUDNN_STATUS_BAD_PARAM, __VA_ARGS__)
#define not_supported(call, ...) refuse(call, CUDNN_STATUS_NOT_SUPPORTED, __VA_ARGS__)
#define bad_here(...) refuse_plainly(CUDNN_STATUS_BAD_PARAM, __func__, __VA_ARGS__)
#define not_supported_here(...) refuse_plainly(CUDNN_STATUS_NOT_SUPPORTED, __func__, __VA_ARGS__)

#define TRY(expression)                                  \
  do {                                                   \
    cudnnStatus_t status_ = (expression);                \
    if (status_ != CUDNN_STATUS_SUCCESS) return status_; \
  } while (0)

/* For what the caller may not want to know. */
#define PUT(place, value)          \
  do {                             \
    if (place) *(place) = (value); \
  } while (0)

size_t dnn_type_bytes(cudnnDataType_t type);
const char *dnn_type_name(cudnnDataType_t type);
/* "(2,3,5,7)" */
const char *dims_text(const Tensor *t, char *text, size_t size);
long long element_count(const Tensor *t);
/* From the first to the last element, in elements. */
long long span_of(const Tensor *t);
int same_dims(const Tensor *a, const Tensor *b);
/* Each dimension of `small` is that of `large`, or 1. */
int broadcasts(const Tensor *small, const Tensor *large);
int is_packed(const Tensor *t);
/* Row-major strides. */
void pack(Tensor *t);
/* The check of all that set a tensor or a filter. */
cudnnStatus_t check_tensor(const char *function, const Tensor *t, int least, int smallest);

/* A tensor of the call: its descriptor is set, of a type that is offered. */
cudnnStatus_t add_tensor(Call *call, const char *name, const Tensor *t, const void *data, int written);
#define TENSOR(call, name, desc, data, written) TRY(add_tensor(call, name, (desc) ? &(desc)->t : NULL, data, written))
/* The same of bytes: a workspace, a mask. */
cudnnStatus_t add_bytes(Call *call, const char *name, const void *data, size_t bytes, int written);
cudnnStatus_t need_same_dims(Call *call, int a, int b);
cudnnStatus_t need_same_type(Call *call, int a, int b);
cudnnStatus_t need_4d(Call *call, int a);
/* alpha, beta: floats of the host. */
cudnnStatus_t factor_at(Call *call, const char *name, const void *pointer, float *value);

/* Checks that all operands lie in the GPU's memory, and queues the work. */
cudnnStatus_t submit(Call *call, Work *work);

/* ---- the work ---- */

int dnn_threads(void);
#define DNN_PRAGMA(text) _Pragma(#text)
/* Of a loop of independent rounds, each of which does the same whoever does it. */
#define PARALLEL DNN_PRAGMA(omp parallel for schedule(static) num_threads(dnn_threads()))

/* Memory of the host, NULL with a report where there is none. */
void *work_memory(const Call *call, size_t bytes);

/* Operand i as packed floats. *made is NULL, or to be freed. NULL where memory is missing. */
const float *dense(Call *call, int i, float **made);
/* Where packed floats of the result i are to be written; *made as above. */
float *result(Call *call, int i, float alpha, float beta, float **made);
/* Brings them into the result. */
void deliver(Call *call, int i, const float *from, float alpha, float beta);
/* Where row `row` of `dims` begins in t, whose dimensions are those or 1; a row is the last dimension. */
long long row_begin(const Tensor *dims, const Tensor *t, long long row);
/* From one element of a row to the next. */
long long row_step(const Tensor *t);
/* Tells the inspector. */
void wrote(const Operand *o);

float load_float(cudnnDataType_t type, const void *array, long long i);
void store_float(cudnnDataType_t type, void *array, long long i, float value);

/* y = f(x); elementwise, in place too. */
void activate(const struct cudnnActivationStruct *a, const float *x, float *y, long long count);

/* ---- convolutions ---- */

/* The output's dimension; below 1 where the filter does not fit. */
long long conv_out(const Convolution *c, int axis);
/* All that a convolution must satisfy; `quietly`: a question, no report. */
cudnnStatus_t check_convolution(const Call *call, const Convolution *c, int quietly);
/* Bytes of an algorithm's workspace, or why it cannot: *why is a sentence. */
cudnnStatus_t algorithm_bytes(const Convolution *c, int algorithm, size_t *bytes, const char **why);
/* Of float tensors of any strides, by oneDNN. 0, or -1 where it cannot, or has no memory: *why is a sentence. */
int onednn_convolve(const Convolution *c, const float *x, const float *w, const float *y, const char **why);
/* How many algorithms a pass has; the one that is proposed as number i; what they are, as the graph API says. */
int algorithm_count(Pass pass);
int proposed_algorithm(Pass pass, int i);
int algorithm_notes(Pass pass, int algorithm, cudnnBackendNumericalNote_t note[2]);
/* The convolution of operands x, w, y of a call: alpha, beta. */
void convolve(Call *call, int x, int w, int y, float alpha, float beta);

#endif /* SIMT_DNN_H */
