/* The program mlp_mnist: what it has beyond common/nn/app.h, which lenet_mnist_test and lenet_model_test test. Its
 * network is the user's choice, and a checkpoint remembers it. */
#include "common/program_test.h"

/* ---- it learns ---- */

static void learns_and_writes_its_results(void **state) {
  (void)state;
  Subprocess run = train(output_dir("learn"), "--epochs=3", "--json", NULL, NULL);
  expect_run(&run, 0, "network 784,128,10 relu: 101770 parameters", NULL);
  expect_run(&run, 0, "confusion matrix", NULL);
  json_t *result = expect_json(&run);
  double accuracy = json_number_value(json_object_get(result, "test_accuracy"));
  assert_true(accuracy > 0.87 && accuracy < 1); /* 4,000 images, three epochs: about 0.91 */
  assert_true(json_number_value(json_object_get(result, "images_per_second")) > 0);
  assert_string_equal(json_string_value(json_object_get(result, "program")), "mlp_mnist");
  json_decref(result);
  subprocess_free(&run);
  assert_run_files("learn");

  Error err;
  SafetensorsFile file;
  if (safetensors_open(in_dir("learn", "best.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  const char *tensors[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
  const size_t shapes[][2] = {{128, 784}, {128}, {10, 128}, {10}};
  const int ranks[] = {2, 1, 2, 1};
  static float values[128 * 784];
  assert_int_equal(file.count, 4);
  for (int i = 0; i < 4; i++)
    if (safetensors_read_f32(&file, tensors[i], ranks[i], shapes[i], values, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(safetensors_metadata(&file, "network"), "784,128,10 relu");
  safetensors_close(&file);
}

/* Widths 1, 3 and 127; all images in one batch, and one image a batch; every activation. */
static void networks_of_any_shape_train(void **state) {
  (void)state;
  small_must("shape_a", "--layers=784,1,10", "--activation=tanh", "--epochs=1",
             "network 784,1,10 tanh: 805 parameters");
  small_must("shape_b", "--layers=784,127,3,10", "--batch-size=65536", "--epochs=2", "batch 65536");
  small_must("shape_c", "--layers=784,10", "--batch-size=1", "--epochs=1", "network 784,10 relu: 7850 parameters");
  small_must("shape_d", "--layers=784,3,11", "--activation=sigmoid", "--epochs=1", "network 784,3,11 sigmoid");
  small_must("shape_e", "--activation=leaky_relu", "--weight-decay=0.01", "--epochs=1", "weight decay 0.01");
}

static void the_emulated_or_real_gpu_learns_too(void **state) {
  (void)state;
  Subprocess run = train(output_dir("gpu"), "--device=gpu", "--train-images=1280", "--epochs=2", "--json");
  if (run.status == 1 && strstr(run.err, "use --device=cpu")) skip(); /* built for a GPU that is not here */
  expect_run(&run, 0, "network 784,128,10 relu", NULL);
  json_t *result = expect_json(&run);
  assert_true(json_number_value(json_object_get(result, "test_accuracy")) > 0.75);
  assert_string_equal(json_string_value(json_object_get(result, "device")), "gpu");
  json_decref(result);
  subprocess_free(&run);
}

static void the_same_seed_gives_the_same_bits(void **state) {
  (void)state;
  small_must("same_a", "--epochs=1", "--seed=7", "--threads=1", NULL);
  small_must("same_b", "--epochs=1", "--seed=7", "--threads=3", NULL);
  assert_same_tensors(in_dir("same_a", "last.state.safetensors"), in_dir("same_b", "last.state.safetensors"));
}

static float first_bias(const char *directory) { return first_value(directory, "fc1.bias", 128); }

static void weight_decay_matters_also_when_resumed(void **state) {
  (void)state;
  small_must("decay_a", "--epochs=1", NULL, NULL, NULL);
  small_must("decay_b", "--epochs=1", NULL, NULL, NULL);
  small_must("decay_c", "--epochs=1", "--weight-decay=0", NULL, "momentum 0.9, seed 1");
  assert_true(first_bias("decay_a") == first_bias("decay_b"));
  assert_true(first_bias("decay_a") != first_bias("decay_c"));
  small_must("decay_a", "--epochs=2", "--resume", NULL, NULL);
  small_must("decay_b", "--epochs=2", "--resume", "--weight-decay=0.1", "weight decay 0.1");
  assert_true(first_bias("decay_a") != first_bias("decay_b"));
}

/* ---- optimizers ---- */

/* Stopped after an epoch and resumed without being named again: slots, step and settings come back. */
static void other_optimizers_resume_exactly(void **state) {
  (void)state;
  static const struct {
    const char *option, *more, *says;
  } cases[] = {
      {"--optimizer=adam", "--beta1=0.8", "adam, learning rate 0.001, beta1 0.8, beta2 0.999, epsilon 1e-08"},
      {"--optimizer=rmsprop", "--centered", "rmsprop, learning rate 0.001, beta2 0.99, epsilon 1e-08, centered"},
      {"--optimizer=muon", "--layers=784,12,10", "muon, learning rate 0.005, momentum 0.95"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char whole[32], parts[32];
    snprintf(whole, sizeof whole, "optimizer_whole%zu", i);
    snprintf(parts, sizeof parts, "optimizer_parts%zu", i);
    Subprocess run = train(output_dir(whole), "--epochs=2", "--schedule=constant", cases[i].option, cases[i].more);
    expect_run(&run, 0, cases[i].says, NULL);
    subprocess_free(&run);
    run = train(output_dir(parts), "--epochs=1", "--schedule=constant", cases[i].option, cases[i].more);
    expect_run(&run, 0, cases[i].says, NULL);
    subprocess_free(&run);
    run = train(output_dir(parts), "--epochs=2", "--resume", NULL, NULL);
    expect_run(&run, 0, cases[i].says, NULL);
    subprocess_free(&run);
    assert_same_tensors(in_dir(whole, "last.state.safetensors"), in_dir(parts, "last.state.safetensors"));
  }
}

static void settings_of_no_optimizer_are_refused(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"--optimizer=adagrad", NULL, "--optimizer=adagrad: sgd, adam, adamw, rmsprop or muon is expected"},
      {"--optimizer=adam", "--momentum=0.9",
       "--momentum: --optimizer=adam does not use it; its own settings are --beta1"},
      {"--optimizer=rmsprop", "--nesterov", "--nesterov: --optimizer=rmsprop does not use it"},
      {"--nesterov", "--momentum=0", "--nesterov needs a --momentum above 0 and no --dampening"},
      {"--centered", NULL, "--centered: --optimizer=sgd does not use it"},
      {"--optimizer=adam", "--beta2=1", "--beta2"},
      {"--optimizer=adam", "--epsilon=0", "--epsilon"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = small("refused", cases[i][0], cases[i][1], NULL);
    expect_run(&run, 2, NULL, cases[i][2]);
    subprocess_free(&run);
  }
  small_must("by_rmsprop", "--epochs=1", "--optimizer=rmsprop", NULL, NULL);
  small_refused("by_rmsprop", "--epochs=2", "--resume", "--optimizer=adam",
                "the checkpoint is of --optimizer=rmsprop, not adam; leave the option out");
  small_refused("by_rmsprop", "--epochs=2", "--resume", "--momentum=0.5",
                "was started by rmsprop with square_avg, and these settings make rmsprop with square_avg and "
                "momentum_buffer of it");
  small_refused("by_rmsprop", "--epochs=2", "--resume", "--nesterov",
                "--nesterov: --optimizer=rmsprop does not use it");
  small_must("by_rmsprop", "--epochs=2", "--resume", "--beta2=0.9", "beta2 0.9");
}

/* ---- options of all trainers ---- */

static void the_summary_trains_nothing(void **state) {
  (void)state;
  const char *argv[] = {program, "--device=cpu", output_dir("summary"), "--summary", "--json", "--batch-size=31", NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, "training, batch 31: ", NULL);
  expect_run(&run, 0, "inference, batch 31: ", NULL);
  json_t *result = expect_json(&run);
  assert_int_equal(json_integer_value(json_object_get(result, "parameters")), 101770);
  assert_int_equal(json_array_size(json_object_get(result, "rows")), 4); /* x, fc1, relu1, fc2 */
  const double training = json_number_value(json_object_get(result, "training_bytes"));
  const double inference = json_number_value(json_object_get(result, "inference_bytes"));
  assert_true(inference > 4 * 101770 && training > 3 * 4 * 101770);
  json_decref(result);
  subprocess_free(&run);
  assert_false(file_exists(in_dir("summary", "log.csv")));
}

static void schedules_and_augmentation_are_remembered(void **state) {
  (void)state;
  small_must("table_a", "--epochs=1", "--schedule=cosine", "--augment=crop", "augmented by crop, schedule cosine");
  small_must("table_b", "--epochs=1", NULL, NULL, NULL);
  assert_true(first_bias("table_a") != first_bias("table_b"));
  small_must("table_c", "--epochs=1", "--schedule=linear", "--augment=none", NULL); /* as without */
  assert_true(first_bias("table_c") == first_bias("table_b"));
  small_must("table_a", "--epochs=2", "--resume", NULL, "augmented by crop, schedule cosine");
  small_must("table_d", "--epochs=1", "--schedule=cosine", "--augment=crop", NULL);
  small_must("table_d", "--epochs=2", "--resume", "--schedule=constant", "schedule constant");
  assert_true(first_bias("table_a") != first_bias("table_d"));
  small_refused("table_a", "--epochs=2", "--resume", "--data=fashion_mnist", "is of --data=mnist, not fashion_mnist");
}

/* The range test trains nothing that stays: what a run has left is untouched. Its rate is a good one. */
static void the_range_test_suggests_a_rate(void **state) {
  (void)state;
  small_must("find", "--epochs=1", NULL, NULL, NULL);
  small_must("find_copy", "--epochs=1", NULL, NULL, NULL);
  Subprocess run = train(output_dir("find"), "--find-lr", "--json", NULL, NULL);
  expect_run(&run, 0, "suggested: --lr=", NULL);
  json_t *result = expect_json(&run);
  const double lr = json_number_value(json_object_get(result, "suggested_lr"));
  print_message("suggested: %g\n", lr);
  assert_true(lr >= 0.005 && lr <= 0.2); /* that of this program is 0.05 */
  json_decref(result);
  subprocess_free(&run);
  assert_true(file_exists(in_dir("find", "find_lr.csv")));
  assert_same_models("find", "find_copy");
  char option[32];
  snprintf(option, sizeof option, "--lr=%g", lr);
  run = train(output_dir("found"), "--epochs=2", "--json", option, NULL);
  expect_run(&run, 0, NULL, NULL);
  result = expect_json(&run);
  assert_true(json_number_value(json_object_get(result, "test_accuracy")) > 0.87);
  json_decref(result);
  subprocess_free(&run);
}

/* ---- the validation set ---- */

static double json_figure(const Subprocess *run, const char *key) {
  json_t *result = expect_json(run);
  const json_t *value = json_object_get(result, key);
  if (!json_is_number(value)) fail_msg("no figure %s", key);
  const double figure = json_number_value(value);
  json_decref(result);
  return figure;
}

static void a_share_is_held_back_to_validate(void **state) {
  (void)state;
  Subprocess run = small("validate", "--epochs=2", "--validation=0.25", "--json");
  expect_run(&run, 0, "480 training images, 160 validation images, 1000 test images", NULL);
  assert_true(json_figure(&run, "validation_loss") > 0 && json_figure(&run, "best_validation_loss") > 0);
  assert_true(json_figure(&run, "validation_accuracy") > 0.3);
  subprocess_free(&run);
  /* --resume knows the share, and takes no other */
  small_must("validate", "--epochs=3", "--resume", NULL, "480 training images, 160 validation images");
  small_must("validate_whole", "--epochs=3", "--validation=0.25", NULL, NULL);
  small_refused("validate", "--epochs=4", "--resume", "--validation=0.5", "was started with --validation=0.25");
  small_refused("nothing", "--epochs=1", "--validation=1", NULL,
                "--validation=1: a share of 1 of 640 images is 640; at least 1, and not all of them, is expected");
  small_refused("nothing", "--epochs=1", "--validation=0.0001", NULL, "a share of 0.0001 of 640 images is 0");
  assert_false(file_exists(in_dir("nothing", "log.csv")));
}

/* With a rate so high that the loss rises again the run stops N epochs after its best one, and counts as finished. */
static void patience_ends_a_run(void **state) {
  (void)state;
  Subprocess run = train(output_dir("early"), "--train-images=300", "--epochs=60", "--validation=0.3", "--patience=2");
  expect_run(&run, 0, "stopped early: the validation loss was lowest in epoch ", NULL);
  expect_run(&run, 0, "and has not fallen for 2 epochs\n", NULL);
  expect_run(&run, 0, "confusion matrix", NULL);
  subprocess_free(&run);
  run = train(output_dir("early"), "--train-images=300", "--epochs=60", "--resume", NULL);
  expect_run(&run, 0, "stopped early, after epoch ", NULL);
  subprocess_free(&run);
  run = train(output_dir("early"), "--train-images=300", "--epochs=60", "--resume", "--patience=4");
  expect_run(&run, 0, "resuming at epoch ", NULL);
  subprocess_free(&run);
  run = train(output_dir("early"), "--train-images=300", "--epochs=1", NULL, NULL); /* no --restart is needed */
  expect_run(&run, 0, NULL, "the earlier run is in");
  subprocess_free(&run);
}

/* ---- gradients ---- */

static void clipped_gradients_and_parts_are_remembered(void **state) {
  (void)state;
  const char *const clip = "--clip-norm=0.5", *const parts = "--accumulate=4";
  small_must("clip_a", "--epochs=2", clip, parts, "batch 256, ");
  small_must("clip_b", "--epochs=1", clip, parts, "in 4 parts of 64, gradients clipped to the norm 0.5");
  Subprocess run = train(output_dir("clip_b"), "--train-images=640", "--epochs=2", "--resume", NULL);
  expect_run(&run, 0, "in 4 parts of 64, gradients clipped to the norm 0.5", NULL);
  subprocess_free(&run);
  small_must("clip_c", "--epochs=2", parts, NULL, NULL);
  assert_true(first_bias("clip_a") != first_bias("clip_c"));
  small_refused("clip_b", "--epochs=3", "--resume", "--accumulate=2", "was started with --accumulate=4");
}

/* ---- augmentation ---- */

/* The text is in the checkpoint; with it a run goes on to the same bits. */
static void an_augmented_run_goes_on_to_the_same_bits(void **state) {
  (void)state;
  const char *augment = "--augment=crop:2,affine:rotate=15,scale=0.1,cutout:6,colour:contrast=0.2";
  const char *sentence = "augmented by crop:2,affine:rotate=15,scale=0.1,cutout:6,colour:contrast=0.2";
  small_must("augmented", "--epochs=2", "--schedule=constant", augment, sentence);
  small_must("augmented_parts", "--epochs=1", "--schedule=constant", augment, sentence);
  small_must("augmented_parts", "--epochs=2", "--resume", NULL, sentence);
  assert_same_tensors(in_dir("augmented", "last.state.safetensors"),
                      in_dir("augmented_parts", "last.state.safetensors"));
  small_refused("augmented_colour", "--epochs=1", "--augment=colour:saturation=1", NULL,
                "saturation needs 3 channels, and these images have 1");
}

/* The first line names the data set of the checkpoint. (The files of both sets have the same form.) */
static void the_first_line_names_the_checkpoints_data_set(void **state) {
  (void)state;
  small_must("named", "--epochs=1", "--data=fashion_mnist", NULL, "Multi-layer perceptron on Fashion-MNIST on ");
  small_must("named", "--epochs=2", "--resume", NULL, "Multi-layer perceptron on Fashion-MNIST on ");
  const char *argv[] = {program, "--device=cpu", output_dir("named"), "--predict", "/nowhere.png", NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, "Multi-layer perceptron on Fashion-MNIST on ", "/nowhere.png");
  subprocess_free(&run);
}

/* No warning: the steps are recorded once. 0: the program is built for a GPU that is not here. */
static int two_epochs_by_kernels(const char *directory, const char *graph) {
  Subprocess run = train(output_dir(directory), "--device=gpu", "--train-images=330", "--epochs=2", graph);
  const int none = run.status == 1 && strstr(run.err, "use --device=cpu");
  if (!none) expect_run(&run, 0, NULL, NULL);
  if (strstr(run.err, "warning")) fail_msg("no warning is expected; stderr has: %s", run.err);
  subprocess_free(&run);
  return !none;
}

static void a_graph_of_the_step_gives_the_same_bits(void **state) {
  (void)state;
  if (!two_epochs_by_kernels("graph_a", "--graph")) skip();
  two_epochs_by_kernels("graph_b", NULL);
  assert_same_tensors(in_dir("graph_a", "last.state.safetensors"), in_dir("graph_b", "last.state.safetensors"));
}

/* ---- the checkpoint knows the network ---- */

/* The folder's report.html has this sentence. */
static void assert_page_says(const char *directory, const char *sentence) {
  static char page[1 << 20];
  page[test_read_file(in_dir(directory, "report.html"), page, sizeof page - 1)] = '\0';
  if (!strstr(page, sentence)) fail_msg("\"%s\" is not in the page of %s", sentence, directory);
}

static void interrupted_and_resumed_equals_uninterrupted(void **state) {
  (void)state;
  const char *const layers = "--layers=784,32,16,10";
  Subprocess whole = three_epochs("whole", layers, NULL);
  expect_run(&whole, 0, "network 784,32,16,10 relu", NULL);
  Subprocess first = start_and_signal("parts", SIGINT, 2, 0, layers);
  expect_run(&first, 130, "--resume", "stopping after this step");
  assert_page_says("parts", "<p class=\"soft\">Stopped in epoch ");
  Subprocess second = three_epochs("parts", "--resume", NULL); /* without --layers */
  assert_page_says("parts", "<p class=\"soft\">Finished, 2");
  assert_page_says("parts", "<h2>Worst mistakes</h2>");
  expect_run(&second, 0, "network 784,32,16,10 relu", NULL);
  expect_run(&second, 0, "resuming at epoch", NULL);
  assert_same_tensors(in_dir("whole", "last.state.safetensors"), in_dir("parts", "last.state.safetensors"));
  subprocess_free(&whole);
  subprocess_free(&first);
  subprocess_free(&second);
}

static void another_network_is_refused(void **state) {
  (void)state;
  small_must("net", "--epochs=1", "--layers=784,20,10", "--activation=tanh", "network 784,20,10 tanh");
  small_refused("net", "--resume", "--epochs=2", "--layers=784,21,10",
                "this is the network 784,20,10 tanh, not 784,21,10 tanh; leave --layers and --activation out");
  small_refused("net", "--resume", "--epochs=2", "--activation=relu", "this is the network 784,20,10 tanh, not");
  small_must("net", "--resume", "--epochs=2", "--activation=tanh", "network 784,20,10 tanh");
  small_must("net", "--resume", "--epochs=3", "--layers=784,20,10", "network 784,20,10 tanh");
}

/* Changes the metadata's `from`, in place, into `to`, which has as many letters. */
static void damage(const char *path, const char *from, const char *to) {
  static char text[1 << 20];
  FILE *file = fopen(path, "r+");
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof text, file);
  size_t at = 0, length = strlen(from);
  while (at + length < size && memcmp(text + at, from, length) != 0) at++;
  assert_true(at + length < size);
  memcpy(text + at, to, length);
  rewind(file);
  assert_int_equal(fwrite(text, 1, size, file), size);
  fclose(file);
}

static void a_damaged_network_is_named(void **state) {
  (void)state;
  small_must("damaged", "--epochs=1", "--layers=784,20,10", NULL, NULL);
  damage(in_dir("damaged", "last.state.safetensors"), "784,20,10 relu", "784,20,10 gelu");
  small_refused("damaged", "--resume", "--epochs=2", NULL, "unknown activation \"gelu\"");
  damage(in_dir("damaged", "last.state.safetensors"), "784,20,10 gelu", "784,19,10 relu");
  small_refused("damaged", "--resume", "--epochs=2", NULL, "fc1.weight");
}

static void predicts_with_the_network_of_the_checkpoint(void **state) {
  (void)state;
  Error err;
  MnistSet set;
  if (mnist_load(mnist, "t10k", &set, &err) != 0) fail_msg("%s", err.message);
  Image image = image_new(28, 28, 1);
  memcpy(image.pixels, set.images, 28 * 28);
  char path[PATH_MAX];
  if (image_write_png(test_path(path, sizeof path, "seven.png"), &image, &err) != 0) fail_msg("%s", err.message);
  image_free(&image);
  assert_int_equal(set.labels[0], 7);
  mnist_free(&set);

  small_must("predict", "--epochs=3", "--layers=784,40,10", "--activation=tanh", NULL);
  const char *argv[] = {program, "--device=cpu", output_dir("predict"), "--json", "--predict", path, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, "network 784,40,10 tanh", NULL);
  json_t *result = expect_json(&run), *first = json_array_get(json_object_get(result, "predictions"), 0);
  json_t *top = json_array_get(json_object_get(first, "top"), 0);
  assert_int_equal(json_integer_value(json_object_get(top, "label")), 7);
  json_decref(result);
  subprocess_free(&run);
  argv[3] = "--layers=784,128,10";
  run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "this is the network 784,40,10 tanh, not 784,128,10 tanh");
  subprocess_free(&run);
}

/* Weights that are numbers, of answers that are not. */
static void predict_refuses_an_answer_that_is_not_finite(void **state) {
  (void)state;
  char path[PATH_MAX];
  Error err;
  Image image = image_new(28, 28, 1);
  image.pixels[300] = 0;
  if (image_write_png(test_path(path, sizeof path, "dot.png"), &image, &err) != 0) fail_msg("%s", err.message);
  image_free(&image);
  small_must("huge", "--epochs=1", "--layers=784,10", NULL, NULL);
  static unsigned char file[65536];
  snprintf(path, sizeof path, "%s", in_dir("huge", "best.safetensors"));
  size_t size = test_read_file(path, file, sizeof file), floats = 784 * 10 + 10;
  for (size_t i = 0; i < floats; i++) {
    const float huge = i % 2 ? 3e38f : -3e38f;
    memcpy(file + size - 4 * (i + 1), &huge, 4);
  }
  test_write_file(path, file, size);
  const char *picture = test_path((char[PATH_MAX]){0}, PATH_MAX, "dot.png");
  const char *argv[] = {program, "--device=cpu", output_dir("huge"), "--predict", picture, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "best.safetensors is damaged: its tensors have the CRC-32 ");
  subprocess_free(&run);
  damage(path, "tensors_crc32", "another_crc32"); /* as of another program, which writes no checksum */
  run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "the network's answer is not finite");
  assert_null(strstr(run.out, "nan"));
  subprocess_free(&run);
}

/* ---- it refuses, and keeps what was there ---- */

/* Where OpenBLAS would wait for ever, even before main(), and OpenMP would end the program without naming the limit. */
static void a_limit_on_memory_is_named(void **state) {
  (void)state;
#ifdef NN_SANITIZED
  skip(); /* AddressSanitizer needs terabytes of address space */
#endif
  static char command[3 * PATH_MAX];
  /* How much address space a program begins with differs between C libraries: under some limit of a range, in KiB, the
   * sentence comes; under none of them the program hangs or ends otherwise than by a sentence. */
  const struct {
    int from, to;
    const char *setting, *threads, *said;
  } cases[] = {{500000, 500000, "OPENBLAS_NUM_THREADS=1", "4", "matrix products on the CPU (OpenBLAS) need 512 MiB"},
               {140000, 260000, "-uOPENBLAS_NUM_THREADS", "1", "matrix products on the CPU (OpenBLAS) need 128 MiB"},
               {140000, 260000, "OPENBLAS_NUM_THREADS=64", "1", "using OPENBLAS_NUM_THREADS=1"},
               {2000000, 2000000, "OPENBLAS_NUM_THREADS=1", "1000", "of 1000 threads only "}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int said = 0;
    for (int limit = cases[i].from; limit <= cases[i].to && !said; limit += 20000) {
      snprintf(command, sizeof command,
               "ulimit -v %d && exec env %s %s --data-dir=%s %s --train-images=640 --test-images=100 --epochs=1 "
               "--device=cpu --threads=%s",
               limit, cases[i].setting, program, mnist, output_dir("limit"), cases[i].threads);
      const char *argv[] = {"/bin/sh", "-c", command, NULL};
      Subprocess run = subprocess_run(argv, 20);
      said = run.status == 1 && strstr(run.err, cases[i].said) != NULL;
      const int loaded = run.status != 127, enough = run.status == 0; /* 127: too little for the loader */
      if (loaded && !enough && (run.status != 1 || strstr(run.err, "error: ") == NULL))
        fail_msg("ulimit -v %d: exit status %d, %s", limit, run.status, run.err);
      subprocess_free(&run);
    }
    if (!said) fail_msg("no limit from %d to %d KiB gives \"%s\"", cases[i].from, cases[i].to, cases[i].said);
  }
}

/* The run folder's config.json, given back, makes the same run again; what is typed besides comes first. */
static void a_run_is_repeated_from_its_settings(void **state) {
  (void)state;
  char config[PATH_MAX + 16];
  snprintf(config, sizeof config, "--config=%s", in_dir("settings_a", "config.json"));
  Subprocess run = train(output_dir("settings_a"), "--train-images=640", "--optimizer=adam", "--layers=784,17,10",
                         "--validation=0.2");
  expect_run(&run, 0, "network 784,17,10 relu", NULL);
  subprocess_free(&run);
  const char *argv[] = {program, config, output_dir("settings_b"), NULL, NULL};
  run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, "512 training images, 128 validation images, 1000 test images; batch 64, adam", NULL);
  subprocess_free(&run);
  assert_same_models("settings_a", "settings_b");
  argv[2] = output_dir("settings_c");
  argv[3] = "--epochs=1";
  run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, "in epoch 1; ", NULL);
  subprocess_free(&run);
  argv[3] = "--optimizer=rmsprop"; /* has no beta1, and other usual rates */
  run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, "rmsprop, learning rate 0.001, beta2 0.99,", NULL);
  subprocess_free(&run);
}

