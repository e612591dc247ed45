/* points.h - points in the plane, each of class 0 or 1: what the first networks are trained on.
 *
 *   points_separable   two clouds with a straight lane between them
 *   points_xor         four clouds, one in each quadrant; class 1 where exactly one coordinate is positive
 */
#ifndef PHASE2_MLP_POINTS_H
#define PHASE2_MLP_POINTS_H

#include <math.h>

#include "common/error.h"
#include "common/philox.h"

typedef struct Points {
  int count;
  float *x; /* (count,2) */
  float *t; /* (count) */
} Points;

enum { POINTS_STREAM = 1 }; /* of the random numbers */

static inline Points points_new(int count) {
  Points points = {count, (float *)xmalloc((size_t)count * 2 * sizeof(float)),
                   (float *)xmalloc((size_t)count * sizeof(float))};
  return points;
}

static inline void points_free(Points *points) {
  free(points->x);
  free(points->t);
  memset(points, 0, sizeof *points);
}

/* Normal around (0.5, 0.5), cut in halves by a line through it whose direction is random; each half is moved away from
 * the line by `gap`. The classes alternate, so that two points are enough for both. Not inlined: the compiler could
 * round x * nx + y * ny differently in each place. */
static inline __attribute__((noinline)) Points points_separable(int count, float gap, uint64_t seed) {
  Points points = points_new(count);
  const float pi = 3.14159265f, centre = 0.5f;
  float angle = 2 * pi * philox_uniform(philox4x32(seed, POINTS_STREAM, 0).word[0]);
  float nx = cosf(angle), ny = sinf(angle); /* at a right angle to the line, towards class 1 */
  for (int i = 0; i < count; i++) {
    PhiloxBlock random = philox4x32(seed, POINTS_STREAM, (uint64_t)i + 1);
    float radius = sqrtf(-2 * logf(1 - philox_uniform(random.word[0]))); /* Box and Muller's; never log(0) */
    float turn = 2 * pi * philox_uniform(random.word[1]), side = i % 2 == 0 ? -1 : 1;
    float x = radius * cosf(turn), y = radius * sinf(turn), distance = x * nx + y * ny;
    float move = side * (fabsf(distance) + gap) - distance; /* mirrored if need be, then away from the line */
    points.x[2 * i] = centre + x + move * nx;
    points.x[2 * i + 1] = centre + y + move * ny;
    points.t[i] = side > 0;
  }
  return points;
}

/* Uniform in squares of half-width `spread` < 1 around (1,1), (-1,1), (-1,-1) and (1,-1). Each four consecutive points
 * are mirror images of each other, so that the gradient of a neuron with weights of zero is zero to the last bit. */
static inline Points points_xor(int count, float spread, uint64_t seed) {
  Points points = points_new(count);
  for (int i = 0; i < count; i++) {
    PhiloxBlock random = philox4x32(seed, POINTS_STREAM, (uint64_t)i / 4);
    int left = i % 4 == 1 || i % 4 == 2, below = i % 4 >= 2;
    float x = 1 + spread * (2 * philox_uniform(random.word[0]) - 1);
    float y = 1 + spread * (2 * philox_uniform(random.word[1]) - 1);
    points.x[2 * i] = left ? -x : x;
    points.x[2 * i + 1] = below ? -y : y;
    points.t[i] = left != below;
  }
  return points;
}

/* Half the side of the square around (0,0) that shows them all. */
static inline float points_reach(const Points *points) {
  float reach = 0;
  for (int i = 0; i < 2 * points->count; i++) reach = fmaxf(reach, fabsf(points->x[i]));
  return 1.1f * reach;
}

#endif /* PHASE2_MLP_POINTS_H */
