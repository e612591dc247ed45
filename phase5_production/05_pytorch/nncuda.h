/* nncuda.h - the operations of this course as a shared library, libnncuda.so.1, for any language that can call C.
 *
 *     float *y = ..., *x = ...;                                     // (rows,cols), in the memory of GPU 0
 *     if (nncuda_softmax_forward(0, stream, NNCUDA_FLOAT32, y, x, rows, cols) != NNCUDA_OK)
 *       fprintf(stderr, "%s\n", nncuda_last_error());
 *
 * What all functions have in common:
 *
 * `device`   NNCUDA_CPU: the pointers are host memory, and the CPU versions compute before the function returns. 0, 1,
 *            ...: the pointers are memory of this GPU, and kernels are launched. In a library that was built without
 *            CUDA, device 0 is the emulated GPU: its kernels run on the CPU and take host pointers, too.
 * `stream`   a cudaStream_t of that device. All work of the call goes there and nowhere else, in order with what the
 *            caller has put there. NULL is CUDA's legacy default stream, as everywhere in CUDA's C interface and as
 *            PyTorch's default stream, never the thread's own one. On NNCUDA_CPU it is ignored.
 * memory     belongs to the caller. The library allocates none on a device. An operation that needs scratch memory has
 *            a function NAME_workspace(), which gives its size in bytes; the memory must begin at a multiple of 256
 *            bytes (64 on NNCUDA_CPU), may be used again by the next operation of the same stream, and must not be
 *            freed before the stream is done with it. Where the size is 0 the pointer may be NULL.
 * arrays     are contiguous, row-major. Sizes are int64_t, and those beyond what the kernels count are refused. In
 *            place (output == input) only where a comment allows it. Outputs are overwritten unless "adds".
 * result     NNCUDA_OK, or another nncuda_status, and then nothing was launched unless it is NNCUDA_CUDA. The reason
 *            is in nncuda_last_error(), "nncuda_softmax_forward: cols is -3; expected 1 to 2147483647", until the next
 *            failure in the same thread. A launch is asynchronous: a fault inside a kernel is reported by a later call.
 * waiting    no function waits for the device, so each can be captured in a CUDA graph.
 * threads    any number may call at the same time, on the same or on different streams and devices. What one call
 *            works on must not be written by another meanwhile.
 * dtype      of the arrays, an nncuda_dtype; gradients have the same. Most operations have kernels for NNCUDA_FLOAT32
 *            alone, and refuse the others by name.
 *
 * Every function is exported with the version NNCUDA_1.0 (nncuda.map). A function never changes its arguments: one that
 * has to gets a new name or a new version, and the old one stays. So a program that was linked with this library runs
 * with every later libnncuda.so.1. Compare versions with nncuda_check_version().
 */
#ifndef NNCUDA_H
#define NNCUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NNCUDA_VERSION_MAJOR 1 /* changes with the soname, when old programs cannot run any more */
#define NNCUDA_VERSION_MINOR 0 /* grows with each new function */
#define NNCUDA_VERSION_PATCH 0
#define NNCUDA_VERSION (NNCUDA_VERSION_MAJOR * 10000 + NNCUDA_VERSION_MINOR * 100 + NNCUDA_VERSION_PATCH)

#if defined(NNCUDA_BUILDING) && defined(__GNUC__)
#define NNCUDA_API __attribute__((visibility("default")))
#else
#define NNCUDA_API
#endif

enum { NNCUDA_CPU = -1 }; /* `device` */

typedef enum nncuda_status {
  NNCUDA_OK = 0,
  NNCUDA_BAD_ARGUMENT = 1, /* a pointer, a size, an enumerator: the call is wrong */
  NNCUDA_UNSUPPORTED = 2,  /* the call is right, but there is no kernel for it */
  NNCUDA_NO_DEVICE = 3,    /* there is no such GPU */
  NNCUDA_CUDA = 4,         /* CUDA reports an error, of this call or of an earlier one */
  NNCUDA_VERSION_MISMATCH = 5,
} nncuda_status;

