/* engine.h - the inference engine, in plain C: a model file becomes a plan, and the plan answers.
 *
 *     Engine engine;
 *     EngineOptions options = engine_options();
 *     options.device = DEVICE_GPU;
 *     options.precision = ENGINE_FP16;
 *     options.max_batch = 64;
 *     if (engine_open(&engine, "resnet18.onnx", &options, &err) != 0) die("%s", err.message);
 *     if (engine_run(&engine, pictures, 8, 224, 224, logits, &err) != 0) die("%s", err.message);
 *     engine_close(&engine);
 *
 * engine_open() reads a model (.onnx), or a plan that engine_save() has written (.nnplan): then nothing is measured,
 * and the first answer comes as soon as the weights are on the device. A plan of another device or of another version
 * is rebuilt, and options.log says so.
 *
 * Every function that can fail returns -1 and leaves one sentence in `err`. An Engine is used by one thread at a time;
 * several engines work side by side. Batch, height and width may differ from call to call, up to the largest that
 * were declared: memory is planned for these, once.
 */
#ifndef PHASE5_PRODUCTION_ENGINE_H
#define PHASE5_PRODUCTION_ENGINE_H

#include <stdint.h>
#include <stdio.h>

#include "common/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ENGINE_MAX_RANK = 8, ENGINE_MAX_VALUES = 8 };

/* What products are computed in. Inputs and outputs are float32, whatever it is. */
typedef enum EnginePrecision { ENGINE_FP32, ENGINE_TF32, ENGINE_FP16, ENGINE_BF16 } EnginePrecision;

/* What a later lesson adds to the engine: INT8 (lesson 9). Declared in engine_extension.cuh. */
struct EngineExtension;

typedef struct EngineOptions {
  Device device;
  int gpu;                                 /* of DEVICE_GPU: which one, from 0 */
  EnginePrecision precision;               /* on a CPU fp32 alone is possible */
  int max_batch;                           /* 0: 1, or what the plan declares */
  int max_height, max_width;               /* 0: as the model says, or the plan declares */
  int batch_invariant;                     /* one kernel and one order of summation for all batch sizes */
  int threads;                             /* of a CPU; 0: all cores, or as many as OpenMP is told to take */
  int cuda_graphs;                         /* one launch per inference; recorded once for each shape */
  int measure;                             /* kernels are chosen by measuring, unless the plan has the choices */
  const char *choices;                     /* "conv1:winograd,layer1.0.conv2:implicit_gemm"; NULL: measured, or usual */
  const struct EngineExtension *extension; /* NULL: none */
  FILE *log;                               /* what each pass changes; NULL: nothing is said */
} EngineOptions;

typedef struct EngineState EngineState;

typedef struct Engine {
  EngineState *state;
} Engine;

/* An input or output. The first dimension is the batch. -1: the batch, a height, a width that may differ from call to
 * call. */
typedef struct EngineValue {
  const char *name; /* the engine's */
  int rank;
  int64_t dim[ENGINE_MAX_RANK];
} EngineValue;

/* In bytes. */
typedef struct EngineMemory {
  size_t weights, arena, total; /* of the device; total: all that the engine has allocated there */
} EngineMemory;

/* CPU, fp32, one sample, all cores, CUDA graphs, measured. */
EngineOptions engine_options(void);
const char *engine_precision_name(EnginePrecision precision);
/* -1: none of this name. */
int engine_precision_find(const char *name, EnginePrecision *precision);

int engine_open(Engine *e, const char *path, const EngineOptions *options, Error *err);
void engine_close(Engine *e);

/* Writes the plan: the model as the passes have left it, the choices, the device, the declared ranges. */
int engine_save(const Engine *e, const char *path, Error *err);

/* Host arrays: x (batch, ...) of the first input, y (batch, ...) of the first output. height and width are 0 where the
 * model's input is not a picture, or where they are those of the model. Waits for the answer. */
int engine_run(Engine *e, const float *x, int batch, int height, int width, float *y, Error *err);

/* All inputs and all outputs, in the order of engine_input() and engine_output(). y[i] NULL: not wanted. */
int engine_run_all(Engine *e, const float *const *x, int batch, int height, int width, float *const *y, Error *err);

/* The same with arrays on the engine's device, in the thread's stream (cudaStreamPerThread): does not wait. NULL in
 * place of x[i] or y[i]: engine_device_input() and engine_device_output() are where it lies already. */
int engine_run_device(Engine *e, const float *const *x, int batch, int height, int width, float *const *y, Error *err);

/* Where the engine reads input i and writes output i for pictures of this size: on its device, valid until the next run
 * with another height or width. NULL with a sentence where there is no such size. */
float *engine_device_input(Engine *e, int i, int height, int width, Error *err);
const float *engine_device_output(Engine *e, int i, int height, int width, Error *err);

int engine_inputs(const Engine *e);
int engine_outputs(const Engine *e);
EngineValue engine_input(const Engine *e, int i);
EngineValue engine_output(const Engine *e, int i);
/* With every dimension but the batch, for pictures of height x width; floats of one sample: of a model with a fixed
 * batch, that part of the value, rounded up, as its first size may be another one. -1 with a sentence. */
int engine_output_shape(Engine *e, int i, int height, int width, EngineValue *value, size_t *floats, Error *err);
int engine_input_shape(Engine *e, int i, int height, int width, EngineValue *value, size_t *floats, Error *err);

/* What the model's metadata says under this key ("classes"); NULL: nothing. */
const char *engine_metadata(const Engine *e, const char *key);

EngineMemory engine_memory(const Engine *e);
EngineOptions engine_get_options(const Engine *e); /* with the ranges that hold; log and choices are NULL */
/* "conv1:winograd,...": what computes the nodes of which there are several implementations. */
const char *engine_choices(const Engine *e);

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_ENGINE_H */
