/* execute.c - the graph API: pointwise operations, and the execution of a plan. */
#include "graph.h"

/* ---- pointwise operations ---- */

#define KIND(mode, arguments) \
  { CUDNN_POINTWISE_##mode, "CUDNN_POINTWISE_" #mode, arguments }
static const PointwiseKind kinds[] = {
    KIND(ADD, 2),           KIND(MUL, 2),
    KIND(MIN, 2),           KIND(MAX, 2),
    KIND(ADD_SQUARE, 2),    KIND(DIV, 2),
    KIND(POW, 2),           KIND(SUB, 2),
    KIND(SQRT, 1),          KIND(ABS, 1),
    KIND(CEIL, 1),          KIND(COS, 1),
    KIND(EXP, 1),           KIND(FLOOR, 1),
    KIND(LOG, 1),           KIND(NEG, 1),
    KIND(RSQRT, 1),         KIND(SIN, 1),
    KIND(TAN, 1),           KIND(ERF, 1),
    KIND(IDENTITY, 1),      KIND(RECIPROCAL, 1),
    KIND(RELU_FWD, 1),      KIND(TANH_FWD, 1),
    KIND(SIGMOID_FWD, 1),   KIND(ELU_FWD, 1),
    KIND(GELU_FWD, 1),      KIND(SOFTPLUS_FWD, 1),
    KIND(SWISH_FWD, 1),     KIND(GELU_APPROX_TANH_FWD, 1),
    KIND(MOD, 0),           KIND(ATAN2, 0),
    KIND(RELU_BWD, 0),      KIND(TANH_BWD, 0),
    KIND(SIGMOID_BWD, 0),   KIND(ELU_BWD, 0),
    KIND(GELU_BWD, 0),      KIND(SOFTPLUS_BWD, 0),
    KIND(SWISH_BWD, 0),     KIND(GELU_APPROX_TANH_BWD, 0),
    KIND(CMP_EQ, 0),        KIND(CMP_NEQ, 0),
    KIND(CMP_GT, 0),        KIND(CMP_GE, 0),
    KIND(CMP_LT, 0),        KIND(CMP_LE, 0),
    KIND(LOGICAL_AND, 0),   KIND(LOGICAL_OR, 0),
    KIND(LOGICAL_NOT, 0),   KIND(GEN_INDEX, 0),
    KIND(BINARY_SELECT, 0),
};

const PointwiseKind *pointwise_kind(cudnnPointwiseMode_t mode) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].mode == mode) return &kinds[i];
  return NULL;
}

static float applied(const Pointwise *p, float a, float b) {
  switch (p->mode) {
    case CUDNN_POINTWISE_ADD:
      return a + b;
    case CUDNN_POINTWISE_MUL:
      return a * b;
    case CUDNN_POINTWISE_MIN:
      return fminf(a, b);
    case CUDNN_POINTWISE_MAX:
      return fmaxf(a, b);
    case CUDNN_POINTWISE_ADD_SQUARE:
      return a + b * b;
    case CUDNN_POINTWISE_DIV:
      return a / b;
    case CUDNN_POINTWISE_POW:
      return powf(a, b);
    case CUDNN_POINTWISE_SUB:
      return a - b;
    case CUDNN_POINTWISE_SQRT:
      return sqrtf(a);
    case CUDNN_POINTWISE_ABS:
      return fabsf(a);
    case CUDNN_POINTWISE_CEIL:
      return ceilf(a);
    case CUDNN_POINTWISE_COS:
      return cosf(a);
    case CUDNN_POINTWISE_EXP:
      return expf(a);
    case CUDNN_POINTWISE_FLOOR:
      return floorf(a);
    case CUDNN_POINTWISE_LOG:
      return logf(a);
    case CUDNN_POINTWISE_NEG:
      return -a;
    case CUDNN_POINTWISE_RSQRT:
      return 1 / sqrtf(a);
    case CUDNN_POINTWISE_SIN:
      return sinf(a);
    case CUDNN_POINTWISE_TAN:
      return tanf(a);
    case CUDNN_POINTWISE_ERF:
      return erff(a);
    case CUDNN_POINTWISE_RECIPROCAL:
      return 1 / a;
    case CUDNN_POINTWISE_RELU_FWD:
      if (!(a > p->lower)) return isnan(a) ? a : (float)(p->lower + p->slope * (a - p->lower));
      return a < p->upper ? a : (float)p->upper;
    case CUDNN_POINTWISE_TANH_FWD:
      return tanhf(a);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1 / (1 + expf(-a));
    case CUDNN_POINTWISE_ELU_FWD:
      return a > 0 ? a : (float)(p->elu_alpha * expm1(a));
    case CUDNN_POINTWISE_GELU_FWD:
      return (float)(0.5 * a * (1 + erf(a * M_SQRT1_2)));
    case CUDNN_POINTWISE_SOFTPLUS_FWD:
      return (float)(log1p(exp(-fabs(p->softplus_beta * a))) / p->softplus_beta + fmax(a, 0));
    case CUDNN_POINTWISE_SWISH_FWD:
      return (float)(a / (1 + exp(-p->swish_beta * a)));
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
      return (float)(0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))));
    default:
      return a;
  }
}

