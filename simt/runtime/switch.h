/* switch.h - from one stack to another, in a dozen instructions.
 *
 * simt_switch(&from, to) saves where the present thread is in `from` and goes on where `to` was saved. x86-64 does it
 * in line: the compiler saves only those registers that are in use there. The return address goes through a register,
 * not `ret`, whose prediction would be the caller's of the other stack. x87 and MXCSR modes are those of the OS thread.
 */
#ifndef SIMT_SWITCH_H
#define SIMT_SWITCH_H

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
/* Pushes below the stack pointer: only for functions that call others, which have no red zone. */
static inline __attribute__((always_inline)) void simt_switch(void **from, void *to) {
  __asm__ volatile(
      "pushq %%rbp\n\t"
      "pushq %%rbx\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "popq %%rax\n\t"
      "jmp *%%rax\n"
      "1:\n\t"
      "popq %%rbx\n\t"
      "popq %%rbp"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15");
}
#else
void simt_switch(void **from, void *to); /* switch_aarch64.S, or switch.c by ucontext */
#endif

/* A stack that simt_switch() enters at entry(), which does not return. */
void *simt_new_stack(char *lowest, size_t bytes, void (*entry)(void));

#endif /* SIMT_SWITCH_H */
