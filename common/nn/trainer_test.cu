/* The learning rate over a run; one epoch of a tiny network: what it logs, where it stops, why it fails; what it tells
 * of steps that fp16 skips; the range test that finds a rate. */
#include "common/nn/find_lr.h"

#include <sys/stat.h>

#include "common/nn/optimizer.h"
#include "common/nn/test_net.h"
#include "common/test.h"

/* 1,000 images in batches of 64 are 16 steps an epoch; five epochs are 80 steps, of which the first 4 warm up. */
static void the_learning_rate_rises_and_falls(void **unused) {
  (void)unused;
  const LrSchedule linear = lr_schedule(&schedule_linear);
  TrainState state = TrainState();
  state.epochs = 5;
  state.batch_size = 64;
  state.train_images = 1000;
  state.lr = 0.4;
  double sum = 0, largest = 0, before = 0;
  for (state.step = 0; state.step < 80; state.step++) {
    double lr = trainer_learning_rate(&linear, &state);
    assert_true(lr > 0 && lr <= 0.4);
    assert_true(state.step < 4 ? lr > before : state.step > 4 ? lr < before : 1);
    sum += lr;
    if (lr > largest) largest = lr;
    before = lr;
  }
  assert_true(fabs(sum / 80 - 0.2) < 1e-12); /* a triangle: half its height on average */
  assert_true(largest > 0.39);
  state.step = 1;
  assert_true(fabs(trainer_learning_rate(&linear, &state) - 0.4 * 1.5 / 4) < 1e-12);
  state.step = 42;
  assert_true(fabs(trainer_learning_rate(&linear, &state) - 0.4 * (80 - 42.5) / 76) < 1e-12);
  state.step = 1000; /* beyond the end, when a resumed run has fewer epochs */
  assert_true(trainer_learning_rate(&linear, &state) == 0);
}

/* ---- epochs of 130 images of 4x4 pixels, one by one: the log has an interval of 100 steps and one of 30 ---- */

enum { COUNT = 130, SIDE = 4, PIXELS = SIDE * SIDE, CLASSES = 3, PARAMETERS = CLASSES * PIXELS + CLASSES };

typedef struct Fixture {
  Model net;
  DeviceSet set;
  TrainLog log;
  Trainer trainer;
  char directory[PATH_MAX];
} Fixture;

static int interrupt_at, steps; /* the step during which Ctrl-C comes; 0: never */
static Device device = DEVICE_CPU;

static void forward_and_interrupt(const Context *context, const Node *node, const OpArrays *a) {
  test_linear_forward(context, node, a);
  if (++steps == interrupt_at) interrupt_signal = SIGINT;
}

static void fixture_create(Fixture *f, const char *name) {
  Error err;
  static uint8_t images[COUNT * PIXELS];
  static int labels[COUNT];
  for (int i = 0; i < COUNT * PIXELS; i++) images[i] = (unsigned char)philox4x32(9, 0, i).word[0];
  for (int i = 0; i < COUNT; i++) labels[i] = (int)(philox4x32(9, 1, i).word[0] % CLASSES);
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, images, labels};
  const DataNorm norm = {1, {0.5f}, {0.3f}};
  memset(f, 0, sizeof *f);
  test_net_open(&f->net, shape1(PIXELS), CLASSES, device, 2);
  static Op interrupting = test_linear;
  interrupting.forward = forward_and_interrupt;
  f->net.graph->nodes[1].op = &interrupting;
  model_init(&f->net, 1);
  device_set_create(&f->set, device, &test_batches, &host, COUNT, &norm);
  mkdir(test_path(f->directory, sizeof f->directory, name), 0777);
  if (train_log_open(&f->log, f->directory, -1, &err) != 0) fail_msg("%s", err.message);
  Trainer *t = &f->trainer;
  t->net = &f->net;
  t->train = &f->set;
  t->schedule = lr_schedule(&schedule_linear);
  t->output_dir = f->directory;
  t->log = &f->log;
  t->state.seed = 11;
  t->state.epochs = 2;
  t->state.batch_size = 1;
  t->state.train_images = COUNT;
  t->state.lr = 0.02;
  t->state.momentum = 0.5;
  steps = interrupt_at = 0;
  interrupt_signal = 0;
}