/* NNCUDA_TF32: arrays of float32, whose products tensor cores compute of factors with 11 bits. */
typedef enum nncuda_dtype { NNCUDA_FLOAT32 = 0, NNCUDA_FLOAT16 = 1, NNCUDA_BFLOAT16 = 2, NNCUDA_TF32 = 3 } nncuda_dtype;
typedef enum nncuda_index { NNCUDA_INT32 = 0, NNCUDA_INT64 = 1 } nncuda_index; /* of labels */
typedef enum nncuda_reduction { NNCUDA_MEAN = 0, NNCUDA_SUM = 1 } nncuda_reduction;
typedef enum nncuda_activation {
  NNCUDA_RELU = 0,
  NNCUDA_LEAKY_RELU = 1, /* slope 0.01 */
  NNCUDA_SIGMOID = 2,
  NNCUDA_TANH = 3,
} nncuda_activation;
/* What follows batch norm within the same kernel: nothing, y = relu(y), or y = relu(y + z). */
typedef enum nncuda_after { NNCUDA_ALONE = 0, NNCUDA_THEN_RELU = 1, NNCUDA_THEN_ADD_RELU = 2 } nncuda_after;

/* ---------------------------------------------------------------------------------------------------------------- */
/* The library */

NNCUDA_API int nncuda_version(void);              /* NNCUDA_VERSION of the library that is loaded: 10000 is 1.0.0 */
NNCUDA_API const char *nncuda_version_text(void); /* "nncuda 1.0.0, CUDA 13.0" or "nncuda 1.0.0, emulated GPU" */

/* NNCUDA_VERSION_MISMATCH, with a sentence, where the loaded library is older than the header of the caller, or of
 * another major version: nncuda_check_version(NNCUDA_VERSION). */
NNCUDA_API int nncuda_check_version(int version);

/* Of this thread's last failure; "" where there was none. The texts stay until the next failure of the thread. */
NNCUDA_API const char *nncuda_last_error(void);    /* the sentence: function, argument, value seen, what is expected */
NNCUDA_API const char *nncuda_last_argument(void); /* the argument's name in this header, "cols"; "" if it is none's */
NNCUDA_API const char *nncuda_status_name(int status); /* "NNCUDA_BAD_ARGUMENT" */

/* GPUs that can be used; 0 where there are none, and 1 for the emulated one. */
NNCUDA_API int nncuda_device_count(void);
/* "NVIDIA H200", "emulated GPU", "CPU" into text, always ended by '\0'. */
NNCUDA_API int nncuda_device_name(int device, char *text, size_t size);

/* For callers that have no CUDA of their own: a stream that does not wait for the legacy one, and waiting for all work
 * of a stream (NULL: the legacy one). On NNCUDA_CPU the stream is NULL. */
NNCUDA_API int nncuda_stream_create(int device, void **stream);
NNCUDA_API int nncuda_stream_destroy(int device, void *stream);
NNCUDA_API int nncuda_stream_synchronize(int device, void *stream);

/* Checks that cost more than a launch, of all threads: each pointer is looked up (memory of the device? of the host?),
 * and after each call the stream is waited for, unless it is being captured, so that a fault in a kernel is reported by
 * the call that launched it. Off unless the environment has NNCUDA_CHECKS=1. Gives the old setting. */
NNCUDA_API int nncuda_set_checks(int on);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Softmax and cross-entropy */

/* x, y (rows,cols): y = exp(x - max) / sum in each row. y may be x. */
NNCUDA_API int nncuda_softmax_forward(int device, void *stream, int dtype, void *y, const void *x, int64_t rows,
                                      int64_t cols);
/* dx = y (dy - sum of y dy). y is what forward wrote. dx may be dy or y. */
NNCUDA_API int nncuda_softmax_backward(int device, void *stream, int dtype, void *dx, const void *dy, const void *y,
                                       int64_t rows, int64_t cols);

