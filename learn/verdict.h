/* verdict.h - is a student's version right? Compiles it (build.h), runs it beside the judge (check_run.h), and says
 * what is wrong.
 *
 *     VerdictJob job = verdict_job(&tree, exercise, lines);
 *     Verdict verdict;
 *     if (verdict_of(&job, &verdict, &err) != 0) die("%s", err.message);     // the machinery failed
 *     verdict.kind, verdict.message                                          // for people
 *     verdict_diagnosis(&verdict), verdict.found                             // names, for programs
 *
 * A check compiles only the student's header, in the short check program, by simt/simtcc with the inspector. The rest
 * of the worker, the judge and the reference's counts are made once, and again when their sources change. The version
 * runs twice, with the threads in both orders. Where there are a GPU and nvcc it also runs there, and is timed beside
 * the reference.
 */
#ifndef LEARN_VERDICT_H
#define LEARN_VERDICT_H

#include "learn/check_run.h"

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

typedef struct Verdict {
  VerdictKind kind;
  const char *message;
  int shapes;
  double error, tolerance;
  Measured yours, reference;
  const char *picture[4]; /* as Judged's */
  Diagnoses found;        /* what the message says; verdict_diagnosis() where it is of the verdict's kind alone */
} Verdict;

/* The one to look at first; DIAGNOSIS_NONE: it is right, or was not graded. */
static inline Diagnosis verdict_diagnosis(const Verdict *verdict) {
  static const Diagnosis by_kind[] = {
      DIAGNOSIS_NONE,         DIAGNOSIS_NOT_IMPLEMENTED, DIAGNOSIS_REFUSED, DIAGNOSIS_DOES_NOT_COMPILE,
      DIAGNOSIS_WRONG_VALUES, DIAGNOSIS_LIMIT,           DIAGNOSIS_CRASHED, DIAGNOSIS_TIMEOUT,
      DIAGNOSIS_NONE};
  const VerdictKind kind = verdict->kind;
  const bool looked_at = kind == VERDICT_WRONG || kind == VERDICT_DIED || kind == VERDICT_TIMEOUT;
  return looked_at && verdict->found.count > 0 ? diagnoses_first(&verdict->found) : by_kind[kind];
}

static inline bool verdict_has(const Verdict *verdict, Diagnosis diagnosis) {
  return diagnosis == verdict_diagnosis(verdict) || diagnoses_has(&verdict->found, diagnosis);
}

/* Puts one before the others. */
static inline void verdict_found_first(Verdict *verdict, Diagnosis diagnosis) {
  const Diagnoses others = verdict->found;
  verdict->found.count = 0;
  diagnoses_add(&verdict->found, diagnosis);
  diagnoses_join(&verdict->found, &others);
}

#define VERDICT_MUCH_MEMORY 1e9 /* bytes; no right solution holds a tenth of it */

/* The last lines of what a program printed. */
static inline const char *last_lines(const char *text, int lines) {
  size_t at = strlen(text);
  while (at > 0 && text[at - 1] == '\n') at--;
  size_t end = at;
  while (at > 0 && lines > 0) lines -= text[--at] == '\n';
  return keep_trimmed(text, at, end);
}

static inline const char *first_lines(const char *text, int lines) {
  size_t end = 0;
  while (text[end] != '\0' && (lines -= text[end] == '\n') > 0) end++;
  return keep_trimmed(text, 0, end);
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
  return keep_printf("It ended the program with status %d instead of returning: is there a call of exit()?%s",
                     worker->status, said);
}

/* Without the compiler's lines that say through which of our files the student's file is included. */
static inline const char *without_includers(const char *printed) {
  Text out = {0};
  text_add(&out, "");
  for (size_t at = 0, length = strlen(printed), end; at < length; at = end) {
    end = line_end(printed, length, at);
    const char *words = keep_trimmed(printed, at, end);
    if (!starts_with(words, "In file included from ") && !starts_with(words, "from "))
      text_append(&out, printed + at, end - at);
  }
  return keep_text(&out);
}

