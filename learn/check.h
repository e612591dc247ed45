/* check.h - an exercise under test: two programs that talk through a socket.
 *
 * The worker has the student's kernel and nothing else: it receives arrays, runs the launcher, sends the arrays back.
 * The judge makes the inputs from a seed, knows the result (common/lesson/lesson.h) and says what is wrong. Whatever a
 * student's code does, prints or breaks, it does in the worker; and what it sends back is only numbers to be judged.
 *
 * Both are made of one short file, which a lesson's exercises share:
 *
 *     #include "phase1_building_blocks/02_transpose/transpose_lesson.cuh"
 *     #include "learn/check.h"
 *
 *     CHECK_MAIN(transpose_lesson())
 *
 * compiled with -DCHECK_JUDGE, or with -DCHECK_LAUNCHER=transpose_tiled, the worker. After an edit only the student's
 * part of the worker is compiled (-DCHECK_VERSION, too): a pointer to the launcher. The rest is linked to it: the same
 * for all exercises of the file, it is compiled once, with neither. Both programs find the socket as file descriptor 3.
 * The judge reads its orders from the standard input, where the worker cannot see the seed: a line
 * "check SEED SECONDS"; "again SEED SECONDS" for the same in another order of threads, where nothing is counted; or
 * "time SEED SECONDS" for a GPU. With the inspector, which has one order of threads and sees races, a second run could
 * only find what the first has left behind: the first shape alone runs twice, and in one order. The judge answers with
 * lines "key value" on the standard output:
 *
 *     verdict   right, wrong, finding (right, but the inspector objects), cuda, died, timeout or disturbed
 *     diagnosis names of common/diagnosis.h, in the order in which the message says them
 *     status    the cudaError_t of the launch, or of the call that ended the worker
 *     findings  of the inspector
 *     shapes, error, tolerance, seconds, and the inspector's counts on the lesson's `counted` shape
 *     picture0 to picture3, a line each time: which lanes of a warp meet, where accesses cost more than they need to
 *     message   last: all that follows
 */
#ifndef LEARN_CHECK_H
#define LEARN_CHECK_H

#include "common/lesson/lesson.h"

extern const LessonLauncher check_launcher; /* the student's */

#ifdef CHECK_LAUNCHER
#define CHECK_POINTER const LessonLauncher check_launcher = (LessonLauncher)CHECK_LAUNCHER;
#else
#define CHECK_POINTER
#endif

#ifdef CHECK_VERSION
#define CHECK_MAIN(lesson_declared) CHECK_POINTER
#else

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "common/lesson/verify.h"

enum { CHECK_CHANNEL = 3, CHECK_MAGIC = 0x4b434843, CHECK_TEXT = 3000, CHECK_SAMPLES = 64, CHECK_MORE_SHAPES = 6 };
enum { CHECK_PICTURES = 4, CHECK_PICTURE = 1000 };

typedef struct CheckRequest {
  uint32_t magic;
  int32_t timed; /* 0: arrays follow, outputs full of poison. 1: the worker fills its own, and measures */
  int32_t size[LESSON_SIZES + LESSON_PARAMETERS];
  uint64_t seed; /* timed: which elements of the first output are sampled */
} CheckRequest;

typedef struct CheckReply {
  uint32_t magic;
  int32_t status;   /* cudaError_t */
  int32_t ended;    /* 1: CUDA_CHECK() ends the program for `status`; no arrays follow */
  int32_t findings; /* of the inspector */
  int32_t finding;  /* Diagnosis of the first of them */
  int32_t inspected;
  LessonCounts counts;
  double seconds;              /* for one launch, when timed */
  float sample[CHECK_SAMPLES]; /* when timed */
  char text[CHECK_TEXT];       /* what the inspector found, or the guard bands */
  /* Where loads and stores of device memory, loads and stores of shared memory cost more than they need to. */
  char picture[CHECK_PICTURES][CHECK_PICTURE];
} CheckReply; /* then every array, unless timed */

