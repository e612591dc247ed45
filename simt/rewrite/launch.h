/* launch.h - kernel<<<grid, block>>>(x), and kernels whose address is taken. */
#ifndef SIMT_REWRITE_LAUNCH_H
#define SIMT_REWRITE_LAUNCH_H

#include "lex.h"

extern Names kernel_names; /* of the program */

bool is_launch(int i); /* token i begins a <<< */
void rewrite_launch(int open);
/* cudaLaunchKernel((void *)kernel, ..) and others like it: without the cast our templates see the kernel's type. */
void rewrite_kernel_argument(int name);
/* (void *)kernel, anywhere: the address goes through a template that notes the kernel's parameters, so that it can be
 * launched by the address. i is at the kernel's name. */
void rewrite_kernel_address(int i);

#endif /* SIMT_REWRITE_LAUNCH_H */
