/* unroll.h - #pragma unroll: which loops it holds for, and how often they are unrolled. */
#ifndef SIMT_REWRITE_UNROLL_H
#define SIMT_REWRITE_UNROLL_H

/* A line "#pragma unroll [N]", or "nounroll": N; 1 for the latter, 0 for another line. */
int unroll_pragma(const char *p);
/* Sets `unroll` of each `for` that has one. */
void find_unrolled_loops(void);

#endif /* SIMT_REWRITE_UNROLL_H */
