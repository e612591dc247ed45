/* refuse.h - code that cannot work here, or that nvcc would refuse. Each function looks at one token or declaration. */
#ifndef SIMT_REWRITE_REFUSE_H
#define SIMT_REWRITE_REFUSE_H

#include "parse.h"

/* refuse_features.c. i is at asm; at a name, which may stand for something that is not supported. */
void check_assembly(int i);
void check_name(int i);

/* refuse_calls.c. i is at a name: is it called, or used as a variable, on the wrong side? */
void check_call(int i);
void check_variable(int i);
void note_host_variable(const Item *item); /* for check_variable(), before it */
void check_kernel(const Item *item);

/* lanes.c: a warning. */
void check_lanes_in_step(const Item *function);

#endif /* SIMT_REWRITE_REFUSE_H */
