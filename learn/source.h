/* source.h - the course as its authors have it: its files, and the exercises in them. */
#ifndef LEARN_SOURCE_H
#define LEARN_SOURCE_H

#include "learn/exercise.h"

#include <dirent.h>

enum { SOURCE_FILES_MAX = 20000 };

typedef struct Source {
  const char *root;
  const char **file; /* relative to the root, sorted */
  int files;
  Exercises exercises;
  const char *hides[EXERCISES_MAX]; /* files with lines that a student does not see (solution_leaks.h) */
  int hiding;
} Source;

static inline void source_add(Source *source, const char *path) {
  if (source->files == SOURCE_FILES_MAX)
    die("%s: more than %d files: is this the course?", source->root, SOURCE_FILES_MAX);
  source->file[source->files++] = keep(path);
}

static inline int source_compare(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every file below, where git is not asked: in Bazel's runfiles, or in an archive that was unpacked. */
static inline void source_walk(Source *source, const char *folder) {
  static const char *const skipped[] = {"dist", "runs", "__pycache__"};
  DIR *dir = opendir(folder[0] == '\0' ? source->root : keep_printf("%s/%s", source->root, folder));
  struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    const char *name = entry->d_name;
    bool skip = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || starts_with(name, "bazel-");
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++) skip = skip || strcmp(name, skipped[i]) == 0;
    if (skip) continue;
    struct stat info;
    const char *path = folder[0] == '\0' ? keep(name) : keep_printf("%s/%s", folder, name);
    if (stat(keep_printf("%s/%s", source->root, path), &info) != 0) continue;
    if (S_ISDIR(info.st_mode) && name[0] != '.') source_walk(source, path);
    if (S_ISREG(info.st_mode)) source_add(source, path);
  }
  if (dir != NULL) closedir(dir);
}

/* The files that git knows, and an author's new ones; false where git cannot tell. */
static inline bool source_ask_git(Source *source) {
  if (access(keep_printf("%s/.git", source->root), F_OK) != 0) return false;
  for (const char *c = source->root; *c != '\0'; c++)
    if (*c == '\'') return false;
  const char *list = keep_printf("git -c safe.directory='*' -C '%s' ls-files -z 2>/dev/null", source->root);
  FILE *git =
      popen(keep_printf("%s && %s --others --exclude-standard -- '*/exercises/*' '*.cuh' '*.cu'", list, list), "r");
  if (git == NULL) return false;
  char *path = NULL;
  size_t capacity = 0;
  while (getdelim(&path, &capacity, '\0', git) > 0) {
    struct stat info;
    if (stat(keep_printf("%s/%s", source->root, path), &info) == 0 && S_ISREG(info.st_mode)) source_add(source, path);
  }
  free(path);
  return pclose(git) == 0 && source->files > 0;
}

static inline bool source_is_code(const char *path) {
  return !starts_with(path, "learn/") &&
         (ends_with(path, ".cuh") || ends_with(path, ".cu") || ends_with(path, ".h") || ends_with(path, ".c"));
}

/* Where region `name` stands: its file, that file's text and the region. -1: nowhere. */
typedef struct FoundRegion {
  const char *file, *text;
  Region region;
} FoundRegion;

/* All regions of the source, as a list of those found; at most EXERCISES_MAX. */
static inline int source_regions(Source *source, FoundRegion *found, Error *err) {
  static Regions regions; /* too large for some stacks */
  int count = 0;
  source->hiding = 0;
  for (int i = 0; i < source->files; i++) {
    if (!source_is_code(source->file[i])) continue;
    Text text = {0};
    if (text_read_file(&text, keep_printf("%s/%s", source->root, source->file[i]), err) != 0) return -1;
    if (strstr(text.bytes, hidden_open) != NULL && source->hiding < EXERCISES_MAX)
      source->hides[source->hiding++] = source->file[i];
    if (strstr(text.bytes, region_open) == NULL && strstr(text.bytes, region_close) == NULL) {
      text_free(&text);
      continue;
    }
    const char *bytes = keep_text(&text);
    regions_find(bytes, strlen(bytes), &regions);
    if (regions.problem != NULL) return error_set(err, "%s: %s", source->file[i], regions.problem);
    for (int r = 0; r < regions.count; r++) {
      if (regions.item[r].problem != NULL)
        return error_set(err, "%s: exercise %s: %s", source->file[i], regions.item[r].name, regions.item[r].problem);
      if (count == EXERCISES_MAX) return error_set(err, "more than %d exercises", EXERCISES_MAX);
      for (int j = 0; j < count; j++)
        if (strcmp(found[j].region.name, regions.item[r].name) == 0)
          return error_set(err, "exercise %s is in %s and in %s", found[j].region.name, found[j].file, source->file[i]);
      found[count].file = source->file[i];
      found[count].text = bytes;
      found[count++].region = regions.item[r];
    }
  }
  return count;
}

