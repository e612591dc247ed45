/* tree_lines.h - the student's lines in a tree: reading them, putting others in their place, keeping a copy.
 *
 *     const char *lines = tree_lines(&tree, exercise);
 *     if (tree_put_lines(&tree, exercise, exercise->stub, &backup, &err) != 0) die("%s", err.message);
 */
#ifndef LEARN_TREE_LINES_H
#define LEARN_TREE_LINES_H

#include "learn/tree.h"

/* The region of an exercise in the student's file: 0, or -1 and one sentence that says how to repair it. */
static inline int tree_region(const Tree *tree, const Exercise *exercise, const char **text, Region *region,
                              Error *err) {
  static Regions regions;
  Text bytes = {0};
  const char *path = tree_path(tree, exercise->file), *repair = keep_printf("`./nn reset %s`", exercise->name);
  *text = "";
  memset(region, 0, sizeof *region);
  const char *keeps = keep_printf("%s repairs the file, and keeps a copy of yours", repair);
  if (access(path, F_OK) != 0) {
    error_set(err, "%s is gone", path);
    return error_advise(err, "%s brings it back, with your lines as they were at your last check", repair);
  }
  if (text_read_file(&bytes, path, err) != 0) return -1;
  const char *refused = text_refused(bytes.bytes, bytes.length);
  *text = keep_text(&bytes);
  if (refused != NULL) {
    error_set(err, "%s: %s", exercise->file, refused);
    return error_advise(err, "%s", keeps);
  }
  regions_find(*text, strlen(*text), &regions);
  Region *found = regions_named(&regions, exercise->name);
  if (found == NULL) {
    error_set(err, "%s: the line \"%s %s: ...\" is gone", exercise->file, region_open, exercise->name);
    return error_advise(err, "%s", keeps);
  }
  if (found->problem == NULL && !found->cut)
    found->problem = "the lines #if, #include, #else and #endif around your code are gone";
  if (found->problem != NULL) {
    error_set(err, "%s:%d: exercise %s: %s", exercise->file, found->line, exercise->name, found->problem);
    return error_advise(err, "%s", keeps);
  }
  *region = *found;
  return 0;
}

/* The student's lines of an exercise: those in the file, else those that the last check saw. NULL: there are none. */
static inline const char *tree_lines(const Tree *tree, const Exercise *exercise) {
  const char *text;
  Region region;
  if (tree_region(tree, exercise, &text, &region, NULL) == 0) return region_lines(text, &region);
  Text saved = {0};
  if (text_read_file(&saved, tree_path(tree, keep_printf(".learn/lines/%s.txt", exercise->name)), NULL) != 0)
    return NULL;
  return keep_text(&saved);
}

static inline const char *tree_helpers_note(const Tree *tree, const char *file) {
  return tree_path(tree, keep_printf(".learn/lines/%s.helpers", file_word(file)));
}

/* The student's helpers of a file: those in it, else those that the last check saw. */
static inline const char *tree_helpers(const Tree *tree, const char *file) {
  static Regions regions;
  Text bytes = {0}, saved = {0};
  const char *helpers = NULL;
  if (text_read_file(&bytes, tree_path(tree, file), NULL) == 0) {
    regions_find(bytes.bytes, bytes.length, &regions);
    const Region *region = regions_named(&regions, "helpers");
    if (region != NULL && region->problem == NULL) helpers = region_lines(bytes.bytes, region);
  }
  text_free(&bytes);
  if (helpers == NULL && text_read_file(&saved, tree_helpers_note(tree, file), NULL) == 0) helpers = keep_text(&saved);
  return helpers == NULL ? "" : helpers;
}

/* What counts of a student's file, for a check and for a grader: the lines of the exercise, and the helpers. */
typedef struct Written {
  const char *text; /* the whole file */
  const char *lines, *helpers;
  int line, helpers_line; /* of the first of each in the file; 0: not known */
} Written;

/* 0, or -1 and one sentence that says how to repair it. */
static inline int tree_written(const Tree *tree, const Exercise *exercise, Written *written, Error *err) {
  static Regions regions;
  Region region;
  memset(written, 0, sizeof *written);
  if (tree_region(tree, exercise, &written->text, &region, err) != 0) return -1;
  written->lines = region_lines(written->text, &region);
  written->line = region.body_line;
  written->helpers = "";
  regions_find(written->text, strlen(written->text), &regions);
  const Region *helpers = regions_named(&regions, "helpers");
  if (helpers == NULL) return 0; /* taken out */
  if (helpers->problem != NULL) {
    error_set(err, "%s:%d: helpers: %s", exercise->file, helpers->line, helpers->problem);
    return error_advise(err, "`./nn restore %s` repairs the file, and keeps a copy of yours", exercise->name);
  }
  written->helpers = region_lines(written->text, helpers);
  written->helpers_line = helpers->body_line;
  return 0;
}

