/* The program cifar10 on small sets that are made here in the official layout: what it has beyond common/nn/app.h,
 * which lenet_mnist_test and lenet_model_test test. */
#include "common/program_test.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, BATCHES = 5, RECORDS = 24, TEST_RECORDS = 40 };

static char cifar100_folder[PATH_MAX];

/* A colour for each class, a bar across or down at a random place, noise. */
static void make_picture(unsigned char *pixels, int label, uint64_t seed) {
  const PhiloxBlock random = philox4x32(3, 1, seed);
  const int bar = (int)(random.word[0] % 26);
  for (int c = 0; c < 3; c++)
    for (int i = 0; i < PLANE; i++) {
      const int noise = (int)(philox4x32(3, 2, seed * 3 * PLANE + (uint64_t)(c * PLANE + i)).word[0] % 61);
      const int at = label % 2 ? i % SIDE : i / SIDE;
      const int value = (label * (53 + 44 * c) + 31 * c) % 160 + noise + (at >= bar && at < bar + 5 ? 30 : 0);
      pixels[c * PLANE + i] = (unsigned char)value;
    }
}

static void write_records(const char *folder, const char *name, int count, int classes, uint64_t seed) {
  char path[2 * PATH_MAX];
  unsigned char record[2 + 3 * PLANE];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < count; i++) {
    const int label = (int)(philox4x32(3, 0, seed + (uint64_t)i).word[0] % (unsigned)classes);
    record[0] = (unsigned char)(label / 5);
    record[1] = (unsigned char)label;
    make_picture(record + 2, label, seed + (uint64_t)i);
    const int skipped = classes == 10; /* no coarse label */
    fwrite(record + skipped, 1, sizeof record - (size_t)skipped, file);
  }
  fclose(file);
}

static int make_sets(void **state) {
  (void)state;
  char name[32];
  mkdir(test_path(mnist, sizeof mnist, "cifar-10-batches-bin"), 0777);
  mkdir(test_path(cifar100_folder, sizeof cifar100_folder, "cifar-100-binary"), 0777);
  for (int b = 1; b <= BATCHES; b++) {
    snprintf(name, sizeof name, "data_batch_%d.bin", b);
    write_records(mnist, name, RECORDS, 10, 1000 * (uint64_t)b);
  }
  write_records(mnist, "test_batch.bin", TEST_RECORDS, 10, 9000);
  write_records(cifar100_folder, "train.bin", 50, 100, 20000);
  write_records(cifar100_folder, "test.bin", 20, 100, 30000);
  return 0;
}

