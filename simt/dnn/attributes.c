/* attributes.c - the graph API: descriptors and their attributes. */
#include "graph.h"

#include <stdbool.h>

/* ---- which attributes a descriptor has ---- */

#define ROW(of, name, type, most, use) \
  { CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, most, use, 0 }
#define CHILD(of, name, kind, most, use)                                                          \
  {                                                                                               \
    CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, use, \
        CUDNN_BACKEND_##kind##_DESCRIPTOR                                                         \
  }
#define OPERATION(of, name, A, B, C)                                                                         \
  CHILD(of, name##_CONV_DESC, CONVOLUTION, 1, SET | NEEDED), CHILD(of, name##_##A, TENSOR, 1, SET | NEEDED), \
      CHILD(of, name##_##B, TENSOR, 1, SET | NEEDED), CHILD(of, name##_##C, TENSOR, 1, SET | NEEDED),        \
      ROW(of, name##_ALPHA, FLOAT, 1, SET), ROW(of, name##_BETA, FLOAT, 1, SET)
#define ANY_OPERATION ((cudnnBackendDescriptorType_t)-1)

const Attribute dnn_attributes[] = {
    ROW(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, 1, SET | NEEDED),
    ROW(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, 1, SET | NEEDED),
    ROW(POINTWISE, POINTWISE_NAN_PROPAGATION, NAN_PROPOGATION, 1, SET),
    ROW(POINTWISE, POINTWISE_RELU_LOWER_CLIP, DOUBLE, 1, SET),
    ROW(POINTWISE, POINTWISE_RELU_UPPER_CLIP, DOUBLE, 1, SET),
    ROW(POINTWISE, POINTWISE_RELU_LOWER_CLIP_SLOPE, DOUBLE, 1, SET),
    ROW(POINTWISE, POINTWISE_ELU_ALPHA, DOUBLE, 1, SET),
    ROW(POINTWISE, POINTWISE_SOFTPLUS_BETA, DOUBLE, 1, SET),
    ROW(POINTWISE, POINTWISE_SWISH_BETA, DOUBLE, 1, SET),
    ROW(POINTWISE, POINTWISE_AXIS, INT64, 1, SET),
    ROW(CONVOLUTION, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, SET | NEEDED),
    ROW(CONVOLUTION, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, SET | NEEDED),
    ROW(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, INT64, 1, SET | NEEDED),
    ROW(CONVOLUTION, CONVOLUTION_DILATIONS, INT64, CUDNN_DIM_MAX, SET | NEEDED),
    ROW(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, INT64, CUDNN_DIM_MAX, SET | NEEDED),
    ROW(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, INT64, CUDNN_DIM_MAX, SET | NEEDED),
    ROW(CONVOLUTION, CONVOLUTION_POST_PADDINGS, INT64, CUDNN_DIM_MAX, SET | NEEDED),
    ROW(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, 1, SET | NEEDED),
    ROW(TENSOR, TENSOR_DIMENSIONS, INT64, CUDNN_DIM_MAX, SET | NEEDED),
    ROW(TENSOR, TENSOR_STRIDES, INT64, CUDNN_DIM_MAX, SET | NEEDED),
    ROW(TENSOR, TENSOR_UNIQUE_ID, INT64, 1, SET | NEEDED),
    ROW(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, 1, SET | NEEDED),
    ROW(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, 1, SET),
    ROW(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN, 1, SET),
    ROW(TENSOR, TENSOR_VECTOR_COUNT, INT64, 1, SET),
    ROW(TENSOR, TENSOR_VECTORIZED_DIMENSION, INT64, 1, SET),
    ROW(TENSOR, TENSOR_REORDERING_MODE, TENSOR_REORDERING_MODE, 1, SET),
    OPERATION(OPERATION_CONVOLUTION_FORWARD, OPERATION_CONVOLUTION_FORWARD, X, W, Y),
    OPERATION(OPERATION_CONVOLUTION_BACKWARD_DATA, OPERATION_CONVOLUTION_BWD_DATA, DX, W, DY),
    OPERATION(OPERATION_CONVOLUTION_BACKWARD_FILTER, OPERATION_CONVOLUTION_BWD_FILTER, X, DW, DY),
    CHILD(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, POINTWISE, 1, SET | NEEDED),
    CHILD(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, TENSOR, 1, SET),
    CHILD(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, TENSOR, 1, SET),
    CHILD(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, TENSOR, 1, SET),
    CHILD(OPERATION_POINTWISE, OPERATION_POINTWISE_DXDESC, TENSOR, 1, SET),
    CHILD(OPERATION_POINTWISE, OPERATION_POINTWISE_DYDESC, TENSOR, 1, SET),
    CHILD(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, TENSOR, 1, SET),
    ROW(OPERATION_POINTWISE, OPERATION_POINTWISE_ALPHA1, FLOAT, 1, SET),
    ROW(OPERATION_POINTWISE, OPERATION_POINTWISE_ALPHA2, FLOAT, 1, SET),
    ROW(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, 1, SET),
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MANY,
     SET | NEEDED, ANY_OPERATION},
    ROW(OPERATIONGRAPH, OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, INT64, 1, GIVEN),
    ROW(OPERATIONGRAPH, OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, BOOLEAN, 1, SET),
    CHILD(ENGINE, ENGINE_OPERATION_GRAPH, OPERATIONGRAPH, 1, SET | NEEDED),
    ROW(ENGINE, ENGINE_GLOBAL_INDEX, INT64, 1, SET | NEEDED),
    ROW(ENGINE, ENGINE_SM_COUNT_TARGET, INT32, 1, SET),
    ROW(ENGINE, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, 2, GIVEN),
    ROW(ENGINE, ENGINE_BEHAVIOR_NOTE, BEHAVIOR_NOTE, 1, GIVEN),
    ROW(ENGINE, ENGINE_KNOB_INFO, BACKEND_DESCRIPTOR, 1, GIVEN),
    ROW(ENGINE, ENGINE_LAYOUT_INFO, BACKEND_DESCRIPTOR, 1, GIVEN),
    CHILD(ENGINECFG, ENGINECFG_ENGINE, ENGINE, 1, SET | NEEDED),
    ROW(ENGINECFG, ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, MANY, GIVEN),
    ROW(ENGINECFG, ENGINECFG_INTERMEDIATE_INFO, BACKEND_DESCRIPTOR, MANY, GIVEN),
    ROW(ENGINECFG, ENGINECFG_WORKSPACE_SIZE, INT64, 1, GIVEN),
    CHILD(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, OPERATIONGRAPH, 1, SET | NEEDED),
    ROW(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, 1, SET | NEEDED),
    ROW(ENGINEHEUR, ENGINEHEUR_SM_COUNT_TARGET, INT32, 1, SET),
    ROW(ENGINEHEUR, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, MANY, GIVEN),
    ROW(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, 1, SET),
    CHILD(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, ENGINECFG, 1, SET | NEEDED),
    ROW(EXECUTION_PLAN, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, GIVEN),
    ROW(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, MANY, SET | NEEDED),
    ROW(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, MANY, SET | NEEDED),
    ROW(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, SET),
};
const int dnn_attribute_count = sizeof dnn_attributes / sizeof *dnn_attributes;

const Attribute *attribute_of(const Descriptor *d, cudnnBackendAttributeName_t name) {
  for (int i = 0; i < dnn_attribute_count; i++)
    if (dnn_attributes[i].of == d->type && dnn_attributes[i].name == name) return &dnn_attributes[i];
  return NULL;
}

const char *descriptor_name(cudnnBackendDescriptorType_t type) {
#define NAME(name, number) \
  case number:             \
    return #name;
  switch ((int)type) { SIMT_CUDNN_DESCRIPTORS(NAME) }
#undef NAME
  return "no descriptor of cuDNN 9";
}

size_t attribute_type_bytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_FRACTION:
      return sizeof(cudnnFraction_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

/* ---- slots ---- */

const Slot *slot_of(const Descriptor *d, cudnnBackendAttributeName_t name) {
  const Slot *s = d->slots;
  while (s && s->name != name) s = s->next;
  return s;
}

int64_t attribute_count(const Descriptor *d, cudnnBackendAttributeName_t name) {
  const Slot *s = slot_of(d, name);
  return s ? s->count : 0;
}

int64_t integer(const Descriptor *d, cudnnBackendAttributeName_t name, int i, int64_t otherwise) {
  const Slot *s = slot_of(d, name);
  if (!s || i >= s->count) return otherwise;
  switch (attribute_type_bytes(s->type)) {
    case 1:
      return ((const bool *)s->data)[i];
    case 8:
      return ((const int64_t *)s->data)[i];
    default:
      return ((const int *)s->data)[i];
  }
}

double real(const Descriptor *d, cudnnBackendAttributeName_t name, double otherwise) {
  const Slot *s = slot_of(d, name);
  if (!s) return otherwise;
  return s->type == CUDNN_TYPE_FLOAT ? *(const float *)s->data : *(const double *)s->data;
}

void *pointer(const Descriptor *d, cudnnBackendAttributeName_t name, int i) {
  const Slot *s = slot_of(d, name);
  return s && i < s->count ? ((void **)s->data)[i] : NULL;
}

static void free_slot(Slot *s) {
  for (int64_t i = 0; s->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < s->count; i++)
    descriptor_release(((void **)s->data)[i]);
  free(s->data);
  free(s);
}

void descriptor_clear(Descriptor *d) {
  for (Slot *s = d->slots, *next; s; s = next) {
    next = s->next;
    free_slot(s);
  }
  d->slots = NULL;
  free(d->program);
  d->program = NULL;
  d->finalized = 0;
}

void descriptor_release(Descriptor *d) {
  if (!d || --d->references > 0) return;
  descriptor_clear(d);
  free(d);
}

int descriptor_put(Descriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                   const void *values) {
  const size_t bytes = attribute_type_bytes(type) * (size_t)count;
  Slot *s = calloc(1, sizeof *s), **at = &d->slots;
  void *data = malloc(bytes ? bytes : 1);
  if (!s || !data) {
    free(s);
    free(data);
    return -1;
  }
  memcpy(data, values, bytes);
  for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++) ((Descriptor **)data)[i]->references++;
  while (*at && (*at)->name != name) at = &(*at)->next;
  *s = (Slot){.next = *at ? (*at)->next : NULL, .name = name, .type = type, .count = count, .data = data};
  if (*at) free_slot(*at);
  *at = s;
  return 0;
}

int descriptor_copy(Descriptor *to, const Descriptor *from) {
  descriptor_clear(to);
  for (const Slot *s = from->slots; s; s = s->next)
    if (descriptor_put(to, s->name, s->type, s->count, s->data) != 0) return -1;
  if (from->program) {
    to->program = malloc(sizeof *to->program);
    if (!to->program) return -1;
    *to->program = *from->program;
  }
  to->finalized = from->finalized;
  return 0;
}

/* ---- create and destroy ---- */

static int is_offered(cudnnBackendDescriptorType_t type) {
  for (int i = 0; i < dnn_attribute_count; i++)
    if (dnn_attributes[i].of == type) return 1;
  return 0;
}

Descriptor *descriptor_new(cudnnBackendDescriptorType_t type) {
  Descriptor *d = calloc(1, sizeof *d);
  if (d) *d = (Descriptor){.type = type, .references = 1};
  return d;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  if (!descriptor)
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, __func__, "the place for the descriptor is NULL");
  *descriptor = NULL;
  if (!is_offered(type))
    return not_supported_here("%s (%d): the emulation's cuDNN has graphs of convolutions and pointwise operations",
                              descriptor_name(type), (int)type);
  *descriptor = descriptor_new(type);
  return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  if (!descriptor) return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, __func__, "the descriptor is NULL");
  descriptor_clear(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  descriptor_release(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- attributes ---- */

/* FLOAT and DOUBLE will do for each other. */
static int fits(cudnnBackendAttributeType_t type, const Attribute *a) {
  const int is_real = type == CUDNN_TYPE_FLOAT || type == CUDNN_TYPE_DOUBLE;
  return type == a->type || (is_real && (a->type == CUDNN_TYPE_FLOAT || a->type == CUDNN_TYPE_DOUBLE));
}

int is_operation(cudnnBackendDescriptorType_t type) {
  return type >= CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
         type <= CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
}

/* As with NVIDIA's they may be finalized later; cudnnBackendFinalize() asks. */
static cudnnStatus_t check_children(const Attribute *a, int64_t count, const void *values) {
  static const char function[] = "cudnnBackendSetAttribute";
  for (int64_t i = 0; a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++) {
    const Descriptor *child = ((Descriptor *const *)values)[i];
    if (!child)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, function, "attribute %d: descriptor %d is NULL",
                            (int)a->name, (int)i);
    if (a->holds == ANY_OPERATION ? !is_operation(child->type) : child->type != a->holds)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, function, "attribute %d must be a %s, but is a %s",
                            (int)a->name, a->holds == ANY_OPERATION ? "operation" : descriptor_name(a->holds),
                            descriptor_name(child->type));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  Descriptor *d = descriptor;
  if (!d || (!values && count))
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, __func__, "the descriptor or the array is NULL");
  if (d->finalized)
    return refuse_plainly(CUDNN_STATUS_NOT_INITIALIZED, __func__, "the %s is finalized: it cannot be changed any more",
                          descriptor_name(d->type));
  const Attribute *a = attribute_of(d, name);
  if (!a) return bad_here("a %s has no attribute %d here", descriptor_name(d->type), (int)name);
  if (!(a->use & SET)) return bad_here("attribute %d of a %s can only be read", (int)name, descriptor_name(d->type));
  if (!fits(type, a))
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, __func__,
                          "attribute %d of a %s is of the type %d, and not %d (see cudnnBackendAttributeType_t)",
                          (int)name, descriptor_name(d->type), (int)a->type, (int)type);
  if (count < 1 || count > a->most)
    return bad_here("attribute %d of a %s has 1 to %d elements, and not %lld", (int)name, descriptor_name(d->type),
                    a->most, (long long)count);
  TRY(check_children(a, count, values));
  return descriptor_put(d, name, type, count, values) == 0 ? CUDNN_STATUS_SUCCESS
                                                           : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}