/* All of it, or 0 at the end of the connection or of the time. */
static inline int check_read(void *to, size_t bytes, double seconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  double deadline = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
  for (size_t done = 0; done < bytes;) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    double left = deadline - ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    struct pollfd ready = {CHECK_CHANNEL, POLLIN, 0};
    errno = ETIMEDOUT;
    if (left <= 0 || poll(&ready, 1, (int)(1000 * left) + 1) == 0) return 0;
    ssize_t got = read(CHECK_CHANNEL, (char *)to + done, bytes - done);
    errno = EPIPE;
    if (got <= 0) return 0;
    done += (size_t)got;
  }
  return 1;
}

static inline int check_write(const void *from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t written = write(CHECK_CHANNEL, (const char *)from + done, bytes - done);
    if (written <= 0) return 0;
    done += (size_t)written;
  }
  return 1;
}

/* ---------------------------------------------------------------------------------------------------------------- */
#ifndef CHECK_JUDGE
/* The worker */

#ifndef SIMT_INSPECT /* times mean nothing there, and a check should compile fast */
static inline double check_launches(const Lesson *lesson, LessonLauncher launch, float *const *array, const int *size,
                                    int repeats) {
  cudaEvent_t begin, end;
  float milliseconds = 0;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  CUDA_CHECK(cudaEventRecord(begin));
  for (int i = 0; i < repeats; i++) lesson->call(launch, array, size);
  CUDA_CHECK(cudaEventRecord(end));
  CUDA_CHECK(cudaEventSynchronize(end));
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  return 1e-3 * milliseconds / repeats;
}

/* Enough launches for 20 ms, five times; the fastest. Inputs are the same million random elements over and over. The
 * samples are for whoever leaves work out when arrays are large. */
static inline int check_time(const Lesson *lesson, LessonLauncher launch, const CheckRequest *request,
                             CheckReply *reply) {
  const size_t some = 1 << 20;
  float *array[LESSON_ARRAYS], *random = (float *)xmalloc(some * sizeof(float));
  for (int a = 0; a < lesson->arrays; a++) {
    size_t n = lesson_elements(lesson, &lesson->array[a], request->size);
    size_t size = lesson_element_bytes(&lesson->array[a]);
    CUDA_CHECK(cudaMalloc((void **)&array[a], n * size));
    CUDA_CHECK(cudaMemset(array[a], 0xFF, n * size)); /* NaN */
    if (lesson->array[a].output) continue;
    lesson_fill(lesson, a, request->size, 1, random, n < some ? n : some);
    for (size_t at = 0; at < n; at += some)
      device_upload(DEVICE_GPU, (char *)array[a] + at * size, random, (n - at < some ? n - at : some) * size);
  }
  free(random);
  const LessonVersion version = lesson_version("yours", launch, "");
  lesson_workspace_open(lesson, &version, request->size, 0, array);
  check_launches(lesson, launch, array, request->size, 1); /* the first launch loads the kernel */
  double one = check_launches(lesson, launch, array, request->size, 1);
  int repeats = one > 0 && one < 0.02 ? (int)fmin(1000, 1 + 0.02 / one) : 1;
  reply->seconds = one;
  for (int i = 0; i < 5 && one < 1; i++)
    reply->seconds = fmin(reply->seconds, check_launches(lesson, launch, array, request->size, repeats));
  for (int a = 0; a < lesson->arrays; a++) /* 0.75: whoever leaves alone what is there already has to do it again */
    if (lesson->array[a].output)
      CUDA_CHECK(cudaMemset(array[a], 0x3F, lesson_array_bytes(lesson, &lesson->array[a], request->size)));
  check_launches(lesson, launch, array, request->size, 1);
  size_t n = lesson_elements(lesson, &lesson->array[0], request->size);
  size_t size = lesson_element_bytes(&lesson->array[0]);
  for (int i = 0; i < CHECK_SAMPLES; i++) {
    PhiloxBlock place = philox4x32(request->seed, 0, (uint64_t)i);
    size_t at = (((uint64_t)place.word[0] << 32) | place.word[1]) % n;
    float element;
    device_download(DEVICE_GPU, &element, (const char *)array[0] + at * size, size);
    lesson_to_floats(&reply->sample[i], &element, lesson->array[0].element, 1);
  }
  for (int a = 0; a < lesson->arrays; a++) CUDA_CHECK(cudaFree(array[a]));
  lesson_workspace_close(lesson, 0, array);
  reply->magic = CHECK_MAGIC;
  return check_write(reply, sizeof *reply);
}

