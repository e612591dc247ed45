/* op.h - what an operation of a network is: shapes, parameters, and two functions written by hand.
 *
 * A network is a list of nodes (graph.h). Each node has an Op: forward() computes y from x, backward() computes dx and
 * the gradients of its parameters from dy. There is no autograd: each backward() is derived by hand.
 *
 * An Op lives in a phase, beside its kernels, and is a constant table:
 *
 *     static const Op relu_op = {"Relu", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, relu_op_forward, relu_op_backward};
 */
#ifndef COMMON_NN_OP_H
#define COMMON_NN_OP_H

#include <math.h>
#include <stdint.h>

#include "common/device.h"
#include "common/half.h"

enum { SHAPE_MAX_RANK = 8, NODE_MAX_INPUTS = 8, NODE_MAX_PARAMS = 6, NODE_ATTRIBUTE_BYTES = 512, NODE_NAME = 64 };
enum { NODE_LOWER_INPUTS = 2 }; /* of an operation of 16 bits */

/* ----------------------------------------------------------------------------------------------------------- shape */

/* Of one sample: (features), (C,H,W). The batch is not part of it. Rank 0 is one number. */
typedef struct Shape {
  int rank, dim[SHAPE_MAX_RANK];
} Shape;

static inline Shape shape1(int features) {
  Shape shape = {1, {features, 0, 0, 0}};
  return shape;
}

static inline Shape shape3(int channels, int height, int width) {
  Shape shape = {3, {channels, height, width, 0}};
  return shape;
}

/* Elements of one sample. */
static inline size_t shape_count(Shape shape) {
  size_t count = 1;
  for (int i = 0; i < shape.rank; i++) count *= (size_t)shape.dim[i];
  return count;
}

/* Of one channel: all dimensions but the first. */
static inline int shape_pixels(Shape shape) { return shape.dim[0] > 0 ? (int)(shape_count(shape) / shape.dim[0]) : 0; }

/* Elements of one sample in an array of 16 bits, where the channels come last and are filled up (common/half.h). */
static inline size_t shape_half_count(Shape shape) {
  return (size_t)half_channels(shape.dim[0]) * (size_t)shape_pixels(shape);
}

static inline int shape_equal(Shape a, Shape b) {
  int equal = a.rank == b.rank;
  for (int i = 0; equal && i < a.rank; i++) equal = a.dim[i] == b.dim[i];
  return equal;
}

/* "(64,28,28)" */
typedef struct ShapeText {
  char text[128];
} ShapeText;

static inline ShapeText shape_text(Shape shape) {
  ShapeText result;
  int length = snprintf(result.text, sizeof result.text, "(");
  for (int i = 0; i < shape.rank && i < SHAPE_MAX_RANK; i++)
    length += snprintf(result.text + length, sizeof result.text - length, i ? ",%d" : "%d", shape.dim[i]);
  snprintf(result.text + length, sizeof result.text - length, ")");
  return result;
}

/* ------------------------------------------------------------------------------------------------------ parameters */

struct Param;

/* How a parameter starts, by name: a table entry. fill() writes param->count floats on the host; (seed, stream) select
 * the random numbers. The parameters of one node share a stream: where several draw, fill() tells them apart. */
typedef struct Init {
  const char *name;
  void (*fill)(float *values, const struct Param *param, uint64_t seed, uint32_t stream);
} Init;

/* A tensor that a node owns. What is not trained is a buffer: the running statistics of batch norm, for example. */
typedef struct Param {
  char name[NODE_NAME + 32]; /* PyTorch's: "layer1.0.conv1.weight" */
  int rank;
  size_t dim[SHAPE_MAX_RANK], count;
  int fan_in, fan_out; /* inputs of one output, outputs of one input: what an Init scales by */
  const Init *init;
  int trained, decayed; /* decayed: weight decay applies */
  int counts;      /* a counter of training steps, as PyTorch's num_batches_tracked: no floats, a number in files */
  int64_t counted; /* by it before this model's first step */
  uint32_t stream;
  size_t offset; /* floats, in Model.parameters or, where it is not trained, in Model.buffers */
  size_t bytes;  /* of a constant node: of its array, which `count` floats hold; 0: they are floats */
  /* Of a weight that a lowered operation multiplies (lower.h): its copy of 16 bits, (dim[0], pixels, channels), each
   * axis of channels filled up. channels 0: it has none. */
  int half_channels, half_pixels;
  size_t half_offset; /* numbers, in Model.half */
} Param;

