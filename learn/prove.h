/* prove.h - for authors: is an exercise complete, and does its check tell right from wrong? */
#ifndef LEARN_PROVE_H
#define LEARN_PROVE_H

#include "learn/init.h"
#include "learn/verdict.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* lint */

__attribute__((format(printf, 3, 4))) static inline void lint_say(const Exercise *exercise, int *faults,
                                                                  const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("%s: ", exercise->origin);
  vprintf(format, args);
  putchar('\n');
  va_end(args);
  ++*faults;
}

/* Is `name(` in a file of the source? */
static inline bool lint_has_word(const Source *source, const char *file, const char *name) {
  Text text = {0};
  bool found = false;
  if (text_read_file(&text, keep_printf("%s/%s", source->root, file), NULL) != 0) return false;
  const char *call = keep_printf("%s(", name);
  for (const char *c = text.bytes; (c = strstr(c, call)) != NULL && !found; c++)
    found = c == text.bytes || !(isalnum((unsigned char)c[-1]) || c[-1] == '_');
  text_free(&text);
  return found;
}

/* In the exercise's file, or, where what it asks for serves several, in another of its folder. */
static inline bool lint_has_launcher(const Source *source, const Exercise *exercise) {
  if (lint_has_word(source, exercise->file, exercise->launcher)) return true;
  size_t folder = (size_t)(strrchr(exercise->file, '/') + 1 - exercise->file);
  for (int i = 0; i < source->files; i++) {
    const char *file = source->file[i];
    if (strncmp(file, exercise->file, folder) != 0 || strchr(file + folder, '/') != NULL) continue;
    if (lint_has_word(source, file, exercise->launcher)) return true;
  }
  return false;
}

static inline void lint_exercise(const Source *source, const Exercise *exercise, int *faults) {
  if (exercise->title[0] == '\0') lint_say(exercise, faults, "no \"title:\"");
  if (strlen(exercise->title) > 70) lint_say(exercise, faults, "the title is longer than 70 characters");
  if (exercise->task[0] == '\0') lint_say(exercise, faults, "the marker in %s does not say what to do", exercise->file);
  if (exercise->next[0] == '\0') lint_say(exercise, faults, "no \"next:\", what to look at after success");
  if (exercise->check[0] == '\0')
    lint_say(exercise, faults, "no \"check: PROGRAM.cu LAUNCHER\"");
  else if (access(keep_printf("%s/%s", source->root, exercise->check), R_OK) != 0)
    lint_say(exercise, faults, "the check program %s is not there", exercise->check);
  else if (exercise->launcher[0] != '\0' && !lint_has_launcher(source, exercise))
    lint_say(exercise, faults, "check: there is no launcher %s in %s or beside it", exercise->launcher, exercise->file);
  if (exercise->hints < 3)
    lint_say(exercise, faults, "%d \"%s\" in %s; three are needed, from a nudge to nearly the answer", exercise->hints,
             region_hint, exercise->file);
  if (exercise->mutants < 3)
    lint_say(exercise, faults, "%d mutants; three are needed: what would a student get wrong?", exercise->mutants);
  if (code_same(exercise->stub, exercise->solution))
    lint_say(exercise, faults, "the stub is the solution: there is nothing left to do");
  if (exercise->broken == NULL && !code_has_todo(exercise->stub))
    lint_say(exercise, faults, "the stub has no TODO(%s), and is not \"broken:\"", exercise->name);
  if (exercise->broken != NULL && exercise->broken[0] == '\0')
    lint_say(exercise, faults, "\"broken:\" does not say how");
  for (int i = 0; i < exercise->mutants; i++) {
    const Mutant *mutant = &exercise->mutant[i];
    if (mutant->expect[0] == '\0') lint_say(exercise, faults, "mutant \"%s\" has no \"expect:\"", mutant->name);
    if (code_same(mutant->lines, exercise->solution))
      lint_say(exercise, faults, "mutant \"%s\" is the solution", mutant->name);
    for (int j = 0; j < i; j++)
      if (code_same(mutant->lines, exercise->mutant[j].lines))
        lint_say(exercise, faults, "mutants \"%s\" and \"%s\" are the same", exercise->mutant[j].name, mutant->name);
  }
  for (int i = 0; i < exercise->limits; i++) {
    const Limit *limit = &exercise->limit[i];
    const char *names[] = {limit->count, limit->per};
    for (int n = 0; n < 2; n++) {
      int known = names[n][0] == '\0';
      for (int c = 0; c < COUNTS; c++) known = known || strcmp(names[n], count_names[c]) == 0;
      if (!known) lint_say(exercise, faults, "limit: there is no count \"%s\"", names[n]);
    }
    if (limit->why[0] == '\0') lint_say(exercise, faults, "limit on %s: it does not say why", limit->count);
  }
}

/* Regions that nobody made an exercise of. */
static inline void lint_regions(const Source *source, int *faults) {
  static FoundRegion found[EXERCISES_MAX];
  Error err;
  int regions = source_regions(source, found, &err);
  for (int i = 0; i < regions; i++)
    if (exercises_named((Exercises *)&source->exercises, found[i].region.name) == NULL) {
      printf("%s:%d: exercise %s has no file exercises/NN_%s.txt beside it\n", found[i].file, found[i].region.line,
             found[i].region.name, found[i].region.name);
      ++*faults;
    }
}

