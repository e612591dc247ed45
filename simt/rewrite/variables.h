/* variables.h - variables in device memory and in shared memory. */
#ifndef SIMT_REWRITE_VARIABLES_H
#define SIMT_REWRITE_VARIABLES_H

#include "parse.h"

/* void f(..) {  ->  void f(..) { float (&s)[] = ..; { : in braces of its own, so that the body may declare an s too. */
void declare_dynamic_shared_in_functions(void);
/* A block runs on one OS thread, and one block at a time: what is local to the thread is shared by the block. */
void rewrite_shared(int at); /* at: __shared__ */
/* Without -rdc a device variable belongs to its file alone: two files may have one of the same name. */
void rewrite_device_variable(const Item *item);
/* A variable that is a template: g++ gives it no section, so each use registers it with the runtime. */
void rewrite_template_variable(const Item *item);
/* `static float sum;` in a device function, or a template of one, is device memory. g++ takes no section for what a
 * template or an inline function has, so it is registered with the runtime. */
void register_static_local(int i);

#endif /* SIMT_REWRITE_VARIABLES_H */
