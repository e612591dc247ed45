/* build.h - making and editing ONNX models. All memory is the model's: onnx_model_close() frees it.
 *
 *     OnnxModel m;
 *     onnx_model_create(&m, "lenet");
 *     const OnnxDim image[4] = {{0, "N"}, {1, NULL}, {28, NULL}, {28, NULL}};
 *     onnx_add_input(&m, "image", ONNX_FLOAT, 4, image);
 *     onnx_add_tensor(&m, "conv1.weight", ONNX_FLOAT, 4, dim, weights);       // copies the bytes
 *     Onnx__NodeProto *node = onnx_add_node(&m, "Conv", "conv1");
 *     onnx_add_node_input(&m, node, "image");
 *     onnx_add_node_input(&m, node, "conv1.weight");
 *     onnx_add_node_output(&m, node, "conv1");
 *     onnx_set_ints(&m, node, "pads", 4, pads);
 *     ...
 *     int status = onnx_model_write(m.proto, "lenet.onnx", &err);
 *     onnx_model_close(&m);
 *
 * Texts and numbers are copied. The functions end the program where memory is exhausted, as xmalloc() does.
 */
#ifndef COMMON_ONNX_BUILD_H
#define COMMON_ONNX_BUILD_H

#include "common/onnx/onnx.h"

enum { ONNX_WRITTEN_IR = 8, ONNX_WRITTEN_OPSET = 17 };

typedef struct OnnxDim { /* one axis of a graph input or output */
  int64_t size;
  const char *symbol; /* where it is given, the size is open, and this is its name: "N" */
} OnnxDim;

static inline void *onnx_new(OnnxModel *m, const ProtobufCMessageDescriptor *kind) {
  void *message = onnx_arena_get(&m->arena, kind->sizeof_message);
  kind->message_init((ProtobufCMessage *)message);
  return message;
}
#define ONNX_NEW(m, Type, kind) ((Type *)onnx_new(m, &kind))

static inline void *onnx_copy(OnnxModel *m, const void *bytes, size_t size) {
  void *copy = onnx_arena_get(&m->arena, size);
  if (size > 0) memcpy(copy, bytes, size);
  return copy;
}

static inline char *onnx_copy_text(OnnxModel *m, const char *text) {
  return (char *)onnx_copy(m, text, strlen(text) + 1);
}

/* A formatted text of at most 511 bytes. */
__attribute__((format(printf, 2, 3))) static inline char *onnx_text(OnnxModel *m, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return onnx_copy_text(m, text);
}

/* Inserts `item` at `position` of a list of *count pointers, one of a message's repeated fields; returns the list. */
static inline void **onnx_insert(OnnxModel *m, void **list, size_t *count, size_t position, void *item) {
  if (list == NULL || *count == 0 || onnx_arena_size(list) < (*count + 1) * sizeof *list) {
    void **larger = (void **)onnx_arena_get(&m->arena, (*count < 4 ? 8 : 2 * *count) * sizeof *list);
    if (*count > 0) memcpy(larger, list, *count * sizeof *list);
    if (*count > 0) onnx_arena_release(&m->arena, list);
    list = larger;
  }
  memmove(list + position + 1, list + position, (*count - position) * sizeof *list);
  list[position] = item;
  ++*count;
  return list;
}
#define ONNX_INSERT(m, Type, list, count, position, item) \
  ((list) = (Type **)onnx_insert(m, (void **)(list), &(count), position, item))
#define ONNX_APPEND(m, Type, list, count, item) ONNX_INSERT(m, Type, list, count, count, item)

/* ---- the model ---- */

/* The operators of a domain ("" is the standard's) are of this version. */
static inline void onnx_set_opset(OnnxModel *m, const char *domain, int64_t version) {
  Onnx__ModelProto *p = m->proto;
  for (size_t i = 0; i < p->n_opset_import; i++)
    if (strcmp(onnx_domain(p->opset_import[i]->domain), onnx_domain(domain)) == 0) {
      p->opset_import[i]->version = version, p->opset_import[i]->has_version = 1;
      return;
    }
  Onnx__OperatorSetIdProto *set = ONNX_NEW(m, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__descriptor);
  set->domain = onnx_copy_text(m, domain);
  set->version = version, set->has_version = 1;
  ONNX_APPEND(m, Onnx__OperatorSetIdProto, p->opset_import, p->n_opset_import, set);
}

