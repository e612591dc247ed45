/* exercise_proof.h - for authors: is an exercise complete, and does its check tell right from wrong? */
#ifndef LEARN_EXERCISE_PROOF_H
#define LEARN_EXERCISE_PROOF_H

#include "learn/bundle.h"
#include "learn/expectation.h"
#include "learn/init.h"
#include "learn/solution_leaks.h"
#include "learn/verdict.h"

#include <sys/resource.h>

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

/* In the exercise's file or in its check program, or, where what it asks for serves several, in another of its
 * folder. */
static inline bool lint_has_launcher(const Source *source, const Exercise *exercise) {
  if (lint_has_word(source, exercise->file, exercise->launcher) ||
      lint_has_word(source, exercise->check, exercise->launcher))
    return true;
  size_t folder = (size_t)(strrchr(exercise->file, '/') + 1 - exercise->file);
  for (int i = 0; i < source->files; i++) {
    const char *file = source->file[i];
    if (strncmp(file, exercise->file, folder) != 0 || strchr(file + folder, '/') != NULL) continue;
    if (lint_has_word(source, file, exercise->launcher)) return true;
  }
  return false;
}

/* Which expectations cannot be met, for they name no diagnosis: their number. */
static inline int lint_expectations(const Exercise *exercise, int *faults) {
  const int before = *faults;
  const char *problem = exercise->broken == NULL ? NULL : expectation_problem(exercise->broken);
  if (problem != NULL) lint_say(exercise, faults, "broken: %s", problem);
  for (int i = 0; i < exercise->mutants; i++) {
    const Mutant *mutant = &exercise->mutant[i];
    problem = mutant->expect[0] == '\0' ? NULL : expectation_problem(mutant->expect);
    if (problem != NULL) lint_say(exercise, faults, "mutant \"%s\": expect: %s", mutant->name, problem);
  }
  return *faults - before;
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
  for (int i = 0; i < exercise->mutants; i++) {
    const Mutant *mutant = &exercise->mutant[i];
    if (mutant->expect[0] == '\0') lint_say(exercise, faults, "mutant \"%s\" has no \"expect:\"", mutant->name);
    if (expectation_names_one(mutant->expect, DIAGNOSIS_WRONG_VALUES) && mutant->unexplained[0] == '\0')
      lint_say(exercise, faults,
               "mutant \"%s\" expects wrong_values, which does not help a student: expect a better diagnosis, or say "
               "\"unexplained: why\"",
               mutant->name);
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
static inline void lint_regions(Source *source, int *faults) {
  static FoundRegion found[EXERCISES_MAX];
  Error err;
  int regions = source_regions(source, found, &err);
  for (int i = 0; i < regions; i++)
    if (exercises_named((Exercises *)&source->exercises, found[i].region.name) == NULL) {
      printf("%s:%d: exercise %s has no file exercises/%s.txt in its lesson's folder\n", found[i].file,
             found[i].region.line, found[i].region.name, found[i].region.name);
      ++*faults;
    }
}

/* Solutions that a student need not write: they stand elsewhere. */
static inline void lint_seen(Source *source, int *faults) {
  Tokens *seen = leaks_read(source);
  for (int i = 0; i < source->exercises.count; i++) {
    const char *where = leaks_elsewhere(source, seen, &source->exercises.item[i]);
    if (where != NULL)
      lint_say(&source->exercises.item[i], faults,
               "%s of the solution can be read there; put \"%s %s\" and \"%s\" round them", where, hidden_open,
               source->exercises.item[i].name, hidden_close);
  }
  leaks_free(source, seen);
}

static inline int command_lint(Source *source) {
  int faults = 0, unreadable = 0;
  for (int i = 0; i < source->exercises.count; i++) {
    lint_exercise(source, &source->exercises.item[i], &faults);
    unreadable += lint_expectations(&source->exercises.item[i], &faults);
  }
  lint_regions(source, &faults);
  lint_seen(source, &faults);
  if (source->exercises.count == 0) {
    printf("there are no exercises\n");
    faults++;
  }
  printf("%d exercises, %d faults\n", source->exercises.count, faults);
  if (unreadable > 0) {
    printf("the diagnoses that \"expect:\" and \"broken:\" may name:\n");
    expectation_print_names();
  }
  return faults == 0 ? 0 : 1;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* prove */

/* Together: the versions of many exercises are compiled at once (bundle.h), but for those of the course's first, which
 * go the way of a student's check. Quick is that, with the solution, the stub and the first mutant of the author's file
 * and with one order of the threads; of one exercise all mutants. */
enum { PROVE_QUICK = 3, PROVE_BUNDLE = 11, PROVE_VERSIONS = 22 }; /* of all mutants; a compiler has two minutes */

typedef struct Proof {
  const Tree *tree;
  VerdictJob job;
  Measured reference; /* what the solution costs */
  int failed, done, alone;
  bool quick, together, named; /* named: of one exercise the author reads what is said of each mutant */
} Proof;

typedef struct ProofCase {
  const char *what, *lines, *expected; /* expected: "" when it is right */
} ProofCase;

static inline int prove_cases(const Proof *proof, const Exercise *exercise) {
  return proof->quick && !proof->named && exercise->mutants > 1 ? PROVE_QUICK : 2 + exercise->mutants;
}

static inline ProofCase prove_case(const Exercise *exercise, int i) {
  if (i == 0) return (ProofCase){"solution", exercise->solution, ""};
  if (i == 1)
    return (ProofCase){"stub", exercise->stub,
                       exercise->broken == NULL ? diagnosis_name(DIAGNOSIS_NOT_IMPLEMENTED) : exercise->broken};
  const Mutant *mutant = &exercise->mutant[i - 2];
  return (ProofCase){keep_printf("mutant: %s", mutant->name), mutant->lines, mutant->expect};
}

/* Of the processors' time, of all that was compiled and run so far. */
static inline double prove_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_CHILDREN, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Is the verdict the one that is expected? */
static inline bool prove_try(Proof *proof, const ProofCase *one, Verdict *verdict) {
  Error err;
  proof->job.lines = one->lines;
  if (verdict_of(&proof->job, verdict, &err) != 0) die("%s: %s: %s", proof->job.exercise->name, one->what, err.message);
  const bool right = verdict->kind == VERDICT_RIGHT;
  return one->expected[0] == '\0' ? right : !right && expectation_met(one->expected, verdict);
}

/* What an author may expect of it. */
static inline const char *prove_diagnosis(const Verdict *verdict) {
  char names[DIAGNOSES_TEXT];
  Diagnoses all = verdict->found;
  diagnoses_add(&all, verdict_diagnosis(verdict));
  return keep(diagnoses_text(&all, names, sizeof names));
}

static inline void prove_one(Proof *proof, const ProofCase one) {
  Verdict verdict;
  double begin = prove_seconds();
  proof->done++;
  proof->job.orders = proof->quick ? 1 : 0;
  bool ok = prove_try(proof, &one, &verdict);
  if (!ok && proof->quick) { /* it may be wrong in another order of the threads only */
    proof->job.orders = 0;
    ok = prove_try(proof, &one, &verdict);
  }
  printf("%s  %-24s %-40s %-16s %5.2f s\n", ok ? "ok    " : "FAILED", proof->job.exercise->name, one.what,
         verdict_names[verdict.kind], prove_seconds() - begin);
  if (!ok)
    printf("        expected: %s\n        diagnosis: %s\n        message: %s\n",
           one.expected[0] == '\0' ? "right" : one.expected, prove_diagnosis(&verdict),
           verdict.message[0] == '\0' ? "(none)" : verdict.message);
  else if (proof->named && verdict.message[0] != '\0')
    printf("        diagnosis: %s\n        %s\n", prove_diagnosis(&verdict), verdict.message);
  fflush(stdout);
  proof->failed += !ok;
  if (one.expected[0] == '\0') proof->reference = verdict.yours;
}

/* The exercise as the tree has it: without solution and mutants, and with its check program's place there. */
static inline const Exercise *prove_cut(const Proof *proof, const Exercise *exercise) {
  return exercises_named((Exercises *)&proof->tree->exercises, exercise->name);
}

static inline void prove_job(Proof *proof, const Exercise *exercise, const char *overlay) {
  proof->job = verdict_job(proof->tree, prove_cut(proof, exercise), "");
  proof->job.overlay = overlay;
  proof->job.even_if_empty = true;
}

static inline void prove_exercise(Proof *proof, const Exercise *exercise) {
  prove_job(proof, exercise, tree_path(proof->tree, ".learn/build/overlay"));
  for (int i = 0; i < prove_cases(proof, exercise); i++) prove_one(proof, prove_case(exercise, i));
}

/* Exercises compiled together; when one of them does not compile so, in halves, and at last by itself. */
static inline void prove_bundle(Proof *proof, const Exercise *exercise, int count) {
  static Bundle bundle;
  Error err;
  int number = 0;
  double begin = prove_seconds();
  bundle_begin(&bundle, proof->tree);
  for (int e = 0; e < count; e++)
    for (int i = 0; i < prove_cases(proof, &exercise[e]); i++)
      bundle_add(&bundle, prove_cut(proof, &exercise[e]), prove_case(&exercise[e], i).lines);
  if (bundle_compile(&bundle, &err) != 0) {
    printf("alone   %s\n", err.message);
    if (count > 1) prove_bundle(proof, exercise, count / 2);
    if (count > 1) prove_bundle(proof, exercise + count / 2, count - count / 2);
    if (count > 1) return;
    proof->alone++;
    prove_exercise(proof, exercise);
    return;
  }
  printf("        %d exercises compiled together %41.2f s\n", count, prove_seconds() - begin);
  for (int e = 0; e < count; e++) {
    prove_job(proof, &exercise[e], bundle.folder);
    for (int i = 0; i < prove_cases(proof, &exercise[e]); i++, number++) {
      proof->job.judge = bundle_judge(&bundle, number);
      proof->job.worker = bundle_worker(&bundle, number);
      proof->job.reference = i == 0 ? NULL : &proof->reference;
      prove_one(proof, prove_case(&exercise[e], i));
    }
  }
}

/* How many exercises from this one on are compiled together. */
static inline int prove_bundled(const Proof *proof, const Source *source, int first) {
  int count = 0, versions = 0;
  for (; first + count < source->exercises.count && count < PROVE_BUNDLE; count++) {
    versions += prove_cases(proof, &source->exercises.item[first + count]);
    if (count > 0 && !proof->quick && versions > PROVE_VERSIONS) break;
  }
  return count;
}

/* All exercises, or one; in Bazel's shards. */
static inline int command_prove(Source *source, const char *name, bool quick, bool together) {
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
  proof.tree = &tree;
  proof.quick = quick;
  proof.together = quick || together;
  proof.named = name != NULL;
  const int exercises = source->exercises.count;
  for (int i = 0, turn = 0, count; i < exercises; i += count, turn++) {
    const Exercise *exercise = &source->exercises.item[i];
    count = name != NULL || i == 0 || !proof.together ? 1 : prove_bundled(&proof, source, i);
    if (name != NULL && strcmp(exercise->name, name) != 0) continue;
    if (name == NULL && shards != NULL && shard != NULL && turn % atoi(shards) != atoi(shard)) continue;
    if (proof.together && (i > 0 || name != NULL))
      prove_bundle(&proof, exercise, count);
    else
      prove_exercise(&proof, exercise);
  }
  if (folder == made) remove_folder(folder);
  printf("%d proofs, %d failed", proof.done, proof.failed);
  if (proof.together) printf("; %d exercises had to be compiled alone", proof.alone);
  putchar('\n');
  return proof.failed == 0 ? 0 : 1;
}

#endif /* LEARN_EXERCISE_PROOF_H */
