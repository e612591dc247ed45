/* Checkpoints: what is written comes back, what is wrong is refused and leaves network and state as they were. */
#include "common/nn/checkpoint.h"

#include "common/nn/test_net.h"
#include "common/test.h"

enum { IN = 7, OUT = 3, PARAMETERS = OUT * IN + OUT };

typedef struct Fixture {
  Model net;
  TrainState state;
  char path[PATH_MAX];
} Fixture;

static void fixture_create(Fixture *f, const char *name) {
  test_net_open(&f->net, shape1(IN), OUT, DEVICE_CPU, 1);
  test_random_fill(f->net.parameters, PARAMETERS, 1);
  test_random_fill(f->net.slot[0], PARAMETERS, 2);
  TrainState state = {"7,3 relu",
                      9223372036854775807u,
                      5,
                      1,
                      0.1 / 3,
                      0.9,
                      1.0 / 3000,
                      {0.13066, 0, 0.5},
                      {0.30811, 0.1, 1.0 / 7},
                      2000000000,
                      10000,
                      4000000128L,
                      2,
                      128,
                      {1.0 / 3, 99},
                      12.5,
                      0.97,
                      0.98,
                      2,
                      "fashion_mnist",
                      "cosine:warmup=0.1,cycles=3",
                      "shift",
                      "fc:naive",
                      "pairs",
                      "adam",
                      0.25,
                      0.9,
                      0.999,
                      1e-8,
                      1,
                      0,
                      {1.0 / 7, 5, 3, 1, 2},
                      1.0 / 9,
                      400,
                      7,
                      1.0 / 17,
                      1.0 / 19,
                      1.0 / 23,
                      1.0 / 29,
                      1.0 / 31,
                      4,
                      1.0 / 11,
                      1.0 / 13,
                      "fp16",
                      4096,
                      7,
                      3};
  f->state = state;
  test_path(f->path, sizeof f->path, name);
}

