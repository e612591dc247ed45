/* exercise.h - what is known about an exercise, beside its lines in the source.
 *
 * An author writes exercises/NAME.txt in a lesson's folder; NAME is that of the region in the source. The order of all
 * exercises is that of course.bzl.
 *
 *     title: One thread for each element
 *     check: phase1_building_blocks/01_vector_add/exercises/vector_add_check.cu vector_add    program and launcher
 *     next: what to look at after success
 *     limit: global_load_sectors / global_load_requests <= 4: why
 *     limit: shared_load_conflicts <= 0: why
 *     points: 10
 *     streams: yes                          checked in several orders of what streams and events leave open
 *     stub:                                 what the student starts from, instead of TODO(NAME);
 *     | int row = 0;
 *     | TODO(NAME);
 *     broken: out_of_bounds                 ships the solution with a fault to be found, which has this diagnosis
 *     - for (size_t i = first; i < n; i += stride) c[i] = a[i] + b[i];
 *     + for (size_t i = first; i <= n; i += stride) c[i] = a[i] + b[i];
 *     mutant: no bounds test                a wrong solution, to prove the check with
 *     expect: out_of_bounds | data_race     its diagnosis, one of these (expectation.h)
 *     unexplained: a hash                   why the diagnosis is no better than wrong_values
 *     - if (i < n) c[i] = a[i] + b[i];
 *     + c[i] = a[i] + b[i];
 *
 * The lines "-" are found in the solution, white space at both ends aside, and the lines "+" that follow replace them;
 * "+" alone replaces everything. A value continues in lines that begin with a space; a line with # is a comment.
 * docs/exercises_for_authors.md explains the rest.
 */
#ifndef LEARN_EXERCISE_H
#define LEARN_EXERCISE_H

#include "learn/exercise_region.h"

enum { EXERCISES_MAX = 256, EXERCISE_LIMITS = 6, EXERCISE_MUTANTS = 12 };

/* count / per <= at_most, or count <= at_most when `per` is "" */
typedef struct Limit {
  const char *count, *per, *why;
  double at_most;
} Limit;

typedef struct Mutant {
  const char *name, *expect, *lines;
  const char *unexplained; /* why its diagnosis is no better than wrong_values; "" where it is */
} Mutant;

typedef struct Exercise {
  const char *name, *title, *task;
  const char *file; /* the source that the student edits, relative to the tree */
  const char *check, *launcher, *next;
  const char *hint[REGION_HINTS];
  int hints;
  const char *stub, *solution; /* whole lines, indented as in the file */
  const char *broken;          /* what is wrong with a stub that is broken on purpose; NULL: it is a TODO */
  Limit limit[EXERCISE_LIMITS];
  int limits;
  Mutant mutant[EXERCISE_MUTANTS];
  int mutants;
  int points;
  bool streams;       /* is checked in several orders of what lies in streams */
  const char *origin; /* the author's file */
} Exercise;

typedef struct Exercises {
  Exercise item[EXERCISES_MAX];
  int count;
} Exercises;

