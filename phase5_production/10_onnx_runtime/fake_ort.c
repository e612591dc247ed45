/* fake_ort.c - a library that says it is ONNX Runtime 1.2.3 and has no interface that this course knows; for
 * ort_test. */
#include <stddef.h>

#include "phase5_production/10_onnx_runtime/ort_abi.h"

static const OrtApi *no_api(uint32_t version) { return (void)version, NULL; }
static const char *version(void) { return "1.2.3"; }

const OrtApiBase *OrtGetApiBase(void);
const OrtApiBase *OrtGetApiBase(void) {
  static const OrtApiBase base = {no_api, version};
  return &base;
}
