#include "phase2_mlp/trainer.cuh"

#include "common/test.h"

/* 1,000 images in batches of 64 are 16 steps an epoch; five epochs are 80 steps, of which the first 4 warm up. */
static void the_learning_rate_rises_and_falls(void **unused) {
  (void)unused;
  TrainState state = TrainState();
  state.epochs = 5;
  state.batch_size = 64;
  state.train_images = 1000;
  state.lr = 0.4;
  double sum = 0, largest = 0, before = 0;
  for (state.step = 0; state.step < 80; state.step++) {
    double lr = trainer_learning_rate(&state);
    assert_true(lr > 0 && lr <= 0.4);
    assert_true(state.step < 4 ? lr > before : state.step > 4 ? lr < before : 1);
    sum += lr;
    if (lr > largest) largest = lr;
    before = lr;
  }
  assert_true(fabs(sum / 80 - 0.2) < 1e-12); /* a triangle: half its height on average */
  assert_true(largest > 0.39);
  state.step = 1;
  assert_true(fabs(trainer_learning_rate(&state) - 0.4 * 1.5 / 4) < 1e-12);
  state.step = 42;
  assert_true(fabs(trainer_learning_rate(&state) - 0.4 * (80 - 42.5) / 76) < 1e-12);
  state.step = 1000; /* beyond the end, when a resumed run has fewer epochs */
  assert_true(trainer_learning_rate(&state) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_learning_rate_rises_and_falls)};
  return TEST_MAIN("trainer", tests);
}
