/* build.h - the programs of a check (check.h): which they are, how each is compiled, and when again. A VerdictJob says
 * whose lines they are made of. */
#ifndef LEARN_BUILD_H
#define LEARN_BUILD_H

#include "learn/process.h"
#include "learn/tree_lines.h"

/* What is to be judged, and how. */
typedef struct VerdictJob {
  const Tree *tree;
  const Exercise *exercise;
  const char *lines, *helpers;
  int line, helpers_line; /* where these stand in the student's file; 0: not known */
  const char *build;      /* folder for what is compiled */
  const char *scratch;    /* another folder for the student's program: the one that its compiler may write to */
  const char *overlay;    /* "": the student's own file is compiled; else a folder with `lines` in a pristine one */
  unsigned long long seed;
  double seconds; /* for one run */
  bool sandbox, gpu;
  const char *gpu_lock; /* NULL, or a file to be locked while a program runs on the GPU: what is timed runs alone */
  bool hurry;           /* all orders at once */
  bool even_if_empty;   /* compile and run also what is only TODO(...) */
  bool (*interrupted)(void *);
  void *context;
  int orders;                       /* of threads and streams, at most; 0: all that are asked for */
  const char *judge, *worker;       /* programs that are there already, and nothing is compiled; NULL: they are made */
  const struct Measured *reference; /* what it costs, for these; NULL: they are its own */
} VerdictJob;

static inline VerdictJob verdict_job(const Tree *tree, const Exercise *exercise, const char *lines) {
  VerdictJob job;
  memset(&job, 0, sizeof job);
  job.tree = tree;
  job.exercise = exercise;
  job.lines = lines;
  job.helpers = "";
  job.build = tree_path(tree, ".learn/build");
  job.scratch = job.build;
  job.overlay = "";
  job.seed = 1;
  job.seconds = 10;
  return job;
}

/* The same for what a student has written, with the helpers. */
static inline VerdictJob verdict_job_written(const Tree *tree, const Exercise *exercise, const Written *written) {
  VerdictJob job = verdict_job(tree, exercise, written->lines);
  job.line = written->line;
  job.helpers = written->helpers;
  job.helpers_line = written->helpers_line;
  return job;
}

static inline bool file_is_newer(const char *path, const struct timespec than) {
  struct stat info;
  if (stat(path, &info) != 0) return true;
  return info.st_mtim.tv_sec > than.tv_sec ||
         (info.st_mtim.tv_sec == than.tv_sec && info.st_mtim.tv_nsec > than.tv_nsec);
}

typedef struct Build {
  const char *program, *output; /* output: where the compiler puts it, until it is whole */
  const char *list;             /* of what it depends on */
  const char *rest;             /* that it is linked to, or NULL */
  Arguments command;
} Build;

/* Is the program older than what it is made from, or not there? */
static inline bool build_is_stale(const Build *build, const char *root) {
  struct stat info;
  Text text = {0};
  if (stat(build->program, &info) != 0 || text_read_file(&text, build->list, NULL) != 0) return true;
  bool stale = build->rest != NULL && file_is_newer(build->rest, info.st_mtim);
  char *rest = NULL;
  for (char *word = strtok_r(text.bytes, " \\\n", &rest); word != NULL && !stale;
       word = strtok_r(NULL, " \\\n", &rest)) {
    if (ends_with(word, ":")) continue;
    stale = file_is_newer(word[0] == '/' ? word : keep_printf("%s/%s", root, word), info.st_mtim);
  }
  text_free(&text);
  return stale;
}

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