/* config_test has the rest. A run that goes on with other settings has those in its file. */
static void settings_that_are_not_right_are_refused(void **state) {
  (void)state;
  char config[PATH_MAX + 16], text[4096];
  FILE *file = fopen(in_dir(".", "wrong.json"), "w");
  assert_non_null(file);
  fputs("{\"lr\": 0.02,\n \"bach_size\": 32}", file);
  fclose(file);
  snprintf(config, sizeof config, "--config=%s", in_dir(".", "wrong.json"));
  Subprocess run = small("settings_d", config, NULL, NULL);
  expect_run(&run, 2, NULL,
             "wrong.json, line 2: \"bach_size\" is not an option of this program; do you mean \"batch-size\"?");
  subprocess_free(&run);
  assert_false(file_exists(in_dir("settings_d", "")));
  small_must("settings_e", "--epochs=1", "--clip-norm=3", NULL, "in epoch 1; ");
  small_must("settings_e", "--resume", "--epochs=2", NULL, "in epoch ");
  text[test_read_file(in_dir("settings_e", "config.json"), text, sizeof text - 1)] = '\0';
  assert_non_null(strstr(text, "\"epochs\": 2,"));
  assert_non_null(strstr(text, "\"clip-norm\": 3"));
}

static void wrong_options_exit_with_2(void **state) {
  (void)state;
  const char *wrong[][2] = {
      {"--layers=784", "two widths at least"},
      {"--layers=784,,10", "not a list of layers"},
      {"--layers=784,ten", "not a list of layers"},
      {"--layers=", "not a list of layers"},
      {"--activation=gelu", "relu, leaky_relu"},
      {"--activation=", "unknown activation"},
      {"--weight-decay=-1", "a number from 0"},
      {"--hold-out=0", "a whole number from 1"},
      {"--layers=784,0,10", "widths from 1"},
      {"--weight-decay=nan", "a number from 0"},
      {"--schedule=", "--schedule=: constant, linear, step, exponential, cosine, onecycle or plateau"},
      {"--schedule=cosine:warm_up=0.1", "has no parameter \"warm_up\"; did you mean warmup? It has"},
      {"--schedule=cosine:cycles=0", "cycles=0: a whole number from 1 to 100 is expected"},
      {"--find-lr=3", "--find-lr=3: a whole number from 20"},
      {"--validation=2", "--validation=2: a number from 0 to 1 is expected"},
      {"--patience=2", "--patience=2: give --validation=SHARE, too"},
      {"--clip-norm=0", "--clip-norm=0: a number from 1e-09"},
      {"--accumulate=0", "--accumulate=0: a whole number from 1"},
      {"--log-every=0", "--log-every=0: a whole number from 1"},
      {"--augment=zoom", "unknown change \"zoom\"; expected none, shift,"},
      {"--augment=affine:rotation=3", "the nearest known one is \"rotate\""},
      {"--data=mnits", "mnist, fashion_mnist, cifar10 or cifar100 is expected"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Subprocess run = small("wrong", wrong[i][0], NULL, NULL);
    expect_run(&run, 2, NULL, wrong[i][1]);
    subprocess_free(&run);
  }
  Subprocess run = small("wrong", "--resume", "--restart", NULL);
  expect_run(&run, 2, NULL, "--resume and --restart: one of the two");
  subprocess_free(&run);
  run = small("wrong", "--checkpoint=best.safetensors", NULL, NULL);
  expect_run(&run, 2, NULL, "--checkpoint is the model of --predict");
  subprocess_free(&run);
  run = small("wrong", "--graph", NULL, NULL);
  expect_run(&run, 2, NULL, "--graph: a CUDA graph needs a GPU; say --device=gpu");
  subprocess_free(&run);
  run = small("wrong", "--summary", "--resume", NULL);
  expect_run(&run, 2, NULL, "--summary trains nothing; leave --resume out");
  subprocess_free(&run);
  /* What would have no effect; --predict comes last, with the file to look at. */
  const char *idle[][4] = {{"--profile", "--graph", NULL, "--profile trains nothing; leave --graph out"},
                           {"--profile", "--stream", NULL, "--profile trains nothing; leave --stream out"},
                           {"--summary", "--graph", NULL, "--summary trains nothing; leave --graph out"},
                           {"--find-lr", "--resume", NULL, "--find-lr trains nothing; leave --resume out"},
                           {"--find-lr", "--summary", NULL, "--summary and --find-lr: one of the two"},
                           {"--summary", "--nvtx", NULL, "--summary trains nothing; leave --nvtx out"},
                           {"--show-excited", "--stream", NULL, "--show-excited trains nothing; leave --stream out"},
                           {"--show-features=7.png", "--graph", NULL, "--show-features trains nothing; leave --graph"},
                           {"--stream", "--predict", "seven.png", "--predict trains nothing; leave --stream out"},
                           {"--graph", "--predict", "seven.png", "--predict trains nothing; leave --graph out"}};
  for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
    run = small("wrong", idle[i][0], idle[i][1], idle[i][2]);
    expect_run(&run, 2, NULL, idle[i][3]);
    subprocess_free(&run);
  }
  run = small("wrong", "--summary", "--predict", "seven.png");
  expect_run(&run, 2, NULL, "--predict and --summary: one of the two");
  subprocess_free(&run);
  assert_false(file_exists(in_dir("wrong", "log.csv")));
}