/* Notes what a check has seen, to repair a file from. */
static inline int tree_note(const Tree *tree, const Exercise *exercise, const Written *written, Error *err) {
  const char *path = tree_path(tree, keep_printf(".learn/lines/%s.txt", exercise->name));
  if (text_write_quick(path, written->lines, strlen(written->lines), err) != 0) return -1;
  return text_write_quick(tree_helpers_note(tree, exercise->file), written->helpers, strlen(written->helpers), err);
}

static inline int tree_read_pristine(const Tree *tree, const char *file, Text *pristine, Error *err) {
  return text_read_file(pristine, tree_path(tree, keep_printf(".learn/pristine/%s", file)), err);
}

/* The pristine file with what the student has written in its place: what a check and a grader compile. Messages have
 * the numbers of the student's lines, where these are known. */
static inline int tree_paste(const Tree *tree, const Exercise *exercise, const Written *written, Text *out,
                             Error *err) {
  Text pristine = {0}, half = {0};
  if (tree_read_pristine(tree, exercise->file, &pristine, err) != 0) return -1;
  const char *helpers = written->helpers; /* they stand above the lines */
  bool done = regions_paste(&half, pristine.bytes, pristine.length, "helpers", written->helpers_line, helpers) &&
              regions_paste(out, half.bytes, half.length, exercise->name, written->line, written->lines);
  text_free(&pristine);
  text_free(&half);
  if (done) return 0;
  return error_set(err, "%s/.learn/pristine/%s has no place for %s", tree->root, exercise->file, exercise->name);
}

/* The first line of a student's file that has other code than the course's and is not in a place for the student's:
 * its number and its text. 0: there is none. */
static inline int tree_outside(const Tree *tree, const char *file, const char *text, const char **line) {
  Text pristine = {0};
  if (tree_read_pristine(tree, file, &pristine, NULL) != 0) return 0;
  int number = regions_differ(text, pristine.bytes, line);
  text_free(&pristine);
  return number;
}

/* Is this file of the course still as it was made? Yes, too, when it is none or nobody noted that. */
static inline bool file_is_original(const char *root, const char *hashes, const char *file) {
  const char *noted = strstr(hashes, keep_printf(" %s\n", file));
  Text text = {0};
  if (noted == NULL || noted - hashes < 16) return true;
  const uint64_t hash = strtoull(keep_bytes(noted - 16, 16), NULL, 16);
  if (text_read_file(&text, keep_printf("%s/%s", root, file), NULL) != 0) return false;
  const bool same = hash_of(HASH_BEGIN, text.bytes, text.length) == hash;
  text_free(&text);
  return same;
}

/* The file as it was made, with the student's helpers and lines in it, as far as they are known; those of `exercise`
 * are `lines`, if it is given. */
static inline int tree_restore(const Tree *tree, const char *file, const Exercise *exercise, const char *lines,
                               Error *err) {
  Text pristine = {0};
  if (tree_read_pristine(tree, file, &pristine, err) != 0) return -1;
  for (int i = -1; i < tree->exercises.count; i++) {
    const Exercise *other = i < 0 ? NULL : &tree->exercises.item[i];
    if (other != NULL && strcmp(other->file, file) != 0) continue;
    const char *theirs = other == NULL                                                  ? tree_helpers(tree, file)
                         : exercise != NULL && strcmp(other->name, exercise->name) == 0 ? lines
                                                                                        : tree_lines(tree, other);
    Text out = {0};
    const char *name = other == NULL ? "helpers" : other->name;
    if (theirs == NULL || !regions_paste(&out, pristine.bytes, pristine.length, name, 0, theirs)) continue;
    text_free(&pristine);
    pristine = out;
  }
  int status = text_write_file(tree_path(tree, file), pristine.bytes, pristine.length, err);
  text_free(&pristine);
  return status;
}

/* Copies a student's file to .learn/backup before it is changed; *backup is "" when there is none. */
static inline int tree_back_up(const Tree *tree, const char *file, const char *name, const char **backup, Error *err) {
  Text old = {0};
  *backup = "";
  if (text_read_file(&old, tree_path(tree, file), NULL) != 0) return 0;
  *backup = keep_printf(".learn/backup/%s-%s-%s", name, time_text("%Y%m%d-%H%M%S"), strrchr(file, '/') + 1);
  int status = text_write_file(tree_path(tree, *backup), old.bytes, old.length, err);
  text_free(&old);
  return status;
}

/* Puts `lines` into the exercise's place; when the file is damaged or gone, into the file as it was made. */
static inline int tree_put_lines(const Tree *tree, const Exercise *exercise, const char *lines, const char **backup,
                                 Error *err) {
  const char *text;
  Region region;
  if (tree_back_up(tree, exercise->file, exercise->name, backup, err) != 0) return -1;
  if (tree_region(tree, exercise, &text, &region, NULL) != 0)
    return tree_restore(tree, exercise->file, exercise, lines, err);
  Text out = {0};
  region_paste(&out, text, strlen(text), &region, lines);
  int status = text_write_file(tree_path(tree, exercise->file), out.bytes, out.length, err);
  text_free(&out);
  return status;
}

#endif /* LEARN_TREE_LINES_H */