/* Ends the fixture and gives what it logged. */
static TrainRecord *fixture_destroy(Fixture *f, size_t *count) {
  Error err;
  TrainRecord *records;
  if (train_log_close(&f->log, &err) != 0 || train_log_load(f->directory, 1000000, &records, count, &err) != 0)
    fail_msg("%s", err.message);
  trainer_close(&f->trainer);
  device_set_destroy(&f->set);
  model_close(&f->net);
  interrupt_signal = 0;
  return records;
}

static void next_epoch(TrainState *state) {
  state->epoch++;
  state->position = 0;
  state->epoch_totals.loss = state->epoch_totals.correct = 0;
}

/* The two epochs again, step by step from the parts, with the totals of each step by itself. */
static void train_by_hand(Totals *totals, float *parameters) {
  Fixture f;
  size_t count;
  const Totals none = {0, 0};
  fixture_create(&f, "by_hand");
  TrainState *state = &f.trainer.state;
  const LrSchedule linear = lr_schedule(&schedule_linear);
  for (state->step = 0; state->step < 2 * COUNT; state->step++) {
    if (state->step % COUNT == 0) device_set_shuffle(&f.set, state->seed, (int)(state->step / COUNT));
    model_reset_totals(&f.net, 0, none);
    device_set_gather(&f.set, &f.net, (int)(state->step % COUNT), 1);
    f.net.hyper.lr = (float)trainer_learning_rate(&linear, state);
    f.net.hyper.momentum = 0.5f;
    model_train_step(&f.net, 1);
    totals[state->step] = model_read_totals(&f.net, 0);
  }
  memcpy(parameters, f.net.parameters, PARAMETERS * sizeof(float));
  free(fixture_destroy(&f, &count));
}

static void assert_record(const TrainRecord *record, const Totals *totals, long from, long to) {
  double loss = 0, correct = 0;
  for (long i = from; i < to; i++) {
    loss += totals[i].loss;
    correct += totals[i].correct;
  }
  assert_string_equal(record->split, "train");
  assert_int_equal(record->step, to);
  assert_int_equal(record->epoch, (to - 1) / COUNT + 1);
  assert_true(fabs(record->loss - loss / (to - from)) < 1e-9);
  assert_true(fabs(record->accuracy - correct / (to - from)) < 1e-9);
  assert_true(record->images_per_second > 0 && record->seconds > 0 && record->lr > 0);
}

static void the_log_holds_every_step_once(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  Totals totals[2 * COUNT];
  float parameters[PARAMETERS];
  train_by_hand(totals, parameters);
  fixture_create(&f, "whole");
  for (int epoch = 0; epoch < 2; epoch++) {
    if (trainer_train_epoch(&f.trainer, &err) != TRAIN_FINISHED) fail_msg("epoch %d did not finish", epoch + 1);
    Totals sum = {0, 0};
    for (int i = 0; i < COUNT; i++) {
      sum.loss += totals[epoch * COUNT + i].loss;
      sum.correct += totals[epoch * COUNT + i].correct;
    }
    assert_true(fabs(f.trainer.state.epoch_totals.loss - sum.loss) < 1e-9);
    assert_true(f.trainer.state.epoch_totals.correct == sum.correct && sum.correct > 0);
    assert_int_equal(f.trainer.state.position, COUNT);
    next_epoch(&f.trainer.state);
  }
  assert_memory_equal(f.net.parameters, parameters, sizeof parameters);
  size_t count;
  TrainRecord *records = fixture_destroy(&f, &count);
  assert_int_equal(count, 4);
  const long ends[] = {0, 100, 130, 230, 260};
  for (int i = 0; i < 4; i++) assert_record(&records[i], totals, ends[i], ends[i + 1]);
  free(records);
}

static void an_interrupt_stops_after_its_step(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  Totals totals[2 * COUNT];
  float parameters[PARAMETERS];
  train_by_hand(totals, parameters);
  fixture_create(&f, "interrupted");
  TrainState *state = &f.trainer.state;
  interrupt_at = 37;
  assert_int_equal(trainer_train_epoch(&f.trainer, &err), TRAIN_INTERRUPTED);
  assert_true(state->step == 37 && state->position == 37 && state->epoch == 0);
  assert_int_equal(trainer_train_epoch(&f.trainer, &err), TRAIN_INTERRUPTED); /* still pressed: not one step more */
  assert_true(state->step == 37 && state->position == 37);

  interrupt_signal = 0; /* what is left computes what it would have */
  assert_int_equal(trainer_train_epoch(&f.trainer, &err), TRAIN_FINISHED);
  next_epoch(state);
  assert_int_equal(trainer_train_epoch(&f.trainer, &err), TRAIN_FINISHED);
  assert_memory_equal(f.net.parameters, parameters, sizeof parameters);
  size_t count;
  TrainRecord *records = fixture_destroy(&f, &count);
  assert_int_equal(count, 5);
  const long ends[] = {0, 37, 100, 130, 230, 260};
  for (int i = 0; i < 5; i++) assert_record(&records[i], totals, ends[i], ends[i + 1]);
  free(records);
}

