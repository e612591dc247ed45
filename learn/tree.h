/* tree.h - a student's tree: the course with the solutions out of sight.
 *
 *     phase1_building_blocks/...    the course; in some files there is a place for the student's lines
 *     nn                            the command: ./nn next, ./nn check ...
 *     .learn/tree.json              which version of the course this tree was made from
 *     .learn/exercises.json         titles, hints, limits, what the student started from
 *     .learn/progress.json          what has passed, what comes next; written whole or not at all
 *     .learn/passed.h               which exercises use the student's lines: those that have passed their check
 *     .learn/reference/NAME.cuh     what all the others use
 *     .learn/check/                 the programs that check
 *     .learn/pristine/FILE          the student's files as they were made: for repairs, and what a check pastes into
 *     .learn/files.txt              a hash of every file of the course: which has the student changed?
 *     .learn/lines/NAME.txt         the student's lines as they were at the last check
 *     .learn/lines/FILE.helpers     and the helpers
 *     .learn/backup/                what reset and update replaced
 *     .learn/build/                 compiled checks; may be deleted
 */
#ifndef LEARN_TREE_H
#define LEARN_TREE_H

#include "common/options.h"
#include "learn/source.h"

#include <jansson.h>
#include <sys/file.h>
#include <time.h>

enum { TREE_FORMAT = 1 };
static const uint64_t HASH_BEGIN = 0xcbf29ce484222325u;

typedef struct Record {
  bool passed, solution_asked;
  int hints, checks;
  const char *passed_at; /* "" or "2026-01-31 12:00:00" */
} Record;

typedef struct Tree {
  const char *root;
  Exercises exercises;
  Record progress[EXERCISES_MAX];
  int current; /* the exercise that `check`, `hint` and `next` mean */
} Tree;

static inline const char *tree_path(const Tree *tree, const char *path) {
  return keep_printf("%s/%s", tree->root, path);
}

static inline uint64_t hash_of(uint64_t hash, const char *bytes, size_t length) { /* FNV-1a */
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return hash;
}

static inline const char *time_text(const char *format) {
  char text[64];
  time_t now = time(NULL);
  struct tm local;
  strftime(text, sizeof text, format, localtime_r(&now, &local));
  return keep(text);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* JSON */

static inline int json_write(const char *path, json_t *object, Error *err) {
  char *text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
  json_decref(object);
  if (text == NULL) return error_set(err, "cannot write %s: text that is not UTF-8", path);
  Text line = {0};
  text_printf(&line, "%s\n", text);
  free(text);
  int status = text_write_file(path, line.bytes, line.length, err);
  text_free(&line);
  return status;
}

static inline json_t *json_read(const char *path, Error *err) {
  Text text = {0};
  if (text_read_file(&text, path, err) != 0) return NULL;
  json_error_t error;
  json_t *object = json_loadb(text.bytes, text.length, 0, &error);
  text_free(&text);
  if (object == NULL || !json_is_object(object)) {
    error_set(err, "%s:%d: %s", path, object == NULL ? error.line : 1,
              object == NULL ? error.text : "expected { ... }");
    json_decref(object);
    return NULL;
  }
  return object;
}

static inline const char *json_text(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value == NULL ? "" : keep(value);
}

static inline json_t *exercise_to_json(const Exercise *exercise) {
  json_t *hints = json_array(), *limits = json_array();
  for (int i = 0; i < exercise->hints; i++) json_array_append_new(hints, json_string(exercise->hint[i]));
  for (int i = 0; i < exercise->limits; i++) {
    const Limit *limit = &exercise->limit[i];
    json_array_append_new(limits, json_pack("{s:s, s:s, s:f, s:s}", "count", limit->count, "per", limit->per, "at_most",
                                            limit->at_most, "why", limit->why));
  }
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:o, s:o}", "name", exercise->name, "title",
                   exercise->title, "task", exercise->task, "file", exercise->file, "check", exercise->check,
                   "launcher", exercise->launcher, "next", exercise->next, "stub", exercise->stub, "broken",
                   exercise->broken == NULL ? "" : "yes", "points", exercise->points, "streams", exercise->streams,
                   "hints", hints, "limits", limits);
}