/* The loss of logits (rows,classes) for labels (rows), an array of nncuda_index, and its gradient in one pass:
 *
 *     loss      one float, on the device: the mean (NNCUDA_MEAN) or the sum of the rows' losses
 *     dlogits   (rows,classes): its gradient, for backward; may be logits; NULL: not wanted
 *     report    3 int64_t, on the device, or NULL: [0] rows that count, [1] rows whose label is not one of 0 to
 *               classes - 1 nor ignore_index, [2] the first of these rows, or -1
 *
 * A row whose label is ignore_index has no loss and no gradient, and the mean is over the others (of none: NaN, as in
 * PyTorch). ignore_index may be a class. A wrong label makes the loss NaN and its row of dlogits NaN or wrong; on
 * NNCUDA_CPU it is NNCUDA_BAD_ARGUMENT. On a GPU the host does not see the labels without waiting: read `report`.
 * label_smoothing 0 to 1: this share of the target is spread over all classes, as in PyTorch. */
NNCUDA_API size_t nncuda_cross_entropy_workspace(int device, int64_t rows, int64_t classes);
NNCUDA_API int nncuda_cross_entropy(int device, void *stream, int dtype, void *loss, void *dlogits, int64_t *report,
                                    const void *logits, const void *labels, int index, int64_t rows, int64_t classes,
                                    int reduction, int64_t ignore_index, double label_smoothing, void *workspace,
                                    size_t workspace_bytes);

/* x (n) *= *factor, one number on the device; where that is 1, x is not touched. For the backward pass of a loss, whose
 * incoming gradient nearly always is 1. y (n) may be x, and else is a copy. */
NNCUDA_API int nncuda_scale(int device, void *stream, int dtype, void *y, const void *x, const void *factor, int64_t n);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Activations, sums, dropout: arrays of n elements; n may be 0 */

/* y may be x. `activation`: an nncuda_activation. */
NNCUDA_API int nncuda_activation_forward(int device, void *stream, int dtype, int activation, void *y, const void *x,
                                         int64_t n);
/* From y, not x. dx may be dy. */
NNCUDA_API int nncuda_activation_backward(int device, void *stream, int dtype, int activation, void *dx, const void *dy,
                                          const void *y, int64_t n);
/* y = relu(a + b). y may be a or b. */
NNCUDA_API int nncuda_add_relu_forward(int device, void *stream, int dtype, void *y, const void *a, const void *b,
                                       int64_t n);
/* d = dy where y > 0, else 0: the gradient of a and of b. d may be dy. */
NNCUDA_API int nncuda_add_relu_backward(int device, void *stream, int dtype, void *d, const void *dy, const void *y,
                                        int64_t n);
/* Each element is dropped with probability p (0 to 1), the others are multiplied by 1 / (1 - p). Which ones is a
 * function of (seed, offset, position) alone, by Philox4x32-10: backward is the same call on dy. y may be x. */
NNCUDA_API int nncuda_dropout(int device, void *stream, int dtype, void *y, const void *x, int64_t n, double p,
                              uint64_t seed, uint32_t offset);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Matrix products */

/* c (m,n) = op(a) op(b), with op(a) (m,k) and op(b) (k,n); transpose_a: a lies as (k,m); transpose_b: b lies as (n,k).
 * accumulate: adds to c. */
NNCUDA_API int nncuda_matmul(int device, void *stream, int dtype, void *c, const void *a, const void *b, int64_t m,
                             int64_t n, int64_t k, int transpose_a, int transpose_b, int accumulate);

/* y (batch,out) = x w^T + bias, with x (batch,in), w (out,in), bias (out) or NULL; relu: y = max(0, y). */
NNCUDA_API size_t nncuda_linear_workspace(int device, int64_t batch, int64_t in, int64_t out);
NNCUDA_API int nncuda_linear_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w,
                                     const void *bias, int64_t batch, int64_t in, int64_t out, int relu,
                                     void *workspace, size_t workspace_bytes);
/* dx (batch,in), dw (out,in), dbias (out): each may be NULL. relu: y is what forward wrote, else NULL. */
NNCUDA_API size_t nncuda_linear_backward_workspace(int device, int64_t batch, int64_t in, int64_t out, int relu);
NNCUDA_API int nncuda_linear_backward(int device, void *stream, int dtype, void *dx, void *dw, void *dbias,
                                      const void *dy, const void *y, const void *x, const void *w, int64_t batch,
                                      int64_t in, int64_t out, int relu, void *workspace, size_t workspace_bytes);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Convolution: x (N,C,H,W), w (K,C/groups,R,S), bias (K), y (N,K,P,Q), as PyTorch's conv2d */