static inline void init_zero_fill(float *values, const Param *param, uint64_t seed, uint32_t stream) {
  (void)seed, (void)stream;
  memset(values, 0, param->count * sizeof *values);
}

static inline void init_one_fill(float *values, const Param *param, uint64_t seed, uint32_t stream) {
  (void)seed, (void)stream;
  for (size_t i = 0; i < param->count; i++) values[i] = 1;
}

static const Init init_zero = {"zero", init_zero_fill};
static const Init init_one = {"one", init_one_fill};

/* ------------------------------------------------------------------------------------------------------ operations */

/* What changes from one training step to the next, in the device's memory (step_replay.h). */
typedef struct StepValues {
  float lr;
  float first, second; /* Adam's bias corrections: 1 / (1 - beta1^t), 1 / sqrt(1 - beta2^t) in step t, from 1 */
  float share;         /* of the gradient in the momentum: 1 - dampening, in the first step 1 */
  float average;       /* share of the new weights in their average (average.h) */
  float mixed;         /* share of the other sample in each sample (mixup.h) */
} StepValues;

/* Of fp16, in the device's memory: by how much the loss is multiplied, and what came of it (loss_scale.h). */
enum { LOSS_SCALE_EVENTS = 16 };

typedef struct LossScale {
  float scale;
  int overflow; /* a gradient of this step is not finite */
  int skips;    /* so nothing may learn from it: what the optimizer looks at */
  int32_t good; /* steps since the scale has changed */
  int32_t steps, skipped;
  StepValues values; /* of this step: what the optimizer and the weights' average read */
  struct {
    int32_t step;             /* from 1 */
    float scale;              /* with which it overflowed */
  } event[LOSS_SCALE_EVENTS]; /* skipped step i is event i % LOSS_SCALE_EVENTS */
} LossScale;

/* What all operations of one model share, made by the first that asks for it: the handle of a library, for example. */
typedef struct OpShared {
  const void *key; /* an address of the library's own */
  void *state;
  void (*close)(void *state);
  struct OpShared *next;
} OpShared;

/* Where and how a model runs. Launchers get it instead of keeping state of their own. */
typedef struct Context {
  Device device;
  int gpu;                  /* of DEVICE_GPU: which one */
  int training;             /* dropout drops, batch norm uses the batch's statistics */
  uint64_t seed;            /* of the random numbers that operations draw */
  long step;                /* optimizer steps so far: each step draws others */
  int part;                 /* of a step whose batch is computed in parts: each draws others */
  float label_smoothing;    /* of losses on classes in training: this share of a target is spread over all classes */
  float mixup;              /* alpha: samples are mixed in training (mixup.h); 0: they are not */
  float mixed;              /* with mixup, of this step: the share of the other sample in each sample */
  int ranges;               /* each operation is an NVTX range of its name: for profilers (common/nvtx.h) */
  const StepValues *values; /* on the device, to be read instead of Hyper and step; NULL: take those */
  const LossScale
      *loss_scale;  /* on the device: optimizers change nothing where it says that it skips; NULL: there is none */
  OpShared *shared; /* the model's own: op_share() */
} Context;

/* NULL: nobody has made it yet. */
static inline void *op_shared(const Context *context, const void *key) {
  const OpShared *shared = context->shared;
  while (shared && shared->key != key) shared = shared->next;
  return shared ? shared->state : NULL;
}

