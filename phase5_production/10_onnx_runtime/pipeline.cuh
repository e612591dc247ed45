/* pipeline.cuh - pictures through a network, with every stage in threads of its own.
 *
 *     files -> [readers: decode, resize] -> window -> [batcher] -> queue -> [network] -> queue -> [writer] -> results
 *                    several threads      in order                                          |
 *                                                        <-------- empty batches ------------+
 *
 * All stages work at the same time, each on other pictures, and each hand-over has a limit (bounded_queue.h): memory
 * does not grow with the number of pictures, and the slowest stage is the only one that does not wait. Three batches
 * go round: one is filled, one is computed, one is written.
 *
 * The batcher takes pictures in the order of the list, whoever read them first; so a batch holds the same pictures,
 * and a result has the same bytes, with any number of threads, and with none (pipeline_run_sequential).
 *
 * A picture that cannot be read takes a place in its batch without pixels: the writer reports it in its turn. After
 * Ctrl-C no picture is begun, and those that are on their way come out.
 */
#ifndef PHASE5_PRODUCTION_PIPELINE_CUH
#define PHASE5_PRODUCTION_PIPELINE_CUH

#include "common/interrupt.h"
#include "common/progress.h"
#include "common/threads.h"
#include "phase5_production/10_onnx_runtime/bounded_queue.h"
#include "phase5_production/10_onnx_runtime/picture_input.cuh"
#include "phase5_production/10_onnx_runtime/picture_list.h"
#include "phase5_production/10_onnx_runtime/picture_output.cuh"
#include "phase5_production/10_onnx_runtime/picture_results.h"
#include "phase5_production/10_onnx_runtime/picture_runner.cuh"

enum { PIPELINE_BATCHES = 3, PIPELINE_READERS = 64, PIPELINE_BATCH_MOST = 1024 };

/* A picture in a batch. */
typedef struct BatchEntry {
  long item;         /* in the list */
  int at;            /* its place in x; -1: it could not be read */
  int width, height; /* of the file */
  Image colour;      /* where only its luma is in x; else pixels are NULL */
  Error error;
} BatchEntry;

/* What goes round. x, y, label, probability, bytes and strange lie on the runner's device. */
typedef struct Batch {
  BatchEntry *entry;
  int entries, pictures; /* pictures: entries with pixels */
  int height, width;     /* of x */
  int out_channels, out_height, out_width;
  float *x, *y, *probability;
  int *label, *strange;
  uint8_t *bytes;
  size_t x_room, y_room, bytes_room; /* elements */
} Batch;

/* Seconds that stages were at work. */
typedef struct StageTimes {
  double read, batch, infer, write;
} StageTimes;

typedef struct Pipeline {
  Runner *runner;
  PictureRecipe recipe;
  PictureList *list;
  PictureResults results;
  char output_dir[PATH_MAX];
  int batch_size, readers, top, probabilities; /* probabilities: the output is not logits; -1: not known yet */
  int window_size;
  PictureIn *place; /* (window_size) */
  OrderedWindow window;
  BoundedQueue empty, full, done;
  Batch batch[PIPELINE_BATCHES];
  PictureStaging staging;
  Progress progress;
  long written, failed;
  Error fatal; /* code ERROR_NONE: all is well. Set by the stage that computes, once */
  StageTimes times;
  pthread_mutex_t times_lock;
} Pipeline;

/* ---------------------------------------------------------------------------------------------------------------- */
/* Batches */

static inline void *batch_grow(Device device, void *memory, size_t *room, size_t count, size_t each) {
  if (count <= *room) return memory;
  if (memory) device_free(device, memory);
  *room = count;
  return device_alloc(device, count * each);
}

static inline void batch_open(Batch *b, const Pipeline *p) {
  const Device device = p->runner->device;
  const size_t size = (size_t)p->batch_size;
  memset(b, 0, sizeof *b);
  b->entry = (BatchEntry *)xcalloc(size, sizeof *b->entry);
  b->label = (int *)device_alloc(device, size * (size_t)p->top * sizeof *b->label);
  b->probability = (float *)device_alloc(device, size * (size_t)p->top * sizeof *b->probability);
  b->strange = (int *)device_alloc(device, size * sizeof *b->strange);
}

static inline void batch_reset(Batch *b) {
  for (int i = 0; i < b->entries; i++) image_free(&b->entry[i].colour);
  b->entries = b->pictures = 0;
}

static inline void batch_close(Batch *b, Device device) {
  batch_reset(b);
  void *arrays[] = {b->x, b->y, b->label, b->probability, b->strange, b->bytes};
  for (int i = 0; i < 6; i++)
    if (arrays[i]) device_free(device, arrays[i]);
  free(b->entry);
}