/* Why it does not compile: what the compiler printed, or a sentence where the compiler itself failed. */
static inline const char *compiler_message(const Process *compiler, const char *printed) {
  static const char *const its_own[] = {"internal compiler error",  "submit a full bug report",
                                        "File size limit exceeded", "relocation truncated to fit",
                                        "No space left on device",  "file too big",
                                        "final link failed",        "out of memory allocating"};
  if (compiler->timed_out) return "The compiler did not finish within 2 minutes.";
  bool gave_up = printed[0] == '\0';
  for (size_t i = 0; i < sizeof its_own / sizeof *its_own; i++)
    gave_up = gave_up || strstr(printed, its_own[i]) != NULL;
  if (!gave_up || strstr(printed, ": error: ") != NULL)
    return printed; /* its own comes after an error of the program's */
  return keep_printf(
      "The compiler gave up: is there an enormous array, or much too much code? An array outside of functions is part "
      "of the program; large ones are for cudaMalloc().%s%.200s",
      printed[0] == '\0' ? "" : " It printed: ", keep_bytes(printed, strcspn(printed, "\n")));
}

/* Does a finding name one of the student's lines? */
static inline bool names_lines(const char *finding, const char *file, const char *lines, int first) {
  const char *place = keep_printf("%s:", file);
  int last = first - 1;
  for (const char *c = lines; *c != '\0'; c++) last += *c == '\n';
  for (const char *c = finding; (c = strstr(c, place)) != NULL; c++) {
    int line = atoi(c + strlen(place));
    if (line >= first && line <= last) return true;
  }
  return false;
}

/* Reads the kinds of the emulator's reports on stderr, which is all that a program leaves behind when it dies. Each
 * report begins with a line "=== simt: KIND"; what follows KIND is for people. Adds the kinds to `found`; returns where
 * the first report of the kind `wanted` begins, or NULL. */
static inline const char *verdict_reports(const char *printed, Diagnosis wanted, Diagnoses *found) {
  static const struct {
    const char *kind;
    Diagnosis diagnosis;
  } kinds[] = {{"barrier divergence", DIAGNOSIS_BARRIER},
               {"deadlock", DIAGNOSIS_DEADLOCK},
               {"watchdog", DIAGNOSIS_ENDLESS},
               {"mask", DIAGNOSIS_WARP_MASK},
               {"warp divergence", DIAGNOSIS_WARP_MASK},
               {"launch", DIAGNOSIS_LAUNCH},
               {"null pointer", DIAGNOSIS_NULL_POINTER},
               {"host pointer", DIAGNOSIS_HOST_POINTER},
               {"device pointer", DIAGNOSIS_DEVICE_POINTER},
               {"wrong device", DIAGNOSIS_WRONG_DEVICE},
               {"illegal address", DIAGNOSIS_ILLEGAL_ADDRESS},
               {"misaligned", DIAGNOSIS_MISALIGNED},
               {"missing synchronisation", DIAGNOSIS_MISSING_SYNC}};
  static const char mark[] = "=== simt: ";
  const char *first = NULL;
  for (const char *c = printed; (c = strstr(c, mark)) != NULL; c++) {
    if (c > printed && c[-1] != '\n') continue;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      if (!starts_with(c + strlen(mark), kinds[k].kind)) continue;
      diagnoses_add(found, kinds[k].diagnosis);
      if (first == NULL && kinds[k].diagnosis == wanted) first = c;
    }
  }
  return first;
}

/* A finding of the inspector may name only lines of the course, which rely on a barrier or a store of the student's
 * lines. Then a sentence that says where the student's lines are; otherwise "". */
static inline const char *verdict_whose_lines(const VerdictJob *job, const char *finding) {
  const Exercise *exercise = job->exercise;
  const char *text;
  Region region;
  if (exercise == NULL || job->worker != NULL) return ""; /* has other lines */
  int first = job->line;
  if (first == 0 && tree_region(job->tree, exercise, &text, &region, NULL) == 0) first = region.body_line;
  if (first == 0 || names_lines(finding, exercise->file, job->lines, first) ||
      names_lines(finding, exercise->file, job->helpers, job->helpers_line))
    return "";
  return keep_printf(
      "\nThe lines named above are the course's. The fault is in yours, at %s:%d and below: what must they do, or wait "
      "for, before the course's lines run?",
      exercise->file, first);
}

