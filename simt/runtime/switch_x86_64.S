/* simt_switch(void **from, void *to): the six registers that a called function must keep go onto the present stack, the
 * stack pointer into *from; then the same in reverse from `to`. What the caller may lose is lost; x87 and MXCSR modes are
 * those of the OS thread. System V ABI, x86-64. */
#if defined(__x86_64__)
#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif
    .text
    .globl simt_switch
    .type simt_switch, @function
simt_switch:
    _CET_ENDBR
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simt_switch, . - simt_switch
#endif
    .section .note.GNU-stack, "", @progbits