static inline Exercise *exercises_named(Exercises *exercises, const char *name) {
  for (int i = 0; i < exercises->count; i++)
    if (strcmp(exercises->item[i].name, name) == 0) return &exercises->item[i];
  return NULL;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Edits of the solution */

typedef struct Edit {
  Text remove, add; /* lines */
} Edit;

static inline const char *edit_line(const char *bytes, size_t begin, size_t end) {
  return keep_trimmed(bytes, begin, end);
}

/* Where the lines of `sought` stand in `text`, white space at their ends aside: the offsets of the first and past the
 * last. 0 when they are not there, else how often. */
static inline int edit_find(const char *text, const char *sought, size_t *begin, size_t *end) {
  size_t length = strlen(text), wanted = strlen(sought);
  int found = 0;
  for (size_t at = 0; at < length; at = line_end(text, length, at)) {
    size_t here = at, there = 0;
    while (there < wanted && here < length) {
      size_t here_end = line_end(text, length, here), there_end = line_end(sought, wanted, there);
      if (strcmp(edit_line(text, here, here_end), edit_line(sought, there, there_end)) != 0) break;
      here = here_end;
      there = there_end;
    }
    if (there < wanted) continue;
    if (found++ == 0) {
      *begin = at;
      *end = here;
    }
  }
  return found;
}

/* Replaces in *lines; the new lines get the indent of the old. */
static inline int edit_apply(const Edit *edit, const char **lines, const char *where, Error *err) {
  const char *text = *lines, *added = edit->add.bytes != NULL ? edit->add.bytes : "";
  size_t begin = 0, end = strlen(text);
  if (edit->remove.length > 0) {
    int found = edit_find(text, edit->remove.bytes, &begin, &end);
    if (found != 1)
      return error_set(err, "%s: the lines \"-\" are %s of the exercise; they begin with \"%s\"", where,
                       found == 0 ? "not in the solution" : "more than once in the solution",
                       edit_line(edit->remove.bytes, 0, line_end(edit->remove.bytes, edit->remove.length, 0)));
  }
  size_t indent = begin;
  while (text[indent] == ' ') indent++;
  Text out = {0};
  text_append(&out, text, begin);
  for (size_t at = 0, length = strlen(added); at < length;) {
    size_t stop = line_end(added, length, at);
    text_printf(&out, "%*s%.*s", (int)(indent - begin), "", (int)(stop - at), added + at);
    at = stop;
  }
  text_add(&out, text + end);
  *lines = keep_text(&out);
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The author's file */

typedef struct ExerciseReader {
  Exercise *exercise;
  const char *path;
  int line;
  Edit edit;
  enum { READS_NOTHING, READS_STUB, READS_BROKEN, READS_MUTANT } target;
  const char **lines; /* what the edit is for: the stub, or a mutant's lines */
} ExerciseReader;

/* A hunk is complete: "-" lines, then "+" lines. */
static inline int reader_end_hunk(ExerciseReader *reader, Error *err) {
  if (reader->edit.remove.length == 0 && reader->edit.add.length == 0) return 0;
  const char *where = keep_printf("%s:%d", reader->path, reader->line - 1);
  int status = edit_apply(&reader->edit, reader->lines, where, err);
  text_free(&reader->edit.remove);
  text_free(&reader->edit.add);
  return status;
}

static inline int read_limit(Limit *limit, const char *value, const char *where, Error *err) {
  char count[64], per[64] = "";
  double at_most;
  int used = 0;
  if (sscanf(value, "%63[a-z_] / %63[a-z_] <= %lf:%n", count, per, &at_most, &used) < 3 || used == 0) {
    per[0] = '\0';
    if (sscanf(value, "%63[a-z_] <= %lf:%n", count, &at_most, &used) < 2 || used == 0)
      return error_set(err, "%s: expected \"limit: COUNT / COUNT <= NUMBER: why\" or \"limit: COUNT <= NUMBER: why\"",
                       where);
  }
  limit->count = keep(count);
  limit->per = keep(per);
  limit->at_most = at_most;
  limit->why = keep_trimmed(value, (size_t)used, strlen(value));
  return 0;
}

/* "key: value" */
static inline int read_key(ExerciseReader *reader, const char *key, const char *value, Error *err) {
  Exercise *exercise = reader->exercise;
  const char *where = keep_printf("%s:%d", reader->path, reader->line);
  reader->target = READS_NOTHING;
  if (strcmp(key, "title") == 0) {
    exercise->title = keep(value);
  } else if (strcmp(key, "check") == 0) {
    char program[PATH_MAX], launcher[128];
    if (sscanf(value, "%4000s %127s", program, launcher) != 2)
      return error_set(err, "%s: expected \"check: PROGRAM.cu LAUNCHER\"", where);
    exercise->check = keep(program);
    exercise->launcher = keep(launcher);
  } else if (strcmp(key, "next") == 0) {
    exercise->next = keep(value);
  } else if (strcmp(key, "points") == 0) {
    char *end;
    long points = strtol(value, &end, 10);
    if (end == value || *end != '\0' || points < 1 || points > 1000)
      return error_set(err, "%s: points: a whole number from 1 to 1000 is expected", where);
    exercise->points = (int)points;
  } else if (strcmp(key, "streams") == 0) {
    if (strcmp(value, "yes") != 0) return error_set(err, "%s: streams: yes is expected, or no such line", where);
    exercise->streams = true;
  } else if (strcmp(key, "limit") == 0) {
    if (exercise->limits == EXERCISE_LIMITS) return error_set(err, "%s: more than %d limits", where, EXERCISE_LIMITS);
    return read_limit(&exercise->limit[exercise->limits++], value, where, err);
  } else if (strcmp(key, "stub") == 0) {
    exercise->stub = keep("");
    reader->target = READS_STUB;
  } else if (strcmp(key, "broken") == 0) {
    exercise->broken = keep(value);
    exercise->stub = exercise->solution;
    reader->lines = &exercise->stub;
    reader->target = READS_BROKEN;
  } else if (strcmp(key, "mutant") == 0) {
    if (exercise->mutants == EXERCISE_MUTANTS)
      return error_set(err, "%s: more than %d mutants", where, EXERCISE_MUTANTS);
    Mutant *mutant = &exercise->mutant[exercise->mutants++];
    mutant->name = keep(value);
    mutant->expect = mutant->unexplained = "";
    mutant->lines = exercise->solution;
    reader->lines = &mutant->lines;
    reader->target = READS_MUTANT;
  } else if (strcmp(key, "expect") == 0 && exercise->mutants > 0) {
    exercise->mutant[exercise->mutants - 1].expect = keep(value);
    reader->target = READS_MUTANT;
  } else if (strcmp(key, "unexplained") == 0 && exercise->mutants > 0) {
    exercise->mutant[exercise->mutants - 1].unexplained = keep(value);
    reader->target = READS_MUTANT;
  } else {
    return error_set(err,
                     "%s: \"%s:\" is not known; title, check, next, limit, points, streams, stub, broken, mutant, "
                     "expect and unexplained are",
                     where, key);
  }
  return 0;
}

static inline int read_line(ExerciseReader *reader, const char *indent, const char *line, Error *err) {
  const char *where = keep_printf("%s:%d", reader->path, reader->line);
  char kind = line[0];
  const char *rest = kind == '\0' ? "" : line[1] == ' ' ? line + 2 : line + 1;
  bool edits = reader->target == READS_BROKEN || reader->target == READS_MUTANT;
  if ((kind == '-' || kind == '+') && !edits)
    return error_set(err, "%s: a line \"%c\" belongs below \"broken:\" or \"mutant:\"", where, kind);
  if (kind == '-') {
    if (reader->edit.add.length > 0 && reader_end_hunk(reader, err) != 0) return -1;
    text_printf(&reader->edit.remove, "%s\n", rest);
    return 0;
  }
  if (kind == '+') {
    text_printf(&reader->edit.add, "%s\n", rest);
    return 0;
  }
  if (reader_end_hunk(reader, err) != 0) return -1;
  if (kind == '|') {
    if (reader->target != READS_STUB) return error_set(err, "%s: a line \"|\" belongs below \"stub:\"", where);
    reader->exercise->stub = keep_printf("%s%s%s\n", reader->exercise->stub, indent, rest);
    return 0;
  }
  size_t key = strspn(line, "abcdefghijklmnopqrstuvwxyz");
  if (kind == '\0' || kind == '#') return 0;
  if (key == 0 || line[key] != ':')
    return error_set(err, "%s: expected \"key: value\", or a line that begins with # | - or +", where);
  return read_key(reader, keep_bytes(line, key), keep_trimmed(line, key + 1, strlen(line)), err);
}

/* The exercise's name from "phase1_building_blocks/01_vector_add/exercises/vector_add_index.txt"; NULL: this is no such
 * file. */
static inline const char *exercise_name_of(const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash == NULL ? path : slash + 1;
  if (!ends_with(path, ".txt") || strstr(path, "/exercises/") == NULL) return NULL;
  return keep_bytes(base, strlen(base) - strlen(".txt"));
}

/* Reads the author's file. The region, with solution and hints, is that of `file`. */
static inline int exercise_read(Exercise *exercise, const char *path, const char *text, const char *file,
                                const char *source, const Region *region, Error *err) {
  memset(exercise, 0, sizeof *exercise);
  exercise->name = exercise_name_of(path);
  exercise->title = exercise->check = exercise->launcher = exercise->next = "";
  exercise->task = region->task;
  exercise->file = keep(file);
  exercise->origin = keep(path);
  exercise->points = 10;
  exercise->hints = region->hints;
  memcpy(exercise->hint, region->hint, sizeof exercise->hint);
  exercise->solution = region_lines(source, region);
  const char *indent = region_indent(source, region);
  exercise->stub = keep_printf("%sTODO(%s);  // your lines here, instead of this one\n", indent, exercise->name);

  ExerciseReader reader;
  memset(&reader, 0, sizeof reader);
  reader.exercise = exercise;
  reader.path = path;
  int status = 0;
  for (size_t at = 0, length = strlen(text); at < length && status == 0;) {
    size_t end = line_end(text, length, at);
    Text line = {0};
    text_add(&line, keep_trimmed(text, at, end));
    reader.line++;
    while (islower((unsigned char)text[at]) && end < length && text[end] == ' ') { /* goes on in the next line */
      size_t next = line_end(text, length, end);
      text_printf(&line, " %s", keep_trimmed(text, end, next));
      reader.line++;
      end = next;
    }
    status = read_line(&reader, indent, line.bytes, err);
    text_free(&line);
    at = end;
  }
  reader.line++;
  if (status == 0) status = reader_end_hunk(&reader, err);
  text_free(&reader.edit.remove);
  text_free(&reader.edit.add);
  return status;
}

#endif /* LEARN_EXERCISE_H */
