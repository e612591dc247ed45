/* engine_svg.h - two networks side by side as SVG: what was imported, and what runs. A box for each operation, with its
 * name, its output, and the bytes and the time that it takes; a line for each array. A node stands in the row behind
 * the last that it reads. */
#ifndef PHASE5_PRODUCTION_ENGINE_SVG_H
#define PHASE5_PRODUCTION_ENGINE_SVG_H

#include "common/atomic_file.h"
#include "phase5_production/08_engine/engine_blocks.cuh"

enum { ENGINE_BOX_W = 236, ENGINE_BOX_H = 46, ENGINE_GAP_X = 16, ENGINE_GAP_Y = 16, ENGINE_TOP = 64 };

typedef struct EngineDrawing {
  const Graph *g;
  const double *seconds; /* of each node; NULL, or NAN: not measured */
  int batch;
  int *row, *column, rows, columns;
  int *behind; /* of each node the drawn one whose array it is */
} EngineDrawing;

static inline int engine_is_drawn(const Node *node) { return node->op == NULL || fused_node_runs(node); }

static inline EngineDrawing engine_drawing(const Graph *g, const double *seconds, int batch) {
  const size_t n = (size_t)g->count + 1;
  int *numbers = (int *)xcalloc(4 * n, sizeof *numbers), *used = numbers + 3 * n;
  EngineDrawing d = {g, seconds, batch, numbers, numbers + n, 0, 0, numbers + 2 * n};
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    d.behind[i] = i;
    d.row[i] = 0;
    if (!engine_is_drawn(node)) {
      d.behind[i] = node->inputs > 0 ? d.behind[node->input[0]] : GRAPH_ERROR;
      continue;
    }
    for (int k = 0; k < node->inputs; k++) {
      const int source = d.behind[node->input[k]];
      if (source >= 0 && d.row[source] + 1 > d.row[i]) d.row[i] = d.row[source] + 1;
    }
    d.column[i] = used[d.row[i]]++;
    if (d.row[i] + 1 > d.rows) d.rows = d.row[i] + 1;
    if (d.column[i] + 1 > d.columns) d.columns = d.column[i] + 1;
  }
  return d;
}

static inline int engine_drawing_width(const EngineDrawing *d) {
  return d->columns * (ENGINE_BOX_W + ENGINE_GAP_X) + ENGINE_GAP_X;
}
static inline int engine_box_x(const EngineDrawing *d, int i, int left) {
  return left + ENGINE_GAP_X + d->column[i] * (ENGINE_BOX_W + ENGINE_GAP_X);
}
static inline int engine_box_y(const EngineDrawing *d, int i) {
  return ENGINE_TOP + d->row[i] * (ENGINE_BOX_H + ENGINE_GAP_Y);
}

/* Text of a file that anybody made. */
static inline void engine_svg_text(FILE *out, const char *text, int most) {
  for (int i = 0; text[i] && i < most; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c == '<')
      fputs("&lt;", out);
    else if (c == '>')
      fputs("&gt;", out);
    else if (c == '&')
      fputs("&amp;", out);
    else
      fputc(c < 32 || c > 126 ? '?' : c, out);
  }
}

static inline void engine_svg_label(FILE *out, int x, int y, const char *style, const char *text) {
  fprintf(out, "<text x=\"%d\" y=\"%d\" %s>", x, y, style);
  engine_svg_text(out, text, 64);
  fputs("</text>\n", out);
}

static inline const char *engine_svg_colour(const Node *node) {
  if (node->op == NULL) return "#eeeeee";
  if (strstr(node->op->name, "Conv") || strstr(node->op->name, "Stem")) return "#cfe2f3";
  if (strstr(node->op->name, "Gemm") || strstr(node->op->name, "MatMul")) return "#d9ead3";
  if (strstr(node->op->name, "Norm")) return "#fff2cc";
  if (strstr(node->op->name, "Pool")) return "#d0e0e3";
  return "#ead1dc";
}