#endif

/* Of each kind of access the kernel that wastes most. Most kernels waste nothing, and then nothing is asked. */
static inline void check_draw(CheckReply *reply) {
#ifdef SIMT_INSPECT
  const LessonCounts *c = &reply->counts;
  if (c->global_load_sectors <= c->global_load_ideal_sectors &&
      c->global_store_sectors <= c->global_store_ideal_sectors &&
      c->shared_load_conflicts + c->shared_store_conflicts == 0)
    return;
  const SimtInspectReport *report = simt_inspect_report();
  for (int t = 0; t < CHECK_PICTURES; t++) {
    uint64_t most = 0;
    for (int k = 0; k < report->kernel_count; k++) {
      const SimtWorst *worst = &report->kernels[k].worst[t];
      FILE *out = worst->cost - worst->ideal > most ? fmemopen(reply->picture[t], CHECK_PICTURE, "w") : NULL;
      if (out == NULL) continue;
      most = simt_inspect_draw(out, &report->kernels[k], (SimtTraffic)t);
      fclose(out);
    }
  }
#else
  (void)reply;
#endif
}

/* The student's CUDA_CHECK() has failed: the judge hears of which error. */
static inline void check_at_exit(void) {
  static CheckReply reply;
  if (cuda_failure == cudaSuccess) return;
  reply.magic = CHECK_MAGIC;
  reply.status = (int32_t)cuda_failure;
  reply.ended = 1;
  check_write(&reply, sizeof reply);
}