static void networks_that_do_not_fit_the_images_are_refused(void **state) {
  (void)state;
  small_refused("fit", "--layers=20,10", "--epochs=1", NULL, "the network has an input of shape (20) and 10 classes");
  small_refused("fit", "--layers=784,9", "--epochs=1", NULL,
                "and 9 classes; an input for the images of MNIST, of shape (1,28,28) (784 pixels), and 10 to 1000");
  small_refused("fit", "--layers=784,1001", "--epochs=1", NULL, "and 1001 classes");
  small_refused("fit", "--hold-out=60000", "--epochs=1", NULL, "at least one must be left");
  assert_false(file_exists(in_dir("fit", "log.csv")));
}

static void resume_of_no_run_makes_no_folder(void **state) {
  (void)state;
  small_refused("no_run", "--resume", NULL, NULL, "start the run without --resume");
  assert_false(file_exists(in_dir("no_run", "")));
}

static void held_out_images_are_the_test(void **state) {
  (void)state;
  Subprocess run = train(output_dir("hold"), "--hold-out=59000", "--epochs=1", NULL, NULL);
  expect_run(&run, 0, "1000 training images, 1000 test images", NULL);
  subprocess_free(&run);
}

static void a_divergent_run_stops_and_keeps_its_checkpoint(void **state) {
  (void)state;
  small_must("diverge", "--epochs=1", NULL, NULL, NULL);
  small_must("diverge_copy", "--epochs=1", NULL, NULL, NULL);
  small_refused("diverge", "--resume", "--epochs=20", "--lr=1e6", "the loss is not finite at step");
  small_refused("diverge", "--resume", "--epochs=20", "--lr=1e6", "try --lr=100000");
  const char *names[] = {"last.state.safetensors", "last.safetensors", "best.safetensors"};
  for (int i = 0; i < 3; i++) assert_same_tensors(in_dir("diverge", names[i]), in_dir("diverge_copy", names[i]));
  small_must("diverge", "--resume", "--epochs=2", NULL, "resuming at epoch 2");
}

