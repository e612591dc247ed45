/* int8_judge.cuh - how good a rung of a network is: its accuracy on test pictures, and its logits beside float32's. */
#ifndef PHASE5_PRODUCTION_INT8_JUDGE_CUH
#define PHASE5_PRODUCTION_INT8_JUDGE_CUH

#include "common/train_log.h"
#include "phase5_production/09_int8/int8_calibrate.cuh"
#include "phase5_production/09_int8/int8_compare.cuh"
#include "phase5_production/09_int8/int8_pictures.cuh"

static inline void judge_upload(const Pictures *p, const Model *m, int first, int count) {
  Error err;
  const size_t n = (size_t)count * shape_count(p->shape);
  float *x = (float *)xmalloc(n * sizeof *x);
  if (pictures_read(p, first, count, x, &err) != 0) die("%s", err.message);
  device_upload(m->context.device, model_input(m, 0), x, n * sizeof *x);
  free(x);
}

static inline int judge_logits_node(const Model *m) {
  return m->graph->loss_count > 0 ? m->graph->losses[0].node : m->graph->outputs[0];
}

/* The logits of all test pictures, (count, classes). */
static inline float *judge_logits(const Model *m, const Pictures *test) {
  const size_t classes = shape_count(graph_shape(m->graph, judge_logits_node(m)));
  float *y = (float *)xmalloc((size_t)test->count * classes * sizeof *y);
  for (int first = 0; first < test->count; first += m->max_batch) {
    const int count = test->count - first < m->max_batch ? test->count - first : m->max_batch;
    judge_upload(test, m, first, count);
    for (int i = 0; i < m->graph->count; i++)
      if (m->graph->nodes[i].op) model_forward_node(m, i, count);
    device_download(m->context.device, y + first * classes, model_output(m, judge_logits_node(m)),
                    (size_t)count * classes * sizeof *y);
  }
  return y;
}

static inline Int8Calibration judge_calibrate(const Model *whole, const Pictures *p) {
  Int8Calibration c = int8_calibration(whole->graph);
  for (int pass = 0; pass < 2; pass++)
    for (int first = 0; first < p->count; first += whole->max_batch) {
      const int count = p->count - first < whole->max_batch ? p->count - first : whole->max_batch;
      judge_upload(p, whole, first, count);
      int8_observe(&c, whole, count, pass);
    }
  return c;
}

/* ---------------------------------------------------------------------------------------------------------------- */

typedef struct JudgedRung {
  const char *name;
  double accuracy, agreement; /* NaN without labels; with the answers of float32 */
  Int8Difference difference;  /* of the logits to float32's */
  double weight_bytes;
} JudgedRung;

static inline int judge_answer(const float *y, size_t n) {
  int best = 0;
  for (size_t i = 1; i < n; i++)
    if (y[i] > y[best]) best = (int)i;
  return best;
}

static inline double judge_weight_bytes(const Model *m) {
  double bytes = 0;
  for (int i = 0; i < m->graph->count; i++)
    for (int k = 0; k < m->graph->nodes[i].params; k++) {
      const Param *p = &m->graph->nodes[i].param[k];
      bytes += p->bytes ? (double)p->bytes : (double)p->count * (p->half_channels > 0 ? 2 : 4);
    }
  return bytes;
}

static inline JudgedRung judge_rung(const char *name, const Model *m, const Pictures *test, const float *expected) {
  const size_t classes = shape_count(graph_shape(m->graph, judge_logits_node(m)));
  float *y = judge_logits(m, test);
  int right = 0, same = 0;
  for (int i = 0; i < test->count; i++) {
    const int answer = judge_answer(y + i * classes, classes);
    if (pictures_have_labels(test)) right += answer == test->set.labels[i];
    if (expected != NULL) same += answer == judge_answer(expected + i * classes, classes);
  }
  JudgedRung rung = {name, NAN, 1, {1, 0, INFINITY}, judge_weight_bytes(m)};
  if (pictures_have_labels(test)) rung.accuracy = (double)right / test->count;
  if (expected != NULL) {
    rung.agreement = (double)same / test->count;
    rung.difference = int8_difference(expected, y, (size_t)test->count * classes);
  }
  free(y);
  return rung;
}

static inline void judge_print(const JudgedRung *r, const JudgedRung *whole) {
  printf("%-12s", r->name);
  if (isnan(r->accuracy))
    printf("%12s%10s", "-", "-");
  else
    printf("%11.2f%%%+10.2f", 100 * r->accuracy, 100 * (r->accuracy - whole->accuracy));
  printf("%11.2f%%%12.6f%10.1f%12.3f%s\n", 100 * r->agreement, r->difference.cosine, r->difference.sqnr,
         r->weight_bytes * 1e-6, isnan(r->difference.cosine) ? "   some logits are beyond the range of this type" : "");
  fflush(stdout);
}

static inline json_t *judge_json(const JudgedRung *r) {
  json_t *row =
      json_pack("{s:s, s:f, s:f}", "version", r->name, "agreement", r->agreement, "weight_bytes", r->weight_bytes);
  if (isfinite(r->difference.cosine)) json_object_set_new(row, "cosine", json_real(r->difference.cosine));
  if (!isnan(r->accuracy)) json_object_set_new(row, "test_accuracy", json_real(r->accuracy));
  if (isfinite(r->difference.sqnr)) json_object_set_new(row, "sqnr_db", json_real(r->difference.sqnr));
  return row;
}

#endif /* PHASE5_PRODUCTION_INT8_JUDGE_CUH */
