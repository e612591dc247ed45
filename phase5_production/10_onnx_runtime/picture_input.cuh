/* picture_input.cuh - a file becomes a network's input, in two steps that different threads do.
 *
 *   picture_decode     reads the file: bytes (H,W,C). By the threads that read, several at once.
 *   picture_prepare    bytes -> x (C,height,width), resized, cropped and normalised as the recipe says: on the CPU by
 *                      the threads that read, on a GPU where the batch is put together
 *
 * Three channels of a fixed size go through preprocess.cuh, as torchvision does it. A picture that keeps its own size
 * is only normalised (picture_planes). One of one channel is scaled to the fixed size while it is decoded.
 */
#ifndef PHASE5_PRODUCTION_PICTURE_INPUT_CUH
#define PHASE5_PRODUCTION_PICTURE_INPUT_CUH

#include "common/image.h"

#include "common/device.h"
#include "phase5_production/03_resnet18/preprocess.cuh"
#include "phase5_production/10_onnx_runtime/picture_luma.h"
#include "phase5_production/10_onnx_runtime/picture_recipe.h"

enum { PICTURE_NARROWEST = 64 }; /* sides of a picture that is cropped may differ by this factor */

/* One picture on its way. */
typedef struct PictureIn {
  Image image;       /* decoded; pixels NULL: not any more, or not at all */
  Image colour;      /* of a picture that goes through the network as its luma; else pixels are NULL */
  float *x;          /* of the host, where the CPU prepares it; NULL: not yet */
  int width, height; /* of the file */
  int failed;
  Error error;
} PictureIn;

/* For resizing on the device: grows as pictures do. */
typedef struct PictureStaging {
  uint8_t *pixels;
  void *work;
  size_t pixels_room, work_room;
} PictureStaging;

static inline void picture_in_free(PictureIn *p) {
  image_free(&p->image);
  image_free(&p->colour);
  free(p->x);
  memset(p, 0, sizeof *p);
}

/* Height and width of what goes into the network. */
static inline int picture_x_height(const PictureRecipe *r, const Image *image) {
  return r->height ? r->height : image->height;
}
static inline int picture_x_width(const PictureRecipe *r, const Image *image) {
  return r->width ? r->width : image->width;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Without resizing: bytes (plane,C) -> x (C,plane), each (byte / 255 - mean) / stddev of its channel */

typedef struct PictureScale {
  float mean[3], stddev[3];
} PictureScale;

static inline PictureScale picture_scale(const PictureRecipe *r) {
  PictureScale scale;
  memcpy(scale.mean, r->mean, sizeof scale.mean);
  memcpy(scale.stddev, r->stddev, sizeof scale.stddev);
  return scale;
}

static inline void picture_planes_cpu(float *x, const uint8_t *bytes, int channels, int plane, PictureScale scale) {
  for (int c = 0; c < channels; c++)
    for (int p = 0; p < plane; p++)
      x[(size_t)c * plane + p] = batch_normalize(bytes[(size_t)p * channels + c], scale.mean[c], scale.stddev[c]);
}

/* One thread per number of x: neighbours read every C-th byte. */
static __global__ void picture_planes_kernel(float *x, const uint8_t *bytes, int channels, int plane,
                                             PictureScale scale) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= channels * plane) return;
  const int c = i / plane, p = i % plane;
  x[i] = batch_normalize(bytes[(size_t)p * channels + c], scale.mean[c], scale.stddev[c]);
}

