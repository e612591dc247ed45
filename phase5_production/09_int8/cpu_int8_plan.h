/* cpu_int8_plan.h - what the .c files of cpu_conv2d_int8.h share. */
#ifndef PHASE5_PRODUCTION_CPU_INT8_PLAN_H
#define PHASE5_PRODUCTION_CPU_INT8_PLAN_H

#include "phase5_production/09_int8/cpu_conv2d_int8.h"
#include "phase5_production/09_int8/cpu_int8_tile.h"

#ifdef __cplusplus
extern "C" {
#endif

const CpuInt8Kernels *cpu_int8_table(void); /* the chosen one */

/* Of uint8 or int8, with the chosen kernels. */
static inline CpuInt8Kind cpu_int8_kind(bool positive) {
  const CpuInt8Kind kind = {positive ? 0 : cpu_int8_table()->zero, positive ? 0 : -128, positive ? 255 : 127};
  return kind;
}

/* Of a plane of y with elements of so many bytes: the border beside rows [from, to), above row 0, below the last, is
 * filled with `zero`. */
void cpu_int8_clear_border(void *y, CpuShape s, int from, int to, size_t bytes, int zero);

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_CPU_INT8_PLAN_H */
