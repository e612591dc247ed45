/* engine_picture.cuh - a picture as the input of a model, prepared as the model's metadata says
 * (common/onnx/metadata.h): resized, the middle kept, each channel normalised. By the kernels' twins of lesson 3. */
#ifndef PHASE5_PRODUCTION_ENGINE_PICTURE_CUH
#define PHASE5_PRODUCTION_ENGINE_PICTURE_CUH

#include "common/image.h"
#include "common/onnx/metadata.h"
#include "phase5_production/03_resnet18/preprocess.cuh"
#include "phase5_production/08_engine/engine_open.cuh"

enum { ENGINE_PICTURE_NARROWEST = 64 }; /* sides of a picture may differ by this factor */

/* What the model says; where it says nothing and takes (N,3,H,W), torchvision's recipe for ImageNet. -1 with a
 * sentence. */
static inline int engine_picture_recipe(const Engine *e, OnnxPreprocessing *recipe, Error *err) {
  const EngineValue x = engine_input(e, 0);
  const EngineOptions o = engine_get_options(e);
  const OnnxModel *model = engine_onnx_model(e);
  const int said = model ? onnx_get_preprocessing(model, recipe, err) : 0;
  if (said < 0) return -1;
  if (x.rank != 4 || (x.dim[1] != 1 && x.dim[1] != 3))
    return error_set(err,
                     "the model's input %s has %d dimensions; for pictures (N,3,H,W) or (N,1,H,W) is expected: give a "
                     "tensor (.pb), or --random",
                     x.name, x.rank);
  if (said == 1 && recipe->channels != x.dim[1])
    return error_set(err, "the model's metadata asks for %d channels, and its input %s has %lld", recipe->channels,
                     x.name, (long long)x.dim[1]);
  if (said == 1) return 0;
  const OnnxPreprocessing usual = {(int)x.dim[1], o.max_height, o.max_width, 0, {0}, {1, 1, 1, 1}};
  *recipe = usual;
  if (usual.channels == 3) {
    recipe->resize = o.max_height * preprocess_imagenet.resize / preprocess_imagenet.crop;
    memcpy(recipe->mean, preprocess_imagenet.mean, sizeof preprocess_imagenet.mean);
    memcpy(recipe->stddev, preprocess_imagenet.stddev, sizeof preprocess_imagenet.stddev);
  }
  return 0;
}

static inline PreprocessPlan engine_picture_plan(const Image *image, const OnnxPreprocessing *r) {
  PreprocessPlan plan;
  const int shorter = image->width < image->height ? image->width : image->height;
  const int resize = r->resize;
  const int w = resize > 0 ? (int)((long long)resize * image->width / shorter) : r->width;
  const int h = resize > 0 ? (int)((long long)resize * image->height / shorter) : r->height;
  plan.x = preprocess_axis(image->width, w < r->width ? r->width : w, r->width);
  plan.y = preprocess_axis(image->height, h < r->height ? r->height : h, r->height);
  for (int c = 0; c < 3; c++) {
    plan.mean[c] = r->channels == 3 ? r->mean[c] : 0;
    plan.stddev[c] = r->channels == 3 ? r->stddev[c] : 1;
  }
  return plan;
}

/* x (channels, height, width) of the file. Gray is what ITU-R BT.601 makes of red, green and blue. */
static inline int engine_read_picture(float *x, const char *path, const OnnxPreprocessing *r, Image *size, Error *err) {
  Image image;
  if (image_read_rgb(path, &image, err) != 0) return -1;
  *size = image;
  const int longer = image.width > image.height ? image.width : image.height;
  const int shorter = image.width > image.height ? image.height : image.width;
  if (longer > ENGINE_PICTURE_NARROWEST * shorter) {
    image_free(&image);
    return error_set(err, "%s is %d x %d pixels; one side may be up to %d times as long as the other", path,
                     size->width, size->height, ENGINE_PICTURE_NARROWEST);
  }
  const PreprocessPlan plan = engine_picture_plan(&image, r);
  const size_t pixels = (size_t)r->height * (size_t)r->width;
  float *rgb = (float *)xmalloc(3 * pixels * sizeof *rgb);
  void *workspace = xmalloc(preprocess_workspace_bytes(plan) + 64);
  preprocess_cpu(rgb, image.pixels, workspace, plan);
  for (size_t i = 0; i < pixels && r->channels == 1; i++) {
    const float gray = 0.299f * rgb[i] + 0.587f * rgb[pixels + i] + 0.114f * rgb[2 * pixels + i];
    x[i] = (gray - r->mean[0]) / r->stddev[0];
  }
  if (r->channels == 3) memcpy(x, rgb, 3 * pixels * sizeof *x);
  free(rgb);
  free(workspace);
  image_free(&image);
  return 0;
}

#endif /* PHASE5_PRODUCTION_ENGINE_PICTURE_CUH */
