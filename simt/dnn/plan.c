/* plan.c - the graph API: what a graph of operations computes.
 *
 * A graph is a chain: a convolution, or a tensor, and pointwise operations, each of which reads what the one before has
 * written. Their other arguments are tensors that come with the variant pack. */
#include "graph.h"

/* ---- finalization ---- */

#define BAD(status, ...) refuse_plainly(CUDNN_STATUS_##status, FINALIZE, __VA_ARGS__)

static Tensor tensor_of(const Descriptor *d) {
  Tensor t = {.type = (cudnnDataType_t)integer(d, CUDNN_ATTR_TENSOR_DATA_TYPE, 0, 0),
              .rank = (int)attribute_count(d, CUDNN_ATTR_TENSOR_DIMENSIONS)};
  for (int i = 0; i < t.rank; i++) {
    const int64_t dim = integer(d, CUDNN_ATTR_TENSOR_DIMENSIONS, i, 0),
                  stride = integer(d, CUDNN_ATTR_TENSOR_STRIDES, i, 0);
    t.dim[i] = dim > 0 && dim <= 2147483647 ? (int)dim : -1;
    t.stride[i] = stride > 0 && stride <= 2147483647 ? (int)stride : -1;
  }
  return t;
}

cudnnStatus_t finalize_tensor(const Descriptor *d) {
  const Tensor t = tensor_of(d);
  const int64_t alignment = integer(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0, 0);
  if (attribute_count(d, CUDNN_ATTR_TENSOR_STRIDES) != t.rank)
    return BAD(BAD_PARAM, "the tensor has %d dimensions, but %d strides", t.rank,
               (int)attribute_count(d, CUDNN_ATTR_TENSOR_STRIDES));
  TRY(check_tensor(FINALIZE, &t, 1, 1));
  if (alignment < 1 || (alignment & (alignment - 1)) != 0)
    return BAD(BAD_PARAM, "the alignment is %lld bytes: it must be a power of 2", (long long)alignment);
  if (t.type != CUDNN_DATA_FLOAT && t.type != CUDNN_DATA_HALF && t.type != CUDNN_DATA_BFLOAT16)
    return BAD(NOT_SUPPORTED_DATA_TYPE, "the tensor is of type %s; the emulation's cuDNN has FLOAT, HALF and BFLOAT16",
               dnn_type_name(t.type));
  if (integer(d, CUDNN_ATTR_TENSOR_VECTOR_COUNT, 0, 1) != 1 || integer(d, CUDNN_ATTR_TENSOR_REORDERING_MODE, 0, 0) != 0)
    return BAD(NOT_SUPPORTED_LAYOUT, "the emulation's cuDNN has neither vectorized nor reordered tensors");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_convolution(const Descriptor *d) {
  static const cudnnBackendAttributeName_t arrays[] = {
      CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
      CUDNN_ATTR_CONVOLUTION_POST_PADDINGS};
  const int64_t axes = integer(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0, 0);
  for (int i = 0; i < 4; i++) {
    if (attribute_count(d, arrays[i]) != axes)
      return BAD(BAD_PARAM, "attribute %d of the convolution has %d elements, but there are %d spatial dimensions",
                 (int)arrays[i], (int)attribute_count(d, arrays[i]), (int)axes);
    for (int a = 0; a < axes; a++) {
      const int64_t value = integer(d, arrays[i], a, 0);
      if (value < (i < 2) || value > 1 << 20)
        return BAD(BAD_PARAM, "element %d of attribute %d of the convolution is %lld", a, (int)arrays[i],
                   (long long)value);
    }
  }
  if (axes != 2)
    return BAD(NOT_SUPPORTED, "the convolution has %d spatial dimensions; the emulation's cuDNN has those of 2",
               (int)axes);
  for (int a = 0; a < 2; a++)
    if (integer(d, arrays[2], a, 0) != integer(d, arrays[3], a, 0))
      return BAD(NOT_SUPPORTED_PADDING, "the padding before and after differ; the emulation's cuDNN pads both alike");
  if (integer(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 0, 0) != CUDNN_DATA_FLOAT)
    return BAD(NOT_SUPPORTED_DATA_TYPE, "the type of the sums must be FLOAT");
  return CUDNN_STATUS_SUCCESS;
}

/* The tensors of an operation of convolution, as x, w, y of the forward pass, and its other attributes. */
typedef struct Parts {
  Pass pass;
  const Descriptor *tensor[3], *convolution;
  double alpha, beta;
} Parts;

static Parts parts_of(const Descriptor *d) {
#define PARTS(PASS, name, X, W, Y)                                                     \
  (Parts) {                                                                            \
    .pass = PASS,                                                                      \
    .tensor = {pointer(d, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##X, 0),           \
               pointer(d, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##W, 0),           \
               pointer(d, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##Y, 0)},          \
    .convolution = pointer(d, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_CONV_DESC, 0), \
    .alpha = real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_ALPHA, 1),              \
    .beta = real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_BETA, 0)                 \
  }
  if (d->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) return PARTS(FORWARD, FORWARD, X, W, Y);
  if (d->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return PARTS(BACKWARD_DATA, BWD_DATA, DX, W, DY);
  return PARTS(BACKWARD_FILTER, BWD_FILTER, X, DW, DY);
#undef PARTS
}

static int is_virtual(const Descriptor *tensor) { return (int)integer(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0, 0); }
static int64_t id_of(const Descriptor *tensor) { return integer(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0, 0); }

/* The groups follow from the channels of x and of the filter. */
static Convolution convolution_of(const Parts *p) {
  Convolution c = {
      .pass = p->pass, .x = tensor_of(p->tensor[0]), .w = tensor_of(p->tensor[1]), .y = tensor_of(p->tensor[2])};
  c.c.set = 1;
  c.c.mode = (cudnnConvolutionMode_t)integer(p->convolution, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 0, 0);
  c.c.groups = c.w.rank > 1 && c.x.rank > 1 && c.w.dim[1] ? c.x.dim[1] / c.w.dim[1] : 1;
  if (c.c.groups < 1) c.c.groups = 1;
  for (int a = 0; a < 2; a++) {
    c.c.padding[a] = (int)integer(p->convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, a, 0);
    c.c.stride[a] = (int)integer(p->convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, a, 1);
    c.c.dilation[a] = (int)integer(p->convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, a, 1);
  }
  /* the result may be of another type than the factors, as a virtual one often is */
  Tensor *const result = p->pass == FORWARD ? &c.y : p->pass == BACKWARD_DATA ? &c.x : &c.w;
  result->type = p->pass == FORWARD ? c.x.type : c.y.type;
  return c;
}

static cudnnStatus_t finalize_pointwise(const Descriptor *d) {
  const Descriptor *pw = pointer(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
  const Descriptor *x = pointer(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
  const Descriptor *b = pointer(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
  const Descriptor *y = pointer(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
  const cudnnPointwiseMode_t mode = (cudnnPointwiseMode_t)integer(pw, CUDNN_ATTR_POINTWISE_MODE, 0, 0);
  const PointwiseKind *kind = pointwise_kind(mode);
  char first[100], second[100];
  if (!kind) return BAD(BAD_PARAM, "the pointwise mode is %d, which is none of cuDNN's", (int)mode);
  if (!kind->arguments) return BAD(NOT_SUPPORTED, "the emulation's cuDNN has no %s", kind->name);
  if (integer(pw, CUDNN_ATTR_POINTWISE_MATH_PREC, 0, 0) != CUDNN_DATA_FLOAT)
    return BAD(NOT_SUPPORTED_DATA_TYPE, "%s: CUDNN_ATTR_POINTWISE_MATH_PREC must be FLOAT", kind->name);
  if (!x || !y || (kind->arguments == 2 && !b))
    return BAD(BAD_PARAM, "%s needs XDESC%s and YDESC", kind->name, kind->arguments == 2 ? ", BDESC" : "");
  const Tensor in = tensor_of(x), out = tensor_of(y), other = b ? tensor_of(b) : in;
  if (!broadcasts(&in, &out) || (kind->arguments == 2 && !broadcasts(&other, &out)))
    return BAD(BAD_PARAM_SHAPE_MISMATCH, "%s: each dimension of %s must be 1 or that of YDESC: they are %s and %s",
               kind->name, broadcasts(&in, &out) ? "BDESC" : "XDESC",
               dims_text(broadcasts(&in, &out) ? &other : &in, first, sizeof first),
               dims_text(&out, second, sizeof second));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_operation(const Descriptor *d) {
  if (d->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) return finalize_pointwise(d);
  const Parts parts = parts_of(d);
  const Convolution c = convolution_of(&parts);
  const Call call = {.name = FINALIZE};
  return check_convolution(&call, &c, 1);
}

/* ---- a graph as a chain ---- */

/* The operand of a tensor that is not virtual; -1: there is no room. */
static int operand_of(Program *p, const Descriptor *tensor, int written) {
  const int64_t id = id_of(tensor);
  int i = 0;
  while (i < p->operands && p->operand[i].id != id) i++;
  if (i == CALL_OPERANDS - 2) return -1; /* the others are for the workspace and the sums */
  ProgramOperand *o = &p->operand[i];
  if (i == p->operands) {
    p->operands++;
    *o = (ProgramOperand){.t = tensor_of(tensor), .id = id};
    o->by_value = (int)integer(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0, 0);
    snprintf(o->name, sizeof o->name, "the tensor with the id %lld", (long long)id);
  }
  o->written |= written;
  return i;
}

/* Does operation `op` read the tensor `value`? */
static int reads(const Descriptor *op, int64_t value) {
  const Descriptor *x = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
  const Descriptor *b = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
  return (x && id_of(x) == value) || (b && id_of(b) == value);
}

static cudnnStatus_t add_step(Program *p, const Descriptor *op, int64_t *value) {
  const Descriptor *pw = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
  const Descriptor *x = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
  const Descriptor *b = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
  const Descriptor *y = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
  Pointwise s = {.mode = (cudnnPointwiseMode_t)integer(pw, CUDNN_ATTR_POINTWISE_MODE, 0, 0), .other = -1, .out = -1};
  s.alpha1 = (float)real(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1);
  s.alpha2 = (float)real(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1);
  s.lower = real(pw, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0);
  s.upper = real(pw, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY);
  s.slope = real(pw, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
  s.elu_alpha = real(pw, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1);
  s.softplus_beta = real(pw, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1);
  s.swish_beta = real(pw, CUDNN_ATTR_POINTWISE_SWISH_BETA, 1);
  if (pointwise_kind(s.mode)->arguments == 2) {
    s.swapped = id_of(x) != *value;
    const Descriptor *other = s.swapped ? x : b;
    if (id_of(other) == *value || is_virtual(other))
      return BAD(NOT_SUPPORTED_GRAPH_PATTERN, "%s: one argument must be a tensor that is not virtual",
                 pointwise_kind(s.mode)->name);
    s.other = operand_of(p, other, 0);
    if (s.other < 0) return BAD(NOT_SUPPORTED, "the graph has more than %d tensors", CALL_OPERANDS - 2);
    s.by_value = p->operand[s.other].by_value;
  }
  const Tensor out = tensor_of(y);
  if (!same_dims(&out, &p->value))
    return BAD(NOT_SUPPORTED_SHAPE, "%s changes the shape of what it works on", pointwise_kind(s.mode)->name);
  if (!is_virtual(y)) {
    s.out = operand_of(p, y, 1);
    if (s.out < 0) return BAD(NOT_SUPPORTED, "the graph has more than %d tensors", CALL_OPERANDS - 2);
  }
  if (p->steps == CALL_STEPS) return BAD(NOT_SUPPORTED, "the graph has more than %d pointwise operations", CALL_STEPS);
  p->step[p->steps++] = s;
  *value = id_of(y);
  return CUDNN_STATUS_SUCCESS;
}

/* The convolution, where there is one, begins the chain. */
static cudnnStatus_t begin_with_convolution(Program *p, const Descriptor *op, int alone, int64_t *value) {
  const Parts parts = parts_of(op);
  const int written = parts.pass == FORWARD ? 2 : parts.pass == BACKWARD_DATA ? 0 : 1;
  int index[3];
  if (parts.pass != FORWARD && !alone)
    return BAD(NOT_SUPPORTED_GRAPH_PATTERN, "a %s must be alone in its graph", descriptor_name(op->type));
  for (int i = 0; i < 3; i++) {
    index[i] = -1;
    if (!is_virtual(parts.tensor[i])) {
      index[i] = operand_of(p, parts.tensor[i], i == written);
    } else if (i != written || alone) {
      return BAD(NOT_SUPPORTED_GRAPH_PATTERN,
                 "the tensor with the id %lld of the convolution is virtual, but no "
                 "operation %s it",
                 (long long)id_of(parts.tensor[i]), i == written ? "reads" : "writes");
    }
  }
  p->has_convolution = 1;
  p->convolution = convolution_of(&parts);
  p->x = index[0], p->w = index[1], p->y = index[2];
  p->alpha = (float)parts.alpha;
  p->beta = (float)parts.beta;
  if (p->beta != 0 && !alone)
    return BAD(NOT_SUPPORTED, "beta is %g: a convolution that others follow must have a beta of 0", parts.beta);
  p->value = p->convolution.y;
  p->value.type = CUDNN_DATA_FLOAT;
  pack(&p->value);
  *value = id_of(parts.tensor[written]);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t begin_with_tensor(Program *p, const Descriptor *op, int64_t *value) {
  const Descriptor *x = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
  const Tensor y = tensor_of(pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0)), in = tensor_of(x);
  if (!same_dims(&in, &y))
    return BAD(NOT_SUPPORTED_SHAPE, "XDESC of the first operation must have the shape of its YDESC");
  p->x = operand_of(p, x, 0);
  p->w = p->y = -1;
  if (p->operand[p->x].by_value) return BAD(NOT_SUPPORTED, "XDESC of the first operation is given by value");
  p->value = y;
  p->value.type = CUDNN_DATA_FLOAT;
  pack(&p->value);
  *value = id_of(x);
  return CUDNN_STATUS_SUCCESS;
}

static int starts_a_chain(const Descriptor *op) {
  const Descriptor *x = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
  const Descriptor *b = pointer(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
  return !is_virtual(x) && !(b && is_virtual(b));
}

static cudnnStatus_t chain(Program *p, const Descriptor *graph) {
  const int count = (int)attribute_count(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  int done[64] = {0}, first = -1;
  int64_t value = 0;
  for (int i = 0; i < count; i++) {
    const Descriptor *op = pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
    if (op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) continue;
    if (first >= 0) return BAD(NOT_SUPPORTED_GRAPH_PATTERN, "the graph has two convolutions");
    first = i;
  }
  if (first >= 0) {
    TRY(begin_with_convolution(p, pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, first), count == 1, &value));
    done[first] = 1;
  } else {
    for (int i = count - 1; i >= 0; i--)
      if (starts_a_chain(pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i))) first = i;
    if (first < 0) return BAD(NOT_SUPPORTED_GRAPH_PATTERN, "every operation reads a virtual tensor that none writes");
    TRY(begin_with_tensor(p, pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, first), &value));
    TRY(add_step(p, pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, first), &value));
    done[first] = 1;
  }
  for (int left = count - 1; left > 0; left--) {
    int next = -1;
    for (int i = 0; i < count; i++)
      if (!done[i] && reads(pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i), value)) {
        if (next >= 0)
          return BAD(NOT_SUPPORTED_GRAPH_PATTERN,
                     "two operations read the tensor with the id %lld; the "
                     "emulation's cuDNN has chains",
                     (long long)value);
        next = i;
      }
    if (next < 0)
      return BAD(NOT_SUPPORTED_GRAPH_PATTERN, "no operation reads the tensor with the id %lld, but %d are left",
                 (long long)value, left);
    TRY(add_step(p, pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, next), &value));
    done[next] = 1;
  }
  if (p->steps && p->step[p->steps - 1].out < 0)
    return BAD(NOT_SUPPORTED_GRAPH_PATTERN, "the last result of the graph, the tensor with the id %lld, is virtual",
               (long long)value);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_graph(Descriptor *d) {
  if (integer(d, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, 0, 0))
    return BAD(NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE, "the emulation's cuDNN has no dynamic shapes");
  d->program = calloc(1, sizeof *d->program);
  if (!d->program) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  const cudnnStatus_t status = chain(d->program, d);
  if (status != CUDNN_STATUS_SUCCESS) {
    free(d->program);
    d->program = NULL;
  }
  return status;
}

/* ---- engines: the algorithms of a convolution; two that fuse; one for pointwise operations alone ---- */

int engine_count(const Program *p) {
  if (!p->has_convolution) return 1;
  return p->steps ? 2 : algorithm_count(p->convolution.pass);
}

cudnnStatus_t engine_bytes(const Program *p, int engine, size_t *bytes, const char **why) {
  *bytes = 0;
  return p->has_convolution ? algorithm_bytes(&p->convolution, engine, bytes, why) : CUDNN_STATUS_SUCCESS;
}
