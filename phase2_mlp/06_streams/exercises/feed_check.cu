/* Checks the exercises of input_pipeline.cuh (learn/check.h). */
#include "phase2_mlp/06_streams/input_pipeline_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(feed_lesson())
