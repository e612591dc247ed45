/* What a run leaves for people: the pictures must show what they claim, the right way round. */
#include "common/nn/html_report.h"

#include <sys/stat.h>

#include "common/nn/test_net.h"
#include "common/test.h"

enum { SIDE = 4, PIXELS = SIDE * SIDE, CLASSES = 10, COUNT = 6 };

/* Image i is one bright pixel, number pixel[i]; unit answer[k] sees pixel k, and the larger the weight the surer. So
 * images 1 to 4 are read wrong, the surest mistake is image 2, and images 1 and 4 are alike. */
static const int pixel[COUNT] = {0, 1, 2, 3, 1, 5};
static const unsigned char labels[COUNT] = {1, 4, 4, 9, 4, 7}, no_mistakes[COUNT] = {1, 9, 9, 4, 9, 7};
static const int answer[PIXELS] = {1, 9, 9, 4, 0, 7};
static const float sureness[PIXELS] = {3, 2, 5, 3, 0, 1};

static char directory[PATH_MAX];

static const char *in_directory(const char *name) {
  static char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static void fill_images(unsigned char *images) {
  memset(images, 0, COUNT * PIXELS);
  for (int i = 0; i < COUNT; i++) images[i * PIXELS + pixel[i]] = 255;
}

static void fill_weights(float *weights) {
  memset(weights, 0, CLASSES * PIXELS * sizeof(float));
  for (int k = 0; k < PIXELS; k++) weights[answer[k] * PIXELS + k] = sureness[k];
}

static void write_report(const unsigned char *truth) {
  unsigned char images[COUNT * PIXELS];
  int labels_of_run[COUNT];
  for (int i = 0; i < COUNT; i++) labels_of_run[i] = truth[i];
  fill_images(images);
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, images, labels_of_run};
  const DataNorm norm = {1, {0}, {1}};
  Model net;
  DeviceSet set;
  TrainState state = TrainState();
  state.epochs = 1;
  state.batch_size = state.train_images = 100;
  test_net_open(&net, shape1(PIXELS), CLASSES, DEVICE_CPU, 4);
  model_init(&net, 1); /* the bias is zero */
  fill_weights(net.parameters);
  device_set_create(&set, DEVICE_CPU, &test_batches, &host, COUNT, &norm);
  ReportAnswers answers;
  report_answers(&answers, &net, &set, &host, &data_mnist);
  report_write("test", &net, &answers, &state, directory);
  report_answers_free(&answers);
  device_set_destroy(&set);
  model_close(&net);
}

static void write_report_with_mistakes(void) { write_report(labels); }
static void write_report_without_mistakes(void) { write_report(no_mistakes); }