/* Runs the program in a folder with the arguments that are not NULL. */
static Subprocess cifar(const char *folder, const char *output, const char *a, const char *b, const char *c,
                        const char *d) {
  static char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", folder);
  const char *argv[16] = {program, data, output_dir(output), "--batch-size=16", "--json"};
  const char *more[] = {a, b, c, d};
  int n = 5;
  for (int i = 0; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

static double figure(const Subprocess *run, const char *name) {
  json_t *result = expect_json(run);
  const double value = json_number_value(json_object_get(result, name));
  json_decref(result);
  return value;
}

static void a_residual_network_learns(void **state) {
  (void)state;
  Subprocess run = cifar(mnist, "resnet", "--device=cpu", "--epochs=4", NULL, NULL);
  expect_run(&run, 0, "Convolutional network on CIFAR-10 on CPU", NULL);
  expect_run(&run, 0, "network resnet: 78042 parameters", NULL);
  expect_run(&run, 0, "120 training images, 40 test images", NULL);
  expect_run(&run, 0, "augmented by crop", NULL);
  expect_run(&run, 0, "airplan", NULL);                      /* a column of the confusion matrix */
  assert_true(figure(&run, "train_accuracy") > 0.5);         /* guessing: 0.1 */
  assert_true(file_exists(in_dir("resnet", "filters.png"))); /* of three channels */
  subprocess_free(&run);
}

static void lenet_learns(void **state) {
  (void)state;
  Subprocess run = cifar(mnist, "lenet", "--lr=0.01", "--epochs=10", "--network=lenet", "--augment=none");
  expect_run(&run, 0, "network lenet: 62006 parameters", NULL);
  assert_null(strstr(run.out, "augmented"));
  assert_true(figure(&run, "train_accuracy") > 0.3);
  subprocess_free(&run);
  run = cifar(mnist, "lenet", "--device=cpu", "--epochs=11", "--resume", NULL); /* the checkpoint knows the network */
  expect_run(&run, 0, "network lenet: 62006 parameters", NULL);
  subprocess_free(&run);
}

static void a_hundred_classes(void **state) {
  (void)state;
  Subprocess run =
      cifar(cifar100_folder, "hundred", "--device=cpu", "--epochs=1", "--network=lenet", "--data=cifar100");
  expect_run(&run, 0, "Convolutional network on CIFAR-100 on CPU", NULL);
  expect_run(&run, 0, "network lenet: 69656 parameters", NULL);
  expect_run(&run, 0, "the 100 classes of objects in the last epoch", NULL);
  expect_run(&run, 0, "aquarium_fish", NULL);
  subprocess_free(&run);
  run = cifar(cifar100_folder, "hundred", "--device=cpu", "--epochs=2", "--resume", NULL);
  expect_run(&run, 0, "network lenet: 69656 parameters", NULL);
  subprocess_free(&run);
}

/* The same steps through kernels, emulated or real: the losses differ by rounding. */
static void the_gpu_learns_the_same(void **state) {
  (void)state;
  const char *const networks[] = {"--network=lenet", "--network=resnet"};
  for (int i = 0; i < 2; i++) {
    double loss[2];
    for (int gpu = 0; gpu < 2; gpu++) {
      const char *argv[] = {program,
                            "--data-dir",
                            mnist,
                            output_dir(gpu ? "gpu" : "cpu"),
                            gpu ? "--device=gpu" : "--device=cpu",
                            networks[i],
                            "--train-images=12",
                            "--test-images=4",
                            "--batch-size=6",
                            "--epochs=1",
                            "--lr=0.002", /* so small that rounding stays rounding */
                            "--json",
                            NULL};
      Subprocess run = subprocess_run(argv, SECONDS);
      if (run.status == 1 && strstr(run.err, "use --device=cpu")) {
        subprocess_free(&run);
        skip(); /* built for a GPU that is not here */
      }
      expect_run(&run, 0, NULL, NULL);
      loss[gpu] = figure(&run, "test_loss");
      subprocess_free(&run);
    }
    assert_true(loss[0] > 0.1);
    assert_true(fabs(loss[1] - loss[0]) < 1e-3 * loss[0]); /* batch norm of six images divides by small deviations */
  }
}

/* A picture of any size, in colour or grey: the class of its colour. */
static void predicts_colour_pictures(void **state) {
  (void)state;
  enum { SCALE = 3, WIDE = SIDE * SCALE, MARGIN = 30 };
  Error err;
  unsigned char pixels[3 * PLANE];
  char path[PATH_MAX], grey_path[PATH_MAX];
  Image image = image_new(WIDE + 2 * MARGIN, WIDE, 3), grey = image_new(5, 3, 1); /* the square in the middle counts */
  make_picture(pixels, 7, 77);
  for (int y = 0; y < WIDE; y++)
    for (int x = 0; x < WIDE; x++)
      for (int c = 0; c < 3; c++)
        image.pixels[(y * image.width + x + MARGIN) * 3 + c] = pixels[c * PLANE + y / SCALE * SIDE + x / SCALE];
  if (image_write_png(test_path(path, sizeof path, "horse.png"), &image, &err) != 0 ||
      image_write_png(test_path(grey_path, sizeof grey_path, "grey.png"), &grey, &err) != 0)
    fail_msg("%s", err.message);
  image_free(&image);
  image_free(&grey);
  const char *argv[] = {program, "--device=cpu", output_dir("resnet"), "--json", "--predict", path, grey_path, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, "network resnet: 78042 parameters", NULL);
  expect_run(&run, 0, "horse.png: ", NULL);
  expect_run(&run, 0, "grey.png: ", NULL);
  subprocess_free(&run);
  const char *names[] = {program, "--device=cpu", output_dir("hundred"), "--predict", path, NULL};
  run = subprocess_run(names, SECONDS);
  expect_run(&run, 0, "Convolutional network on CIFAR-100", NULL);
  subprocess_free(&run);
}

/* A model of another network or another data set, and one from elsewhere whose tensors do not fit. */
static void another_checkpoint_is_refused(void **state) {
  (void)state;
  Error err;
  char lenet[2 * PATH_MAX], foreign[PATH_MAX], option[2 * PATH_MAX + 32];
  const char *picture = "horse.png";
  snprintf(lenet, sizeof lenet, "--checkpoint=%s", in_dir("lenet", "best.safetensors"));
  const char *argv[] = {program, "--device=cpu", lenet, "--network=resnet", "--predict", picture, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "this is the network lenet, not resnet; leave --network out");
  subprocess_free(&run);
  argv[3] = "--data=cifar100";
  run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "the checkpoint is of --data=cifar10, not cifar100");
  subprocess_free(&run);

  static float weights[6 * 3 * 3 * 3];
  const size_t shape[] = {6, 3, 3, 3};
  SafetensorsWriter out;
  memset(&out, 0, sizeof out);
  safetensors_add(&out, "conv1.weight", "F32", 4, shape, weights);
  safetensors_add_metadata(&out, "mean", "0.5 0.5 0.5");
  safetensors_add_metadata(&out, "stddev", "0.25 0.25 0.25");
  if (safetensors_write(&out, test_path(foreign, sizeof foreign, "foreign.safetensors"), &err) != 0)
    fail_msg("%s", err.message);
  safetensors_writer_free(&out);
  snprintf(option, sizeof option, "--checkpoint=%s", foreign);
  argv[2] = option;
  argv[3] = "--network=lenet";
  run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL,
             "tensor 'conv1.weight' is F32 (6, 3, 3, 3), expected F32 (6, 3, 5, 5); is it the checkpoint of");
  subprocess_free(&run);
}

