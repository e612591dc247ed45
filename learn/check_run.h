/* check_run.h - runs judge and worker of a check (check.h) beside each other. The result is the judge's answer and how
 * the worker ended; verdict.h makes a sentence of it. */
#ifndef LEARN_CHECK_RUN_H
#define LEARN_CHECK_RUN_H

#include "common/diagnosis.h"
#include "learn/build.h"

#include <math.h>
#include <sys/socket.h>

enum { COUNTS = 20, CHECK_SAMPLES = 64 /* as in check.h */ };
static const char *const count_names[COUNTS] = {"global_load_requests",
                                                "global_load_sectors",
                                                "global_store_requests",
                                                "global_store_sectors",
                                                "shared_load_requests",
                                                "shared_load_wavefronts",
                                                "shared_load_conflicts",
                                                "shared_store_requests",
                                                "shared_store_wavefronts",
                                                "shared_store_conflicts",
                                                "global_atomic_requests",
                                                "launched_blocks",
                                                "launched_threads",
                                                "working_blocks",
                                                "working_warps",
                                                "working_threads",
                                                "stream_steps",
                                                "bulk_copies",
                                                "bulk_bytes",
                                                "wgmma_products"};

typedef struct Measured {
  double count[COUNTS]; /* by the inspector, on the lesson's `counted` shape */
  double seconds;       /* on a GPU, on its `timed` shape; 0: not measured */
} Measured;

static inline double measured(const Measured *m, const char *name) {
  for (int i = 0; i < COUNTS; i++)
    if (strcmp(count_names[i], name) == 0) return m->count[i];
  return NAN;
}

typedef struct Judged {
  char verdict[16];
  const char *message;
  int shapes;
  double error, tolerance;
  Measured measured;
  const char *picture[4]; /* NULL: none; of CheckReply */
  double sample[CHECK_SAMPLES];
  Process worker; /* how it ended, what it printed */
  Diagnoses found;
  int status;    /* cudaError_t; 0: success, or an older judge */
  int findings;  /* of the inspector; the message shows the first */
  double memory; /* bytes that it held when the time was over */
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
    } else if (starts_with(line, "diagnosis ")) {
      diagnoses_read(&judged->found, line + strlen("diagnosis "));
    } else if (starts_with(line, "picture") && line[7] >= '0' && line[7] < '4' && line[8] == ' ') {
      const char **picture = &judged->picture[line[7] - '0'];
      *picture = keep_printf("%s%s%s", *picture == NULL ? "" : *picture, *picture == NULL ? "" : "\n",
                             keep_bytes(line + 9, length - 9));
    } else if (starts_with(line, "message ")) {
      judged->message = keep_trimmed(line, strlen("message "), strlen(line));
      return;
    } else if (sscanf(line, "%63s %lf", key, &value) == 2) {
      if (strcmp(key, "shapes") == 0) judged->shapes = (int)value;
      if (strcmp(key, "findings") == 0) judged->findings = (int)value;
      if (strcmp(key, "status") == 0) judged->status = (int)value;
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
typedef struct CheckRun {
  Process referee, worker;
} CheckRun;

static inline int check_run_start(CheckRun *run, const VerdictJob *job, const char *judge, const char *worker,
                                  bool trusted, bool gpu, const char *what, const char *order, const char *streams,
                                  Error *err) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    return error_set(err, "cannot make a socket: %s", strerror(errno));
  for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);

  const char *worker_argv[] = {job->sandbox && !trusted ? "/tmp/yours" : worker, NULL};
  const char *readable[] = {keep_printf("%s=/tmp/yours", worker),
                            keep_printf("%s/%s", job->overlay, job->exercise->file), NULL}; /* to quote lines of */
  const char *worker_env[] = {keep_printf("SIMT_ORDER=%s", order),
                              keep_printf("SIMT_STREAMS=%s", streams),
                              "SIMT_REPORT=none",
                              "SIMT_INSPECT_HIDE=.learn/reference/",
                              "SIMT_STRICT=1",
                              "SIMT_WATCHDOG=3",
                              "SIMT_THREADS=2",
                              "OPENBLAS_NUM_THREADS=1", /* a thread per core: 128 MiB of the limit below, each */
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
  if (spec.sandbox) spec.folder = "/"; /* so that the names of files are whole */
  int status = process_start(&run->worker, &spec, err);
  close(ends[1]);

  const char *judge_argv[] = {judge, NULL};
  spec = process_spec(judge_argv);
  spec.channel = ends[0];
  spec.input = keep_printf("%s %llu %g\n", what, job->seed, job->seconds);
  spec.seconds = 3 * job->seconds;
  if (status == 0 && process_start(&run->referee, &spec, err) != 0) {
    process_kill(&run->worker);
    process_wait(&run->worker, NULL, NULL);
    status = -1;
  }
  close(ends[0]);
  return status;
}

static inline void check_run_abandon(CheckRun *run) {
  process_kill(&run->referee);
  process_kill(&run->worker);
  process_wait(&run->referee, NULL, NULL);
  process_wait(&run->worker, NULL, NULL);
}

/* Bytes of memory that a process and its children hold. */
static inline double process_memory(pid_t pid) {
  double pages = 0;
  FILE *file = fopen(keep_printf("/proc/%d/statm", (int)pid), "r");
  if (file != NULL) {
    if (fscanf(file, "%*f %lf", &pages) != 1) pages = 0;
    fclose(file);
  }
  double bytes = pages * (double)sysconf(_SC_PAGESIZE);
  file = fopen(keep_printf("/proc/%d/task/%d/children", (int)pid, (int)pid), "r");
  for (int child; file != NULL && fscanf(file, "%d", &child) == 1;) bytes += process_memory(child);
  if (file != NULL) fclose(file);
  return bytes;
}

static inline int check_run_finish(CheckRun *run, const VerdictJob *job, Judged *judged, Error *err) {
  memset(judged, 0, sizeof *judged);
  judged->message = "";
  process_wait(&run->referee, job->interrupted, job->context);
  judged_read(judged, run->referee.output);
  if (run->referee.timed_out) snprintf(judged->verdict, sizeof judged->verdict, "timeout");
  const bool late = strcmp(judged->verdict, "timeout") == 0;
  if (late) judged->memory = process_memory(run->worker.pid);
  if (late || run->referee.interrupted) process_kill(&run->worker);
  run->worker.deadline = seconds_now() + 2; /* the judge has hung up; who does not go is made to */
  process_wait(&run->worker, NULL, NULL);
  judged->worker = run->worker;
  if (late && run->worker.status != 128 + SIGKILL) snprintf(judged->verdict, sizeof judged->verdict, "died");
  if (run->referee.interrupted) return error_set_code(err, ERROR_INTERRUPTED, "interrupted");
  if (judged->verdict[0] == '\0')
    return error_set(err, "the judge ended without a verdict, which is not your fault: %.800s", run->referee.output);
  return 0;
}

static inline int judge_run(const VerdictJob *job, const char *judge, const char *worker, bool trusted, bool gpu,
                            const char *what, Judged *judged, Error *err) {
  CheckRun run;
  int lock = gpu && job->gpu_lock != NULL ? open(job->gpu_lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (lock >= 0) flock(lock, LOCK_EX);
  int status = check_run_start(&run, job, judge, worker, trusted, gpu, what, "forward", "eager", err);
  if (status == 0) status = check_run_finish(&run, job, judged, err);
  if (lock >= 0) close(lock);
  return status;
}

#endif /* LEARN_CHECK_RUN_H */