/* With the other records of a look every 40 steps: its mean over these steps, before clipping. */
static void the_log_has_the_mean_norm_of_the_gradients(void **unused) {
  (void)unused;
  Fixture f;
  Error err;
  double norms[COUNT];
  const LrSchedule linear = lr_schedule(&schedule_linear);
  const long ends[] = {0, 40, 80, 120, 130};
  size_t count;
  for (int by_hand = 1; by_hand >= 0; by_hand--) {
    fixture_create(&f, "norms");
    TrainState *state = &f.trainer.state;
    state->clip_norm = f.net.clip_norm = 0.5f;
    f.trainer.log_every = 40;
    if (!by_hand) break;
    device_set_shuffle(&f.set, state->seed, 0);
    for (; state->step < COUNT; state->step++) {
      double squares = 0;
      device_set_gather(&f.set, &f.net, (int)state->step, 1);
      f.net.hyper.lr = (float)trainer_learning_rate(&linear, state);
      f.net.hyper.momentum = 0.5f;
      model_gradients(&f.net, 1);
      for (int i = 0; i < PARAMETERS; i++) squares += (double)f.net.gradients[i] * f.net.gradients[i];
      norms[state->step] = sqrt(squares);
      model_clip(&f.net);
      model_update(&f.net);
    }
    free(fixture_destroy(&f, &count));
  }
  if (trainer_train_epoch(&f.trainer, &err) != TRAIN_FINISHED) fail_msg("%s", err.message);
  TrainRecord *records = fixture_destroy(&f, &count);
  assert_int_equal(count, 4);
  int clipped = 0;
  for (int i = 0; i < 4; i++) {
    double sum = 0;
    for (long step = ends[i]; step < ends[i + 1]; step++) {
      sum += norms[step];
      clipped += norms[step] > 0.5;
    }
    assert_int_equal(records[i].step, ends[i + 1]);
    if (!(fabs(records[i].gradient_norm / (sum / (double)(ends[i + 1] - ends[i])) - 1) < 1e-9))
      fail_msg("record %d: %.9g, expected %.9g", i, records[i].gradient_norm, sum / (double)(ends[i + 1] - ends[i]));
  }
  assert_in_range(clipped, 10, COUNT - 1);
  free(records);
}

/* On a GPU a look ends while the next interval is at work: every record is as on the CPU, but for rounding. */
static void the_log_of_a_gpu_holds_every_step_once(void **unused) {
  (void)unused;
  test_requires_gpu();
  Error err;
  TrainRecord *records[2];
  size_t count[2];
  for (int gpu = 0; gpu < 2; gpu++) {
    Fixture f;
    device = gpu ? DEVICE_GPU : DEVICE_CPU;
    fixture_create(&f, gpu ? "gpu" : "cpu");
    f.net.graph->nodes[1].op = &test_linear;
    f.trainer.log_every = 20;
    f.trainer.state.clip_norm = f.net.clip_norm = 0.5f;
    for (int epoch = 0; epoch < 2; epoch++) {
      if (trainer_train_epoch(&f.trainer, &err) != TRAIN_FINISHED) fail_msg("%s", err.message);
      assert_true(f.trainer.interval > 0);
      next_epoch(&f.trainer.state);
    }
    records[gpu] = fixture_destroy(&f, &count[gpu]);
  }
  device = DEVICE_CPU;
  assert_int_equal(count[0], 14);
  assert_int_equal(count[1], 14);
  for (int i = 0; i < 14; i++) {
    const TrainRecord *a = &records[0][i], *b = &records[1][i];
    assert_true(a->step == b->step && a->epoch == b->epoch && a->lr == b->lr && a->accuracy == b->accuracy);
    assert_true(fabs(a->loss - b->loss) < 1e-4 && fabs(a->gradient_norm / b->gradient_norm - 1) < 1e-4);
    assert_true(b->images_per_second > 0 && (i == 0 || b->seconds > b[-1].seconds));
  }
  free(records[0]);
  free(records[1]);
}

