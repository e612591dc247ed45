/* bundle.h - many versions of exercises in one program, for proofs (exercise_proof.h): a compiler starts once and reads
 * the headers once, where a check of each version would start two and a linker.
 *
 *     Bundle bundle;
 *     bundle_begin(&bundle, tree);
 *     int number = bundle_add(&bundle, exercise, exercise->solution);  // the first of an exercise
 *     bundle_add(&bundle, exercise, mutant->lines);
 *     if (bundle_compile(&bundle, &err) == 0)                          // else one of them does not compile
 *       job.judge = bundle_judge(&bundle, number), job.worker = bundle_worker(&bundle, number);
 *
 * The worker includes the check program once for every version, in a namespace of its own:
 *
 *     #include ...                                        // what the files below include, and is not among them
 *     #define LEARN_MINE_vector_add_index 1
 *     #define BUNDLE_VERSION 0                            // chooses the lines in the exercise's place
 *     namespace bundle_0 {
 *     #include ".learn/check/phase1_building_blocks_vector_add_check.cu"
 *     }
 *     #undef VECTOR_ADD_LESSON_CUH                        // so that the next one reads it again
 *
 * Which one runs is told by the program's name, a link that ends in the version's number. So does the judge's, with all
 * the lessons. Both are otherwise those of check.h: what a check compiles in two parts is compiled in one.
 */
#ifndef LEARN_BUNDLE_H
#define LEARN_BUNDLE_H

#include "learn/build.h"

enum { BUNDLE_VERSIONS = 64, BUNDLE_FILES = 256 };

typedef struct BundleVersion {
  const Exercise *exercise;
  const char *lines;
  int first; /* the exercise's first version: its lesson is that of all */
} BundleVersion;

typedef struct BundleFile {
  const char *name, *text;
  bool copied; /* it is, or includes, a file with an exercise of the bundle */
} BundleFile;

typedef struct Bundle {
  const Tree *tree;
  const char *folder;
  BundleVersion version[BUNDLE_VERSIONS];
  int versions;
  BundleFile file[BUNDLE_FILES]; /* each after those that it includes */
  int files;
} Bundle;

static inline void bundle_begin(Bundle *bundle, const Tree *tree) {
  memset(bundle, 0, sizeof *bundle);
  bundle->tree = tree;
  bundle->folder = tree_path(tree, ".learn/build/bundle");
}

static inline int bundle_add(Bundle *bundle, const Exercise *exercise, const char *lines) {
  const int number = bundle->versions;
  if (number == BUNDLE_VERSIONS) die("a bundle has at most %d versions", BUNDLE_VERSIONS);
  BundleVersion *version = &bundle->version[bundle->versions++];
  const bool again = number > 0 && version[-1].exercise == exercise;
  version->exercise = exercise;
  version->lines = lines;
  version->first = again ? version[-1].first : number;
  return number;
}

static inline const char *bundle_worker(const Bundle *bundle, int number) {
  return keep_printf("%s/worker.%d", bundle->folder, number);
}