typedef struct nncuda_conv2d_shape {
  int64_t n, c, h, w; /* of x */
  int64_t k, r, s;    /* of w */
  int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
} nncuda_conv2d_shape;

/* P and Q; also checks the shape. */
NNCUDA_API int nncuda_conv2d_output(const nncuda_conv2d_shape *shape, int64_t *p, int64_t *q);

/* One workspace serves forward and both backward functions. Forward alone needs less. Ask for each shape: a smaller
 * batch may take other kernels, which need more. */
NNCUDA_API size_t nncuda_conv2d_workspace(int device, const nncuda_conv2d_shape *shape);
NNCUDA_API size_t nncuda_conv2d_forward_workspace(int device, const nncuda_conv2d_shape *shape);
/* The kernels that float32 convolutions of all threads take on a GPU, to compare them; where there is none of these for
 * a shape, NNCUDA_GEMM. NNCUDA_CONVOLUTION=direct, winograd or gemm in the environment does the same. Not while other
 * threads convolve: their workspace is of the kernels before. */
typedef enum nncuda_way { NNCUDA_CHOSEN = 0, NNCUDA_DIRECT = 1, NNCUDA_WINOGRAD = 2, NNCUDA_GEMM = 3 } nncuda_way;
NNCUDA_API int nncuda_set_convolution(int way);

/* y = conv(x, w) + bias + residual, then ReLU where relu is 1. bias and residual (N,K,P,Q) may be NULL. */
NNCUDA_API int nncuda_conv2d_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w,
                                     const void *bias, const void *residual, int relu, const nncuda_conv2d_shape *shape,
                                     void *workspace, size_t workspace_bytes);
NNCUDA_API int nncuda_conv2d_backward_input(int device, void *stream, int dtype, void *dx, const void *dy,
                                            const void *w, const nncuda_conv2d_shape *shape, void *workspace,
                                            size_t workspace_bytes);
/* dbias may be NULL. */
NNCUDA_API int nncuda_conv2d_backward_weight(int device, void *stream, int dtype, void *dw, void *dbias, const void *dy,
                                             const void *x, const nncuda_conv2d_shape *shape, void *workspace,
                                             size_t workspace_bytes);

/* The same forward pass by tensor cores, in PyTorch's channels_last format: x (N,H,W,C), w (K,R,S,C/groups), residual
 * and y (N,P,Q,K), of float16, bfloat16 or tf32; bias (K) is float32. There is no float32, and no backward pass.
 * Without a residual the workspace may be NULL. The first call of a process asks the GPU what the kernels were compiled
 * for, which waits: make one before a capture.
 *
 * tf32: products are of factors with 11 bits, sums are float32. mma.sync rounds the factors. wgmma (H100, H200) cuts
 * the other bits of x, w and residual off, and stores y rounded to 11 bits, so that the y of one call loses nothing as
 * the x or residual of the next: round weights and pictures beforehand where the last bit counts. */
NNCUDA_API size_t nncuda_conv2d_nhwc_workspace(int device, int dtype);
NNCUDA_API int nncuda_conv2d_nhwc_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w,
                                          const float *bias, const void *residual, int relu,
                                          const nncuda_conv2d_shape *shape, void *workspace, size_t workspace_bytes);

/* Batch norm in evaluation becomes part of the convolution before it: new_w (filters,weights) and new_bias (filters)
 * from w, bias (NULL: 0), and batch norm's gamma, beta, mean, var (filters each). weights: C/groups R S. new_w may be
 * w, new_bias may be bias. */
NNCUDA_API int nncuda_conv2d_fold_batch_norm(int device, void *stream, int dtype, void *new_w, void *new_bias,
                                             const void *w, const void *bias, const void *gamma, const void *beta,
                                             const void *mean, const void *var, double epsilon, int64_t filters,
                                             int64_t weights);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Pooling: x (N,C,H,W), y (N,C,P,Q) */

typedef struct nncuda_pool2d_shape {
  int64_t n, c, h, w; /* of x */
  int64_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  int64_t ceil_mode; /* 1: P and Q are rounded up */
} nncuda_pool2d_shape;

