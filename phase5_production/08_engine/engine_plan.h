/* engine_plan.h - the file of a plan, .nnplan: a model, and what the engine has decided about it on one device.
 *
 *     offset  bytes
 *          0      8   "NNPLAN\r\n": a transfer that changes line ends destroys it
 *          8      4   version of the format; the first 64 bytes are the same in every version
 *         12      4   CRC-32 of the settings
 *         16      8   offset of the settings
 *         24      8   their size, at most 1 MiB
 *         32      8   offset of the model
 *         40      8   its size
 *         48      8   size of the file
 *         56      8   0
 *         64          the settings: lines "key=value", in any order, each key once
 *                     the model: a file of ONNX, with everything that it needs, at a multiple of 64
 *
 * Numbers are little-endian. The settings:
 *
 *     device=GPU NVIDIA H200, compute capability 9.0      precision=fp16
 *     max_batch=64        max_height=224        max_width=224        (0: not a picture)
 *     batch_invariant=0   cuda_graphs=1
 *     choices=recipe:layers,conv1:winograd
 *
 * A reader of another version finds the model, and makes the decisions again.
 */
#ifndef PHASE5_PRODUCTION_ENGINE_PLAN_H
#define PHASE5_PRODUCTION_ENGINE_PLAN_H

#include "common/atomic_file.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <zlib.h>

enum { ENGINE_PLAN_VERSION = 1, ENGINE_PLAN_HEADER = 64, ENGINE_PLAN_CHOICES = 16384 };
enum { ENGINE_PLAN_MOST_SETTINGS = 1 << 20, ENGINE_PLAN_MOST_SIZE = 1 << 20 /* of a batch, height or width */ };

#define ENGINE_PLAN_MAGIC "NNPLAN\r\n"

typedef struct EnginePlanFile {
  uint32_t version;
  char device[256], precision[16];
  int max_batch, max_height, max_width, batch_invariant, cuda_graphs;
  char choices[ENGINE_PLAN_CHOICES];
  const unsigned char *model;
  size_t model_size;
  void *map; /* the file, where it was opened */
  size_t map_size;
} EnginePlanFile;

static inline void engine_plan_close(EnginePlanFile *plan) {
  if (plan->map) munmap(plan->map, plan->map_size);
  memset(plan, 0, sizeof *plan);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static inline void engine_plan_put(unsigned char *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> 8 * i);
}

static inline int engine_plan_write(const EnginePlanFile *plan, const char *path, Error *err) {
  static const char zeros[64] = {0};
  unsigned char header[ENGINE_PLAN_HEADER] = {0};
  AtomicFile file;
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (memory == NULL) return error_set(err, "cannot write %s: no memory", path);
  fprintf(memory, "device=%s\nprecision=%s\nmax_batch=%d\nmax_height=%d\nmax_width=%d\n", plan->device, plan->precision,
          plan->max_batch, plan->max_height, plan->max_width);
  fprintf(memory, "batch_invariant=%d\ncuda_graphs=%d\nchoices=%s\n", plan->batch_invariant, plan->cuda_graphs,
          plan->choices);
  fclose(memory);
  const size_t model = (ENGINE_PLAN_HEADER + size + 63) / 64 * 64;
  memcpy(header, ENGINE_PLAN_MAGIC, 8);
  engine_plan_put(header + 8, ENGINE_PLAN_VERSION, 4);
  engine_plan_put(header + 12, crc32(0, (const Bytef *)text, (uInt)size), 4);
  engine_plan_put(header + 16, ENGINE_PLAN_HEADER, 8);
  engine_plan_put(header + 24, size, 8);
  engine_plan_put(header + 32, model, 8);
  engine_plan_put(header + 40, plan->model_size, 8);
  engine_plan_put(header + 48, model + plan->model_size, 8);
  if (atomic_file_open(&file, path, err) != 0) {
    free(text);
    return -1;
  }
  fwrite(header, 1, sizeof header, file.stream);
  fwrite(text, 1, size, file.stream);
  fwrite(zeros, 1, model - ENGINE_PLAN_HEADER - size, file.stream);
  fwrite(plan->model, 1, plan->model_size, file.stream);
  free(text);
  return atomic_file_commit(&file, err);
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static inline uint64_t engine_plan_get(const unsigned char *from, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | from[i];
  return value;
}

/* A whole number from least to most; -1 where it is none. */
static inline int engine_plan_number(const char *text, int least, int most, int *number) {
  char *end;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < least || value > most) return -1;
  *number = (int)value;
  return 0;
}

static inline int engine_plan_text(const char *value, char *to, size_t size) {
  if (strlen(value) >= size) return -1;
  memcpy(to, value, strlen(value) + 1);
  return 0;
}

enum { ENGINE_PLAN_KEYS = 8 };

