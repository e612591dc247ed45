/* dnn_layers_op.cu - the functions of dnn_layers_op.cuh. */
#include "phase5_production/01_cudnn_layers/dnn_layers_op.cuh"

#include "phase5_production/01_cudnn_layers/dnn_activation.cuh"
#include "phase5_production/01_cudnn_layers/dnn_batch_norm2d.cuh"
#include "phase5_production/01_cudnn_layers/dnn_conv2d.cuh"
#include "phase5_production/01_cudnn_layers/dnn_softmax.cuh"

/* What computes a node with --device=cpu, and what a gradient is computed by that cuDNN would not leave out. */
static const Op *dnn_usual(const Node *node) {
  for (int i = 0; i < DNN_PAIRS; i++)
    if (node->op == dnn_pairs[i].other) return dnn_pairs[i].ours;
  die("%s is not computed by cuDNN", node->name);
}

static void dnn_usual_forward(const Context *context, const Node *node, const OpArrays *a) {
  dnn_usual(node)->forward(context, node, a);
}
static void dnn_usual_backward(const Context *context, const Node *node, const OpArrays *a) {
  dnn_usual(node)->backward(context, node, a);
}
static size_t dnn_usual_saved(const Node *node, int batch) {
  const Op *usual = dnn_usual(node);
  return usual->saved_bytes ? usual->saved_bytes(node, batch) : 0;
}
static size_t dnn_usual_workspace(const Context *context, const Node *node, int batch) {
  const Op *usual = dnn_usual(node);
  return usual->workspace_floats ? usual->workspace_floats(context, node, batch) : 0;
}

#if CUDNN_COMPILED

/* ------------------------------------------------------------------------------------------- the handle of a model */

static const char dnn_key = 0;

static void dnn_close_shared(void *state) {
  dnn_close((Dnn *)state);
  free(state);
}

/* NULL where there is no cuDNN. */
static const Dnn *dnn_of(Context *context, Error *err) {
  Dnn *dnn = (Dnn *)op_shared(context, &dnn_key);
  if (dnn) return dnn;
  dnn = (Dnn *)xcalloc(1, sizeof *dnn);
  if (dnn_open(dnn, err) != 0) {
    free(dnn);
    return NULL;
  }
  op_share(context, &dnn_key, dnn, dnn_close_shared);
  return dnn;
}

/* What a node keeps: of which operation follows from its Op. */
typedef union DnnKept {
  DnnConv2d conv;
  DnnElements elements;
  DnnPool2d pool;
  DnnBatchNorm2d norm;
  DnnSoftmax softmax;
} DnnKept;

/* Memory for it, on a GPU; *dnn is NULL on a CPU, where nothing is kept. */
static int dnn_keep(Context *context, const Dnn **dnn, void **kept, Error *err) {
  *dnn = NULL;
  if (context->device == DEVICE_CPU) return 0;
  if ((*dnn = dnn_of(context, err)) == NULL) return -1;
  *kept = xcalloc(1, sizeof(DnnKept));
  return 0;
}

/* ------------------------------------------------------------------------------------------------------ convolution */

static int dnn_conv2d_op_open(Context *context, const Node *node, int batch, int trains, void **kept, Error *err) {
  const Dnn *dnn;
  Error why;
  if (dnn_keep(context, &dnn, kept, err) != 0) return -1;
  if (dnn == NULL) return 0;
  if (dnn_conv2d_open((DnnConv2d *)*kept, dnn, conv2d_op_shape(node, batch), trains, DNN_WORKSPACE_MOST, &why) == 0)
    return 0;
  free(*kept);
  *kept = NULL;
  return error_set(err, "%s: %.900s; take --conv=%s:tiled", node->name, why.message, node->name);
}

static void dnn_conv2d_op_close(void *kept) {
  dnn_conv2d_close((DnnConv2d *)kept);
  free(kept);
}

static size_t dnn_conv2d_op_workspace(const Context *context, const Node *node, int batch) {
  if (node->kept == NULL) return dnn_usual_workspace(context, node, batch);
  return (dnn_conv2d_workspace((const DnnConv2d *)node->kept) + sizeof(float) - 1) / sizeof(float);
}

