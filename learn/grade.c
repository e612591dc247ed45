/* grade - what students have handed in.
 *
 *     bazel run //learn:grade -- ~/handed_in/alice ~/handed_in/bob
 *
 * Of each folder only the lines of the exercises are taken. They are pasted into a pristine tree, compiled and run in a
 * sandbox, and judged outside of it on inputs from a secret seed: what a submission does to its copy of the course, to
 * its program or to the machine changes nothing but its own verdict. docs/grading.md tells more.
 *
 * All submissions are read first. The same lines are graded once, for whoever handed them in; each unit of that work is
 * a process of its own (pool.h), several at a time.
 */
#include "common/progress.h"
#include "learn/forbidden_code.h"
#include "learn/grader_cache.h"
#include "learn/pool.h"
#include "learn/report.h"

#include <sys/random.h>

typedef struct Options {
  const char *source, *only, *cache, *csv, *csv_exercises, *json, *junit, *gradescope, *classroom50;
  const char *folder[SUBMISSIONS_MAX];
  int folders, jobs;
  double seconds, minutes;
  bool trust, prepare;
} Options;

enum {
  OPTION_CSV = 256,
  OPTION_CSV_EXERCISES,
  OPTION_RESULTS,
  OPTION_JUNIT,
  OPTION_GRADESCOPE,
  OPTION_CLASSROOM50,
  OPTION_TRUST,
  OPTION_ONLY,
  OPTION_SECONDS,
  OPTION_MINUTES,
  OPTION_CACHE,
  OPTION_PREPARE,
  OPTION_SOURCE
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case OPTION_CSV:
      options->csv = arg;
      return 0;
    case OPTION_CSV_EXERCISES:
      options->csv_exercises = arg;
      return 0;
    case OPTION_RESULTS:
      options->json = arg;
      return 0;
    case OPTION_JUNIT:
      options->junit = arg;
      return 0;
    case OPTION_GRADESCOPE:
      options->gradescope = arg;
      return 0;
    case OPTION_CLASSROOM50:
      options->classroom50 = arg;
      return 0;
    case OPTION_TRUST:
      options->trust = true;
      return 0;
    case OPTION_ONLY:
      options->only = arg;
      return 0;
    case 'j':
      options->jobs = (int)option_int(state, arg, "--jobs", 1, POOL_SLOTS);
      return 0;
    case OPTION_SECONDS:
      options->seconds = option_float(state, arg, "--seconds", 1, 600);
      return 0;
    case OPTION_MINUTES:
      options->minutes = option_float(state, arg, "--minutes", 0.01, 1e6);
      return 0;
    case OPTION_CACHE:
      options->cache = arg;
      return 0;
    case OPTION_PREPARE:
      options->prepare = true;
      return 0;
    case OPTION_SOURCE:
      options->source = arg;
      return 0;
    case ARGP_KEY_ARG:
      if (options->folders == SUBMISSIONS_MAX) argp_error(state, "more than %d submissions", SUBMISSIONS_MAX);
      options->folder[options->folders++] = arg;
      return 0;
    case ARGP_KEY_NO_ARGS:
      if (!options->prepare) argp_error(state, "which submissions? give their folders");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* Lines to be graded, once for all submissions that have them. */
typedef struct Unit {
  const Exercise *exercise;
  Written written;
  uint64_t hash;
  int next;  /* of the same place in `units` below; -1: none */
  int twin;  /* the first unit with the same lines at another place of the file; -1: none */
  int owner; /* the submission on whose account it is graded */
  enum { UNIT_WAITS, UNIT_RUNS, UNIT_DONE } state;
  Verdict verdict;
  double seconds;
} Unit;

/* What all of this file works on. */
static struct {
  Options options;
  Tree tree;
  Report report;
  Unit *unit;
  int units, capacity;
  int place[1 << 14];                 /* of `unit` by hash; 0: none, else its number + 1 */
  const char *trouble[EXERCISES_MAX]; /* NULL, or why nobody's lines can be judged */
  bool needed[EXERCISES_MAX];         /* some lines are to be judged */
  const char *check[EXERCISES_MAX];   /* the programs that are needed for that */
  Pool pool;
  bool gpu;
  char work[PATH_MAX]; /* the temporary folder */
  pid_t pid;
} all;

/* Ctrl-C: what has been graded is reported, the temporary folder goes. */
static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = number; }
static bool was_stopped(void *context) {
  (void)context;
  return stopped != 0;
}
static const char when_stopped[] = "grading was stopped before its end";

static void remove_work(void) {
  if (getpid() == all.pid) remove_folder(all.work); /* not a unit that ends */
}

