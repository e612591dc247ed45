/* report.c - diagnoses a student can act on: what happened, in which kernel, launch and block, where every thread of
 * the block is, and what to try. */
#include "runtime.h"

#include "api.h"
#include "hooks.h"
#include "lines.h"

static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

/* With report_lock. */
static void tell(const char *format, va_list arguments) {
  char *text;
  if (vasprintf(&text, format, arguments) < 0) abort();
  fprintf(stderr, "=== simt: %s\n", text);
  TELL_INSPECTOR(told(text));
  free(text);
}

void simt_report_host(const char *format, ...) {
  va_list arguments;
  fflush(stdout);
  pthread_mutex_lock(&report_lock);
  va_start(arguments, format);
  tell(format, arguments);
  va_end(arguments);
  pthread_mutex_unlock(&report_lock);
}

/* ---- addresses to source lines ---- */

static int is_ours(const char *line) {
  return strstr(line, "/simt/include/") || strstr(line, "/simt/runtime/") || strstr(line, "/simt/inspect/");
}

const char *simt_where(const void *address, char *text, size_t size) {
  enum { MOST = 16 };
  static __thread SimtFrame frame[MOST];
  snprintf(text, size, "%p", address);
  int frames = simt_frames((uintptr_t)address - simt_program_base(), frame, MOST);
  for (int i = 0; i < frames; i++) {
    const char *file = frame[i].file, *function = frame[i].function;
    if (!frame[i].line || file[0] == '?' || is_ours(file)) continue;
    if (strncmp(file, "/proc/self/cwd/", 15) == 0) file += 15; /* Bazel compiles there, wherever that is */
    if (function[0] == '?' || strstr(function, "simt::"))
      snprintf(text, size, "%s:%d", file, frame[i].line);
    else
      snprintf(text, size, "%s:%d (%s)", file, frame[i].line, function);
    break;
  }
  return text;
}

/* ---- where the threads of a block are ---- */

static const char *const state_text[] = {
    [SIMT_UNSTARTED] = "not started yet", [SIMT_RUNNING] = "running",    [SIMT_READY] = "ready to go on after",
    [SIMT_AT_BARRIER] = "waiting at",     [SIMT_AT_WARP] = "waiting at", [SIMT_AT_CONDITION] = "waiting at",
    [SIMT_AT_GRID] = "waiting at",        [SIMT_DONE] = "returned",
};

static int same_place(const Worker *w, int a, int b) {
  const Thread *s = &w->threads[a], *t = &w->threads[b];
  if (w->state[a] != w->state[b]) return 0;
  if (w->state[a] < SIMT_READY || w->state[a] == SIMT_DONE) return 1;
  return s->line == t->line && s->mask == t->mask && s->what == t->what && s->file == t->file;
}

static void print_group(const Worker *w, int first, const char *running_at) {
  int count = 0, state = w->state[first];
  const Thread *t = &w->threads[first];
  char examples[160] = "";
  for (int r = first; r < simt_threads.count; r++) {
    if (!same_place(w, first, r)) continue;
    uint3 i = w->index_by_rank[r];
    if (count < 4) {
      size_t used = strlen(examples);
      snprintf(examples + used, sizeof examples - used, " (%u,%u,%u)", i.x, i.y, i.z);
    }
    count++;
  }
  fprintf(stderr, "    %d thread%s %s", count, count == 1 ? "" : "s", state_text[state]);
  if (state == SIMT_RUNNING && running_at) fprintf(stderr, " at %s", running_at);
  if (state >= SIMT_READY && state != SIMT_DONE) {
    fprintf(stderr, " %s", t->what);
    if (state == SIMT_AT_WARP) fprintf(stderr, " with mask 0x%08x", t->mask);
    if (t->line) fprintf(stderr, ", %s:%d", t->file, t->line);
  }
  fprintf(stderr, ":%s%s\n", examples, count > 4 ? " ..." : "");
}

static void print_threads(const Worker *w, const char *running_at) {
  for (int r = 0; r < simt_threads.count; r++) {
    int first = 1;
    for (int s = 0; s < r && first; s++) first = !same_place(w, s, r);
    if (first) print_group(w, r, running_at);
  }
}