/* One request: 0 when the judge has hung up. */
static inline int check_serve(const Lesson *lesson, LessonLauncher launch) {
#ifdef SIMT_INSPECT
  const int guarded = 0; /* each array exactly as long as it is: the inspector sees one step beyond, and says where */
#else
  const int guarded = 1;
#endif
  CheckRequest request;
  static CheckReply reply;
  LessonHost host;
  LessonResult seen;
  float *array[LESSON_ARRAYS];
  Error err;
  if (!check_read(&request, sizeof request, 3600) || request.magic != CHECK_MAGIC) return 0;
  memset(&reply, 0, sizeof reply);
  memset(&seen, 0, sizeof seen);
#ifndef SIMT_INSPECT
  if (request.timed) return check_time(lesson, launch, &request, &reply);
#endif
  for (int a = 0; a < lesson->arrays; a++) {
    const LessonArray *declared = &lesson->array[a];
    host.elements[a] = lesson_elements(lesson, declared, request.size);
    host.bytes[a] = lesson_array_bytes(lesson, declared, request.size);
    host.array[a] = (float *)xmalloc(host.bytes[a]);
    if (!check_read(host.array[a], host.bytes[a], 3600)) return 0;
    if (guarded)
      array[a] = (float *)guard_alloc_elements(DEVICE_GPU, host.elements[a], lesson_element_bytes(declared));
    else
      CUDA_CHECK(cudaMalloc((void **)&array[a], host.bytes[a]));
    device_upload(DEVICE_GPU, array[a], host.array[a], host.bytes[a]);
#ifdef SIMT_INSPECT
    simt_inspect_name(array[a], declared->name);
#endif
  }
  const LessonVersion version = lesson_version("yours", launch, "");
  const size_t workspace = lesson_workspace_bytes(lesson, &version, request.size);
  lesson_workspace_open(lesson, &version, request.size, guarded, array);
#ifdef SIMT_INSPECT
  if (workspace > 0) simt_inspect_name(array[lesson->arrays], "workspace");
#endif
  lesson_inspect_begin();
  lesson->call(launch, array, request.size);
  cudaError_t status = cudaDeviceSynchronize();
  lesson_inspect_end(&seen);
  reply.magic = CHECK_MAGIC;
  reply.status = (int32_t)status;
  reply.inspected = seen.inspected;
  reply.counts = seen.counts;
  reply.findings = seen.findings;
  reply.finding = (int32_t)seen.finding_kind;
  check_draw(&reply);
  if (seen.findings > 0) snprintf(reply.text, sizeof reply.text, "%s", seen.finding);
  if (status != cudaSuccess && seen.findings == 0)
    snprintf(reply.text, sizeof reply.text, "%s (%s) %s", cudaGetErrorString(status), cudaGetErrorName(status),
             cuda_error_advice(status));
  for (int a = 0; a < lesson->arrays && status == cudaSuccess; a++) {
    const LessonArray *declared = &lesson->array[a];
    size_t n = host.elements[a], size = lesson_element_bytes(declared);
    device_download(DEVICE_GPU, host.array[a], array[a], host.bytes[a]);
    if (guarded && guard_check_elements(DEVICE_GPU, array[a], n, size, declared->name, &err) != 0) {
      if (reply.findings++ == 0) reply.finding = DIAGNOSIS_OUT_OF_BOUNDS;
      snprintf(reply.text, sizeof reply.text, "Outside its array %s.", err.message);
    }
  }
  if (workspace > 0 && status == cudaSuccess && guarded &&
      guard_check_elements(DEVICE_GPU, array[lesson->arrays], workspace, 1, "workspace", &err) != 0) {
    if (reply.findings++ == 0) reply.finding = DIAGNOSIS_OUT_OF_BOUNDS;
    snprintf(reply.text, sizeof reply.text, "Outside its workspace: bytes of %s.", err.message);
  }
  if (status == cudaSuccess) lesson_workspace_close(lesson, guarded, array);
  if (!check_write(&reply, sizeof reply)) return 0;
  for (int a = 0; a < lesson->arrays; a++) {
    if (!check_write(host.array[a], host.bytes[a])) return 0;
    free(host.array[a]);
    if (status == cudaSuccess && guarded) guard_free(DEVICE_GPU, array[a]);
    if (status == cudaSuccess && !guarded) device_free(DEVICE_GPU, array[a]);
  }
  return 1;
}

/* Serves one request after the other. */
static inline int check_work(const Lesson *lesson, LessonLauncher launch) {
  atexit(check_at_exit);
  while (check_serve(lesson, launch)) {
  }
  return 0;
}

#define CHECK_MAIN(lesson_declared)             \
  CHECK_POINTER                                 \
  int main(void) {                              \
    static Lesson lesson = lesson_declared;     \
    return check_work(&lesson, check_launcher); \
  }

/* ---------------------------------------------------------------------------------------------------------------- */
#else
/* The judge */

static struct {
  void (*call)(LessonLauncher, float *const *, const int *); /* the lesson's own, for the reference */
  const Lesson *lesson;
  const char *verdict; /* NULL: nothing went wrong so far */
  CheckReply reply;
  double seconds; /* that a request may take */
} check;

static inline void check_worker(void) {}