/* ---- execution ---- */

/* One step on the value, in place. */
static void apply(Call *call, const Pointwise *s, const Tensor *t, float *value) {
  const Operand *o = s->other >= 0 && !s->by_value ? &call->o[s->other] : NULL;
  const long long width = t->dim[t->rank - 1], rows = element_count(t) / width, step = o ? row_step(&o->t) : 0;
  PARALLEL
  for (long long row = 0; row < rows; row++) {
    long long at = o ? row_begin(t, &o->t, row) : 0;
    for (long long i = row * width; i < (row + 1) * width; i++, at += step) {
      const float other = o ? load_float(o->t.type, o->data, at) : s->value;
      value[i] = s->swapped ? applied(s, s->alpha1 * other, s->alpha2 * value[i])
                            : applied(s, s->alpha1 * value[i], s->alpha2 * other);
    }
  }
}

static void work_graph(Call *call) {
  const int has_convolution = call->w >= 0;
  if (has_convolution && !call->steps) {
    convolve(call, call->x, call->w, call->y, call->alpha, call->beta);
    return;
  }
  Tensor t = has_convolution ? call->convolution.y : call->o[call->x].t;
  t.type = CUDNN_DATA_FLOAT;
  pack(&t);
  float *value = work_memory(call, (size_t)element_count(&t) * sizeof *value), *made = NULL;
  if (!value) return;
  if (has_convolution) {
    Call c = *call; /* into packed floats */
    c.convolution.y = t;
    c.o[c.operands] = (Operand){.name = "sums", .t = t, .data = value};
    convolve(&c, call->x, call->w, c.operands, call->alpha, 0);
    if (call->y >= 0) deliver(call, call->y, value, 1, 0);
  } else {
    const float *x = dense(call, call->x, &made);
    if (x) memcpy(value, x, (size_t)element_count(&t) * sizeof *value);
    free(made);
  }
  for (int i = 0; i < call->steps; i++) {
    apply(call, &call->step[i], &t, value);
    if (call->step[i].out >= 0) deliver(call, call->step[i].out, value, 1, 0);
  }
  free(value);
}

static void *pointer_for(const Descriptor *pack, int64_t id) {
  for (int i = 0; i < attribute_count(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS); i++)
    if (integer(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i, 0) == id)
      return pointer(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
  return NULL;
}

static cudnnStatus_t add_operands(Call *call, const Program *p, const Descriptor *pack) {
  for (int i = 0; i < p->operands; i++) {
    const ProgramOperand *o = &p->operand[i];
    void *data = pointer_for(pack, o->id);
    if (!data) return refuse(call, CUDNN_STATUS_INTERNAL_ERROR, "the variant pack has no pointer for %s", o->name);
    call->o[call->operands++] = (Operand){.name = o->name, .t = o->t, .data = data, .written = o->written};
    if (!o->by_value) continue;
    if (!simt_memory_host_may_use(data))
      return bad(call, "%s is given by value: its pointer must be one of the host", o->name);
    for (int s = 0; s < call->steps; s++)
      if (call->step[s].other == i) call->step[s].value = load_float(o->t.type, data, 0);
    call->o[i].data = NULL;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Descriptor *d = plan, *v = pack;
  BEGIN(call);
  if (!d || !v) return refuse(&call, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the plan or the variant pack is NULL");
  if (d->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return refuse(&call, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                  "a plan and a variant pack are needed, not a %s and a %s", descriptor_name(d->type),
                  descriptor_name(v->type));
  if (!d->finalized || !v->finalized)
    return refuse(&call, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the %s is not finalized",
                  d->finalized ? "variant pack" : "plan");
  const Program *p = program_of(d);
  const char *why;
  size_t needed;
  engine_bytes(p, engine_of(d), &needed, &why);
  call.convolution = p->convolution;
  call.x = p->x, call.w = p->w, call.y = p->y;
  call.alpha = p->alpha, call.beta = p->beta;
  call.steps = p->steps;
  memcpy(call.step, p->step, sizeof call.step);
  TRY(add_operands(&call, p, v));
  void *workspace = pointer(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0);
  if (needed && !workspace)
    return bad(&call, "the workspace is NULL, but the plan needs %zu bytes: CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE",
               needed);
  TRY(add_bytes(&call, "the workspace", workspace, needed, 1));
  return submit(&call, work_graph);
}
