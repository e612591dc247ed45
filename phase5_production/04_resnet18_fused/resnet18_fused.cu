/* resnet18_fused.cu - the inference of ResNet-18, from one kernel per operation to 18 kernels in one CUDA graph.
 *
 *     bazel run //phase5_production:resnet18_fused
 *     bazel run --config=cuda //phase5_production:resnet18_fused -- --batch-size=32
 *     bazel run --config=cuda //phase5_production:resnet18_fused -- --rung=fp16_graph --operations
 *
 * Each rung computes other operations together (fused_rungs.cuh). The table has, for one inference: kernels, bytes that
 * pass between operations, the time of the kernels, the time from one inference to the next, what the host needs to
 * launch it, and the difference to float64.
 */
#include "common/options.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase5_production/04_resnet18_fused/fused_measure.cuh"
#include "phase5_production/04_resnet18_fused/fused_reference.cuh"

typedef struct Options {
  CommonOptions common;
  Resnet18Shape shape;
  const char *rung; /* NULL: all but those of `other` */
  FusedType other;
  int checked, operations;
} Options;

enum { RUNG = 1, SIDE, WIDTH, PRECISION, CHECKED, OPERATIONS };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case RUNG:
      options->rung = arg;
      if (fused_rung(arg) == NULL && strcmp(arg, "list") != 0)
        argp_error(state, "--rung=%.80s: unknown rung; --rung=list prints their names", arg);
      return 0;
    case SIDE:
      options->shape.side = (int)option_int(state, arg, "--side", 8, 1024);
      return 0;
    case WIDTH:
      options->shape.width = (int)option_int(state, arg, "--width", 8, 256);
      if (options->shape.width % 8 != 0) argp_error(state, "--width=%s: a multiple of 8 is expected", arg);
      return 0;
    case PRECISION:
      if (strcmp(arg, "fp16") != 0 && strcmp(arg, "bf16") != 0)
        argp_error(state, "--precision=%.80s: fp16 or bf16 is expected", arg);
      options->other = strcmp(arg, "fp16") == 0 ? FUSED_BF16 : FUSED_FP16;
      return 0;
    case CHECKED:
      options->checked = (int)option_int(state, arg, "--checked", 0, 1024);
      return 0;
    case OPERATIONS:
      options->operations = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static Options read_options(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"rung", RUNG, "NAME", 0, "Only this rung; list prints the names of all", 0},
      {"precision", PRECISION, "TYPE", 0, "Of the rungs in 16 bits: fp16 or bf16 (default: fp16)", 0},
      {"side", SIDE, "N", 0, "Pictures of N x N pixels (default: 224; on an emulated GPU 32)", 0},
      {"width", WIDTH, "N", 0, "Channels of the first convolution (default: 64; on an emulated GPU 8)", 0},
      {"checked", CHECKED, "N", 0, "Compare the logits of the first N pictures with float64 (default: 1)", 0},
      {"operations", OPERATIONS, NULL, 0, "Time each operation of the rungs (on a GPU)", 0},
      OPTION_END};
  static const struct argp own = {
      rows, parse, NULL, "Computes the inference of ResNet-18 with more and more operations in one kernel.",
      NULL, NULL,  NULL};
  Options options = {options_default(OPTIONS_DEVICE | OPTIONS_BATCH_SIZE | OPTIONS_SEED | OPTIONS_JSON),
                     resnet18_imagenet,
                     NULL,
                     FUSED_BF16,
                     1,
                     0};
  options.common.device = DEVICE_GPU;
#ifdef SIMT_REWRITTEN
  options.common.batch_size = 2;
  options.shape.side = 32;
  options.shape.width = 8;
  options.shape.classes = 10;
#endif
  options_parse(&options.common, &own, &options, argc, argv);
  if (options.checked > options.common.batch_size) options.checked = options.common.batch_size;
  return options;
}

/* Uniform numbers with the mean 0 and the variance 1 that normalised pictures have. */
static float *make_pictures(const Options *options) {
  const size_t n = (size_t)options->common.batch_size * 3 * options->shape.side * options->shape.side;
  float *x = (float *)xmalloc(n * sizeof *x);
  fused_uniform(x, n, options->common.seed, 1, -1.7320508f, 3.4641016f);
  return x;
}

static FusedResult climb(const FusedRung *rung, const Model *trained, const float *pictures, const double *expected,
                         const Options *options) {
  Fused f;
  Error err;
  const Device device = options->common.device;
  const size_t numbers = (size_t)options->common.batch_size * 3 * options->shape.side * options->shape.side;
  const size_t checked = (size_t)options->checked * options->shape.classes;
  FusedResult result = {rung, 0, 0, NAN, 0, NAN, NAN, NAN};
  if (fused_open(&f, rung, trained, options->common.batch_size, &err) != 0) die("%s: %s", rung->name, err.message);
  device_upload(device, model_input(&f.model, 0), pictures, numbers * sizeof *pictures);
  fused_infer(&f);
  if (checked > 0) {
    float *logits = (float *)xmalloc(checked * sizeof *logits);
    device_download(device, logits, fused_logits(&f), checked * sizeof *logits);
    result.error = fused_error(logits, expected, checked);
    free(logits);
  }
  result.bytes = fused_bytes(&f);
  result.memory = model_bytes(&f.model);
  if (device == DEVICE_GPU) result.kernels = fused_kernels(&f);
#ifndef SIMT_REWRITTEN
  if (device == DEVICE_GPU) fused_measure_times(&result, &f);
  if (device == DEVICE_GPU && options->operations) fused_print_operations(stderr, &f);
#endif
  fused_close(&f);
  return result;
}

