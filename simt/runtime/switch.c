/* switch.c - the first entry into a stack; and switching by ucontext where there is no assembly for the processor.
 *
 * ucontext saves the signal mask with a system call, 20 times slower: only the portable fallback (-DSIMT_UCONTEXT
 * takes it on any processor). */
#include "runtime.h"

#if !defined(SIMT_UCONTEXT) && defined(__x86_64__)

void *simt_new_stack(char *lowest, size_t bytes, void (*entry)(void)) {
  uintptr_t top = (uintptr_t)(lowest + bytes) & ~(uintptr_t)63;
  void **stack = (void **)top;
  *--stack = NULL;          /* the caller of entry(), if it returned: it does not. Keeps the ABI's alignment. */
  *--stack = (void *)entry; /* where the switch goes */
  stack -= 6;               /* registers */
  memset(stack, 0, 6 * sizeof *stack);
  return stack;
}

#elif !defined(SIMT_UCONTEXT) && defined(__aarch64__)

void *simt_new_stack(char *lowest, size_t bytes, void (*entry)(void)) {
  void **stack = (void **)(((uintptr_t)(lowest + bytes) & ~(uintptr_t)63) - 160);
  memset(stack, 0, 160);
  stack[11] = (void *)entry; /* x30, the return address */
  return stack;
}

#else
#include <ucontext.h>

void simt_switch(void **from, void *to, int result) {
  (void)result;
  ucontext_t here;
  *from = &here;
  swapcontext(&here, to);
}

void *simt_new_stack(char *lowest, size_t bytes, void (*entry)(void)) {
  ucontext_t *context = (ucontext_t *)lowest; /* lives at the far end of its own stack */
  if (getcontext(context) != 0) abort();
  context->uc_stack.ss_sp = lowest + sizeof *context;
  context->uc_stack.ss_size = bytes - sizeof *context;
  context->uc_link = NULL;
  makecontext(context, entry, 0);
  return context;
}
#endif
