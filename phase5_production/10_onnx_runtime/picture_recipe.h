/* picture_recipe.h - what a model wants pictures to be, and what its answer is: from its inputs and outputs, from its
 * metadata, from the command line.
 *
 *     PictureRecipe recipe;
 *     if (recipe_open(&recipe, &input, &output, &model, &wishes, &err) != 0) die("%s", err.message);
 *
 * A classifier has an output (N,classes), or (N,classes,1,1). A network that makes pictures has an output (N,C,H,W)
 * with 1, 3 or 4 channels. The metadata is what onnx_export of lesson 6 writes (common/onnx/metadata.h), and for
 * networks that make pictures `range`: 1 or 255 is white, in what goes in and in what comes out.
 *
 * What nobody says is usual: for a classifier torchvision's recipe for ImageNet where there are 3 channels, for
 * pictures range 1 and any size.
 */
#ifndef PHASE5_PRODUCTION_PICTURE_RECIPE_H
#define PHASE5_PRODUCTION_PICTURE_RECIPE_H

#include "common/onnx/metadata.h"
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
  int largest;               /* height and width of pictures that keep their own size */
  int classes, out_channels; /* of the output; 0: it has none */
} PictureRecipe;

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

/* What the metadata says of pictures goes before what is usual. *crop: the side that it wants, 0 where it says
 * nothing. */
static inline int recipe_metadata(PictureRecipe *r, const OnnxModel *model, int *crop, Error *err) {
  OnnxPreprocessing p;
  float range[3];
  const char *text = onnx_metadata(model, "range");
  const int found = onnx_get_preprocessing(model, &p, err);
  if (found < 0) return -1;
  if (text && (recipe_numbers(text, range) != 0 || !(range[0] > 0)))
    return error_set(err, "%s: its metadata range is \"%.60s\"; a number above 0 was expected", model->path, text);
  if (text) r->range = range[0];
  if (found == 0) return 0;
  if (p.channels != r->channels || (r->height > 0 && (p.height != r->height || p.width != r->width)))
    return error_set(err, "%s: its metadata speaks of %d channels and %d x %d pixels, its input of %d and %d x %d",
                     model->path, p.channels, p.width, p.height, r->channels, r->width, r->height);
  memcpy(r->mean, p.mean, sizeof r->mean);
  memcpy(r->stddev, p.stddev, sizeof r->stddev);
  r->resize = p.resize;
  if (r->height == 0 && p.height == p.width) *crop = p.height;
  return 0;
}

/* The sizes: as the model fixes them, else as is said, else usual. resize -1: nobody said. */
static inline int recipe_sizes(PictureRecipe *r, int wished, int crop, Error *err) {
  if (r->height > 0 && wished > 0 && (wished != r->height || wished != r->width))
    return error_set(err, "the model takes pictures of %d x %d pixels, and not of %d x %d; leave --crop away", r->width,
                     r->height, wished, wished);
  if (wished > 0) crop = wished;
  if (crop == 0 && r->task == RECIPE_CLASSES) crop = r->channels == 3 ? 224 : 28;
  if (r->height == 0 && crop > 0) r->height = r->width = crop;
  if (r->resize < 0) /* 256 for 224; for pictures, and where the middle is not a square, all is kept */
    r->resize =
        r->task == RECIPE_CLASSES && r->channels == 3 && r->height == r->width ? (r->height * 256 + 112) / 224 : 0;
  if (r->resize > 0 && (r->height == 0 || r->channels == 1))
    return error_set(err,
                     r->height == 0 ? "pictures of any size are not resized to %d; give --crop, or --resize=0"
                                    : "pictures of one channel are scaled to fit, and not resized to %d and "
                                      "cropped; give --resize=0",
                     r->resize);
  if (r->resize > 0 && (r->resize < r->height || r->resize < r->width))
    return error_set(err,
                     "a picture of %d pixels on its shorter side cannot be cropped to %d x %d; give a larger --resize",
                     r->resize, r->width, r->height);
  return 0;
}

static inline int recipe_open(PictureRecipe *r, const OrtPort *in, const OrtPort *out, const OnnxModel *model,
                              const RecipeWishes *wishes, Error *err) {
  static const float mean[] = {0.485f, 0.456f, 0.406f}, stddev[] = {0.229f, 0.224f, 0.225f};
  int crop = 0;
  memset(r, 0, sizeof *r);
  if (recipe_input(r, in, err) != 0 || recipe_output(r, out, err) != 0) return -1;
  r->range = 1;
  r->largest = RECIPE_LARGEST;
  r->resize = -1;
  for (int c = 0; c < 3; c++) {
    const int imagenet = r->task == RECIPE_CLASSES && r->channels == 3;
    r->mean[c] = imagenet ? mean[c] : 0;
    r->stddev[c] = imagenet ? stddev[c] : 1;
  }
  if (recipe_metadata(r, model, &crop, err) != 0) return -1;
  if (isfinite(wishes->range)) r->range = (float)wishes->range;
  if (wishes->resize >= 0) r->resize = wishes->resize;
  for (int c = 0; c < 3; c++) {
    if (isfinite(wishes->mean[c])) r->mean[c] = wishes->mean[c];
    if (isfinite(wishes->stddev[c])) r->stddev[c] = wishes->stddev[c];
    if (r->task == RECIPE_PICTURES) r->stddev[c] /= r->range;
    if (!(r->stddev[c] > 0) && c < r->channels)
      return error_set(err, "a standard deviation of %g; a number above 0 was expected", (double)r->stddev[c]);
  }
  return recipe_sizes(r, wishes->crop, crop, err);
}

#endif /* PHASE5_PRODUCTION_PICTURE_RECIPE_H */
