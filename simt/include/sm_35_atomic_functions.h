/* sm_35_atomic_functions.h - atomic operations of a later compute capability. */
#ifndef SIMT_SM_35_ATOMIC_FUNCTIONS_H
#define SIMT_SM_35_ATOMIC_FUNCTIONS_H
#define __SM_35_ATOMIC_FUNCTIONS_H__

#include "simt/atomics.h"

#endif /* SIMT_SM_35_ATOMIC_FUNCTIONS_H */
