/* tree_cut.h - cuts a student's tree out of the course's source.
 *
 *     if (cut_tree(&source, root, &err) != 0 || cut_finish(&source, root, &err) != 0) die("%s", err.message);
 */
#ifndef LEARN_TREE_CUT_H
#define LEARN_TREE_CUT_H

#include "learn/tree.h"

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
 * compiled with the course's very options, so that Bazel finds it in the cache that the course has filled. lesson.bzl:
 * a header with exercises includes files of .learn. */
static inline const char *cut_settings(const char *text) {
  static const char error[] = "build --copt=-Werror\n", with_nvcc[] = "    args.add(\"-Werror=all-warnings\")\n";
  static const char included[] = "\n_EXERCISES = []\n";
  const char *line = strstr(text, error);
  if (line != NULL)
    text = keep_printf("%.*sbuild --per_file_copt=-(^|//)(simt|common)[/:]@-Wno-error\n%s",
                       (int)(line + strlen(error) - text), text, line + strlen(error));
  if ((line = strstr(text, included)) != NULL)
    text = keep_printf("%.*s\n_EXERCISES = [\"//.learn:exercises\"]\n%s", (int)(line - text), text,
                       line + strlen(included));
  line = strstr(text, with_nvcc);
  return line == NULL ? text : keep_printf("%.*s%s", (int)(line - text), text, line + strlen(with_nvcc));
}

/* One file of the source into the tree. */
static inline int cut_one(Source *source, const char *root, const char *file, Error *err) {
  const char *from = keep_printf("%s/%s", source->root, file), *to = keep_printf("%s/%s", root, file);
  bool exercise = cut_has_exercises(source, file);
  bool settings = strcmp(file, ".bazelrc") == 0 || starts_with(file, "tools/build/");
  bool ignored = strcmp(file, ".gitignore") == 0, hides = false;
  for (int i = 0; i < source->hiding; i++) hides = hides || strcmp(source->hides[i], file) == 0;
  if (!exercise && !settings && !ignored && !hides) return copy_file(from, to, err);
  Text text = {0};
  if (text_read_file(&text, from, err) != 0) return -1;
  const char *bytes = keep_text(&text);
  if (hides && (bytes = cut_hidden(file, bytes, root, err)) == NULL) return -1;
  if (exercise) {
    bytes = cut_file(source, file, bytes);
    if (text_write_quick(keep_printf("%s/.learn/pristine/%s", root, file), bytes, strlen(bytes), err) != 0) return -1;
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

#endif /* LEARN_TREE_CUT_H */