/* The exercises of COURSE in course.bzl, in its order: all texts in quotes that no colon follows. */
static inline int source_order(const char *text, const char *const **names, Error *err) {
  static const char *list[EXERCISES_MAX];
  static const char begin[] = "COURSE = {";
  int count = 0;
  const char *at = strstr(text, begin);
  if (at == NULL) return error_set(err, "course.bzl: it has no \"%s\"", begin);
  for (at += strlen(begin); *at != '\0' && *at != '}';) {
    if (*at == '#') at += strcspn(at, "\n"); /* a comment */
    if (*at != '"') {
      at += *at != '\0';
      continue;
    }
    const char *name = at + 1;
    const size_t length = strcspn(name, "\"\n");
    if (name[length] != '"')
      return error_set(err, "course.bzl: the line \"%.*s has no second quote", (int)length, name);
    at = name + length + 1;
    if (at[strspn(at, " \t")] == ':') continue; /* a lesson */
    if (count == EXERCISES_MAX) return error_set(err, "course.bzl: more than %d exercises", EXERCISES_MAX);
    list[count++] = keep_bytes(name, length);
  }
  if (*at == '\0') return error_set(err, "course.bzl: COURSE does not end with }");
  *names = list;
  return count;
}

/* Sorts the exercises as course.bzl lists them. */
static inline int source_sort(Source *source, Error *err) {
  static Exercise sorted[EXERCISES_MAX];
  const char *const *names;
  Text text = {0};
  if (text_read_file(&text, keep_printf("%s/course.bzl", source->root), err) != 0) return -1;
  int count = source_order(text.bytes, &names, err);
  text_free(&text);
  if (count < 0) return -1;
  for (int i = 0; i < count; i++) {
    const Exercise *exercise = exercises_named(&source->exercises, names[i]);
    if (exercise == NULL)
      return error_set(err, "course.bzl: exercise %s has no file exercises/%s.txt", names[i], names[i]);
    for (int j = 0; j < i; j++)
      if (strcmp(names[i], names[j]) == 0) return error_set(err, "course.bzl: exercise %s is listed twice", names[i]);
    sorted[i] = *exercise;
  }
  for (int i = 0; i < source->exercises.count; i++) {
    int at = 0;
    while (at < count && strcmp(names[at], source->exercises.item[i].name) != 0) at++;
    if (at == count)
      return error_set(err, "%s: exercise %s is missing in course.bzl", source->exercises.item[i].origin,
                       source->exercises.item[i].name);
  }
  memcpy(source->exercises.item, sorted, (size_t)count * sizeof *sorted);
  return 0;
}

/* Lists the files at `root` and reads the exercises. */
static inline int source_open(Source *source, const char *root, Error *err) {
  static FoundRegion found[EXERCISES_MAX];
  memset(source, 0, sizeof *source);
  source->root = keep(root);
  if (access(keep_printf("%s/WORKSPACE", root), F_OK) != 0 || access(keep_printf("%s/simt/simtcc", root), F_OK) != 0)
    return error_set(err, "%s is not the course's repository: it has no WORKSPACE, or no simt/simtcc", root);
  source->file = (const char **)xcalloc(SOURCE_FILES_MAX, sizeof *source->file);
  if (!source_ask_git(source)) {
    source->files = 0;
    source_walk(source, "");
  }
  qsort(source->file, (size_t)source->files, sizeof *source->file, source_compare);
  int regions = source_regions(source, found, err);
  if (regions < 0) return -1;
  for (int i = 0; i < source->files; i++) {
    const char *name = exercise_name_of(source->file[i]);
    if (name == NULL) continue;
    int r = 0;
    while (r < regions && strcmp(found[r].region.name, name) != 0) r++;
    if (r == regions)
      return error_set(err, "%s: no source has \"%s %s: what to do\"", source->file[i], region_open, name);
    if (source->exercises.count == EXERCISES_MAX) return error_set(err, "more than %d exercises", EXERCISES_MAX);
    Text text = {0};
    if (text_read_file(&text, keep_printf("%s/%s", root, source->file[i]), err) != 0) return -1;
    Exercise *exercise = &source->exercises.item[source->exercises.count++];
    int status =
        exercise_read(exercise, source->file[i], text.bytes, found[r].file, found[r].text, &found[r].region, err);
    text_free(&text);
    if (status != 0) return -1;
  }
  return source_sort(source, err);
}

#endif /* LEARN_SOURCE_H */
