/* engine_open.cuh - an engine of any source (engine_source.cuh): for engine_open(), tests, and programs that have a
 * Model. In engine_lib.cu. */
#ifndef PHASE5_PRODUCTION_ENGINE_OPEN_CUH
#define PHASE5_PRODUCTION_ENGINE_OPEN_CUH

#include "common/nn/model.h"
#include "phase5_production/08_engine/engine.h"

/* Of a network of this course with its parameters, which may be on any device. The model stays with the caller, until the
 * engine is closed. -1 as engine_open(). */
int engine_open_model(Engine *e, const Model *model, const EngineOptions *options, Error *err);

/* What the engine computes for its largest size: for tests and for what engine show prints. */
const Model *engine_model(const Engine *e);

#endif /* PHASE5_PRODUCTION_ENGINE_OPEN_CUH */