/* Whether a picture of this size may follow those that are in it. */
static inline int batch_takes(const Batch *b, const Pipeline *p, const PictureIn *in) {
  if (b->entries == p->batch_size) return 0;
  return in->failed || b->pictures == 0 ||
         (b->height == picture_x_height(&p->recipe, &in->image) && b->width == picture_x_width(&p->recipe, &in->image));
}

/* Puts the picture into the batch, and gives its memory back. */
static inline void batch_add(Batch *b, Pipeline *p, PictureIn *in, long item) {
  const double start = seconds_now();
  BatchEntry *e = &b->entry[b->entries++];
  e->item = item;
  e->width = in->width;
  e->height = in->height;
  e->error = in->error;
  e->colour = in->colour;
  in->colour.pixels = NULL; /* the entry has it now */
  e->at = in->failed ? -1 : b->pictures;
  if (!in->failed) {
    const Device device = p->runner->device;
    b->height = picture_x_height(&p->recipe, &in->image);
    b->width = picture_x_width(&p->recipe, &in->image);
    const size_t each = (size_t)p->recipe.channels * (size_t)b->height * (size_t)b->width;
    if (b->pictures == 0)
      b->x = (float *)batch_grow(device, b->x, &b->x_room, each * (size_t)p->batch_size, sizeof *b->x);
    float *x = b->x + each * (size_t)b->pictures++;
    if (in->x)
      device_upload(device, x, in->x, each * sizeof *x);
    else
      picture_prepare_gpu(x, in, &p->recipe, &p->staging);
  }
  picture_in_free(in);
  p->times.batch += seconds_now() - start;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Stages */

static inline void pipeline_wait_device(const Pipeline *p) {
  if (p->runner->device == DEVICE_GPU) CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
}

/* Decodes, and where the CPU prepares pictures does that, too. */
static inline void pipeline_read(Pipeline *p, long item, PictureIn *in) {
  const double start = seconds_now();
  if (picture_decode(in, p->list->picture[item].path, &p->recipe) == 0 && p->runner->device == DEVICE_CPU)
    picture_prepare_cpu(in, &p->recipe);
  pthread_mutex_lock(&p->times_lock);
  p->times.read += seconds_now() - start;
  pthread_mutex_unlock(&p->times_lock);
}

/* Rows of numbers from 0 to 1 with the sum 1 are not logits: 1, else 0. Rows that are not finite say nothing; -1: there
 * are no others. */
static inline int pipeline_are_probabilities(const float *y, int rows, int classes) {
  int found = -1;
  for (int i = 0; i < rows && found != 0; i++) {
    double sum = 0;
    int negative = 0;
    for (int c = 0; c < classes; c++) {
      sum += (double)y[(size_t)i * classes + c];
      negative |= y[(size_t)i * classes + c] < 0;
    }
    if (isfinite(sum)) found = !negative && fabs(sum - 1) < 1e-3;
  }
  return found;
}

static inline void pipeline_top(Pipeline *p, Batch *b) {
  const Device device = p->runner->device;
  const int n = b->pictures, classes = p->recipe.classes;
  if (p->probabilities < 0) { /* seen at the first answer that is finite */
    const size_t count = (size_t)n * (size_t)classes;
    float *y = (float *)xmalloc(count * sizeof *y);
    device_download(device, y, b->y, count * sizeof *y);
    p->probabilities = pipeline_are_probabilities(y, n, classes);
    free(y);
  }
  ON_DEVICE(device, top_k_gpu(b->label, b->probability, b->y, n, classes, p->top, p->probabilities),
            top_k_cpu(b->label, b->probability, b->y, n, classes, p->top, p->probabilities));
}

static inline void pipeline_pictures(Pipeline *p, Batch *b) {
  const Device device = p->runner->device;
  const size_t count = (size_t)b->pictures * (size_t)b->out_channels * (size_t)b->out_height * (size_t)b->out_width;
  b->bytes = (uint8_t *)batch_grow(device, b->bytes, &b->bytes_room, count, 1);
  ON_DEVICE(device,
            picture_bytes_gpu(b->bytes, b->strange, b->y, b->pictures, b->out_channels, b->out_height, b->out_width,
                              p->recipe.range),
            picture_bytes_cpu(b->bytes, b->strange, b->y, b->pictures, b->out_channels, b->out_height, b->out_width,
                              p->recipe.range));
}

/* A model with a fixed batch gets it: the places without pictures hold what was there before. */
static inline int pipeline_infer(Pipeline *p, Batch *b, Error *err) {
  const double start = seconds_now();
  int rank = 0;
  int64_t dim[ORT_RANK];
  if (b->pictures == 0) return 0;
  const int n = p->runner->batch ? p->runner->batch : b->pictures, pictures = p->recipe.task == RECIPE_PICTURES;
  if (p->runner->shape(p->runner, b->x, n, b->height, b->width, &rank, dim, err) != 0) return -1;
  size_t each = 1;
  for (int i = 1; i < rank; i++) each *= (size_t)dim[i];
  if (pictures && (rank != 4 || (dim[1] != 1 && dim[1] != 3 && dim[1] != 4)))
    return error_set(err, "the output for a picture of %d x %d has rank %d and %lld channels; 1, 3 or 4 were expected",
                     b->width, b->height, rank, (long long)(rank > 1 ? dim[1] : 0));
  if (!pictures) p->recipe.classes = (int)each;
  b->y = (float *)batch_grow(p->runner->device, b->y, &b->y_room, each * (size_t)p->batch_size, sizeof *b->y);
  pipeline_wait_device(p); /* a new array is zeroed in this thread's stream, and the network may run in another */
  if (p->runner->infer(p->runner, b->x, n, b->height, b->width, b->y, b->y_room, err) != 0) return -1;
  b->out_channels = pictures ? (int)dim[1] : 0;
  b->out_height = pictures ? (int)dim[2] : 0;
  b->out_width = pictures ? (int)dim[3] : 0;
  if (pictures)
    pipeline_pictures(p, b);
  else
    pipeline_top(p, b);
  pipeline_wait_device(p);
  p->times.infer += seconds_now() - start;
  return 0;
}

/* -1: not written; `err` says why. */
static inline int pipeline_write_picture(Pipeline *p, const Batch *b, const BatchEntry *e, const uint8_t *bytes,
                                         Error *err) {
  char path[2 * PATH_MAX], folder[2 * PATH_MAX], same[2][PATH_MAX];
  const ListedPicture *listed = &p->list->picture[e->item];
  if ((size_t)snprintf(path, sizeof path, "%s/%s", p->output_dir, listed->output) >= PATH_MAX)
    return error_set(err, "%s: the path of its result is too long", listed->name);
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  if (make_directories(folder, err) != 0) return -1;
  if (realpath(path, same[0]) && realpath(listed->path, same[1]) && strcmp(same[0], same[1]) == 0)
    return error_set(err, "%s would be overwritten by its result; choose another folder with --output-dir", path);
  if (e->colour.pixels && b->out_channels == 1) {
    Image joined = picture_join_luma(bytes, b->out_width, b->out_height, &e->colour);
    const int status = image_write_png(path, &joined, err);
    image_free(&joined);
    return status;
  }
  Image image = {b->out_width, b->out_height, b->out_channels, NULL};
  image.pixels = (unsigned char *)(uintptr_t)bytes; /* only read */
  return image_write_png(path, &image, err);
}

static inline void pipeline_report(Pipeline *p, const BatchEntry *e, const Error *why) {
  const ListedPicture *listed = &p->list->picture[e->item];
  p->failed++;
  progress_end(&p->progress);
  fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, why->message);
  results_error(&p->results, listed->name, why);
}

