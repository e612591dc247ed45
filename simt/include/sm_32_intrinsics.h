/* sm_32_intrinsics.h - intrinsics of a later compute capability. */
#ifndef SIMT_SM_32_INTRINSICS_H
#define SIMT_SM_32_INTRINSICS_H
#define __SM_32_INTRINSICS_H__

#include "simt/intrinsics.h"

#endif /* SIMT_SM_32_INTRINSICS_H */
