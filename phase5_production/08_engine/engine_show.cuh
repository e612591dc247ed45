/* engine_show.cuh - engine show: the network before and after the passes as SVG, and a table of what each operation
 * costs. */
#ifndef PHASE5_PRODUCTION_ENGINE_SHOW_CUH
#define PHASE5_PRODUCTION_ENGINE_SHOW_CUH

#include "phase5_production/08_engine/engine_command.cuh"
#include "phase5_production/08_engine/engine_svg.h"

enum { ENGINE_SHOW_ROUNDS = 15 };

static inline void engine_print_node(const Graph *g, int i, int batch, double seconds, json_t *rows) {
  const Node *node = &g->nodes[i];
  const double bytes = engine_node_bytes(g, i, batch);
  printf("%-28s %-20s %-16s %10.3f %12.3f", node->name, node->op->name, shape_text(node->shape).text, bytes * 1e-6,
         node->flops * batch * 1e-6);
  if (isfinite(seconds))
    printf(" %10.1f\n", seconds * 1e6);
  else
    printf(" %10s\n", "-");
  json_t *row = json_pack("{s:s, s:s, s:s, s:f, s:f}", "node", node->name, "operation", node->op->name, "shape",
                          shape_text(node->shape).text, "bytes", bytes, "flops", node->flops * batch);
  if (isfinite(seconds)) json_object_set_new(row, "time_us", json_real(seconds * 1e6));
  json_array_append_new(rows, row);
}

static inline int engine_command_show(Engine *e, const EngineCommand *c, Error *err) {
  const Model *m = engine_model(e);
  const Graph *g = m->graph;
  Graph *before = engine_imported(e, err);
  if (before == NULL) return -1;
  double *seconds = (double *)xcalloc((size_t)g->count + 1, sizeof *seconds);
  json_t *rows = json_array();
  Error why;
  EngineOptions o = engine_get_options(e);
  if (engine_run_device(e, NULL, o.max_batch, 0, 0, NULL, &why) != 0) die("%s", why.message); /* kernels are loaded */
  printf("%-28s %-20s %-16s %10s %12s %10s\n", "node", "operation", "output", "MB", "MFLOP", "us");
  for (int i = 0; i < g->count; i++) {
    seconds[i] = NAN;
    if (!fused_node_runs(&g->nodes[i])) continue;
    seconds[i] = engine_node_seconds(e, i, ENGINE_SHOW_ROUNDS);
    engine_print_node(g, i, m->max_batch, seconds[i], rows);
  }
  EngineDrawing left = engine_drawing(before, NULL, o.max_batch), right = engine_drawing(g, seconds, m->max_batch);
  int status = engine_svg_write(c->output, &left, &right, err);
  if (status == 0) printf("%s\n", c->output);
  if (status == 0 && c->common.json)
    status = json_result(
        json_pack("{s:s, s:s, s:s, s:O}", "program", "engine", "command", "show", "picture", c->output, "rows", rows),
        err);
  json_decref(rows);
  free(seconds);
  graph_destroy(before);
  return status;
}

#endif /* PHASE5_PRODUCTION_ENGINE_SHOW_CUH */
