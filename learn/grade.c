/* grade - what students have handed in.
 *
 *     bazel run //learn:grade -- ~/handed_in/alice ~/handed_in/bob
 *
 * Of each folder only the lines of the exercises are taken. They are pasted into a pristine tree, compiled and run in a
 * sandbox, and judged outside of it on inputs from a secret seed: what a submission does to its copy of the course, to
 * its program or to the machine changes nothing but its own verdict. docs/grading.md tells more.
 */
#include "learn/init.h"
#include "learn/refuse.h"
#include "learn/report.h"

#include <sys/random.h>

typedef struct Options {
  const char *source, *only, *csv, *json, *junit, *gradescope, *classroom50;
  const char *folder[SUBMISSIONS_MAX];
  int folders;
  double seconds;
  bool trust, quiet;
} Options;

enum {
  OPTION_CSV = 256,
  OPTION_RESULTS,
  OPTION_JUNIT,
  OPTION_GRADESCOPE,
  OPTION_CLASSROOM50,
  OPTION_TRUST,
  OPTION_ONLY,
  OPTION_SECONDS,
  OPTION_SOURCE
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case OPTION_CSV:
      options->csv = arg;
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
    case OPTION_SECONDS:
      options->seconds = option_float(state, arg, "--seconds", 1, 600);
      return 0;
    case OPTION_SOURCE:
      options->source = arg;
      return 0;
    case ARGP_KEY_ARG:
      if (options->folders == SUBMISSIONS_MAX) argp_error(state, "more than %d submissions", SUBMISSIONS_MAX);
      options->folder[options->folders++] = arg;
      return 0;
    case ARGP_KEY_NO_ARGS:
      argp_error(state, "which submissions? give their folders");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

static bool wanted(const Options *options, const char *name) {
  if (options->only == NULL) return true;
  for (const char *at = options->only; *at != '\0';) {
    size_t length = strcspn(at, ",");
    if (strlen(name) == length && strncmp(at, name, length) == 0) return true;
    at += length + (at[length] == ',');
  }
  return false;
}

/* Ctrl-C: what has been graded is reported, the temporary folder goes. */
static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = number; }
static bool was_stopped(void *context) {
  (void)context;
  return stopped != 0;
}

static char work[PATH_MAX]; /* the temporary folder */
static void remove_work(void) { remove_folder(work); }

/* Copies a file of the submission to `to`, once and for all: whoever exchanges it for a link meanwhile gains nothing.
 * NULL, or why not. */
static const char *take_copy(const Submission *submission, const Exercise *exercise, const char *to) {
  enum { MOST = 1 << 20 };
  char folder[PATH_MAX], path[PATH_MAX];
  struct stat info;
  Error err;
  int fd = open(keep_printf("%s/%s", submission->path, exercise->file), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return keep_printf("%s is gone", exercise->file);
  if (fd < 0) return keep_printf("cannot read %s: %s", exercise->file, strerror(errno));
  const char *problem = NULL;
  ssize_t length = readlink(keep_printf("/proc/self/fd/%d", fd), path, sizeof path - 1); /* where it really lies */
  path[length > 0 ? length : 0] = '\0';
  if (realpath(submission->path, folder) == NULL || !starts_with(path, keep_printf("%s/", folder)))
    problem = keep_printf("%s is a link that leads out of the submission", exercise->file);
  else if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MOST)
    problem = keep_printf("%s is no file of at most %d MB", exercise->file, MOST >> 20);
  if (problem == NULL) {
    char *bytes = (char *)xmalloc(MOST);
    length = 0;
    for (ssize_t got; length < MOST && (got = read(fd, bytes + length, (size_t)(MOST - length))) > 0;) length += got;
    if (text_write_quick(to, bytes, (size_t)length, &err) != 0) problem = keep(err.message);
    free(bytes);
  }
  close(fd);
  return problem;
}

