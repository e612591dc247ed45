/* The program onnx_runtime, as its users meet it. What computes is skipped where ONNX Runtime is not there. */
#include "common/program_test.h"
#include "phase5_production/10_onnx_runtime/test_ort.h"

enum { PICTURES = 12 };

static char photos[PATH_MAX], onnx_model[PATH_MAX + 16];

static const unsigned char colours[4][3] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 255}};
static const char *const names[4] = {"red", "green", "blue", "\"bright, or \"\"white\"\"\""};

static void need_ort(void) {
  Ort ort;
  ort_required(&ort);
  ort_close(&ort);
}

/* --model= of testdata/. */
static const char *model(const char *name) {
  char file[128], path[PATH_MAX];
  Error err;
  snprintf(file, sizeof file, "phase5_production/10_onnx_runtime/testdata/%s.onnx", name);
  if (runfiles_find(file, path, sizeof path, &err) != 0) fail_msg("%s", err.message);
  snprintf(onnx_model, sizeof onnx_model, "--model=%s", path);
  return onnx_model;
}

/* With the arguments that are not NULL. */
static Subprocess run(const char *name, const char *a, const char *b, const char *c, const char *d, const char *e) {
  const char *argv[8] = {program, model(name)}, *more[] = {a, b, c, d, e};
  for (int i = 0, n = 2; i < 5; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

/* A folder with PICTURES pictures of one colour, two of them in a folder of their own, a text, and a picture that is
 * none. */
static void make_photos(void) {
  char path[2 * PATH_MAX];
  Error err;
  test_path(photos, sizeof photos, "photos");
  snprintf(path, sizeof path, "%s/more", photos);
  if (make_directories(path, &err) != 0) die("%s", err.message);
  for (int i = 0; i < PICTURES; i++) {
    Image image = image_new(20 + 3 * i, 40 - i, 3);
    for (int p = 0; p < image.width * image.height; p++) memcpy(image.pixels + 3 * p, colours[i % 4], 3);
    snprintf(path, sizeof path, "%s/%s%02d.png", photos, i < 2 ? "more/" : "p", i);
    if (image_write_png(path, &image, &err) != 0) die("%s", err.message);
    image_free(&image);
  }
  snprintf(path, sizeof path, "%s/p05.jpg", photos);
  FILE *file = fopen(path, "w");
  fputs("no picture", file);
  fclose(file);
  snprintf(path, sizeof path, "%s/notes.txt", photos);
  file = fopen(path, "w");
  fclose(file);
}

/* Of the pictures in the order of their names: more/00, more/01, p02 ... */
static void expect_table(const char *out) {
  const char *const head = "file,width,height,rank,class,name,probability\n";
  char line[256];
  for (int i = 0; i < PICTURES; i++) {
    snprintf(line, sizeof line, "%s%02d.png,%d,%d,1,%d,%s,", i < 2 ? "more/" : "p", i, 20 + 3 * i, 40 - i, i % 4,
             names[i % 4]);
    const char *at = strstr(out, line);
    if (at == NULL) fail_msg("there is no line \"%s\" in\n%s", line, out);
  }
  assert_int_equal(strncmp(out, head, strlen(head)), 0);
}

static void classes_come_as_a_table(void **state) {
  (void)state;
  need_ort();
  Subprocess said = run("colours", photos, "--top=1", "--batch-size=5", "--readers=3", NULL);
  expect_run(&said, 1, NULL, "p05.jpg is not an image this program reads");
  expect_run(&said, 1, NULL, "12 pictures in");
  expect_run(&said, 1, NULL, "; 1 failed; 1 other files left out");
  expect_table(said.out);
  subprocess_free(&said);
}

/* Threads and batches change nothing but the time. */
static void results_do_not_depend_on_threads(void **state) {
  (void)state;
  need_ort();
  static const char *const ways[][2] = {
      {"--readers=1", "--batch-size=1"}, {"--readers=8", "--batch-size=64"}, {"--sequential", "--batch-size=5"}};
  Subprocess first = run("colours", photos, "--readers=4", "--batch-size=3", NULL, NULL);
  for (int i = 0; i < 3; i++) {
    Subprocess said = run("colours", photos, ways[i][0], ways[i][1], NULL, NULL);
    assert_int_equal(said.status, 1);
    assert_string_equal(said.out, first.out);
    subprocess_free(&said);
  }
  subprocess_free(&first);
}

static void lines_of_json_have_the_errors_too(void **state) {
  (void)state;
  char output[PATH_MAX + 16], path[PATH_MAX];
  need_ort();
  snprintf(output, sizeof output, "--output=%s", test_path(path, sizeof path, "classes.jsonl"));
  Subprocess said = run("colours", photos, "--format=jsonl", output, "--json", NULL);
  json_t *result = expect_json(&said);
  assert_int_equal(json_integer_value(json_object_get(result, "pictures")), PICTURES);
  assert_int_equal(json_integer_value(json_object_get(result, "failed")), 1);
  assert_string_equal(json_string_value(json_object_get(result, "provider")), "cpu");
  json_decref(result);
  subprocess_free(&said);
  FILE *file = fopen(path, "r");
  char line[4096];
  int lines = 0, errors = 0;
  assert_non_null(file);
  for (; fgets(line, sizeof line, file); lines++) {
    json_t *object = json_loads(line, 0, NULL), *top = json_object_get(object, "top");
    assert_true(json_is_string(json_object_get(object, "file")));
    errors += json_is_string(json_object_get(object, "error"));
    if (top) assert_int_equal(json_array_size(top), 4);
    json_decref(object);
  }
  fclose(file);
  assert_int_equal(lines, PICTURES + 1);
  assert_int_equal(errors, 1);
}

/* twice.onnx doubles each pixel: any size, and results beside each other as the pictures are. */
static void check_doubled(const char *folder, const char *runtime) {
  char path[PATH_MAX];
  Error err;
  Image image;
  Subprocess said = run("twice", photos, output_dir(folder), "--batch-size=4", runtime, NULL);
  expect_run(&said, 1, NULL, "12 pictures in");
  subprocess_free(&said);
  for (int i = 0; i < PICTURES; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s/%s%02d.png", folder, i < 2 ? "more/" : "p", i);
    if (i == 5) snprintf(name, sizeof name, "%s/p05.png.png", folder); /* there is a p05.jpg, too */
    if (image_read_rgb(test_path(path, sizeof path, name), &image, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(image.width, 2 * (20 + 3 * i));
    assert_int_equal(image.height, 2 * (40 - i));
    for (int p = 0; p < image.width * image.height; p++) assert_memory_equal(image.pixels + 3 * p, colours[i % 4], 3);
    image_free(&image);
  }
}

static void pictures_come_out(void **state) {
  (void)state;
  need_ort();
  check_doubled("doubled", NULL);
}

/* A network of one channel gets the luma, and its answer the colours again. */
static void colours_survive_a_network_of_one_channel(void **state) {
  (void)state;
  char path[PATH_MAX];
  Error err;
  Image image;
  need_ort();
  Subprocess said = run("twice_luma", photos, output_dir("luma"), "--batch-size=4", NULL, NULL);
  expect_run(&said, 1, NULL, "12 pictures in");
  subprocess_free(&said);
  for (int i = 2; i < PICTURES; i += 3) {
    char name[64];
    snprintf(name, sizeof name, i == 5 ? "luma/p%02d.png.png" : "luma/p%02d.png", i);
    if (image_read_rgb(test_path(path, sizeof path, name), &image, &err) != 0) fail_msg("%s", err.message);
    assert_true(image.width == 2 * (20 + 3 * i) && image.height == 2 * (40 - i));
    for (int p = 0; p < 3 * image.width * image.height; p++)
      assert_true(abs(image.pixels[p] - colours[i % 4][p % 3]) <= 1); /* the luma is rounded to a byte */
    image_free(&image);
  }
}

/* Ours instead of ONNX Runtime, which need not be there. */
static void the_engine_computes_too(void **state) {
  (void)state;
  check_doubled("doubled_by_engine", "--runtime=engine");
  Subprocess said = run("colours", photos, "--top=1", "--batch-size=5", "--runtime=engine", NULL);
  expect_run(&said, 1, NULL, "our engine, cpu, fp32: 12 pictures in");
  expect_table(said.out);
  subprocess_free(&said);
  said = run("twice", photos, "--max-side=30", output_dir("small"), "--runtime=engine", NULL);
  expect_run(&said, 1, NULL, "p09.png is 47 x 31 pixels; up to 30 are possible here");
  subprocess_free(&said);
}

static void a_picture_is_never_overwritten_by_its_result(void **state) {
  (void)state;
  char output[PATH_MAX + 16], path[2 * PATH_MAX];
  Error err;
  Image image;
  need_ort();
  snprintf(output, sizeof output, "--output-dir=%s", photos);
  snprintf(path, sizeof path, "%s/p02.png", photos);
  Subprocess said = run("twice", path, output, NULL, NULL, NULL);
  expect_run(&said, 1, NULL, "would be overwritten by its result");
  subprocess_free(&said);
  if (image_read_rgb(path, &image, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(image.width, 26);
  image_free(&image);
}

/* logarithm.onnx has a batch of 2, and gives -inf where a channel is black. */
static void answers_that_are_not_finite_are_named(void **state) {
  (void)state;
  need_ort();
  Subprocess said = run("logarithm", photos, "--top=1", NULL, NULL, NULL);
  expect_run(&said, 1, "p03.png,29,37,1,", "p02.png: the network's answer is not finite");
  expect_run(&said, 1, NULL, "3 pictures in");
  assert_null(strstr(said.out, "p02.png"));
  subprocess_free(&said);
}

/* shares.onnx gives probabilities, and here NaN for red. One that is not finite does not make logits of the others. */
static void probabilities_are_known_by_finite_answers(void **state) {
  (void)state;
  static const char *const ways[][2] = {{"--batch-size=2", NULL}, {"--batch-size=1", "--sequential"}};
  char red[2 * PATH_MAX], white[2 * PATH_MAX];
  need_ort();
  snprintf(red, sizeof red, "%s/p04.png", photos);
  snprintf(white, sizeof white, "%s/p03.png", photos);
  for (int i = 0; i < 2; i++) { /* white: roots of 1.5, 0.1, 0.1 */
    Subprocess said = run("shares", red, white, "--mean=-0.5,0.9,0.9", ways[i][0], ways[i][1]);
    expect_run(&said, 1, "p03.png,29,37,1,0,class 0,0.5536", "p04.png: the network's answer is not finite");
    subprocess_free(&said);
  }
}

/* The network fails at the second picture: all threads end, and what was done before is kept. */
static void a_network_that_fails_ends_the_run(void **state) {
  (void)state;
  static const char *const ways[] = {"--readers=1", "--readers=8", "--sequential"};
  need_ort();
  for (int i = 0; i < 3; i++) {
    char folder[32], path[PATH_MAX];
    snprintf(folder, sizeof folder, "failed%d", i);
    Subprocess said = run("one_width", photos, output_dir(folder), "--batch-size=1", ways[i], NULL);
    expect_run(&said, 1, NULL, "error: ONNX Runtime (CPU provider): ");
    expect_run(&said, 1, NULL, "; 1 of 13 pictures were done before");
    subprocess_free(&said);
    snprintf(folder, sizeof folder, "failed%d/more/00.png", i);
    assert_true(file_exists(test_path(path, sizeof path, folder)));
  }
}

/* A link to the folder that holds it is not another folder. */
static void folders_that_hold_themselves_are_read_once(void **state) {
  (void)state;
  char folder[PATH_MAX], path[2 * PATH_MAX];
  Error err;
  need_ort();
  if (make_directories(test_path(folder, sizeof folder, "rings"), &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/ring%d", folder, i);
    if (symlink(".", path) != 0) fail_msg("%s: %s", path, strerror(errno));
  }
  char target[2 * PATH_MAX];
  snprintf(target, sizeof target, "%s/p02.png", photos);
  snprintf(path, sizeof path, "%s/a.png", folder);
  if (symlink(target, path) != 0) fail_msg("%s: %s", path, strerror(errno));
  Subprocess said = run("colours", folder, "--top=1", NULL, NULL, NULL);
  expect_run(&said, 0, "a.png,26,38,1,2,blue,", "1 pictures in");
  subprocess_free(&said);
}

static void a_model_is_shown(void **state) {
  (void)state;
  need_ort();
  Subprocess said = run("colours", "--show", NULL, NULL, NULL, NULL);
  expect_run(&said, 0, "input   x float (N,3,8,8)\noutput  y float (N,4)\n", NULL);
  expect_run(&said, 0, "0 operators were computed by the CUDA provider and 3 by the CPU provider", NULL);
  subprocess_free(&said);
}

static void refused(const char *name, const char *a, const char *b, int status, const char *sentence) {
  Subprocess said = run(name, a, b, NULL, NULL, NULL);
  expect_run(&said, status, NULL, sentence);
  subprocess_free(&said);
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  refused("colours", NULL, NULL, 2, "pictures, or folders of them, are expected");
  refused("colours", photos, "--provider=rocm", 2, "--provider=rocm: cpu or cuda is expected");
  refused("colours", photos, "--mean=1,2", 2, "a number, or one for each of three channels, is expected");
  refused("colours", photos, "--top=0", 2, "a whole number from 1 to 100 is expected");
}

static void bad_files_are_a_sentence(void **state) {
  (void)state;
  need_ort();
  refused("colours", "/nowhere.png", NULL, 1, "cannot open /nowhere.png: No such file");
  refused("colours", photos, "--crop=9", 1, "the model takes pictures of 8 x 8 pixels, and not of 9 x 9");
  refused("twice", photos, "--resize=9", 1, "pictures of any size are not resized to 9; give --crop");
  refused("colours", photos, "--classes=/etc/passwd", 1, "--classes: ");
  refused("colours", photos, "--model=/nowhere.onnx", 1, "cannot open /nowhere.onnx: No such file");
  char empty[PATH_MAX];
  Error err;
  if (make_directories(test_path(empty, sizeof empty, "empty"), &err) != 0) fail_msg("%s", err.message);
  refused("colours", empty, NULL, 1, "there is no picture in it");
}

/* Without the library the program says where it looked. */
static void without_it_the_program_says_how_to_get_it(void **state) {
  (void)state;
  const char *before = getenv("ORT_HOME");
  char *kept = before ? strdup(before) : NULL;
  setenv("ORT_HOME", "/nowhere", 1);
  Subprocess said = run("colours", photos, NULL, NULL, NULL, NULL);
  expect_run(&said, 1, NULL, "ORT_HOME=/nowhere: neither this folder nor its lib/ has libonnxruntime.so.1");
  expect_run(&said, 1, NULL, "third_party/onnxruntime/fetch.sh");
  subprocess_free(&said);
  if (kept)
    setenv("ORT_HOME", kept, 1);
  else
    unsetenv("ORT_HOME");
  free(kept);
}

/* Tens of kilobytes of names. (ONNX Runtime's telemetry, which is off here, searches the command line with a recursion
 * for each character.) */
static void many_pictures_may_be_named(void **state) {
  (void)state;
  char path[2 * PATH_MAX];
  need_ort();
  const char *argv[1000] = {program, model("colours"), "--top=1"};
  snprintf(path, sizeof path, "%s/./././././././././././././././././././././././././././././././p02.png", photos);
  for (int i = 3; i < 999; i++) argv[i] = path;
  Subprocess said = subprocess_run(argv, SECONDS);
  expect_run(&said, 0, NULL, "996 pictures in");
  subprocess_free(&said);
}

/* Ctrl-C: what is on its way comes out, and the file is whole. */
static void an_interrupt_keeps_what_is_done(void **state) {
  (void)state;
  char output[PATH_MAX + 16], path[PATH_MAX];
  need_ort();
  const char *argv[600] = {program, model("colours"), "--batch-size=1", "--readers=1", "--top=1"};
  snprintf(output, sizeof output, "--output=%s", test_path(path, sizeof path, "some.csv"));
  argv[5] = output;
  for (int i = 6; i < 599; i++) argv[i] = photos;
  Subprocess said = subprocess_start(argv, 0);
  usleep(150000);
  kill(said.pid, SIGINT);
  subprocess_wait(&said, SECONDS);
  if (said.status != 130) { /* a fast machine was done before, and a slow one had not begun */
    if (said.status != 1) fail_msg("exit status %d\n%s", said.status, said.err);
  } else if (strstr(said.err, "pictures were done, and their results are written")) {
    FILE *file = fopen(path, "r");
    char line[4096] = "";
    long lines = -1, done = 0;
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); lines++) assert_int_equal(line[strlen(line) - 1], '\n');
    fclose(file);
    sscanf(strstr(said.err, "stopped; "), "stopped; %ld of", &done);
    assert_true(lines >= 0 && lines <= done);
  }
  subprocess_free(&said);
}

int main(void) {
  expect_program("phase5_production", "onnx_runtime", program, sizeof program);
  make_photos();
  const struct CMUnitTest tests[] = {cmocka_unit_test(classes_come_as_a_table),
                                     cmocka_unit_test(results_do_not_depend_on_threads),
                                     cmocka_unit_test(lines_of_json_have_the_errors_too),
                                     cmocka_unit_test(pictures_come_out),
                                     cmocka_unit_test(colours_survive_a_network_of_one_channel),
                                     cmocka_unit_test(the_engine_computes_too),
                                     cmocka_unit_test(a_picture_is_never_overwritten_by_its_result),
                                     cmocka_unit_test(answers_that_are_not_finite_are_named),
                                     cmocka_unit_test(probabilities_are_known_by_finite_answers),
                                     cmocka_unit_test(a_network_that_fails_ends_the_run),
                                     cmocka_unit_test(folders_that_hold_themselves_are_read_once),
                                     cmocka_unit_test(a_model_is_shown),
                                     cmocka_unit_test(wrong_options_are_refused),
                                     cmocka_unit_test(bad_files_are_a_sentence),
                                     cmocka_unit_test(without_it_the_program_says_how_to_get_it),
                                     cmocka_unit_test(many_pictures_may_be_named),
                                     cmocka_unit_test(an_interrupt_keeps_what_is_done)};
  return TEST_MAIN("onnx_runtime", tests);
}
