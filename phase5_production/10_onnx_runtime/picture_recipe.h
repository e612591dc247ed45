/* picture_recipe.h - what a model wants pictures to be, and what its answer is: from its inputs and outputs, from its
 * metadata, from the command line, in that order.
 *
 *     PictureRecipe recipe;
 *     if (recipe_open(&recipe, &input, &output, lookup, model, &wishes, &err) != 0) die("%s", err.message);
 *
 * A classifier has an output (N,classes), or (N,classes,1,1). A network that makes pictures has an output (N,C,H,W) with
 * 1, 3 or 4 channels. Metadata, as onnx_export of lesson 6 writes it:
 *
 *   classes         names, one in each line
 *   mean, stddev    of the channels, "0.485,0.456,0.406": x = (pixel / 255 - mean) / stddev
 *   resize, crop    the shorter side, "256"; what is kept of the middle, "224"
 *   range           of a picture that goes in or comes out: 1 or 255 is white
 *
 * What nobody says is usual: for a classifier torchvision's recipe for ImageNet where there are 3 channels, for pictures
 * range 1 and any size.
 */
#ifndef PHASE5_PRODUCTION_PICTURE_RECIPE_H
#define PHASE5_PRODUCTION_PICTURE_RECIPE_H

#include "phase5_production/10_onnx_runtime/ort_session.h"

enum { RECIPE_LARGEST = 8192 };

typedef enum RecipeTask { RECIPE_CLASSES, RECIPE_PICTURES } RecipeTask;

/* Of the command line; what was not given is -1, or NAN. */
typedef struct RecipeWishes {
  int resize, crop;
  double range;
  float mean[3], stddev[3];
} RecipeWishes;

typedef struct PictureRecipe {
  RecipeTask task;
  int batch;                 /* that the model demands; 0: any */
  int channels;              /* of the input: 1 or 3 */
  int height, width;         /* of the input; 0: that of each picture */
  int resize;                /* the shorter side, before the middle of height x width is kept */
  float mean[3], stddev[3];  /* of pixels in 0..1 */
  float range;               /* of the pictures that come out */
  int classes, out_channels; /* of the output; 0: it has none */
} PictureRecipe;

/* What a model's metadata says under a key: to be freed, or NULL. */
typedef char *RecipeLookup(void *model, const char *key);