static bool wanted(const char *name) {
  if (all.options.only == NULL) return true;
  for (const char *at = all.options.only; *at != '\0';) {
    size_t length = strcspn(at, ",");
    if (strlen(name) == length && strncmp(at, name, length) == 0) return true;
    at += length + (at[length] == ',');
  }
  return false;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Reading what was handed in */

/* Reads a file of the submission, once and for all: whoever exchanges it for a link meanwhile gains nothing. NULL, or
 * why not. */
static const char *read_submitted(const char *submission, const char *file, Text *text) {
  enum { MOST = 1 << 20 };
  char folder[PATH_MAX], path[PATH_MAX];
  struct stat info;
  int fd = open(keep_printf("%s/%s", submission, file), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return keep_printf("%s is gone", file);
  if (fd < 0) return keep_printf("cannot read %s: %s", file, strerror(errno));
  const char *problem = NULL;
  ssize_t length = readlink(keep_printf("/proc/self/fd/%d", fd), path, sizeof path - 1); /* where it really lies */
  path[length > 0 ? length : 0] = '\0';
  if (realpath(submission, folder) == NULL || !starts_with(path, keep_printf("%s/", folder)))
    problem = keep_printf("%s is a link that leads out of the submission", file);
  else if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MOST)
    problem = keep_printf("%s is not a file of at most %d MB", file, MOST >> 20);
  if (problem == NULL) {
    char *bytes = (char *)xmalloc(MOST);
    length = 0;
    for (ssize_t got; length < MOST && (got = read(fd, bytes + length, (size_t)(MOST - length))) > 0;) length += got;
    text_append(text, bytes, (size_t)length);
    free(bytes);
  }
  close(fd);
  return problem;
}

/* Copies it to `to`. NULL, or why not. */
static const char *take_copy(const char *submission, const char *file, const char *to) {
  Text text = {0};
  Error err;
  const char *problem = read_submitted(submission, file, &text);
  if (problem == NULL && text_write_quick(to, text.length > 0 ? text.bytes : "", text.length, &err) != 0)
    problem = keep(err.message);
  text_free(&text);
  return problem;
}

static int is_header(const struct dirent *entry) { return entry->d_name[0] != '.' && ends_with(entry->d_name, ".cuh"); }

/* The submission's file with this exercise. In trees that were made before each lesson had a folder, it stands in the
 * phase's folder, and some had other names: the one that has the exercise's marker. */
static const char *submitted_file(const char *submission, const Exercise *exercise) {
  enum { LOOKED_AT = 100 };
  struct stat info;
  struct dirent **entry;
  const char *found = NULL, *marker = keep_printf("%s %s:", region_open, exercise->name);
  if (lstat(keep_printf("%s/%s", submission, exercise->file), &info) == 0) return exercise->file;
  const char *phase = keep_bytes(exercise->file, strcspn(exercise->file, "/"));
  int entries = scandir(keep_printf("%s/%s", submission, phase), &entry, is_header, alphasort);
  for (int e = 0; e < entries; e++) {
    Text text = {0};
    const char *file = keep_printf("%s/%s", phase, entry[e]->d_name);
    if (found == NULL && e < LOOKED_AT && read_submitted(submission, file, &text) == NULL && text.length > 0 &&
        strstr(text.bytes, marker) != NULL)
      found = file;
    text_free(&text);
    free(entry[e]);
  }
  if (entries >= 0) free(entry);
  return found != NULL ? found : exercise->file;
}

/* The work for these lines, which may be there already. */
static int unit_for(const Exercise *exercise, const Written *written) {
  uint64_t hash = hash_of(HASH_BEGIN, exercise->name, strlen(exercise->name) + 1);
  hash = hash_of(hash, written->lines, strlen(written->lines) + 1);
  hash = hash_of(hash, written->helpers, strlen(written->helpers) + 1);
  int *place = &all.place[hash % (sizeof all.place / sizeof *all.place)], twin = -1;
  for (int i = *place - 1; i >= 0; i = all.unit[i].next) {
    const Unit *unit = &all.unit[i];
    if (unit->hash != hash || unit->exercise != exercise || strcmp(unit->written.lines, written->lines) != 0 ||
        strcmp(unit->written.helpers, written->helpers) != 0)
      continue;
    if (unit->written.line == written->line && unit->written.helpers_line == written->helpers_line) return i;
    twin = unit->twin >= 0 ? unit->twin : i;
  }
  if (all.units == all.capacity) {
    all.capacity = 2 * all.capacity + 256;
    all.unit = (Unit *)realloc(all.unit, (size_t)all.capacity * sizeof *all.unit);
    if (all.unit == NULL) die("out of memory for %d exercises", all.capacity);
  }
  Unit *unit = &all.unit[all.units++];
  memset(unit, 0, sizeof *unit);
  unit->exercise = exercise;
  unit->written = *written;
  unit->written.text = NULL;
  unit->written.lines = keep(written->lines);
  unit->written.helpers = keep(written->helpers);
  unit->hash = hash;
  unit->next = *place - 1;
  unit->twin = twin;
  *place = all.units;
  all.needed[exercise - all.tree.exercises.item] = true;
  return all.units - 1;
}

/* Whose message it is, lives on when all else that reading has kept goes. */
static void grade_decide(Grade *grade, VerdictKind kind, const char *message) {
  grade->decided = true;
  grade->verdict.kind = kind;
  grade->verdict.message = message;
}

/* Either what is to be done for this exercise, or what is known without: a message that is to be kept, or NULL. */
static const char *take_exercise(const Submission *submission, const Exercise *exercise, Grade *grade,
                                 Written *written) {
  Tree theirs;
  Error err;
  memset(&theirs, 0, sizeof theirs);
  theirs.root = keep_printf("%s/handed_in", all.work);
  Exercise their = *exercise;
  their.file = submitted_file(submission->path, exercise);
  const char *problem = take_copy(submission->path, their.file, tree_path(&theirs, their.file));
  if (problem != NULL) return problem;
  grade->handed_in = true;
  if (tree_written(&theirs, &their, written, &err) != 0) {
    error_drop_advice(&err); /* `./nn reset` and `./nn restore` are the student's */
    grade->verdict.kind = VERDICT_REFUSED;
    return keep(err.message);
  }
  if (code_same(written->lines, exercise->stub) || code_is_empty(written->lines)) return "not implemented";
  const char *refused = forbidden_written(written->lines, written->line, written->helpers, written->helpers_line);
  if (refused != NULL) grade->verdict.kind = VERDICT_REFUSED;
  return refused;
}

/* Does the folder hold a file with an exercise? */
static bool is_submission(const Exercises *exercises, const char *folder) {
  Kept *then = kept_strings;
  bool found = false;
  for (int i = 0; i < exercises->count && !found; i++)
    found = access(keep_printf("%s/%s", folder, submitted_file(folder, &exercises->item[i])), F_OK) == 0;
  keep_only(then);
  return found;
}

/* The folders in this one that are submissions: how many, and the first few, by name. */
enum { BELOW_SHOWN = 4 };
static int submissions_below(const Exercises *exercises, const char *folder, const char *below[BELOW_SHOWN]) {
  struct dirent **entry;
  int found = 0, entries = scandir(folder, &entry, NULL, alphasort);
  for (int e = 0; e < entries; e++) {
    const char *path = keep_printf("%s/%s", folder, entry[e]->d_name);
    if (entry[e]->d_name[0] != '.' && is_submission(exercises, path) && found++ < BELOW_SHOWN) below[found - 1] = path;
    free(entry[e]);
  }
  if (entries >= 0) free(entry);
  return found;
}

/* None of the course's files is there: is the tree one folder further down, as archives often have it? */
static const char *submission_is_empty(const Submission *submission) {
  const Exercises *exercises = &all.tree.exercises;
  const char *below[BELOW_SHOWN];
  if (is_submission(exercises, submission->path)) return NULL;
  const int found = submissions_below(exercises, submission->path, below);
  return keep_printf("there is no file of the course in it, such as %s%s", exercises->item[0].file,
                     found == 0 ? "" : keep_printf("; is %s meant?", below[0]));
}

static void take_submission(Submission *submission) {
  submission->grade = (Grade *)xcalloc((size_t)all.tree.exercises.count, sizeof *submission->grade);
  submission->problem = submission_is_empty(submission);
  for (int i = 0; i < all.tree.exercises.count && stopped == 0; i++) {
    const Exercise *exercise = &all.tree.exercises.item[i];
    if (!wanted(exercise->name)) continue;
    Grade *grade = &submission->grade[submission->grades++];
    Kept *then = kept_strings;
    Written written;
    grade->exercise = exercise;
    grade->unit = -1;
    grade->verdict.kind = VERDICT_TODO;
    const char *message =
        submission->problem != NULL ? submission->problem : take_exercise(submission, exercise, grade, &written);
    if (message == NULL) {
      char *lines = strdup(written.lines), *helpers = strdup(written.helpers);
      if (lines == NULL || helpers == NULL) die("out of memory");
      written.lines = lines;
      written.helpers = helpers;
      keep_only(then); /* the whole file, for one */
      grade->unit = unit_for(exercise, &written);
      free(lines);
      free(helpers);
    } else {
      char *copy = strdup(message);
      if (copy == NULL) die("out of memory");
      keep_only(then);
      grade_decide(grade, grade->verdict.kind, keep(copy));
      free(copy);
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The grader's own judges */

typedef struct Trouble {
  int exercise;
  Error err;
} Trouble;

static void work_judges(int piece, int slot, FILE *result, void *context) {
  (void)slot;
  (void)context;
  for (int i = 0; i < all.tree.exercises.count; i++) {
    const Exercise *exercise = &all.tree.exercises.item[i];
    Trouble trouble;
    memset(&trouble, 0, sizeof trouble);
    trouble.exercise = i;
    if (!all.needed[i] || strcmp(exercise->check, all.check[piece]) != 0) continue;
    if (grader_cache_make(&all.tree, exercise, all.gpu, was_stopped, &trouble.err) == 0) trouble.exercise = -1;
    fwrite(&trouble, sizeof trouble, 1, result);
  }
}

/* GraderCache and references of the exercises that are needed; most of the time they are there already. */
static void make_judges(void) {
  const Exercises *exercises = &all.tree.exercises;
  int checks = 0, started = 0, ended = 0;
  Progress progress;
  PoolDone done;
  Error err;
  for (int i = 0; i < exercises->count; i++) {
    int c = 0;
    while (c < checks && strcmp(all.check[c], exercises->item[i].check) != 0) c++;
    if (all.needed[i] && c == checks) all.check[checks++] = exercises->item[i].check;
  }
  if (checks > 0 && grader_cache_warm(&all.tree, &err) != 0) die("%s", err.message); /* first: all others use it */
  progress_begin(&progress, "judges", "judges", 0, checks);
  while (stopped == 0 ? ended < checks : all.pool.running > 0) {
    while (started < checks && stopped == 0 && pool_has_room(&all.pool)) {
      if (pool_start(&all.pool, started, work_judges, NULL, &err) != 0) die("%s", err.message);
      started++;
    }
    if (stopped != 0) pool_signal(&all.pool, SIGTERM);
    if (!pool_wait(&all.pool, 0.2, &done)) continue;
    ended++;
    const Trouble *trouble = (const Trouble *)done.result;
    int told = (int)(done.length / sizeof *trouble);
    for (int i = 0; i < told; i++)
      if (trouble[i].exercise >= 0) all.trouble[trouble[i].exercise] = keep(trouble[i].err.message);
    for (int i = 0; i < exercises->count && done.status != 0; i++)
      if (strcmp(exercises->item[i].check, all.check[done.piece]) == 0)
        all.trouble[i] = keep_printf("its judge was not made: the process for that ended with %d", done.status);
    free(done.result);
    progress_update(&progress, ended, "%s", strrchr(all.check[done.piece], '/') + 1);
  }
  progress_end(&progress);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Grading */

enum { MESSAGE_MOST = 8 << 10 }; /* a compiler may say more than anybody reads */

/* In a process of its own. The verdict goes back as it is, then its message. */
static void work_unit(int piece, int slot, FILE *result, void *context) {
  const Unit *unit = &all.unit[piece];
  const char *scratch = keep_printf("%s/slot%d", all.work, slot);
  Verdict verdict;
  Error err;
  (void)context;
  VerdictJob job = verdict_job_written(&all.tree, unit->exercise, &unit->written);
  job.overlay = keep_printf("%s/overlay", scratch);
  job.scratch = scratch;
  job.seed = all.report.seed;
  job.seconds = all.options.seconds;
  job.sandbox = !all.options.trust;
  job.gpu = all.gpu;
  job.gpu_lock = keep_printf("%s/gpu.lock", all.work);
  job.interrupted = was_stopped;
  if (stopped != 0 || verdict_of(&job, &verdict, &err) != 0) { /* the others are graded all the same */
    memset(&verdict, 0, sizeof verdict);
    verdict.kind = VERDICT_NONE;
    verdict.message = stopped != 0 ? when_stopped : err.message;
  }
  remove_folder(scratch);
  fwrite(&verdict, sizeof verdict, 1, result);
  fprintf(result, "%.*s", MESSAGE_MOST, verdict.message);
  if (strlen(verdict.message) > MESSAGE_MOST) fprintf(result, "\n(%zu bytes more)", strlen(verdict.message));
}

static void unit_set(Unit *unit, VerdictKind kind, const char *message) {
  unit->state = UNIT_DONE;
  unit->verdict.kind = kind;
  unit->verdict.message = message;
}

static void unit_end(const PoolDone *done) {
  Unit *unit = &all.unit[done->piece];
  unit->seconds = done->seconds;
  all.report.item[unit->owner].seconds += done->seconds;
  if (done->status != 0 || done->length < sizeof unit->verdict) {
    unit_set(unit, VERDICT_NONE, keep_printf("the process that graded it ended with %d", done->status));
    return;
  }
  memcpy(&unit->verdict, done->result, sizeof unit->verdict);
  unit_set(unit, unit->verdict.kind, keep(done->result + sizeof unit->verdict));
}

static bool is_owners(int piece, void *context) { return all.unit[piece].owner == *(const int *)context; }

/* A submission may hold the others up for so long. */
static bool time_is_used_up(int submission) {
  double seconds = all.report.item[submission].seconds + pool_seconds(&all.pool, is_owners, &submission);
  return seconds >= 60 * all.options.minutes;
}

/* Decides what is known. True: its unit can be started. */
static bool grade_look(int submission, Grade *grade) {
  Unit *unit = &all.unit[grade->unit];
  const Unit *twin = unit->twin >= 0 ? &all.unit[unit->twin] : NULL;
  const char *trouble = all.trouble[unit->exercise - all.tree.exercises.item];
  if (unit->state == UNIT_WAITS && trouble != NULL) unit_set(unit, VERDICT_NONE, trouble);
  /* Only the diagnosis depends on where the lines stand. */
  if (unit->state == UNIT_WAITS && twin != NULL && twin->state == UNIT_DONE && twin->verdict.kind == VERDICT_RIGHT) {
    unit->verdict = twin->verdict;
    unit->owner = -1;
    unit->state = UNIT_DONE;
  }
  if (unit->state == UNIT_DONE) {
    grade->verdict = unit->verdict;
    grade->seconds = unit->owner == submission ? unit->seconds : 0;
    grade->decided = true;
    return false;
  }
  if (unit->state == UNIT_RUNS) return false;
  if (twin != NULL && twin->state == UNIT_RUNS) return false;
  if (!time_is_used_up(submission)) return true;
  grade_decide(grade, VERDICT_NONE,
               keep_printf("the %g minutes for this submission were used up by the exercises before it; --minutes=N "
                           "gives it more",
                           all.options.minutes));
  return false;
}

/* As many as there is room for, those of the first submissions first. Gives the number of the first grade that is not
 * decided, of all grades of all submissions. */
static int start_units(int first) {
  const int grades = all.report.item[0].grades, last = grades * all.report.count;
  Error err;
  for (int i = first; i < last && stopped == 0; i++) {
    int submission = i / grades;
    Grade *grade = &all.report.item[submission].grade[i % grades];
    if (!grade->decided && grade_look(submission, grade)) {
      if (!pool_has_room(&all.pool)) break;
      Unit *unit = &all.unit[grade->unit];
      unit->state = UNIT_RUNS;
      unit->owner = submission;
      if (pool_start(&all.pool, grade->unit, work_unit, NULL, &err) != 0)
        unit_set(unit, VERDICT_NONE, keep(err.message));
    }
    if (grade->decided && i == first) first++;
  }
  return first;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What is printed meanwhile */

static void print_grade(const Grade *grade) {
  printf("  %-25s %-16s %5.1f of %-4d %.100s\n", grade->exercise->name, status_names[grade_status(grade)], grade->score,
         grade->exercise->points, report_line(grade_headline(grade)));
}

/* Of several submissions: a line, and the exercises that somebody has to look at. */
static void print_submission(const Submission *submission) {
  printf("%-24s %6.1f of %-5.0f ", report_line(submission->name), submission->score, submission->points);
  const char *comma = "";
  for (int k = 0; k < STATUSES; k++) {
    if (submission->count[k] == 0) continue;
    printf("%s%d %s", comma, submission->count[k], status_names[k]);
    comma = ", ";
  }
  printf("%s%s\n", submission->problem != NULL ? ": " : "",
         submission->problem != NULL ? report_line(submission->problem) : "");
  for (int i = 0; i < submission->grades; i++) {
    const Grade *grade = &submission->grade[i];
    int same = 0;
    if (grade_status(grade) == REJECTED) print_grade(grade);
    if (grade_status(grade) != NOT_GRADED) continue;
    for (int j = 0; j < submission->grades; j++) { /* for the same reason: once */
      if (submission->grade[j].verdict.kind != VERDICT_NONE ||
          strcmp(submission->grade[j].verdict.message, grade->verdict.message) != 0)
        continue;
      if (j < i) break;
      same++;
    }
    if (same == 1) print_grade(grade);
    if (same > 1) printf("  %d exercises not graded: %.200s\n", same, report_line(grade_headline(grade)));
  }
}

/* A grade that is decided, in the order of the submissions. */
static void print_next(Submission *submission, Grade *grade) {
  bool alone = all.report.count == 1;
  grade_set(grade);
  submission->score += grade->score;
  submission->points += grade->exercise->points;
  submission->count[grade_status(grade)]++;
  if (alone && grade == submission->grade) printf("\n%s\n", report_line(submission->name));
  if (alone && submission->problem != NULL && grade == submission->grade)
    printf("  %s\n", report_line(submission->problem));
  if (alone && submission->problem == NULL) print_grade(grade);
  if (grade == &submission->grade[submission->grades - 1]) {
    if (alone)
      printf("  %-25s %-16s %5.1f of %.0f\n", "total", "", submission->score, submission->points);
    else
      print_submission(submission);
  }
  fflush(stdout);
}

static void grade_all(void) {
  const int grades = all.report.item[0].grades, last = grades * all.report.count;
  int first = 0, printed = 0, ended = 0;
  Progress progress;
  PoolDone done;
  progress_begin(&progress, "grading", "exercises", 0, all.units);
  while (first < last && (stopped == 0 || all.pool.running > 0)) {
    first = start_units(first);
    if (printed < first) progress_end(&progress);
    for (; printed < first; printed++)
      print_next(&all.report.item[printed / grades], &all.report.item[printed / grades].grade[printed % grades]);
    if (stopped != 0) pool_signal(&all.pool, SIGTERM);
    if (first < last && pool_wait(&all.pool, 0.2, &done)) {
      unit_end(&done);
      free(done.result);
      ended++;
    }
    if (first < last) progress_update(&progress, ended, "%s", report_line(all.report.item[first / grades].name));
  }
  progress_end(&progress);
  for (; printed < last; printed++) { /* stopped */
    Grade *grade = &all.report.item[printed / grades].grade[printed % grades];
    if (!grade->decided && all.unit[grade->unit].state == UNIT_DONE) grade_look(printed / grades, grade);
    if (!grade->decided) grade_decide(grade, VERDICT_NONE, when_stopped);
    print_next(&all.report.item[printed / grades], grade);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Reports */

/* Where a file that the user named lies. */
static const char *named_file(const char *typed) {
  char path[PATH_MAX];
  Error err;
  if (user_path(typed, path, sizeof path, &err) != 0) die("%s", err.message);
  return keep(path);
}

static int tell(int status, const Error *err) {
  if (status != 0) fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err->message);
  return status;
}

/* Where the file lies, or will lie: its folder is there. One place has one name. */
static const char *real_file(const char *path) {
  char real[PATH_MAX];
  if (realpath(path, real) != NULL) return keep(real);
  const char *slash = strrchr(path, '/');
  const char *folder = slash == NULL ? "." : slash == path ? "/" : keep_bytes(path, (size_t)(slash - path));
  return realpath(folder, real) == NULL ? path : keep_printf("%s/%s", real, slash == NULL ? path : slash + 1);
}

/* Ends the program when the file cannot be written, or another report goes there: before the work and not after it. */
static void check_report(const char *option, const char *typed) {
  static struct { const char *option, *file; } seen[2 * SUBMISSIONS_MAX + 4];
  static int reports;
  AtomicFile file;
  Error err;
  if (typed == NULL) return;
  const char *path = named_file(typed);
  if (make_parent(path, &err) != 0) {
    error_advise(&err, "choose another with %s", option);
    die("%s", err.message);
  }
  if (atomic_file_open(&file, path, &err) != 0) die("%s: %s", option, err.message);
  atomic_file_abandon(&file);
  const char *real = real_file(path);
  for (int i = 0; i < reports; i++) {
    if (strcmp(seen[i].file, real) != 0) continue;
    fprintf(stderr, "%s: error: %s and %s both name %s, which can hold one report: give each a name of its own\n",
            program_invocation_short_name, seen[i].option, option, path);
    exit(2);
  }
  seen[reports].option = option;
  seen[reports++].file = real;
}

/* One file for one submission, else a folder with one for each. */
static const char *submission_file(const char *typed, const Submission *submission) {
  return all.report.count == 1 ? named_file(typed) : keep_printf("%s/%s.json", named_file(typed), submission->name);
}

static void check_reports(const Options *options) {
  check_report("--csv", options->csv);
  check_report("--csv-exercises", options->csv_exercises);
  check_report("--json", options->json);
  check_report("--junit", options->junit);
  for (int s = 0; s < all.report.count; s++) {
    const Submission *submission = &all.report.item[s];
    if (options->gradescope != NULL) check_report("--gradescope", submission_file(options->gradescope, submission));
    if (options->classroom50 != NULL) check_report("--classroom50", submission_file(options->classroom50, submission));
  }
}

/* 0, or -1 when a report could not be written; the others are. */
static int write_reports(const Options *options, const Report *report) {
  Error err;
  int status = 0;
  if (options->csv != NULL) status |= tell(report_csv(report, named_file(options->csv), &err), &err);
  if (options->csv_exercises != NULL)
    status |= tell(report_csv_exercises(report, named_file(options->csv_exercises), &err), &err);
  if (options->json != NULL) status |= tell(report_json(report, named_file(options->json), &err), &err);
  if (options->junit != NULL) status |= tell(report_junit(report, named_file(options->junit), &err), &err);
  for (int s = 0; s < report->count; s++) {
    const Submission *submission = &report->item[s];
    if (options->gradescope != NULL)
      status |= tell(report_gradescope(submission, submission_file(options->gradescope, submission), &err), &err);
    if (options->classroom50 != NULL)
      status |= tell(report_classroom50(submission, submission_file(options->classroom50, submission), &err), &err);
  }
  return status;
}

/* The folder's own name; two of the same name keep their paths, with - for /. */
static void name_submissions(Report *report) {
  for (int s = 0; s < report->count; s++) {
    Submission *submission = &report->item[s];
    const char *slash = strrchr(submission->path, '/');
    submission->name = slash == NULL ? submission->path : slash + 1;
    for (int other = 0; other < s; other++) {
      if (strcmp(report->item[other].name, submission->name) != 0) continue;
      char *name = keep(submission->path);
      for (char *c = name; *c != '\0'; c++) *c = *c == '/' ? '-' : *c;
      submission->name = name;
    }
  }
}

/* NULL, or why this is no student's tree. */
static const char *folder_problem(const char *path) {
  static const char *const archives[][2] = {{".zip", "unzip -d"}, {".tar", "tar xf"},    {".tar.gz", "tar xf"},
                                            {".tgz", "tar xf"},   {".tar.xz", "tar xf"}, {".7z", "7z x"}};
  struct stat info;
  if (stat(path, &info) != 0) return keep_printf("%s: %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode))
    return access(path, R_OK | X_OK) == 0 ? NULL : keep_printf("%s: %s", path, strerror(errno));
  for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
    if (!ends_with(path, archives[i][0])) continue;
    const char *folder = keep_bytes(path, strlen(path) - strlen(archives[i][0]));
    const char *command = starts_with(archives[i][1], "unzip")
                              ? keep_printf("unzip -d %s %s", folder, path)
                              : keep_printf("mkdir %s && %s %s", folder, archives[i][1], path);
    return keep_printf("%s is an archive, and a folder is expected: unpack it (`%s`) and give %s", path, command,
                       folder);
  }
  return keep_printf("%s is a file, and a folder is expected: a student's tree", path);
}

/* The folders that were named. What is no folder is a mistake of the caller, and nobody's 0 points. */
static void find_submissions(const Options *options) {
  Error err;
  int wrong = 0;
  all.report.item = (Submission *)xcalloc((size_t)options->folders + 1, sizeof *all.report.item);
  for (int i = 0; i < options->folders; i++) {
    char path[PATH_MAX];
    if (user_path(options->folder[i], path, sizeof path, &err) != 0) die("%s", err.message);
    while (strlen(path) > 1 && ends_with(path, "/")) path[strlen(path) - 1] = '\0';
    if (strcmp(path, ".") == 0 || ends_with(path, "/.") || ends_with(path, "..")) { /* no names */
      char real[PATH_MAX];
      if (realpath(path, real) != NULL) snprintf(path, sizeof path, "%s", real);
    }
    const char *problem = folder_problem(path);
    if (problem != NULL) {
      fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, report_line(problem));
      wrong++;
    }
    all.report.item[all.report.count++].path = keep(path);
  }
  if (wrong > 0) exit(2);
  name_submissions(&all.report);
}

/* The course that is graded by, where `bazel run` was typed or --source says. */
static void find_course(const Options *options, Source *source) {
  char root[PATH_MAX];
  const char *name[EXERCISES_MAX], *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
  Error err;
  if (options->source == NULL && (workspace == NULL || workspace[0] == '\0'))
    die("where is the course's repository? Use `bazel run //learn:grade` there, or --source=DIR");
  if (options->source == NULL)
    snprintf(root, sizeof root, "%s", workspace);
  else if (user_path(options->source, root, sizeof root, &err) != 0)
    die("%s", err.message);
  if (source_open(source, root, &err) != 0) die("%s", err.message);
  for (int i = 0; i < source->exercises.count; i++) name[i] = source->exercises.item[i].name;
  for (const char *at = options->only, *next; at != NULL; at = next) {
    size_t length = strcspn(at, ",");
    next = at[length] == ',' ? at + length + 1 : NULL;
    const char *typed = keep_bytes(at, length);
    if (exercises_named(&source->exercises, typed) == NULL)
      die("--only: there is no exercise \"%s\"%s", typed, words_near(typed, name, source->exercises.count));
  }
}

/* The folder that holds the submissions is none itself. Ends the program when it is given in their place; but of
 * several folders, or where a student's own report is asked for, one student's mistake is that student's. */
static void check_folders(const Options *options, const Exercises *exercises) {
  const char *below[BELOW_SHOWN], *folder = all.report.count == 1 ? all.report.item[0].path : NULL;
  if (folder == NULL || is_submission(exercises, folder)) return;
  const int found = submissions_below(exercises, folder, below);
  if (found == 0 || (found == 1 && (options->gradescope != NULL || options->classroom50 != NULL))) return;
  Text list = {0};
  for (int i = 0; i < found && i < BELOW_SHOWN; i++)
    text_printf(&list, "%s%s", i > 0 ? ", " : "", report_line(strrchr(below[i], '/') + 1));
  if (found > BELOW_SHOWN) text_printf(&list, " and %d more", found - BELOW_SHOWN);
  fprintf(stderr,
          "%s: error: %s has no file of the course, such as %s, but %d of the folders in it %s: %s; expected the "
          "folders of students: give %s/*\n",
          program_invocation_short_name, report_line(folder), exercises->item[0].file, found,
          found == 1 ? "does" : "do", list.bytes, report_line(folder));
  text_free(&list);
  exit(2);
}

static void make_work(void) {
  const char *folder = getenv("TMPDIR");
  snprintf(all.work, sizeof all.work, "%s/grade.XXXXXX", folder != NULL && folder[0] != '\0' ? folder : "/tmp");
  if (mkdtemp(all.work) == NULL) die("%s: %s; TMPDIR names another place", all.work, strerror(errno));
  all.pid = getpid();
  atexit(remove_work);
  signal(SIGINT, stop);
  signal(SIGTERM, stop);
  signal(SIGHUP, stop);
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"csv", OPTION_CSV, "FILE", 0, "One row for each student, one column for each exercise", 0},
      {"csv-exercises", OPTION_CSV_EXERCISES, "FILE", 0,
       "One row for each exercise of each student, with the diagnosis", 0},
      {"json", OPTION_RESULTS, "FILE", 0, "The same as JSON, with all that was measured", 0},
      {"junit", OPTION_JUNIT, "FILE", 0, "The same as JUnit XML", 0},
      {"gradescope", OPTION_GRADESCOPE, "FILE", 0, "Gradescope's results.json; with several submissions a folder", 0},
      {"classroom50", OPTION_CLASSROOM50, "FILE", 0, "Classroom 50's result.json; with several submissions a folder",
       0},
      {"only", OPTION_ONLY, "NAME,NAME", 0, "Grade only these exercises", 0},
      {"jobs", 'j', "N", 0, "Exercises that are graded at the same time (default: one per processor)", 0},
      {"seconds", OPTION_SECONDS, "N", 0, "Wall-clock time for a run (default: 10)", 0},
      {"minutes", OPTION_MINUTES, "N", 0,
       "Time for a submission: of each of its exercises by the clock, added up; on a loaded machine fewer fit "
       "(default: 10; with a GPU 30)",
       0},
      {"cache-dir", OPTION_CACHE, "DIR", 0,
       "Where judges and references are kept between runs (default: ~/.cache/nn_grade, see XDG_CACHE_HOME)", 0},
      {"prepare", OPTION_PREPARE, NULL, 0, "Make the judges of all exercises, or of those of --only, beforehand", 0},
      {"trust-the-code", OPTION_TRUST, NULL, 0, "Grade without the sandbox: only for code that you wrote yourself", 0},
      {"source", OPTION_SOURCE, "DIR", 0, "The course's repository (default: where bazel run was typed)", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, "DIR...", "Grades what students have handed in, in a sandbox.",
                                  NULL, NULL,  NULL};
  static Source source;
  Options *options = &all.options;
  CommonOptions common = options_default(0);
  Error err;
  all.report.device = "inspector";
  options->seconds = 10;
  options->jobs = pool_processors();
  options_parse(&common, &own, options, argc, argv);
  find_submissions(options);
  find_course(options, &source);
  check_folders(options, &source.exercises);
  check_reports(options);
  if (!options->trust && sandbox_missing() != NULL) die("%s", sandbox_missing());
  all.gpu = gpu_is_there();
  if (all.gpu) all.report.device = "GPU";
  if (options->minutes == 0) options->minutes = all.gpu ? 30 : 10;
  make_work();
  const char *cache = options->cache == NULL ? grader_cache_folder() : named_file(options->cache);
  int lock = grader_cache_open(&source, cache, &all.tree, &err);
  if (lock < 0) die("%s", err.message);
  if (getrandom(&all.report.seed, sizeof all.report.seed, 0) != sizeof all.report.seed)
    die("no random numbers: %s", strerror(errno));
  all.report.seed >>= 1;

  pool_open(&all.pool, options->jobs);
  for (int s = 0; s < all.report.count; s++) take_submission(&all.report.item[s]);
  for (int i = 0; i < all.tree.exercises.count && options->prepare; i++)
    all.needed[i] = wanted(all.tree.exercises.item[i].name);
  make_judges();
  close(lock);
  int status = 0, lost = 0;
  if (all.report.count > 0) {
    grade_all();
    if (all.report.count > 1) report_class(&all.report);
    status = write_reports(options, &all.report);
  }
  for (int i = 0; i < all.tree.exercises.count && options->prepare; i++) {
    if (all.trouble[i] != NULL) status = tell(error_set(&err, "%s", all.trouble[i]), &err);
  }
  for (int s = 0; s < all.report.count; s++) {
    lost += all.report.item[s].count[NOT_GRADED];
    free(all.report.item[s].grade);
  }
  free(all.report.item);
  free(all.unit);
  if (lost > 0) fprintf(stderr, "%s: error: %d exercises were not graded\n", program_invocation_short_name, lost);
  if (stopped != 0) return 128 + stopped;
  return status == 0 && lost == 0 ? 0 : 1;
}
