/* Schedules: each is a share of the highest learning rate, from the first step to beyond the last. */
#include "common/nn/schedule.h"

#include "common/test.h"

static void every_schedule_is_a_share(void **unused) {
  (void)unused;
  const Schedule *schedule;
  int count = 0;
  for (; (schedule = schedule_at(count)) != NULL; count++) {
    double largest = 0;
    assert_ptr_equal(schedule_named(schedule->name), schedule);
    for (int i = 0; i <= 1100; i++) {
      const double factor = schedule->factor(i / 1000.0);
      if (!(factor >= 0 && factor <= 1)) fail_msg("%s: %g at %g", schedule->name, factor, i / 1000.0);
      if (factor > largest) largest = factor;
    }
    assert_true(largest > 0.999);
  }
  assert_int_equal(count, SCHEDULES);
  assert_null(schedule_named("cosin"));
  assert_null(schedule_at(-1));
}

static void constant_changes_nothing(void **unused) {
  (void)unused;
  for (int i = 0; i <= 10; i++) assert_true(schedule_constant.factor(i / 7.0) == 1);
}

static void linear_is_a_triangle(void **unused) {
  (void)unused;
  assert_true(schedule_linear.factor(0) == 0);
  assert_true(fabs(schedule_linear.factor(0.025) - 0.5) < 1e-12);
  assert_true(fabs(schedule_linear.factor(0.05) - 1) < 1e-12);
  assert_true(fabs(schedule_linear.factor(0.525) - 0.5) < 1e-12);
  assert_true(schedule_linear.factor(1) == 0 && schedule_linear.factor(3) == 0);
}

static void a_step_is_a_tenth(void **unused) {
  (void)unused;
  const double done[] = {0, 0.33, 0.34, 0.66, 0.67, 1, 2}, expected[] = {1, 1, 0.1, 0.1, 0.01, 0.01, 0.01};
  for (int i = 0; i < 7; i++) assert_true(schedule_step.factor(done[i]) == expected[i]);
}

/* As torch.optim.lr_scheduler.CosineAnnealingLR after the warm-up: (1 + cos(pi t)) / 2. */
static void cosine_warms_up_and_cools_down(void **unused) {
  (void)unused;
  assert_true(schedule_cosine.factor(0) == 0);
  assert_true(fabs(schedule_cosine.factor(0.02) - 0.4) < 1e-12);
  assert_true(fabs(schedule_cosine.factor(0.05) - 1) < 1e-12);
  assert_true(fabs(schedule_cosine.factor(0.05 + 0.95 / 4) - (1 + sqrt(0.5)) / 2) < 1e-12);
  assert_true(fabs(schedule_cosine.factor(0.525) - 0.5) < 1e-12);
  assert_true(fabs(schedule_cosine.factor(1)) < 1e-12 && fabs(schedule_cosine.factor(5)) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_schedule_is_a_share),      cmocka_unit_test(constant_changes_nothing),
      cmocka_unit_test(linear_is_a_triangle),           cmocka_unit_test(a_step_is_a_tenth),
      cmocka_unit_test(cosine_warms_up_and_cools_down),
  };
  return TEST_MAIN("schedule", tests);
}
