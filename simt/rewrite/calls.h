/* calls.h - which functions a kernel may call.
 *
 * nvcc resolves each call and then refuses, in the code of __global__ and __device__ functions, those of functions that
 * are neither __device__ nor CUDA's own. So does simtcc, in two steps:
 *
 *     The rewriter sees names. It refuses what a name alone decides: rand(), std::max(), cudaMemcpy().
 *     g++ resolves overloads, members, constructors, operators and templates, and writes what it found, before any
 *     optimisation, to a dump (-fdump-tree-fixup_cfg1-lineno-uid-asmname). check_calls() reads that dump beside the
 *     list of the program's functions that the rewriter wrote (--functions).
 *
 * In the dump a function begins with
 *
 *     ;; Function V::get (_ZN1V3getEv, funcdef_no=4069, decl_uid=26995, cgraph_uid=2425, symbol_order=2935)
 *
 * and a statement that calls it is `[k.cu:13:18] _3 = _ZN1V3getEvD.26995 (&a);`: the number says which function it is.
 */
#ifndef SIMT_REWRITE_CALLS_H
#define SIMT_REWRITE_CALLS_H

/* Who may run a function; a constexpr one is the host's, but for nvcc --expt-relaxed-constexpr. In the list a small
 * letter is a declaration without a body; STANDARD says that the program uses cuda::std. */
typedef enum Space {
  UNKNOWN = 0,
  HOST = 'H',
  CONSTEXPR = 'C',
  DEVICE = 'D',
  BOTH = 'B',
  STANDARD = 'S',
  THRUST = 'T' /* of our Thrust, where it runs on the GPU */
} Space;

/* Refuses what nvcc would; needs option_ours. */
void check_calls(const char *functions, const char *dump);

#endif /* SIMT_REWRITE_CALLS_H */
