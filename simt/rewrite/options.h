/* options.h - what the command line asks for; main.c reads it. */
#ifndef SIMT_REWRITE_OPTIONS_H
#define SIMT_REWRITE_OPTIONS_H

#include <stdbool.h>

extern bool option_rdc;              /* device functions and variables may be used from other files */
extern bool option_clang;            /* the C++ is for clang */
extern bool option_no_unroll;        /* loops stay loops */
extern int option_relaxed_constexpr; /* kernels may call constexpr functions: 17 for those of C++17; 0: they may not */
extern const char *option_ours;      /* the folder of simt's headers */
extern const char *option_stubs;     /* the folder of empty files that stand for headers that were not found */
extern const char *option_launcher;  /* attributes of the lambda that calls a kernel */

#endif /* SIMT_REWRITE_OPTIONS_H */
