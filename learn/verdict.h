/* verdict.h - is a student's version right? Compiles it, runs it beside the judge (check.h), says what is wrong.
 *
 *     VerdictJob job = verdict_job(&tree, exercise, lines);
 *     Verdict verdict;
 *     if (verdict_of(&job, &verdict, &err) != 0) die("%s", err.message);     // the machinery failed
 *     verdict.kind, verdict.message                                          // the student's version
 *
 * Only the student's header is compiled, in the short check program, by simt/simtcc with the inspector; the rest of the
 * worker, the judge and the reference's counts are made once, and again when what they are made from changes. The
 * version runs twice, with the threads in both orders. Where there are a GPU and nvcc it also runs there, and is timed
 * beside the reference.
 */
#ifndef LEARN_VERDICT_H
#define LEARN_VERDICT_H

#include "learn/process.h"
#include "learn/tree.h"

#include <math.h>
#include <sys/socket.h>

typedef enum VerdictKind {
  VERDICT_RIGHT,
  VERDICT_TODO,    /* not implemented */
  VERDICT_REFUSED, /* lines that have no business in an exercise; only the grader looks */
  VERDICT_COMPILE, /* the compiler does not understand it */
  VERDICT_WRONG,   /* wrong values, or the inspector objects */
  VERDICT_LIMIT,   /* right, but it costs more than the exercise allows */
  VERDICT_DIED,    /* it crashed, or ended the program */
  VERDICT_TIMEOUT, /* an endless loop, or much too slow */
  VERDICT_NONE,    /* the grader's own machinery failed */
} VerdictKind;

static const char *const verdict_names[] = {"right",         "not implemented", "refused", "does not compile", "wrong",
                                            "too expensive", "crashed",         "timeout", "not graded"};

enum { COUNTS = 11, CHECK_SAMPLES = 64 /* as in check.h */ };
static const char *const count_names[COUNTS] = {
    "global_load_requests",    "global_load_sectors",    "global_store_requests", "global_store_sectors",
    "shared_load_requests",    "shared_load_wavefronts", "shared_load_conflicts", "shared_store_requests",
    "shared_store_wavefronts", "shared_store_conflicts", "stream_steps"};

typedef struct Measured {
  double count[COUNTS]; /* by the inspector, on the lesson's `counted` shape */
  double seconds;       /* on a GPU, on its `timed` shape; 0: not measured */
} Measured;

typedef struct Verdict {
  VerdictKind kind;
  const char *message;
  int shapes;
  double error, tolerance;
  Measured yours, reference;
} Verdict;

typedef struct VerdictJob {
  const Tree *tree;
  const Exercise *exercise;
  const char *lines;
  const char *build;   /* folder for what is compiled */
  const char *scratch; /* another folder for the student's program: the one that its compiler may write to */
  const char *overlay; /* "": the student's own file is compiled; else a folder with `lines` in a pristine one */
  unsigned long long seed;
  double seconds; /* for one run */
  bool sandbox, gpu;
  bool hurry;         /* all orders at once */
  bool even_if_empty; /* compile and run also what is only TODO(...) */
  bool (*interrupted)(void *);
  void *context;
} VerdictJob;

static inline VerdictJob verdict_job(const Tree *tree, const Exercise *exercise, const char *lines) {
  VerdictJob job;
  memset(&job, 0, sizeof job);
  job.tree = tree;
  job.exercise = exercise;
  job.lines = lines;
  job.build = tree_path(tree, ".learn/build");
  job.scratch = job.build;
  job.overlay = "";
  job.seed = 1;
  job.seconds = 10;
  return job;
}

