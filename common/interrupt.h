/* interrupt.h - Ctrl-C asks a training run to stop after the step, so that nothing learned is lost.
 *
 *     interrupt_begin();                          // first of all
 *     ...
 *     interrupt_install();                        // when there is something to save
 *     while (!interrupt_requested() && step < steps) { ... }
 *     checkpoint_save(...);                       // as at the end of an uninterrupted run
 *
 * SIGTERM, which job schedulers send, does the same. A second signal ends the program at once, with status 128 + its
 * number as shells have it: 130 for Ctrl-C.
 */
#ifndef COMMON_INTERRUPT_H
#define COMMON_INTERRUPT_H

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The signal that came, 0 before. Weak: all files of a program that include this header share it. */
__attribute__((weak)) volatile sig_atomic_t interrupt_signal;

static inline int interrupt_requested(void) { return interrupt_signal != 0; }

/* What a program that was interrupted exits with, as shells have it. */
static inline int interrupt_status(void) { return 128 + (int)interrupt_signal; }

/* Only calls that signal-safety(7) allows: no printf(), no exit(). */
static inline void interrupt_handler(int number) {
  static const char message[] = "\nstopping after this step; press Ctrl-C again to quit at once\n";
  int saved = errno;
  if (interrupt_signal != 0) _exit(128 + number);
  interrupt_signal = number;
  ssize_t written = write(2, message, sizeof message - 1);
  (void)written; /* there is nobody to tell */
  errno = saved;
}

/* Before there is anything to save. */
static inline void interrupt_early_handler(int number) {
  static const char message[] = "\nstopped before the training began; no file was changed\n";
  ssize_t written = write(2, message, sizeof message - 1);
  (void)written;
  _exit(128 + number);
}

static inline void interrupt_handle(void (*handler)(int)) {
  const int signals[] = {SIGINT, SIGTERM};
  for (int i = 0; i < 2; i++) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART; /* a read or write under way goes on */
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT); /* one at a time */
    sigaddset(&action.sa_mask, SIGTERM);
    if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue; /* nohup, background */
    sigaction(signals[i], &action, NULL);
  }
}

/* First of all in a program that trains: until interrupt_install() a signal ends it with a sentence. */
static inline void interrupt_begin(void) { interrupt_handle(interrupt_early_handler); }
static inline void interrupt_install(void) { interrupt_handle(interrupt_handler); }

#endif /* COMMON_INTERRUPT_H */
