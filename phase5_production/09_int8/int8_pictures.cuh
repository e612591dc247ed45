/* int8_pictures.cuh - the pictures that a network is calibrated and judged with: a data set of common/nn, or a
 * folder of picture files as ImageNet's networks see them, or random ones where there is neither. */
#ifndef PHASE5_PRODUCTION_INT8_PICTURES_CUH
#define PHASE5_PRODUCTION_INT8_PICTURES_CUH

#include <dirent.h>

#include "common/image.h"
#include "common/nn/device_set.h"
#include "phase5_production/03_resnet18/preprocess.cuh"

typedef struct Pictures {
  int count;
  Shape shape;
  /* of a data set */
  DataSet set; /* without samples where the pictures are files or random */
  DataNorm norm;
  /* of a folder */
  char (*file)[PATH_MAX];
  PreprocessRecipe recipe;
  uint64_t seed; /* of random ones */
} Pictures;

static inline int pictures_have_labels(const Pictures *p) { return p->set.labels != NULL; }

static inline void pictures_close(Pictures *p) {
  data_free(&p->set);
  free(p->file);
  memset(p, 0, sizeof *p);
}

/* At most `most` pictures of a split; 0: all. directory "": where the set is looked for by itself. */
static inline int pictures_open_set(Pictures *p, const DataSource *source, const char *directory, DataSplit split,
                                    DataNorm norm, int most, Error *err) {
  memset(p, 0, sizeof *p);
  if (data_load(source, directory, split, &p->set, err) != 0) return -1;
  p->norm = norm;
  p->shape = p->set.shape;
  p->count = most > 0 && most < p->set.count ? most : p->set.count;
  return 0;
}

static inline int pictures_is_name(const char *name) {
  static const char *const endings[] = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm"};
  const size_t length = strlen(name);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (length > strlen(endings[i]) && strcasecmp(name + length - strlen(endings[i]), endings[i]) == 0) return 1;
  return 0;
}

static inline int pictures_compare(const void *a, const void *b) { return strcmp((const char *)a, (const char *)b); }

/* The picture files of a folder, by their names. */
static inline int pictures_open_folder(Pictures *p, const char *folder, Shape shape, PreprocessRecipe recipe, int most,
                                       Error *err) {
  memset(p, 0, sizeof *p);
  if (shape.dim[1] != shape.dim[2])
    return error_set(err, "%s: the network reads %s, and pictures of a folder are cropped to squares", folder,
                     shape_text(shape).text);
  DIR *directory = opendir(folder);
  if (directory == NULL) return error_set(err, "cannot open the folder %s: %s", folder, strerror(errno));
  int room = 0, found = 0;
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (!pictures_is_name(entry->d_name)) continue;
    if (found == room) {
      room = room ? 2 * room : 64;
      p->file = (char(*)[PATH_MAX])realloc(p->file, (size_t)room * sizeof *p->file);
      if (p->file == NULL) die("no memory for the names of %d pictures", room);
    }
    if ((size_t)snprintf(p->file[found], PATH_MAX, "%s/%s", folder, entry->d_name) < PATH_MAX) found++;
  }
  closedir(directory);
  if (found == 0) {
    free(p->file);
    return error_set(err, "%s has no pictures; put files that end in .jpg, .jpeg, .png, .bmp, .ppm or .pgm there",
                     folder);
  }
  qsort(p->file, (size_t)found, sizeof *p->file, pictures_compare);
  p->shape = shape;
  p->count = most > 0 && most < found ? most : found;
  p->recipe = recipe;
  return 0;
}

static inline void pictures_open_random(Pictures *p, Shape shape, int count, uint64_t seed) {
  memset(p, 0, sizeof *p);
  p->shape = shape;
  p->count = count;
  p->seed = seed;
}

static inline int pictures_read_file(const Pictures *p, int i, float *x, Error *err) {
  Image image;
  if (image_read_rgb(p->file[i], &image, err) != 0) return -1;
  const PreprocessPlan plan = preprocess_plan(image.width, image.height, p->recipe);
  void *workspace = xmalloc(preprocess_workspace_bytes(plan));
  preprocess_cpu(x, image.pixels, workspace, plan);
  free(workspace);
  image_free(&image);
  return 0;
}

/* Pictures `first` to `first + count` - 1 as the network's input x (count,C,H,W), on the host. */
static inline int pictures_read(const Pictures *p, int first, int count, float *x, Error *err) {
  const size_t each = shape_count(p->shape), plane = shape_pixels(p->set.samples != NULL ? p->set.shape : p->shape);
  for (int i = 0; i < count; i++) {
    float *to = x + (size_t)i * each;
    if (p->file != NULL) {
      if (pictures_read_file(p, first + i, to, err) != 0) return -1;
      continue;
    }
    const uint8_t *sample = p->set.samples != NULL ? p->set.samples + (size_t)(first + i) * each : NULL;
    for (size_t j = 0; j < each; j++)
      to[j] = sample != NULL ? device_set_normalize(sample[j], p->norm.mean[j / plane], p->norm.stddev[j / plane])
                             : 3.4641016f * philox_uniform(philox4x32(p->seed, (uint32_t)(first + i), j).word[0]) -
                                   1.7320508f; /* mean 0, variance 1 */
  }
  return 0;
}

#endif /* PHASE5_PRODUCTION_INT8_PICTURES_CUH */
