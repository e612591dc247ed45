/* options.h - the command line of a lesson's program (main.h): what it understands, and which shapes are
 * too large for the versions, the memory or the reader's patience. */
#ifndef COMMON_LESSON_OPTIONS_H
#define COMMON_LESSON_OPTIONS_H

#include "common/device.h"
#include "common/lesson/arrays.h"
#include "common/lesson/time.h"
#include "common/options.h"

typedef struct LessonOptions {
  CommonOptions common;
  const Lesson *lesson;
  const char *only;                       /* NULL: all */
  LessonShape shape[LESSON_SHAPES];       /* instead of the lesson's */
  int shapes, alone, check_only, plotted; /* alone: not on the lesson's ragged shapes, too */
  char plot[PATH_MAX];                    /* "": in the output folder */
} LessonOptions;

enum { OPTION_ONLY = 1, OPTION_SHAPE, OPTION_ALONE, OPTION_CHECK_ONLY, OPTION_PLOT };

/* "4096x4096,8192x4096" */
static inline void lesson_parse_shapes(const struct argp_state *state, const char *arg, LessonOptions *options) {
  const char *at = arg;
  bool more;
  do {
    LessonShape shape;
    Error err;
    if (lesson_parse_shape(options->lesson, &at, &shape, &err) != 0)
      argp_error(state, "--shape=%s: %s", arg, err.message);
    more = *at == ',';
    at += more;
    if (options->shapes == LESSON_SHAPES) argp_error(state, "--shape: at most %d shapes", LESSON_SHAPES);
    options->shape[options->shapes++] = shape;
  } while (more); /* nothing after a comma is a shape that is missing */
}

/* What the help says of --shape. */
static inline const char *lesson_shape_help(const Lesson *lesson) {
  static char text[512];
  char known[LESSON_TEXT], letters[2 * LESSON_SIZES];
  if (lesson->parameters == 0) return "Instead of the lesson's shape; several with commas";
  snprintf(text, sizeof text,
           "Instead of the lesson's shape, %s; then, each after a colon, the parameters that are not %s: "
           "one number, or one for each axis, as in :%s=2x1; several shapes with commas",
           lesson_letters_text(lesson, letters), lesson_parameters_text(lesson, known), lesson->parameter[0].name);
  return text;
}

static inline error_t lesson_parse(int key, char *arg, struct argp_state *state) {
  LessonOptions *options = (LessonOptions *)state->input;
  switch (key) {
    case OPTION_ONLY:
      options->only = arg;
      return 0;
    case OPTION_SHAPE:
      lesson_parse_shapes(state, arg, options);
      return 0;
    case OPTION_ALONE:
      options->alone = 1;
      return 0;
    case OPTION_CHECK_ONLY:
      options->check_only = 1;
      return 0;
    case OPTION_PLOT: {
      Error err;
      options->plotted = 1;
      if (arg == NULL) return 0;
      const char *end = strrchr(arg, '.');
      if (end == NULL || (strcmp(end, ".svg") != 0 && strcmp(end, ".png") != 0))
        argp_error(state, "--plot=%s: a name that ends in .svg or .png is expected", arg);
      if (user_path(arg, options->plot, sizeof options->plot, &err) != 0) argp_error(state, "--plot: %s", err.message);
      return 0;
    }
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What is too large */

/* An emulated GPU that counts every access takes two minutes for either. */
#define LESSON_EMULATED_ELEMENTS 16777216.0
#define LESSON_EMULATED_FLOPS 1073741824.0

/* Bytes that the arrays may take: the GPU's memory, and the host's, which holds a copy of them. */
static inline double lesson_memory(Device device, int real) {
  const double host = device_memory(DEVICE_CPU);
  if (device == DEVICE_CPU) return host;
  return fmin(host, real ? device_memory(DEVICE_GPU) : LESSON_EMULATED_BYTES);
}

/* 0, or -1 and one sentence: the shape is more than the versions, the memory or the reader's patience can take. */
static inline int lesson_fits(const Lesson *lesson, const LessonOptions *options, const LessonShape *shape, int real,
                              Error *err) {
  const Device device = options->common.device;
  const double gib = 1073741824.0;
  char text[LESSON_TEXT], smaller[LESSON_TEXT];
  lesson_shape_text(lesson, shape, text);
  lesson_shape_text(lesson, &lesson->counted, smaller);
  for (int i = 0; i < lesson->sizes && device == DEVICE_GPU; i++)
    if (shape->size[i] > lesson->most.size[i])
      return error_set(err,
                       "%s is too large a shape: %d is more than %d, the most that all versions of this lesson take "
                       "there; try --shape=%s",
                       text, shape->size[i], lesson->most.size[i], smaller);

  double bytes = 0, largest = 0;
  for (int a = 0; a < lesson->arrays; a++) {
    double elements = 1; /* not a size_t, which could overflow */
    for (const char *letter = lesson->array[a].letters; *letter != '\0'; letter++)
      elements *= (double)lesson_extent(lesson, *letter, shape->size);
    bytes += (double)lesson_element_bytes(&lesson->array[a]) * elements;
    largest = fmax(largest, elements);
  }
  double needed = bytes, memory = lesson_memory(device, real);
  if (device == DEVICE_GPU && options->only == NULL) {
    needed = 2 * bytes; /* two runs are compared */
    if (real && !options->check_only) needed = fmax(needed, lesson_time_bytes(bytes));
  }
  if (needed > memory)
    return error_set(err,
                     "%s is too large a shape: it needs %.1f GiB of memory, and there are %.1f GiB; try --shape=%s",
                     text, needed / gib, memory / gib, smaller);

  if (device == DEVICE_CPU || real) return 0;
  const char *advice = "the counts follow the geometry, so a small shape tells as much; try --shape=";
  if (largest > LESSON_EMULATED_ELEMENTS)
    return error_set(err, "%s is too large a shape: on an emulated GPU %.0f elements take minutes (at most %.0f); %s%s",
                     text, largest, LESSON_EMULATED_ELEMENTS, advice, smaller);
  double flops = lesson_flops(lesson, shape->size);
  if (flops > LESSON_EMULATED_FLOPS)
    return error_set(err, "%s is too large a shape: on an emulated GPU %.3g FLOPs take minutes (at most %.3g); %s%s",
                     text, flops, LESSON_EMULATED_FLOPS, advice, smaller);
  return 0;
}

#endif /* COMMON_LESSON_OPTIONS_H */
