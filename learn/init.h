/* init.h - `learn init DIR`: a new tree, or an old one brought up to date with the student's lines kept. */
#ifndef LEARN_INIT_H
#define LEARN_INIT_H

#include "learn/tree.h"

static const char init_script[] =
    "#!/bin/sh\n"
    "# The course's command: ./nn next, ./nn check, ./nn hint, ./nn watch ...\n"
    "LEARN_TREE=$(cd \"$(dirname \"$0\")\" && pwd) || exit 1\n"
    "export LEARN_TREE\n"
    "exec \"$LEARN_TREE/.learn/bin/learn\" \"$@\"\n";

static inline int init_commands(const char *root, Error *err) {
  const char *script = keep_printf("%s/nn", root);
  if (copy_file("/proc/self/exe", keep_printf("%s/.learn/bin/learn", root), err) != 0) return -1;
  if (chmod(keep_printf("%s/.learn/bin/learn", root), 0755) != 0)
    return error_set(err, "%s: %s", root, strerror(errno));
  if (text_write_quick(script, init_script, strlen(init_script), err) != 0) return -1;
  return chmod(script, 0755) == 0 ? 0 : error_set(err, "%s: %s", script, strerror(errno));
}

/* -1 when the folder is no place for a tree. */
static inline int init_look(const Source *source, const char *root, bool update, Error *err) {
  char place[PATH_MAX], course[PATH_MAX];
  struct stat info;
  const char *parent = root;
  while (realpath(parent, place) == NULL) { /* the first folder above that is there */
    char *shorter = keep(parent), *slash = strrchr(shorter, '/');
    if (slash == NULL) {
      parent = ".";
      continue;
    }
    *slash = '\0';
    parent = shorter[0] == '\0' ? "/" : shorter;
  }
  if (realpath(source->root, course) != NULL &&
      (strcmp(place, course) == 0 || starts_with(place, keep_printf("%s/", course))))
    return error_set(err,
                     "%s lies in the course's repository, whose commands would take it for a part of it; choose a "
                     "folder outside",
                     root);
  bool tree = access(keep_printf("%s/.learn/tree.json", root), F_OK) == 0;
  if (tree && !update)
    return error_set(err,
                     "%s is a student's tree already; `init --update %s` brings it up to date with this version of "
                     "the course, and keeps your lines and your progress",
                     root, root);
  if (!tree && update) return error_set(err, "%s is no student's tree that could be updated; leave out --update", root);
  if (tree || stat(root, &info) != 0) return 0;
  if (!S_ISDIR(info.st_mode)) return error_set(err, "%s is a file; choose another name for the folder", root);
  DIR *dir = opendir(root);
  int entries = 0;
  bool begun = access(keep_printf("%s/.learn", root), F_OK) == 0; /* an init that was interrupted */
  while (dir != NULL && readdir(dir) != NULL) entries++;
  if (dir != NULL) closedir(dir);
  if (entries > 2 && !begun)
    return error_set(err, "%s is not empty; choose a new folder, so that nothing of yours is overwritten", root);
  return 0;
}

/* The student's lines, put into the new version of their file. */
static inline int update_paste(const Tree *old, const Tree *new, const Exercise *exercise, const char *lines,
                               Error *err) {
  const char *text, *backup;
  Region region;
  Exercises *had = (Exercises *)&old->exercises;
  const Exercise *before = exercises_named(had, exercise->name);
  if (before != NULL && strcmp(before->stub, lines) == 0) return 0; /* untouched: the new stub is better */
  if (tree_region(new, exercise, &text, &region, err) != 0) return -1;
  if (strcmp(region_lines(text, &region), lines) == 0) return 0;
  return tree_put_lines(new, exercise, lines, &backup, err);
}