/* At the hundredth step, at the end of the epoch, and when an interrupt comes first. */
static void a_loss_that_is_not_finite_ends_the_run(void **unused) {
  (void)unused;
  const int failed_at[] = {100, 130, 20};
  for (int i = 0; i < 3; i++) {
    Fixture f;
    Error err;
    char expected[256];
    fixture_create(&f, "diverged");
    interrupt_at = i == 2 ? 20 : 0;
    if (i == 1) f.trainer.state.step = f.trainer.state.position = 105;
    f.net.parameters[1] = NAN;
    assert_int_equal(trainer_train_epoch(&f.trainer, &err), TRAIN_FAILED);
    snprintf(expected, sizeof expected,
             "the loss is not finite at step %d of epoch 1: the learning rate 0.02 is too high for this network; "
             "try --lr=0.002 or --clip-norm=1. Nothing was saved; the files in ",
             failed_at[i]);
    if (strncmp(err.message, expected, strlen(expected)) != 0) fail_msg("%s", err.message);
    assert_non_null(strstr(err.message, f.directory));
    size_t count;
    free(fixture_destroy(&f, &count));
    assert_int_equal(count, 0);
  }
}

/* ---- fp16 ---- */

/* A network of `f` that has the scale of fp16, and float32 operations; its loss is multiplied by `weight`. */
static void fixture_scale(Fixture *f, int batch, float weight, float scale) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  Graph *g = test_net_graph(shape1(PIXELS), CLASSES);
  g->type = DTYPE_FP16;
  g->losses[0].weight = weight;
  model_close(&f->net);
  if (model_open(&f->net, g, context, &optimizer_sgd_momentum, batch, MODEL_TRAIN, &err) != 0)
    fail_msg("%s", err.message);
  model_init(&f->net, 1);
  model_set_loss_scale(&f->net, scale);
}

/* While a look is fetched the device goes on, and what it skips then is told by the next look. With this
 * loss all four steps overflow. */
static void a_look_tells_what_was_skipped_before_it(void **unused) {
  (void)unused;
  test_requires_gpu();
  for (int gpu = 0; gpu < 2; gpu++) {
    Fixture f;
    Error err;
    TrainerInterval interval;
    size_t count;
    device = gpu ? DEVICE_GPU : DEVICE_CPU;
    fixture_create(&f, gpu ? "skipped_gpu" : "skipped_cpu");
    fixture_scale(&f, 2, 1e35f, LOSS_SCALE_MOST);
    Trainer *t = &f.trainer;
    t->lr = 0.02;
    memset(&interval, 0, sizeof interval);
    totals_fetch_open(&t->fetch, &f.net);
    device_set_shuffle(&f.set, 11, 0);
    const Totals none = {0, 0};
    model_reset_totals(&f.net, 0, none);
    for (int look = 1; look <= 2; look++) {
      trainer_one_step(t, look, 1);
      t->state.position = look;
      t->interval = TRAINER_SHORT / 2; /* so that the look does not wait */
      if (trainer_look(t, &interval, &err) != 0) fail_msg("%s", err.message);
      assert_int_equal(interval.looking, gpu);
      if (gpu) trainer_one_step(t, look + 2, 1); /* behind the look */
      if (gpu && trainer_look_end(t, &interval, &err) != 0) fail_msg("%s", err.message);
      const int skipped = gpu ? 2 * look - 1 : look;
      assert_int_equal(t->state.skipped_steps, skipped);
      assert_int_equal(t->skipped, skipped);
      assert_true(t->state.loss_scale == LOSS_SCALE_MOST / (1 << skipped) && t->state.good_steps == 0);
    }
    assert_true(model_get_loss_scale(&f.net) == LOSS_SCALE_MOST / (gpu ? 16 : 4));
    free(fixture_destroy(&f, &count));
  }
  device = DEVICE_CPU;
}

/* ---- the range test ---- */