/* In OpKeeping.open(): closed with the model. */
static inline void op_share(Context *context, const void *key, void *state, void (*close)(void *state)) {
  OpShared *shared = (OpShared *)xcalloc(1, sizeof *shared);
  shared->key = key;
  shared->state = state;
  shared->close = close;
  shared->next = context->shared;
  context->shared = shared;
}

static inline void op_close_shared(Context *context) {
  while (context->shared) {
    OpShared *first = context->shared;
    context->shared = first->next;
    first->close(first->state);
    free(first);
  }
}

/* What forward() and backward() work on. Arrays are on the device; x[i] is (batch, shape of input i). */
typedef struct OpArrays {
  int batch;
  const float *x[NODE_MAX_INPUTS];
  float *y;
  const float *dy;
  float *dx[NODE_MAX_INPUTS]; /* NULL where nobody needs this gradient; dx[0] may be dy where the op works in place */
  float *param[NODE_MAX_PARAMS], *grad[NODE_MAX_PARAMS]; /* in the node's order; grad is NULL where it is not trained */
  void *saved;                                           /* what forward() keeps for backward() */
  float *workspace;                                      /* scratch for one call */
  /* Of a lowered operation (lower.h): x, y, dy and dx hold 16 bits per number, the channels last. On a GPU its weights,
   * too: (dim[0], pixels, channels), and behind them their turn (half_weights.h). */
  const uint16_t *half[NODE_MAX_PARAMS];
} OpArrays;

/* Which arrays backward() reads besides dy: they are kept until then. The others are not, and are NULL. */
enum { BACKWARD_NEEDS_X = 1, BACKWARD_NEEDS_Y = 2, BACKWARD_NEEDS_FIRST_X = 4 }; /* the last: x[0] alone */
/* Element by element: y may be x[0], dx[0] may be dy. Whether they are follows from what is still needed. */
enum { OP_IN_PLACE = 1 };
/* With OP_IN_PLACE: y is x[0] and dx[0] is dy, always, and both functions do nothing: another node computes it
 * (fuse.h). */
enum { OP_PASSED = 2 };
/* The gradients of its two inputs are equal, so dx[1] may be dx[0]: plan_may_share_gradient() decides. */
enum { OP_SAME_GRADIENT = 4 };
/* It computes statistics of each channel in training, and needs more than one value of it: model_check_batch(). */
enum { OP_STATISTICS = 8 };
/* It draws random numbers by context->step: its launches differ from step to step. */
enum { OP_DRAWS = 16 };
/* It reads nothing, writes nothing and has no parameters any more: a node further on computes it (fuse.h). */
enum { OP_ABSORBED = 32 };
/* It is the first member of an OpKeeping. */
enum { OP_KEEPS = 64 };
/* It computes nothing: it is the first member of an OpTable. */
enum { OP_TABLE = 128 };
/* y is x[0] under another shape, always: forward() does nothing. */
enum { OP_VIEW = 256 };
/* It reads nothing, and y is its parameter: forward() does nothing (graph_constant()). */
enum { OP_CONSTANT = 512 };

struct Node;

typedef struct Op {
  const char *name; /* ONNX's: "Conv" */
  unsigned backward_needs, flags;
  size_t (*saved_bytes)(const struct Node *node, int batch);                                /* NULL: none */
  size_t (*workspace_floats)(const Context *context, const struct Node *node, int batch);   /* NULL: none */
  void (*forward)(const Context *context, const struct Node *node, const OpArrays *arrays); /* y from x */
  void (*backward)(const Context *context, const struct Node *node, const OpArrays *arrays);
} Op;

/* Whether backward() reads the output of its k-th input. */
static inline int op_backward_reads(const Op *op, int k) {
  return (op->backward_needs & BACKWARD_NEEDS_X) || (k == 0 && (op->backward_needs & BACKWARD_NEEDS_FIRST_X));
}

/* An operation that keeps something with its node which is no array: descriptors of a library, for example. */
typedef struct OpKeeping {
  Op op; /* with the flag OP_KEEPS */
  /* When a model is opened, before its memory is planned: *kept is node->kept from then on, until the model is closed.
   * trains: backward will run. -1 with a sentence. */
  int (*open)(Context *context, const struct Node *node, int max_batch, int trains, void **kept, Error *err);
  void (*close)(void *kept);
} OpKeeping;