/* As if it had not been: no log that looks like a run, and the run before as it was. */
static void a_run_that_diverges_at_once_leaves_nothing(void **state) {
  (void)state;
  const char *const names[] = {"log.jsonl", "log.csv", "previous"};
  small_refused("at_once", "--lr=1e6", "--epochs=2", "--seed=1", "the loss is not finite at step");
  for (int i = 0; i < 3; i++) assert_false(file_exists(in_dir("at_once", names[i])));
  small_must("at_once", "--epochs=1", NULL, NULL, NULL);
  small_must("at_once_copy", "--epochs=1", NULL, NULL, NULL);
  small_refused("at_once", "--lr=1e6", "--epochs=2", "--seed=1", "the earlier run is back in");
  assert_same_tensors(in_dir("at_once", "best.safetensors"), in_dir("at_once_copy", "best.safetensors"));
  for (int i = 0; i < 3; i++) assert_int_equal(file_exists(in_dir("at_once", names[i])), i < 2);
  small_must("at_once", "--resume", "--epochs=2", NULL, "resuming at epoch 2");
}

/* Only what the failed run set aside comes back: not the best model of the run before that, which lies beside it. And a
 * log.csv that lay there is no rubbish. */
static void a_run_that_diverges_mixes_no_runs(void **state) {
  (void)state;
  static const char table[] = "a table of one's own\n";
  char bytes[sizeof table];
  small_must("mixed", "--epochs=1", "--seed=1", NULL, NULL);
  small_must("mixed", "--epochs=1", "--seed=2", NULL, NULL);
  unlink(in_dir("mixed", "best.safetensors")); /* as a run that was stopped in its first epoch has none */
  small_refused("mixed", "--lr=1e6", "--epochs=1", NULL, "the earlier run is back in");
  assert_true(file_exists(in_dir("mixed", "last.state.safetensors")));
  assert_false(file_exists(in_dir("mixed", "best.safetensors")));
  assert_true(file_exists(in_dir("mixed", "previous/best.safetensors")));
  mkdir(in_dir("own", ""), 0777);
  test_write_file(in_dir("own", "log.csv"), table, sizeof table);
  small_refused("own", "--lr=1e6", "--epochs=1", NULL, "the earlier run is back in");
  assert_int_equal(test_read_file(in_dir("own", "log.csv"), bytes, sizeof bytes), sizeof table);
  assert_memory_equal(bytes, table, sizeof table);
  small_must("own", "--epochs=1", NULL, NULL, NULL);
  assert_int_equal(test_read_file(in_dir("own", "previous/log.csv"), bytes, sizeof bytes), sizeof table);
  assert_memory_equal(bytes, table, sizeof table);
}