static inline RecipeWishes recipe_no_wishes(void) {
  const RecipeWishes wishes = {-1, -1, NAN, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
  return wishes;
}

/* "0.5" for all channels, or "0.485,0.456,0.406". -1: anything else. */
static inline int recipe_numbers(const char *text, float number[3]) {
  float read[3] = {0, 0, 0};
  int count = 0;
  for (const char *at = text; count < 3; at++) {
    char *end;
    read[count] = strtof(at, &end);
    if (end == at || !isfinite(read[count])) return -1;
    count++;
    at = end;
    if (*at == '\0') break;
    if (*at != ',') return -1;
  }
  const char *last = strrchr(text, ',');
  if (count == 2 || (count == 3 && strchr(last + 1, ',') != NULL)) return -1;
  for (int c = 0; c < 3; c++) number[c] = read[count == 1 ? 0 : c];
  return 0;
}

static inline int recipe_metadata_numbers(RecipeLookup *lookup, void *model, const char *key, float number[3],
                                          Error *err) {
  char *text = lookup(model, key);
  if (text == NULL) return 0;
  const int status = recipe_numbers(text, number);
  if (status != 0)
    error_set(err, "the model's metadata says %s=%.60s; one number, or one for each of three channels, was expected",
              key, text);
  free(text);
  return status;
}

static inline int recipe_metadata_int(RecipeLookup *lookup, void *model, const char *key, int *number, Error *err) {
  char *text = lookup(model, key), *end;
  if (text == NULL) return 0;
  const long value = strtol(text, &end, 10);
  const int right = end != text && *end == '\0' && value >= 1 && value <= RECIPE_LARGEST;
  if (right)
    *number = (int)value;
  else
    error_set(err, "the model's metadata says %s=%.60s; a whole number from 1 to %d was expected", key, text,
              (int)RECIPE_LARGEST);
  free(text);
  return right ? 0 : -1;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline int recipe_input(PictureRecipe *r, const OrtPort *in, Error *err) {
  char text[256];
  ort_port_text(in, text, sizeof text);
  if (in->type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || in->rank != 4)
    return error_set(err, "the model's input is %s; pictures go into float (N,C,H,W)", text);
  if (in->dim[1] != 1 && in->dim[1] != 3)
    return error_set(err, "the model's input is %s; 1 or 3 channels in the second place were expected%s", text,
                     in->dim[3] == 3 ? "; this one has the channels last, as TensorFlow has them" : "");
  if (in->dim[2] > RECIPE_LARGEST || in->dim[3] > RECIPE_LARGEST || in->dim[0] > 65536)
    return error_set(err, "the model's input is %s, which is too large", text);
  r->batch = in->dim[0] > 0 ? (int)in->dim[0] : 0;
  r->channels = (int)in->dim[1];
  r->height = in->dim[2] > 0 ? (int)in->dim[2] : 0;
  r->width = in->dim[3] > 0 ? (int)in->dim[3] : 0;
  if ((r->height == 0) != (r->width == 0))
    return error_set(err, "the model's input is %s; height and width, or neither, were expected to be fixed", text);
  return 0;
}

static inline int recipe_output(PictureRecipe *r, const OrtPort *out, Error *err) {
  char text[256];
  const int one = out->rank == 4 && out->dim[2] == 1 && out->dim[3] == 1;
  ort_port_text(out, text, sizeof text);
  if (out->type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || (out->rank != 2 && out->rank != 4))
    return error_set(err, "the model's output is %s; classes float (N,C) or pictures float (N,C,H,W) were expected",
                     text);
  r->task = out->rank == 2 || one ? RECIPE_CLASSES : RECIPE_PICTURES;
  if (r->task == RECIPE_CLASSES)
    r->classes = (int)out->dim[1];
  else
    r->out_channels = (int)out->dim[1];
  if (r->task == RECIPE_PICTURES && out->dim[1] > 0 && out->dim[1] != 1 && out->dim[1] != 3 && out->dim[1] != 4)
    return error_set(err, "the model's output is %s; a picture has 1, 3 or 4 channels", text);
  return 0;
}

/* The sizes: as the model fixes them, else as is said, else usual. */
static inline int recipe_sizes(PictureRecipe *r, int crop, Error *err) {
  if (r->height > 0 && crop > 0 && (crop != r->height || crop != r->width))
    return error_set(err, "the model takes pictures of %d x %d pixels, and not of %d x %d; leave --crop away", r->width,
                     r->height, crop, crop);
  if (r->height == 0 && crop <= 0 && r->task == RECIPE_CLASSES) crop = r->channels == 3 ? 224 : 28;
  if (r->height == 0 && crop > 0) r->height = r->width = crop;
  if (r->height != r->width && r->channels == 3)
    return error_set(err, "the model takes pictures of %d x %d pixels; a square was expected", r->width, r->height);
  if (r->resize <= 0) /* 256 for 224 */
    r->resize = r->task == RECIPE_CLASSES ? (r->height * 256 + 112) / 224 : r->height;
  if (r->height > 0 && r->resize < r->height)
    return error_set(err, "a picture of %d pixels on its shorter side cannot be cropped to %d; give a larger --resize",
                     r->resize, r->height);
  return 0;
}

static inline int recipe_open(PictureRecipe *r, const OrtPort *in, const OrtPort *out, RecipeLookup *lookup,
                              void *model, const RecipeWishes *wishes, Error *err) {
  static const float mean[] = {0.485f, 0.456f, 0.406f}, stddev[] = {0.229f, 0.224f, 0.225f};
  float range[3] = {1, 1, 1};
  int crop = 0;
  memset(r, 0, sizeof *r);
  if (recipe_input(r, in, err) != 0 || recipe_output(r, out, err) != 0) return -1;
  if (recipe_metadata_numbers(lookup, model, "range", range, err) != 0 ||
      recipe_metadata_int(lookup, model, "resize", &r->resize, err) != 0 ||
      recipe_metadata_int(lookup, model, "crop", &crop, err) != 0)
    return -1;
  r->range = isfinite(wishes->range) ? (float)wishes->range : range[0];
  for (int c = 0; c < 3; c++) {
    const int imagenet = r->task == RECIPE_CLASSES && r->channels == 3;
    r->mean[c] = imagenet ? mean[c] : 0;
    r->stddev[c] = imagenet ? stddev[c] : 1;
  }
  if (recipe_metadata_numbers(lookup, model, "mean", r->mean, err) != 0 ||
      recipe_metadata_numbers(lookup, model, "stddev", r->stddev, err) != 0)
    return -1;
  for (int c = 0; c < 3; c++) {
    if (isfinite(wishes->mean[c])) r->mean[c] = wishes->mean[c];
    if (isfinite(wishes->stddev[c])) r->stddev[c] = wishes->stddev[c];
    if (r->task == RECIPE_PICTURES) r->stddev[c] /= r->range;
    if (!(r->stddev[c] > 0))
      return error_set(err, "a standard deviation of %g; a number above 0 was expected", (double)r->stddev[c]);
  }
  if (!(r->range > 0)) return error_set(err, "a range of %g; a number above 0 was expected", (double)r->range);
  if (wishes->resize > 0) r->resize = wishes->resize;
  return recipe_sizes(r, wishes->crop > 0 ? wishes->crop : r->height > 0 ? 0 : crop, err);
}

#endif /* PHASE5_PRODUCTION_PICTURE_RECIPE_H */
