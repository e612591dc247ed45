/* above.c - room above the __shared__ arrays of a program.
 *
 * They are thread-local variables, and this one is linked next: the first file of the library, in the order of names,
 * and wanted by every launch. So an index a little past the end of an array hits nothing that the runtime needs, and
 * can be reported. */
#include "runtime.h"

__thread char simt_above_shared[8192] SIMT_TLS __attribute__((aligned(64)));
