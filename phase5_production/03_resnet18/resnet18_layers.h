/* resnet18_layers.h - a table of the layers of resnet18.cuh, a block in each line: shapes, parameters, FLOPs, bytes. */
#ifndef PHASE5_PRODUCTION_RESNET18_LAYERS_H
#define PHASE5_PRODUCTION_RESNET18_LAYERS_H

#include <jansson.h>

#include "common/nn/model.h"

enum { RESNET18_LINES = 16 };

typedef struct Resnet18Line {
  char name[16];
  Shape in, out;
  size_t parameters;
  double flops, bytes; /* of one picture; the outputs of all its operations */
} Resnet18Line;

/* "layer2.0" for layer2.0.conv1, "conv1" for the batch norm and the ReLU behind it, else the node's own. */
static inline void resnet18_line_name(const Node *node, char name[16]) {
  if (strncmp(node->name, "layer", 5) == 0)
    snprintf(name, 16, "%.8s", node->name);
  else if (strcmp(node->name, "bn1") == 0 || strcmp(node->name, "relu1") == 0)
    snprintf(name, 16, "conv1");
  else
    snprintf(name, 16, "%.15s", node->name);
}

/* The lines, and their number. */
static inline int resnet18_lines(const Graph *g, Resnet18Line line[RESNET18_LINES]) {
  int count = 0;
  char name[16];
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    if (node->op == NULL) continue;
    resnet18_line_name(node, name);
    Resnet18Line *at = count > 0 ? &line[count - 1] : NULL;
    if (at == NULL || strcmp(at->name, name) != 0) {
      if (count == RESNET18_LINES) break;
      at = &line[count++];
      memset(at, 0, sizeof *at);
      memcpy(at->name, name, sizeof name);
      at->in = graph_shape(g, node->input[0]);
    }
    at->out = node->shape;
    at->flops += node->flops;
    at->bytes += (double)node_bytes(node);
    for (int k = 0; k < node->params; k++) at->parameters += node->param[k].trained ? node->param[k].count : 0;
  }
  return count;
}

/* Prints the table, and returns it for JSON. */
static inline json_t *resnet18_print_layers(const Graph *g) {
  Resnet18Line line[RESNET18_LINES], sum;
  memset(&sum, 0, sizeof sum);
  const int count = resnet18_lines(g, line);
  json_t *rows = json_array();
  printf("%-9s %-14s %-14s %11s %9s %12s\n", "layer", "input", "output", "parameters", "MFLOP", "outputs, KiB");
  for (int i = 0; i < count; i++) {
    const Resnet18Line *l = &line[i];
    printf("%-9s %-14s %-14s %11zu %9.1f %12.0f\n", l->name, shape_text(l->in).text, shape_text(l->out).text,
           l->parameters, l->flops * 1e-6, l->bytes / 1024);
    sum.parameters += l->parameters;
    sum.flops += l->flops;
    sum.bytes += l->bytes;
    json_array_append_new(
        rows, json_pack("{s:s, s:s, s:s, s:I, s:f}", "layer", l->name, "input", shape_text(l->in).text, "output",
                        shape_text(l->out).text, "parameters", (json_int_t)l->parameters, "mflop", l->flops * 1e-6));
  }
  printf("%-9s %-14s %-14s %11zu %9.1f %12.0f\n", "sum", "", "", sum.parameters, sum.flops * 1e-6, sum.bytes / 1024);
  return rows;
}

#endif /* PHASE5_PRODUCTION_RESNET18_LAYERS_H */
