/* The runs of the program lenet_mnist as its users meet them: they stop, go on, and survive what is wrong.
 * lenet_model_test tests the model that a run writes. */
#include "common/program_test.h"

#include <dirent.h>

/* ------------------------------------------------------------------------------------------ it repeats itself */

static void the_same_seed_gives_the_same_bits(void **state) {
  (void)state;
  Subprocess a = train(output_dir("same_a"), "--epochs=1", "--seed=7", "--threads=1", NULL);
  Subprocess b = train(output_dir("same_b"), "--epochs=1", "--seed=7", "--threads=3", NULL);
  Subprocess c = train(output_dir("other"), "--epochs=1", "--seed=8", NULL, NULL);
  expect_run(&a, 0, NULL, NULL);
  expect_run(&b, 0, NULL, NULL);
  expect_run(&c, 0, NULL, NULL);
  assert_same_tensors(in_dir("same_a", "last.state.safetensors"), in_dir("same_b", "last.state.safetensors"));
  Error err;
  SafetensorsFile file;
  float first[6], other[6];
  const size_t shape[] = {6};
  if (safetensors_open(in_dir("same_a", "last.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  safetensors_read_f32(&file, "conv1.bias", 1, shape, first, &err);
  safetensors_close(&file);
  if (safetensors_open(in_dir("other", "last.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  safetensors_read_f32(&file, "conv1.bias", 1, shape, other, &err);
  safetensors_close(&file);
  assert_memory_not_equal(first, other, sizeof first);
  subprocess_free(&a);
  subprocess_free(&b);
  subprocess_free(&c);
}

/* ------------------------------------------------------------------------------------- it stops and goes on */

static void interrupted_and_resumed_equals_uninterrupted(void **state) {
  (void)state;
  Subprocess uninterrupted = three_epochs("whole", NULL, NULL);
  expect_run(&uninterrupted, 0, NULL, NULL);

  /* Twice in the middle of an epoch (313 steps): after its first hundred steps, and again in the second epoch. */
  Subprocess first = start_and_signal("parts", SIGINT, 2, 0, NULL);
  expect_run(&first, 130, "--resume", "stopping after this step");
  Subprocess second = start_and_signal("parts", SIGTERM, 7, 1, NULL);
  expect_run(&second, 143, "--resume", NULL);
  Subprocess third = three_epochs("parts", "--resume", NULL);
  expect_run(&third, 0, "resuming at epoch", NULL);
  assert_same_models("whole", "parts");

  Subprocess again = three_epochs("parts", "--resume", NULL);
  expect_run(&again, 0, "ask for more with --epochs", NULL);
  subprocess_free(&uninterrupted);
  subprocess_free(&first);
  subprocess_free(&second);
  subprocess_free(&third);
  subprocess_free(&again);
}

static void killed_at_any_moment_leaves_a_checkpoint(void **state) {
  (void)state;
  char data[PATH_MAX + 16], output[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  snprintf(output, sizeof output, "%s", output_dir("killed"));
  /* An epoch is 64 images: most of the time goes into checkpoints, which is where a kill could hurt. */
  const char *argv[] = {program,         data,       output, "--train-images=64", "--test-images=64", "--device=cpu",
                        "--epochs=9999", "--resume", NULL};
  const char *begin[] = {program,        data,         output, "--train-images=64", "--test-images=64",
                         "--device=cpu", "--epochs=1", NULL};
  Subprocess first = subprocess_run(begin, SECONDS);
  expect_run(&first, 0, NULL, NULL);
  subprocess_free(&first);
  long epoch = 0;
  /* Twelve times; where so busy a machine has not come to an epoch's end by then, again, with more and more time. */
  for (int i = 0; i < 12 || (epoch <= 1 && i < 40); i++) {
    Subprocess run = subprocess_start(argv, 0);
    const long milliseconds = (400 + (long)(philox4x32(5, 0, (uint64_t)i).word[0] % 400)) * (1 + i / 12);
    struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&nap, NULL);
    kill(run.pid, SIGKILL);
    subprocess_wait(&run, SECONDS);
    expect_run(&run, 128 + SIGKILL, NULL, NULL);
    subprocess_free(&run);
    const char *names[] = {"last.safetensors", "last.state.safetensors", "best.safetensors"};
    for (int j = 0; j < 3; j++) {
      Error err;
      SafetensorsFile file;
      if (safetensors_open(in_dir("killed", names[j]), &file, &err) != 0) fail_msg("%s", err.message);
      if (j == 1) epoch = atol(safetensors_metadata(&file, "epoch"));
      safetensors_close(&file);
    }
  }
  assert_true(epoch > 1); /* it went on in between */
  char epochs[32];
  snprintf(epochs, sizeof epochs, "--epochs=%ld", epoch + 1);
  argv[6] = epochs;
  Subprocess last = subprocess_run(argv, SECONDS);
  expect_run(&last, 0, "resuming at epoch", NULL);
  subprocess_free(&last);
}

/* ---------------------------------------------------------------------------------------------- where time goes */

/* The JSON of a run that trains nothing. */
static json_t *described(const char *mode, const char *more) {
  const char *argv[] = {
      program, "--device=cpu", output_dir("profile"), "--json", mode, "--batch-size=4", "--unfused", more, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, NULL, NULL);
  json_t *result = expect_json(&run);
  subprocess_free(&run);
  return result;
}

static void expect_row(const json_t *profile, size_t i, const char *layer, const char *direction) {
  const json_t *row = json_array_get(json_object_get(profile, "rows"), i);
  const char *has_layer = json_string_value(json_object_get(row, "layer"));
  const char *has_direction = json_string_value(json_object_get(row, "direction"));
  if (!has_layer || strcmp(has_layer, layer) != 0 || strcmp(has_direction, direction) != 0)
    fail_msg("row %zu is of %s %s; %s %s is expected", i, has_layer ? has_layer : "nothing",
             has_layer ? has_direction : "", layer, direction);
}

static void expect_work(const json_t *profile, const char *layer, const char *direction, double bytes, double flops) {
  size_t i;
  const json_t *row;
  json_array_foreach(json_object_get(profile, "rows"), i, row) {
    if (strcmp(json_string_value(json_object_get(row, "layer")), layer) != 0) continue;
    if (strcmp(json_string_value(json_object_get(row, "direction")), direction) != 0) continue;
    const double has_bytes = json_number_value(json_object_get(row, "bytes"));
    const double has_flops = json_number_value(json_object_get(row, "flops"));
    if (has_bytes != bytes || has_flops != flops)
      fail_msg("%s %s: %.0f bytes and %.0f FLOPs; %.0f and %.0f are expected", layer, direction, has_bytes, has_flops,
               bytes, flops);
    return;
  }
  fail_msg("there is no row of %s %s", layer, direction);
}

/* Every operation of --summary, forward in its order and backward in the opposite one; around them the batch, the loss
 * and the step. */
static void the_profile_lists_every_operation(void **state) {
  (void)state;
  json_t *summary = described("--summary", NULL), *profile = described("--profile", NULL);
  const json_t *nodes = json_object_get(summary, "rows"), *rows = json_object_get(profile, "rows");
  const char *names[32];
  size_t count = 0, i, at = 0;
  const json_t *row;
  json_array_foreach(nodes, i, row) {
    const char *operation = json_string_value(json_object_get(row, "operation"));
    if (strcmp(operation, "input") != 0 && count < 32) names[count++] = json_string_value(json_object_get(row, "node"));
  }
  assert_int_equal(count, 11); /* conv, ReLU, pool twice; three linear layers with two ReLUs between them */
  expect_row(profile, at++, "batch", "gather");
  for (i = 0; i < count; i++) expect_row(profile, at++, names[i], "forward");
  while (strcmp(json_string_value(json_object_get(json_array_get(rows, at), "layer")), "loss") == 0) at++;
  for (i = count; i > 0; i--) expect_row(profile, at++, names[i - 1], "backward");
  expect_row(profile, at++, "sgd", "update");
  assert_int_equal(json_array_size(rows), at);

  double shares = 0, microseconds = 0;
  json_array_foreach(rows, i, row) {
    shares += json_number_value(json_object_get(row, "share"));
    microseconds += json_number_value(json_object_get(row, "time_us"));
  }
  const double sum = json_number_value(json_object_get(profile, "sum_us"));
  if (!(fabs(shares - 1) < 1e-9)) fail_msg("the shares add up to %g; 1 is expected", shares);
  if (!(fabs(microseconds - sum) < 1e-9 * sum)) fail_msg("the rows add up to %g us, sum_us is %g", microseconds, sum);
  if (!file_exists(in_dir("profile", "profile.csv"))) fail_msg("profile.csv is missing");
  assert_false(file_exists(in_dir("profile", "log.csv"))); /* nothing was trained */
  json_decref(summary);
  json_decref(profile);
}

/* By hand, for four images: a product of an output element is two FLOPs; backward computes the weights' gradient and,
 * but for the first layer, the input's. Floats: input, output, parameters; backward the gradient of the output, the
 * input, its gradient, the parameters and their gradients. */
static void the_profile_counts_bytes_and_flops(void **state) {
  (void)state;
  json_t *plain = described("--profile", NULL), *named = described("--profile", "--nvtx");
  const json_t *profiles[] = {plain, named};
  const double conv1 = 2.0 * 5 * 5 * 1 * 6 * 28 * 28 * 4, conv2 = 2.0 * 5 * 5 * 6 * 16 * 10 * 10 * 4;
  const double fc3 = 2.0 * 84 * 10 * 4;
  for (int i = 0; i < 2; i++) {
    expect_work(profiles[i], "conv1", "forward", 4.0 * (4 * (28 * 28 + 6 * 28 * 28) + 156), conv1);
    expect_work(profiles[i], "conv2", "forward", 4.0 * (4 * (6 * 14 * 14 + 16 * 10 * 10) + 2416), conv2);
    expect_work(profiles[i], "conv2", "backward", 4.0 * (4 * (2 * 6 * 14 * 14 + 16 * 10 * 10) + 2 * 2416), 2 * conv2);
    expect_work(profiles[i], "fc3", "forward", 4.0 * (4 * (84 + 10) + 850), fc3);
    expect_work(profiles[i], "fc3", "backward", 4.0 * (4 * (2 * 84 + 10) + 2 * 850), 2 * fc3);
    expect_work(profiles[i], "sgd", "update", 4.0 * 5 * 61706, 0);
  }
  assert_int_equal(json_array_size(json_object_get(plain, "rows")), json_array_size(json_object_get(named, "rows")));
  json_decref(plain);
  json_decref(named);
}

/* Names for a profiler change no number. */
static void nvtx_trains_the_same_bits(void **state) {
  (void)state;
  small_must("unnamed", "--epochs=1", NULL, NULL, NULL);
  small_must("named", "--epochs=1", "--nvtx", NULL, NULL);
  assert_same_tensors(in_dir("unnamed", "last.state.safetensors"), in_dir("named", "last.state.safetensors"));
}

/* ------------------------------------------------------------------------------------------- implementations */

/* Which kernel computes a node is an option, and the checkpoint keeps it. */
static void implementations_are_chosen_by_name(void **state) {
  (void)state;
  const char *few = "--train-images=32";
  Subprocess run = train(output_dir("conv"), few, "--test-images=20", "--epochs=1", "--conv=conv2:naive");
  expect_run(&run, 0, "implementations conv2:naive", NULL);
  subprocess_free(&run);
  run = train(output_dir("conv"), few, "--test-images=20", "--epochs=2", "--resume");
  expect_run(&run, 0, "implementations conv2:naive", NULL);
  subprocess_free(&run);
  run = train(output_dir("conv_auto"), few, "--test-images=20", "--epochs=1", "--conv=auto");
  expect_run(&run, 0, "is chosen", NULL);
  subprocess_free(&run);
  run = train(output_dir("conv_gpu"), "--device=gpu", "--train-images=8", "--test-images=20", "--conv=auto");
  if (!(run.status == 1 && strstr(run.err, "use --device=cpu"))) /* built for a GPU that is not here */
    expect_run(&run, 0, "conv1 of 8 samples:", NULL);            /* of a training step, not of the test */
  subprocess_free(&run);
  run = train(output_dir("conv_auto"), few, "--conv=conv3:naive", NULL, NULL);
  expect_run(&run, 1, NULL, "--conv=conv3:naive: the network has no such node");
  subprocess_free(&run);
  run = train(output_dir("conv_auto"), few, "--conv=winograd", NULL, NULL); /* its filters are 5 x 5 */
  expect_run(&run, 1, NULL, "--conv=conv1:winograd: winograd computes 3 x 3 filters with stride 1");
  expect_run(&run, 1, NULL, "this one is (1,1,28,28) with (6,1,5,5), stride 1 x 1, padding 2 x 2: use implicit_gemm");
  subprocess_free(&run);
  run = train(output_dir("conv_auto"), few, "--conv=quick", NULL, NULL);
  expect_run(&run, 2, NULL, "unknown implementation \"quick\"; expected tiled, naive, im2col, ");
  subprocess_free(&run);
}

static void a_full_disk_keeps_the_old_checkpoint(void **state) {
  (void)state;
  Subprocess before = train(output_dir("full"), "--epochs=1", "--train-images=640", NULL, NULL);
  expect_run(&before, 0, NULL, NULL);
  subprocess_free(&before);
  Subprocess copy = train(output_dir("full_copy"), "--epochs=1", "--train-images=640", NULL, NULL);
  expect_run(&copy, 0, NULL, NULL);
  subprocess_free(&copy);

  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {
      program,        data, output_dir("full"), "--train-images=640", "--test-images=1000", "--epochs=2", "--resume",
      "--device=cpu", NULL};
  Subprocess run = subprocess_start(argv, 100000); /* a checkpoint has 250,000 bytes */
  subprocess_wait(&run, SECONDS);
  expect_run(&run, 1, NULL, "safetensors");
  subprocess_free(&run);
  assert_same_tensors(in_dir("full", "last.state.safetensors"), in_dir("full_copy", "last.state.safetensors"));
  assert_same_tensors(in_dir("full", "last.safetensors"), in_dir("full_copy", "last.safetensors"));
  DIR *directory = opendir(in_dir("full", "."));
  assert_non_null(directory);
  for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
    if (strstr(entry->d_name, "tmp")) fail_msg("%s was left behind", entry->d_name);
  closedir(directory);
}

/* ------------------------------------------------------------------------------- what a resumed run may change */

static float first_bias(const char *directory) { return first_value(directory, "conv1.bias", 6); }

static void momentum_matters_also_when_resumed(void **state) {
  (void)state;
  small_must("momentum_a", "--epochs=1", NULL, NULL, NULL);
  small_must("momentum_b", "--epochs=1", NULL, NULL, NULL);
  small_must("momentum_c", "--epochs=1", "--momentum=0.5", NULL, NULL);
  assert_true(first_bias("momentum_a") == first_bias("momentum_b"));
  assert_true(first_bias("momentum_a") != first_bias("momentum_c"));
  small_must("momentum_a", "--epochs=2", "--resume", NULL, NULL);
  small_must("momentum_b", "--epochs=2", "--resume", "--momentum=0.5", NULL);
  assert_true(first_bias("momentum_a") != first_bias("momentum_b"));
}

static void resume_refuses_another_run(void **state) {
  (void)state;
  small_must("settings", "--epochs=1", "--batch-size=512", NULL, NULL);
  small_refused("settings", "--resume", "--epochs=2", "--seed=99", "was started with --seed=");
  small_refused("settings", "--resume", "--epochs=2", "--batch-size=32", "was started with --batch-size=512");
  small_refused("settings", "--resume", "--epochs=2", "--train-images=320",
                "was started with other data (640 training");
  small_must("settings", "--resume", "--epochs=2", NULL, NULL); /* with the batches of 512 that it began with */
  small_refused("nothing_yet", "--resume", NULL, NULL, "start the run without --resume");
}

/* ------------------------------------------------------------------------------------- unfinished and shared runs */

static void an_unfinished_run_is_not_replaced_unasked(void **state) {
  (void)state;
  Subprocess stopped = start_and_signal("unfinished", SIGINT, 2, 0, NULL);
  expect_run(&stopped, 130, NULL, NULL);
  subprocess_free(&stopped);
  small_refused("unfinished", "--epochs=1", NULL, NULL, "go on with it by --resume, replace it by --restart");
  small_must("unfinished", "--epochs=1", "--restart", NULL, NULL);
  small_must("unfinished", "--epochs=1", NULL, NULL, NULL); /* a finished one is */
}

static void one_run_at_a_time_writes_into_a_folder(void **state) {
  (void)state;
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {program, data, output_dir("shared"), "--device=cpu", "--epochs=50", NULL};
  Subprocess first = subprocess_start(argv, 0);
  struct timespec nap = {0, 5 * 1000 * 1000};
  for (int i = 0; i < 60 * 200 && !file_exists(in_dir("shared", "log.csv")); i++) nanosleep(&nap, NULL);
  char holder[64];
  snprintf(holder, sizeof holder, "/shared: process %ld, started 2", (long)first.pid);
  small_refused("shared", "--epochs=1", NULL, NULL, "another run is writing into");
  small_refused("shared", "--epochs=1", NULL, NULL, holder);
  kill(first.pid, SIGKILL);
  subprocess_wait(&first, SECONDS);
  subprocess_free(&first);
  small_must("shared", "--epochs=1", "--restart", NULL, NULL); /* the lock went with the process */
}

/* ------------------------------------------------------------------------------------------- figures that agree */

/* The JSON's figures are the log's, and the best model stays the best epoch's although a resumed epoch at a harmful
 * learning rate comes later. */
static void the_results_agree_with_the_log(void **state) {
  (void)state;
  small_must("figures", "--epochs=2", NULL, NULL, NULL);
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {program,
                        data,
                        output_dir("figures"),
                        "--train-images=640",
                        "--test-images=1000",
                        "--device=cpu",
                        "--epochs=3",
                        "--resume",
                        "--lr=0.3",
                        "--json",
                        NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, NULL, NULL);
  json_t *result = expect_json(&run);
  char line[512], split[16];
  double loss, accuracy, last_loss = -1, best = -1;
  long step, epoch, best_epoch = 0, last_epoch = 0;
  FILE *file = fopen(in_dir("figures", "log.csv"), "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%ld,%ld,%15[^,],%lf,%lf", &step, &epoch, split, &loss, &accuracy) != 5) continue;
    if (strcmp(split, "test") != 0) continue;
    last_loss = loss;
    last_epoch = epoch;
    if (accuracy > best) {
      best = accuracy;
      best_epoch = epoch;
    }
  }
  fclose(file);
  assert_int_equal(last_epoch, 3);
  double test_loss = json_number_value(json_object_get(result, "test_loss"));
  assert_true(fabs(test_loss - last_loss) < 1e-9);
  assert_true(fabs(json_number_value(json_object_get(result, "train_loss")) - test_loss) > 1e-6);
  assert_true(fabs(json_number_value(json_object_get(result, "best_test_accuracy")) - best) < 1e-9);
  assert_int_equal(json_integer_value(json_object_get(result, "best_epoch")), best_epoch);
  Error err;
  SafetensorsFile model;
  if (safetensors_open(in_dir("figures", "best.safetensors"), &model, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(atol(safetensors_metadata(&model, "epoch")), best_epoch);
  assert_int_equal(best_epoch, 2); /* else the test shows nothing: choose another --lr above */
  safetensors_close(&model);
  json_decref(result);
  subprocess_free(&run);
}

/* A file that is opened first must not become stdout. */
static void a_closed_stdout_spoils_no_file(void **state) {
  (void)state;
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {"/bin/sh",
                        "-c",
                        "exec \"$0\" \"$@\" >&-",
                        program,
                        data,
                        output_dir("closed"),
                        "--device=cpu",
                        "--train-images=640",
                        "--test-images=100",
                        "--epochs=1",
                        NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  subprocess_free(&run);
  char line[1024];
  int lines = 0;
  FILE *file = fopen(in_dir("closed", "log.jsonl"), "r");
  for (; file && fgets(line, sizeof line, file); lines++) {
    json_t *object = json_loads(line, 0, NULL);
    if (!json_is_object(object)) fail_msg("log.jsonl holds \"%s\"", line);
    json_decref(object);
  }
  if (file) fclose(file);
  assert_true(lines > 0 || run.status == 1); /* all of it, or a refusal */
}

/* The second run has no best model before its first epoch ends, so --predict must not find the first one's. */
static void a_new_run_sets_the_earlier_one_aside(void **state) {
  (void)state;
  Subprocess first = train(output_dir("aside"), "--epochs=1", "--train-images=640", "--seed=1", NULL);
  Subprocess copy = train(output_dir("aside_copy"), "--epochs=1", "--train-images=640", "--seed=1", NULL);
  Subprocess second = train(output_dir("aside"), "--epochs=2", "--train-images=640", "--lr=1e6", NULL);
  Subprocess third;
  expect_run(&first, 0, NULL, NULL);
  expect_run(&copy, 0, NULL, NULL);
  expect_run(&second, 1, NULL, "previous");
  expect_run(&second, 1, NULL, "not finite at step");
  expect_run(&second, 1, NULL, "the earlier run is back"); /* it has saved nothing itself */
  assert_false(file_exists(in_dir("aside", "previous")));
  assert_same_tensors(in_dir("aside", "best.safetensors"), in_dir("aside_copy", "best.safetensors"));
  third = train(output_dir("aside"), "--epochs=1", "--train-images=640", "--seed=2", NULL);
  expect_run(&third, 0, NULL, "previous");
  subprocess_free(&third);
  assert_same_tensors(in_dir("aside", "previous/best.safetensors"), in_dir("aside_copy", "best.safetensors"));
  assert_true(file_exists(in_dir("aside", "previous/log.csv")));
  subprocess_free(&first);
  subprocess_free(&copy);
  subprocess_free(&second);
}

/* ---------------------------------------------------------------------------------------------- it refuses */

static void wrong_options_exit_with_2(void **state) {
  (void)state;
  const char *wrong[] = {"--no-such-option",
                         "--epochs=0",
                         "--epochs=-3",
                         "--epochs=many",
                         "--batch-size=0",
                         "--batch-size=1e9",
                         "--lr=-0.1",
                         "--lr=nan",
                         "--lr=",
                         "--momentum=2",
                         "--seed=-1",
                         "--device=abacus",
                         "--threads=0",
                         "stray.png",
                         "--predict",
                         "--epochs=99999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    Subprocess run = train(output_dir("wrong"), wrong[i], NULL, NULL, NULL);
    if (run.status != 2 || strlen(run.err) < 20) fail_msg("%s: status %d\n%s", wrong[i], run.status, run.err);
    subprocess_free(&run);
  }
  assert_false(file_exists(in_dir("wrong", "log.csv")));
}

static void help_names_every_option(void **state) {
  (void)state;
  const char *argv[] = {program, "--help", NULL};
  const char *options[] = {"--device",   "--epochs",     "--batch-size", "--lr",   "--momentum", "--seed",
                           "--data-dir", "--output-dir", "--resume",     "--json", "--predict"};
  Subprocess run = subprocess_run(argv, SECONDS);
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) expect_run(&run, 0, options[i], NULL);
  subprocess_free(&run);
}

static void wrong_data_is_named(void **state) {
  (void)state;
  char directory[PATH_MAX], option[PATH_MAX + 16];
  mkdir(test_path(directory, sizeof directory, "empty"), 0777);
  snprintf(option, sizeof option, "--data-dir=%s", directory);
  Subprocess run = train(output_dir("data"), option, NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "train-images");
  subprocess_free(&run);
  run = train(output_dir("data"), "--data-dir=/no/such/folder", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "/no/such/folder");
  subprocess_free(&run);
  assert_false(file_exists(in_dir("data", "log.csv")));
}

static void an_unwritable_output_is_named(void **state) {
  (void)state;
  char path[PATH_MAX], option[PATH_MAX + 32];
  FILE *file = fopen(test_path(path, sizeof path, "a_file"), "w");
  fclose(file);
  snprintf(option, sizeof option, "--output-dir=%s/below", path);
  Subprocess run = train(option, "--epochs=1", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "a_file");
  subprocess_free(&run);
}

static void a_divergent_run_stops_and_keeps_its_checkpoint(void **state) {
  (void)state;
  Subprocess good = train(output_dir("diverge"), "--epochs=1", NULL, NULL, NULL);
  expect_run(&good, 0, NULL, NULL);
  Subprocess run = train(output_dir("diverge"), "--resume", "--epochs=2", "--lr=1e6", NULL);
  expect_run(&run, 1, NULL, "not finite at step");
  Error err;
  SafetensorsFile file;
  if (safetensors_open(in_dir("diverge", "last.state.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(safetensors_metadata(&file, "epoch"), "1");
  safetensors_close(&file);
  subprocess_free(&good);
  subprocess_free(&run);
}

/* Ctrl-C before the first look at the loss: the network is not finite by then, and must not be saved. */
static void an_interrupt_of_a_divergent_run_keeps_its_checkpoint(void **state) {
  (void)state;
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {program,
                        data,
                        output_dir("diverge_int"),
                        "--test-images=100",
                        "--device=cpu",
                        "--batch-size=2048",
                        "--epochs=1",
                        NULL,
                        NULL,
                        NULL};
  Subprocess good = subprocess_run(argv, SECONDS);
  expect_run(&good, 0, NULL, NULL);
  subprocess_free(&good);
  argv[6] = "--epochs=3";
  argv[7] = "--resume";
  argv[8] = "--lr=1e6";
  Subprocess run = subprocess_start(argv, 0);
  struct timespec nap = {0, 100 * 1000 * 1000}; /* a few of the epoch's 30 steps */
  char out[8192] = "";
  for (int i = 0; i < 600 && !strstr(out, "train loss"); i++) {
    nanosleep(&nap, NULL);
    ssize_t got = pread(run.out_fd, out, sizeof out - 1, 0);
    out[got < 0 ? 0 : got] = '\0';
  }
  for (int i = 0; i < 4; i++) nanosleep(&nap, NULL);
  kill(run.pid, SIGINT);
  subprocess_wait(&run, SECONDS);
  if (run.status != 130)
    expect_run(&run, 1, NULL, "not finite at step"); /* 130: so slow a machine has not diverged yet */
  subprocess_free(&run);
  const char *more[] = {program,    data, output_dir("diverge_int"), "--test-images=100", "--device=cpu", "--epochs=1",
                        "--resume", NULL};
  run = subprocess_run(more, SECONDS);
  expect_run(&run, 0, NULL, NULL);
  subprocess_free(&run);
}

static void a_gpu_that_is_not_there_is_explained(void **state) {
  (void)state;
  setenv("CUDA_VISIBLE_DEVICES", "", 1); /* also where there is one */
  const char *argv[] = {program, "--device=gpu", NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  unsetenv("CUDA_VISIBLE_DEVICES");
  expect_run(&run, 1, NULL, "use --device=cpu");
  subprocess_free(&run);
}

int main(void) {
  Error err;
  if (runfiles_find("phase3_cnn/12_lenet_mnist/lenet_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_seed_gives_the_same_bits),
      cmocka_unit_test(interrupted_and_resumed_equals_uninterrupted),
      cmocka_unit_test(killed_at_any_moment_leaves_a_checkpoint),
      cmocka_unit_test(the_profile_lists_every_operation),
      cmocka_unit_test(the_profile_counts_bytes_and_flops),
      cmocka_unit_test(nvtx_trains_the_same_bits),
      cmocka_unit_test(implementations_are_chosen_by_name),
      cmocka_unit_test(a_full_disk_keeps_the_old_checkpoint),
      cmocka_unit_test(momentum_matters_also_when_resumed),
      cmocka_unit_test(resume_refuses_another_run),
      cmocka_unit_test(an_unfinished_run_is_not_replaced_unasked),
      cmocka_unit_test(one_run_at_a_time_writes_into_a_folder),
      cmocka_unit_test(the_results_agree_with_the_log),
      cmocka_unit_test(a_closed_stdout_spoils_no_file),
      cmocka_unit_test(a_new_run_sets_the_earlier_one_aside),
      cmocka_unit_test(wrong_options_exit_with_2),
      cmocka_unit_test(help_names_every_option),
      cmocka_unit_test(wrong_data_is_named),
      cmocka_unit_test(an_unwritable_output_is_named),
      cmocka_unit_test(a_divergent_run_stops_and_keeps_its_checkpoint),
      cmocka_unit_test(an_interrupt_of_a_divergent_run_keeps_its_checkpoint),
      cmocka_unit_test(a_gpu_that_is_not_there_is_explained),
  };
  return TEST_MAIN("lenet_mnist", tests);
}
