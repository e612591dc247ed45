/* engine_plan_fuzz.c - no file can make the reader of plans crash, and what it accepts lies within the file. */
#include "phase5_production/08_engine/engine_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  EnginePlanFile plan;
  Error err = {0};
  if (engine_plan_parse(&plan, "fuzz.nnplan", bytes, size, &err) != 0) {
    if (err.message[0] == '\0') abort();
    return 0;
  }
  if (plan.model < bytes || plan.model_size > size || plan.model + plan.model_size > bytes + size) abort();
  if (plan.version == ENGINE_PLAN_VERSION && (plan.max_batch < 1 || plan.max_height < 0)) abort();
  return 0;
}