/* Moves what differs into the tree, and what it replaces into a backup. */
static inline int update_install(const char *fresh, const char *root, const char *backup, Error *err) {
  Source files;
  memset(&files, 0, sizeof files);
  files.root = fresh;
  files.file = (const char **)xcalloc(SOURCE_FILES_MAX, sizeof *files.file);
  source_walk(&files, "");
  int status = 0;
  for (int i = 0; i < files.files && status == 0; i++) {
    const char *from = keep_printf("%s/%s", fresh, files.file[i]), *to = keep_printf("%s/%s", root, files.file[i]);
    const char *saved = keep_printf("%s/%s", backup, files.file[i]);
    Text new_text = {0}, old_text = {0};
    bool had = text_read_file(&old_text, to, NULL) == 0;
    bool same = had && text_read_file(&new_text, from, NULL) == 0 && new_text.length == old_text.length &&
                memcmp(new_text.bytes, old_text.bytes, old_text.length) == 0;
    text_free(&new_text);
    text_free(&old_text);
    if (same) continue;
    if (had && !starts_with(files.file[i], ".learn/") && copy_file(to, saved, err) != 0) status = -1;
    if (status == 0 && make_parent(to, err) != 0) status = -1;
    if (status == 0 && rename(from, to) != 0) status = error_set(err, "cannot write %s: %s", to, strerror(errno));
  }
  free(files.file);
  return status;
}

static inline int remove_folder(const char *folder) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    const char *path = keep_printf("%s/%s", folder, entry->d_name);
    if (unlink(path) != 0 && errno != ENOENT) remove_folder(path);
  }
  if (dir != NULL) closedir(dir);
  return rmdir(folder);
}

/* A tree of another version: its progress and its stubs, as far as they can be read. */
static inline void update_read_old(const Source *source, const char *root, Tree *old) {
  memset(old, 0, sizeof *old);
  old->root = keep(root);
  old->exercises = source->exercises;
  for (int i = 0; i < old->exercises.count; i++) old->exercises.item[i].stub = "";
  json_t *object = json_read(keep_printf("%s/.learn/exercises.json", root), NULL), *item;
  size_t n;
  json_array_foreach(json_object_get(object, "exercises"), n, item) {
    Exercise *exercise = exercises_named(&old->exercises, json_text(item, "name"));
    if (exercise != NULL) exercise->stub = json_text(item, "stub");
  }
  json_decref(object);
  object = json_read(keep_printf("%s/.learn/progress.json", root), NULL);
  if (object != NULL) tree_read_progress(old, object);
  json_decref(object);
}

static inline int init_update(Source *source, const char *root, const char **backup, Error *err) {
  static Tree old, fresh;
  const char *folder = keep_printf("%s/.learn/new", root);
  *backup = keep_printf(".learn/backup/update-%s", time_text("%Y%m%d-%H%M%S"));
  update_read_old(source, root, &old);
  remove_folder(folder);
  if (make_directories(folder, err) != 0 || cut_tree(source, folder, err) != 0) return -1;
  fresh = old;
  fresh.root = folder;
  fresh.exercises = source->exercises;
  for (int i = 0; i < source->exercises.count; i++) {
    const char *lines = tree_lines(&old, &source->exercises.item[i]);
    if (lines != NULL && update_paste(&old, &fresh, &source->exercises.item[i], lines, err) != 0) return -1;
  }
  remove_folder(keep_printf("%s/.learn/backup", folder));
  if (tree_save(&fresh, err) != 0 || update_install(folder, root, keep_printf("%s/%s", root, *backup), err) != 0)
    return -1;
  remove_folder(folder);
  return 0;
}

/* Makes or updates the tree. `backup` is where an update put what it replaced. */
static inline int init_tree(Source *source, const char *root, bool update, const char **backup, Error *err) {
  static Tree tree;
  *backup = "";
  if (init_look(source, root, update, err) != 0) return -1;
  if (make_directories(root, err) != 0) {
    char *hint = strstr(err->message, "; choose another with --output-dir");
    if (hint != NULL) snprintf(hint, sizeof err->message - (size_t)(hint - err->message), "; choose another folder");
    return -1;
  }
  if (update) {
    if (init_update(source, root, backup, err) != 0) return -1;
  } else {
    if (make_directories(keep_printf("%s/.learn", root), err) != 0 || cut_tree(source, root, err) != 0) return -1;
    tree.root = root;
    tree.exercises = source->exercises;
    if (tree_save(&tree, err) != 0) return -1;
  }
  if (init_commands(root, err) != 0) return -1;
  return cut_finish(source, root, err);
}

#endif /* LEARN_INIT_H */