static inline void engine_svg_box(FILE *out, const EngineDrawing *d, int i, int left) {
  const Node *node = &d->g->nodes[i];
  const int x = engine_box_x(d, i, left), y = engine_box_y(d, i);
  char text[512];
  fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" stroke=\"#666666\"/>\n", x, y,
          ENGINE_BOX_W, ENGINE_BOX_H, engine_svg_colour(node));
  snprintf(text, sizeof text, "%.24s  %.24s", node->name, node->op ? node->op->name : "input");
  engine_svg_label(out, x + 8, y + 17, "font-weight=\"bold\"", text);
  int length = snprintf(text, sizeof text, "%.60s", shape_text(node->shape).text);
  const double bytes = engine_node_bytes(d->g, i, d->batch);
  if (node->op) length += snprintf(text + length, sizeof text - (size_t)length, "  %.2f MB", bytes * 1e-6);
  if (d->seconds && isfinite(d->seconds[i]) && node->op)
    snprintf(text + length, sizeof text - (size_t)length, "  %.1f us", d->seconds[i] * 1e6);
  engine_svg_label(out, x + 8, y + 36, "fill=\"#333333\"", text);
}

static inline void engine_svg_graph(FILE *out, const EngineDrawing *d, int left) {
  for (int i = 0; i < d->g->count; i++) {
    const Node *node = &d->g->nodes[i];
    for (int k = 0; k < node->inputs && engine_is_drawn(node); k++) {
      const int from = d->behind[node->input[k]];
      if (from < 0) continue; /* a constant */
      const int x1 = engine_box_x(d, from, left) + ENGINE_BOX_W / 2, y1 = engine_box_y(d, from) + ENGINE_BOX_H;
      const int x2 = engine_box_x(d, i, left) + ENGINE_BOX_W / 2, y2 = engine_box_y(d, i);
      const int bend = d->row[i] - d->row[from] > 1 ? ENGINE_BOX_W / 2 + 6 : 0;
      fprintf(out, "<path d=\"M %d %d C %d %d, %d %d, %d %d\" fill=\"none\" stroke=\"#999999\"/>\n", x1, y1, x1 + bend,
              y1 + 24, x2 + bend, y2 - 24, x2, y2);
    }
  }
  for (int i = 0; i < d->g->count; i++)
    if (engine_is_drawn(&d->g->nodes[i])) engine_svg_box(out, d, i, left);
}

/* Node counts, bytes and the sum of times. */
static inline void engine_svg_title(FILE *out, const EngineDrawing *d, const char *title, int left) {
  char text[256];
  double sum = 0;
  int measured = 0;
  for (int i = 0; i < d->g->count; i++)
    if (d->seconds && fused_node_runs(&d->g->nodes[i]) && isfinite(d->seconds[i])) sum += d->seconds[i], measured = 1;
  int length = snprintf(text, sizeof text, "%d operations, %.2f MB", fused_runs(d->g),
                        engine_graph_bytes(d->g, d->batch) * 1e-6);
  if (measured) snprintf(text + length, sizeof text - (size_t)length, ", %.1f us", sum * 1e6);
  engine_svg_label(out, left + ENGINE_GAP_X, 26, "font-size=\"16\" font-weight=\"bold\"", title);
  engine_svg_label(out, left + ENGINE_GAP_X, 48, "fill=\"#333333\"", text);
}

/* The file: before on the left, after on the right. -1 with a sentence. */
static inline int engine_svg_write(const char *path, EngineDrawing *before, EngineDrawing *after, Error *err) {
  AtomicFile file;
  const int middle = engine_drawing_width(before) + ENGINE_GAP_X, width = middle + engine_drawing_width(after);
  const int rows = before->rows > after->rows ? before->rows : after->rows;
  int status = atomic_file_open(&file, path, err);
  if (status == 0) {
    fprintf(file.stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            width, ENGINE_TOP + rows * (ENGINE_BOX_H + ENGINE_GAP_Y));
    engine_svg_title(file.stream, before, "as it was imported", 0);
    engine_svg_title(file.stream, after, "as it runs", middle);
    engine_svg_graph(file.stream, before, 0);
    engine_svg_graph(file.stream, after, middle);
    fputs("</svg>\n", file.stream);
    status = atomic_file_commit(&file, err);
  }
  free(before->row);
  free(after->row);
  return status;
}

#endif /* PHASE5_PRODUCTION_ENGINE_SVG_H */