NNCUDA_API int nncuda_pool2d_output(const nncuda_pool2d_shape *shape, int64_t *p, int64_t *q);

/* argmax (N,C,P,Q), one byte each: which element of the window it was, for backward. relu: of max(0, x). */
NNCUDA_API int nncuda_max_pool2d_forward(int device, void *stream, int dtype, void *y, uint8_t *argmax, const void *x,
                                         int relu, const nncuda_pool2d_shape *shape);
NNCUDA_API int nncuda_max_pool2d_backward(int device, void *stream, int dtype, void *dx, const void *dy,
                                          const uint8_t *argmax, const nncuda_pool2d_shape *shape);
/* count_include_pad: padding counts in the mean. Dilation must be 1. */
NNCUDA_API int nncuda_avg_pool2d_forward(int device, void *stream, int dtype, void *y, const void *x,
                                         int count_include_pad, const nncuda_pool2d_shape *shape);
NNCUDA_API int nncuda_avg_pool2d_backward(int device, void *stream, int dtype, void *dx, const void *dy,
                                          int count_include_pad, const nncuda_pool2d_shape *shape);
/* x (planes,pixels), y (planes): the mean of each plane. */
NNCUDA_API int nncuda_global_avg_pool2d_forward(int device, void *stream, int dtype, void *y, const void *x,
                                                int64_t planes, int64_t pixels);
NNCUDA_API int nncuda_global_avg_pool2d_backward(int device, void *stream, int dtype, void *dx, const void *dy,
                                                 int64_t planes, int64_t pixels);

/* Convolution, bias, ReLU and max pooling in one call, for inference: the beginning of a ResNet. `pool` is of what the
 * convolution of `conv` gives. x (N,C,H,W) is float32 for every dtype, bias (K) too.
 *
 *     NNCUDA_FLOAT32   w (K,C/groups,R,S), y (N,K,P,Q): every shape. The workspace holds the convolution's outputs of a
 *                      few pictures at a time: 26 MiB where one has less
 *     the others       w (K,R,S,3) and y (N,P,Q,K) of this dtype (tf32: float32), for nncuda_conv2d_nhwc_forward(). One
 *                      kernel, for 3 channels, filters of 7 x 7 (stride 2, padding 3), a multiple of 8 of them, and
 *                      windows of 3 x 3 (stride 2, padding 1). y begins at a multiple of 16 bytes. tf32: factors become
 *                      float16, which has its 11 bits but not its range: pixels and weights must be below 65504; y is
 *                      rounded to 11 bits */
NNCUDA_API size_t nncuda_stem_pool2d_workspace(int device, int dtype, const nncuda_conv2d_shape *conv,
                                               const nncuda_pool2d_shape *pool);
NNCUDA_API int nncuda_stem_pool2d_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w,
                                          const float *bias, const nncuda_conv2d_shape *conv,
                                          const nncuda_pool2d_shape *pool, void *workspace, size_t workspace_bytes);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Norms */

/* x, y (rows,cols), weight and bias (cols; each may be NULL): each row with mean 0 and variance 1, times weight, plus
 * bias. saved (2,rows): the means, then 1 / standard deviation, for backward. epsilon must be 1e-5, a constant of the
 * kernels. */
NNCUDA_API int nncuda_layer_norm_forward(int device, void *stream, int dtype, void *y, void *saved, const void *x,
                                         const void *weight, const void *bias, double epsilon, int64_t rows,
                                         int64_t cols);
NNCUDA_API size_t nncuda_layer_norm_backward_workspace(int device, int64_t rows, int64_t cols);
/* dx, dweight, dbias: each may be NULL. */
NNCUDA_API int nncuda_layer_norm_backward(int device, void *stream, int dtype, void *dx, void *dweight, void *dbias,
                                          const void *dy, const void *x, const void *weight, const void *saved,
                                          int64_t rows, int64_t cols, void *workspace, size_t workspace_bytes);

