/* Schedules: each is a share of the highest learning rate, from the first step to beyond the last; the same rates as
 * PyTorch's schedulers; what the user types. */
#include "common/nn/schedule.h"

#include "common/nn/testdata/schedules_golden.h"
#include "common/test.h"

static double at(const char *text, double done) {
  LrSchedule schedule;
  Error err;
  if (lr_schedule_parse(text, &schedule, &err) != 0) fail_msg("%s: %s", text, err.message);
  return lr_schedule_factor(&schedule, done);
}

static void every_schedule_is_a_share(void **unused) {
  (void)unused;
  static const char *const texts[] = {"constant",
                                      "linear",
                                      "step",
                                      "exponential",
                                      "cosine",
                                      "onecycle",
                                      "plateau",
                                      "constant:warmup=0.2",
                                      "linear:end=0.3,warmup=0",
                                      "step:factor=0.3,every=0.07,warmup=0.1",
                                      "exponential:end=1e-9,warmup=0.1",
                                      "cosine:cycles=7,growth=1.3,end=0.1",
                                      "cosine:cycles=100,growth=10",
                                      "onecycle:up=0.5,start=0.5,end=0.1",
                                      "plateau:warmup=0.9"};
  for (size_t s = 0; s < sizeof texts / sizeof *texts; s++) {
    double largest = 0;
    for (int i = 0; i <= 1100; i++) {
      const double factor = at(texts[s], i / 1000.0);
      if (!(factor >= 0 && factor <= 1)) fail_msg("%s: %g at %g", texts[s], factor, i / 1000.0);
      if (factor > largest) largest = factor;
    }
    if (!(largest > 0.999)) fail_msg("%s: at most %g", texts[s], largest);
  }
}

static void the_table_has_every_name_once(void **unused) {
  (void)unused;
  int count = 0;
  for (const Schedule *kind; (kind = schedule_at(count)) != NULL; count++) {
    assert_ptr_equal(schedule_named(kind->name), kind);
    const LrSchedule schedule = lr_schedule(kind);
    assert_string_equal(lr_schedule_text(&schedule).text, kind->name);
    for (int i = 0; i < schedule_params(kind); i++) {
      const ScheduleParam *param = &kind->param[i];
      assert_true(param->standard >= param->least && param->standard <= param->most && param->help != NULL);
    }
  }
  assert_int_equal(count, SCHEDULES);
  assert_null(schedule_named("cosin"));
  assert_null(schedule_at(-1));
  const LrSchedule none = lr_schedule(NULL);
  assert_true(lr_schedule_factor(&none, 0.5) == 1);
  assert_string_equal(lr_schedule_text(&none).text, "");
}

static void constant_changes_nothing(void **unused) {
  (void)unused;
  for (int i = 0; i <= 10; i++) assert_true(at("constant", i / 7.0) == 1);
  assert_true(fabs(at("constant:warmup=0.5", 0.2) - 0.4) < 1e-12 && at("constant:warmup=0.5", 0.5) == 1);
}

static void linear_is_a_triangle(void **unused) {
  (void)unused;
  assert_true(at("linear", 0) == 0);
  assert_true(fabs(at("linear", 0.025) - 0.5) < 1e-12);
  assert_true(fabs(at("linear", 0.05) - 1) < 1e-12);
  assert_true(fabs(at("linear", 0.525) - 0.5) < 1e-12);
  assert_true(at("linear", 1) == 0 && at("linear", 3) == 0);
  assert_true(fabs(at("linear:end=0.2,warmup=0", 0.75) - 0.4) < 1e-12 && at("linear:end=0.2", 1) == 0.2);
}

static void a_step_is_a_tenth(void **unused) {
  (void)unused;
  const double done[] = {0, 0.33, 1 / 3.0, 0.34, 0.66, 2 / 3.0, 0.67, 1, 2};
  const double expected[] = {1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01};
  for (int i = 0; i < 9; i++)
    if (at("step", done[i]) != expected[i]) fail_msg("%.17g at %g", at("step", done[i]), done[i]);
  assert_true(at("step:every=0.3,factor=0.5", 0.95) == 0.125 && at("step:every=1", 1) == 1);
}