static inline void pipeline_write(Pipeline *p, Batch *b) {
  const double start = seconds_now();
  const Device device = p->runner->device;
  const int n = b->pictures, pictures = p->recipe.task == RECIPE_PICTURES, top = p->top;
  const size_t each = (size_t)b->out_channels * (size_t)b->out_height * (size_t)b->out_width;
  int *label = (int *)xmalloc((size_t)n * (size_t)(top + 1) * sizeof *label), *strange = label + (size_t)n * top;
  float *probability = (float *)xmalloc((size_t)n * (size_t)top * sizeof *probability);
  uint8_t *bytes = (uint8_t *)xmalloc((size_t)n * each);
  if (n > 0 && pictures) {
    device_download(device, bytes, b->bytes, (size_t)n * each);
    device_download(device, strange, b->strange, (size_t)n * sizeof *strange);
  } else if (n > 0) {
    device_download(device, label, b->label, (size_t)n * (size_t)top * sizeof *label);
    device_download(device, probability, b->probability, (size_t)n * (size_t)top * sizeof *probability);
  }
  for (int i = 0; i < b->entries; i++) {
    const BatchEntry *e = &b->entry[i];
    const char *name = p->list->picture[e->item].name;
    Error err = e->error;
    int status = e->at < 0 ? -1 : 0;
    if (status == 0 && (pictures ? strange[e->at] : label[(size_t)e->at * top] < 0))
      status = error_set(&err, "%s: the network's answer is not finite", name);
    if (status == 0 && pictures) status = pipeline_write_picture(p, b, e, bytes + (size_t)e->at * each, &err);
    if (status == 0 && !pictures)
      results_classes(&p->results, name, e->width, e->height, label + (size_t)e->at * top,
                      probability + (size_t)e->at * top, top);
    if (status != 0) pipeline_report(p, e, &err);
    p->written++;
    progress_update(&p->progress, p->written, "%ld failed", p->failed);
  }
  free(label);
  free(probability);
  free(bytes);
  p->times.write += seconds_now() - start;
}

#endif /* PHASE5_PRODUCTION_PIPELINE_CUH */
