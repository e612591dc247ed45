/* test_cpu_int8.h - for the tests of int8 on a CPU: the sets of kernels, and a test that logs which of them this
 * processor has. */
#ifndef PHASE5_PRODUCTION_TEST_CPU_INT8_H
#define PHASE5_PRODUCTION_TEST_CPU_INT8_H

#include "common/test.h"
#include "phase5_production/09_int8/cpu_conv2d_int8.h"

static const char *const all_kernels[] = {"avx512vnni", "avx512", "avxvnni", "avx2", "portable"}; /* best first */

/* The log has which kernels the tests below compare. Portable ones run on every processor. */
static inline void the_log_has_the_kernels(void **state) {
  (void)state;
  const char *best = NULL;
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    const char *name = cpu_int8_kernels(all_kernels[k]);
    print_message("  %s: %s\n", all_kernels[k], name ? "compared" : "skipped, this processor lacks them");
    if (name) assert_string_equal(name, all_kernels[k]);
    if (best == NULL) best = name;
  }
  assert_non_null(cpu_int8_kernels("portable"));
  assert_string_equal(cpu_int8_kernels(NULL), best);
}

#endif /* PHASE5_PRODUCTION_TEST_CPU_INT8_H */