/* Something forgivable is told once for each kernel's launch line. */
static int told_before(const SimtKernel *kernel, const char *format) {
  static struct {
    const char *file, *format;
    int line;
  } told[64];
  static int count;
  for (int i = 0; i < count; i++)
    if (told[i].format == format && told[i].line == kernel->line && strcmp(told[i].file, kernel->file) == 0) return 1;
  if (count < 64) {
    told[count].format = format;
    told[count].file = kernel->file;
    told[count++].line = kernel->line;
  }
  return 0;
}

static void report(const char *running_at, const char *advice, const char *format, va_list arguments) {
  Worker *w = simt_worker;
  const SimtKernel *k = w->job->kernel;
  fflush(stdout);
  pthread_mutex_lock(&report_lock);
  if (!told_before(k, format)) {
    tell(format, arguments);
    fprintf(stderr, "    kernel %s, launched at %s:%d with <<<(%u,%u,%u), (%u,%u,%u)>>>; block (%u,%u,%u)\n", k->name,
            k->file, k->line, k->grid.x, k->grid.y, k->grid.z, k->block.x, k->block.y, k->block.z, blockIdx.x,
            blockIdx.y, blockIdx.z);
    print_threads(w, running_at);
    simt_describe_waits(w);
    if (advice) fprintf(stderr, "    try: %s\n", advice);
  }
  pthread_mutex_unlock(&report_lock);
}

void simt_report_block(const char *advice, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report(NULL, advice, format, arguments);
  va_end(arguments);
}

void simt_report_running(const char *running_at, const char *advice, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report(running_at, advice, format, arguments);
  va_end(arguments);
}

void simt_kernel_fault(cudaError_t error, const char *file, int line, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!simt_worker) {
    fprintf(stderr, "=== simt: %s, %s:%d, called by host code\n", text, file, line);
    abort();
  }
  char place[256];
  snprintf(place, sizeof place, "%s:%d", file, line);
  simt_report_running(place, NULL, "%s\n    thread (%u,%u,%u), %s", text, threadIdx.x, threadIdx.y, threadIdx.z, place);
  simt_give_up(error);
  __builtin_unreachable();
}

void simt_shuffle_from_outside(unsigned sources, int alone) {
  const Thread *t = &simt_worker->threads[simt_current_rank()];
  const char *advice =
      "read from a lane of the mask that has not returned; on a GPU the result is undefined, here each "
      "such lane keeps its own value";
  char place[512];
  snprintf(place, sizeof place, "%s:%d", t->file, t->line);
  if (alone)
    simt_report_running(place, advice, "mask: %s with mask 0x%08x: no lane reads from one that takes part\n    at %s",
                        t->what, t->mask, place);
  else if (sources & ~t->mask)
    simt_report_running(place, advice,
                        "mask: %s with mask 0x%08x: a lane reads from lane %d, which the mask does not contain\n"
                        "    at %s",
                        t->what, t->mask, __builtin_ctz(sources & ~t->mask), place);
}

/* assert() in a kernel prints what a GPU prints, ends the launch, and is cudaErrorAssert from the next call on; in host
 * code it is the C library's. */
void __assert_fail(const char *expression, const char *file, unsigned line, const char *function) {
  fflush(stdout);
  if (!simt_worker) {
    fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
    abort();
  }
  fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line, function,
          blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, expression);
  TELL_INSPECTOR(told("an assertion of a kernel failed"));
  simt_give_up(cudaErrorAssert);
  __builtin_unreachable();
}

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0:print_legend=0"; } /* SIMT_LEAKS tells of leaks */

/* AddressSanitizer found an access out of bounds and is about to print stacks: first in which kernel, block and
 * thread. */
void __asan_on_error(void) {
  char place[512];
  if (!simt_worker) return;
  if (__asan_get_report_access_size() == 0) { /* a signal: no access that it looked at */
    simt_report_running(NULL, "AddressSanitizer tells below where: a pointer was null or wild",
                        "AddressSanitizer: %s\n    thread (%u,%u,%u)", __asan_get_report_description(), threadIdx.x,
                        threadIdx.y, threadIdx.z);
    return;
  }
  simt_where((char *)__asan_get_report_pc() - 1, place, sizeof place); /* it is the next instruction */
  simt_report_running(place,
                      "compare the index with the size of the array; AddressSanitizer tells below which memory it is",
                      "AddressSanitizer: %s, %s of %zu bytes\n    thread (%u,%u,%u), %s",
                      __asan_get_report_description(), __asan_get_report_access_type() ? "write" : "read",
                      __asan_get_report_access_size(), threadIdx.x, threadIdx.y, threadIdx.z, place);
}
#endif