enum { VERDICT_TODO_STATUS = 3 }; /* with which TODO() ends a program, see tree.h */

static inline bool verdict_has_todo(const VerdictJob *job) {
  return (job->lines != NULL && code_has_todo(job->lines)) || (job->helpers != NULL && code_has_todo(job->helpers));
}

/* The verdict, from the judge's answer and from how the worker ended. */
static inline void verdict_set(Verdict *verdict, const VerdictJob *job, const Judged *judged) {
  bool died = strcmp(judged->verdict, "died") == 0;
  verdict->shapes = judged->shapes;
  verdict->error = judged->error;
  verdict->tolerance = judged->tolerance;
  verdict->yours = judged->measured;
  memcpy(verdict->picture, judged->picture, sizeof verdict->picture);
  verdict->message = build_messages(job, judged->message);
  verdict->found = judged->found;
  const char *divergent = verdict_reports(judged->worker.output, DIAGNOSIS_BARRIER, &verdict->found);
  if (strcmp(judged->verdict, "right") == 0) {
    verdict->kind = VERDICT_RIGHT;
  } else if (died && judged->worker.status == VERDICT_TODO_STATUS && verdict_has_todo(job)) {
    verdict->kind = VERDICT_TODO;
    verdict->message = "not implemented: the line TODO(...) is still there";
  } else if (strcmp(judged->verdict, "timeout") == 0) {
    verdict->kind = VERDICT_TIMEOUT;
    const char *printed = last_lines(judged->worker.output, 8);
    const char *cause =
        "is there a loop that does not end, a barrier that some threads never reach, or does each thread do the work "
        "of all?";
    if (judged->memory > VERDICT_MUCH_MEMORY)
      cause =
          keep_printf("it held %.1f GB of memory by then; what does it allocate, and how often?", judged->memory / 1e9);
    verdict->message = keep_printf("After %.0f s it had not finished: %s%s%s", job->seconds, cause,
                                   printed[0] == '\0' ? "" : "\n", build_messages(job, printed));
  } else if (died && judged->status != 0) {
    verdict->kind = VERDICT_WRONG; /* CUDA_CHECK ended it, and said why */
    verdict->message = build_messages(job, last_lines(judged->worker.output, 12));
  } else if (died) {
    verdict->kind = VERDICT_DIED;
    verdict->message = build_messages(job, death(&judged->worker));
    diagnoses_add(&verdict->found, judged->worker.status > 128 ? DIAGNOSIS_CRASHED : DIAGNOSIS_EXITED);
  } else {
    /* The emulator's watchdog ends a launch before our patience does. One whose threads miss a barrier it ends, too. */
    const bool ended = judged->findings == 0 && diagnoses_has(&judged->found, DIAGNOSIS_ENDLESS);
    const bool stuck = diagnoses_has(&verdict->found, DIAGNOSIS_DEADLOCK);
    verdict->kind = ended && !divergent ? VERDICT_TIMEOUT : VERDICT_WRONG;
    if (divergent) { /* what else was found follows from it */
      const char *finding = build_messages(job, first_lines(divergent, 8));
      memset(&verdict->found, 0, sizeof verdict->found);
      diagnoses_add(&verdict->found, DIAGNOSIS_BARRIER);
      verdict->message = keep_printf("Not all threads of a block come to the same barrier:\n%s%s", finding,
                                     verdict_whose_lines(job, finding));
      return;
    }
    if (ended)
      verdict->message = stuck ? "The kernel did not come to an end: its threads wait for each other."
                               : "The kernel did not come to an end: is there a loop that does not end?";
    if (judged->findings > 0)
      verdict->message = keep_printf("%s%s", verdict->message, verdict_whose_lines(job, verdict->message));
    const char *printed = last_lines(judged->worker.output, 8);
    const bool fault = strcmp(judged->verdict, "cuda") == 0; /* what the inspector has reported is the same */
    const bool reported = fault && judged->findings > 0;
    if (printed[0] != '\0' && !reported) /* the emulator's remarks, or the student's own printf */
      verdict->message = keep_printf("%s\n%s%s", verdict->message, fault ? "" : "It printed, at the end:\n",
                                     build_messages(job, printed));
  }
}