static void dnn_conv2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  DnnConv2d *c = (DnnConv2d *)node->kept;
  if (c == NULL) {
    dnn_usual_forward(context, node, a);
    return;
  }
  dnn_conv2d_batch(c, a->batch);
  dnn_conv2d_forward(c, a->y, a->x[0], a->param[0], a->param[1], a->workspace);
}

static void dnn_conv2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  DnnConv2d *c = (DnnConv2d *)node->kept;
  if (c == NULL) {
    dnn_usual_backward(context, node, a);
    return;
  }
  dnn_conv2d_batch(c, a->batch);
  if (a->grad[0]) dnn_conv2d_backward_weight(c, a->grad[0], a->grad[1], a->dy, a->x[0], dnn_replace(), a->workspace);
  if (a->dx[0]) dnn_conv2d_backward_input(c, a->dx[0], a->dy, a->param[0], dnn_replace(), a->workspace);
}

const char *dnn_algorithm_name(const Node *node, int pass) {
  if (node->op != &dnn_conv2d_op.op || node->kept == NULL) return NULL;
  const DnnConv2d *c = (const DnnConv2d *)node->kept;
  return pass < c->passes ? cudnn_conv2d_algorithm_name((Conv2dPass)pass, c->algorithm[pass].number) : NULL;
}

/* ----------------------------------------------------------------------------------------------- element by element */

static int dnn_activation_op_open(Context *context, const Node *node, int batch, int trains, void **kept, Error *err) {
  const Dnn *dnn;
  (void)trains;
  if (dnn_keep(context, &dnn, kept, err) != 0) return -1;
  if (dnn) dnn_activation_open((DnnElements *)*kept, dnn, activation_kind(node), batch, (int)shape_count(node->shape));
  return 0;
}

static int dnn_add_op_open(Context *context, const Node *node, int batch, int trains, void **kept, Error *err) {
  const Dnn *dnn;
  (void)trains;
  if (dnn_keep(context, &dnn, kept, err) != 0) return -1;
  if (dnn) dnn_sum_open((DnnElements *)*kept, dnn, batch, (int)shape_count(node->shape));
  return 0;
}

static void dnn_elements_op_close(void *kept) {
  dnn_elements_close((DnnElements *)kept);
  free(kept);
}

static void dnn_activation_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  DnnElements *e = (DnnElements *)node->kept;
  if (e == NULL) {
    dnn_usual_forward(context, node, a);
    return;
  }
  dnn_elements_batch(e, a->batch);
  dnn_activation_forward(e, a->y, a->x[0]);
}

static void dnn_activation_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  DnnElements *e = (DnnElements *)node->kept;
  if (e == NULL) {
    dnn_usual_backward(context, node, a);
    return;
  }
  dnn_elements_batch(e, a->batch);
  if (a->dx[0]) dnn_activation_backward(e, a->dx[0], a->dy, a->y);
}

/* Its gradients are dy itself: copies, which no library has to make. */
static void dnn_add_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  DnnElements *e = (DnnElements *)node->kept;
  if (e == NULL) {
    dnn_usual_forward(context, node, a);
    return;
  }
  dnn_elements_batch(e, a->batch);
  dnn_sum_forward(e, a->y, a->x[0], a->x[1]);
}

/* ---------------------------------------------------------------------------------------------------------- pooling */

static DnnPool dnn_pool2d_kind(const Node *node) {
  if (node->op == &dnn_max_pool2d_op.op) return DNN_POOL_MAX;
  return node->op == &dnn_avg_pool2d_op.op && avg_pool2d_op_include_pad(node) ? DNN_POOL_MEAN_WITH_PADDING
                                                                              : DNN_POOL_MEAN;
}

static Pool2dShape dnn_pool2d_shape(const Node *node, int batch) {
  if (node->op == &dnn_max_pool2d_op.op) return max_pool2d_op_shape(node, batch);
  if (node->op == &dnn_avg_pool2d_op.op) return avg_pool2d_op_shape(node, batch);
  return dnn_pool2d_plane(batch, node->shape.dim[0], global_avg_pool2d_op_pixels(node));
}

static int dnn_pool2d_op_open(Context *context, const Node *node, int batch, int trains, void **kept, Error *err) {
  const Dnn *dnn;
  (void)trains;
  if (dnn_keep(context, &dnn, kept, err) != 0) return -1;
  if (dnn) dnn_pool2d_open((DnnPool2d *)*kept, dnn, dnn_pool2d_kind(node), dnn_pool2d_shape(node, batch));
  return 0;
}