static inline void exercise_from_json(Exercise *exercise, const json_t *object) {
  memset(exercise, 0, sizeof *exercise);
  exercise->name = json_text(object, "name");
  exercise->title = json_text(object, "title");
  exercise->task = json_text(object, "task");
  exercise->file = json_text(object, "file");
  exercise->check = json_text(object, "check");
  exercise->launcher = json_text(object, "launcher");
  exercise->next = json_text(object, "next");
  exercise->stub = json_text(object, "stub");
  exercise->broken = json_text(object, "broken")[0] != '\0' ? "yes" : NULL;
  exercise->points = (int)json_integer_value(json_object_get(object, "points"));
  exercise->streams = json_is_true(json_object_get(object, "streams"));
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(object, "hints"), i, item) if (i < REGION_HINTS && json_is_string(item))
      exercise->hint[exercise->hints++] = keep(json_string_value(item));
  json_array_foreach(json_object_get(object, "limits"), i, item) {
    if (i >= EXERCISE_LIMITS) break;
    Limit *limit = &exercise->limit[exercise->limits++];
    limit->count = json_text(item, "count");
    limit->per = json_text(item, "per");
    limit->why = json_text(item, "why");
    limit->at_most = json_number_value(json_object_get(item, "at_most"));
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Progress */

static const char tree_mine[] =
    "/* Written by learn: whose lines does an exercise use? Those that have passed are yours everywhere, the others "
    "use\n"
    " * the reference. A check compiles with LEARN_CHECK: only the exercise that it is about is yours. */\n"
    "#ifndef LEARN_MINE_H\n"
    "#define LEARN_MINE_H\n\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n\n"
    "#ifndef SIMT_REWRITTEN\n"
    "#include <nv/target>\n"
    "#endif\n"
    "#ifndef LEARN_CHECK\n"
    "#include \".learn/passed.h\"\n"
    "#endif\n\n"
    "#define MINE(name) LEARN_MINE_##name\n"
    "#define MINE_ANY(file) LEARN_ANY_##file\n"
    "#define TODO(name) learn_not_implemented(#name)\n\n"
    "#define LEARN_END fprintf(stderr, \"not implemented: %s\\n\", name), fflush(NULL), _Exit(3);\n\n"
    "static inline __host__ __device__ void learn_not_implemented(const char *name) {\n"
    "#ifdef SIMT_REWRITTEN\n"
    "  LEARN_END\n"
    "#else\n"
    "  NV_IF_ELSE_TARGET(NV_IS_DEVICE,\n"
    "                    (if (threadIdx.x == 0 && blockIdx.x == 0) printf(\"not implemented: %s\\n\", name);),\n"
    "                    (LEARN_END))\n"
    "#endif\n"
    "}\n\n";

/* A word for the preprocessor: "phase1_building_blocks/02_transpose/transpose.cuh" becomes
 * "phase1_building_blocks_02_transpose_transpose". */
static inline char *file_word(const char *file) {
  const char *dot = strrchr(file, '.');
  char *word = keep_bytes(file, dot == NULL ? strlen(file) : (size_t)(dot - file));
  for (char *c = word; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return word;
}

/* Is one of the exercises of a file the student's? What the helpers of that file depend on. */
static inline void tree_write_any(const Tree *tree, Text *out) {
  for (int i = 0; i < tree->exercises.count; i++) {
    const char *file = tree->exercises.item[i].file;
    int first = 0;
    while (strcmp(tree->exercises.item[first].file, file) != 0) first++;
    if (first < i) continue;
    text_printf(out, "#define LEARN_ANY_%s (", file_word(file));
    for (int j = i; j < tree->exercises.count; j++)
      if (strcmp(tree->exercises.item[j].file, file) == 0)
        text_printf(out, "%sMINE(%s)", j == i ? "" : " || ", tree->exercises.item[j].name);
    text_add(out, ")\n");
  }
}

/* Untouched when it is the same already, so that nothing is built again. */
static inline int tree_write_changed(const char *path, const char *text, Error *err) {
  Text old = {0};
  bool same = text_read_file(&old, path, NULL) == 0 && strcmp(old.bytes, text) == 0;
  text_free(&old);
  return same ? 0 : text_write_file(path, text, strlen(text), err);
}

/* What the compiler reads of the progress. The list is a file of its own: a check does not depend on it. */
static inline int tree_write_mine(const Tree *tree, Error *err) {
  Text passed = {0}, mine = {0};
  text_add(&mine, tree_mine);
  tree_write_any(tree, &mine);
  text_add(&mine, "\n#endif /* LEARN_MINE_H */\n");
  text_add(&passed, "/* Written by learn, from progress.json: these exercises use your lines. */\n");
  for (int i = 0; i < tree->exercises.count; i++)
    if (tree->progress[i].passed) text_printf(&passed, "#define LEARN_MINE_%s 1\n", tree->exercises.item[i].name);
  int status = tree_write_changed(tree_path(tree, ".learn/mine.h"), mine.bytes, err);
  if (status == 0) status = tree_write_changed(tree_path(tree, ".learn/passed.h"), passed.bytes, err);
  text_free(&passed);
  text_free(&mine);
  return status;
}

static inline int tree_save(const Tree *tree, Error *err) {
  json_t *exercises = json_object();
  for (int i = 0; i < tree->exercises.count; i++) {
    const Record *p = &tree->progress[i];
    if (!p->passed && !p->solution_asked && p->hints == 0 && p->checks == 0) continue;
    json_object_set_new(exercises, tree->exercises.item[i].name,
                        json_pack("{s:b, s:s, s:i, s:i, s:b}", "passed", p->passed, "passed_at", p->passed_at, "checks",
                                  p->checks, "hints", p->hints, "solution_asked", p->solution_asked));
  }
  json_t *object = json_pack("{s:s, s:o}", "current", tree->exercises.item[tree->current].name, "exercises", exercises);
  if (json_write(tree_path(tree, ".learn/progress.json"), object, err) != 0) return -1;
  return tree_write_mine(tree, err);
}

static inline void tree_read_progress(Tree *tree, const json_t *object) {
  const char *current = json_text(object, "current");
  const json_t *exercises = json_object_get(object, "exercises");
  for (int i = 0; i < tree->exercises.count; i++) {
    const json_t *item = json_object_get(exercises, tree->exercises.item[i].name);
    Record *p = &tree->progress[i];
    p->passed = json_is_true(json_object_get(item, "passed"));
    p->solution_asked = json_is_true(json_object_get(item, "solution_asked"));
    p->hints = (int)json_integer_value(json_object_get(item, "hints"));
    p->checks = (int)json_integer_value(json_object_get(item, "checks"));
    p->passed_at = json_text(item, "passed_at");
    if (strcmp(tree->exercises.item[i].name, current) == 0) tree->current = i;
  }
}

static inline int tree_passed(const Tree *tree) {
  int passed = 0;
  for (int i = 0; i < tree->exercises.count; i++) passed += tree->progress[i].passed;
  return passed;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Finding and reading a tree */

static inline int tree_read(Tree *tree, const char *root, Error *err) {
  memset(tree, 0, sizeof *tree);
  tree->root = keep(root);
  json_t *object = json_read(tree_path(tree, ".learn/tree.json"), err);
  if (object == NULL) return -1;
  int format = (int)json_integer_value(json_object_get(object, "format"));
  json_decref(object);
  if (format != TREE_FORMAT)
    return error_set(err,
                     "%s was made by %s version of the course (format %d, this program knows %d): run `bazel run "
                     "//learn -- init --update %s` in the course's repository; your lines are kept",
                     root, format < TREE_FORMAT ? "an older" : "a newer", format, TREE_FORMAT, root);
  object = json_read(tree_path(tree, ".learn/exercises.json"), err);
  if (object == NULL) return -1;
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(object, "exercises"), i, item) if (i < EXERCISES_MAX)
      exercise_from_json(&tree->exercises.item[tree->exercises.count++], item);
  json_decref(object);
  if (tree->exercises.count == 0) return error_set(err, "%s/.learn/exercises.json: not one exercise in it", root);
  const char *progress = tree_path(tree, ".learn/progress.json");
  if (access(progress, F_OK) == 0) {
    object = json_read(progress, err);
    if (object == NULL)
      return error_set(err, "%s: the file is damaged; move it away to begin anew (your lines stay)",
                       keep(err->message));
    tree_read_progress(tree, object);
    json_decref(object);
  }
  return 0;
}

/* The tree around the folder where the command was typed. */
static inline int tree_find(Tree *tree, Error *err) {
  char folder[PATH_MAX], here[PATH_MAX];
  const char *typed = getenv("BUILD_WORKING_DIRECTORY");
  if (typed != NULL && typed[0] != '\0')
    snprintf(folder, sizeof folder, "%s", typed);
  else if (getcwd(folder, sizeof folder) == NULL)
    return error_set(err, "the current folder is gone: %s", strerror(errno));
  snprintf(here, sizeof here, "%s", folder);
  for (;;) {
    if (access(keep_printf("%s/.learn/tree.json", folder), F_OK) == 0) return tree_read(tree, folder, err);
    char *slash = strrchr(folder, '/');
    if (slash == NULL || folder[0] == '\0') break;
    *slash = '\0';
  }
  const char *named = getenv("LEARN_TREE"); /* set by ./nn: its own folder */
  if (named != NULL && access(keep_printf("%s/.learn/tree.json", named), F_OK) == 0) return tree_read(tree, named, err);
  return error_set(err, "%s is in no student's tree; make one with `bazel run //learn -- init DIR` and go there", here);
}

/* Two terminals: one command at a time works on the tree, and sees what the other has saved. The current exercise
 * stays the caller's when `keep_current`. */
static inline int tree_lock(Tree *tree, bool keep_current, Error *err) {
  int current = tree->current, lock = open(tree_path(tree, ".learn"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return error_set(err, "cannot open %s/.learn: %s", tree->root, strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    fprintf(stderr, "  (waiting for a check in another terminal)\n");
    while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  json_t *object = json_read(tree_path(tree, ".learn/progress.json"), NULL);
  if (object != NULL) tree_read_progress(tree, object);
  json_decref(object);
  if (keep_current) tree->current = current;
  return lock;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The student's lines */

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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Cutting a tree out of the source */

static inline bool cut_leaves_out(const char *path) {
  return strstr(path, "/exercises/") != NULL || starts_with(path, "learn/test/") ||
         strcmp(path, "docs/exercises_for_authors.md") == 0 || strcmp(path, "user.bazelrc") == 0;
}

static inline Exercise *cut_exercise(Source *source, const char *file, const char *name) {
  Exercise *exercise = exercises_named(&source->exercises, name);
  return exercise != NULL && strcmp(exercise->file, file) == 0 ? exercise : NULL;
}

static inline bool cut_has_exercises(const Source *source, const char *file) {
  for (int i = 0; i < source->exercises.count; i++)
    if (strcmp(source->exercises.item[i].file, file) == 0) return true;
  return false;
}

static const char cut_helpers[] = "// such as: __device__ float square(float x) { return x * x; }\n";

/* A source file with every region that is an exercise cut out; one that is not yet an exercise loses its hints. */
static inline char *cut_file(Source *source, const char *file, const char *bytes) {
  static Regions regions;
  Text out = {0};
  size_t at = 0, length = strlen(bytes);
  regions_find(bytes, length, &regions);
  /* Before the first #include at the left margin. */
  const char *first = starts_with(bytes, "#include") ? bytes : strstr(bytes, "\n#include");
  size_t include = first == NULL ? 0 : (size_t)(first - bytes) + (first != bytes);
  if (regions.count > 0 && include > regions.item[0].begin) include = 0;
  text_append(&out, bytes, include);
  text_add(&out, "#include \".learn/mine.h\"  // which exercises are yours by now\n");
  at = include;
  bool helped = false;
  for (int i = 0; i < regions.count; i++) {
    const Region *region = &regions.item[i];
    const Exercise *exercise = cut_exercise(source, file, region->name);
    if (exercise != NULL && !helped) { /* above the first function with an exercise */
      size_t place = helpers_place(bytes, region->begin);
      if (place < at) place = at;
      text_append(&out, bytes + at, place - at);
      helpers_write(&out, file_word(file), cut_helpers);
      at = place;
      helped = true;
    }
    text_append(&out, bytes + at, region->begin - at);
    if (exercise == NULL)
      text_add(&out, region_lines(bytes, region));
    else
      region_write_cut(&out, region_indent(bytes, region), region, exercise->stub);
    at = region->end;
  }
  text_append(&out, bytes + at, length - at);
  return keep_text(&out);
}

/* The source without the lines that would show a solution (solution_leaks.h). They go into other files below `root`, or
 * nowhere if that is NULL. NULL: something is wrong. */
static inline const char *cut_hidden(const char *file, const char *bytes, const char *root, Error *err) {
  Text out = {0}, hidden = {0};
  bool open = false;
  int number = 0, status = 0;
  if (strstr(bytes, hidden_open) == NULL) return keep(bytes);
  for (size_t at = 0, length = strlen(bytes); at < length;) {
    const size_t end = line_end(bytes, length, at);
    const bool opens = line_starts(bytes, at, end, hidden_open) != NULL;
    const bool closes = line_starts(bytes, at, end, hidden_close) != NULL;
    if (opens == open && (opens || closes)) {
      error_set(err, "%s: \"%s NAME\" and \"%s\" do not come in turns", file, hidden_open, hidden_close);
      status = -1;
      break;
    }
    if (opens) {
      const char *name = line_starts(bytes, at, end, hidden_open) + strlen(hidden_open);
      text_printf(&out, "#include \".learn/reference/hidden_%s_%d.cuh\"  // out of sight: it would solve %s\n",
                  file_word(file), ++number, keep_trimmed(name, 0, (size_t)(bytes + end - name)));
    } else if (closes) {
      const char *path = keep_printf(".learn/reference/hidden_%s_%d.cuh", file_word(file), number);
      if (root != NULL) status = text_write_quick(keep_printf("%s/%s", root, path), hidden.bytes, hidden.length, err);
      if (status != 0) break;
      text_free(&hidden);
    } else {
      text_append(open ? &hidden : &out, bytes + at, end - at);
    }
    if (opens || closes) open = opens;
    at = end;
  }
  if (status == 0 && open) status = error_set(err, "%s: \"%s\" is missing at its end", file, hidden_close);
  text_free(&hidden);
  if (status == 0) return keep_text(&out);
  text_free(&out);
  return NULL;
}

/* In a BUILD file, whoever has the header needs what it includes: "x.cuh" becomes "x.cuh", "//.learn:exercises". */
static inline char *cut_build(const Source *source, const char *file, const char *bytes) {
  Text out = {0};
  text_add(&out, "");
  const char *slash = strrchr(file, '/');
  const char *folder = slash == NULL ? "" : keep_bytes(file, (size_t)(slash - file) + 1);
  for (size_t at = 0, length = strlen(bytes); at < length;) {
    size_t end = line_end(bytes, length, at);
    const char *line = keep_bytes(bytes + at, end - at);
    const char *header = NULL;
    for (int i = 0; i < source->exercises.count + source->hiding && header == NULL; i++) {
      const int hidden = i - source->exercises.count;
      const char *name = hidden < 0 ? source->exercises.item[i].file : source->hides[hidden];
      if (!starts_with(name, folder) || strchr(name + strlen(folder), '/') != NULL) continue;
      const char *quoted = keep_printf("\"%s\"", name + strlen(folder));
      const char *place = strstr(line, quoted);
      if (place == NULL) continue;
      header = quoted;
      text_printf(&out, "%.*s%s, \"//.learn:exercises\"%s", (int)(place - line), line, quoted, place + strlen(quoted));
    }
    if (header == NULL) text_append(&out, bytes + at, end - at);
    at = end;
  }
  return keep_text(&out);
}

static const char cut_learn_build[] =
    "# Written by learn: what a file with exercises includes.\n"
    "filegroup(\n    name = \"exercises\",\n    srcs = [\"mine.h\", \"passed.h\"] + glob([\"reference/*.cuh\"]),\n"
    "    visibility = [\"//visibility:public\"],\n)\n";

static inline int copy_file(const char *from, const char *to, Error *err) {
  char block[65536];
  struct stat info;
  if (make_parent(to, err) != 0) return -1;
  int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0 || fstat(in, &info) != 0) {
    if (in >= 0) close(in);
    return error_set(err, "cannot read %s: %s", from, strerror(errno));
  }
  unlink(to); /* a program that runs cannot be overwritten, but replaced */
  int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, (info.st_mode & 0777) | 0200);
  ssize_t got = 0;
  while (out >= 0 && (got = read(in, block, sizeof block)) > 0)
    if (write(out, block, (size_t)got) != got) {
      got = -1;
      break;
    }
  int reason = errno;
  close(in);
  if (out < 0 || close(out) != 0 || got < 0) return error_set(err, "cannot write %s: %s", to, strerror(reason));
  return 0;
}

/* .bazelrc or cuda.bzl: a student's unused variable is a warning, not an error. What a student does not write is
 * compiled with the course's very options, so that Bazel finds it in the cache that the course has filled. */
static inline const char *cut_settings(const char *text) {
  static const char error[] = "build --copt=-Werror\n", with_nvcc[] = "    args.add(\"-Werror=all-warnings\")\n";
  const char *line = strstr(text, error);
  if (line != NULL)
    text = keep_printf("%.*sbuild --per_file_copt=-(^|//)(simt|common)[/:]@-Wno-error\n%s",
                       (int)(line + strlen(error) - text), text, line + strlen(error));
  line = strstr(text, with_nvcc);
  return line == NULL ? text : keep_printf("%.*s%s", (int)(line - text), text, line + strlen(with_nvcc));
}

/* One file of the source into the tree. */
static inline int cut_one(Source *source, const char *root, const char *file, Error *err) {
  const char *from = keep_printf("%s/%s", source->root, file), *to = keep_printf("%s/%s", root, file);
  const char *base = strrchr(file, '/') == NULL ? file : strrchr(file, '/') + 1;
  bool exercise = cut_has_exercises(source, file), build = strcmp(base, "BUILD") == 0;
  bool settings = strcmp(file, ".bazelrc") == 0 || strcmp(file, "tools/build/cuda.bzl") == 0;
  bool ignored = strcmp(file, ".gitignore") == 0, hides = false;
  for (int i = 0; i < source->hiding; i++) hides = hides || strcmp(source->hides[i], file) == 0;
  if (!exercise && !build && !settings && !ignored && !hides) return copy_file(from, to, err);
  Text text = {0};
  if (text_read_file(&text, from, err) != 0) return -1;
  const char *bytes = keep_text(&text);
  if (hides && (bytes = cut_hidden(file, bytes, root, err)) == NULL) return -1;
  if (exercise) {
    bytes = cut_file(source, file, bytes);
    if (text_write_quick(keep_printf("%s/.learn/pristine/%s", root, file), bytes, strlen(bytes), err) != 0) return -1;
  } else if (build) {
    bytes = cut_build(source, file, bytes);
  } else if (ignored) {
    bytes = keep_printf("%s/.learn/build/\n", bytes);
  } else if (settings) {
    bytes = cut_settings(bytes);
  }
  return text_write_quick(to, bytes, strlen(bytes), err);
}

/* "phase1_building_blocks/01_x/exercises/x_check.cu" -> ".learn/check/phase1_building_blocks_01_x_x_check.cu" */
static inline char *cut_check_path(const char *check) {
  char *path = keep_printf(".learn/check/%s", check), *place = strstr(path, "/exercises/");
  if (place != NULL) memmove(place, place + strlen("/exercises"), strlen(place + strlen("/exercises")) + 1);
  for (char *c = path + strlen(".learn/check/"); *c != '\0'; c++)
    if (*c == '/') *c = '_';
  return path;
}

/* "HASH PATH" of every file of the course in the tree. */
static inline int cut_list_files(const Source *source, const char *root, Error *err) {
  Text list = {0};
  text_add(&list, "");
  for (int i = 0; i < source->files; i++) {
    Text text = {0};
    if (cut_leaves_out(source->file[i])) continue;
    if (text_read_file(&text, keep_printf("%s/%s", root, source->file[i]), NULL) == 0)
      text_printf(&list, "%016llx %s\n", (unsigned long long)hash_of(HASH_BEGIN, text.bytes, text.length),
                  source->file[i]);
    text_free(&text);
  }
  int status = text_write_quick(keep_printf("%s/.learn/files.txt", root), list.bytes, list.length, err);
  text_free(&list);
  return status;
}

/* The whole tree, into a folder that is there. Progress is the caller's. */
static inline int cut_tree(Source *source, const char *root, Error *err) {
  for (int i = 0; i < source->files; i++)
    if (!cut_leaves_out(source->file[i]) && cut_one(source, root, source->file[i], err) != 0) return -1;
  json_t *list = json_array();
  for (int i = 0; i < source->exercises.count; i++) {
    Exercise exercise = source->exercises.item[i];
    const char *check = exercise.check;
    exercise.check = cut_check_path(check);
    json_array_append_new(list, exercise_to_json(&exercise));
    const char *reference = keep_printf("%s/.learn/reference/%s.cuh", root, exercise.name);
    if (text_write_quick(reference, exercise.solution, strlen(exercise.solution), err) != 0 ||
        copy_file(keep_printf("%s/%s", source->root, check), keep_printf("%s/%s", root, exercise.check), err) != 0) {
      json_decref(list);
      return -1;
    }
  }
  if (json_write(keep_printf("%s/.learn/exercises.json", root), json_pack("{s:o}", "exercises", list), err) != 0 ||
      cut_list_files(source, root, err) != 0)
    return -1;
  return text_write_quick(keep_printf("%s/.learn/BUILD", root), cut_learn_build, strlen(cut_learn_build), err);
}

/* Marks the folder as a student's tree. Last of all, so that a tree that is half made is none. */
static inline int cut_finish(const Source *source, const char *root, Error *err) {
  uint64_t content = HASH_BEGIN; /* of what the exercises are made from */
  for (int i = 0; i < source->exercises.count; i++)
    content = hash_of(content, source->exercises.item[i].solution, strlen(source->exercises.item[i].solution));
  json_t *object =
      json_pack("{s:i, s:s, s:s, s:s}", "format", TREE_FORMAT, "course", NN_VERSION, "content",
                keep_printf("%016llx", (unsigned long long)content), "made", time_text("%Y-%m-%d %H:%M:%S"));
  return json_write(keep_printf("%s/.learn/tree.json", root), object, err);
}

#endif /* LEARN_TREE_H */