static void grade_exercise(const Options *options, const Tree *tree, const Exercise *exercise,
                           const Submission *submission, const char *scratch, unsigned long long seed, bool gpu,
                           Grade *grade) {
  Tree theirs;
  Written written;
  Error err;
  grade->exercise = exercise;
  grade->verdict.kind = VERDICT_TODO;
  memset(&theirs, 0, sizeof theirs);
  theirs.root = keep_printf("%s/handed_in", scratch);
  const char *problem = take_copy(submission, exercise, tree_path(&theirs, exercise->file));
  if (problem != NULL) {
    grade->verdict.message = problem;
    return;
  }
  if (tree_written(&theirs, exercise, &written, &err) != 0) {
    char *repair = strstr(err.message, "; `re"); /* reset, restore */
    if (repair != NULL) *repair = '\0';
    grade->verdict.message = keep(err.message);
    return;
  }
  grade->handed_in = true;
  VerdictJob job = verdict_job_written(tree, exercise, &written);
  job.overlay = keep_printf("%s/overlay", scratch);
  job.scratch = scratch;
  job.seed = seed;
  job.seconds = options->seconds;
  job.sandbox = !options->trust;
  job.gpu = gpu;
  const char *refused = refuse_written(written.lines, written.helpers);
  if (refused != NULL) {
    grade->verdict.kind = VERDICT_REFUSED;
    grade->verdict.message = refused;
    return;
  }
  double begin = seconds_now();
  job.interrupted = was_stopped;
  if (stopped != 0 || verdict_of(&job, &grade->verdict, &err) != 0) { /* the others are graded all the same */
    grade->verdict.kind = VERDICT_NONE;
    grade->verdict.message = stopped != 0 ? "grading was stopped before its end" : keep(err.message);
  }
  grade->seconds = seconds_now() - begin;
}

static void grade_submission(const Options *options, const Tree *tree, Submission *submission, const char *scratch,
                             unsigned long long seed, bool gpu) {
  struct stat info;
  submission->grade = (Grade *)xcalloc((size_t)tree->exercises.count, sizeof *submission->grade);
  if (stat(submission->path, &info) != 0 || !S_ISDIR(info.st_mode)) {
    submission->problem = keep_printf("%s is no folder", submission->path);
    printf("\n%s: %s\n", report_line(submission->name), report_line(submission->problem));
  } else {
    printf("\n%s\n", report_line(submission->name));
  }
  for (int i = 0; i < tree->exercises.count; i++) {
    const Exercise *exercise = &tree->exercises.item[i];
    if (!wanted(options, exercise->name)) continue;
    Grade *grade = &submission->grade[submission->grades++];
    if (submission->problem != NULL) {
      grade->exercise = exercise;
      grade->verdict.kind = VERDICT_TODO;
      grade->verdict.message = submission->problem;
    } else {
      grade_exercise(options, tree, exercise, submission, scratch, seed, gpu, grade);
    }
    grade_set(grade);
    submission->score += grade->score;
    submission->points += exercise->points;
    if (submission->problem != NULL) continue;
    const char *first = keep_bytes(grade_text(grade), strcspn(grade_text(grade), "\n"));
    printf("  %-24s %-16s %5.1f of %-4d %.90s\n", exercise->name, grade_status(grade), grade->score, exercise->points,
           report_line(first));
    fflush(stdout);
  }
  printf("  %-24s %-16s %5.1f of %.0f\n", "total", "", submission->score, submission->points);
  remove_folder(scratch);
}

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

