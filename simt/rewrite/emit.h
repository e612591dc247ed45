/* emit.h - the pass over all tokens, and the result. */
#ifndef SIMT_REWRITE_EMIT_H
#define SIMT_REWRITE_EMIT_H

#include <stdio.h>

/* Edits the tokens of the parsed text; writes a line for each kernel to `kernels`, which may be NULL. */
void rewrite(FILE *kernels);
/* Writes `input`, the parsed text, with its edits. */
void write_text(FILE *out, const char *input);

#endif /* SIMT_REWRITE_EMIT_H */