/* An empty model of IR version 8 and opset 17, whose graph has this name. */
static inline void onnx_model_create(OnnxModel *m, const char *graph) {
  memset(m, 0, sizeof *m);
  snprintf(m->path, sizeof m->path, "the model");
  snprintf(m->folder, sizeof m->folder, ".");
  m->proto = ONNX_NEW(m, Onnx__ModelProto, onnx__model_proto__descriptor);
  m->proto->ir_version = ONNX_WRITTEN_IR, m->proto->has_ir_version = 1;
  onnx_set_opset(m, "", ONNX_WRITTEN_OPSET);
  m->proto->graph = ONNX_NEW(m, Onnx__GraphProto, onnx__graph_proto__descriptor);
  m->proto->graph->name = onnx_copy_text(m, graph);
}

static inline void onnx_set_producer(OnnxModel *m, const char *name, const char *version) {
  m->proto->producer_name = onnx_copy_text(m, name);
  m->proto->producer_version = onnx_copy_text(m, version);
}

/* A key of metadata_props; replaces its value where there is one. */
static inline void onnx_set_metadata(OnnxModel *m, const char *key, const char *value) {
  Onnx__ModelProto *p = m->proto;
  for (size_t i = 0; i < p->n_metadata_props; i++)
    if (p->metadata_props[i]->key != NULL && strcmp(p->metadata_props[i]->key, key) == 0) {
      p->metadata_props[i]->value = onnx_copy_text(m, value);
      return;
    }
  Onnx__StringStringEntryProto *entry =
      ONNX_NEW(m, Onnx__StringStringEntryProto, onnx__string_string_entry_proto__descriptor);
  entry->key = onnx_copy_text(m, key);
  entry->value = onnx_copy_text(m, value);
  ONNX_APPEND(m, Onnx__StringStringEntryProto, p->metadata_props, p->n_metadata_props, entry);
}

/* ---- graph inputs, outputs, tensors ---- */

/* A value with its type; rank -1: its shape is not declared. */
static inline Onnx__ValueInfoProto *onnx_new_value(OnnxModel *m, const char *name, int type, int rank,
                                                   const OnnxDim *dim) {
  Onnx__ValueInfoProto *value = ONNX_NEW(m, Onnx__ValueInfoProto, onnx__value_info_proto__descriptor);
  value->name = onnx_copy_text(m, name);
  value->type = ONNX_NEW(m, Onnx__TypeProto, onnx__type_proto__descriptor);
  value->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  Onnx__TypeProto__Tensor *tensor = ONNX_NEW(m, Onnx__TypeProto__Tensor, onnx__type_proto__tensor__descriptor);
  value->type->tensor_type = tensor;
  tensor->elem_type = type, tensor->has_elem_type = 1;
  if (rank < 0) return value;
  tensor->shape = ONNX_NEW(m, Onnx__TensorShapeProto, onnx__tensor_shape_proto__descriptor);
  for (int i = 0; i < rank; i++) {
    Onnx__TensorShapeProto__Dimension *d =
        ONNX_NEW(m, Onnx__TensorShapeProto__Dimension, onnx__tensor_shape_proto__dimension__descriptor);
    d->value_case = dim[i].symbol == NULL ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                                          : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    if (dim[i].symbol == NULL)
      d->dim_value = dim[i].size;
    else
      d->dim_param = onnx_copy_text(m, dim[i].symbol);
    ONNX_APPEND(m, Onnx__TensorShapeProto__Dimension, tensor->shape->dim, tensor->shape->n_dim, d);
  }
  return value;
}

static inline void onnx_add_input(OnnxModel *m, const char *name, int type, int rank, const OnnxDim *dim) {
  Onnx__GraphProto *g = m->proto->graph;
  ONNX_APPEND(m, Onnx__ValueInfoProto, g->input, g->n_input, onnx_new_value(m, name, type, rank, dim));
}
static inline void onnx_add_output(OnnxModel *m, const char *name, int type, int rank, const OnnxDim *dim) {
  Onnx__GraphProto *g = m->proto->graph;
  ONNX_APPEND(m, Onnx__ValueInfoProto, g->output, g->n_output, onnx_new_value(m, name, type, rank, dim));
}
static inline void onnx_add_value_info(OnnxModel *m, const char *name, int type, int rank, const OnnxDim *dim) {
  Onnx__GraphProto *g = m->proto->graph;
  ONNX_APPEND(m, Onnx__ValueInfoProto, g->value_info, g->n_value_info, onnx_new_value(m, name, type, rank, dim));
}