static void the_state_comes_back(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  TrainState read = TrainState();
  fixture_create(&f, "state.safetensors");
  if (checkpoint_save(f.path, CHECKPOINT_STATE, &f.net, &f.state, &err) != 0) fail_msg("%s", err.message);
  float parameters[PARAMETERS], velocity[PARAMETERS];
  memcpy(parameters, f.net.parameters, sizeof parameters);
  memcpy(velocity, f.net.slot[0], sizeof velocity);
  memset(f.net.parameters, 0, sizeof parameters);
  memset(f.net.slot[0], 0, sizeof velocity);
  if (checkpoint_load(f.path, CHECKPOINT_STATE, &f.net, &read, &err) != 0) fail_msg("%s", err.message);
  assert_memory_equal(f.net.parameters, parameters, sizeof parameters);
  assert_memory_equal(f.net.slot[0], velocity, sizeof velocity);
  const TrainState *s = &f.state;
  assert_string_equal(read.fused, s->fused);
  assert_string_equal(read.optimizer, "adam");
  assert_true(read.dampening == s->dampening && read.beta1 == s->beta1 && read.beta2 == s->beta2);
  assert_true(read.epsilon == s->epsilon && read.nesterov == 1 && read.centered == 0);
  assert_true(read.seed == s->seed && read.epochs == s->epochs && read.batch_size == s->batch_size);
  assert_true(read.lr == s->lr && read.momentum == s->momentum && read.mean[0] == s->mean[0]);
  for (int c = 0; c < DATA_MAX_CHANNELS; c++) assert_true(read.mean[c] == s->mean[c] && read.stddev[c] == s->stddev[c]);
  assert_string_equal(read.data, "fashion_mnist");
  assert_string_equal(read.schedule, "cosine:warmup=0.1,cycles=3");
  assert_memory_equal(&read.plateau, &s->plateau, sizeof read.plateau);
  assert_true(read.validation == s->validation && read.validation_images == s->validation_images);
  assert_true(read.patience == s->patience && read.validation_loss == s->validation_loss);
  assert_true(read.best_loss == s->best_loss && read.accumulate == s->accumulate);
  assert_true(read.clip_norm == s->clip_norm && read.clip_value == s->clip_value);
  assert_true(read.label_smoothing == s->label_smoothing && read.mixup == s->mixup && read.ema == s->ema);
  assert_string_equal(read.augment, "shift");
  assert_string_equal(read.implementations, "fc:naive");
  assert_true(read.weight_decay == s->weight_decay);
  assert_string_equal(read.network, s->network);
  assert_true(read.train_images == s->train_images && read.test_images == s->test_images && read.step == s->step);
  assert_true(read.epoch == s->epoch && read.position == s->position && read.seconds == s->seconds);
  assert_true(read.epoch_totals.loss == s->epoch_totals.loss && read.epoch_totals.correct == s->epoch_totals.correct);
  assert_true(read.test_accuracy == s->test_accuracy && read.best_accuracy == s->best_accuracy);
  assert_true(read.best_epoch == s->best_epoch);

  /* What was not measured stays unmeasured, and a program with one network says nothing of it. Files older than the
   * optimizers have neither their name nor their settings. */
  f.state.network[0] = f.state.optimizer[0] = '\0';
  f.state.dampening = f.state.beta1 = f.state.beta2 = f.state.epsilon = NAN;
  f.state.test_accuracy = f.state.best_accuracy = NAN;
  if (checkpoint_save(f.path, CHECKPOINT_STATE, &f.net, &f.state, &err) != 0 ||
      checkpoint_peek(f.path, CHECKPOINT_STATE, &read, &err) != 0)
    fail_msg("%s", err.message);
  assert_true(isnan(read.test_accuracy) && isnan(read.best_accuracy) && read.step == s->step);
  assert_true(isnan(read.beta1) && isnan(read.epsilon) && read.optimizer[0] == '\0');
  assert_string_equal(read.network, "");
  model_close(&f.net);
}

