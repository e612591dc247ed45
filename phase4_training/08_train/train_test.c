/* The program train: every network on sets of other shapes, what --list says, settings in a file, and what is refused.
 * What all programs on common/nn/app.h do is tested by lenet_mnist_test and mlp_mnist_test. The sets are made here. */
#include "common/idx.h"
#include "common/program_test.h"

enum { IMAGES = 96, TEST_IMAGES = 40 };

static char idx20[PATH_MAX], idx8[PATH_MAX], cifar[PATH_MAX];

/* A brightness for each class, and noise. */
static unsigned char pixel(int label, int classes, uint64_t i) {
  return (unsigned char)(label * 180 / classes + (int)(philox4x32(3, 1, i).word[0] % 70));
}

static void make_idx(const char *folder, const char *split, int side, int count, int classes) {
  Error err;
  char path[PATH_MAX + 64];
  const size_t shape[] = {(size_t)count, (size_t)side, (size_t)side}, area = (size_t)side * (size_t)side;
  unsigned char *images = (unsigned char *)xmalloc((size_t)count * area),
                *labels = (unsigned char *)xmalloc((size_t)count);
  for (int i = 0; i < count; i++) {
    labels[i] = (unsigned char)(i * 5 % classes);
    for (size_t j = 0; j < area; j++) images[(size_t)i * area + j] = pixel(labels[i], classes, (size_t)i * area + j);
  }
  snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, split);
  if (idx_write(path, 3, shape, images, &err) != 0) fail_msg("%s", err.message);
  snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", folder, split);
  if (idx_write(path, 1, shape, labels, &err) != 0) fail_msg("%s", err.message);
  free(images);
  free(labels);
}

static void make_cifar(const char *name, int count) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", cifar, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < count; i++) {
    const int label = i * 3 % 10;
    fputc(label, file);
    for (int j = 0; j < 3072; j++) fputc(pixel(label, 10, (uint64_t)(i * 3072 + j)), file);
  }
  fclose(file);
}

static int make_sets(void **state) {
  (void)state;
  char name[32];
  mkdir(test_path(idx20, sizeof idx20, "gray20"), 0777);
  mkdir(test_path(idx8, sizeof idx8, "gray8"), 0777);
  mkdir(test_path(cifar, sizeof cifar, "colour"), 0777);
  make_idx(idx20, "train", 20, IMAGES, 7);
  make_idx(idx20, "t10k", 20, TEST_IMAGES, 7);
  make_idx(idx8, "train", 8, IMAGES, 3);
  make_idx(idx8, "t10k", 8, TEST_IMAGES, 3);
  for (int b = 1; b <= 5; b++) {
    snprintf(name, sizeof name, "data_batch_%d.bin", b);
    make_cifar(name, IMAGES / 5);
  }
  make_cifar("test_batch.bin", TEST_IMAGES);
  return 0;
}

