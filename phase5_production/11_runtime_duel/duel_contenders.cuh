/* duel_contenders.cuh - who fights: the table of contenders, and how each is started. */
#ifndef PHASE5_PRODUCTION_DUEL_CONTENDERS_CUH
#define PHASE5_PRODUCTION_DUEL_CONTENDERS_CUH

#include "common/runfiles.h"
#include "phase5_production/09_int8/int8_engine.cuh"
#include "phase5_production/11_runtime_duel/duel_engine.cuh"
#include "phase5_production/11_runtime_duel/duel_half.h"
#include "phase5_production/11_runtime_duel/duel_ort.cuh"
#include "phase5_production/11_runtime_duel/duel_process.h"

typedef enum DuelKind { DUEL_ENGINE, DUEL_ORT, DUEL_TORCH, DUEL_RESERVED } DuelKind;

typedef struct DuelContender {
  const char *name;  /* for --only and messages */
  const char *title; /* for people */
  DuelKind kind;
  Device device;
  const char *precision; /* fp32, tf32, fp16, bf16, int8 */
  const char *way;       /* of PyTorch: eager, compiled, graph; of ONNX Runtime: "graph" or NULL */
} DuelContender;

static const DuelContender duel_contenders[] = {
    {"ort_cpu", "ONNX Runtime, CPU", DUEL_ORT, DEVICE_CPU, "fp32", NULL},
    {"ort_cpu_int8", "ONNX Runtime, CPU", DUEL_ORT, DEVICE_CPU, "int8", NULL},
    {"torch_cpu", "PyTorch eager, CPU", DUEL_TORCH, DEVICE_CPU, "fp32", "eager"},
    {"torch_cpu_compiled", "PyTorch compiled, CPU", DUEL_TORCH, DEVICE_CPU, "fp32", "compiled"},
    {"engine_cpu", "our engine, CPU", DUEL_ENGINE, DEVICE_CPU, "fp32", NULL},
    {"engine_cpu_int8", "our engine, CPU", DUEL_ENGINE, DEVICE_CPU, "int8", NULL},
    {"ort_cuda", "ONNX Runtime, CUDA", DUEL_ORT, DEVICE_GPU, "tf32", NULL},
    {"ort_cuda_graph", "ONNX Runtime, CUDA, in a graph", DUEL_ORT, DEVICE_GPU, "tf32", "graph"},
    {"ort_cuda_fp16", "ONNX Runtime, CUDA", DUEL_ORT, DEVICE_GPU, "fp16", NULL},
    {"ort_cuda_fp16_graph", "ONNX Runtime, CUDA, in a graph", DUEL_ORT, DEVICE_GPU, "fp16", "graph"},
    {"ort_cuda_int8", "ONNX Runtime, CUDA", DUEL_ORT, DEVICE_GPU, "int8", NULL},
    {"torch", "PyTorch eager", DUEL_TORCH, DEVICE_GPU, "tf32", "eager"},
    {"torch_graph", "PyTorch in a graph", DUEL_TORCH, DEVICE_GPU, "tf32", "graph"},
    {"torch_fp16", "PyTorch eager", DUEL_TORCH, DEVICE_GPU, "fp16", "eager"},
    {"torch_fp16_graph", "PyTorch in a graph", DUEL_TORCH, DEVICE_GPU, "fp16", "graph"},
    {"torch_fp16_compiled", "PyTorch compiled", DUEL_TORCH, DEVICE_GPU, "fp16", "compiled"},
    {"engine", "our engine", DUEL_ENGINE, DEVICE_GPU, "fp32", NULL},
    {"engine_tf32", "our engine", DUEL_ENGINE, DEVICE_GPU, "tf32", NULL},
    {"engine_fp16", "our engine", DUEL_ENGINE, DEVICE_GPU, "fp16", NULL},
    {"engine_int8", "our engine", DUEL_ENGINE, DEVICE_GPU, "int8", NULL},
    {"tensorrt", "TensorRT", DUEL_RESERVED, DEVICE_GPU, "fp16", NULL},
};