/* The compiler, simtcc or nvcc, and how it compiles a judge or a part of a worker. */
static inline void build_options(Build *build, bool judge, bool gpu) {
  Arguments *command = &build->command;
  if (gpu) {
    arguments_add3(command, "nvcc", "-O3", "-std=c++17");
    arguments_add(command, gpu_architecture());
  } else {
    arguments_add(command, "simt/simtcc");
    arguments_add(command, judge ? "-Xcompiler=-O1" : "--inspect"); /* it computes little */
    arguments_add(command, "--no-unroll");                          /* a large kernel is compiled in half the time */
    /* `float sum;` would begin at 0 here by chance, and at anything on a GPU: let it begin at -1.7e38. */
    if (!judge) arguments_add(command, "-Xcompiler=-ftrivial-auto-var-init=pattern");
    /* 1 - y * y has its digits where the processor makes one rounding of it (fma), as a GPU does, and not elsewhere.
     * What is right must be so everywhere: this check decides, and the GPU is asked only after it. */
    if (!judge) arguments_add(command, "-Xcompiler=-ffp-contract=off");
  }
  arguments_add(command, "-Xcompiler=-fopenmp");
  arguments_add(command, "-DLEARN_CHECK");
  if (judge) arguments_add(command, "-DCHECK_JUDGE");
}

/* How to compile one of them. Paths are relative to the tree where that is possible, so that
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
  build_options(build, kind == BUILD_JUDGE, gpu);
  Arguments *command = &build->command;
  if (kind == BUILD_WORKER && job->overlay[0] != '\0') arguments_add(command, keep_printf("-I%s", job->overlay));
  if (kind != BUILD_WORKER || job->overlay[0] != '\0') arguments_add(command, "-I.learn/pristine");
  if (kind == BUILD_REST) {
    arguments_add(command, "-c");
  } else if (kind != BUILD_JUDGE) {
    arguments_add(command, keep_printf("-DCHECK_LAUNCHER=%s", exercise->launcher));
    if (!gpu) arguments_add(command, "-DCHECK_VERSION");
    if (kind == BUILD_WORKER) arguments_add(command, keep_printf("-DLEARN_MINE_%s=1", exercise->name));
  }
  arguments_add3(command, "-MMD", "-MF", build->list);
  arguments_add3(command, "-MT", "x:", "-I.");
  arguments_add3(command, exercise->check, "-o", build->output);
  if (!gpu && kind >= BUILD_REFERENCE) arguments_add(command, build->rest = rest);
}

/* A file of the course that the check has read and the student has changed; NULL: there is none. */
static inline const char *build_edited(const VerdictJob *job) {
  static const enum BuildKind kinds[] = {BUILD_WORKER, BUILD_REST, BUILD_JUDGE};
  const char *folder = keep_printf("%s/", job->tree->root);
  Text hashes = {0};
  if (text_read_file(&hashes, tree_path(job->tree, ".learn/files.txt"), NULL) != 0) return NULL;
  const char *edited = NULL;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds && edited == NULL; k++) {
    Build build;
    Text list = {0};
    build_make(&build, job, kinds[k], false);
    if (text_read_file(&list, build.list, NULL) != 0) continue;
    char *rest = NULL;
    for (char *word = strtok_r(list.bytes, " \\\n", &rest); word != NULL && edited == NULL;
         word = strtok_r(NULL, " \\\n", &rest)) {
      const char *file = starts_with(word, folder) ? word + strlen(folder) : starts_with(word, "./") ? word + 2 : word;
      if (file[0] != '/' && !file_is_original(job->tree->root, hashes.bytes, file)) edited = keep(file);
    }
    text_free(&list);
  }
  text_free(&hashes);
  return edited;
}

/* At ".learn/reference/NAME.cuh:3", the solution that stands for an exercise: its length, and instead of it where the
 * exercise stands in the student's file. 0: it is not there. */