static void assert_picture(const char *name, const Image *expected) {
  Error err;
  Image image;
  if (image_read_rgb(in_directory(name), &image, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(image.width, expected->width);
  assert_int_equal(image.height, expected->height);
  assert_memory_equal(image.pixels, expected->pixels, (size_t)3 * image.width * image.height);
  image_free(&image);
}

static void the_table_counts_labels_in_rows(void **unused) {
  (void)unused;
  char output[8192];
  assert_int_equal(test_fork(write_report_with_mistakes, output, sizeof output), 0);
  if (!strstr(output, "most confused: 4 taken for 9: 3, 9 taken for 4: 1\n") ||
      !strstr(output, "accuracy 33.33%: 2 of 6") || !strstr(output, "4 of 6 test images are wrong"))
    fail_msg("%s", output);
}

/* "4->9" is a 4 that was read as 9. */
static void the_surest_mistakes_come_first(void **unused) {
  (void)unused;
  const int order[] = {2, 3, 1, 4};
  const char *const captions[] = {"4->9", "9->4", "4->9", "4->9"};
  char output[8192];
  unsigned char images[COUNT * PIXELS], tiles[4 * PIXELS];
  assert_int_equal(test_fork(write_report_with_mistakes, output, sizeof output), 0);
  fill_images(images);
  for (int i = 0; i < 4 * PIXELS; i++) tiles[i] = 255 - images[order[i / PIXELS] * PIXELS + i % PIXELS];
  Image expected = image_sheet_gray(tiles, 4, SIDE, SIDE, 4, 3, 10, captions);
  assert_picture("misclassified.png", &expected);
  image_free(&expected);
}

static void without_mistakes_there_is_no_picture_of_them(void **unused) {
  (void)unused;
  char output[8192];
  assert_int_equal(test_fork(write_report_with_mistakes, output, sizeof output), 0);
  assert_int_equal(access(in_directory("misclassified.png"), F_OK), 0);
  assert_int_equal(test_fork(write_report_without_mistakes, output, sizeof output), 0);
  assert_int_not_equal(access(in_directory("misclassified.png"), F_OK), 0);
  assert_non_null(strstr(output, "0 of 6 test images are wrong"));
}

/* Channel after channel becomes pixel after pixel, and a colour is not inverted. */
static void mistakes_in_colour_are_shown_in_colour(void **unused) {
  (void)unused;
  uint8_t images[2 * 3 * PIXELS], tiles[2 * PIXELS * 3];
  int truth[2] = {3, 150};
  for (int i = 0; i < 2 * 3 * PIXELS; i++) images[i] = (uint8_t)(7 * i);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < PIXELS; j++)
      for (int c = 0; c < 3; c++) tiles[(i * PIXELS + j) * 3 + c] = images[(i * 3 + c) * PIXELS + j];
  const DataSet host = {shape3(3, SIDE, SIDE), 2, 200, images, truth};
  ReportMistake mistakes[] = {{0, 3, 4, 0.9f}, {1, 150, 199, 0.5f}};
  const char *const captions[] = {"3->4", "150->199"};
  report_mistakes(mistakes, 2, &host, directory);
  Image expected = image_sheet_rgb(tiles, 2, SIDE, SIDE, 2, 3, 10, captions);
  assert_picture("misclassified.png", &expected);
  image_free(&expected);
}

/* ---- filters ---- */

static void every_unit_of_a_linear_layer_is_shown(void **unused) {
  (void)unused;
  char output[8192];
  float weights[CLASSES * PIXELS];
  fill_weights(weights);
  assert_int_equal(test_fork(write_report_with_mistakes, output, sizeof output), 0);
  Image expected = image_sheet_filters(weights, CLASSES, SIDE, SIDE, CLASSES, 20, 8);
  assert_picture("filters.png", &expected);
  image_free(&expected);
}

/* 4 filters over 3 channels are 4 rows of 3 tiles; 7 over one channel are two rows. */
static void every_filter_of_a_convolution_is_shown(void **unused) {
  (void)unused;
  float weights[4 * 3 * 5 * 5];
  test_random_fill(weights, 4 * 3 * 5 * 5, 1);
  Node node;
  Graph graph;
  Model net;
  memset(&node, 0, sizeof node);
  memset(&graph, 0, sizeof graph);
  memset(&net, 0, sizeof net);
  Param *w = &node.param[0];
  node.params = 1;
  w->trained = 1;
  w->rank = 4;
  graph.nodes = &node;
  graph.count = 1;
  net.graph = &graph;
  net.parameters = weights;
  const size_t shapes[][SHAPE_MAX_RANK] = {{4, 3, 5, 5}, {7, 1, 5, 5}};
  const int columns[] = {3, 6};
  for (int i = 0; i < 2; i++) {
    int count = (int)(shapes[i][0] * shapes[i][1]);
    memcpy(w->dim, shapes[i], sizeof w->dim);
    w->count = (size_t)count * 25;
    report_filters(&net, shape3(1, 28, 28), directory);
    Image expected = image_sheet_filters(weights, count, 5, 5, columns[i], 20, 8);
    assert_picture("filters.png", &expected);
    image_free(&expected);
  }
}

/* 3,000 rows of 30 tiles would be 71 million pixels: the first rows are shown. */
static void a_wide_layer_is_shown_in_part(void **unused) {
  (void)unused;
  enum { FILTERS = 3000, CHANNELS = 30, SHOWN = (REPORT_MAX_SIDE - 8) / 28 };
  static float weights[FILTERS * CHANNELS];
  test_random_fill(weights, FILTERS * CHANNELS, 2);
  Node node;
  Graph graph;
  Model net;
  memset(&node, 0, sizeof node);
  memset(&graph, 0, sizeof graph);
  memset(&net, 0, sizeof net);
  const size_t shape[] = {FILTERS, CHANNELS, 1, 1};
  Param *w = &node.param[0];
  node.params = 1;
  w->trained = 1;
  w->rank = 4;
  w->count = FILTERS * CHANNELS;
  memcpy(w->dim, shape, sizeof shape);
  graph.nodes = &node;
  graph.count = 1;
  net.graph = &graph;
  net.parameters = weights;
  report_filters(&net, shape3(CHANNELS, 28, 28), directory);
  Image expected = image_sheet_filters(weights, SHOWN * CHANNELS, 1, 1, CHANNELS, 20, 8);
  assert_picture("filters.png", &expected);
  image_free(&expected);
}

/* ---- learning curve ---- */

static void a_curve_holds_the_records_of_its_split(void **unused) {
  (void)unused;
  const TrainRecord records[] = {{1, 1, "train", 2.5, 0.125, 0, 0, 0, NAN, 0},
                                 {50, 1, "test", 1.5, 0.5, 0, 0, 0, NAN, 0},
                                 {50, 1, "train", 1.25, 0.625, 0, 0, 0, NAN, 0},
                                 {100, 2, "test", 0.5, 0.75, 0, 0, 0, NAN, 0}};
  ReportCurve train = report_curve(records, 4, "train", 50, 100), test = report_curve(records, 4, "test", 50, 100);
  assert_int_equal(train.count, 2);
  assert_int_equal(test.count, 2);
  assert_true(train.epoch[0] == 1.0 / 50 && train.epoch[1] == 1 && test.epoch[0] == 1 && test.epoch[1] == 2);
  assert_true(train.loss[0] == 2.5 && train.loss[1] == 1.25 && test.loss[0] == 1.5 && test.loss[1] == 0.5);
  assert_true(isnan(train.accuracy[0])); /* of the first moments */
  assert_true(train.accuracy[1] == 62.5 && test.accuracy[0] == 50 && test.accuracy[1] == 75);
  report_curve_free(&train);
  report_curve_free(&test);
}

static char *svg_of(const char *split, double loss, double accuracy) {
  Error err;
  TrainLog log;
  TrainState state = TrainState();
  state.epochs = 2;
  state.batch_size = 1;
  state.train_images = 50;
  state.step = 100;
  if (train_log_open(&log, directory, -1, &err) != 0) fail_msg("%s", err.message);
  for (long step = 50; step <= 100; step += 50) {
    TrainRecord record = train_record();
    record.step = step;
    record.epoch = step / 50;
    record.loss = loss / step;
    record.accuracy = accuracy;
    snprintf(record.split, sizeof record.split, "%s", split);
    train_log_write(&log, &record);
  }
  if (train_log_close(&log, &err) != 0) fail_msg("%s", err.message);
  unlink(in_directory("curve.svg"));
  unlink(in_directory("curve.png"));
  report_curves("test", &state, directory);
  assert_int_equal(access(in_directory("curve.png"), F_OK), 0);
  FILE *file = fopen(in_directory("curve.svg"), "r");
  if (file == NULL) fail_msg("%s is missing", in_directory("curve.svg"));
  static char svg[1 << 17];
  svg[fread(svg, 1, sizeof svg - 1, file)] = '\0';
  fclose(file);
  return svg;
}

/* A series without points is left out, legend and all, which tells where each split's points went. */
static void each_curve_has_its_own_name(void **unused) {
  (void)unused;
  if (system("gnuplot --version >/dev/null 2>&1") != 0) {
    print_message("skipped: gnuplot is not installed\n");
    skip();
  }
  const char *const names[] = {">training loss<", ">test loss<", ">training accuracy<", ">test accuracy<"};
  const int shown[][4] = {{1, 0, 0, 0}, {0, 0, 1, 0}, {0, 1, 0, 0}, {0, 0, 0, 1}, {1, 0, 1, 0}};
  for (int i = 0; i < 5; i++) {
    const char *svg =
        svg_of(i == 2 || i == 3 ? "test" : "train", i == 1 || i == 3 ? NAN : 2, i % 2 || i == 4 ? 0.5 : NAN);
    for (int j = 0; j < 4; j++)
      if ((strstr(svg, names[j]) != NULL) != shown[i][j]) fail_msg("case %d: %s", i, names[j]);
  }
}

/* ---- the page ---- */

static HtmlReport page;
static double page_smoothing, page_mixup; /* of its run */

/* Every element ends that must end, no attribute is cut, and nothing is loaded from elsewhere. */
static void assert_page_is_whole(const char *html) {
  static const char *const alone[] = {"meta", "img", "br", "path", "polyline"};
  char open[64][16];
  int depth = 0;
  for (const char *at = html; (at = strchr(at, '<')) != NULL;) {
    char name[16];
    const char *end = strchr(at, '>');
    assert_non_null(end);
    const int closes = at[1] == '/';
    const size_t length = strcspn(at + 1 + closes, " >/");
    snprintf(name, sizeof name, "%.*s", (int)length, at + 1 + closes);
    int skipped = at[1] == '!' || end[-1] == '/';
    for (int i = 0; i < 5; i++) skipped |= strcmp(name, alone[i]) == 0;
    if (closes && (depth == 0 || strcmp(open[--depth], name) != 0)) fail_msg("</%s> closes nothing: %.80s", name, at);
    if (!closes && !skipped) snprintf(open[depth++], sizeof open[0], "%s", name);
    assert_true(depth < 64);
    at = end;
  }
  assert_int_equal(depth, 0);
  assert_null(strstr(html, "http:"));
  assert_null(strstr(html, "https:"));
  assert_null(strstr(html, "<script"));
  assert_null(strstr(html, "url("));
  for (const char *at = html; (at = strstr(at, "src=\"")) != NULL; at++)
    assert_int_equal(strncmp(at, "src=\"data:image/png;base64,", 27), 0);
}

/* The page of a run of two epochs; `looked`: at the test set. */
static const char *page_of(const ReportAnswers *answers, int running) {
  static char html[1 << 18];
  Error err;
  TrainLog log;
  TrainState state = TrainState();
  HtmlRows figures;
  memset(&page, 0, sizeof page);
  memset(&figures, 0, sizeof figures);
  page.title = "a <network> & more";
  page.directory = directory;
  html_row(&page.settings, "data-dir", "%s", "\"><script>alert(1)</script>");
  html_row(&page.environment, "system", "%s", "\xFF<b>");
  html_row(&figures, "test accuracy", "%.2f %%", 33.333);
  state.batch_size = 1;
  state.train_images = 50;
  state.step = 100;
  state.label_smoothing = page_smoothing;
  state.mixup = page_mixup;
  if (train_log_open(&log, directory, -1, &err) != 0) fail_msg("%s", err.message);
  for (long step = 25; step <= 125; step += 25) {
    TrainRecord record = train_record();
    snprintf(record.split, sizeof record.split, "%s", step % 50 ? "train" : "test");
    record.step = step;
    record.loss = 1.0 / (double)step;
    record.accuracy = 0.5;
    record.lr = 0.25;
    train_log_write(&log, &record);
  }
  if (train_log_close(&log, &err) != 0 ||
      html_report_write(&page, &state, &figures, "<i>going", running, answers, &err) != 0)
    fail_msg("%s", err.message);
  const size_t size = test_read_file(in_directory("report.html"), html, sizeof html - 1);
  html[size] = '\0';
  assert_page_is_whole(html);
  return html;
}

static void assert_page(const char *html, const char *const *there, const char *const *absent) {
  for (; *there; there++)
    if (!strstr(html, *there)) fail_msg("%s is missing in\n%s", *there, html);
  for (; *absent; absent++)
    if (strstr(html, *absent)) fail_msg("%s is in\n%s", *absent, html);
}

/* What the network was asked: the images above. */
static void answers_of(ReportAnswers *answers, DataSet *host, uint8_t *images, int *truth, const DataSource *source) {
  const DataNorm norm = {1, {0}, {1}};
  const DataSet set = {shape3(1, SIDE, SIDE), COUNT, CLASSES, images, truth};
  Model net;
  DeviceSet on_device;
  *host = set;
  fill_images(images);
  for (int i = 0; i < COUNT; i++) truth[i] = labels[i];
  test_net_open(&net, shape1(PIXELS), CLASSES, DEVICE_CPU, 4);
  model_init(&net, 1);
  fill_weights(net.parameters);
  device_set_create(&on_device, DEVICE_CPU, &test_batches, host, COUNT, &norm);
  report_answers(answers, &net, &on_device, host, source);
  device_set_destroy(&on_device);
  model_close(&net);
}

static void the_page_of_a_run_says_all(void **unused) {
  (void)unused;
  ReportAnswers answers;
  DataSet host;
  uint8_t images[COUNT * PIXELS];
  int truth[COUNT];
  answers_of(&answers, &host, images, truth, &data_fashion_mnist);
  assert_true(answers.count == COUNT && answers.wrong == 4 && answers.worst_count == 4);
  /* The surest mistake has the highest loss: e^5 against 9 others, its class among them. */
  const int order[] = {2, 3, 1, 4};
  for (int i = 0; i < 4; i++) assert_int_equal(answers.worst[i].index, order[i]);
  assert_true(fabs(answers.worst[0].loss - log(exp(5.0) + 9)) < 1e-4);
  const char *const there[] = {"<h1>a &lt;network&gt; &amp; more</h1>",
                               "&lt;i&gt;going",
                               "33.33 %",
                               "<b>Loss</b>",
                               "k1\">test</span>",
                               "epoch 0.5: 0.04<",
                               "<b>Learning rate</b>",
                               "Of the 6 test images",
                               "4 are wrong",
                               "--a:0.80\">3</td>",
                               "coat taken for boot: 3; boot taken for coat: 1",
                               "<b>coat → boot</b><br>loss 5.06<br>image 2<",
                               ">no image</td>",
                               "&quot;&gt;&lt;script&gt;alert(1)",
                               "?&lt;b&gt;",
                               NULL};
  const char *const absent[] = {"refresh", "validation", "Norm of", "epoch 2.5", NULL};
  assert_page(page_of(&answers, 0), there, absent);
  report_answers_free(&answers);
}

/* A training loss above the validation loss then needs a reason. */
static void changed_labels_are_said_under_the_losses(void **unused) {
  (void)unused;
  const char *const said[] = {"The training losses are those of smoothed labels (--label-smoothing); the other losses",
                              "those of mixed labels (--mixup);",
                              "those of smoothed and mixed labels (--label-smoothing, --mixup);"};
  for (int i = 0; i < 4; i++) {
    page_smoothing = i == 0 || i == 2 ? 0.1 : 0;
    page_mixup = i == 1 || i == 2 ? 0.2 : 0;
    const char *const there[] = {i < 3 ? said[i] : "<b>Loss</b>", NULL};
    const char *const absent[] = {i < 3 ? NULL : "The training losses are", NULL};
    assert_page(page_of(NULL, 1), there, absent);
  }
}

static void what_a_run_does_not_have_is_left_out(void **unused) {
  (void)unused;
  const char *const there[] = {"<meta http-equiv=\"refresh\" content=\"5\">", "<b>Loss</b>", "Settings", NULL};
  const char *const absent[] = {"Confusion", "mistakes</h2>", NULL};
  assert_page(page_of(NULL, 1), there, absent);
  /* Points instead of images, and no mistakes. */
  ReportAnswers answers;
  const DataSet points = {shape1(2), 3, 2, NULL, NULL};
  int confusion[4] = {1, 0, 0, 2};
  memset(&answers, 0, sizeof answers);
  answers.classes = 2;
  answers.count = 3;
  answers.confusion = confusion;
  answers.things = "points";
  answers.test = &points;
  answers.worst_count = 1;
  const char *const points_there[] = {"Of the 3 test images after the last epoch, 0 are wrong", "100.0 %", NULL};
  const char *const points_absent[] = {"Worst mistakes", "Most confused", NULL};
  assert_page(page_of(&answers, 0), points_there, points_absent);
  /* Too many classes for a table. */
  static int wide[30 * 30];
  wide[3] = 2;
  wide[31 * 29] = 1;
  answers.classes = 30;
  answers.confusion = wide;
  const char *const wide_there[] = {"With 30 classes the matrix is left out", "0 taken for 3: 2", NULL};
  const char *const wide_absent[] = {"<table class=\"matrix\"", NULL};
  assert_page(page_of(&answers, 0), wide_there, wide_absent);
}

/* Of many mistakes the worst ones, in order. */
static void the_worst_mistakes_are_kept(void **unused) {
  (void)unused;
  static ReportAnswers answers;
  for (int i = 0; i < 100; i++) {
    const ReportWorst mistake = {i, 0, 1, (double)(i * 37 % 50)};
    report_add_worst(&answers, mistake);
  }
  assert_int_equal(answers.worst_count, REPORT_WORST);
  for (int i = 0; i < REPORT_WORST; i++) {
    assert_true(answers.worst[i].loss == 49 - i / 2);
    if (i % 2) assert_true(answers.worst[i].index == answers.worst[i - 1].index + 50); /* the first of equals first */
  }
}

/* ---- predictions ---- */

static const float probabilities[CLASSES] = {0.02f, 0, 0.01f, 0.5f, 0.02f, 0.25f, 0, 0, 0.125f, 0.075f};

static void predict(void) { json_decref(report_prediction("three.png", probabilities, CLASSES, NULL)); }

static void a_prediction_names_the_three_likeliest(void **unused) {
  (void)unused;
  char output[512];
  assert_int_equal(test_fork(predict, output, sizeof output), 0);
  assert_string_equal(output, "three.png: 3 (50.0 %), 5 (25.0 %), 8 (12.5 %)\n");
  json_t *result = report_prediction("three.png", probabilities, CLASSES, NULL), *top = json_object_get(result, "top");
  assert_string_equal(json_string_value(json_object_get(result, "file")), "three.png");
  assert_int_equal(json_array_size(top), 3);
  const int expected[] = {3, 5, 8};
  for (int i = 0; i < 3; i++) {
    json_t *entry = json_array_get(top, i);
    assert_int_equal(json_integer_value(json_object_get(entry, "label")), expected[i]);
    assert_true(json_number_value(json_object_get(entry, "probability")) == probabilities[expected[i]]);
  }
  json_decref(result);
  result = report_prediction("coat.png", probabilities, CLASSES, data_fashion_names);
  assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(result, "top"), 0), "name")),
                      "dress");
  json_decref(result);
  const float alike[3] = {0.25f, 0.375f, 0.375f}; /* the first of equals */
  assert_int_equal(report_answer(alike, 3), 1);
}

int main(void) {
  mkdir(test_path(directory, sizeof directory, "report"), 0777);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_counts_labels_in_rows),
      cmocka_unit_test(the_surest_mistakes_come_first),
      cmocka_unit_test(without_mistakes_there_is_no_picture_of_them),
      cmocka_unit_test(mistakes_in_colour_are_shown_in_colour),
      cmocka_unit_test(every_unit_of_a_linear_layer_is_shown),
      cmocka_unit_test(every_filter_of_a_convolution_is_shown),
      cmocka_unit_test(a_wide_layer_is_shown_in_part),
      cmocka_unit_test(a_curve_holds_the_records_of_its_split),
      cmocka_unit_test(each_curve_has_its_own_name),
      cmocka_unit_test(the_page_of_a_run_says_all),
      cmocka_unit_test(what_a_run_does_not_have_is_left_out),
      cmocka_unit_test(changed_labels_are_said_under_the_losses),
      cmocka_unit_test(the_worst_mistakes_are_kept),
      cmocka_unit_test(a_prediction_names_the_three_likeliest),
  };
  return TEST_MAIN("report", tests);
}