enum { DUEL_CONTENDERS = sizeof duel_contenders / sizeof *duel_contenders };

static inline const DuelContender *duel_contender_named(const char *name) {
  for (int i = 0; i < DUEL_CONTENDERS; i++)
    if (strcmp(duel_contenders[i].name, name) == 0) return &duel_contenders[i];
  return NULL;
}

static inline int duel_is(const DuelContender *c, const char *precision) {
  return strcmp(c->precision, precision) == 0;
}

/* How far from float32's answer it may be: |a - b| in units of the row's largest number. A sum of products in fp16 or
 * TF32 has 11 bits in each factor, in bf16 8, in int8 7; a network of tens of layers loses some three more. */
static inline double duel_tolerance(const char *precision) {
  if (strcmp(precision, "int8") == 0) return 0.25;
  if (strcmp(precision, "bf16") == 0) return 0.1;
  return strcmp(precision, "fp32") == 0 ? 1e-4 : 0.02;
}

/* What all contenders of a duel get. */
typedef struct DuelSetting {
  DuelModel model;
  char folder[PATH_MAX]; /* of its own, with x, and y and a plan of each contender */
  int most;              /* samples in x, and the largest batch */
  int threads, gpu;
  const char *python;
  char int8[PATH_MAX]; /* the model with QuantizeLinear and DequantizeLinear, of lesson 9; "": there is none */
} DuelSetting;

static inline void duel_file(char path[PATH_MAX], const DuelSetting *s, const DuelContender *c, const char *end) {
  if ((size_t)snprintf(path, PATH_MAX, "%s/%s%s", s->folder, c ? c->name : "x", end) >= PATH_MAX)
    die("%.80s...: the path of the folder is too long", s->folder);
}

/* The file that the contender opens: the model; quantised; or in float16, which the parent has written. */
static inline void duel_path(char path[PATH_MAX], const DuelSetting *s, const DuelContender *c) {
  if (duel_is(c, "int8"))
    snprintf(path, PATH_MAX, "%s", s->int8);
  else if (c->kind == DUEL_ORT && duel_is(c, "fp16"))
    duel_file(path, s, NULL, ".fp16.onnx");
  else
    snprintf(path, PATH_MAX, "%s", s->model.path);
}

static inline EngineOptions duel_engine_options(const DuelContender *c, const DuelSetting *s) {
  EngineOptions options = engine_options();
  options.device = c->device;
  options.gpu = s->gpu;
  options.max_batch = s->most;
  options.threads = s->threads;
  options.cuda_graphs = 1;
  options.measure = 1;
  options.log = NULL;
  if (duel_is(c, "int8")) { /* what is not quantised is computed in float32 on a CPU, and in fp16 on a GPU */
    static Int8Store store;
    static EngineExtension extension;
    extension = int8_engine(&store);
    options.extension = &extension;
    options.precision = c->device == DEVICE_GPU ? ENGINE_FP16 : ENGINE_FP32;
  } else if (engine_precision_find(c->precision, &options.precision) != 0) {
    die("the engine knows no %s", c->precision);
  }
  return options;
}

static inline OrtNetOptions duel_ort_options(const DuelContender *c, const DuelSetting *s) {
  OrtNetOptions options = ort_net_options();
  options.cuda = c->device == DEVICE_GPU;
  options.gpu = s->gpu;
  options.threads = s->threads;
  options.cuda_graph = c->way != NULL;
  return options;
}

/* The samples: what the parent wrote. */
static inline float *duel_read_samples(const DuelSetting *s, Error *err) {
  char path[PATH_MAX];
  const size_t count = (size_t)s->most * duel_model_floats(&s->model);
  float *x = (float *)xmalloc(count * sizeof *x);
  duel_file(path, s, NULL, ".bin");
  FILE *file = fopen(path, "rb");
  const int read = file != NULL && fread(x, sizeof *x, count, file) == count;
  if (file) fclose(file);
  if (read) return x;
  free(x);
  error_set(err, "%s: %zu floats were expected", path, count);
  return NULL;
}