static void dnn_pool2d_op_close(void *kept) {
  dnn_pool2d_close((DnnPool2d *)kept);
  free(kept);
}

/* Ours keeps which element was the largest. */
static size_t dnn_pool2d_op_saved(const Node *node, int batch) { return node->kept ? 0 : dnn_usual_saved(node, batch); }

static void dnn_pool2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  DnnPool2d *p = (DnnPool2d *)node->kept;
  if (p == NULL) {
    dnn_usual_forward(context, node, a);
    return;
  }
  dnn_pool2d_batch(p, a->batch);
  dnn_pool2d_forward(p, a->y, a->x[0]);
}

static void dnn_pool2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  DnnPool2d *p = (DnnPool2d *)node->kept;
  if (p == NULL) {
    dnn_usual_backward(context, node, a);
    return;
  }
  dnn_pool2d_batch(p, a->batch);
  if (a->dx[0]) dnn_pool2d_backward(p, a->dx[0], a->dy, a->x[0], a->y);
}

/* ------------------------------------------------------------------------------------------------------- batch norm */

static int dnn_batch_norm2d_op_open(Context *context, const Node *node, int batch, int trains, void **kept,
                                    Error *err) {
  const BatchNorm2dShape shape = {batch, node->shape.dim[0], node->shape.dim[1] * node->shape.dim[2]};
  const Dnn *dnn;
  (void)trains;
  if (dnn_keep(context, &dnn, kept, err) != 0) return -1;
  if (dnn) dnn_batch_norm2d_open((DnnBatchNorm2d *)*kept, dnn, shape);
  return 0;
}

static void dnn_batch_norm2d_op_close(void *kept) {
  dnn_batch_norm2d_close((DnnBatchNorm2d *)kept);
  free(kept);
}

/* The arrays of a node, as batch_norm2d_op.cu has them. */
static BatchNorm2d dnn_batch_norm2d_arrays(const Node *node, const OpArrays *a) {
  BatchNorm2d b;
  memset(&b, 0, sizeof b);
  b.x = a->x[0];
  b.gamma = a->param[0];
  b.beta = a->param[1];
  b.old_mean = b.new_mean = a->param[2];
  b.old_var = b.new_var = a->param[3];
  b.y = a->y;
  b.mean = (float *)a->saved;
  b.inv_std = b.mean + node->shape.dim[0];
  b.dy = a->dy;
  b.dx = a->dx[0];
  b.dgamma = a->grad[0];
  b.dbeta = a->grad[1];
  return b;
}

static void dnn_batch_norm2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  DnnBatchNorm2d *n = (DnnBatchNorm2d *)node->kept;
  if (n == NULL) {
    dnn_usual_forward(context, node, a);
    return;
  }
  const BatchNorm2d b = dnn_batch_norm2d_arrays(node, a);
  const BatchNorm2dShape shape = {a->batch, n->channels, n->pixels};
  Error err;
  dnn_batch_norm2d_batch(n, a->batch);
  if (!context->training) {
    dnn_batch_norm2d_evaluate(n, &b);
    return;
  }
  /* cuDNN would divide by 0 without a word, as in the last batch of an epoch */
  if (batch_norm2d_shape_check(shape, &err) != 0) die("%s: %s", node->name, err.message);
  dnn_batch_norm2d_forward(n, &b);
}

/* cuDNN's call wants all three gradients. Where one is not asked for, ours computes the others from what cuDNN has
 * saved, which is the same. */
static void dnn_batch_norm2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  DnnBatchNorm2d *n = (DnnBatchNorm2d *)node->kept;
  if (n == NULL || a->dx[0] == NULL || a->grad[0] == NULL || a->grad[1] == NULL) {
    dnn_usual_backward(context, node, a);
    return;
  }
  const BatchNorm2d b = dnn_batch_norm2d_arrays(node, a);
  dnn_batch_norm2d_batch(n, a->batch);
  dnn_batch_norm2d_backward(n, &b);
}

/* ---------------------------------------------------------------------------------------------------------- softmax */

