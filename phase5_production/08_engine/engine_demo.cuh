/* engine_demo.cuh - engine without arguments: the passes on a thin ResNet-18 that pretends to be trained, in every
 * precision of the device, and how far the answers are from those of the plain network. */
#ifndef PHASE5_PRODUCTION_ENGINE_DEMO_CUH
#define PHASE5_PRODUCTION_ENGINE_DEMO_CUH

#include "phase5_production/04_resnet18_fused/fused_measure.cuh"
#include "phase5_production/04_resnet18_fused/fused_reference.cuh"
#include "phase5_production/08_engine/engine_command.cuh"

enum { ENGINE_DEMO_BATCH = 2, ENGINE_DEMO_CLASSES = 10 };
static const Resnet18Shape engine_demo_shape = {32, 8, ENGINE_DEMO_CLASSES};

/* The largest difference to float64, as a part of the largest answer. */
static inline double engine_demo_error(Engine *e, const float *x, const double *expected) {
  Error err;
  float y[ENGINE_DEMO_BATCH * ENGINE_DEMO_CLASSES];
  if (engine_run(e, x, ENGINE_DEMO_BATCH, 0, 0, y, &err) != 0) die("%s", err.message);
  return fused_error(y, expected, ENGINE_DEMO_BATCH * ENGINE_DEMO_CLASSES);
}

/* Returns whether the answers are right. */
static inline int engine_demo_one(const Model *trained, const EngineCommand *c, EnginePrecision precision,
                                  const float *x, const double *expected, json_t *rows) {
  Error err;
  Engine e;
  EngineOptions o = c->options;
  o.precision = precision;
  o.max_batch = ENGINE_DEMO_BATCH;
  o.measure = 0;
  o.log = stdout;
  printf("\n%s\n", engine_precision_name(precision));
  if (engine_open_model(&e, trained, &o, &err) != 0) die("%s", err.message);
  const int kernels = engine_kernels(&e);
  const double error = engine_demo_error(&e, x, expected), tolerance = fused_tolerance((FusedType)precision);
  const int right = error <= tolerance;
  if (kernels > 0) printf("kernels of one inference: %d\n", kernels);
  printf("answers: %s the tolerance of %.0e\n", right ? "within" : "NOT within", tolerance);
  json_array_append_new(rows, json_pack("{s:s, s:b, s:f, s:f, s:i}", "version", engine_precision_name(precision), "ok",
                                        right, "error", error, "tolerance", tolerance, "kernels", kernels));
  engine_close(&e);
  return right;
}

static inline int engine_command_demo(const EngineCommand *c, Error *err) {
  Model trained;
  const Resnet18Shape s = engine_demo_shape;
  const size_t numbers = (size_t)ENGINE_DEMO_BATCH * 3 * (size_t)s.side * (size_t)s.side;
  int wrong = 0;
  if (fused_trained_open(&trained, s, DEVICE_CPU, c->common.seed, err) != 0) return -1;
  float *x = (float *)xmalloc(numbers * sizeof *x);
  fused_uniform(x, numbers, c->common.seed, 1, -1.7320508f, 3.4641016f);
  double *expected = fused_reference(&trained, x, ENGINE_DEMO_BATCH);
  json_t *rows = json_array();
  printf("ResNet-18, width %d, batch %d, pictures of %d x %d, on a %s\n", s.width, ENGINE_DEMO_BATCH, s.side, s.side,
         c->options.device == DEVICE_GPU ? "GPU" : "CPU");
  for (int p = 0; p < (c->options.device == DEVICE_GPU ? 4 : 1); p++)
    wrong += !engine_demo_one(&trained, c, (EnginePrecision)p, x, expected, rows);
  int status = 0;
  if (c->common.json)
    status = json_result(
        json_pack("{s:s, s:s, s:O}", "lesson", "engine", "device", device_name(c->options.device), "rows", rows), err);
  json_decref(rows);
  free(expected);
  free(x);
  model_close(&trained);
  if (status == 0 && wrong) status = error_set(err, "%d precisions are beyond their tolerance", wrong);
  return status;
}

#endif /* PHASE5_PRODUCTION_ENGINE_DEMO_CUH */