/* The average by its definition: weights (1 - beta) beta^k that are made to add up to 1. */
static void the_average_is_that_of_its_weights(void **unused) {
  (void)unused;
  FindLr test;
  find_lr_open(&test, 50);
  assert_true(fabs(test.lr[0] / FIND_LR_FIRST - 1) < 1e-12 && fabs(test.lr[49] / FIND_LR_LAST - 1) < 1e-12);
  for (int i = 0; i < 50; i++) assert_int_equal(find_lr_add(&test, 1 + 0.02 * (i * 7 % 11)), i < 49);
  for (int i = 0; i < 50; i++) {
    double sum = 0, weights = 0;
    for (int k = 0; k <= i; k++) {
      sum += pow(test.beta, k) * test.loss[i - k];
      weights += pow(test.beta, k);
    }
    if (!(fabs(test.smooth[i] - sum / weights) < 1e-12)) fail_msg("step %d: %g, %g", i, test.smooth[i], sum / weights);
    if (i > 0) assert_true(fabs(test.lr[i] / test.lr[i - 1] - test.lr[1] / test.lr[0]) < 1e-9);
  }
  find_lr_close(&test);
}

/* A network that does not learn below 1e-3, learns best at 0.3, and diverges beyond. */
static void a_rate_below_the_best_is_suggested(void **unused) {
  (void)unused;
  FindLr test;
  Error err;
  find_lr_open(&test, 200);
  for (int more = 1; more;) {
    const double x = log10(test.lr[test.count] / 0.3);
    more = find_lr_add(&test, test.lr[test.count] < 1e-3 ? 2.3 : 0.5 + (x < 0 ? 0.3 * x * x : 9 * x * x));
  }
  assert_true(test.count < 200); /* it saw that it diverges */
  if (find_lr_suggest(&test, &err) != 0) fail_msg("%s", err.message);
  if (!(test.lowest > 0.1 && test.lowest < 1 && test.suggested < test.lowest / 2 && test.suggested > test.lowest / 10))
    fail_msg("lowest at %g, suggested %g", test.lowest, test.suggested);
  find_lr_close(&test);
}

static void no_rate_is_suggested_where_nothing_is_learned(void **unused) {
  (void)unused;
  FindLr test;
  Error err;
  find_lr_open(&test, 30);
  assert_int_equal(find_lr_suggest(&test, &err), -1);
  for (int i = 0; i < 20; i++) assert_int_equal(find_lr_add(&test, 2.3 - 0.001 * i), 1);
  assert_int_equal(find_lr_add(&test, NAN), 0);
  assert_int_equal(find_lr_add(&test, INFINITY), 0);
  assert_int_equal(test.count, 20);
  assert_int_equal(find_lr_suggest(&test, &err), -1);
  if (strstr(err.message, "the loss did not fall at any learning rate from 1e-06 to ") == NULL)
    fail_msg("%s", err.message);
  find_lr_close(&test);
}

enum { FIND_BATCH = 32, FIND_EPOCHS = 10 };

/* Images of which the brightest third gives the label: one layer learns that quickly. */
static void find_create(Model *net, DeviceSet *set, Trainer *t) {
  static uint8_t images[COUNT * PIXELS];
  static int labels[COUNT];
  for (int i = 0; i < COUNT; i++) {
    labels[i] = (int)(philox4x32(9, 1, i).word[0] % CLASSES);
    for (int j = 0; j < PIXELS; j++)
      images[i * PIXELS + j] =
          (uint8_t)(philox4x32(9, 0, i * PIXELS + j).word[0] % 160 + (j % CLASSES == labels[i]) * 90);
  }
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, images, labels};
  const DataNorm norm = {1, {0.4f}, {0.2f}};
  memset(t, 0, sizeof *t);
  test_net_open(net, shape1(PIXELS), CLASSES, DEVICE_CPU, FIND_BATCH);
  model_init(net, 1);
  device_set_create(set, DEVICE_CPU, &test_batches, &host, COUNT, &norm);
  t->net = net;
  t->train = set;
  t->state.seed = 11;
  t->state.batch_size = FIND_BATCH;
  t->state.momentum = 0.9;
}

/* The mean loss of the last of some epochs with this rate. */
static double loss_with(double lr) {
  Model net;
  DeviceSet set;
  Trainer t;
  const Totals none = {0, 0};
  find_create(&net, &set, &t);
  t.lr = lr;
  for (int epoch = 0; epoch < FIND_EPOCHS; epoch++) {
    device_set_shuffle(&set, t.state.seed, epoch);
    model_reset_totals(&net, 0, none);
    for (int start = 0; start < COUNT; start += FIND_BATCH)
      trainer_one_step(&t, start, COUNT - start < FIND_BATCH ? COUNT - start : FIND_BATCH);
  }
  const double loss = model_read_totals(&net, 0).loss / COUNT;
  device_set_destroy(&set);
  model_close(&net);
  return isfinite(loss) ? loss : INFINITY;
}

