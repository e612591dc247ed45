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
  unsigned char *images = (unsigned char *)xmalloc((size_t)count * area), *labels = (unsigned char *)xmalloc((size_t)count);
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
  must(0, "network mlp 64,9,3 relu: 615 parameters", NULL, "--resume", data_option(idx8), "--epochs=2", output_dir("on"),
       NULL);
  snprintf(picture, sizeof picture, "%s", in_dir("on", "filters.png"));
  must(0, "filters.png: ", NULL, "--predict", data_option(idx8), output_dir("on"), picture, NULL);
  must(1, NULL, "the checkpoint is of the files of a folder; name it by --data=FOLDER", "--resume", output_dir("on"),
       NULL, NULL, NULL);
  must(1, NULL, "this is the network mlp, not lenet; leave --network out", "--resume", "--network=lenet",
       data_option(idx8), output_dir("on"), NULL);
  /* All settings are in the folder, and give the same run. */
  must(0, "epoch", NULL, "--network=resnet_mnist", data_option(idx8), "--epochs=1", output_dir("same_a"), NULL);
  text[test_read_file(in_dir("same_a", "config.json"), text, sizeof text - 1)] = '\0';
  const char *keys[] = {"\"network\": \"resnet_mnist\"", "\"filters\": \"16,32,64\"", "\"dropout\": 0.1", "\"lr\": 0.05,",
                        "\"schedule\": \"linear\"", "\"seed\": 1,", "\"data\": \"/"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strstr(text, keys[i]) == NULL) fail_msg("%s is missing:\n%s", keys[i], text);
  snprintf(config, sizeof config, "--config=%s", in_dir("same_a", "config.json"));
  must(0, "resnet 16,32,64 dropout 0.1", NULL, config, output_dir("same_b"), NULL, NULL, NULL);
  assert_same_models("same_a", "same_b");
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  must(1, NULL, "--network=lenet does not fit the images of gray8, of shape (1,8,8): what comes out of pool1, (6,4,4), is "
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
  must(2, NULL, "holds no training images: train-images-idx3-ubyte (or .gz)", "--data=/proc", NULL, NULL, NULL, NULL);
  must(2, NULL, "and --data-dir: one of the two", data_option(idx8), "--data-dir=/tmp", NULL, NULL, NULL);
  must(1, NULL, "/proc/no: the folder cannot be made", "--network=softmax", data_option(idx8), "--output-dir=/proc/no/x",
       NULL, NULL);
  assert_false(file_exists(in_dir("fit", "log.csv")));
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
      cmocka_unit_test_setup(what_does_not_fit_is_refused, make_sets),
  };
  return TEST_MAIN("train", tests);
}