static void other_data_are_refused(void **state) {
  (void)state;
  char path[PATH_MAX + 32], digits[PATH_MAX];
  Error err;
  Subprocess run;
  if (runfiles_find("third_party/data/mnist", digits, sizeof digits, &err) != 0) fail_msg("%s", err.message);
  run = cifar(digits, "refused", "--device=cpu", "--data=mnist", NULL, NULL);
  expect_run(&run, 1, NULL,
             "the network has an input of shape (3,32,32) and 10 classes; an input for the images of MNIST");
  expect_run(&run, 1, NULL, "of shape (1,28,28)");
  subprocess_free(&run);
  run = cifar(digits, "refused", "--device=cpu", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "data_batch_1.bin: No such file or directory; name the folder of the binary version");
  subprocess_free(&run);
  const char *nowhere[] = {program, "--device=cpu", output_dir("refused"), NULL};
  run = subprocess_run(nowhere, SECONDS);
  expect_run(&run, 1, NULL, "the files of CIFAR-10 are yours to download; name their folder with --data-dir");
  subprocess_free(&run);
  snprintf(path, sizeof path, "%s/batches.meta.txt", mnist);
  test_write_file(path, "one\ntwo\n", 8);
  run = cifar(mnist, "refused", "--device=cpu", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "batches.meta.txt: 10 lines");
  subprocess_free(&run);
  unlink(path);
  run = cifar(mnist, "refused", "--network=alexnet", NULL, NULL, NULL);
  expect_run(&run, 2, NULL, "--network=alexnet: lenet or resnet is expected");
  subprocess_free(&run);
  assert_false(file_exists(in_dir("refused", "log.csv")));
}

/* The names of the folder's file are used. */
static void names_come_with_the_data(void **state) {
  (void)state;
  char path[PATH_MAX + 32];
  const char *names = "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n\n";
  snprintf(path, sizeof path, "%s/batches.meta.txt", mnist);
  test_write_file(path, names, strlen(names));
  Subprocess run = cifar(mnist, "names", "--device=cpu", "--network=lenet", "--epochs=1", NULL);
  expect_run(&run, 0, " seven eight ", NULL);
  subprocess_free(&run);
  unlink(path);
}

int main(void) {
  Error err;
  if (runfiles_find("phase3_cnn/15_cifar10/cifar10", program, sizeof program, &err) != 0) die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_residual_network_learns, make_sets), /* the later ones use the sets and its model */
      cmocka_unit_test(lenet_learns),
      cmocka_unit_test(a_hundred_classes),
      cmocka_unit_test(the_gpu_learns_the_same),
      cmocka_unit_test(predicts_colour_pictures),
      cmocka_unit_test(another_checkpoint_is_refused),
      cmocka_unit_test(other_data_are_refused),
      cmocka_unit_test(names_come_with_the_data),
  };
  return TEST_MAIN("cifar10", tests);
}
