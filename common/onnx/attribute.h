/* attribute.h - the arguments of a node, with the value that the operator's definition gives where one is missing. */
#ifndef COMMON_ONNX_ATTRIBUTE_H
#define COMMON_ONNX_ATTRIBUTE_H

#include "common/onnx/check.h"

/* NULL where the node has none of that name. */
static inline const Onnx__AttributeProto *onnx_attribute(const Onnx__NodeProto *node, const char *name) {
  for (size_t i = 0; i < node->n_attribute; i++)
    if (node->attribute[i]->name != NULL && strcmp(node->attribute[i]->name, name) == 0) return node->attribute[i];
  return NULL;
}

/* One of that type; NULL also where it has another: a caller that must tell looks at onnx_attribute()->type. */
static inline const Onnx__AttributeProto *onnx_attribute_of(const Onnx__NodeProto *node, const char *name, int type) {
  const Onnx__AttributeProto *a = onnx_attribute(node, name);
  return a != NULL && (int)a->type == type ? a : NULL;
}

static inline int64_t onnx_attribute_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise) {
  const Onnx__AttributeProto *a = onnx_attribute_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
  return a == NULL ? otherwise : a->i;
}

static inline float onnx_attribute_float(const Onnx__NodeProto *node, const char *name, float otherwise) {
  const Onnx__AttributeProto *a = onnx_attribute_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
  return a == NULL ? otherwise : a->f;
}

/* *count numbers; NULL and 0 where there are none. */
static inline const int64_t *onnx_attribute_ints(const Onnx__NodeProto *node, const char *name, size_t *count) {
  const Onnx__AttributeProto *a = onnx_attribute_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  *count = a == NULL ? 0 : a->n_ints;
  return a == NULL ? NULL : a->ints;
}

static inline const float *onnx_attribute_floats(const Onnx__NodeProto *node, const char *name, size_t *count) {
  const Onnx__AttributeProto *a = onnx_attribute_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
  *count = a == NULL ? 0 : a->n_floats;
  return a == NULL ? NULL : a->floats;
}

/* Copies the text into `text`, which is cut where it is too long; `otherwise` where there is none. Returns `text`. */
static inline const char *onnx_attribute_string(const Onnx__NodeProto *node, const char *name, const char *otherwise,
                                                char *text, size_t size) {
  const Onnx__AttributeProto *a = onnx_attribute_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  if (a == NULL)
    snprintf(text, size, "%s", otherwise);
  else
    snprintf(text, size, "%.*s", a->s.len > 4096 ? 4096 : (int)a->s.len, a->s.len == 0 ? "" : (const char *)a->s.data);
  return text;
}

static inline const Onnx__TensorProto *onnx_attribute_tensor(const Onnx__NodeProto *node, const char *name) {
  const Onnx__AttributeProto *a = onnx_attribute_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
  return a == NULL ? NULL : a->t;
}

static inline const Onnx__GraphProto *onnx_attribute_graph(const Onnx__NodeProto *node, const char *name) {
  const Onnx__AttributeProto *a = onnx_attribute_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
  return a == NULL ? NULL : a->g;
}

#endif /* COMMON_ONNX_ATTRIBUTE_H */
