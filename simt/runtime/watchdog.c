/* watchdog.c - what a kernel does wrong without calling anything: it never ends, or the processor stops it.
 *
 * A thread that waits in a loop for another thread of its block, `while (!*flag);`, keeps the OS thread for itself. One
 * watcher looks at all workers twice a second; a worker that has used SIMT_WATCHDOG seconds of processor time without
 * going from one CUDA thread to another, while others of its block are waiting or not started, is interrupted and its
 * place reported. A block of one thread, or whose other threads have returned, may compute for ten times as long.
 *
 * It also sees when for a while no block of a launch has ended, and launch.c then lets more of them begin.
 *
 * SIGSEGV and its kin inside a kernel end the launch with the error that a GPU gives, not the program.
 */
#include "runtime.h"

#if defined(__GLIBC__)
#include <execinfo.h>
#endif
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "api.h"
#include "hooks.h"

enum { SIGNAL_STOP = SIGURG, MAX_WATCHED = 4096, ALTERNATE_STACK = 128 * 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  Worker *worker;
  unsigned long progress; /* when last looked at */
  double since;           /* processor time of the OS thread then, seconds */
} watched[MAX_WATCHED];
static int watched_count;

static double processor_time(Worker *w) {
  clockid_t clock;
  struct timespec used;
  if (pthread_getcpuclockid(w->os_thread, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static void look_at(int i, double limit) {
  Worker *w = watched[i].worker;
  unsigned long progress = atomic_load(&w->progress);
  double now = processor_time(w);
  if (!atomic_load(&w->in_block) || progress != watched[i].progress) {
    watched[i].progress = progress;
    watched[i].since = now;
  } else if (now - watched[i].since > limit) {
    pthread_kill(w->os_thread, SIGNAL_STOP);
    watched[i].since = now;
  }
}

enum { LOOKS = 10 }; /* at the launch, every 50 ms, for one at the workers */

static void *watch(void *unused) {
  (void)unused;
  unsigned long blocks_before = 0; /* that had ended at the last look */
  for (int looks = 1;; looks++) {
    nanosleep(&(struct timespec){0, 500000000 / LOOKS}, NULL);
    unsigned long blocks = 0;
    int running = 0, failed, crowded;
    simt_ask_launch(&failed, &crowded);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < watched_count; i++) {
      blocks += atomic_load(&watched[i].worker->blocks);
      running += atomic_load(&watched[i].worker->in_block);
    }
    /* Blocks that share the processors get little of their time each; those of a launch that has failed get none. */
    double limit = simt_settings.watchdog, share = (double)simt_settings.threads / (running > 0 ? running : 1);
    if (share < 0.1) share = 0.1;
    if (share < 1 && crowded) limit *= share;
    for (int i = 0; i < watched_count && looks % LOOKS == 0; i++)
      if (limit > 0 || failed) look_at(i, failed ? 0.02 : limit);
    pthread_mutex_unlock(&lock);
    /* The inspector is slow, and notices by itself when threads only wait. */
    if (!SIMT_INSPECTED && running && blocks == blocks_before) simt_no_block_ended();
    blocks_before = blocks;
  }
  return NULL;
}

static const void *interrupted_at(void *context) {
#if defined(__x86_64__)
  return (const void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (const void *)((ucontext_t *)context)->uc_mcontext.pc;
#else
  (void)context;
  return NULL;
#endif
}

static const char *stack_pointer(void *context) {
#if defined(__x86_64__)
  return (const char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  return (const char *)((ucontext_t *)context)->uc_mcontext.sp;
#else
  return context;
#endif
}

/* The student's line: where the thread was stopped, or, if that is in a library or in this runtime, the call of it. */
static const char *place_of(void *context, char *text, size_t size) {
  simt_where(interrupted_at(context), text, size);
#if defined(__GLIBC__)
  void *frame[16];
  int frames = strncmp(text, "0x", 2) == 0 ? backtrace(frame, 16) : 0;
  for (int i = 0; i < frames && strncmp(text, "0x", 2) == 0; i++) simt_where((const char *)frame[i] - 1, text, size);
  if (strncmp(text, "0x", 2) == 0) simt_where(interrupted_at(context), text, size);
#endif
  return text;
}

/* The kernel does not return from these handlers, so the signal must not stay blocked: SA_NODEFER. */
static void stop(int signal, siginfo_t *info, void *context) {
  (void)signal;
  (void)info;
  static __thread int warnings;
  if (!simt_worker) return;
  if (atomic_load(&simt_worker->job->failed)) simt_abort_block(); /* it may wait for a block that was given up */
  double limit = simt_settings.watchdog;
  int others = simt_threads.count - simt_threads.finished - 1;
  if (others == 0 && ++warnings % 10 != 0) return; /* it may simply have much to do */
  char place[512];
  simt_report_running(
      place_of(context, place, sizeof place),
      "if it waits for a thread of its block, let that one go on: by __nanosleep() in the loop, a barrier, or an "
      "atomic operation like atomicCAS() or atomicAdd(p, 0); if for another block, does that one ever come so far? If "
      "the kernel really computes for so long, SIMT_WATCHDOG=0 lets it",
      "watchdog: thread (%u,%u,%u) has run for %g seconds of processor time%s\n    at %s", threadIdx.x, threadIdx.y,
      threadIdx.z, others ? limit : 10 * limit, others ? " while others of its block are waiting" : "", place);
  simt_give_up(cudaErrorLaunchTimeout);
}

/* The access hit the guard page below a stack; or, with a frame larger than that page, the stack pointer went past
 * it. */
static int stack_is_full(const char *address, const char *pointer) {
  const char *own = simt_worker->fibre->stack;
  for (int i = 0; i < simt_worker->fibre_count; i++) {
    const char *stack = simt_worker->fibres[i]->stack;
    if (address < stack && address >= stack - sysconf(_SC_PAGESIZE)) return 1;
  }
  return own && pointer < own && address > pointer - 4096 && address < own;
}

/* x86-64 answers both an unaligned 16-byte access and an address that no pointer can have with a fault that tells no
 * address. The former comes from the aligned moves: movaps and movdqa, with and without a VEX prefix. */
static int is_aligned_move(const unsigned char *code) {
  for (int i = 0; i < 5; i++) {
    int move = code[i + 1] == 0x28 || code[i + 1] == 0x29 || code[i + 1] == 0x6f || code[i + 1] == 0x7f;
    if (move && (code[i] == 0x0f || (i > 0 && (code[i - 1] == 0xc5 || code[i - 1] == 0xc4)) ||
                 (i > 1 && code[i - 2] == 0xc4) || (i > 2 && code[i - 3] == 0x62)))
      return 1;
  }
  return 0;
}

static void processor_fault(int signal, siginfo_t *info, void *context) {
  if (!simt_worker) { /* host code: as if nobody had caught it */
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
    raise(signal);
    return;
  }
  char place[512];
  const char *address = info->si_addr;
  place_of(context, place, sizeof place);
  uint3 t = threadIdx;
  if (signal == SIGFPE) {
    simt_report_running(place, "a GPU gives a meaningless quotient instead of stopping: guard the divisor",
                        "integer division by zero (or overflow of a division) in thread (%u,%u,%u)\n    at %s", t.x,
                        t.y, t.z, place);
    simt_give_up(cudaErrorLaunchFailure);
  } else if (signal == SIGILL) {
    simt_report_running(place, NULL, "illegal instruction in thread (%u,%u,%u)\n    at %s", t.x, t.y, t.z, place);
    simt_give_up(cudaErrorIllegalInstruction);
  } else if (stack_is_full(address, stack_pointer(context))) {
    simt_report_running(
        place,
        "a thread has " /* SIMT_STACK_BYTES */
        "256 KB here (on a GPU 1 KB of stack, cudaLimitStackSize, "
        "and 512 KB of local memory): move large arrays to shared or global memory, bound the recursion",
        "stack overflow in thread (%u,%u,%u)\n    at %s", t.x, t.y, t.z, place);
  } else if (info->si_code == SI_KERNEL && is_aligned_move(interrupted_at(context))) {
    simt_report_running(place, "a float4 lies at a multiple of 16 bytes: check the pointer's offset and the row length",
                        "misaligned: thread (%u,%u,%u) accessed 16 bytes at an address that is not a multiple of 16\n"
                        "    at %s",
                        t.x, t.y, t.z, place);
    simt_give_up(cudaErrorMisalignedAddress);
  } else if (info->si_code == SI_KERNEL) {
    simt_report_running(place, "a pointer that was never set: device memory begins its life filled with 0xff",
                        "illegal address: thread (%u,%u,%u) accessed one that no memory can have\n    at %s", t.x, t.y,
                        t.z, place);
  } else if (address < (const char *)4096) {
    simt_report_running(place, "was its cudaMalloc() checked, and the pointer passed to the kernel?",
                        "null pointer: thread (%u,%u,%u) accessed address %p\n    at %s", t.x, t.y, t.z, address,
                        place);
  } else {
    simt_report_running(place,
                        SIMT_INSPECTED
                            ? "is the index within the array, and the pointer one that the kernel was given?"
                            : "is the index within the array, and the pointer one that the kernel was given? "
                              "simtcc --inspect names the array and the index's line",
                        "illegal address: thread (%u,%u,%u) accessed %p\n    at %s", t.x, t.y, t.z, address, place);
  }
  simt_give_up(cudaErrorIllegalAddress);
}

static void start_watching(void) {
  struct sigaction on_stop = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
  sigaction(SIGNAL_STOP, &on_stop, NULL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose own reports are better */
  struct sigaction on_fault = {.sa_sigaction = processor_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (int i = 0; i < 4; i++) sigaction(faults[i], &on_fault, NULL);
#else
  (void)processor_fault;
#endif
#if defined(__GLIBC__)
  backtrace((void *[1]){0}, 1); /* loads its library now and not in a signal handler */
#endif
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
}

void simt_watch(Worker *w) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start_watching);
  stack_t alternate = {.ss_size = ALTERNATE_STACK};
#if !defined(__SANITIZE_ADDRESS__)
  alternate.ss_sp = w->signal_stack ? w->signal_stack : malloc(ALTERNATE_STACK);
  w->signal_stack = alternate.ss_sp;
  sigaltstack(&alternate, NULL);
#else
  (void)alternate;
#endif
  pthread_mutex_lock(&lock);
  if (watched_count < MAX_WATCHED) {
    watched[watched_count].progress = 0;
    watched[watched_count].since = 0;
    watched[watched_count++].worker = w;
  }
  pthread_mutex_unlock(&lock);
}

void simt_unwatch(Worker *w) {
  stack_t none = {.ss_flags = SS_DISABLE};
  sigaltstack(&none, NULL);
  pthread_mutex_lock(&lock);
  for (int i = 0; i < watched_count; i++)
    if (watched[i].worker == w) watched[i--] = watched[--watched_count];
  pthread_mutex_unlock(&lock);
}