static inline int command_lint(const Source *source) {
  int faults = 0;
  for (int i = 0; i < source->exercises.count; i++) lint_exercise(source, &source->exercises.item[i], &faults);
  lint_regions(source, &faults);
  if (source->exercises.count == 0) {
    printf("there are no exercises\n");
    faults++;
  }
  printf("%d exercises, %d faults\n", source->exercises.count, faults);
  return faults == 0 ? 0 : 1;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* prove */

typedef struct Proof {
  VerdictJob job;
  int failed, done;
} Proof;

static inline bool message_has(const char *message, const char *alternatives) {
  for (const char *at = alternatives; *at != '\0';) {
    size_t length = strcspn(at, "|");
    const char *one = keep_trimmed(at, 0, length);
    if (one[0] != '\0' && strcasestr(message, one) != NULL) return true;
    at += length + (at[length] == '|');
  }
  return false;
}

static inline void prove_lines(Proof *proof, const char *what, const char *lines, const char *expected) {
  Verdict verdict;
  Error err;
  double begin = seconds_now();
  proof->job.lines = lines;
  proof->done++;
  if (verdict_of(&proof->job, &verdict, &err) != 0) die("%s: %s: %s", proof->job.exercise->name, what, err.message);
  bool todo = strcmp(expected, "not implemented") == 0, right = expected[0] == '\0';
  bool ok =
      right  ? verdict.kind == VERDICT_RIGHT
      : todo ? verdict.kind == VERDICT_TODO
             : verdict.kind != VERDICT_RIGHT && verdict.kind != VERDICT_TODO && message_has(verdict.message, expected);
  printf("%s  %-24s %-40s %-16s %4.1f s\n", ok ? "ok    " : "FAILED", proof->job.exercise->name, what,
         verdict_names[verdict.kind], seconds_now() - begin);
  if (!ok)
    printf("        expected: %s\n        message: %s\n", right ? "right" : expected,
           verdict.message[0] == '\0' ? "(none)" : verdict.message);
  fflush(stdout);
  proof->failed += !ok;
}

static inline void prove_exercise(Proof *proof, const Tree *tree, const Exercise *exercise) {
  proof->job = verdict_job(tree, exercises_named((Exercises *)&tree->exercises, exercise->name), exercise->stub);
  proof->job.overlay = tree_path(tree, ".learn/build/overlay");
  proof->job.even_if_empty = true;
  prove_lines(proof, "stub", exercise->stub, exercise->broken == NULL ? "not implemented" : exercise->broken);
  prove_lines(proof, "solution", exercise->solution, "");
  for (int i = 0; i < exercise->mutants; i++)
    prove_lines(proof, keep_printf("mutant: %s", exercise->mutant[i].name), exercise->mutant[i].lines,
                exercise->mutant[i].expect);
}

/* What `nn prepare` has made of the same course elsewhere becomes this tree's: it is as new as the tree's files, and no
 * part newer than what is linked to it. */
static inline void prove_prepared(const Tree *tree, const char *prepared) {
  const char *folder = tree_path(tree, ".learn/build");
  if (rename(prepared, folder) != 0) die("%s: %s", prepared, strerror(errno));
  DIR *files = opendir(folder);
  if (files == NULL) die("%s: %s", folder, strerror(errno));
  struct timespec now[2];
  clock_gettime(CLOCK_REALTIME, &now[0]);
  now[1] = now[0];
  for (struct dirent *entry; (entry = readdir(files)) != NULL;)
    if (entry->d_name[0] != '.') utimensat(dirfd(files), entry->d_name, now, 0);
  closedir(files);
}

/* All exercises, or one; in Bazel's shards. `prepared` may be NULL. */
static inline int command_prove(Source *source, const char *name, const char *prepared) {
  static Tree tree;
  static Proof proof;
  char made[] = "/tmp/learn.XXXXXX";
  const char *backup, *folder = getenv("TEST_TMPDIR"), *shards = getenv("TEST_TOTAL_SHARDS");
  const char *shard = getenv("TEST_SHARD_INDEX"), *sharded = getenv("TEST_SHARD_STATUS_FILE");
  Error err;
  if (name != NULL && exercises_named(&source->exercises, name) == NULL) die("there is no exercise \"%s\"", name);
  if (folder == NULL && (folder = mkdtemp(made)) == NULL) die("%s: %s", made, strerror(errno));
  if (sharded != NULL && text_write_quick(sharded, "", 0, &err) != 0) die("%s", err.message);
  const char *root = keep_printf("%s/tree", folder);
  if (init_tree(source, root, false, &backup, &err) != 0 || tree_read(&tree, root, &err) != 0) die("%s", err.message);
  if (prepared != NULL) prove_prepared(&tree, prepared);
  for (int i = 0; i < source->exercises.count; i++) {
    if (name != NULL && strcmp(source->exercises.item[i].name, name) != 0) continue;
    if (name == NULL && shards != NULL && shard != NULL && i % atoi(shards) != atoi(shard)) continue;
    prove_exercise(&proof, &tree, &source->exercises.item[i]);
  }
  if (folder == made) remove_folder(folder);
  printf("%d proofs, %d failed\n", proof.done, proof.failed);
  return proof.failed == 0 ? 0 : 1;
}

#endif /* LEARN_PROVE_H */