/* x, y, z (N,C,pixels), with pixels = H W; gamma, beta, mean, var (C). `after`: an nncuda_after; z is read with
 * NNCUDA_THEN_ADD_RELU. epsilon must be 1e-5 and momentum 0.1, constants of the kernels.
 *
 * Training: the statistics are those of the batch; running_mean and running_var move towards them (both NULL: there are
 * none). Written for backward: saved_mean and saved_inv_std (C), and with NNCUDA_THEN_ADD_RELU `passed`,
 * nncuda_batch_norm_passed() bytes. */
NNCUDA_API size_t nncuda_batch_norm_passed(int64_t n, int64_t c, int64_t pixels);
NNCUDA_API size_t nncuda_batch_norm_workspace(int device, int64_t n, int64_t c, int64_t pixels);
NNCUDA_API int nncuda_batch_norm_forward(int device, void *stream, int dtype, void *y, void *saved_mean,
                                         void *saved_inv_std, void *passed, void *running_mean, void *running_var,
                                         const void *x, const void *z, const void *gamma, const void *beta, int after,
                                         double momentum, double epsilon, int64_t n, int64_t c, int64_t pixels,
                                         void *workspace, size_t workspace_bytes);
/* Evaluation: the statistics are the running ones. */
NNCUDA_API int nncuda_batch_norm_evaluate(int device, void *stream, int dtype, void *y, const void *x, const void *z,
                                          const void *gamma, const void *beta, const void *running_mean,
                                          const void *running_var, int after, double epsilon, int64_t n, int64_t c,
                                          int64_t pixels);
/* Of training. dx, dz may be NULL; dgamma and dbeta may both be NULL. */
NNCUDA_API int nncuda_batch_norm_backward(int device, void *stream, int dtype, void *dx, void *dz, void *dgamma,
                                          void *dbeta, const void *dy, const void *x, const void *gamma,
                                          const void *beta, const void *saved_mean, const void *saved_inv_std,
                                          const void *passed, int after, int64_t n, int64_t c, int64_t pixels,
                                          void *workspace, size_t workspace_bytes);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Attention */

/* q, k, v, o (batch,heads,length,depth), lse (batch,heads,length) in float32, for backward: o = softmax(q k^T /
 * sqrt(depth)) v. causal: query i sees keys 0 to i. depth is at most 128. NNCUDA_FLOAT32 and NNCUDA_BFLOAT16. */
NNCUDA_API int nncuda_attention_forward(int device, void *stream, int dtype, void *o, void *lse, const void *q,
                                        const void *k, const void *v, int64_t batch, int64_t heads, int64_t length,
                                        int64_t depth, int causal);
NNCUDA_API size_t nncuda_attention_backward_workspace(int device, int dtype, int64_t batch, int64_t heads,
                                                      int64_t length, int64_t depth);
/* dout: the gradient of o. */
NNCUDA_API int nncuda_attention_backward(int device, void *stream, int dtype, void *dq, void *dk, void *dv,
                                         const void *dout, const void *q, const void *k, const void *v, const void *o,
                                         const void *lse, int64_t batch, int64_t heads, int64_t length, int64_t depth,
                                         int causal, void *workspace, size_t workspace_bytes);

/* ---------------------------------------------------------------------------------------------------------------- */
/* Optimizers: one step on all tensors of a model, in float32, in as few launches as possible. As torch.optim computes.
 *
 * tensors: how many there are. The arrays w, grad, ... of that many pointers, and `length` of that many element counts,
 * lie on the host and are read before the function returns. Weights and state are updated in place. */

/* momentum_buffer: NULL where momentum is 0. first_step: it holds zeros; the gradient is added without dampening. */
NNCUDA_API int nncuda_sgd_step(int device, void *stream, int64_t tensors, float *const *w, const float *const *grad,
                               float *const *momentum_buffer, const int64_t *length, double lr, double momentum,
                               double dampening, int nesterov, double weight_decay, int first_step);
/* decoupled: 0 Adam, 1 AdamW. step: the number of this step, from 1. */
NNCUDA_API int nncuda_adam_step(int device, void *stream, int64_t tensors, float *const *w, const float *const *grad,
                                float *const *exp_avg, float *const *exp_avg_sq, const int64_t *length, double lr,
                                double beta1, double beta2, double epsilon, double weight_decay, int decoupled,
                                int64_t step);

#ifdef __cplusplus
}
#endif

#endif /* NNCUDA_H */