static inline const char *bundle_judge(const Bundle *bundle, int number) {
  return keep_printf("%s/judge.%d", bundle->folder, bundle->version[number].first);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The files that a check program includes */

static inline bool bundle_has_exercise(const Bundle *bundle, const char *file) {
  for (int i = 0; i < bundle->versions; i++)
    if (strcmp(bundle->version[i].exercise->file, file) == 0) return true;
  return false;
}

/* What the line includes, with its quotes or brackets; NULL: it is no #include. */
static inline const char *bundle_included(const char *text, size_t begin, size_t end) {
  const char *at = line_starts(text, begin, end, "#include ");
  if (at == NULL) return NULL;
  at += strlen("#include ");
  const char *close = *at == '"' ? strchr(at + 1, '"') : strchr(at, '>');
  return close == NULL || close >= text + end ? NULL : keep_bytes(at, (size_t)(close + 1 - at));
}

/* Reads the file, and all that it includes of the tree's. Is it one that each version has a copy of? */
static inline bool bundle_visit(Bundle *bundle, const char *name) {
  for (int i = 0; i < bundle->files; i++)
    if (strcmp(bundle->file[i].name, name) == 0) return bundle->file[i].copied;
  Text bytes = {0};
  if (text_read_file(&bytes, tree_path(bundle->tree, keep_printf(".learn/pristine/%s", name)), NULL) != 0 &&
      text_read_file(&bytes, tree_path(bundle->tree, name), NULL) != 0)
    return false;
  const char *text = keep_text(&bytes);
  const size_t length = strlen(text);
  bool copied = bundle_has_exercise(bundle, name);
  for (size_t at = 0; at < length; at = line_end(text, length, at)) {
    const char *included = bundle_included(text, at, line_end(text, length, at));
    if (included == NULL || included[0] != '"' || starts_with(included, "\".learn/reference/")) continue;
    copied |= bundle_visit(bundle, keep_bytes(included + 1, strlen(included) - 2));
  }
  if (bundle->files == BUNDLE_FILES) die("%s: a bundle has at most %d files", name, BUNDLE_FILES);
  bundle->file[bundle->files++] = (BundleFile){name, text, copied};
  return copied;
}

/* The #includes of files that are not copied: outside of all namespaces. */
static inline void bundle_write_includes(const Bundle *bundle, Text *out) {
  for (int i = 0; i < bundle->files; i++) {
    const char *text = bundle->file[i].text;
    const size_t length = strlen(text);
    for (size_t at = 0; at < length && bundle->file[i].copied; at = line_end(text, length, at)) {
      const char *included = bundle_included(text, at, line_end(text, length, at));
      bool here = included != NULL && !starts_with(included, "\".learn/reference/");
      for (int j = 0; j < bundle->files && here; j++)
        here = !bundle->file[j].copied || strcmp(included, keep_printf("\"%s\"", bundle->file[j].name)) != 0;
      if (here) text_printf(out, "#include %s\n", included);
    }
  }
}

/* Lets the copied files be included once more: their first #ifndef is the guard. */
static inline void bundle_write_undefs(const Bundle *bundle, Text *out) {
  for (int i = 0; i < bundle->files; i++) {
    const char *guard = bundle->file[i].copied ? strstr(bundle->file[i].text, "#ifndef ") : NULL;
    if (guard == NULL) continue; /* the check program itself */
    guard += strlen("#ifndef ");
    text_printf(out, "#undef %.*s\n", (int)(code_word_end(guard) - guard), guard);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The two programs */

static const char bundle_number[] =
    "static inline int bundle_number(void) { return atoi(strrchr(program_invocation_name, '.') + 1); }\n";

static inline char *bundle_worker_text(const Bundle *bundle) {
  Text out = {0};
  bundle_write_includes(bundle, &out);
  text_printf(&out,
              "#include <errno.h>\n#include <string.h>\n#undef CHECK_MAIN\n#define CHECK_MAIN(lesson_declared) \\\n"
              "  static const LessonLauncher bundle_launcher = (LessonLauncher)CHECK_LAUNCHER; \\\n"
              "  static inline Lesson bundle_lesson(void) { return lesson_declared; }\n%s",
              bundle_number);
  for (int i = 0; i < bundle->versions; i++) {
    const Exercise *exercise = bundle->version[i].exercise;
    text_printf(&out, "#define BUNDLE_VERSION %d\n#define CHECK_LAUNCHER %s\n#define LEARN_MINE_%s 1\n", i,
                exercise->launcher, exercise->name);
    text_printf(&out, "namespace bundle_%d {\n#include \"%s\"\n}\n", i, exercise->check);
    text_printf(&out, "#undef BUNDLE_VERSION\n#undef CHECK_LAUNCHER\n#undef LEARN_MINE_%s\n", exercise->name);
    bundle_write_undefs(bundle, &out);
  }
  text_add(&out,
           "int main(void) {\n  static Lesson lesson;\n  LessonLauncher launcher = NULL;\n"
           "  switch (bundle_number()) {\n");
  for (int i = 0; i < bundle->versions; i++)
    text_printf(&out, "  case %d: lesson = bundle_%d::bundle_lesson(), launcher = bundle_%d::bundle_launcher; break;\n",
                i, bundle->version[i].first, i);
  text_add(&out, "  }\n  return check_work(&lesson, launcher);\n}\n");
  return keep_text(&out);
}

/* The first version with the same check program. */
static inline int bundle_lesson(const Bundle *bundle, int number) {
  int first = 0;
  while (strcmp(bundle->version[first].exercise->check, bundle->version[number].exercise->check) != 0) first++;
  return first;
}

static inline char *bundle_judge_text(const Bundle *bundle) {
  Text out = {0};
  text_printf(&out,
              "#include \"learn/check.h\"\n#include <errno.h>\n#include <string.h>\n#undef CHECK_MAIN\n"
              "#define CHECK_MAIN(lesson_declared) \\\n"
              "  static inline Lesson BUNDLE_LESSON(void) { return lesson_declared; }\n%s",
              bundle_number);
  for (int i = 0; i < bundle->versions; i++)
    if (bundle_lesson(bundle, i) == i)
      text_printf(&out, "#define BUNDLE_LESSON bundle_lesson_%d\n#include \"%s\"\n#undef BUNDLE_LESSON\n", i,
                  bundle->version[i].exercise->check);
  text_add(&out, "int main(void) {\n  switch (bundle_number()) {\n");
  for (int i = 0; i < bundle->versions; i++)
    if (bundle->version[i].first == i)
      text_printf(&out, "  case %d: return check_main(bundle_lesson_%d());\n", i, bundle_lesson(bundle, i));
  text_add(&out, "  }\n  return 1;\n}\n");
  return keep_text(&out);
}

/* The files with exercises, where BUNDLE_VERSION chooses the lines. */
static inline int bundle_write_exercises(const Bundle *bundle, Error *err) {
  static Regions regions;
  for (int f = 0; f < bundle->files; f++) {
    if (!bundle_has_exercise(bundle, bundle->file[f].name)) continue;
    const char *text = bundle->file[f].text;
    for (int i = 0; i < bundle->versions; i++) {
      const Exercise *exercise = bundle->version[i].exercise;
      if (bundle->version[i].first != i || strcmp(exercise->file, bundle->file[f].name) != 0) continue;
      Text lines = {0}, out = {0};
      for (int v = i; v < bundle->versions && bundle->version[v].first == i; v++)
        text_printf(&lines, "#%s BUNDLE_VERSION == %d\n%s", v == i ? "if" : "elif", v, bundle->version[v].lines);
      text_add(&lines, "#endif\n");
      regions_find(text, strlen(text), &regions);
      const Region *region = regions_named(&regions, exercise->name);
      if (region == NULL || region->problem != NULL)
        return error_set(err, "%s has no place for %s", exercise->file, exercise->name);
      region_paste(&out, text, strlen(text), region, lines.bytes);
      text_free(&lines);
      text = keep_text(&out);
    }
    if (text_write_quick(keep_printf("%s/%s", bundle->folder, bundle->file[f].name), text, strlen(text), err) != 0)
      return -1;
  }
  return 0;
}

static inline int bundle_link(const char *program, const char *name, Error *err) {
  unlink(name);
  return symlink(program, name) == 0 ? 0 : error_set(err, "%s: %s", name, strerror(errno));
}

/* Both programs. -1: a version does not compile, or the machinery failed. */
static inline int bundle_compile(Bundle *bundle, Error *err) {
  VerdictJob job = verdict_job(bundle->tree, bundle->version[0].exercise, "");
  job.overlay = bundle->folder;
  Build build[2];
  for (int i = 0; i < bundle->versions; i++) bundle_visit(bundle, bundle->version[i].exercise->check);
  if (bundle_write_exercises(bundle, err) != 0) return -1;
  for (int i = 0; i < 2; i++) {
    const bool judge = i == 0;
    const char *program = judge ? "judge" : "worker",
               *code = judge ? bundle_judge_text(bundle) : bundle_worker_text(bundle);
    const char *source = keep_printf("%s/%s.cu", bundle->folder, program);
    if (text_write_quick(source, code, strlen(code), err) != 0) return -1;
    memset(&build[i], 0, sizeof build[i]);
    build[i].program = keep_printf("%s/%s", bundle->folder, program);
    build[i].output = keep_printf("%s.new", build[i].program);
    build[i].list = keep_printf("%s.d", build[i].program);
    unlink(build[i].program);
    build_options(&build[i], judge, false);
    if (!judge) arguments_add(&build[i].command, keep_printf("-I%s", bundle->folder));
    arguments_add3(&build[i].command, "-I.learn/pristine", "-I.", source);
    arguments_add(&build[i].command, "-o");
    arguments_add(&build[i].command, build[i].output);
  }
  if (build_ours(build, 2, &job, err) != 0) return -1;
  for (int i = 0; i < bundle->versions; i++) {
    if (bundle_link("worker", bundle_worker(bundle, i), err) != 0) return -1;
    if (bundle->version[i].first == i && bundle_link("judge", bundle_judge(bundle, i), err) != 0) return -1;
  }
  return 0;
}

#endif /* LEARN_BUNDLE_H */