/* The picture of the accesses that a limit counts, or "". */
static inline const char *verdict_picture(const VerdictJob *job, const Verdict *verdict, const char *count) {
  static const char *const kinds[] = {"global_load", "global_store", "shared_load", "shared_store"};
  for (int i = 0; i < 4; i++)
    if (starts_with(count, kinds[i]) && verdict->picture[i] != NULL)
      return keep_printf("\n%s", build_messages(job, verdict->picture[i]));
  return "";
}

/* Is a count above its limit? */
static inline void verdict_limits(const VerdictJob *job, Verdict *verdict) {
  const Exercise *exercise = job->exercise;
  for (int i = 0; i < exercise->limits && verdict->kind == VERDICT_RIGHT; i++) {
    const Limit *limit = &exercise->limit[i];
    double count = measured(&verdict->yours, limit->count);
    double per = limit->per[0] == '\0' ? 1 : measured(&verdict->yours, limit->per);
    double value = per > 0 ? count / per : 0;
    if (value <= limit->at_most + 1e-9) continue;
    const char *slash = limit->per[0] == '\0' ? "" : " / ";
    verdict->kind = VERDICT_LIMIT;
    verdict->message =
        keep_printf("The results are right, but it costs too much: %s%s%s is %s, at most %s is allowed. %s%s",
                    limit->count, slash, limit->per, keep_number(value), keep_number(limit->at_most), limit->why,
                    verdict_picture(job, verdict, limit->count));
  }
}

/* Did the kernels store as much as the reference's kernels, with as much of the GPU? Without this test all of these
 * would be "right": host code that does the work and copies the results; one block, warp or thread that does
 * everything; a grid of threads of which most find nothing to do. A solution may have fewer threads than the reference
 * when each takes several elements; up to 16 are accepted. One warp issues a request, so one thread alone needs 32
 * times as many requests for the same floats. NULL, or a sentence, and its name in *diagnosis. */