/* As torch.optim.lr_scheduler.CosineAnnealingLR after the warm-up: (1 + cos(pi t)) / 2. */
static void cosine_warms_up_and_cools_down(void **unused) {
  (void)unused;
  assert_true(at("cosine", 0) == 0);
  assert_true(fabs(at("cosine", 0.02) - 0.4) < 1e-12);
  assert_true(fabs(at("cosine", 0.05) - 1) < 1e-12);
  assert_true(fabs(at("cosine", 0.05 + 0.95 / 4) - (1 + sqrt(0.5)) / 2) < 1e-12);
  assert_true(fabs(at("cosine", 0.525) - 0.5) < 1e-12);
  assert_true(fabs(at("cosine", 1)) < 1e-12 && fabs(at("cosine", 5)) < 1e-12);
}

/* Cycles of 1/7, 2/7 and 4/7 of what the warm-up leaves. */
static void restarts_are_warm(void **unused) {
  (void)unused;
  const char *const text = "cosine:warmup=0.3,cycles=3,growth=2";
  const double ends[] = {0.4, 0.6, 1.0};
  double begin = 0.3;
  for (int i = 0; i < 3; i++) {
    assert_true(at(text, begin + 1e-9) > 0.999 && at(text, ends[i] - 1e-9) < 0.001);
    assert_true(fabs(at(text, (begin + ends[i]) / 2) - 0.5) < 1e-9);
    begin = ends[i];
  }
}

/* ---- PyTorch ---- */