/* A tensor with a copy of `data`, row-major, as raw_data. */
static inline Onnx__TensorProto *onnx_new_tensor(OnnxModel *m, const char *name, int type, int rank, const int64_t *dim,
                                                 const void *data) {
  Onnx__TensorProto *t = ONNX_NEW(m, Onnx__TensorProto, onnx__tensor_proto__descriptor);
  const int64_t count = onnx_element_count((size_t)rank, dim);
  if (count < 0) die("tensor '%s' of an ONNX model has sizes below 0, or over 2^63 elements", name);
  t->name = onnx_copy_text(m, name);
  t->data_type = type, t->has_data_type = 1;
  t->dims = (int64_t *)onnx_copy(m, dim, (size_t)rank * sizeof *dim);
  t->n_dims = (size_t)rank;
  t->raw_data.len = (size_t)count * onnx_type_size(type);
  t->raw_data.data = (uint8_t *)onnx_copy(m, data, t->raw_data.len);
  t->has_raw_data = 1;
  return t;
}

/* An initializer. */
static inline Onnx__TensorProto *onnx_add_tensor(OnnxModel *m, const char *name, int type, int rank, const int64_t *dim,
                                                 const void *data) {
  Onnx__GraphProto *g = m->proto->graph;
  Onnx__TensorProto *t = onnx_new_tensor(m, name, type, rank, dim, data);
  ONNX_APPEND(m, Onnx__TensorProto, g->initializer, g->n_initializer, t);
  return t;
}

/* ---- nodes ---- */

/* A node before the one that is now at `position`. */
static inline Onnx__NodeProto *onnx_insert_node(OnnxModel *m, size_t position, const char *op, const char *name) {
  Onnx__GraphProto *g = m->proto->graph;
  Onnx__NodeProto *node = ONNX_NEW(m, Onnx__NodeProto, onnx__node_proto__descriptor);
  node->op_type = onnx_copy_text(m, op);
  node->name = onnx_copy_text(m, name);
  ONNX_INSERT(m, Onnx__NodeProto, g->node, g->n_node, position, node);
  return node;
}
static inline Onnx__NodeProto *onnx_add_node(OnnxModel *m, const char *op, const char *name) {
  return onnx_insert_node(m, m->proto->graph->n_node, op, name);
}
static inline void onnx_add_node_input(OnnxModel *m, Onnx__NodeProto *node, const char *name) {
  ONNX_APPEND(m, char, node->input, node->n_input, onnx_copy_text(m, name));
}
static inline void onnx_add_node_output(OnnxModel *m, Onnx__NodeProto *node, const char *name) {
  ONNX_APPEND(m, char, node->output, node->n_output, onnx_copy_text(m, name));
}

/* An attribute of this name and type, new and empty where the node has none, and emptied where it has one. */
static inline Onnx__AttributeProto *onnx_set_attribute(OnnxModel *m, Onnx__NodeProto *node, const char *name,
                                                       Onnx__AttributeProto__AttributeType type) {
  Onnx__AttributeProto *a = (Onnx__AttributeProto *)onnx_attribute(node, name);
  if (a == NULL) {
    a = ONNX_NEW(m, Onnx__AttributeProto, onnx__attribute_proto__descriptor);
    ONNX_APPEND(m, Onnx__AttributeProto, node->attribute, node->n_attribute, a);
  } else {
    onnx__attribute_proto__init(a);
  }
  a->name = onnx_copy_text(m, name);
  a->type = type, a->has_type = 1;
  return a;
}

static inline void onnx_set_int(OnnxModel *m, Onnx__NodeProto *node, const char *name, int64_t value) {
  Onnx__AttributeProto *a = onnx_set_attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
  a->i = value, a->has_i = 1;
}
static inline void onnx_set_float(OnnxModel *m, Onnx__NodeProto *node, const char *name, float value) {
  Onnx__AttributeProto *a = onnx_set_attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
  a->f = value, a->has_f = 1;
}
static inline void onnx_set_string(OnnxModel *m, Onnx__NodeProto *node, const char *name, const char *value) {
  Onnx__AttributeProto *a = onnx_set_attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  a->s.data = (uint8_t *)onnx_copy_text(m, value), a->s.len = strlen(value), a->has_s = 1;
}
static inline void onnx_set_ints(OnnxModel *m, Onnx__NodeProto *node, const char *name, size_t count,
                                 const int64_t *values) {
  Onnx__AttributeProto *a = onnx_set_attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  a->ints = (int64_t *)onnx_copy(m, values, count * sizeof *values), a->n_ints = count;
}
static inline void onnx_set_floats(OnnxModel *m, Onnx__NodeProto *node, const char *name, size_t count,
                                   const float *values) {
  Onnx__AttributeProto *a = onnx_set_attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
  a->floats = (float *)onnx_copy(m, values, count * sizeof *values), a->n_floats = count;
}
static inline void onnx_set_tensor(OnnxModel *m, Onnx__NodeProto *node, const char *name, Onnx__TensorProto *value) {
  onnx_set_attribute(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = value;
}

#endif /* COMMON_ONNX_BUILD_H */