static inline void picture_planes_gpu(float *x, const uint8_t *bytes, int channels, int plane, PictureScale scale) {
  const int count = channels * plane, block = PREPROCESS_BLOCK;
  picture_planes_kernel<<<(count + block - 1) / block, block>>>(x, bytes, channels, plane, scale);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* Grey pictures of a fixed size are scaled now: there is no crop. */
static inline void picture_scale_gray(Image *image, int width, int height) {
  Image scaled = image_new(width, height, 1);
  image_scale_gray(image, 0, 0, image->width, image->height, scaled.pixels, width, height);
  image_free(image);
  *image = scaled;
}

/* Whether a colour picture goes through as its luma (picture_luma.h): one channel in, a picture out. */
static inline int picture_is_luma(const PictureRecipe *r) {
  return r->task == RECIPE_PICTURES && r->channels == 1 && r->height == 0 &&
         (r->out_channels == 1 || r->out_channels < 0);
}

/* -1: the file is not a picture that can be used; p->failed and p->error say so, too. */
static inline int picture_decode(PictureIn *p, const char *path, const PictureRecipe *r) {
  memset(p, 0, sizeof *p);
  p->failed = image_read(path, picture_is_luma(r) ? 3 : r->channels, &p->image, &p->error) != 0;
  p->width = p->image.width;
  p->height = p->image.height;
  const int longer = p->width > p->height ? p->width : p->height, shorter = p->width + p->height - longer;
  if (!p->failed && r->height > 0 && r->channels == 3 && longer > PICTURE_NARROWEST * shorter)
    p->failed = error_set(&p->error, "%s is %d x %d pixels; one side may be up to %d times as long as the other", path,
                          p->width, p->height, (int)PICTURE_NARROWEST) != 0;
  if (!p->failed && r->height == 0 && longer > r->largest)
    p->failed = error_set(&p->error, "%s is %d x %d pixels; up to %d are possible here, scale the image down", path,
                          p->width, p->height, r->largest) != 0;
  if (!p->failed && picture_is_luma(r)) {
    p->colour = p->image;
    p->image = picture_luma(&p->colour);
  }
  if (!p->failed && r->height > 0 && r->channels == 1) picture_scale_gray(&p->image, r->width, r->height);
  return p->failed ? -1 : 0;
}

static inline int picture_is_resized(const PictureRecipe *r) { return r->height > 0 && r->channels == 3; }

/* Resized and cropped; or, where resize is 0, scaled to fit. */
static inline PreprocessPlan picture_plan(const PictureRecipe *r, const Image *image) {
  PreprocessRecipe recipe;
  recipe.resize = r->resize ? r->resize : r->height;
  recipe.crop = r->height;
  memcpy(recipe.mean, r->mean, sizeof recipe.mean);
  memcpy(recipe.stddev, r->stddev, sizeof recipe.stddev);
  PreprocessPlan plan = preprocess_plan(image->width, image->height, recipe);
  if (r->resize == 0 || r->height != r->width) {
    plan.x = preprocess_axis(image->width, r->resize ? plan.x.out : r->width, r->width);
    plan.y = preprocess_axis(image->height, r->resize ? plan.y.out : r->height, r->height);
  }
  return plan;
}

/* x (C,height,width) of the host; the decoded bytes are given back. */
static inline void picture_prepare_cpu(PictureIn *p, const PictureRecipe *r) {
  const int height = picture_x_height(r, &p->image), width = picture_x_width(r, &p->image);
  p->x = (float *)xmalloc((size_t)r->channels * (size_t)height * (size_t)width * sizeof *p->x);
  if (picture_is_resized(r)) {
    const PreprocessPlan plan = picture_plan(r, &p->image);
    void *work = xmalloc(preprocess_workspace_bytes(plan));
    preprocess_cpu(p->x, p->image.pixels, work, plan);
    free(work);
  } else {
    picture_planes_cpu(p->x, p->image.pixels, r->channels, height * width, picture_scale(r));
  }
  free(p->image.pixels);
  p->image.pixels = NULL;
}

static inline void *picture_room(void *memory, size_t *room, size_t bytes) {
  if (bytes <= *room) return memory;
  if (memory) device_free(DEVICE_GPU, memory);
  *room = bytes + bytes / 2;
  return device_alloc(DEVICE_GPU, *room);
}

static inline void picture_staging_free(PictureStaging *s) {
  if (s->pixels) device_free(DEVICE_GPU, s->pixels);
  if (s->work) device_free(DEVICE_GPU, s->work);
  memset(s, 0, sizeof *s);
}

/* x (C,height,width) of the GPU. The copy of the next picture waits for this one's kernels: they share the staging. */
static inline void picture_prepare_gpu(float *x, const PictureIn *p, const PictureRecipe *r, PictureStaging *s) {
  const size_t bytes = (size_t)p->image.width * (size_t)p->image.height * (size_t)r->channels;
  s->pixels = (uint8_t *)picture_room(s->pixels, &s->pixels_room, bytes);
  device_upload(DEVICE_GPU, s->pixels, p->image.pixels, bytes);
  if (picture_is_resized(r)) {
    const PreprocessPlan plan = picture_plan(r, &p->image);
    s->work = picture_room(s->work, &s->work_room, preprocess_workspace_bytes(plan));
    preprocess_gpu(x, s->pixels, s->work, plan);
  } else {
    picture_planes_gpu(x, s->pixels, r->channels, p->image.width * p->image.height, picture_scale(r));
  }
}

#endif /* PHASE5_PRODUCTION_PICTURE_INPUT_CUH */