static void print_number(double x, double factor, int width, int digits) {
  if (isnan(x))
    printf("%*s", width, "-");
  else
    printf("%*.*f", width, digits, x * factor);
}

static json_t *row_of(const FusedResult *r, const FusedResult *first, int batch, int ok) {
  json_t *row = json_pack("{s:s, s:s, s:s, s:b, s:f, s:f}", "version", r->rung->name, "title", r->rung->title, "type",
                          fused_type_name(r->rung->type), "ok", ok, "bytes", r->bytes, "memory_bytes", r->memory);
  if (r->kernels > 0) json_object_set_new(row, "kernels", json_integer(r->kernels));
  if (!isnan(r->error)) json_object_set_new(row, "error", json_real(r->error));
  if (isnan(r->wall)) return row;
  json_object_set_new(row, "gpu_us", json_real(r->gpu * 1e6));
  json_object_set_new(row, "time_us", json_real(r->wall * 1e6));
  json_object_set_new(row, "host_us", json_real(r->host * 1e6));
  json_object_set_new(row, "images_per_second", json_real(batch / r->wall));
  json_object_set_new(row, "vs_first", json_real(first->wall / r->wall));
  return row;
}

/* A line of the table; `first` is the first rung of its type. Returns whether the logits are right. */
static int print_row(const FusedResult *r, const FusedResult *first, json_t *rows, const Options *options) {
  const int ok = options->checked == 0 || r->error <= fused_tolerance(r->rung->type);
  if (r == first)
    printf("\n%-6s%-28s%8s%10s%8s%10s%10s%10s%8s%10s\n", fused_type_name(r->rung->type), "", "kernels", "MB", "MiB",
           "GPU us", "wall us", "host us", "gain", "error");
  printf("      %-28s", r->rung->title);
  if (r->kernels > 0)
    printf("%8d", r->kernels);
  else
    printf("%8s", "-");
  printf("%10.2f%8.1f", r->bytes * 1e-6, r->memory / 1048576);
  print_number(r->gpu, 1e6, 10, 1);
  print_number(r->wall, 1e6, 10, 1);
  print_number(r->host, 1e6, 10, 1);
  print_number(first->wall / r->wall, 1, 8, 2);
  if (isnan(r->error))
    printf("%10s\n", options->checked ? "NaN" : "-");
  else
    printf("%10.0e%s\n", r->error, ok ? "" : "  WRONG");
  json_array_append_new(rows, row_of(r, first, options->common.batch_size, ok));
  return ok;
}

static int list_rungs(void) {
  for (int i = 0; i < FUSED_RUNGS; i++)
    printf("%-16s%s  %s\n", fused_rungs[i].name, fused_type_name(fused_rungs[i].type), fused_rungs[i].title);
  stdout_finish();
  return 0;
}

int main(int argc, char **argv) {
  Error err;
  char description[512];
  Model trained;
  FusedResult results[FUSED_RUNGS];
  threads_begin();
  const Options options = read_options(argc, argv);
  const CommonOptions *common = &options.common;
  if (options.rung != NULL && strcmp(options.rung, "list") == 0) return list_rungs();
  if (device_open(common->device, description, sizeof description, &err) != 0) die("%s", err.message);
#ifdef SIMT_REWRITTEN
  if (common->device == DEVICE_GPU) snprintf(description, sizeof description, "an emulated GPU"); /* not which CPU */
#endif
  if (fused_trained_open(&trained, options.shape, common->device, common->seed, &err) != 0) die("%s", err.message);
  float *pictures = make_pictures(&options);
  double *expected = options.checked > 0 ? fused_reference(&trained, pictures, options.checked) : NULL;
  printf("inference of ResNet-18, width %d, batch %d, pictures of %d x %d, on %s\n", options.shape.width,
         common->batch_size, options.shape.side, options.shape.side, description);
  json_t *rows = json_array();
  int wrong = 0;
  const FusedResult *first = NULL;
  for (int i = 0; i < FUSED_RUNGS; i++) {
    const FusedRung *rung = &fused_rungs[i];
    if (options.rung != NULL ? strcmp(options.rung, rung->name) != 0 : rung->type == options.other) continue;
    results[i] = climb(rung, &trained, pictures, expected, &options);
    if (first == NULL || first->rung->type != rung->type) first = &results[i];
    wrong += !print_row(&results[i], first, rows, &options);
    fflush(stdout);
  }
  if (common->json &&
      json_result(json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:O}", "lesson", "resnet18_fused", "device",
                            device_name(common->device), "gpu", description, "batch_size", common->batch_size, "side",
                            options.shape.side, "width", options.shape.width, "rows", rows),
                  &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  free(pictures);
  free(expected);
  model_close(&trained);
  stdout_finish();
  return wrong > 0;
}