/* Reads the reply. 0, and a verdict, when there is none. */
static inline int check_hear(int sent) {
  if (!sent || !check_read(&check.reply, sizeof check.reply, check.seconds)) {
    check.verdict = sent && errno == ETIMEDOUT ? "timeout" : "died";
    check.reply.text[0] = '\0';
    return 0;
  }
  check.reply.text[CHECK_TEXT - 1] = '\0';
  for (int i = 0; i < CHECK_PICTURES; i++) check.reply.picture[i][CHECK_PICTURE - 1] = '\0';
  const double *count = &check.reply.counts.global_load_requests; /* doubles one after the other */
  int sane = check.reply.finding >= 0 && check.reply.finding < DIAGNOSIS_KINDS;
  sane = sane && check.reply.magic == CHECK_MAGIC && check.reply.seconds >= 0 && check.reply.seconds < HUGE_VAL;
  for (size_t i = 0; i < sizeof check.reply.counts / sizeof *count; i++)
    sane = sane && count[i] >= 0 && count[i] == floor(count[i]) && count[i] < HUGE_VAL; /* NaN passes any limit */
  if (sane && check.reply.ended) check.verdict = "died";
  if (sane) return !check.reply.ended;
  check.verdict = "disturbed";
  snprintf(check.reply.text, CHECK_TEXT, "Something other than results came through the channel for results.");
  return 0;
}

/* Sends the arrays to the worker and puts back what comes. Leaves them alone once something is wrong. */
static inline void check_ask(float *const *array, const int *size) {
  CheckRequest request;
  memset(&request, 0, sizeof request);
  request.magic = CHECK_MAGIC;
  memcpy(request.size, size, sizeof request.size);
  int sent = check_write(&request, sizeof request);
  for (int a = 0; a < check.lesson->arrays && sent; a++) {
    size_t bytes = lesson_array_bytes(check.lesson, &check.lesson->array[a], size);
    void *host = xmalloc(bytes);
    device_download(DEVICE_GPU, host, array[a], bytes);
    sent = check_write(host, bytes);
    free(host);
  }
  if (!check_hear(sent)) return;
  if (check.reply.status != cudaSuccess) check.verdict = "cuda";
  for (int a = 0; a < check.lesson->arrays; a++) {
    size_t bytes = lesson_array_bytes(check.lesson, &check.lesson->array[a], size);
    void *host = xmalloc(bytes);
    if (check_read(host, bytes, check.seconds))
      device_upload(DEVICE_GPU, array[a], host, bytes);
    else if (check.verdict == NULL)
      check.verdict = errno == ETIMEDOUT ? "timeout" : "died";
    free(host);
  }
}

/* Stands in for the lesson's `call`. */
static inline void check_call(LessonLauncher launch, float *const *array, const int *size) {
  if (launch != check_worker)
    check.call(launch, array, size);
  else if (check.verdict == NULL)
    check_ask(array, size);
}

/* What the message says, as names; without a verdict on the values it is what the worker says. */
static inline Diagnoses check_diagnoses(const LessonResult *result) {
  Diagnoses found;
  memset(&found, 0, sizeof found);
  diagnoses_add(&found, (Diagnosis)check.reply.finding); /* nearer to the cause than the values */
  if (check.verdict == NULL && (check.reply.findings == 0 || result->wrong[0] == '\0'))
    diagnoses_join(&found, &result->found);
  if (check.verdict == NULL) return found;
  if (strcmp(check.verdict, "disturbed") == 0) diagnoses_add(&found, DIAGNOSIS_DISTURBED);
  if (strcmp(check.verdict, "timeout") == 0) diagnoses_add(&found, DIAGNOSIS_TIMEOUT);
  if (check.reply.findings == 0) diagnoses_add(&found, lesson_cuda_diagnosis((cudaError_t)check.reply.status));
  return found;
}