/* PyTorch multiplies or adds up rates from step to step, which rounds in each: 40 steps, some roundings each. */
static void assert_rates(const char *what, const double *golden, size_t count, double (*ours)(size_t i)) {
  for (size_t i = 0; i < count; i++) {
    const double rate = ours(i);
    if (!(fabs(rate - golden[i]) <= 200 * 2.3e-16))
      fail_msg("%s, step %zu: %.17g, PyTorch %.17g", what, i, rate, golden[i]);
  }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The trainer asks in the middle of each step. */
static double step_rate(size_t i) { return at("step:factor=0.5,every=0.2", ((double)i + 0.5) / 40); }

static double exponential_rate(size_t i) {
  LrSchedule schedule = lr_schedule(&schedule_exponential);
  schedule.value[0] = pow(0.9, 40);
  return lr_schedule_factor(&schedule, (double)i / 40);
}

static double restarts_rate(size_t i) {
  return at("cosine:warmup=0,cycles=3,growth=2,end=0.01", ((double)i + 0.5) / 35);
}

/* PyTorch reaches the highest rate in step 0.3 * 40 - 1 = 11, and the last one in step 39. */
static double onecycle_rate(size_t i) {
  LrSchedule schedule = lr_schedule(&schedule_onecycle);
  schedule.value[0] = 11 / 39.0;
  return lr_schedule_factor(&schedule, (double)i / 39);
}

static void the_rates_are_pytorchs(void **unused) {
  (void)unused;
  assert_int_equal(COUNT(golden_step), 40);
  assert_rates("StepLR", golden_step, COUNT(golden_step), step_rate);
  assert_rates("ExponentialLR", golden_exponential, COUNT(golden_exponential), exponential_rate);
  assert_rates("CosineAnnealingWarmRestarts", golden_restarts, COUNT(golden_restarts), restarts_rate);
  assert_rates("OneCycleLR", golden_onecycle, COUNT(golden_onecycle), onecycle_rate);
}

static void plateau_lowers_when_pytorch_does(void **unused) {
  (void)unused;
  LrSchedule schedule;
  SchedulePlateau plateau = {0, 0, 0, 0, 0}, before = plateau;
  Error err;
  if (lr_schedule_parse("plateau:factor=0.5,patience=2,threshold=0.05,cooldown=1,least=0.05", &schedule, &err) != 0)
    fail_msg("%s", err.message);
  for (size_t i = 0; i < COUNT(golden_losses); i++) {
    schedule_plateau_watch(&schedule, &plateau, golden_losses[i]);
    const double rate = schedule_plateau_factor(&schedule, &plateau);
    if (!(fabs(rate - golden_plateau[i]) < 1e-15))
      fail_msg("epoch %zu: %.17g, PyTorch %.17g", i, rate, golden_plateau[i]);
  }
  assert_true(schedule_plateau_factor(&schedule, &plateau) == 0.05);
  /* The others do not look. */
  const LrSchedule step = lr_schedule(&schedule_step);
  before = plateau;
  schedule_plateau_watch(&step, &plateau, 1e9);
  assert_memory_equal(&plateau, &before, sizeof plateau);
  assert_true(schedule_plateau_factor(&step, &plateau) == 1);
}

/* ---- what is typed ---- */

static void what_is_typed_comes_back(void **unused) {
  (void)unused;
  static const char *const texts[][2] = {
      {"cosine", "cosine"},
      {"cosine:cycles=3,warmup=0.1", "cosine:warmup=0.1,cycles=3"},
      {"cosine:warmup=5e-2,cycles=1", "cosine"},
      {"step:every=0.33333333333333331", "step"},
      {"step:every=0.333", "step:every=0.333"},
      {"exponential:end=0.1234567890123", "exponential:end=0.1234567890123"},
      {"plateau:patience=0,cooldown=7", "plateau:patience=0,cooldown=7"},
  };
  for (size_t i = 0; i < COUNT(texts); i++) {
    LrSchedule schedule, again;
    Error err;
    if (lr_schedule_parse(texts[i][0], &schedule, &err) != 0) fail_msg("%s: %s", texts[i][0], err.message);
    const LrScheduleText text = lr_schedule_text(&schedule);
    assert_string_equal(text.text, texts[i][1]);
    if (lr_schedule_parse(text.text, &again, &err) != 0) fail_msg("%s: %s", text.text, err.message);
    assert_true(again.kind == schedule.kind);
    assert_memory_equal(again.value, schedule.value, sizeof schedule.value);
  }
}

static void what_is_wrong_is_refused(void **unused) {
  (void)unused;
  static const char list[] = "constant, linear, step, exponential, cosine, onecycle or plateau is expected";
  static const char *const wrong[][2] = {
      {"", list},
      {"cosin", "or plateau is expected; did you mean cosine?"},
      {"one-cycle", "did you mean onecycle?"},
      {"cosine:warm_up=0.1",
       "cosine has no parameter \"warm_up\"; did you mean warmup? It has warmup, cycles, growth and end"},
      {"step:gamma=0.1", "step has no parameter \"gamma\"; it has factor, every and warmup"},
      {"constant:end=1", "constant has no parameter \"end\"; it has warmup"},
      {"cosine:", "cosine has no parameter \"\"; it has warmup"},
      {"cosine:warmup=0.1,", "cosine has no parameter \"\""},
      {"cosine:warmup", "warmup=: a number from 0 to 0.9 is expected"},
      {"cosine:warmup=", "warmup=: a number from 0 to 0.9 is expected"},
      {"cosine:warmup= 0.1", "warmup= 0.1: a number from"},
      {"cosine:warmup=0.1x", "warmup=0.1x: a number from"},
      {"cosine:warmup=nan", "warmup=nan: a number from"},
      {"cosine:warmup=1", "warmup=1: a number from 0 to 0.9 is expected"},
      {"cosine:cycles=1.5", "cycles=1.5: a whole number from 1 to 100 is expected"},
      {"cosine:cycles=0", "cycles=0: a whole number from 1 to 100"},
      {"cosine:end=0.1,end=0.1", "end is given twice"},
      {"plateau:factor=1", "factor=1: a number from 1e-06 to 0.9999 is expected"},
  };
  for (size_t i = 0; i < COUNT(wrong); i++) {
    LrSchedule schedule = lr_schedule(&schedule_linear);
    const LrSchedule before = schedule;
    Error err;
    assert_int_equal(lr_schedule_parse(wrong[i][0], &schedule, &err), -1);
    if (strstr(err.message, wrong[i][1]) == NULL) fail_msg("\"%s\": %s", wrong[i][0], err.message);
    assert_memory_equal(&schedule, &before, sizeof schedule);
  }
  char long_text[300] = "cosine:warmup=";
  memset(long_text + 14, '0', 280);
  LrSchedule schedule;
  Error err;
  assert_int_equal(lr_schedule_parse(long_text, &schedule, &err), -1);
  assert_non_null(strstr(err.message, "at most 191 characters"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_schedule_is_a_share),
      cmocka_unit_test(the_table_has_every_name_once),
      cmocka_unit_test(constant_changes_nothing),
      cmocka_unit_test(linear_is_a_triangle),
      cmocka_unit_test(a_step_is_a_tenth),
      cmocka_unit_test(cosine_warms_up_and_cools_down),
      cmocka_unit_test(restarts_are_warm),
      cmocka_unit_test(the_rates_are_pytorchs),
      cmocka_unit_test(plateau_lowers_when_pytorch_does),
      cmocka_unit_test(what_is_typed_comes_back),
      cmocka_unit_test(what_is_wrong_is_refused),
  };
  return TEST_MAIN("schedule", tests);
}
