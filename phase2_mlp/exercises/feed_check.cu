/* Checks the exercises of feed.cuh (learn/check.h). */
#include "phase2_mlp/feed_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(feed_lesson())