/* This process chooses the engine's kernels and writes the plan. Its exit status. */
static inline int duel_be_builder(const DuelContender *c, const DuelSetting *s) {
  char plan[PATH_MAX];
  Error err;
  duel_file(plan, s, c, ".nnplan");
  const int status = duel_engine_build(&s->model, plan, duel_engine_options(c, s), &err);
  duel_say(status == 0 ? json_pack("{s:i}", "built", 1) : json_pack("{s:s}", "missing", err.message));
  return status != 0;
}

/* This process is the contender. Its exit status. */
static inline int duel_be(const DuelContender *c, const DuelSetting *s) {
  static DuelOrt ort;
  static DuelEngine engine;
  char y[PATH_MAX], plan[PATH_MAX];
  Error err;
  DuelRunner *runner = c->kind == DUEL_ORT ? &ort.runner : &engine.runner;
  float *x = duel_read_samples(s, &err);
  int status = x == NULL ? -1 : 0;
  duel_file(y, s, c, ".y");
  duel_file(plan, s, c, ".nnplan");
  if (status == 0 && c->kind == DUEL_ORT)
    status = duel_ort_open(&ort, &s->model, x, duel_ort_options(c, s), &err);
  else if (status == 0)
    duel_engine_open(&engine, &s->model, access(plan, R_OK) == 0 ? plan : s->model.path, x, duel_engine_options(c, s));
  if (status == 0) {
    status = duel_answer(runner, c->title, y, &err);
    runner->close(runner->self);
  }
  if (status != 0) duel_say(json_pack("{s:s}", "missing", err.message));
  free(x);
  return status != 0;
}

/* Starts the process. The answer to its start is waited for by the caller. build: it writes the engine's plan, no
 * more. */
static inline int duel_start(DuelProcess *p, const DuelContender *c, const DuelSetting *s, int build, Error *err) {
  char text[10][PATH_MAX + 32], script[PATH_MAX], y[PATH_MAX], x[PATH_MAX], path[PATH_MAX], self[PATH_MAX] = "";
  const char *argv[16] = {NULL};
  int n = 0;
  duel_file(x, s, NULL, ".bin");
  duel_file(y, s, c, ".y");
  if (c->kind == DUEL_TORCH) {
    if (runfiles_find("phase5_production/11_runtime_duel/duel_torch.py", script, sizeof script, err) != 0) return -1;
    argv[n++] = s->python;
    argv[n++] = script;
    snprintf(text[0], sizeof text[0], "--x=%s", x);
    snprintf(text[1], sizeof text[1], "--y=%s", y);
    snprintf(text[2], sizeof text[2], "--way=%s", c->way);
    snprintf(text[3], sizeof text[3], "--precision=%s", c->precision);
    snprintf(text[4], sizeof text[4], "--device=%s", c->device == DEVICE_GPU ? "cuda" : "cpu");
  } else {
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
      return error_set(err, "/proc/self/exe: %s", strerror(errno));
    argv[n++] = self;
    snprintf(text[0], sizeof text[0], "--be=%s", c->name);
    snprintf(text[1], sizeof text[1], "--folder=%s", s->folder);
    snprintf(text[2], sizeof text[2], "--most=%d", s->most);
    snprintf(text[3], sizeof text[3], "--gpu=%d", s->gpu);
    snprintf(text[4], sizeof text[4], build ? "--build" : "--fight");
  }
  duel_path(path, s, c);
  snprintf(text[6], sizeof text[6], c->kind == DUEL_TORCH ? "--model=%s" : "%s", path);
  snprintf(text[7], sizeof text[7], "--threads=%d", s->threads);
  int used = snprintf(text[5], sizeof text[5], "--shape=");
  for (int i = 1; i < s->model.rank; i++)
    used +=
        snprintf(text[5] + used, sizeof text[5] - (size_t)used, "%s%lld", i > 1 ? "," : "", (long long)s->model.dim[i]);
  for (int i = 0; i < 8; i++) argv[n++] = text[i];
  return duel_process_start(p, argv, err);
}

#endif /* PHASE5_PRODUCTION_DUEL_CONTENDERS_CUH */