static inline const char *verdict_whose_work(const Verdict *verdict, Diagnosis *diagnosis) {
  const Measured *yours = &verdict->yours, *reference = &verdict->reference;
  double sectors = measured(yours, "global_store_sectors"), needed = measured(reference, "global_store_sectors");
  if (sectors == 0 && measured(yours, "global_atomic_requests") == 0) {
    *diagnosis = DIAGNOSIS_NOT_ON_GPU;
    return "No kernel wrote to global memory: the results did not come from the GPU.";
  }
  double request_share = measured(yours, "global_store_requests") / measured(reference, "global_store_requests");
  if (request_share < 0.2 && sectors < 0.2 * needed && measured(yours, "global_atomic_requests") == 0) {
    *diagnosis = DIAGNOSIS_NOT_ON_GPU;
    return "The kernels stored only a part of the results: the rest did not come from the GPU.";
  }

  double blocks = measured(yours, "working_blocks"), launched = measured(yours, "launched_blocks");
  double threads = measured(yours, "working_threads"), warps = measured(yours, "working_warps");
  double launched_threads = measured(yours, "launched_threads"), wanted = measured(reference, "working_threads");
  const char *at_work = keep_printf(
      "%s of %s threads, in %s of %s blocks, read or wrote device memory; in the reference %s threads in %s blocks do",
      keep_number(threads), keep_number(launched_threads), keep_number(blocks), keep_number(launched),
      keep_number(wanted), keep_number(measured(reference, "working_blocks")));
  if (warps == 1 && measured(reference, "working_warps") >= 4 && launched_threads >= 4 * 32) {
    *diagnosis = DIAGNOSIS_ONE_WARP;
    return keep_printf(
        "The results are right, but one warp did all the work: %s. Let each thread have its own element, by blockIdx "
        "and threadIdx.",
        at_work);
  }
  if (blocks == 1 && measured(reference, "working_blocks") >= 4 && launched >= 4) {
    *diagnosis = DIAGNOSIS_ONE_BLOCK;
    return keep_printf(
        "The results are right, but one block did all the work, and one multiprocessor of the GPU: %s. Let blockIdx.x "
        "choose a part for each block.",
        at_work);
  }
  if (16 * threads < wanted && measured(reference, "working_warps") >= 8) {
    *diagnosis = DIAGNOSIS_FEW_THREADS;
    return keep_printf(
        "The results are right, but a small part of the threads did all the work: %s. Let each thread have its own "
        "element.",
        at_work);
  }
  if (request_share >= 16 && sectors <= measured(yours, "global_store_requests")) { /* not sums kept in the output */
    *diagnosis = DIAGNOSIS_FEW_THREADS;
    return "The results are right, but few threads did all the work: a warp stores one float where its 32 threads "
           "could store 32. Let each thread have its own element.";
  }
  if (launched >= 64 && launched_threads >= 16 * measured(reference, "launched_threads") &&
      launched_threads >= 16 * threads) {
    *diagnosis = DIAGNOSIS_GRID_TOO_LARGE;
    return keep_printf(
        "The results are right, but the grid is far too large: %s threads were launched, and %s found something to do; "
        "the reference launches %s. Divide the number of elements by the number of threads in a block, rounded up.",
        keep_number(launched_threads), keep_number(threads), keep_number(measured(reference, "launched_threads")));
  }
  return NULL;
}

/* The counts of the reference. They are kept in a file beside its program. */
static inline int verdict_reference(const VerdictJob *job, const char *judge, Verdict *verdict, Error *err) {
  Build build;
  Judged judged;
  build_make(&build, job, BUILD_REFERENCE, false);
  const char *kept = keep_printf("%s.counts", build.program);
  bool stale = build_is_stale(&build, job->tree->root);
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
  text_write_file(kept, text.bytes, text.length, NULL); /* where another program writes it now, it writes the same */
  text_free(&text);
  return 0;
}