static inline size_t build_reference(const VerdictJob *job, const char *at, Text *out) {
  const char *folder = ".learn/reference/", *name = at + strlen(folder);
  if (!starts_with(at, folder)) return 0;
  size_t letters = strcspn(name, "./: \n"), length = strlen(folder) + letters;
  const Exercise *exercise = exercises_named((Exercises *)&job->tree->exercises, keep_bytes(name, letters));
  const char *text;
  Region region;
  if (exercise == NULL) return 0;
  if (at[length] == '.') length += 1 + strspn(at + length + 1, "abcdefghijklmnopqrstuvwxyz");
  if (at[length] == ':') length += 1 + strspn(at + length + 1, "0123456789");
  const bool there = tree_region(job->tree, exercise, &text, &region, NULL) == 0;
  text_printf(out, there ? "%s:%d" : "%s", exercise->file, region.body_line);
  return length;
}

/* The compiler's messages without the folders that only we know. */
static inline const char *build_messages(const VerdictJob *job, const char *messages) {
  Text out = {0};
  text_add(&out, "");
  const char *root = keep_printf("%s/", job->tree->root);
  const char *overlay = job->overlay[0] != '\0' ? keep_printf("%s/", job->overlay) : NULL;
  const char *prefixes[] = {overlay, overlay != NULL && starts_with(overlay, root) ? overlay + strlen(root) : NULL,
                            root, ".learn/pristine/"};
  for (const char *c = messages; *c != '\0';) {
    size_t skip = 0;
    if (starts_with(c, "./") && (c == messages || isspace((unsigned char)c[-1]))) skip = 2;
    for (int i = 0; i < 4 && skip == 0; i++)
      if (prefixes[i] != NULL && starts_with(c, prefixes[i])) skip = strlen(prefixes[i]);
    if (skip == 0) skip = build_reference(job, c, &out);
    if (skip > 0)
      c += skip;
    else
      text_append(&out, c++, 1);
  }
  return keep_text(&out);
}

/* Where programs keep what they can make again. */
static inline const char *cache_folder(void) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  return cache != NULL && cache[0] != '\0' ? cache : keep_printf("%s/.cache", home != NULL ? home : "/tmp");
}

static inline int build_start(Process *process, const Build *build, const VerdictJob *job, bool trusted, Error *err) {
  ProcessSpec spec = process_spec(build->command.item);
  const char *cache = cache_folder(), *runtime = keep_printf("%s/simtcc", cache); /* nvcc does without */
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

/* Whoever compiles a program of ours, a check or `prepare` in the background, holds its lock; who waited for it finds
 * it done. -1 when there is no such file to be made: then without. */
static inline int build_lock(const Build *build) {
  const int lock = open(keep_printf("%s.lock", build->program), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  return lock;
}

/* The compiler has ended: its program takes its place. */
static inline int build_finish(Process *process, const Build *build, const VerdictJob *job, Error *err) {
  process_wait(process, job->interrupted, job->context);
  if (process->status == 0 && !process->interrupted && rename(build->output, build->program) == 0) return 0;
  unlink(build->output);
  unlink(build->program);
  if (process->interrupted) return error_set_code(err, ERROR_INTERRUPTED, "interrupted");
  return error_set(err, "%s does not compile, which is not your fault; what the compiler says:\n%.800s",
                   job->exercise->check, build_messages(job, process->output));
}

/* Programs of ours, side by side: when one does not compile, something is wrong with the tree, not with the student's
 * lines. */
static inline int build_ours(const Build *build, int count, const VerdictJob *job, Error *err) {
  enum { MOST = 2 };
  Process process[MOST];
  int status = 0, lock[MOST] = {-1, -1};
  memset(process, 0, sizeof process);
  if (make_directories(job->build, err) != 0) return -1;
  for (int i = 0; i < count && status == 0; i++) {
    if (!build_is_stale(&build[i], job->tree->root)) continue;
    lock[i] = build_lock(&build[i]);
    if (build_is_stale(&build[i], job->tree->root)) status = build_start(&process[i], &build[i], job, true, err);
  }
  for (int i = 0; i < count; i++) {
    if (process[i].pid > 0 && build_finish(&process[i], &build[i], job, err) != 0) status = -1;
    if (lock[i] >= 0) close(lock[i]);
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

#endif /* LEARN_BUILD_H */