/* 0, or -1 when a report could not be written; the others are. */
static int write_reports(const Options *options, const Report *report) {
  Error err;
  int status = 0;
  if (options->csv != NULL) status |= tell(report_csv(report, named_file(options->csv), &err), &err);
  if (options->json != NULL) status |= tell(report_json(report, named_file(options->json), &err), &err);
  if (options->junit != NULL) status |= tell(report_junit(report, named_file(options->junit), &err), &err);
  for (int s = 0; s < report->count; s++) {
    const Submission *submission = &report->item[s];
    const char *below = report->count == 1 ? "" : keep_printf("/%s.json", submission->name);
    if (options->gradescope != NULL) {
      const char *path = keep_printf("%s%s", named_file(options->gradescope), below);
      status |= tell(report_gradescope(submission, path, &err), &err);
    }
    if (options->classroom50 != NULL) {
      const char *path = keep_printf("%s%s", named_file(options->classroom50), below);
      status |= tell(report_classroom50(submission, path, &err), &err);
    }
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

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"csv", OPTION_CSV, "FILE", 0, "One line for each exercise of each submission, and one for the total", 0},
      {"json", OPTION_RESULTS, "FILE", 0, "The same as JSON, with all that was measured", 0},
      {"junit", OPTION_JUNIT, "FILE", 0, "The same as JUnit XML", 0},
      {"gradescope", OPTION_GRADESCOPE, "FILE", 0, "Gradescope's results.json; with several submissions a folder", 0},
      {"classroom50", OPTION_CLASSROOM50, "FILE", 0, "Classroom 50's result.json; with several submissions a folder",
       0},
      {"only", OPTION_ONLY, "NAME,NAME", 0, "Grade these exercises alone", 0},
      {"seconds", OPTION_SECONDS, "N", 0, "Time for a run (default: 10)", 0},
      {"trust-the-code", OPTION_TRUST, NULL, 0, "Without the sandbox: only for what you wrote yourself", 0},
      {"source", OPTION_SOURCE, "DIR", 0, "The course's repository (default: where bazel run was typed)", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, "DIR...", "Grades what students have handed in, in a sandbox.",
                                  NULL, NULL,  NULL};
  static Options options;
  static Source source;
  static Tree tree;
  CommonOptions common = options_default(0);
  char root[PATH_MAX];
  const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY"), *folder = getenv("TMPDIR"), *backup;
  Report report = {NULL, 0, 0, "inspector"};
  Error err;
  options.seconds = 10;
  options_parse(&common, &own, &options, argc, argv);
  if (!options.trust && sandbox_missing() != NULL) die("%s", sandbox_missing());
  if (options.source == NULL && (workspace == NULL || workspace[0] == '\0'))
    die("where is the course's repository? Use `bazel run //learn:grade` there, or --source=DIR");
  if (options.source == NULL)
    snprintf(root, sizeof root, "%s", workspace);
  else if (user_path(options.source, root, sizeof root, &err) != 0)
    die("%s", err.message);
  if (source_open(&source, root, &err) != 0) die("%s", err.message);
  for (const char *at = options.only; at != NULL && *at != '\0';) {
    size_t length = strcspn(at, ",");
    if (exercises_named(&source.exercises, keep_bytes(at, length)) == NULL)
      die("--only: there is no exercise \"%.*s\"", (int)length, at);
    at += length + (at[length] == ',');
  }

  snprintf(work, sizeof work, "%s/grade.XXXXXX", folder != NULL && folder[0] != '\0' ? folder : "/tmp");
  if (mkdtemp(work) == NULL) die("%s: %s; TMPDIR names another place", work, strerror(errno));
  atexit(remove_work);
  signal(SIGINT, stop);
  signal(SIGTERM, stop);
  signal(SIGHUP, stop);
  const char *pristine = keep_printf("%s/course", work);
  if (init_tree(&source, pristine, false, &backup, &err) != 0 || tree_read(&tree, pristine, &err) != 0)
    die("%s", err.message);
  if (getrandom(&report.seed, sizeof report.seed, 0) != sizeof report.seed)
    die("no random numbers: %s", strerror(errno));
  report.seed >>= 1;
  bool gpu = gpu_is_there();
  if (gpu) report.device = "GPU";
  report.item = (Submission *)xcalloc((size_t)options.folders, sizeof *report.item);
  for (int i = 0; i < options.folders; i++) {
    char path[PATH_MAX];
    if (user_path(options.folder[i], path, sizeof path, &err) != 0) die("%s", err.message);
    while (strlen(path) > 1 && ends_with(path, "/")) path[strlen(path) - 1] = '\0';
    if (strcmp(path, ".") == 0 || ends_with(path, "/.") || ends_with(path, "..")) { /* no names */
      char real[PATH_MAX];
      if (realpath(path, real) != NULL) snprintf(path, sizeof path, "%s", real);
    }
    report.item[report.count++].path = keep(path);
  }
  name_submissions(&report);
  for (int s = 0; s < report.count; s++)
    grade_submission(&options, &tree, &report.item[s], keep_printf("%s/submission", work), report.seed, gpu);
  int status = write_reports(&options, &report);
  int lost = 0;
  for (int s = 0; s < report.count; s++) {
    for (int i = 0; i < report.item[s].grades; i++) lost += report.item[s].grade[i].verdict.kind == VERDICT_NONE;
    free(report.item[s].grade);
  }
  free(report.item);
  if (lost > 0) fprintf(stderr, "%s: error: %d exercises were not graded\n", program_invocation_short_name, lost);
  if (stopped != 0) return 128 + stopped;
  return status == 0 && lost == 0 ? 0 : 1;
}