/* Which key it is, from 0; -1: none that we know, or its value makes no sense. */
static inline int engine_plan_setting(EnginePlanFile *plan, const char *key, const char *value) {
  static const char *const keys[ENGINE_PLAN_KEYS] = {"device",    "precision",       "max_batch",   "max_height",
                                                     "max_width", "batch_invariant", "cuda_graphs", "choices"};
  const int most = ENGINE_PLAN_MOST_SIZE;
  for (int i = 0; i < ENGINE_PLAN_KEYS; i++) {
    if (strcmp(key, keys[i]) != 0) continue;
    const int bad = i == 0   ? engine_plan_text(value, plan->device, sizeof plan->device)
                    : i == 1 ? engine_plan_text(value, plan->precision, sizeof plan->precision)
                    : i == 2 ? engine_plan_number(value, 1, most, &plan->max_batch)
                    : i == 3 ? engine_plan_number(value, 0, most, &plan->max_height)
                    : i == 4 ? engine_plan_number(value, 0, most, &plan->max_width)
                    : i == 5 ? engine_plan_number(value, 0, 1, &plan->batch_invariant)
                    : i == 6 ? engine_plan_number(value, 0, 1, &plan->cuda_graphs)
                             : engine_plan_text(value, plan->choices, sizeof plan->choices);
    return bad ? -1 : i;
  }
  return -1;
}

/* `text` is changed. */
static inline int engine_plan_settings(EnginePlanFile *plan, const char *path, char *text, Error *err) {
  unsigned seen = 0;
  for (char *line = text; *line;) {
    char *end = strchr(line, '\n'), *equals = strchr(line, '=');
    if (end == NULL || equals == NULL || equals > end)
      return error_set(err, "%s: its settings are damaged at \"%.40s\"; key=value was expected", path, line);
    *end = *equals = '\0';
    const int key = engine_plan_setting(plan, line, equals + 1);
    if (key < 0 || (seen >> key & 1))
      return error_set(err, "%s: its setting %.40s=%.80s %s", path, line, equals + 1,
                       key < 0 ? "is unknown, or its value makes no sense" : "is there twice");
    seen |= 1u << key;
    line = end + 1;
  }
  if (seen == (1u << ENGINE_PLAN_KEYS) - 1) return 0;
  return error_set(err, "%s: settings are missing; %d were expected: make the plan again with engine build", path,
                   ENGINE_PLAN_KEYS);
}

/* Whether the bytes begin as a plan does. */
static inline int engine_plan_is(const void *bytes, size_t size) {
  return size >= 8 && memcmp(bytes, ENGINE_PLAN_MAGIC, 8) == 0;
}

/* The plan in `size` bytes, which must stay. Of another version only the model and `version` are read. -1 with a
 * sentence. */
static inline int engine_plan_parse(EnginePlanFile *plan, const char *path, const unsigned char *bytes, size_t size,
                                    Error *err) {
  memset(plan, 0, sizeof *plan);
  if (!engine_plan_is(bytes, size)) return error_set(err, "%s is not a plan: it does not begin with NNPLAN", path);
  if (size < ENGINE_PLAN_HEADER)
    return error_set(err, "%s is truncated: it has %zu bytes, its header %d", path, size, ENGINE_PLAN_HEADER);
  const uint64_t text = engine_plan_get(bytes + 16, 8), text_size = engine_plan_get(bytes + 24, 8);
  const uint64_t model = engine_plan_get(bytes + 32, 8), model_size = engine_plan_get(bytes + 40, 8);
  const uint64_t all = engine_plan_get(bytes + 48, 8);
  if (all != size)
    return error_set(err, "%s is truncated or damaged: it has %zu bytes, and its header says %llu", path, size,
                     (unsigned long long)all);
  if (text < ENGINE_PLAN_HEADER || text > size || text_size > size - text || text_size > ENGINE_PLAN_MOST_SETTINGS ||
      model < ENGINE_PLAN_HEADER || model > size || model_size > size - model || model_size == 0 ||
      (text < model + model_size && model < text + text_size))
    return error_set(err, "%s is damaged: its settings or its model lie outside of the file, or in each other's place",
                     path);
  plan->version = (uint32_t)engine_plan_get(bytes + 8, 4);
  plan->model = bytes + model;
  plan->model_size = (size_t)model_size;
  if (plan->version != ENGINE_PLAN_VERSION) return 0;
  if (crc32(0, bytes + text, (uInt)text_size) != (uint32_t)engine_plan_get(bytes + 12, 4))
    return error_set(err, "%s is damaged: the checksum of its settings is wrong; copy it again", path);
  char *copy = (char *)xmalloc((size_t)text_size + 1);
  memcpy(copy, bytes + text, (size_t)text_size);
  copy[text_size] = '\0';
  size_t good = 0; /* messages print texts of the file: they must not steer a terminal */
  while (good < text_size && (copy[good] == '\n' || ((unsigned char)copy[good] >= 32 && copy[good] != 127))) good++;
  const int status = good == text_size
                         ? engine_plan_settings(plan, path, copy, err)
                         : error_set(err, "%s is damaged: a control character (%d) in its settings", path, copy[good]);
  free(copy);
  return status;
}

/* Maps the file. After 0, end with engine_plan_close(). */
static inline int engine_plan_open(EnginePlanFile *plan, const char *path, Error *err) {
  struct stat info;
  memset(plan, 0, sizeof *plan);
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  void *map = MAP_FAILED;
  const int good = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  if (good) map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (map == MAP_FAILED) return error_set(err, "cannot read %s: a file that is not empty was expected", path);
  if (engine_plan_parse(plan, path, (const unsigned char *)map, (size_t)info.st_size, err) != 0) {
    munmap(map, (size_t)info.st_size);
    memset(plan, 0, sizeof *plan);
    return -1;
  }
  plan->map = map;
  plan->map_size = (size_t)info.st_size;
  return 0;
}

#endif /* PHASE5_PRODUCTION_ENGINE_PLAN_H */
