/* main.c - turns CUDA C++ into C++ that g++ compiles for the CPU.
 *
 *     g++ -E -x c++ -include cuda_runtime.h k.cu | rewrite > k.cpp
 *
 * It reads text that the preprocessor has been through. So a launch in a macro or in an included header is like any
 * other, and code that is switched off is never judged; the preprocessor's line markers (# 12 "k.cuh") say where each
 * token came from. What is not C++ is little:
 *
 *     kernel<<<grid, block>>>(x, n)       ::simt::kern("kernel", "k.cu", 12, [=](auto... a) { kernel(a...); })
 *                                             .cfg(grid, block).run(x, n)          (in one line; include/simt/launch.h)
 *     __shared__ float tile[32];          static thread_local float tile[32];      a block runs on one OS thread
 *     extern __shared__ float s[];        float (&s)[] = *(float (*)[])simt_dynamic_shared();
 *     __device__ int count;               static int count __attribute__((section("simt_bss"...)));   device memory
 *     #pragma unroll 4                    #pragma GCC unroll 4
 *     __global__, __device__, ...         nothing
 *
 * The parts, in the order in which a text passes through them:
 *
 *     lex.c              tokens, line markers, brackets; headers.c: #includes that are refused
 *     parse.c            declarations, functions, statements
 *     merge.c            __CUDA_ARCH__: one text out of the host's and the device's
 *     refuse_*.c         what cannot work or nvcc would refuse; library.c: functions of libraries by name
 *     lanes.c            a warning: code that relies on the lanes of a warp running in step
 *     launch.c           <<<>>>
 *     variables.c        __shared__, __device__, __constant__, __managed__
 *     functions.c        the linkage of functions; the list of them
 *     unroll.c           #pragma unroll
 *     emit.c             the pass over all tokens that calls these; writes the result
 *     calls.c            in a second run: the calls as g++ resolved them
 *
 * What cannot work is refused: FILE:LINE: error: simt: the reason, and what to do. All of it in one run; exit status 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "emit.h"
#include "errors.h"
#include "functions.h"
#include "headers.h"
#include "merge.h"
#include "options.h"
#include "parse.h"
#include "text.h"
#include "unroll.h"

static const char USAGE[] =
    "usage: rewrite [option..] [HOST.ii [DEVICE.ii]]\n"
    "Reads HOST.ii (or stdin), preprocessed CUDA; writes C++ to stdout.\n"
    "DEVICE.ii is the same source, preprocessed with -D__CUDA_ARCH__=..: kernels and device functions are taken from "
    "it.\n"
    "  --rdc           device functions and variables may be used from other files, as with nvcc -rdc=true\n"
    "  --clang         the C++ is for clang\n"
    "  --inspect       launches are left out of the inspector's instrumentation\n"
    "  --no-unroll     ignores #pragma unroll\n"
    "  --kernels=FILE  writes a line for each kernel: line, tab, file, tab, name\n"
    "  --functions=FILE  writes a line for each function: who may run it, first and last line, file, name\n"
    "  --calls=DUMP    only checks the calls in g++'s DUMP against the functions in --functions; exit status 1 when\n"
    "                  one is refused (simt/rewrite/calls.h)\n"
    "  --relaxed-constexpr=17  kernels may call the host's functions that are constexpr in C++17\n"
    "  --ours=DIR      the folder of simt's headers\n"
    "  --stubs=DIR     a folder of empty files that stand for headers that were not found\n"
    "  --why=HEADER    only says why HEADER is not supported; exit status 1 when nothing is known about it\n";

bool option_rdc, option_clang, option_no_unroll;
int option_relaxed_constexpr;
const char *option_ours, *option_stubs, *option_launcher = "";

static const char *option_value(const char *argument, const char *option) {
  return begins(argument, option) ? argument + strlen(option) : NULL;
}

int main(int argc, char **argv) {
  const char *files[2] = {NULL, NULL}, *value, *functions = NULL, *calls = NULL;
  FILE *kernels = NULL;
  int count = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--rdc") == 0) {
      option_rdc = true;
    } else if (strcmp(argv[i], "--inspect") == 0) { /* the inspector looks at the kernel only, not at who calls it */
      option_launcher = "__attribute__((noinline, no_sanitize_thread, no_sanitize_coverage)) ";
    } else if (strcmp(argv[i], "--no-unroll") == 0) {
      option_no_unroll = true;
    } else if (strcmp(argv[i], "--clang") == 0) {
      option_clang = true;
    } else if ((value = option_value(argv[i], "--ours="))) {
      option_ours = value;
    } else if ((value = option_value(argv[i], "--relaxed-constexpr="))) {
      option_relaxed_constexpr = *value == '2' ? (value[1] > '0' && value[1] <= '9' ? atoi(value) : 20) : 17;
    } else if ((value = option_value(argv[i], "--functions="))) {
      functions = value;
    } else if ((value = option_value(argv[i], "--calls="))) {
      calls = value;
    } else if ((value = option_value(argv[i], "--stubs="))) {
      option_stubs = value;
    } else if ((value = option_value(argv[i], "--kernels="))) {
      kernels = fopen(value, "w");
      if (!kernels) {
        fprintf(stderr, "simt rewrite: cannot write %s\n", value);
        return 2;
      }
    } else if ((value = option_value(argv[i], "--why="))) {
      const Header *header = refused_header(value);
      if (header) puts(reason_for(header, value));
      return header ? 0 : 1;
    } else if (argv[i][0] == '-' || count == 2) {
      fputs(USAGE, stderr);
      return 2;
    } else {
      files[count++] = argv[i];
    }
  }
  if (calls && functions && option_ours) {
    check_calls(functions, calls);
    return errors > 0;
  }
  const char *text = read_file(files[0]);
  if (files[1]) text = merge(text, read_file(files[1]));
  parse(text);
  FILE *list = functions ? fopen(functions, "w") : NULL;
  if (functions && !list) {
    fprintf(stderr, "simt rewrite: cannot write %s\n", functions);
    return 2;
  }
  if (list) {
    list_functions(list);
    fclose(list);
  }
  rewrite(kernels);
  find_unrolled_loops();
  if (kernels) fclose(kernels);
  if (errors) return 1;
  write_text(stdout, text);
  return fflush(stdout) == 0 ? 0 : 2;
}