/* A kill before the first checkpoint leaves a log: it must not replace that of the run in previous/. And a disk that is
 * full after the first model leaves a model without a state, which belongs to no run that could go on. */
static void a_run_that_saved_no_state_is_none(void **state) {
  (void)state;
  char own[512], kept[512];
  small_must("none", "--epochs=1", "--seed=1", NULL, NULL);
  size_t size = test_read_file(in_dir("none", "log.csv"), own, sizeof own);
  small_must("none", "--epochs=1", "--seed=2", NULL, NULL);
  for (int i = 0; i < 3; i++) {
    static const char *const models[] = {"best.safetensors", "last.safetensors", "last.state.safetensors"};
    unlink(in_dir("none", models[i]));
  }
  small_must("none", "--epochs=1", "--seed=3", NULL, NULL);
  assert_int_equal(test_read_file(in_dir("none", "previous/log.csv"), kept, sizeof kept), size);
  assert_memory_equal(kept, own, size);

  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {
      program, data, output_dir("part"), "--train-images=640", "--test-images=100", "--epochs=1", "--device=cpu", NULL};
  Subprocess run = subprocess_start(argv, 600000); /* a model has 410,000 bytes, a state 820,000 */
  subprocess_wait(&run, SECONDS);
  expect_run(&run, 1, NULL, "last.state.safetensors");
  static const char *const names[] = {"best.safetensors", "last.safetensors", "log.jsonl", "log.csv"};
  for (int i = 0; i < 4; i++) assert_false(file_exists(in_dir("part", names[i])));
  subprocess_free(&run);
}

