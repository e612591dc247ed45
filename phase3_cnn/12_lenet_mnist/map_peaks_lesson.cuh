/* map_peaks_lesson.cuh - arrays, shapes and reference of map_peaks.cuh: for the program, its test and the exercises.
 * The results are elements of x and places, so the tolerance is zero. */
#ifndef PHASE3_CNN_MAP_PEAKS_LESSON_CUH
#define PHASE3_CNN_MAP_PEAKS_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/12_lenet_mnist/map_peaks.cuh"

/* value (maps), place (maps), x (maps,area) */
typedef void MapPeaksLauncher(float *value, int *place, const float *x, int maps, int area);

static inline void map_peaks_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MapPeaksLauncher *)launch)(array[0], (int *)array[1], array[2], size[0], size[1]);
}

/* What a warp finds where its lanes do not work together as they should: a check tells a student which it was. */
typedef enum MapPeaksSlip {
  MAP_PEAKS_LAST,   /* of a lane's equal values the last counts */
  MAP_PEAKS_32,     /* a lane looks at one value */
  MAP_PEAKS_LANE_0, /* the lanes do not meet */
  MAP_PEAKS_16,     /* only lanes 0 to 15 meet */
  MAP_PEAKS_EQUALS  /* where lanes with equal values meet, either place is kept */
} MapPeaksSlip;

template <MapPeaksSlip slip>
static void map_peaks_slip_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  const float *x = array[2];
  for (int m = 0; m < size[0]; m++, x += size[1]) {
    float found[32];
    int where[32];
    for (int l = 0; l < 32; l++) {
      found[l] = -INFINITY;
      where[l] = size[1];
      for (int k = l; k < size[1] && (slip != MAP_PEAKS_32 || k == l); k += 32) {
        const bool takes = slip == MAP_PEAKS_LAST ? x[k] >= found[l] : x[k] > found[l];
        found[l] = takes ? x[k] : found[l];
        where[l] = takes ? k : where[l];
      }
    }
    for (int half = slip == MAP_PEAKS_LANE_0 ? 0 : slip == MAP_PEAKS_16 ? 8 : 16; half > 0; half /= 2)
      for (int l = 0; l < half; l++) {
        const bool equal = found[l + half] == found[l], earlier = where[l + half] < where[l];
        if (!(found[l + half] > found[l] || (slip != MAP_PEAKS_EQUALS && equal && earlier))) continue;
        found[l] = found[l + half];
        where[l] = where[l + half];
      }
    array[0][m] = found[0];
    ((int *)array[1])[m] = where[0];
  }
}

static inline LessonVersion map_peaks_version(const char *name, MapPeaksLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson map_peaks_lesson(void) {
  Lesson lesson = lesson_make("map_peaks", "ma", map_peaks_call, (LessonLauncher)map_peaks_cpu);
  lesson_output(&lesson, "value", "m");
  lesson_output(&lesson, "place", "m");
  lesson_element(&lesson, "place", LESSON_INT);
  lesson_input(&lesson, "x", "ma");
  lesson_range(&lesson, "x", -2, -1);
  lesson_extreme(&lesson, "x", 1); /* a few: small maps are below zero, large ones have several equal largest values */
  lesson_alternative(&lesson, "of equal values the last place counted", map_peaks_slip_call<MAP_PEAKS_LAST>);
  lesson_alternative(&lesson, "the maps had 32 values: each lane looks at one", map_peaks_slip_call<MAP_PEAKS_32>);
  lesson_alternative(&lesson, "only the values of lane 0 counted", map_peaks_slip_call<MAP_PEAKS_LANE_0>);
  lesson_alternative(&lesson, "only the values of lanes 0 to 15 counted", map_peaks_slip_call<MAP_PEAKS_16>);
  lesson_alternative(&lesson, "of equal values of two lanes either place counted",
                     map_peaks_slip_call<MAP_PEAKS_EQUALS>);
  lesson.most = lesson_shape(&lesson, INT_MAX / 32 - MAP_PEAKS_BLOCK, INT_MAX - 4 * 32);
  lesson.timed = lesson_shape(&lesson, 60000, 784); /* conv1 of LeNet-5, 10,000 images of 6 maps */
  lesson.counted = lesson_shape(&lesson, 64, 784);
  /* the first has equal values in one lane, 61 * 32 places apart; less than a warp, one, more; primes; more maps than a
   * block has warps or threads */
  const int shapes[][2] = {{13, 4100}, {7, 300}, {1, 1},   {3, 31},  {5, 32},   {33, 33},
                           {4, 64},    {31, 25}, {127, 9}, {2, 257}, {1, 1021}, {131, 196}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  return lesson;
}

#endif /* PHASE3_CNN_MAP_PEAKS_LESSON_CUH */