/* The operations of a library, each in the place of one of ours: an implementation of many operations at once. */
typedef struct OpPair {
  const Op *ours, *other;
} OpPair;

typedef struct OpTable {
  Op op; /* with the flag OP_TABLE */
  const OpPair *pairs;
  int count; /* 0: ours, as they are */
} OpTable;

/* The implementations of one operation, the usual one first: which of them computes a node is an option of programs,
 * --conv=NAME for example (implementation.h). They take the same nodes and the same parameters. */
typedef struct Implementation {
  const char *name;
  const Op *op; /* with OP_TABLE: one of many operations, by the node (implementation_op()) */
  /* NULL: it computes every node. -1: not this one; the message says why, and names one that can. */
  int (*fits)(const struct Implementation *implementation, const struct Node *node, Error *err);
} Implementation;

typedef struct OpChoice {
  const char *option; /* "conv" */
  const Implementation *list;
  int count;
} OpChoice;

/* Which rows and columns of x[0] one element of y depends on: `size` of them, the first is its own times `stride`, less
 * `padding`. size 0: the operation does not say. */
typedef struct NodeWindow {
  int size[2], stride[2], padding[2];
} NodeWindow;

/* In which order the numbers of a node lie. */
typedef enum NodeLayout {
  LAYOUT_OF_TYPE,      /* of 16 bits the channels last, else plain */
  LAYOUT_PLAIN,        /* (batch, shape), the last index fastest: as ONNX has them */
  LAYOUT_CHANNELS_LAST /* (batch,H,W,C), the channels filled up to 16 bytes */
} NodeLayout;

typedef struct Node {
  const Op *op;    /* NULL: an input of the graph */
  const Op *plain; /* what computed it before graph_fuse() (fuse.h); NULL: the same */
  int joined;      /* by graph_fuse(): its second input is that of its first one */
  int group;       /* by graph_fuse(): nodes of the same number are computed together; 0: it is computed alone */
  char name[NODE_NAME];
  int input[NODE_MAX_INPUTS], inputs;
  Shape shape;       /* of y, one sample */
  int whole;         /* 0: y is (batch, shape); else (whole, shape), however large the batch is */
  DType type;        /* of y and of its gradient */
  NodeLayout layout; /* of y: 16 bits lie with the channels last (common/half.h), if it says nothing else */
  const Op *full;    /* the float32 operation that a lowered one stands for (lower.h); NULL: it is not lowered */
  Shape from[NODE_LOWER_INPUTS]; /* shapes of its inputs */
  NodeWindow window;
  uint32_t order; /* operations before it: the stream of its random numbers */
  Param param[NODE_MAX_PARAMS];
  int params;
  void *kept;   /* by OpKeeping.open(); of a model */
  double flops; /* of forward, one sample; a multiplication and an addition are two */
  /* What the operation needs to know besides: a struct of its own. */
  union {
    unsigned char bytes[NODE_ATTRIBUTE_BYTES];
    double align;
  } attributes;
} Node;

/* Whether its output has the channels last, filled up to a multiple of 16 bytes. */
static inline int node_channels_last(const Node *node) {
  return node->layout == LAYOUT_CHANNELS_LAST || (node->layout == LAYOUT_OF_TYPE && dtype_is_half(node->type));
}

/* Bytes of its output, one sample. */
static inline size_t node_bytes(const Node *node) {
  const size_t each = dtype_bytes(node->type);
  if (!node_channels_last(node)) return shape_count(node->shape) * each;
  return ((size_t)node->shape.dim[0] * each + 15) / 16 * 16 * (size_t)shape_pixels(node->shape);
}

/* So many samples are in its arrays in a batch of `batch`: what its operation is called with. */
static inline int node_samples(const Node *node, int batch) { return node->whole > 0 ? node->whole : batch; }

/* ---------------------------------------------------------------------------------------------------------- losses */

