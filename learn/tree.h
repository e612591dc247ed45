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
  if (tree->exercises.count == 0) return error_set(err, "%s/.learn/exercises.json: it has no exercises", root);
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
  return error_set(err, "%s is not inside a student's tree; make one with `bazel run //learn -- init DIR` and go there",
                   here);
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

#endif /* LEARN_TREE_H */
