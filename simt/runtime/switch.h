/* switch.h - from one stack to another, in a dozen instructions.
 *
 * simt_switch(&from, to, result) saves where the present thread is in `from` and goes on where `to` was saved. On
 * x86-64 a stack that is switched out ends in six registers and the address where it goes on, as a function's frame
 * does. So SIMT_WAIT can make a function whose caller waits in it; it returns `result` then. The address goes through a
 * register, not `ret`, whose prediction would be the caller's of the other stack. x87 and MXCSR modes are those of the
 * OS thread.
 */
#ifndef SIMT_SWITCH_H
#define SIMT_SWITCH_H

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
/* Pushes below the stack pointer: only for functions that call others, which have no red zone. */
static inline __attribute__((always_inline)) void simt_switch(void **from, void *to, int result) {
  __asm__ volatile(
      "leaq 1f(%%rip), %%rcx\n\t"
      "pushq %%rcx\n\t"
      "pushq %%rbp\n\t"
      "pushq %%rbx\n\t"
      "subq $32, %%rsp\n\t" /* r12 .. r15: the compiler has saved what is in use */
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "popq %%r15\n\t"
      "popq %%r14\n\t"
      "popq %%r13\n\t"
      "popq %%r12\n\t"
      "popq %%rbx\n\t"
      "popq %%rbp\n\t"
      "popq %%rcx\n\t"
      "jmp *%%rcx\n\t"
      "1:"
      : "+D"(from), "+S"(to), "+a"(result)
      :
      : "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* What a function of SIMT_WAIT gives: the stack to go on with, and what the function that waited there returns. */
typedef struct SimtGoOn {
  void *stack_pointer;
  long result;
} SimtGoOn;

/* Defines the function `name`, of up to six arguments: it calls `inner` with a seventh one, the stack pointer where the
 * present thread can go on, and goes on with what that gives. A `ret` at its end would mostly go where the processor
 * does not expect it: to the barrier before, from which the next thread comes. */
#define SIMT_WAIT(name, inner)           \
  __asm__(                               \
      ".text\n\t"                        \
      ".p2align 4\n\t"                   \
      ".globl " name                     \
      "\n\t"                             \
      ".type " name ", @function\n" name \
      ":\n\t"                            \
      ".cfi_startproc\n\t"               \
      "pushq %rbp\n\t"                   \
      "pushq %rbx\n\t"                   \
      "pushq %r12\n\t"                   \
      "pushq %r13\n\t"                   \
      "pushq %r14\n\t"                   \
      "pushq %r15\n\t"                   \
      ".cfi_def_cfa_offset 56\n\t"       \
      ".cfi_offset %rbp, -16\n\t"        \
      ".cfi_offset %rbx, -24\n\t"        \
      ".cfi_offset %r12, -32\n\t"        \
      ".cfi_offset %r13, -40\n\t"        \
      ".cfi_offset %r14, -48\n\t"        \
      ".cfi_offset %r15, -56\n\t"        \
      "pushq %rsp\n\t"                   \
      ".cfi_def_cfa_offset 64\n\t"       \
      "call " inner                      \
      "\n\t"                             \
      "movq %rax, %rsp\n\t"              \
      ".cfi_def_cfa_offset 56\n\t"       \
      "movl %edx, %eax\n\t"              \
      "popq %r15\n\t"                    \
      "popq %r14\n\t"                    \
      "popq %r13\n\t"                    \
      "popq %r12\n\t"                    \
      "popq %rbx\n\t"                    \
      "popq %rbp\n\t"                    \
      "popq %rcx\n\t"                    \
      "jmp *%rcx\n\t"                    \
      ".cfi_endproc\n\t"                 \
      ".size " name ", . - " name "\n")
#else
void simt_switch(void **from, void *to, int result); /* switch_aarch64.S, or switch.c by ucontext */
#endif

/* A stack that simt_switch() enters at entry(), which does not return. */
void *simt_new_stack(char *lowest, size_t bytes, void (*entry)(void));

#endif /* SIMT_SWITCH_H */
