/* onnx_print.h - an ONNX node as one line of text:
 *
 *     conv1.flatten  Flatten (conv1) -> conv1.flatten  axis=1
 */
#ifndef PHASE5_PRODUCTION_ONNX_PRINT_H
#define PHASE5_PRODUCTION_ONNX_PRINT_H

#include "common/onnx/onnx.h"

enum { ONNX_LINE = 1024 };

/* Appends to a text of `size` bytes, of which *used are taken; what does not fit is left out. */
__attribute__((format(printf, 4, 5))) static inline void onnx_print_more(char *text, size_t size, size_t *used,
                                                                         const char *format, ...) {
  va_list args;
  if (*used >= size) return;
  va_start(args, format);
  const int length = vsnprintf(text + *used, size - *used, format, args);
  va_end(args);
  *used += length > 0 ? (size_t)length : 0;
}

static inline void onnx_print_names(char *text, size_t size, size_t *used, size_t count, char *const *names) {
  for (size_t i = 0; i < count; i++) onnx_print_more(text, size, used, "%s%.100s", i ? ", " : "", names[i]);
}

static inline void onnx_print_attribute(char *text, size_t size, size_t *used, const Onnx__AttributeProto *a) {
  onnx_print_more(text, size, used, " %.60s=", a->name);
  switch (a->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
      onnx_print_more(text, size, used, "%lld", (long long)a->i);
      return;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
      onnx_print_more(text, size, used, "%g", (double)a->f);
      return;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
      onnx_print_more(text, size, used, "%.*s", a->s.len > 60 ? 60 : (int)a->s.len, a->s.len ? (char *)a->s.data : "");
      return;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
      for (size_t i = 0; i < a->n_ints; i++)
        onnx_print_more(text, size, used, i ? ",%lld" : "%lld", (long long)a->ints[i]);
      return;
    default:
      onnx_print_more(text, size, used, "(type %d)", (int)a->type);
  }
}

/* Operator (inputs) -> outputs  attributes. Returns `text`. */
static inline const char *onnx_node_line(const Onnx__NodeProto *node, char *text, size_t size) {
  size_t used = 0;
  onnx_print_more(text, size, &used, "%s (", node->op_type);
  onnx_print_names(text, size, &used, node->n_input, node->input);
  onnx_print_more(text, size, &used, ") -> ");
  onnx_print_names(text, size, &used, node->n_output, node->output);
  for (size_t i = 0; i < node->n_attribute; i++) onnx_print_attribute(text, size, &used, node->attribute[i]);
  return text;
}

/* All nodes, a line each. */
static inline void onnx_print_nodes(FILE *out, const Onnx__GraphProto *graph) {
  char line[ONNX_LINE];
  for (size_t i = 0; i < graph->n_node; i++) fprintf(out, "%s\n", onnx_node_line(graph->node[i], line, sizeof line));
}

#endif /* PHASE5_PRODUCTION_ONNX_PRINT_H */