/* Runs the program with the arguments that are not NULL. */
static Subprocess run_with(const char *a, const char *b, const char *c, const char *d, const char *e, const char *f) {
  const char *argv[8] = {program}, *more[] = {a, b, c, d, e, f};
  int n = 1;
  for (int i = 0; i < 6; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

static void must(int status, const char *out, const char *err, const char *a, const char *b, const char *c,
                 const char *d, const char *e) {
  Subprocess run = run_with("--device=cpu", a, b, c, d, e);
  expect_run(&run, status, out, err);
  subprocess_free(&run);
}

static const char *data_option(const char *folder) {
  static char buffers[4][PATH_MAX + 16];
  static int next;
  char *buffer = buffers[next++ % 4];
  snprintf(buffer, sizeof buffers[0], "--data=%s", folder);
  return buffer;
}

/* ------------------------------------------------------------------------------------------------ networks and data */

static void every_network_trains_on_every_shape(void **state) {
  (void)state;
  const struct {
    const char *name, *gray, *colour; /* what is said of it */
  } networks[] = {{"softmax", "softmax: 2807 parameters", "softmax: 30730 parameters"},
                  {"mlp", "mlp 400,128,7 relu: 52231", "mlp 3072,128,10 relu: 394634"},
                  {"lenet", "lenet: 30731", "lenet: 62006"},
                  {"fashion_cnn", "fashion_cnn: 371463", "fashion_cnn: 1258122"},
                  {"resnet_mnist", "resnet_mnist resnet 16,32,64 dropout 0.1: 89335", "dropout 0.1: 138970"},
                  {"resnet_cifar", "resnet_cifar: 77559", "resnet_cifar: 78042"}};
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
    char option[64];
    snprintf(option, sizeof option, "--network=%s", networks[i].name);
    must(0, networks[i].gray, NULL, option, data_option(idx20), "--epochs=1", output_dir("shapes"), NULL);
    must(0, networks[i].colour, NULL, option, data_option(cifar), "--epochs=1", "--train-images=32",
         output_dir("shapes"));
  }
}

static void the_list_has_networks_and_data(void **state) {
  (void)state;
  Subprocess run = run_with("--list", "--json", data_option(idx8), NULL, NULL, NULL);
  expect_run(&run, 0, "LeNet-5                               phase3_cnn/12_lenet_mnist ", NULL);
  json_t *result = expect_json(&run), *networks = json_object_get(result, "networks"), *data;
  assert_int_equal(json_array_size(networks), 6);
  const json_t *lenet = json_object_get(json_array_get(networks, 2), "parameters");
  assert_int_equal(json_integer_value(json_object_get(lenet, "mnist")), 61706);
  assert_int_equal(json_integer_value(json_object_get(lenet, "cifar10")), 62006);
  assert_true(json_is_null(json_object_get(lenet, "idx"))); /* too small */
  data = json_object_get(result, "data");
  assert_int_equal(json_array_size(data), 5);
  assert_true(json_is_true(json_object_get(json_array_get(data, 0), "available")));
  assert_true(json_is_false(json_object_get(json_array_get(data, 2), "available")));
  assert_int_equal(json_integer_value(json_object_get(json_array_get(data, 4), "classes")), 3);
  json_decref(result);
  subprocess_free(&run);
}

static void a_summary_is_of_any_pair(void **state) {
  (void)state;
  must(0, "fc3                      Gemm+Relu+Gemm   (10)                  59134", NULL, "--network=lenet", "--summary",
       data_option(cifar), NULL, NULL);
  must(0, "fc1                      Gemm             (128)                  8320", NULL, "--network=mlp", "--summary",
       data_option(idx8), "--lr=0.1", NULL);
}

/* The checkpoint says which network it is of; of a set in a folder the user says where it is. */
static void a_run_goes_on_and_its_model_is_used(void **state) {
  (void)state;
  char picture[PATH_MAX], config[PATH_MAX + 16], text[4096];
  must(0, "epoch", NULL, "--network=mlp", "--layers=64,9,3", data_option(idx8), "--epochs=1", output_dir("on"));
  must(0, "network mlp 64,9,3 relu: 615 parameters", NULL, "--resume", data_option(idx8), "--epochs=2",
       output_dir("on"), NULL);
  snprintf(picture, sizeof picture, "%s", in_dir("on", "filters.png"));
  must(0, "filters.png: ", NULL, "--predict", data_option(idx8), output_dir("on"), picture, NULL);
  must(1, NULL, "the checkpoint is of the files of a folder; name it by --data=FOLDER", "--resume", output_dir("on"),
       NULL, NULL, NULL);
  must(1, NULL, "this is the network mlp, not lenet; leave --network out", "--resume", "--network=lenet",
       data_option(idx8), output_dir("on"), NULL);
  /* All settings are in the folder, and give the same run. */
  must(0, "epoch", NULL, "--network=resnet_mnist", data_option(idx8), "--epochs=1", output_dir("same_a"), NULL);
  text[test_read_file(in_dir("same_a", "config.json"), text, sizeof text - 1)] = '\0';
  const char *keys[] = {"\"network\": \"resnet_mnist\"",
                        "\"filters\": \"16,32,64\"",
                        "\"dropout\": 0.1",
                        "\"lr\": 0.05,",
                        "\"schedule\": \"linear\"",
                        "\"seed\": 1,",
                        "\"data\": \"/"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strstr(text, keys[i]) == NULL) fail_msg("%s is missing:\n%s", keys[i], text);
  snprintf(config, sizeof config, "--config=%s", in_dir("same_a", "config.json"));
  must(0, "resnet 16,32,64 dropout 0.1", NULL, config, output_dir("same_b"), NULL, NULL, NULL);
  assert_same_models("same_a", "same_b");
}

/* What a file says of training alone does not count where nothing is trained; typed it is refused. */
static void settings_of_a_run_are_no_hindrance(void **state) {
  (void)state;
  char config[PATH_MAX + 16], picture[PATH_MAX], text[4096];
  must(0, "epoch", NULL, "--network=mlp", data_option(idx8), "--precision=bf16", "--epochs=1", output_dir("half"));
  text[test_read_file(in_dir("half", "config.json"), text, sizeof text - 1)] = '\0';
  assert_non_null(strstr(text, "\"precision\": \"bf16\""));
  snprintf(config, sizeof config, "--config=%s", in_dir("half", "config.json"));
  snprintf(picture, sizeof picture, "%s", in_dir("half", "filters.png"));
  must(0, "filters.png: ", NULL, config, output_dir("half"), "--predict", picture, NULL);
  must(2, NULL, "--predict trains nothing; leave --precision out", config, output_dir("half"), "--precision=bf16",
       "--predict", picture);
  FILE *file = fopen(in_dir("half", "graph.json"), "w");
  assert_non_null(file);
  fputs("{\"network\": \"mlp\", \"graph\": true, \"stream\": true, \"nvtx\": true, \"restart\": true}", file);
  fclose(file);
  snprintf(config, sizeof config, "--config=%s", in_dir("half", "graph.json"));
  must(0, "fc1 ", NULL, config, data_option(idx8), "--summary", NULL, NULL);
  must(2, NULL, "--summary trains nothing; leave --graph out", config, data_option(idx8), "--summary", "--graph", NULL);
  must(2, NULL, "--graph: a CUDA graph needs a GPU", config, data_option(idx8), output_dir("half"), NULL, NULL);
}

/* ------------------------------------------------------------------------------------------------ a file that waits */

static Subprocess piped(const char *text, const char *folder) {
  const char *argv[] = {"/bin/sh",
                        "-c",
                        "printf '%s' \"$1\" | \"$0\" --device=cpu --config=/dev/stdin \"$2\" \"$3\"",
                        program,
                        text,
                        data_option(idx8),
                        output_dir(folder),
                        NULL};
  return subprocess_run(argv, SECONDS);
}

/* As that of --config=<(...), which can be read once. */
static void a_file_may_be_a_pipe(void **state) {
  (void)state;
  Subprocess run = piped("{\"network\": \"softmax\", \"epochs\": 1}", "pipe");
  expect_run(&run, 0, "softmax: 195 parameters", NULL);
  subprocess_free(&run);
  run = piped("", "pipe_empty");
  expect_run(&run, 2, NULL, "--config=/dev/stdin: it is empty; a JSON file of options is expected");
  subprocess_free(&run);
  run = piped("{\"network\": \"softmax\",\n\"epochs\": 0}", "pipe_wrong");
  expect_run(&run, 2, NULL, "/dev/stdin, line 2: --epochs=0: a whole number from 1");
  subprocess_free(&run);
}

/* Ctrl-C ends a program that waits for somebody to open the pipe, or to write into it. */
static void waiting_for_a_file_can_be_stopped(void **state) {
  (void)state;
  const struct timespec nap = {0, 20 * 1000 * 1000};
  char config[PATH_MAX + 16];
  snprintf(config, sizeof config, "--config=%s", in_dir(".", "fifo"));
  unlink(in_dir(".", "fifo"));
  assert_int_equal(mkfifo(in_dir(".", "fifo"), 0600), 0);
  const char *argv[] = {program, "--device=cpu", config, NULL};
  Subprocess run = subprocess_start(argv, 0);
  int fd = -1;
  for (int i = 0; i < 3000 && fd < 0; i++) { /* until it opens the pipe */
    nanosleep(&nap, NULL);
    fd = open(in_dir(".", "fifo"), O_WRONLY | O_NONBLOCK);
  }
  assert_true(fd >= 0);
  nanosleep(&nap, NULL);
  kill(run.pid, SIGINT);
  subprocess_wait(&run, 60);
  expect_run(&run, 130, NULL, "stopped before the training began; no file was changed");
  subprocess_free(&run);
  close(fd);
  run = subprocess_start(argv, 0);
  for (int i = 0; i < 25; i++) nanosleep(&nap, NULL); /* it may still be on its way there */
  kill(run.pid, SIGINT);
  subprocess_wait(&run, 60);
  expect_run(&run, 130, NULL, NULL);
  subprocess_free(&run);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  must(1, NULL,
       "--network=lenet does not fit the images of gray8, of shape (1,8,8): what comes out of pool1, (6,4,4), is "
       "too small for the next layer; these networks do: softmax, mlp, resnet_mnist, resnet_cifar",
       "--network=lenet", data_option(idx8), output_dir("fit"), NULL, NULL);
  must(1, NULL, "the network has an input of shape (20) and 10 classes", "--network=mlp", "--layers=20,10",
       output_dir("fit"), NULL, NULL);
  must(1, NULL, "the files of CIFAR-10 are yours to download", "--network=resnet_cifar", output_dir("fit"), NULL, NULL,
       NULL);
  must(2, NULL, "--network=lennet: one of softmax, mlp,", "--network=lennet", NULL, NULL, NULL, NULL);
  must(2, NULL, "do you mean lenet?", "--network=lennet", NULL, NULL, NULL, NULL);
  must(2, NULL, "--layers is an option of --network=mlp; here the network is lenet", "--network=lenet",
       "--layers=784,10", NULL, NULL, NULL);
  must(2, NULL, "or a folder of files in their formats; do you mean mnist?", "--data=mnits", NULL, NULL, NULL, NULL);
  must(2, NULL, "no data set has this name, and the folder ", "--data=qqqqqqqq", NULL, NULL, NULL, NULL);
  must(2, NULL, "--data=no/images: the folder ", "--data=no/images", NULL, NULL, NULL, NULL);
  must(2, NULL, "no/images was not found; mnist, fashion_mnist, cifar10 or cifar100 is expected, or a folder",
       "--data=no/images", NULL, NULL, NULL, NULL);
  must(2, NULL, "/proc/version is not a folder; mnist, fashion_mnist,", "--data=/proc/version", NULL, NULL, NULL, NULL);
  must(2, NULL, "/proc/version/x is not a folder; mnist", "--data=/proc/version/x", NULL, NULL, NULL, NULL);
  must(2, NULL, "holds no training images: train-images-idx3-ubyte (or .gz)", "--data=/proc", NULL, NULL, NULL, NULL);
  must(2, NULL, "and --data-dir: one of the two", data_option(idx8), "--data-dir=/tmp", NULL, NULL, NULL);
  must(1, NULL, "/proc/no: the folder cannot be made", "--network=softmax", data_option(idx8),
       "--output-dir=/proc/no/x", NULL, NULL);
  assert_false(file_exists(in_dir("fit", "log.csv")));
}

/* ------------------------------------------------------------------------------------------------------- the search */

/* A short run of the smallest network; what is searched comes in the other arguments. */
static Subprocess search(const char *folder, const char *a, const char *b, const char *c, const char *d) {
  const char *argv[16] = {program,      "--device=cpu",   "--network=softmax", data_option(idx8), output_dir(folder),
                          "--epochs=2", "--batch-size=16"};
  const char *more[] = {a, b, c, d};
  int n = 7;
  for (int i = 0; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

/* Sorted by the validation loss, and the best is the run that an ordinary one with these options is. */
static void a_search_finds_the_lowest_validation_loss(void **state) {
  (void)state;
  Subprocess run = search("grid", "--search=lr:1e-4..1e-1,log", "--search=optimizer:sgd|adam", "--json", NULL);
  expect_run(&run, 0, "Softmax regression on gray8: 8 trials; 10 % of the training images are the validation", NULL);
  json_t *result = expect_json(&run), *rows = json_object_get(result, "rows"), *row;
  size_t i;
  double before = 0;
  assert_int_equal(json_array_size(rows), 8);
  json_array_foreach(rows, i, row) {
    const double loss = json_number_value(json_object_get(row, "validation_loss"));
    assert_string_equal(json_string_value(json_object_get(row, "status")), "done");
    assert_true(loss > 0 && loss >= before);
    before = loss;
  }
  assert_true(json_equal(json_object_get(json_array_get(rows, 0), "options"), json_object_get(result, "best")));
  char option[2][128], folder[512];
  const char *lr = json_string_value(json_object_get(json_object_get(result, "best"), "lr"));
  const char *optimizer = json_string_value(json_object_get(json_object_get(result, "best"), "optimizer"));
  snprintf(option[0], sizeof option[0], "--lr=%s", lr);
  snprintf(option[1], sizeof option[1], "--optimizer=%s", optimizer);
  const char *command = json_string_value(json_object_get(result, "command"));
  if (!strstr(command, option[0]) || !strstr(command, option[1]) || !strstr(command, "--validation=0.1"))
    fail_msg("the command does not repeat the trial: %s", command);
  snprintf(folder, sizeof folder, "grid/lr=%s,optimizer=%s", lr, optimizer);
  json_decref(result);
  subprocess_free(&run);
  run = search("again", option[0], option[1], "--validation=0.1", NULL);
  expect_run(&run, 0, "epoch", NULL);
  subprocess_free(&run);
  assert_same_models(folder, "again");
  const char *files[] = {"search.csv", "search.json", "lr=0.001,optimizer=adam/config.json"};
  for (i = 0; i < 3; i++)
    if (!file_exists(in_dir("grid", files[i]))) fail_msg("%s is missing", files[i]);
}

/* Whole bounds of an option that takes any number are no wish for whole numbers; --config may be a pipe here, too. */
static void only_whole_numbers_are_rounded(void **state) {
  (void)state;
  Subprocess run = search("halves", "--search=dampening:0..1,3", "--momentum=0.9", "--json", NULL);
  expect_run(&run, 0, " 0.5 ", NULL);
  json_t *result = expect_json(&run);
  assert_int_equal(json_array_size(json_object_get(result, "rows")), 3);
  json_decref(result);
  subprocess_free(&run);
  assert_true(file_exists(in_dir("halves", "dampening=0.5/config.json")));
  run = piped("{\"network\": \"softmax\", \"epochs\": 1, \"search\": \"accumulate:1..1e1,log\"}", "whole");
  expect_run(&run, 0, "Softmax regression on gray8: 3 trials", NULL);
  subprocess_free(&run);
  assert_true(file_exists(in_dir("whole", "accumulate=3/config.json"))); /* 3.16 */
}

/* Learning rates of which the highest ends in numbers that are none; adam takes no momentum. */
static void what_diverges_or_is_refused_is_a_row(void **state) {
  (void)state;
  Subprocess run =
      search("rows", "--search=lr:1e-3|1e6", "--search=optimizer:sgd|adam", "--momentum=0.9", "--weight-decay=1");
  expect_run(&run, 0, " 1e6   sgd               diverged\n", NULL);
  expect_run(&run, 0, "refused: --momentum: --optimizer=adam does not use it; its own settings", NULL);
  expect_run(&run, 0, "* 1e-3  sgd ", "trial 4 of 4: lr=1e6, optimizer=adam: refused");
  subprocess_free(&run);
  run = search("none", "--search=lr:1e5|1e6", "--weight-decay=1", "--momentum=0.9", NULL);
  expect_run(&run, 1, "diverged", "no trial of the grid has a loss");
  subprocess_free(&run);
}

/* Waits until a search has begun its `trial`-th run (from 1), and ends it by a signal. */
static Subprocess stopped_search(const char *folder, const char *trial, int signal) {
  const char *argv[] = {program,
                        "--device=cpu",
                        "--network=softmax",
                        "--epochs=12",
                        output_dir(folder),
                        "--train-images=20000",
                        "--test-images=500",
                        "--search=lr:0.001|0.002|0.003",
                        NULL};
  const struct timespec nap = {0, 2 * 1000 * 1000};
  Subprocess run = subprocess_start(argv, 0);
  char state[PATH_MAX];
  snprintf(state, sizeof state, "%s/last.state.safetensors", in_dir(folder, trial));
  for (int i = 0; i < 60 * 500 && !file_exists(state) && kill(run.pid, 0) == 0; i++) nanosleep(&nap, NULL);
  kill(run.pid, signal);
  subprocess_wait(&run, SECONDS);
  return run;
}

/* After Ctrl-C, after a kill, and at last to the end: finished trials are not trained again, and the one that was
 * stopped goes on. Its model is that of a run which nobody stopped. */
static void a_search_that_was_stopped_goes_on(void **state) {
  (void)state;
  const char *argv[] = {program,
                        "--device=cpu",
                        "--network=softmax",
                        "--epochs=12",
                        output_dir("stop"),
                        "--train-images=20000",
                        "--test-images=500",
                        "--search=lr:0.001|0.002|0.003",
                        NULL};
  Subprocess run = stopped_search("stop", "lr=0.001", SIGINT);
  expect_run(&run, 130, "stopped; to go on, give the same command again", NULL);
  subprocess_free(&run);
  run = stopped_search("stop", "lr=0.002", SIGKILL);
  expect_run(&run, 137, NULL, "trial 1 of 3: lr=0.001: validation loss");
  subprocess_free(&run);
  run = subprocess_run(argv, SECONDS);
  for (int i = 0; i < 100 && run.status == 1 && strstr(run.err, "is writing into"); i++) { /* the killed one's trial */
    const struct timespec nap = {0, 50 * 1000 * 1000};
    subprocess_free(&run);
    nanosleep(&nap, NULL);
    run = subprocess_run(argv, SECONDS);
  }
  expect_run(&run, 0, "The lowest validation loss, ", "trial 1 of 3: lr=0.001: validation loss");
  expect_run(&run, 0, NULL, ", from before\ntrial 2 of 3: lr=0.002: validation loss");
  subprocess_free(&run);
  const char *alone[] = {program,
                         "--device=cpu",
                         "--network=softmax",
                         "--epochs=12",
                         output_dir("alone"),
                         "--train-images=20000",
                         "--test-images=500",
                         "--validation=0.1",
                         "--lr=0.001",
                         NULL};
  run = subprocess_run(alone, SECONDS);
  expect_run(&run, 0, "epoch", NULL);
  subprocess_free(&run);
  assert_same_models("stop/lr=0.001", "alone");
}

static void a_search_of_something_else_is_refused(void **state) {
  (void)state;
  const char *wrong[][2] = {
      {"--search=lr", "an option and its values are expected, as in lr:1e-4..1e-1,log"},
      {"--search=bach-size:32|64", "--search=bach-size: there is no such option; do you mean batch-size?"},
      {"--search=qqqqqqqq:1|2", "there is no such option; --help lists them"},
      {"--search=foo:1..2", "--search=foo: there is no such option; --help lists them"},
      {"--search=momentm:0..1", "--search=momentm: there is no such option; do you mean momentum?"},
      {"--search=lr:1e-4...1e-1", "--search=lr:1e-4...1e-1: two dots are expected between the bounds"},
      {"--search=seed:1.5..4,3", "--search=seed:1.5..4,3: --seed takes whole numbers; give whole bounds"},
      {"--search=lr:1e-3|1e7", "--lr=1e7: a number from 1e-09 to 1e+06 is expected"},
      {"--search=momentum:0..1,3", "--momentum=1: a number from 0 to 0.9999 is expected"},
      {"--search=optimizer:sgd|adm", "--optimizer=adm: sgd,"},
      {"--search=seed:1|two", "--seed=two: a whole number from 0"},
      {"--search=output-dir:a|b", "--search=output-dir: it cannot be searched"},
      {"--search=nesterov:1|2", "--search=nesterov: it cannot be searched"},
      {"--search=lr:1e-1..1e-4,log", "the first bound must be lower than the last"},
      {"--search=lr:0..1e-1,log", "with log both bounds must be above 0"},
      {"--search=lr:-1..1,log,3", "with log both bounds must be above 0"},
      {"--search=lr:nan..1", "two numbers are expected"},
      {"--search=lr:1e-3..1,log,1", "1 point; 2 to 64 are expected"},
      {"--search=lr:1e-3..1,lin,3", "behind the bounds \"log\", a number of points or both"},
      {"--search=lr:0.1", "is one trial; say --lr=0.1 instead"},
      {"--search=lr:0.1|1e-1", "the value 1e-1 is there twice"},
      {"--search=batch-size:1..3,5", "is there twice; ask for fewer points"},
      {"--search=lr:0.1||0.2", "\"\" is no value"},
      {"--search=lr:1e-3..1,log,33", "the grid has 33 trials, each a training run; add --yes, or ask for 32 or fewer"},
      {"--search=epochs:1|2", "--epochs and --search=epochs: one of the two"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Subprocess run = search("wrong", wrong[i][0], NULL, NULL, NULL);
    expect_run(&run, 2, NULL, wrong[i][1]);
    subprocess_free(&run);
  }
  const char *two[][3] = {{"--search=lr:1|2", "--search=lr:3|4", "--search=lr is there twice"},
                          {"--search=images:1|2", "--search=train_images:3|4", "--search=train-images is there twice"},
                          {"--search=lr:1|2", "--summary", "--search and --summary: one of the two"},
                          {"--search=lr:1|2", "--resume", "goes on by itself"}};
  for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
    Subprocess run = search("wrong", two[i][0], two[i][1], NULL, NULL);
    expect_run(&run, 2, NULL, two[i][2]);
    subprocess_free(&run);
  }
  assert_false(file_exists(in_dir("wrong", "")));
  must(1, NULL, "--output-dir: /proc/no: the folder cannot be made", "--network=softmax", data_option(idx8),
       "--search=lr:1|2", "--output-dir=/proc/no/x", NULL);
}

int main(void) {
  Error err;
  if (runfiles_find("phase4_training/08_train/train", program, sizeof program, &err) != 0) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(every_network_trains_on_every_shape, make_sets),
      cmocka_unit_test_setup(the_list_has_networks_and_data, make_sets),
      cmocka_unit_test_setup(a_summary_is_of_any_pair, make_sets),
      cmocka_unit_test_setup(a_run_goes_on_and_its_model_is_used, make_sets),
      cmocka_unit_test_setup(settings_of_a_run_are_no_hindrance, make_sets),
      cmocka_unit_test_setup(a_file_may_be_a_pipe, make_sets),
      cmocka_unit_test(waiting_for_a_file_can_be_stopped),
      cmocka_unit_test_setup(what_does_not_fit_is_refused, make_sets),
      cmocka_unit_test_setup(a_search_finds_the_lowest_validation_loss, make_sets),
      cmocka_unit_test_setup(only_whole_numbers_are_rounded, make_sets),
      cmocka_unit_test_setup(what_diverges_or_is_refused_is_a_row, make_sets),
      cmocka_unit_test(a_search_that_was_stopped_goes_on),
      cmocka_unit_test_setup(a_search_of_something_else_is_refused, make_sets),
  };
  return TEST_MAIN("train", tests);
}