/* On a real GPU: right there as well, and how fast? */
static inline int verdict_gpu(const VerdictJob *job, const char *judge, Verdict *verdict, Error *err) {
  Build build;
  Process process;
  Judged checked, timed[2];
  for (int i = 0; i < 2; i++) {
    bool trusted = i == 1;
    build_make(&build, job, trusted ? BUILD_REFERENCE : BUILD_WORKER, true);
    if (!trusted || build_is_stale(&build, job->tree->root)) {
      if (build_start(&process, &build, job, trusted, err) != 0) return -1;
      process_wait(&process, job->interrupted, job->context);
      if (process.interrupted) return error_set_code(err, ERROR_INTERRUPTED, "interrupted");
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
      verdict_found_first(verdict, DIAGNOSIS_GPU_DIFFERS);
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
    diagnoses_add(&verdict->found, DIAGNOSIS_GPU_DIFFERS);
    break;
  }
  return 0;
}

/* Compiles and runs what the first check of an exercise needs, if that has not been done: judge and reference. */
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

/* What the student has written, in a pristine file. */
static inline int verdict_overlay(const VerdictJob *job, Error *err) {
  const Written written = {"", job->lines, job->helpers, job->line, job->helpers_line};
  Text out = {0};
  if (tree_paste(job->tree, job->exercise, &written, &out, err) != 0) return -1;
  int status = text_write_quick(keep_printf("%s/%s", job->overlay, job->exercise->file), out.bytes, out.length, err);
  text_free(&out);
  return status;
}

/* Runs it with the threads in one order, and in the other. Where an exercise is about streams, it also runs with
 * kernels and copies in unusual orders that streams and events permit. */
static inline int verdict_run(const VerdictJob *job, const char *judge, const char *worker, Verdict *verdict,
                              Error *err) {
  enum { ORDERS = 4 };
  static const struct {
    const char *threads, *streams;
  } orders[ORDERS] = {{"forward", "eager"}, {"reverse", "eager"}, {"forward", "lazy"}, {"reverse", "random:1"}};
  const int most = job->exercise->streams ? ORDERS : 2, wanted = job->orders > 0 ? job->orders : most;
  Measured counts;
  CheckRun run[ORDERS];
  Judged judged;
  int started = 0, finished = 0, status = 0;
  verdict->kind = VERDICT_RIGHT;
  while (finished < wanted && status == 0 && verdict->kind == VERDICT_RIGHT) {
    while (status == 0 && started < (job->hurry ? wanted : finished + 1)) {
      status = check_run_start(&run[started], job, judge, worker, false, false, started == 0 ? "check" : "again",
                               orders[started].threads, orders[started].streams, err);
      started += status == 0;
    }
    if (finished == started) break;
    if (check_run_finish(&run[finished++], job, &judged, err) != 0)
      status = -1;
    else
      verdict_set(verdict, job, &judged);
    if (finished == 1) counts = verdict->yours;
  }
  for (int i = finished; i < started; i++) check_run_abandon(&run[i]);
  if (finished >= 2) verdict->yours = counts; /* what was counted in the order of a GPU's numbering */
  if (finished == 2 && verdict->kind == VERDICT_WRONG) {
    verdict_found_first(verdict, DIAGNOSIS_THREAD_ORDER);
    verdict->message =
        keep_printf("It is right when the threads run in one order, and wrong in the other: %s", verdict->message);
  }
  if (finished > 2 && verdict->kind == VERDICT_WRONG) {
    verdict_found_first(verdict, DIAGNOSIS_STREAM_ORDER);
    verdict->message = keep_printf(
        "It is right when each operation runs as soon as it is submitted, and wrong in another order that streams and "
        "events "
        "permit: a wait is missing. %s",
        verdict->message);
  }
  return status;
}

/* Runs a worker beside a judge; the reference's counts are the verdict's already. */
static inline int verdict_judged(const VerdictJob *job, const char *judge, const char *worker, Verdict *verdict,
                                 Error *err) {
  if (verdict_run(job, judge, worker, verdict, err) != 0) return -1;
  if (job->worker != NULL && job->reference == NULL) verdict->reference = verdict->yours;
  Diagnosis work = DIAGNOSIS_NONE;
  const char *objection = verdict->kind == VERDICT_RIGHT ? verdict_whose_work(verdict, &work) : NULL;
  if (objection != NULL) {
    diagnoses_add(&verdict->found, work);
    verdict->kind = VERDICT_WRONG;
    verdict->message = objection;
  }
  if (verdict->kind == VERDICT_RIGHT && code_has_todo(job->lines)) {
    verdict->kind = VERDICT_TODO;
    verdict->message = "it works; remove the line TODO(...), so that it counts as yours";
  }
  verdict_limits(job, verdict);
  return verdict->kind == VERDICT_RIGHT && job->gpu ? verdict_gpu(job, judge, verdict, err) : 0;
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
  if (job->worker != NULL) {
    if (job->reference != NULL) verdict->reference = *job->reference;
    return verdict_judged(job, job->judge, job->worker, verdict, err);
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
  if (compiler.interrupted) return error_set_code(err, ERROR_INTERRUPTED, "interrupted");
  if (sandbox_failed(&compiler)) return error_set(err, "the sandbox did not start: %.400s", compiler.output);
  if (compiler.status != 0) {
    verdict->kind = VERDICT_COMPILE;
    verdict->message = compiler_message(&compiler, without_includers(build_messages(job, compiler.output)));
    return 0;
  }

  return verdict_judged(job, judge, worker.program, verdict, err);
}

#endif /* LEARN_VERDICT_H */