/* On a network that learns quickly the suggested rate teaches more than one that is 30 times lower. */
static void the_suggested_rate_is_a_good_one(void **unused) {
  (void)unused;
  Model net;
  DeviceSet set;
  Trainer t;
  FindLr test;
  Error err;
  find_create(&net, &set, &t);
  find_lr_open(&test, 100);
  find_lr_run(&test, &t);
  if (find_lr_suggest(&test, &err) != 0) fail_msg("%s", err.message);
  char directory[PATH_MAX], path[PATH_MAX + 32];
  if (find_lr_write(&test, "a title", test_path(directory, sizeof directory, "find_lr"), &err) != 0)
    fail_msg("%s", err.message);
  snprintf(path, sizeof path, "%s/find_lr.csv", directory);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  int lines = 0, c;
  while ((c = fgetc(file)) != EOF) lines += c == '\n';
  fclose(file);
  assert_int_equal(lines, test.count + 1);
  const double good = loss_with(test.suggested), low = loss_with(test.suggested / 30);
  print_message("lowest at %g, suggested %g: %g; with a thirtieth %g\n", test.lowest, test.suggested, good, low);
  assert_true(good < 0.6 * low && good < 0.3);
  find_lr_close(&test);
  device_set_destroy(&set);
  model_close(&net);
}

/* Every pass of fp16 begins with the same scale: the same pass again has the same losses, and skips the same steps. */
static void every_pass_begins_with_the_same_scale(void **unused) {
  (void)unused;
  Fixture f;
  Progress progress;
  size_t count;
  FindLr test[2];
  LossScale end[2];
  fixture_create(&f, "find_lr_scale");
  fixture_scale(&f, 1, 1e33f, LOSS_SCALE_MOST);
  f.net.clip_value = 0.1f;
  f.trainer.state.momentum = 0.9;
  progress_begin(&progress, "find-lr", "step", 0, 40);
  for (int pass = 0; pass < 2; pass++) {
    find_lr_open(&test[pass], 20);
    find_lr_pass(&test[pass], &f.trainer, 5, LOSS_SCALE_MOST, &progress, 20 * pass);
    end[pass] = *f.net.loss_scale;
  }
  progress_end(&progress);
  assert_in_range(end[0].skipped, 2, 15);
  assert_memory_equal(&end[0], &end[1], sizeof *end);
  assert_true(test[0].count > end[0].skipped);
  assert_int_equal(test[0].count, test[1].count);
  assert_memory_equal(test[0].loss, test[1].loss, (size_t)test[0].count * sizeof(double));
  find_lr_close(&test[0]);
  find_lr_close(&test[1]);

  /* the scale that the network was opened with is that of the passes */
  model_set_loss_scale(&f.net, 1024);
  find_lr_open(&test[0], 20);
  find_lr_run(&test[0], &f.trainer);
  assert_true(f.net.loss_scale->skipped == 0 && f.net.loss_scale->scale == 1024);
  assert_int_equal(f.net.loss_scale->steps, f.net.context.step);
  find_lr_close(&test[0]);
  free(fixture_destroy(&f, &count));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_learning_rate_rises_and_falls),
      cmocka_unit_test(the_log_holds_every_step_once),
      cmocka_unit_test(the_log_has_the_mean_norm_of_the_gradients),
      cmocka_unit_test(the_log_of_a_gpu_holds_every_step_once),
      cmocka_unit_test(a_look_tells_what_was_skipped_before_it),
      cmocka_unit_test(an_interrupt_stops_after_its_step),
      cmocka_unit_test(a_loss_that_is_not_finite_ends_the_run),
      cmocka_unit_test(the_average_is_that_of_its_weights),
      cmocka_unit_test(a_rate_below_the_best_is_suggested),
      cmocka_unit_test(no_rate_is_suggested_where_nothing_is_learned),
      cmocka_unit_test(the_suggested_rate_is_a_good_one),
      cmocka_unit_test(every_pass_begins_with_the_same_scale),
  };
  return TEST_MAIN("trainer", tests);
}