static void help_names_every_option(void **state) {
  (void)state;
  const char *argv[] = {program, "--help", NULL};
  const char *options[] = {"--layers", "--activation", "--weight-decay", "--hold-out", "--device",  "--epochs",
                           "--lr",     "--momentum",   "--seed",         "--resume",   "--predict", "784,128,10"};
  Subprocess run = subprocess_run(argv, SECONDS);
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) expect_run(&run, 0, options[i], NULL);
  subprocess_free(&run);
}

int main(void) {
  Error err;
  if (runfiles_find("phase2_mlp/07_mlp_mnist/mlp_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(learns_and_writes_its_results),
      cmocka_unit_test(networks_of_any_shape_train),
      cmocka_unit_test(the_emulated_or_real_gpu_learns_too),
      cmocka_unit_test(the_same_seed_gives_the_same_bits),
      cmocka_unit_test(weight_decay_matters_also_when_resumed),
      cmocka_unit_test(other_optimizers_resume_exactly),
      cmocka_unit_test(settings_of_no_optimizer_are_refused),
      cmocka_unit_test(the_summary_trains_nothing),
      cmocka_unit_test(schedules_and_augmentation_are_remembered),
      cmocka_unit_test(the_range_test_suggests_a_rate),
      cmocka_unit_test(a_share_is_held_back_to_validate),
      cmocka_unit_test(patience_ends_a_run),
      cmocka_unit_test(clipped_gradients_and_parts_are_remembered),
      cmocka_unit_test(an_augmented_run_goes_on_to_the_same_bits),
      cmocka_unit_test(the_first_line_names_the_checkpoints_data_set),
      cmocka_unit_test(a_graph_of_the_step_gives_the_same_bits),
      cmocka_unit_test(interrupted_and_resumed_equals_uninterrupted),
      cmocka_unit_test(another_network_is_refused),
      cmocka_unit_test(a_damaged_network_is_named),
      cmocka_unit_test(predicts_with_the_network_of_the_checkpoint),
      cmocka_unit_test(predict_refuses_an_answer_that_is_not_finite),
      cmocka_unit_test(a_limit_on_memory_is_named),
      cmocka_unit_test(a_run_is_repeated_from_its_settings),
      cmocka_unit_test(settings_that_are_not_right_are_refused),
      cmocka_unit_test(wrong_options_exit_with_2),
      cmocka_unit_test(networks_that_do_not_fit_the_images_are_refused),
      cmocka_unit_test(resume_of_no_run_makes_no_folder),
      cmocka_unit_test(held_out_images_are_the_test),
      cmocka_unit_test(a_run_that_diverges_at_once_leaves_nothing),
      cmocka_unit_test(a_run_that_diverges_mixes_no_runs),
      cmocka_unit_test(a_run_that_saved_no_state_is_none),
      cmocka_unit_test(a_divergent_run_stops_and_keeps_its_checkpoint),
      cmocka_unit_test(help_names_every_option),
  };
  return TEST_MAIN("mlp_mnist", tests);
}
