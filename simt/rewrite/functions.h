/* functions.h - functions of the program: their linkage, and what others need to know about them. */
#ifndef SIMT_REWRITE_FUNCTIONS_H
#define SIMT_REWRITE_FUNCTIONS_H

#include <stdio.h>

#include "parse.h"

/* Without -rdc a device function belongs to its file alone: a header with one may be included by two files. */
void rewrite_device_function(const Item *item, const Names *friends);
/* For the inspector, which names memory by the parameter through which a kernel has it: "kernel,x,,out" in a section of
 * its own. */
void note_parameters(const Item *item);
/* __global__ void __cluster_dims__(2, 1, 1) k(..) {..}: behind it a constant, simt_cluster_of_k, that launches of k
 * name. Every kernel of such a name has one. */
extern Names cluster_kernels;
void find_clusters(void);
void note_cluster(const Item *item);
/* Writes the list for check_calls(): who may run each function, its lines, file, class and name. */
void list_functions(FILE *out);

#endif /* SIMT_REWRITE_FUNCTIONS_H */