/* A loss compares the output of a node with targets: one float per sample, and a gradient. */
typedef struct Loss {
  const char *name;
  size_t (*target_bytes)(Shape x); /* of one sample: sizeof(int) for a label */
  size_t (*saved_floats)(Shape x); /* of one sample, kept for backward and for the reader: probabilities */
  void (*forward)(const Context *context, float *losses, float *saved, const float *x, const void *targets, int batch,
                  Shape shape);
  /* Adds to totals[0] the sum of the losses, to totals[1] the number of right answers. */
  void (*score)(const Context *context, double *totals, const float *losses, const float *saved, const void *targets,
                int batch, Shape shape);
  /* dx: scale times the gradient of the sum of the losses. x is kept only where needs_x. */
  void (*backward)(const Context *context, float *dx, const float *saved, const float *x, const void *targets,
                   float scale, int batch, Shape shape);
  int needs_x;
  /* forward, score and backward in one, for training; NULL: one after the other. */
  void (*step)(const Context *context, float *losses, float *saved, double *totals, float *dx, const float *x,
               const void *targets, float scale, int batch, Shape shape);
  int soft_labels; /* it compares classes, and heeds context->label_smoothing and mixup in training */
} Loss;

/* ------------------------------------------------------------------------------------------------------- optimizer */

/* The betas are doubles: 1 - beta2 of a float 0.999 would be 1.3e-5 off. */
typedef struct Hyper {
  float lr, momentum, weight_decay;
  float dampening, epsilon;
  double beta1, beta2;
  double ema; /* decay of the weights' average; 0: there is none (average.h) */
} Hyper;

/* base^t by squaring: the same bits on the host and on a GPU, where fp16 asks for it (loss_scale.h). Each of its up to
 * 2 log2(t) products rounds a double, so that of base^t about t * 1e-16 is lost: nothing in float. */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    double
    step_power(double base, long t) {
  double result = 1;
  for (; t > 0; t /= 2) {
    if (t % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

/* Of the step that follows `step` finished ones: the share of the new weights in their average (average.h). */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    float
    average_share(double decay, long step) {
  return (float)(decay > 0 ? (1 - decay) / (1 - step_power(decay, step + 1)) : 1);
}

/* Of the step that follows `step` finished ones, but for `mixed`. */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
        StepValues
        step_values(double lr, const Hyper *hyper, long step) {
  const StepValues values = {(float)lr,
                             (float)(1 / (1 - step_power(hyper->beta1, step + 1))),
                             (float)(1 / sqrt(1 - step_power(hyper->beta2, step + 1))),
                             step == 0 ? 1 : 1 - hyper->dampening,
                             average_share(hyper->ema, step),
                             0};
  return values;
}

enum { OPTIMIZER_MAX_SLOTS = 3 };

/* Where context->values is given, step() takes what changes from step to step from there; where context->loss_scale
 * says that the step is skipped, it changes nothing. */
enum { OPTIMIZER_READS_VALUES = 1, OPTIMIZER_READS_SCALE = 2, OPTIMIZER_READS_BOTH = 3 };

struct Model;

/* Steps n parameters by their gradients; weight decay applies to the first `decayed` of them. Its state is `slots`
 * arrays of n floats, zero at the start. */
typedef struct Optimizer {
  const char *name;
  int slots;
  const char *slot[OPTIMIZER_MAX_SLOTS]; /* PyTorch's: "momentum_buffer" */
  void (*step)(const Context *context, float *parameters, float *const *slot, const float *gradients, size_t n,
               size_t decayed, const Hyper *hyper);
  unsigned reads; /* on a GPU: OPTIMIZER_READS_..., or'ed */
  /* Of an optimizer that must know which parameters are matrices; it is called instead of step(). NULL: it need not. */
  void (*step_model)(struct Model *model);
  size_t (*workspace_floats)(const struct Model *model); /* for step_model(), in Model.workspace; NULL: none */
} Optimizer;

#endif /* COMMON_NN_OP_H */
