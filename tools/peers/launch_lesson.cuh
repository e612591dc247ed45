/* launch_lesson.cuh - the launchers of a lesson, called once, for those who count what their kernels do. */
#ifndef TOOLS_PEERS_LAUNCH_LESSON_CUH
#define TOOLS_PEERS_LAUNCH_LESSON_CUH

#include <initializer_list>

#include "common/check.h"
#include "common/lesson/arrays.h"

/* All launchers of a lesson, on its counted shape and on another. */
template <typename Launcher>
static inline void launch(const Lesson &lesson, std::initializer_list<Launcher *> launchers, LessonShape ragged) {
  for (const LessonShape &shape : {lesson.counted, ragged}) {
    LessonHost host;
    float *array[LESSON_ARRAYS] = {}; /* no workspace */
    lesson_host_open(&lesson, &shape, 99, &host);
    lesson_gpu_open(&lesson, &host, 0, array);
    for (Launcher *launcher : launchers) lesson.call((LessonLauncher)launcher, array, shape.size);
    CUDA_CHECK(cudaDeviceSynchronize());
    lesson_gpu_close(&lesson, 0, array);
    lesson_host_close(&lesson, &host);
  }
}

#endif /* TOOLS_PEERS_LAUNCH_LESSON_CUH */