static int dnn_softmax_op_open(Context *context, const Node *node, int batch, int trains, void **kept, Error *err) {
  const Dnn *dnn;
  (void)trains;
  if (dnn_keep(context, &dnn, kept, err) != 0) return -1;
  if (dnn) dnn_softmax_open((DnnSoftmax *)*kept, dnn, 0, batch, (int)shape_count(node->shape));
  return 0;
}

static void dnn_softmax_op_close(void *kept) {
  dnn_softmax_close((DnnSoftmax *)kept);
  free(kept);
}

static void dnn_softmax_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  DnnSoftmax *s = (DnnSoftmax *)node->kept;
  if (s == NULL) {
    dnn_usual_forward(context, node, a);
    return;
  }
  dnn_softmax_batch(s, a->batch);
  dnn_softmax_forward(s, a->y, a->x[0]);
}

static void dnn_softmax_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  DnnSoftmax *s = (DnnSoftmax *)node->kept;
  if (s == NULL) {
    dnn_usual_backward(context, node, a);
    return;
  }
  dnn_softmax_batch(s, a->batch);
  if (a->dx[0]) dnn_softmax_backward(s, a->dx[0], a->dy, a->y);
}

#define DNN_OP(name, needs, flags, saved, workspace, kind, backward)                                              \
  {                                                                                                               \
    {name, needs, (flags) | OP_KEEPS, saved, workspace, dnn_##kind##_op_forward, backward}, dnn_##kind##_op_open, \
        dnn_##kind##_op_close                                                                                     \
  }
#define dnn_activation_op_close dnn_elements_op_close
#define dnn_add_op_close dnn_elements_op_close

#else

/* Without cuDNN there are the tables, and dnn_fits() keeps networks from using them. */
const char *dnn_algorithm_name(const Node *node, int pass) {
  (void)node;
  (void)pass;
  return NULL;
}

static int dnn_none_open(Context *context, const Node *node, int batch, int trains, void **kept, Error *err) {
  (void)node, (void)batch, (void)trains, (void)kept;
  return context->device == DEVICE_CPU ? 0 : (cudnn_load(err), -1);
}
static void dnn_none_close(void *kept) { (void)kept; }

#define DNN_OP(name, needs, flags, saved, workspace, kind, backward)                                                \
  {                                                                                                                 \
    {name, needs, (flags) | OP_KEEPS, dnn_usual_saved, dnn_usual_workspace, dnn_usual_forward, dnn_usual_backward}, \
        dnn_none_open, dnn_none_close                                                                               \
  }

#endif /* CUDNN_COMPILED */

const OpKeeping dnn_conv2d_op =
    DNN_OP("Conv", BACKWARD_NEEDS_X, 0, NULL, dnn_conv2d_op_workspace, conv2d, dnn_conv2d_op_backward);
const OpKeeping dnn_relu_op =
    DNN_OP("Relu", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, activation, dnn_activation_op_backward);
const OpKeeping dnn_sigmoid_op =
    DNN_OP("Sigmoid", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, activation, dnn_activation_op_backward);
const OpKeeping dnn_tanh_op =
    DNN_OP("Tanh", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, activation, dnn_activation_op_backward);
const OpKeeping dnn_max_pool2d_op = DNN_OP("MaxPool", BACKWARD_NEEDS_X | BACKWARD_NEEDS_Y, 0, dnn_pool2d_op_saved, NULL,
                                           pool2d, dnn_pool2d_op_backward);
const OpKeeping dnn_avg_pool2d_op = DNN_OP("AveragePool", 0, 0, NULL, NULL, pool2d, dnn_pool2d_op_backward);
const OpKeeping dnn_global_avg_pool2d_op =
    DNN_OP("GlobalAveragePool", 0, 0, NULL, NULL, pool2d, dnn_pool2d_op_backward);
const OpKeeping dnn_batch_norm2d_op = DNN_OP(BATCH_NORM_OP_NAME, BACKWARD_NEEDS_X, OP_STATISTICS, dnn_usual_saved,
                                             dnn_usual_workspace, batch_norm2d, dnn_batch_norm2d_op_backward);
const OpKeeping dnn_add_op = DNN_OP("Add", 0, OP_IN_PLACE | OP_SAME_GRADIENT, NULL, NULL, add, dnn_usual_backward);
const OpKeeping dnn_softmax_op = DNN_OP("Softmax", BACKWARD_NEEDS_Y, 0, NULL, NULL, softmax, dnn_softmax_op_backward);
