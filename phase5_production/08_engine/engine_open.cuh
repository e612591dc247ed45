/* engine_open.cuh - more of the engine than engine.h shows, for tests and for the program engine. In engine_lib.cu. */
#ifndef PHASE5_PRODUCTION_ENGINE_OPEN_CUH
#define PHASE5_PRODUCTION_ENGINE_OPEN_CUH

#include "common/nn/model.h"
#include "phase5_production/08_engine/engine.h"

/* Of a network of this course with its parameters, which may be on any device. The model stays with the caller, until
 * the engine is closed. -1 as engine_open(). */
int engine_open_model(Engine *e, const Model *model, const EngineOptions *options, Error *err);

/* What the engine computes for its largest size. */
const Model *engine_model(const Engine *e);

/* The network as it was imported, for the largest size; owned by the caller. NULL with a sentence. */
Graph *engine_imported(Engine *e, Error *err);

/* The file of ONNX that it was made of, with its metadata (common/onnx/onnx.h); NULL: it was made of a Model. In
 * engine_file.cu. */
const struct OnnxModel *engine_onnx_model(const Engine *e);

/* Seconds of node i of engine_model() alone, for one group of samples or the largest batch; NAN on an emulated GPU. */
double engine_node_seconds(const Engine *e, int i, int rounds);

/* Kernels that one inference of the largest batch launches; 0: not on a GPU. */
int engine_kernels(const Engine *e);

#endif /* PHASE5_PRODUCTION_ENGINE_OPEN_CUH */