static inline void check_print(const char *verdict, const LessonResult *result, int shapes, const char *message) {
  const LessonCounts *c = &check.reply.counts;
  const Diagnoses found = check_diagnoses(result);
  char names[DIAGNOSES_TEXT];
  printf("verdict %s\nshapes %d\nerror %.9g\ntolerance %.9g\ninspected %d\n", verdict, shapes, result->error,
         result->tolerance, check.reply.inspected);
  printf("status %d\nfindings %d\n", (int)check.reply.status, check.reply.inspected ? (int)check.reply.findings : 0);
  printf("diagnosis %s\n", diagnoses_text(&found, names, sizeof names));
  printf("global_load_requests %.17g\nglobal_load_sectors %.17g\n", c->global_load_requests, c->global_load_sectors);
  printf("global_store_requests %.17g\nglobal_store_sectors %.17g\n", c->global_store_requests,
         c->global_store_sectors);
  printf("shared_load_requests %.17g\nshared_load_wavefronts %.17g\n", c->shared_load_requests,
         c->shared_load_wavefronts);
  printf("shared_load_conflicts %.17g\nshared_store_requests %.17g\n", c->shared_load_conflicts,
         c->shared_store_requests);
  printf("shared_store_wavefronts %.17g\nshared_store_conflicts %.17g\n", c->shared_store_wavefronts,
         c->shared_store_conflicts);
  printf("global_atomic_requests %.17g\nstream_steps %.17g\n", c->global_atomic_requests, c->stream_steps);
  printf("launched_blocks %.17g\nlaunched_threads %.17g\n", c->launched_blocks, c->launched_threads);
  printf("working_blocks %.17g\nworking_warps %.17g\nworking_threads %.17g\n", c->working_blocks, c->working_warps,
         c->working_threads);
  printf("bulk_copies %.17g\nbulk_bytes %.17g\nwgmma_products %.17g\n", c->bulk_copies, c->bulk_bytes,
         c->wgmma_products);
  for (int i = 0; i < CHECK_PICTURES; i++)
    for (const char *line = check.reply.picture[i]; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
      printf("picture%d %.*s\n", i, (int)strcspn(line, "\n"), line);
  printf("seconds %.9g\nmessage %s\n", check.reply.seconds, message);
}

/* What has to stand behind a text for the next line to begin. */
static inline const char *check_line_end(const char *text) {
  size_t length = strlen(text);
  return length == 0 || text[length - 1] == '\n' ? "" : "\n";
}

/* lesson_verify() with one run instead of two. */
static inline int check_once(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                             uint64_t seed, LessonResult *result) {
  LessonHost host;
  float *array[LESSON_ARRAYS];
  char text[LESSON_TEXT];
  memset(result, 0, sizeof *result);
  snprintf(result->message, sizeof result->message, "%s on %s: ", version->name,
           lesson_shape_text(lesson, shape, text));
  lesson_host_open(lesson, shape, seed, &host);
  lesson_expect(lesson, shape, &host);
  lesson_gpu_open(lesson, &host, 0, array);
  int wrong = lesson_run(lesson, version, shape, &host, array, result);
  lesson_gpu_close(lesson, 0, array);
  lesson_host_close(lesson, &host);
  return wrong;
}

/* Lets the worker measure its `timed` shape. */
static inline void check_stopwatch(const Lesson *lesson, uint64_t seed) {
  CheckRequest request;
  memset(&request, 0, sizeof request);
  request.magic = CHECK_MAGIC;
  request.timed = 1;
  request.seed = seed;
  memcpy(request.size, lesson->timed.size, sizeof request.size);
  if (!check_hear(check_write(&request, sizeof request))) return;
  printf("samples");
  for (int i = 0; i < CHECK_SAMPLES; i++) printf(" %.9g", (double)check.reply.sample[i]);
  printf("\n");
}

static inline int check_ones(const Lesson *lesson, int shape) {
  int ones = 0;
  for (int i = 0; i < lesson->sizes; i++) ones += lesson->check[shape].size[i] == 1;
  return ones;
}

/* A shape of one or three elements fails first, but shows little: does one of the next say more? Those with more sizes
 * of 1 than the first are the last: of a sum of one product each row is a multiple of each. Takes its result, and
 * returns its number. */
static inline int check_explain(const Lesson *lesson, const LessonVersion *version, uint64_t seed, int shape,
                                LessonResult *result) {
  static LessonResult more;
  const CheckReply reply = check.reply;
  int tried = 0;
  for (int degenerate = 0; degenerate < 2; degenerate++)
    for (int i = shape + 1; i < lesson->checks && tried < CHECK_MORE_SHAPES && !result->explained; i++) {
      if ((check_ones(lesson, i) > check_ones(lesson, 0)) != degenerate) continue;
      tried++;
      int wrong = lesson_verify(lesson, version, &lesson->check[i], seed + (uint64_t)i, &more);
      if (check.verdict != NULL) break; /* that is another story */
      if (wrong && (more.explained || check.reply.findings > 0)) {
        *result = more;
        return i;
      }
    }
  check.verdict = NULL;
  check.reply = reply;
  return shape;
}

static inline int check_main(Lesson lesson) {
  char what[16];
  unsigned long long seed;
  char message[2 * CHECK_TEXT];
  LessonResult result, worst;
  if (scanf("%15s %llu %lf", what, &seed, &check.seconds) != 3)
    die("expected \"check SEED SECONDS\" on standard input");
  signal(SIGPIPE, SIG_IGN);
  memset(&result, 0, sizeof result);
  memset(&worst, 0, sizeof worst);
  check.call = lesson.call;
  check.lesson = &lesson;
  lesson.call = check_call;
  LessonVersion version = lesson_version("yours", check_worker, "");
  int shapes = 0;
  const int again = strcmp(what, "again") == 0;
  if (strcmp(what, "time") == 0) check_stopwatch(&lesson, seed);
  /* The last is the shape on which costs are counted: what is cheap there must be right there, too, and its counts stay
   * in the reply. */
  const int runs = strcmp(what, "time") == 0 ? 0 : lesson.checks + !again;
  for (int i = 0; i < runs && check.verdict == NULL; i++) {
    char on[LESSON_TEXT];
    const int counted = i == lesson.checks;
    const LessonShape *shape = counted ? &lesson.counted : &lesson.check[i];
    const int twice = !counted && !again && (i == 0 || !check.reply.inspected);
    const uint64_t inputs = seed + (counted ? 0 : (uint64_t)i);
    int wrong = (twice ? lesson_verify : check_once)(&lesson, &version, shape, inputs, &result);
    lesson_shape_text(&lesson, shape, on);
    if (check.verdict != NULL) {
      snprintf(message, sizeof message, "on %s: %s", on, check.reply.text);
      check_print(check.verdict, &result, shapes, message);
      return 0;
    }
    if (wrong && !counted && result.fault == LESSON_WRONG && check.reply.findings == 0)
      lesson_shape_text(&lesson, &lesson.check[check_explain(&lesson, &version, seed, i, &result)], on);
    /* A finding of the inspector is nearer to the cause: values read from a wrong address follow no formula. */
    if (wrong || check.reply.findings > 0) {
      const char *text = check.reply.findings > 0 ? check.reply.text : result.message;
      snprintf(message, sizeof message, "%s", text);
      if (check.reply.findings > 0 && result.wrong[0] != '\0')
        snprintf(message, sizeof message, "%s%sOn %s: %s. That may be a consequence: fix this first.", text,
                 check_line_end(text), on, result.wrong);
      else if (check.reply.findings > 0 && wrong)
        snprintf(message, sizeof message, "%s%s%s", text, check_line_end(text), result.message);
      check_print(wrong ? "wrong" : "finding", &result, shapes, message);
      return 0;
    }
    if (!counted && (shapes++ == 0 || result.error * worst.tolerance > worst.error * result.tolerance)) worst = result;
  }
  check_print(check.verdict != NULL ? check.verdict : "right", &worst, shapes, check.reply.text);
  return 0;
}

#define CHECK_MAIN(lesson_declared) \
  int main(void) { return check_main(lesson_declared); }
#endif /* CHECK_JUDGE */

#endif /* CHECK_VERSION */

#endif /* LEARN_CHECK_H */