static inline double measured(const Measured *m, const char *name) {
  for (int i = 0; i < COUNTS; i++)
    if (strcmp(count_names[i], name) == 0) return m->count[i];
  return NAN;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Compiling */

static inline bool file_is_newer(const char *path, const struct timespec than) {
  struct stat info;
  if (stat(path, &info) != 0) return true;
  return info.st_mtim.tv_sec > than.tv_sec ||
         (info.st_mtim.tv_sec == than.tv_sec && info.st_mtim.tv_nsec > than.tv_nsec);
}

/* Is `program` older than a file of its list of dependencies, or not there? */
static inline bool build_is_stale(const char *root, const char *program, const char *list) {
  struct stat info;
  Text text = {0};
  if (stat(program, &info) != 0 || text_read_file(&text, list, NULL) != 0) return true;
  bool stale = false;
  char *rest = NULL;
  for (char *word = strtok_r(text.bytes, " \\\n", &rest); word != NULL && !stale;
       word = strtok_r(NULL, " \\\n", &rest)) {
    if (ends_with(word, ":")) continue;
    stale = file_is_newer(word[0] == '/' ? word : keep_printf("%s/%s", root, word), info.st_mtim);
  }
  text_free(&text);
  return stale;
}

typedef struct Build {
  const char *program, *output; /* output: where the compiler puts it, until it is whole */
  const char *list;             /* of what it depends on */
  Arguments command;
} Build;

/* BUILD_REST: of the worker, what is not the student's */
enum BuildKind { BUILD_JUDGE, BUILD_REST, BUILD_REFERENCE, BUILD_WORKER };

/* nvcc's -arch for the first GPU. A grader's nvcc runs where there is no GPU to ask, in a sandbox. */
static inline const char *gpu_architecture(void) {
  static char option[32];
  int major, minor;
  if (option[0] != '\0') return option;
  snprintf(option, sizeof option, "-arch=native");
  FILE *query = popen("nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null", "r");
  if (query == NULL) return option;
  if (fscanf(query, "%d.%d", &major, &minor) == 2) snprintf(option, sizeof option, "-arch=sm_%d%d", major, minor);
  pclose(query);
  return option;
}

/* How to compile one of them, with simtcc or nvcc. Paths are relative to the tree where that is possible, so that
 * messages are. */
static inline void build_make(Build *build, const VerdictJob *job, enum BuildKind kind, bool gpu) {
  const Exercise *exercise = job->exercise;
  const char *lesson = strrchr(exercise->check, '/') + 1, *end = gpu ? ".gpu" : "";
  const char *rest = keep_printf("%s/%s.o", job->build, lesson);
  memset(build, 0, sizeof *build);
  if (kind == BUILD_JUDGE) build->program = keep_printf("%s/%s.judge", job->build, lesson);
  if (kind == BUILD_REST) build->program = rest;
  if (kind == BUILD_REFERENCE) build->program = keep_printf("%s/%s.reference%s", job->build, exercise->name, end);
  if (kind == BUILD_WORKER) build->program = keep_printf("%s/%s.yours%s", job->scratch, exercise->name, end);
  build->output = kind == BUILD_WORKER ? build->program : keep_printf("%s.new", build->program);
  build->list = keep_printf("%s.d", build->program);
  Arguments *command = &build->command;
  if (gpu) {
    arguments_add3(command, "nvcc", "-O3", "-std=c++17");
    arguments_add(command, gpu_architecture());
  } else {
    arguments_add(command, "simt/simtcc");
    arguments_add(command, kind == BUILD_JUDGE ? "-Xcompiler=-O1" : "--inspect"); /* it computes little */
    arguments_add(command, "--no-unroll"); /* a large kernel is compiled in half the time */
    /* `float sum;` would begin at 0 here by chance, and at anything on a GPU: let it begin at -1.7e38. */
    if (kind != BUILD_JUDGE) arguments_add(command, "-Xcompiler=-ftrivial-auto-var-init=pattern");
    /* 1 - y * y has its digits where the processor makes one rounding of it (fma), as a GPU does, and not elsewhere.
     * What is right must be so everywhere: this check decides, and the GPU is asked only after it. */
    if (kind != BUILD_JUDGE) arguments_add(command, "-Xcompiler=-ffp-contract=off");
  }
  if (kind == BUILD_WORKER && job->overlay[0] != '\0') arguments_add(command, keep_printf("-I%s", job->overlay));
  if (kind != BUILD_WORKER || job->overlay[0] != '\0') arguments_add(command, "-I.learn/pristine");
  arguments_add(command, "-Xcompiler=-fopenmp");
  arguments_add(command, "-DLEARN_CHECK");
  if (kind == BUILD_JUDGE) {
    arguments_add(command, "-DCHECK_JUDGE");
  } else if (kind == BUILD_REST) {
    arguments_add(command, "-c");
  } else {
    arguments_add(command, keep_printf("-DCHECK_LAUNCHER=%s", exercise->launcher));
    if (!gpu) arguments_add(command, "-DCHECK_VERSION");
    if (kind == BUILD_WORKER) arguments_add(command, keep_printf("-DLEARN_MINE_%s=1", exercise->name));
  }
  arguments_add3(command, "-MMD", "-MF", build->list);
  arguments_add3(command, "-MT", "x:", "-I.");
  arguments_add3(command, exercise->check, "-o", build->output);
  if (!gpu && kind >= BUILD_REFERENCE) arguments_add(command, rest);
}

/* The compiler's messages without the folders that only we know. */
static inline const char *build_messages(const VerdictJob *job, const char *messages) {
  Text out = {0};
  text_add(&out, "");
  const char *prefixes[] = {job->overlay[0] != '\0' ? keep_printf("%s/", job->overlay) : NULL,
                            keep_printf("%s/", job->tree->root), ".learn/pristine/"};
  for (const char *c = messages; *c != '\0';) {
    size_t skip = 0;
    if (starts_with(c, "./") && (c == messages || isspace((unsigned char)c[-1]))) skip = 2;
    for (int i = 0; i < 3 && skip == 0; i++)
      if (prefixes[i] != NULL && starts_with(c, prefixes[i])) skip = strlen(prefixes[i]);
    if (skip > 0)
      c += skip;
    else
      text_append(&out, c++, 1);
  }
  return keep_text(&out);
}

static inline int build_start(Process *process, const Build *build, const VerdictJob *job, bool trusted, Error *err) {
  ProcessSpec spec = process_spec(build->command.item);
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  cache = cache != NULL && cache[0] != '\0' ? cache : keep_printf("%s/.cache", home != NULL ? home : "/tmp");
  const char *runtime = keep_printf("%s/simtcc", cache); /* nvcc does without */
  const char *readable[4] = {job->tree->root}, *writable[] = {job->scratch, NULL};
  int count = 1;
  if (job->overlay[0] != '\0') readable[count++] = job->overlay;
  if (access(runtime, F_OK) == 0) readable[count] = runtime;
  const char *env[] = {"NO_COLOR=1", keep_printf("XDG_CACHE_HOME=%s", cache), NULL};
  spec.folder = job->tree->root;
  spec.env = env;
  spec.seconds = 120; /* the first one builds the emulator's runtime, too */
  spec.file_size = 256 << 20;
  spec.memory = trusted ? 0 : 8L << 30;
  spec.sandbox = job->sandbox && !trusted;
  spec.readable = readable;
  spec.writable = writable;
  if (make_directories(job->build, err) != 0 || make_directories(job->scratch, err) != 0) return -1;
  return process_start(process, &spec, err);
}

/* Programs of ours, side by side: when one does not compile, something is wrong with the tree, not with the student's
 * lines. */
static inline int build_ours(const Build *build, int count, const VerdictJob *job, Error *err) {
  enum { MOST = 2 };
  Process process[MOST];
  int status = 0;
  memset(process, 0, sizeof process);
  for (int i = 0; i < count && status == 0; i++)
    if (build_is_stale(job->tree->root, build[i].program, build[i].list))
      status = build_start(&process[i], &build[i], job, true, err);
  for (int i = 0; i < count; i++) {
    if (process[i].pid <= 0) continue;
    process_wait(&process[i], job->interrupted, job->context);
    if (process[i].status == 0 && !process[i].interrupted && rename(build[i].output, build[i].program) == 0) continue;
    unlink(build[i].output);
    unlink(build[i].program);
    status = process[i].interrupted
                 ? error_set(err, "interrupted")
                 : error_set(err, "%s does not compile, which is not your fault; what the compiler says:\n%.800s",
                             job->exercise->check, build_messages(job, process[i].output));
  }
  return status;
}

/* What all versions of a check program need: the judge, and their common part. */
static inline int build_common(const VerdictJob *job, const char **judge, Error *err) {
  Build common[2];
  build_make(&common[0], job, BUILD_JUDGE, false);
  build_make(&common[1], job, BUILD_REST, false);
  *judge = common[0].program;
  return build_ours(common, 2, job, err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Running */

typedef struct Judged {
  char verdict[16];
  const char *message;
  int shapes;
  double error, tolerance;
  Measured measured;
  double sample[CHECK_SAMPLES];
  Process worker; /* how it ended, what it printed */
} Judged;

static inline void judged_read(Judged *judged, const char *answer) {
  for (const char *line = answer; *line != '\0';) {
    char key[64] = "";
    double value = 0;
    size_t length = strcspn(line, "\n");
    if (sscanf(line, "verdict %15s", judged->verdict) == 1) {
    } else if (starts_with(line, "samples ")) {
      char *at = (char *)line + strlen("samples ");
      for (int i = 0; i < CHECK_SAMPLES; i++) judged->sample[i] = strtod(at, &at);
    } else if (starts_with(line, "message ")) {
      judged->message = keep_trimmed(line, strlen("message "), strlen(line));
      return;
    } else if (sscanf(line, "%63s %lf", key, &value) == 2) {
      if (strcmp(key, "shapes") == 0) judged->shapes = (int)value;
      if (strcmp(key, "error") == 0) judged->error = value;
      if (strcmp(key, "tolerance") == 0) judged->tolerance = value;
      if (strcmp(key, "seconds") == 0) judged->measured.seconds = value;
      for (int i = 0; i < COUNTS; i++)
        if (strcmp(key, count_names[i]) == 0) judged->measured.count[i] = value;
    }
    line += length + (line[length] == '\n');
  }
}

/* A judge and a worker that talk. */
typedef struct Trial {
  Process referee, worker;
} Trial;

static inline int trial_start(Trial *trial, const VerdictJob *job, const char *judge, const char *worker, bool trusted,
                              bool gpu, const char *what, const char *order, const char *streams, Error *err) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    return error_set(err, "cannot make a socket: %s", strerror(errno));
  for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);

  const char *worker_argv[] = {job->sandbox && !trusted ? "/tmp/yours" : worker, NULL};
  const char *readable[] = {keep_printf("%s=/tmp/yours", worker), NULL};
  const char *worker_env[] = {keep_printf("SIMT_ORDER=%s", order),
                              keep_printf("SIMT_STREAMS=%s", streams),
                              "SIMT_REPORT=none",
                              "SIMT_STRICT=1",
                              "SIMT_WATCHDOG=3",
                              "SIMT_THREADS=2",
                              NULL};
  ProcessSpec spec = process_spec(worker_argv);
  spec.env = worker_env;
  spec.channel = ends[1];
  spec.seconds = 3 * job->seconds;
  spec.memory = gpu ? 0 : 4L << 30; /* a GPU's driver reserves all addresses there are */
  spec.file_size = 1 << 20;
  spec.sandbox = job->sandbox && !trusted;
  spec.alone = true;
  spec.gpu = gpu;
  spec.readable = readable;
  int status = process_start(&trial->worker, &spec, err);
  close(ends[1]);

  const char *judge_argv[] = {judge, NULL};
  spec = process_spec(judge_argv);
  spec.channel = ends[0];
  spec.input = keep_printf("%s %llu %g\n", what, job->seed, job->seconds);
  spec.seconds = 3 * job->seconds;
  if (status == 0 && process_start(&trial->referee, &spec, err) != 0) {
    process_kill(&trial->worker);
    process_wait(&trial->worker, NULL, NULL);
    status = -1;
  }
  close(ends[0]);
  return status;
}

static inline void trial_abandon(Trial *trial) {
  process_kill(&trial->referee);
  process_kill(&trial->worker);
  process_wait(&trial->referee, NULL, NULL);
  process_wait(&trial->worker, NULL, NULL);
}

static inline int trial_finish(Trial *trial, const VerdictJob *job, Judged *judged, Error *err) {
  memset(judged, 0, sizeof *judged);
  judged->message = "";
  process_wait(&trial->referee, job->interrupted, job->context);
  judged_read(judged, trial->referee.output);
  if (trial->referee.timed_out) snprintf(judged->verdict, sizeof judged->verdict, "timeout");
  if (strcmp(judged->verdict, "timeout") == 0 || trial->referee.interrupted) process_kill(&trial->worker);
  trial->worker.deadline = seconds_now() + 2; /* the judge has hung up; who does not go is made to */
  process_wait(&trial->worker, NULL, NULL);
  judged->worker = trial->worker;
  if (trial->referee.interrupted) return error_set(err, "interrupted");
  if (judged->verdict[0] == '\0')
    return error_set(err, "the judge ended without a verdict, which is not your fault: %.800s", trial->referee.output);
  return 0;
}

static inline int judge_run(const VerdictJob *job, const char *judge, const char *worker, bool trusted, bool gpu,
                            const char *what, Judged *judged, Error *err) {
  Trial trial;
  if (trial_start(&trial, job, judge, worker, trusted, gpu, what, "forward", "eager", err) != 0) return -1;
  return trial_finish(&trial, job, judged, err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The verdict */

/* The last lines of what a program printed. */
static inline const char *last_lines(const char *text, int lines) {
  size_t at = strlen(text);
  while (at > 0 && text[at - 1] == '\n') at--;
  size_t end = at;
  while (at > 0 && lines > 0) lines -= text[--at] == '\n';
  return keep_trimmed(text, at, end);
}

static inline const char *death(const Process *worker) {
  const char *printed = last_lines(worker->output, 8);
  const char *said = printed[0] == '\0' ? "" : keep_printf(" It printed:\n%s", printed);
  int number = worker->status - 128;
  if (number == SIGXFSZ)
    return "It printed or wrote more than 1 MB, and was stopped: take out the printf, or guard it with one thread's "
           "index.";
  if (number == SIGXCPU || number == SIGKILL)
    return keep_printf("It was stopped: it used too much time or memory.%s", said);
  if (number == SIGSEGV || number == SIGBUS)
    return keep_printf("It crashed (%s): a pointer or an index leads outside all memory.%s", strsignal(number), said);
  if (number > 0) return keep_printf("It crashed (%s).%s", strsignal(number), said);
  return keep_printf("It ended the program with status %d instead of returning.%s", worker->status, said);
}

/* From what the judge says and how the worker ended to a verdict. */
static inline void verdict_set(Verdict *verdict, const VerdictJob *job, const Judged *judged) {
  bool died = strcmp(judged->verdict, "died") == 0;
  verdict->shapes = judged->shapes;
  verdict->error = judged->error;
  verdict->tolerance = judged->tolerance;
  verdict->yours = judged->measured;
  verdict->message = build_messages(job, judged->message);
  if (strcmp(judged->verdict, "right") == 0) {
    verdict->kind = VERDICT_RIGHT;
  } else if (died && judged->worker.status == 3 && strstr(judged->worker.output, "not implemented: ") != NULL) {
    verdict->kind = VERDICT_TODO;
    verdict->message = "not implemented: the line TODO(...) is still there";
  } else if (strcmp(judged->verdict, "timeout") == 0) {
    verdict->kind = VERDICT_TIMEOUT;
    const char *printed = last_lines(judged->worker.output, 8);
    verdict->message = keep_printf(
        "After %.0f s it had not finished: is there a loop that does not end, or a barrier "
        "that some threads never reach?%s%s",
        job->seconds, printed[0] == '\0' ? "" : "\n", build_messages(job, printed));
  } else if (died && judged->worker.status == 1 && strstr(judged->worker.output, "(cudaError") != NULL) {
    verdict->kind = VERDICT_WRONG; /* CUDA_CHECK ended it, and said why */
    verdict->message = build_messages(job, last_lines(judged->worker.output, 12));
  } else if (died) {
    verdict->kind = VERDICT_DIED;
    verdict->message = build_messages(job, death(&judged->worker));
  } else {
    /* The emulator's watchdog ends a launch before our patience does. */
    bool endless = strstr(verdict->message, "cudaErrorLaunchTimeout") != NULL;
    verdict->kind = endless ? VERDICT_TIMEOUT : VERDICT_WRONG;
    if (endless) verdict->message = "The kernel did not come to an end: is there a loop that does not end?";
    const char *printed = last_lines(judged->worker.output, 8);
    if (printed[0] != '\0') /* the emulator's remarks, or the student's own printf */
      verdict->message = keep_printf("%s\n%s%s", verdict->message,
                                     strcmp(judged->verdict, "cuda") == 0 ? "" : "It printed, at the end:\n",
                                     build_messages(job, printed));
  }
}

/* Right, but at what cost? */
static inline void verdict_limits(Verdict *verdict, const Exercise *exercise) {
  for (int i = 0; i < exercise->limits && verdict->kind == VERDICT_RIGHT; i++) {
    const Limit *limit = &exercise->limit[i];
    double count = measured(&verdict->yours, limit->count);
    double per = limit->per[0] == '\0' ? 1 : measured(&verdict->yours, limit->per);
    double value = per > 0 ? count / per : 0;
    if (value <= limit->at_most + 1e-9) continue;
    const char *slash = limit->per[0] == '\0' ? "" : " / ";
    verdict->kind = VERDICT_LIMIT;
    verdict->message = keep_printf(
        "The results are right, but it costs too much: %s%s%s is %.4g, at most %.4g is asked "
        "for. %s",
        limit->count, slash, limit->per, value, limit->at_most, limit->why);
  }
}

/* Did the kernels store as much as the task needs, by the reference's account? Host code that does the work and copies
 * the results, or one thread that does everything, would be "right" otherwise: a request is one warp's, so one thread
 * alone needs 32 times as many of them for the same floats. NULL, or a sentence. */
static inline const char *verdict_whose_work(const Verdict *verdict) {
  const Measured *yours = &verdict->yours, *reference = &verdict->reference;
  double sectors = measured(yours, "global_store_sectors"), needed = measured(reference, "global_store_sectors");
  if (sectors == 0) return "No kernel wrote to global memory: the results did not come from the GPU.";
  double request_share = measured(yours, "global_store_requests") / measured(reference, "global_store_requests");
  if (request_share < 0.2 && sectors < 0.2 * needed)
    return "The kernels stored only a part of the results: the rest did not come from the GPU.";
  if (request_share >= 16 && sectors <= measured(yours, "global_store_requests")) /* not sums kept in the output */
    return "The results are right, but few threads did all the work: a warp stores one float where its 32 threads "
           "could "
           "store 32. Let each thread have its own element.";
  return NULL;
}

/* Counts of the reference; its run is kept beside its program. */
static inline int verdict_reference(const VerdictJob *job, const char *judge, Verdict *verdict, Error *err) {
  Build build;
  Judged judged;
  build_make(&build, job, BUILD_REFERENCE, false);
  const char *kept = keep_printf("%s.counts", build.program);
  bool stale = build_is_stale(job->tree->root, build.program, build.list);
  Text text = {0};
  if (!stale && text_read_file(&text, kept, NULL) == 0) {
    memset(&judged, 0, sizeof judged);
    judged_read(&judged, text.bytes);
    text_free(&text);
    verdict->reference = judged.measured;
    return 0;
  }
  unlink(kept); /* those of an older program */
  if (build_ours(&build, 1, job, err) != 0) return -1;
  if (judge_run(job, judge, build.program, true, false, "check", &judged, err) != 0) return -1;
  if (strcmp(judged.verdict, "right") != 0)
    return error_set(err, "%s: the reference itself does not pass, which is not your fault: %s %.700s %.200s",
                     job->exercise->name, judged.verdict, judged.message, judged.worker.output);
  verdict->reference = judged.measured;
  for (int i = 0; i < COUNTS; i++) text_printf(&text, "%s %.17g\n", count_names[i], judged.measured.count[i]);
  int status = text_write_file(kept, text.bytes, text.length, err);
  text_free(&text);
  return status;
}

/* On a real GPU: right there as well, and how fast? */
static inline int verdict_gpu(const VerdictJob *job, const char *judge, Verdict *verdict, Error *err) {
  Build build;
  Process process;
  Judged checked, timed[2];
  for (int i = 0; i < 2; i++) {
    bool trusted = i == 1;
    build_make(&build, job, trusted ? BUILD_REFERENCE : BUILD_WORKER, true);
    if (!trusted || build_is_stale(job->tree->root, build.program, build.list)) {
      if (build_start(&process, &build, job, trusted, err) != 0) return -1;
      process_wait(&process, job->interrupted, job->context);
      if (process.interrupted) return error_set(err, "interrupted");
      if (process.status == 0 && trusted && rename(build.output, build.program) != 0)
        return error_set(err, "cannot write %s: %s", build.program, strerror(errno));
      if (process.status != 0) {
        verdict->kind = VERDICT_COMPILE;
        verdict->message = keep_printf("nvcc does not compile it:\n%s", build_messages(job, process.output));
        return 0;
      }
    }
    if (!trusted && judge_run(job, judge, build.program, trusted, true, "check", &checked, err) != 0) return -1;
    if (!trusted && strcmp(checked.verdict, "right") != 0) {
      Measured counts = verdict->yours;
      verdict_set(verdict, job, &checked);
      verdict->message = keep_printf("On the GPU: %s", verdict->message);
      verdict->yours = counts;
      return 0;
    }
    if (judge_run(job, judge, build.program, trusted, true, "time", &timed[i], err) != 0) return -1;
  }
  verdict->yours.seconds = timed[0].measured.seconds;
  verdict->reference.seconds = timed[1].measured.seconds;
  for (int i = 0; i < CHECK_SAMPLES; i++) {
    double yours = timed[0].sample[i], expected = timed[1].sample[i];
    if (fabs(yours - expected) <= 1e-3 * (1 + fabs(expected))) continue;
    verdict->kind = VERDICT_WRONG;
    verdict->message = keep_printf(
        "On the GPU, on large arrays, an element is %g where the reference has %g: does an index "
        "overflow, is the grid too small?",
        yours, expected);
    break;
  }
  return 0;
}

/* Ours for one exercise, if that is not there yet: what its first check would compile otherwise. */
static inline int verdict_prepare(const Tree *tree, const Exercise *exercise, Error *err) {
  VerdictJob job = verdict_job(tree, exercise, "");
  Verdict verdict;
  const char *judge;
  if (build_common(&job, &judge, err) != 0) return -1;
  return verdict_reference(&job, judge, &verdict, err);
}

static inline bool gpu_is_there(void) {
  return access("/dev/nvidiactl", F_OK) == 0 && system("command -v nvcc >/dev/null 2>&1") == 0;
}

/* `lines` in a pristine file. */
static inline int verdict_overlay(const VerdictJob *job, Error *err) {
  static Regions regions;
  Text pristine = {0}, out = {0};
  const char *path = tree_path(job->tree, keep_printf(".learn/pristine/%s", job->exercise->file));
  if (text_read_file(&pristine, path, err) != 0) return -1;
  regions_find(pristine.bytes, pristine.length, &regions);
  const Region *region = regions_named(&regions, job->exercise->name);
  if (region == NULL || region->problem != NULL) {
    text_free(&pristine);
    return error_set(err, "%s has no place for %s", path, job->exercise->name);
  }
  region_paste(&out, pristine.bytes, pristine.length, region, job->lines);
  int status = text_write_quick(keep_printf("%s/%s", job->overlay, job->exercise->file), out.bytes, out.length, err);
  text_free(&pristine);
  text_free(&out);
  return status;
}

/* Runs it with the threads in one order, and in the other; where an exercise is about streams, also with these in
 * orders that are permitted and hard to bear. */
static inline int verdict_run(const VerdictJob *job, const char *judge, const char *worker, Verdict *verdict,
                              Error *err) {
  enum { ORDERS = 4 };
  static const struct {
    const char *threads, *streams;
  } orders[ORDERS] = {{"forward", "eager"}, {"reverse", "eager"}, {"forward", "lazy"}, {"reverse", "random:1"}};
  const int wanted = job->exercise->streams ? ORDERS : 2;
  Measured counts;
  Trial trial[ORDERS];
  Judged judged;
  int started = 0, finished = 0, status = 0;
  verdict->kind = VERDICT_RIGHT;
  while (finished < wanted && status == 0 && verdict->kind == VERDICT_RIGHT) {
    while (status == 0 && started < (job->hurry ? wanted : finished + 1)) {
      status = trial_start(&trial[started], job, judge, worker, false, false, "check", orders[started].threads,
                           orders[started].streams, err);
      started += status == 0;
    }
    if (finished == started) break;
    if (trial_finish(&trial[finished++], job, &judged, err) != 0)
      status = -1;
    else
      verdict_set(verdict, job, &judged);
    if (finished == 1) counts = verdict->yours;
  }
  for (int i = finished; i < started; i++) trial_abandon(&trial[i]);
  if (finished >= 2) verdict->yours = counts; /* what was counted in the order of a GPU's numbering */
  if (finished == 2 && verdict->kind == VERDICT_WRONG)
    verdict->message =
        keep_printf("It is right when the threads run in one order, and wrong in the other: %s", verdict->message);
  if (finished > 2 && verdict->kind == VERDICT_WRONG)
    verdict->message = keep_printf(
        "It is right when all is done at once as it is submitted, and wrong in another order that streams and events "
        "permit: a wait is missing. %s",
        verdict->message);
  return status;
}

/* 0 and a verdict; -1 when the machinery failed. */
static inline int verdict_of(const VerdictJob *job, Verdict *verdict, Error *err) {
  Build worker;
  Process compiler;
  const char *judge;
  memset(verdict, 0, sizeof *verdict);
  verdict->kind = VERDICT_TODO;
  verdict->message = "not implemented";
  if (code_is_empty(job->lines) && !job->even_if_empty) return 0;
  const char *brackets = code_brackets(job->lines);
  if (brackets != NULL) { /* the compiler would complain about what follows */
    verdict->kind = VERDICT_COMPILE;
    verdict->message = brackets;
    return 0;
  }
  if (job->overlay[0] != '\0' && verdict_overlay(job, err) != 0) return -1;

  /* The student's program is compiled while the reference is looked after: often there is nothing to do. But a
   * submission waits: what ours leave in the compiler's cache it may only read. */
  if (build_common(job, &judge, err) != 0) return -1;
  build_make(&worker, job, BUILD_WORKER, false);
  unlink(worker.program);
  if (job->sandbox && verdict_reference(job, judge, verdict, err) != 0) return -1;
  if (build_start(&compiler, &worker, job, false, err) != 0) return -1;
  int ours = job->sandbox ? 0 : verdict_reference(job, judge, verdict, err);
  if (ours != 0) process_kill(&compiler);
  process_wait(&compiler, job->interrupted, job->context);
  if (ours != 0) return -1;
  if (compiler.interrupted) return error_set(err, "interrupted");
  if (sandbox_failed(&compiler)) return error_set(err, "the sandbox did not start: %.400s", compiler.output);
  if (compiler.status != 0) {
    verdict->kind = VERDICT_COMPILE;
    verdict->message = build_messages(job, compiler.output);
    if (compiler.timed_out) verdict->message = "The compiler did not finish within 2 minutes.";
    if (verdict->message[0] == '\0')
      verdict->message = "The compiler was stopped without a word: is there an enormous array, or much too much code?";
    return 0;
  }

  if (verdict_run(job, judge, worker.program, verdict, err) != 0) return -1;
  const char *objection = verdict->kind == VERDICT_RIGHT ? verdict_whose_work(verdict) : NULL;
  if (objection != NULL) {
    verdict->kind = VERDICT_WRONG;
    verdict->message = objection;
  }
  if (verdict->kind == VERDICT_RIGHT && code_has_todo(job->lines)) {
    verdict->kind = VERDICT_TODO;
    verdict->message = "it works; take out the line TODO(...), and it is yours";
  }
  verdict_limits(verdict, job->exercise);
  return verdict->kind == VERDICT_RIGHT && job->gpu ? verdict_gpu(job, judge, verdict, err) : 0;
}

#endif /* LEARN_VERDICT_H */
