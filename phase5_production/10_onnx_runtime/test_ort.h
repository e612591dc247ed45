/* test_ort.h - for tests that compute with ONNX Runtime: opens it, or skips the test where it is not there.
 *
 *     Ort ort;
 *     ort_required(&ort);
 */
#ifndef PHASE5_PRODUCTION_TEST_ORT_H
#define PHASE5_PRODUCTION_TEST_ORT_H

#include "common/test.h"
#include "phase5_production/10_onnx_runtime/ort.h"

static inline void ort_required(Ort *ort) {
  Error err;
  if (ort_open(ort, &err) == 0) return;
  if (err.code != ERROR_NOT_INSTALLED) fail_msg("%s", err.message);
  print_message("skipped: %s\n", err.message);
  skip();
}

#endif /* PHASE5_PRODUCTION_TEST_ORT_H */
