/* picture_list.h - the pictures that are named on a command line: files, and all that folders hold.
 *
 * Of a folder, and of the folders in it, every .png, .jpg and .jpeg file, in the order of their names; other files are
 * counted. A file that is named itself is taken whatever it is called. Each picture has a name for results: as it was
 * typed, or for one out of a folder what follows the folder.
 */
#ifndef PHASE5_PRODUCTION_PICTURE_LIST_H
#define PHASE5_PRODUCTION_PICTURE_LIST_H

#include "common/error.h"

#include <dirent.h>
#include <limits.h>

#include "common/runfiles.h"

enum { PICTURE_LIST_DEPTH = 32 };

typedef struct ListedPicture {
  char *path, *name;
  int in_folder; /* found in a folder */
  char *output;  /* name of the picture that is made of it: cat.png */
} ListedPicture;

typedef struct PictureList {
  ListedPicture *picture;
  long count, room, others; /* others: files in folders whose names are not those of pictures */
} PictureList;

static inline void picture_list_free(PictureList *list) {
  for (long i = 0; i < list->count; i++) {
    free(list->picture[i].path);
    free(list->picture[i].name);
    free(list->picture[i].output);
  }
  free(list->picture);
  memset(list, 0, sizeof *list);
}

static inline void picture_list_add(PictureList *list, const char *path, const char *name, int in_folder) {
  if (list->count == list->room) {
    list->room = list->room ? 2 * list->room : 64;
    list->picture = (ListedPicture *)realloc(list->picture, (size_t)list->room * sizeof *list->picture);
    if (list->picture == NULL) die("out of memory: a list of %ld pictures", list->room);
  }
  const ListedPicture picture = {strdup(path), strdup(name), in_folder, NULL};
  list->picture[list->count++] = picture;
}

/* The length of "cat" in "cat.jpg"; of all, where it does not end as a picture. */
static inline size_t picture_stem(const char *name) {
  static const char *const ends[] = {".png", ".jpg", ".jpeg"};
  const size_t length = strlen(name);
  for (int i = 0; i < 3; i++)
    if (length > strlen(ends[i]) && strcasecmp(name + length - strlen(ends[i]), ends[i]) == 0)
      return length - strlen(ends[i]);
  return length;
}

static inline int picture_entry_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* A folder, and those that it is in. */
typedef struct FolderChain {
  const struct FolderChain *outer;
  dev_t device;
  ino_t number;
} FolderChain;

static inline int picture_folder_is_in(const FolderChain *chain, const struct stat *info) {
  for (; chain; chain = chain->outer)
    if (chain->device == info->st_dev && chain->number == info->st_ino) return 1;
  return 0;
}

/* `skip`: of a path, the characters before its name. A link to a folder that this one is in is passed over. */
static inline int picture_list_folder(PictureList *list, const char *folder, size_t skip, const FolderChain *outer,
                                      int depth, Error *err) {
  struct dirent **entries = NULL;
  struct stat info;
  int status = 0;
  if (depth > PICTURE_LIST_DEPTH)
    return error_set(err, "%s: folders are nested more than %d deep", folder, (int)PICTURE_LIST_DEPTH);
  if (stat(folder, &info) != 0) return error_set(err, "cannot read the folder %s: %s", folder, strerror(errno));
  if (picture_folder_is_in(outer, &info)) return 0;
  const FolderChain chain = {outer, info.st_dev, info.st_ino};
  const int count = scandir(folder, &entries, picture_entry_visible, alphasort);
  if (count < 0) return error_set(err, "cannot read the folder %s: %s", folder, strerror(errno));
  for (int i = 0; i < count; i++) {
    char path[PATH_MAX];
    const int fits = (size_t)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < sizeof path;
    if (!fits || status != 0 || stat(path, &info) != 0)
      list->others += status == 0;
    else if (S_ISDIR(info.st_mode))
      status = picture_list_folder(list, path, skip, &chain, depth + 1, err);
    else if (path[picture_stem(path)] != '\0')
      picture_list_add(list, path, path + skip, 1);
    else
      list->others++;
    free(entries[i]);
  }
  free(entries);
  return status;
}

/* A file or a folder, as the user typed it. */
static inline int picture_list_typed(PictureList *list, const char *typed, Error *err) {
  char path[PATH_MAX];
  struct stat info;
  if (user_path(typed, path, sizeof path, err) != 0) return -1;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    while (strlen(path) > 1 && path[strlen(path) - 1] == '/') path[strlen(path) - 1] = '\0';
    return picture_list_folder(list, path, strlen(path) + 1, NULL, 0, err);
  }
  picture_list_add(list, path, typed, 0); /* one that is not there is named when it is read */
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Names of results */

static inline int picture_by_output(const void *a, const void *b) {
  return strcmp((*(const ListedPicture *const *)a)->output, (*(const ListedPicture *const *)b)->output);
}

/* cat.png of cat.jpg, or where that is taken cat.jpg.png; in the same folders below the one that was named. */
static inline char *picture_output_name(const ListedPicture *p, int whole) {
  const char *slash = p->in_folder ? NULL : strrchr(p->name, '/'), *name = slash ? slash + 1 : p->name;
  const size_t length = whole ? strlen(name) : picture_stem(name);
  char *output = (char *)xmalloc(length + sizeof ".png");
  sprintf(output, "%.*s.png", (int)length, name);
  return output;
}

/* Gives every picture the name of its result. -1: two would have the same. */
static inline int picture_list_outputs(PictureList *list, Error *err) {
  ListedPicture **sorted = (ListedPicture **)xcalloc((size_t)list->count, sizeof *sorted);
  for (long i = 0; i < list->count; i++) {
    sorted[i] = &list->picture[i];
    sorted[i]->output = picture_output_name(sorted[i], 0);
  }
  qsort(sorted, (size_t)list->count, sizeof *sorted, picture_by_output);
  for (long i = 0, end; i < list->count; i = end) {
    for (end = i + 1; end < list->count && strcmp(sorted[end]->output, sorted[i]->output) == 0;) end++;
    for (long j = i; j < end && end > i + 1; j++) {
      free(sorted[j]->output);
      sorted[j]->output = picture_output_name(sorted[j], 1);
    }
  }
  qsort(sorted, (size_t)list->count, sizeof *sorted, picture_by_output);
  int status = 0;
  for (long i = 1; i < list->count && status == 0; i++)
    if (strcmp(sorted[i]->output, sorted[i - 1]->output) == 0)
      status = error_set(err, "%.300s and %.300s would both become %.200s; name a folder that holds both",
                         sorted[i - 1]->path, sorted[i]->path, sorted[i]->output);
  free(sorted);
  return status;
}

#endif /* PHASE5_PRODUCTION_PICTURE_LIST_H */