static void the_model_comes_back_without_momentum(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  TrainState read = TrainState();
  SafetensorsFile file;
  fixture_create(&f, "model.safetensors");
  if (checkpoint_save(f.path, CHECKPOINT_MODEL, &f.net, &f.state, &err) != 0) fail_msg("%s", err.message);
  float parameters[PARAMETERS], velocity[PARAMETERS];
  memcpy(parameters, f.net.parameters, sizeof parameters);
  memcpy(velocity, f.net.slot[0], sizeof velocity);
  memset(f.net.parameters, 0, sizeof parameters);
  if (checkpoint_load(f.path, CHECKPOINT_MODEL, &f.net, &read, &err) != 0) fail_msg("%s", err.message);
  assert_memory_equal(f.net.parameters, parameters, sizeof parameters);
  assert_memory_equal(f.net.slot[0], velocity, sizeof velocity);
  assert_true(read.mean[0] == f.state.mean[0] && read.stddev[2] == f.state.stddev[2]);
  if (safetensors_open(f.path, &file, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(file.count, 2);
  assert_string_equal(file.tensors[0].name, "fc.weight");
  assert_string_equal(file.tensors[1].name, "fc.bias");
  safetensors_close(&file);

  /* A model is no state: the momentum is missing. */
  assert_int_equal(checkpoint_load(f.path, CHECKPOINT_STATE, &f.net, &read, &err), -1);
  assert_non_null(strstr(err.message, "momentum_buffer.fc.weight"));
  model_close(&f.net);
}

/* The model is the average, the state has both; before the first step the average is none. */
static void averages_come_back(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  TrainState read = TrainState();
  SafetensorsFile file;
  float parameters[PARAMETERS], average[PARAMETERS], model[PARAMETERS];
  fixture_create(&f, "averages.safetensors");
  model_average_open(&f.net);
  test_random_fill(f.net.average, PARAMETERS, 3);
  memcpy(parameters, f.net.parameters, sizeof parameters);
  memcpy(average, f.net.average, sizeof average);
  if (checkpoint_save(f.path, CHECKPOINT_STATE, &f.net, &f.state, &err) != 0) fail_msg("%s", err.message);
  memset(f.net.parameters, 0, sizeof parameters);
  memset(f.net.average, 0, sizeof average);
  if (checkpoint_load(f.path, CHECKPOINT_STATE, &f.net, &read, &err) != 0) fail_msg("%s", err.message);
  assert_memory_equal(f.net.parameters, parameters, sizeof parameters);
  assert_memory_equal(f.net.average, average, sizeof average);
  for (int steps = 0; steps < 2; steps++) {
    f.net.context.step = steps;
    if (checkpoint_save(f.path, CHECKPOINT_MODEL, &f.net, &f.state, &err) != 0 ||
        safetensors_open(f.path, &file, &err) != 0)
      fail_msg("%s", err.message);
    assert_int_equal(file.count, 2);
    if (checkpoint_read(&file, &f.net, CHECKPOINT_ALL, "", model, &err) != 0) fail_msg("%s", err.message);
    assert_memory_equal(model, steps ? average : parameters, sizeof model);
    safetensors_close(&file);
  }
  /* A state without it is no state of this run. */
  Fixture plain;
  fixture_create(&plain, "no_average.safetensors");
  if (checkpoint_save(plain.path, CHECKPOINT_STATE, &plain.net, &plain.state, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(checkpoint_load(plain.path, CHECKPOINT_STATE, &f.net, &read, &err), -1);
  assert_non_null(strstr(err.message, "average.fc.weight"));
  assert_memory_equal(f.net.average, average, sizeof average);
  model_close(&plain.net);
  model_close(&f.net);
}

static void another_network_is_refused_and_left_alone(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  fixture_create(&f, "other.safetensors");
  if (checkpoint_save(f.path, CHECKPOINT_STATE, &f.net, &f.state, &err) != 0) fail_msg("%s", err.message);
  Model net;
  test_net_open(&net, shape1(IN + 1), OUT, DEVICE_CPU, 1);
  test_random_fill(net.parameters, net.parameter_count, 3);
  float before[PARAMETERS + OUT];
  memcpy(before, net.parameters, sizeof before);
  TrainState state = TrainState();
  state.step = 42;
  assert_int_equal(checkpoint_load(f.path, CHECKPOINT_STATE, &net, &state, &err), -1);
  assert_non_null(strstr(err.message, "fc.weight"));
  assert_memory_equal(net.parameters, before, sizeof before);
  assert_int_equal(state.step, 42);
  model_close(&net);
  model_close(&f.net);
}

static void a_diverged_network_is_neither_written_nor_read(void **unused) {
  (void)unused;
  const float values[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    Fixture f;
    Error err;
    TrainState read = TrainState();
    fixture_create(&f, "nan.safetensors");
    unlink(f.path);
    f.net.parameters[PARAMETERS - 1] = values[i];
    assert_int_equal(checkpoint_save(f.path, CHECKPOINT_MODEL, &f.net, &f.state, &err), -1);
    assert_non_null(strstr(err.message, "fc.bias is not finite"));
    assert_int_equal(access(f.path, F_OK), -1);

    const size_t weight_shape[] = {OUT, IN}, bias_shape[] = {OUT};
    SafetensorsWriter out = SafetensorsWriter();
    safetensors_add(&out, "fc.weight", "F32", 2, weight_shape, f.net.parameters);
    safetensors_add(&out, "fc.bias", "F32", 1, bias_shape, f.net.parameters + OUT * IN);
    checkpoint_add_state(&out, &f.state);
    if (safetensors_write(&out, f.path, &err) != 0) fail_msg("%s", err.message);
    safetensors_writer_free(&out);
    assert_int_equal(checkpoint_load(f.path, CHECKPOINT_MODEL, &f.net, &read, &err), -1);
    assert_non_null(strstr(err.message, "fc.bias"));
    assert_non_null(strstr(err.message, "not finite"));
    model_close(&f.net);
  }
}

/* PyTorch writes no metadata of ours; two numbers are all that a model needs of them. */
static void a_model_needs_only_its_normalisation(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  TrainState read = TrainState();
  const size_t weight_shape[] = {OUT, IN}, bias_shape[] = {OUT};
  fixture_create(&f, "foreign.safetensors");
  SafetensorsWriter out = SafetensorsWriter();
  safetensors_add(&out, "fc.weight", "F32", 2, weight_shape, f.net.parameters);
  safetensors_add(&out, "fc.bias", "F32", 1, bias_shape, f.net.parameters + OUT * IN);
  safetensors_add_metadata(&out, "mean", "0.5");
  if (safetensors_write(&out, f.path, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(checkpoint_load(f.path, CHECKPOINT_MODEL, &f.net, &read, &err), -1);
  assert_non_null(strstr(err.message, "\"stddev\" is missing"));
  safetensors_add_metadata(&out, "stddev", "0.25");
  if (safetensors_write(&out, f.path, &err) != 0) fail_msg("%s", err.message);
  if (checkpoint_load(f.path, CHECKPOINT_MODEL, &f.net, &read, &err) != 0) fail_msg("%s", err.message);
  DataNorm norm;
  assert_true(read.mean[0] == 0.5 && read.stddev[0] == 0.25 && isnan(read.test_accuracy));
  assert_int_equal(checkpoint_norm(&read, 1, &norm, &err), 0);
  assert_true(norm.channels == 1 && norm.mean[0] == 0.5f && norm.stddev[0] == 0.25f);
  assert_int_equal(checkpoint_norm(&read, 3, &norm, &err), -1);
  assert_non_null(strstr(err.message, "of 1 channels; the images have 3"));
  read.mean[1] = 0.5; /* a mean without its deviation */
  assert_int_equal(checkpoint_norm(&read, 1, &norm, &err), -1);
  assert_non_null(strstr(err.message, "the mean of 2 and the deviation of 1 channels; the images have 1"));
  read.stddev[1] = 0.25; /* those of two channels, for images of one */
  assert_int_equal(checkpoint_norm(&read, 1, &norm, &err), -1);
  read.mean[0] = read.mean[1] = 0; /* as PyTorch's ToTensor() leaves pixels */
  assert_int_equal(checkpoint_norm(&read, 2, &norm, &err), 0);
  safetensors_writer_free(&out);
  model_close(&f.net);
}

/* A state whose metadata were changed by hand. */
static void wrong_metadata_is_named(void **unused) {
  (void)unused;
  static char long_text[CHECKPOINT_NETWORK + 1];
  memset(long_text, '7', CHECKPOINT_NETWORK);
  const char *const wrong[][2] = {{"epoch", "-1"},
                                  {"epoch", "many"},
                                  {"epoch", "1e99"},
                                  {"batch_size", "0"},
                                  {"batch_size", "65537"},
                                  {"stddev", "0"},
                                  {"lr", "nan"},
                                  {"position", "2000000001"},
                                  {"step", ""},
                                  {"mean", "0.1 (x)"},
                                  {"momentum", "2"},
                                  {"test_accuracy", "inf"},
                                  {"seed", "-5"},
                                  {"epochs", "2.5"},
                                  {"seed", "1e3"},
                                  {"step", "0x10"},
                                  {"step", "4000000127"},
                                  {"seed", "9223372036854775808"},
                                  {"best_epoch", "3"},
                                  {"network", long_text},
                                  {"mean", "0.1 0.2 0.3 0.4 0.5"},
                                  {"mean", "0.1  0.2"},
                                  {"stddev", "0.1 0"},
                                  {"data", long_text},
                                  {"weight_decay", "-0.1"},
                                  {"beta2", "1.5"},
                                  {"epsilon", "nan"},
                                  {"nesterov", "2"},
                                  {"optimizer", long_text}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    Fixture f;
    Error err;
    TrainState read = TrainState();
    float host[2 * PARAMETERS];
    fixture_create(&f, "metadata.safetensors");
    SafetensorsWriter out = SafetensorsWriter();
    memcpy(host, f.net.parameters, PARAMETERS * sizeof(float));
    memcpy(host + PARAMETERS, f.net.slot[0], PARAMETERS * sizeof(float));
    checkpoint_add(&out, &f.net, CHECKPOINT_ALL, "", host, &err);
    checkpoint_add(&out, &f.net, CHECKPOINT_TRAINED, "momentum_buffer.", host + PARAMETERS, &err);
    checkpoint_add_state(&out, &f.state);
    safetensors_add_metadata(&out, wrong[i][0], wrong[i][1]);
    if (safetensors_write(&out, f.path, &err) != 0) fail_msg("%s", err.message);
    safetensors_writer_free(&out);
    if (checkpoint_load(f.path, CHECKPOINT_STATE, &f.net, &read, &err) != -1)
      fail_msg("%s=%s was accepted", wrong[i][0], wrong[i][1]);
    if (strstr(err.message, wrong[i][0]) == NULL) fail_msg("%s is not named in: %s", wrong[i][0], err.message);
    model_close(&f.net);
  }
}

/* Each byte of the tensors; what cannot be a checkpoint is refused and leaves the network alone. */
static void a_changed_bit_is_noticed(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  TrainState read = TrainState();
  SafetensorsFile file;
  static unsigned char bytes[1 << 16];
  float parameters[PARAMETERS];
  fixture_create(&f, "bit.safetensors");
  if (checkpoint_save(f.path, CHECKPOINT_STATE, &f.net, &f.state, &err) != 0 ||
      safetensors_open(f.path, &file, &err) != 0)
    fail_msg("%s", err.message);
  const size_t start = file.data_start, size = test_read_file(f.path, bytes, sizeof bytes);
  assert_int_equal(size, start + file.data_size);
  char sum[16];
  snprintf(sum, sizeof sum, "%s", safetensors_metadata(&file, SAFETENSORS_CHECKSUM));
  assert_int_equal(strlen(sum), 8);
  safetensors_close(&file);
  memcpy(parameters, f.net.parameters, sizeof parameters);
  for (size_t i = start; i < size; i += i % 4 == 0 ? 3 : 1) { /* the lowest and the highest bits of each number */
    bytes[i] ^= 1;
    test_write_file(f.path, bytes, size);
    assert_int_equal(checkpoint_load(f.path, CHECKPOINT_STATE, &f.net, &read, &err), -1);
    if (!strstr(err.message, f.path) || !strstr(err.message, "is damaged") || !strstr(err.message, sum) ||
        !strstr(err.message, "use a copy or an earlier checkpoint"))
      fail_msg("%s", err.message);
    assert_memory_equal(f.net.parameters, parameters, sizeof parameters);
    bytes[i] ^= 1;
  }
  test_write_file(f.path, bytes, size);
  if (checkpoint_load(f.path, CHECKPOINT_STATE, &f.net, &read, &err) != 0) fail_msg("%s", err.message);
  model_close(&f.net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_state_comes_back),
      cmocka_unit_test(the_model_comes_back_without_momentum),
      cmocka_unit_test(averages_come_back),
      cmocka_unit_test(another_network_is_refused_and_left_alone),
      cmocka_unit_test(a_diverged_network_is_neither_written_nor_read),
      cmocka_unit_test(a_model_needs_only_its_normalisation),
      cmocka_unit_test(wrong_metadata_is_named),
      cmocka_unit_test(a_changed_bit_is_noticed),
  };
  return TEST_MAIN("checkpoint", tests);
}
