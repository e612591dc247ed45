/* One neuron, and a hidden layer before it: gradients against central differences of a loss in double, the two devices
 * against each other, what can be learned and what cannot, runs that diverge; the points and the drawing. */
#include "phase2_mlp/point_classifier/point_classifier.cuh"

#include "common/lesson/verify.h"
#include "common/test.h"
#include "phase2_mlp/02_xor/hidden_layer_lesson.cuh"

/* ---- the backward pass ---- */

template <Activation KIND>
static void check_backward(void) {
  Lesson lesson = hidden_backward_lesson<KIND>();
  LessonVersion version = lesson_version(activation_name(KIND), (LessonLauncher)hidden_backward_gpu, "");
  LessonResult result;
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
}

static void every_activation_lets_the_gradient_through(void **state) {
  (void)state;
  test_requires_gpu();
  check_backward<ACTIVATION_RELU>();
  check_backward<ACTIVATION_LEAKY_RELU>();
  check_backward<ACTIVATION_SIGMOID>();
  check_backward<ACTIVATION_TANH>();
}

/* ---- gradients ---- */

/* The mean loss of n points in double, by the references alone; parameters (count) in the order of a PointNet. */
static double loss_in_double(const PointNet *net, const double *parameters, const double *x, const double *t, int n) {
  const double *w2 = parameters, *b2 = w2 + net->last, *w1 = b2 + 1, *b1 = w1 + 2 * net->hidden;
  double *h = (double *)xmalloc((size_t)n * (net->hidden + 1) * sizeof *h), *z = (double *)xmalloc(n * sizeof *z),
         total;
  if (net->hidden > 0) {
    linear_forward_cpu(h, x, w1, b1, n, 2, net->hidden);
    activation_forward_cpu(net->activation, h, h, (size_t)n * net->hidden);
  }
  linear_forward_cpu(z, net->hidden > 0 ? h : x, w2, b2, n, net->last, 1);
  bce_logits_cpu(&total, (double *)NULL, z, t, (size_t)n);
  free(h);
  free(z);
  return total;
}

/* Every gradient of a network against (loss(p + e) - loss(p - e)) / 2e. */
static void check_gradients(Device device, int hidden, Activation activation, int n) {
  const double e = 1e-6;
  Points points = points_xor(n, 0.9f, 5);
  PointNet net = point_net_create(device, hidden, activation, n);
  size_t bytes = (size_t)n * sizeof(float);
  float *x = (float *)device_alloc(device, 2 * bytes), *t = (float *)device_alloc(device, bytes);
  float *gradients = (float *)xmalloc(net.count * sizeof *gradients),
        *parameters = (float *)xmalloc(net.count * sizeof(float));
  double *p = (double *)xmalloc(net.count * sizeof *p), *x2 = (double *)xmalloc(2 * n * sizeof *x2), t2[64];
  float loss;
  device_upload(device, x, points.x, 2 * bytes);
  device_upload(device, t, points.t, bytes);
  test_random_fill(parameters, net.count, 7); /* biases, too */
  device_upload(device, net.parameters, parameters, net.count * sizeof(float));
  point_net_forward(&net, x, n);
  point_net_backward(&net, x, t, n);
  device_download(device, gradients, net.gradients, net.count * sizeof *gradients);
  device_download(device, &loss, net.total, sizeof loss);
  for (size_t i = 0; i < net.count; i++) p[i] = parameters[i];
  for (int i = 0; i < 2 * n; i++) x2[i] = points.x[i];
  for (int i = 0; i < n; i++) t2[i] = points.t[i];
  double expected = loss_in_double(&net, p, x2, t2, n);
  if (!(fabs(loss - expected) <= 1e-5 * (1 + expected))) fail_msg("loss %.9g, expected %.9g", (double)loss, expected);
  for (size_t i = 0; i < net.count; i++) {
    double keep = p[i];
    p[i] = keep + e;
    double above = loss_in_double(&net, p, x2, t2, n);
    p[i] = keep - e;
    double numeric = (above - loss_in_double(&net, p, x2, t2, n)) / (2 * e);
    p[i] = keep;
    if (!(fabs(gradients[i] - numeric) <= 1e-5 * (1 + fabs(numeric))))
      fail_msg("%s, %d hidden %s, %d points: gradient %zu is %.9g, by differences %.9g", device_name(device), hidden,
               activation_name(activation), n, i, (double)gradients[i], numeric);
  }
  device_free(device, x);
  device_free(device, t);
  free(gradients);
  free(parameters);
  free(p);
  free(x2);
  points_free(&points);
  point_net_destroy(&net);
}

static void check_all_gradients(Device device) {
  const int widths[] = {0, 1, 2, 3, 127}, sizes[] = {1, 3, 33};
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
      for (int kind = 0; kind < ACTIVATIONS; kind++) check_gradients(device, widths[w], (Activation)kind, sizes[n]);
}

static void gradients_match_central_differences(void **state) {
  (void)state;
  check_all_gradients(DEVICE_CPU);
}

static void gradients_of_the_kernels_do_too(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_gradients(DEVICE_GPU);
}

/* ---- learning ---- */

static PointRun run_of(int epochs, int batch_size, double lr, double *loss) {
  PointRun run = {"", epochs, batch_size, lr, 0, NULL, 0, loss};
  return run;
}

static PointScore train(Device device, const Points *points, int hidden, Activation activation, uint64_t seed,
                        const PointRun *run) {
  PointNet net = point_net_create(device, hidden, activation, points->count);
  PointScore score;
  Error err;
  point_net_init(&net, seed);
  if (point_net_train(&net, points, run, NULL, &score, &err) != 0) fail_msg("%s", err.message);
  point_net_destroy(&net);
  return score;
}

/* From any start, whatever the line; a batch of one, of all, of more than there are, and one that leaves a rest. */
static void a_neuron_finds_the_line(void **state) {
  (void)state;
  const int batches[] = {1, 7, 100, 1000};
  for (uint64_t seed = 0; seed < 5; seed++)
    for (size_t b = 0; b < 4; b++) {
      Points points = points_separable(100, 0.3f, seed);
      PointRun run = run_of(300, batches[b], 1, NULL);
      PointScore score = train(DEVICE_CPU, &points, 0, ACTIVATION_TANH, seed, &run);
      if (score.accuracy < 1 || score.loss > 0.1)
        fail_msg("seed %d, batch %d: loss %g, accuracy %g", (int)seed, batches[b], score.loss, score.accuracy);
      points_free(&points);
    }
}

/* ln 2, whatever the seed and the number of points; with 8 hidden neurons it falls to nearly nothing. */
static void xor_needs_a_hidden_layer(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    Points points = points_xor(40, 0.4f, seed);
    PointRun run = run_of(500, 40, 1, NULL);
    PointScore one = train(DEVICE_CPU, &points, 0, ACTIVATION_TANH, seed, &run);
    assert_true(fabs(one.loss - log(2.0)) < 1e-6);
    PointScore hidden = train(DEVICE_CPU, &points, 8, ACTIVATION_TANH, seed, &run);
    assert_true(hidden.accuracy == 1 && hidden.loss < 0.05);
    PointScore alone = train(DEVICE_CPU, &points, 1, ACTIVATION_TANH, seed, &run);
    assert_true(alone.accuracy < 1); /* a hidden neuron draws one line, as before */
    points_free(&points);
  }
}

/* The same numbers on both devices, epoch by epoch, up to the order in which sums were rounded. */
static void devices_agree(void **state) {
  (void)state;
  test_requires_gpu();
  enum { EPOCHS = 30 };
  const int widths[] = {0, 1, 3, 127};
  Points points = points_xor(44, 0.4f, 3);
  for (size_t w = 0; w < 4; w++) {
    double cpu[EPOCHS + 1], gpu[EPOCHS + 1];
    PointRun run = run_of(EPOCHS, 20, 0.5, cpu); /* 20, 20 and the last 4 */
    train(DEVICE_CPU, &points, widths[w], ACTIVATION_TANH, 1, &run);
    run.loss = gpu;
    train(DEVICE_GPU, &points, widths[w], ACTIVATION_TANH, 1, &run);
    for (int i = 0; i <= EPOCHS; i++)
      if (!(fabs(cpu[i] - gpu[i]) < 1e-5))
        fail_msg("%d hidden, epoch %d: %.9g on the CPU, %.9g on the GPU", widths[w], i, cpu[i], gpu[i]);
    assert_true(cpu[EPOCHS] != cpu[0]);
  }
  points_free(&points);
}

static void a_run_ends_when_it_is_solved(void **state) {
  (void)state;
  Points points = points_xor(40, 0.4f, 1);
  PointRun run = run_of(1000, 40, 1, NULL);
  run.solved = 1;
  PointScore score = train(DEVICE_CPU, &points, 8, ACTIVATION_TANH, 1, &run);
  assert_true(score.accuracy == 1 && score.epochs > 0 && score.epochs < 1000);
  points_free(&points);
}

/* What is not finite ends the run at that step; what has grown, at the end. */
static void a_run_that_diverges_says_so(void **state) {
  (void)state;
  Points points = points_xor(40, 0.4f, 1);
  PointNet net = point_net_create(DEVICE_CPU, 8, ACTIVATION_LEAKY_RELU, points.count);
  PointRun run = run_of(50, 20, 1e30, NULL);
  PointScore score;
  Error err;
  point_net_init(&net, 1);
  assert_int_equal(point_net_train(&net, &points, &run, NULL, &score, &err), -1);
  if (strstr(err.message, "the loss is not finite at step ") == NULL || strstr(err.message, "; try --lr=1e+29") == NULL)
    fail_msg("%s", err.message);
  point_net_destroy(&net);
  net = point_net_create(DEVICE_CPU, 0, ACTIVATION_TANH, points.count);
  run.lr = 100;
  point_net_init(&net, 1);
  assert_int_equal(point_net_train(&net, &points, &run, NULL, &score, &err), -1);
  if (strstr(err.message, "the loss has grown to ") == NULL || strstr(err.message, "step 100 (epoch 50)") == NULL)
    fail_msg("%s", err.message);
  point_net_destroy(&net);
  points_free(&points);
}

/* ---- points ---- */

static void points_are_what_they_are_called(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    Points points = points_separable(101, 0.25f, seed), again = points_separable(101, 0.25f, seed);
    assert_memory_equal(points.x, again.x, 101 * 2 * sizeof(float));
    int ones = 0;
    for (int i = 0; i < 101; i++) ones += points.t[i] == 1;
    assert_int_equal(ones, 50);
    /* Some line leaves a lane of 2 x 0.25 between the classes: look for its direction. */
    double widest = -INFINITY;
    for (int step = 0; step < 3600; step++) {
      double angle = step * 3.14159265358979 / 1800, low = INFINITY, high = -INFINITY;
      for (int i = 0; i < 101; i++) {
        double along = points.x[2 * i] * cos(angle) + points.x[2 * i + 1] * sin(angle);
        if (points.t[i] == 1) low = fmin(low, along);
        if (points.t[i] == 0) high = fmax(high, along);
      }
      widest = fmax(widest, low - high);
    }
    assert_true(widest > 0.49);
    assert_true(points_reach(&points) > 1);
    points_free(&points);
    points_free(&again);
    points = points_xor(200, 0.4f, seed);
    double sum[2] = {0, 0};
    for (int i = 0; i < 200; i++) {
      assert_true(fabsf(points.x[2 * i]) >= 0.6f && fabsf(points.x[2 * i + 1]) <= 1.4f);
      assert_int_equal((points.x[2 * i] > 0) != (points.x[2 * i + 1] > 0), (int)points.t[i]);
      for (int k = 0; k < 2; k++) sum[k] += points.x[2 * i + k];
    }
    assert_true(sum[0] == 0 && sum[1] == 0); /* mirror images */
    points_free(&points);
  }
}

/* ---- drawing ---- */

/* A frame of a network that says 1 right of the middle; one point of each class on the right side, one on the wrong. */
static void the_plane_is_drawn(void **state) {
  (void)state;
  Points points = points_new(4);
  const float x[8] = {-1, -1, 1, 1, -1, 1, 1, -1}, t[4] = {0, 1, 1, 0};
  memcpy(points.x, x, sizeof x);
  memcpy(points.t, t, sizeof t);
  Surface surface = surface_make("A \"title\"\nof 'two' lines", &points);
  assert_true(fabsf(surface.reach - 1.1f) < 1e-6f);
  Frame *frame = surface_add(&surface);
  float *places = surface_places(&surface);
  assert_true(places[0] == -surface.reach && fabsf(places[2 * SURFACE_PLACES - 1] - surface.reach) < 1e-6f);
  for (int i = 0; i < SURFACE_PLACES; i++) frame->p[i] = places[2 * i] > 0 ? 0.9f : 0.1f;
  snprintf(frame->title, sizeof frame->title, "a frame");
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  surface_print(out, &surface, frame);
  fclose(out);
  char *row[SURFACE_ROWS];
  assert_string_equal(strtok(text, "\n"), "a frame");
  for (int i = 0; i < SURFACE_ROWS; i++) {
    row[i] = strtok(NULL, "\n");
    assert_non_null(row[i]);
    assert_int_equal(strlen(row[i]), SURFACE_COLUMNS + 4);
    assert_true(row[i][20] == ' ' && row[i][40] == '.');
  }
  assert_null(strtok(NULL, "\n"));
  const char *top = row[0], *bottom = row[SURFACE_ROWS - 1]; /* reach is 1.1, a row is 0.105 */
  assert_true(strchr(top, 'X') != NULL && strchr(top, 'X') < strchr(top, 'x'));
  assert_true(strchr(bottom, 'o') != NULL && strchr(bottom, 'o') < strchr(bottom, 'O'));
  free(text);
  char path[512];
  Error err;
  for (int i = 1; i < SURFACE_FRAMES; i++) memcpy(surface_add(&surface)->p, frame->p, SURFACE_PLACES * sizeof(float));
  for (int i = 1; i < SURFACE_FRAMES; i++) surface.frame[i].title[0] = '\0';
  if (surface_write(&surface, test_path(path, sizeof path, "surface.png"), &err) != 0 &&
      strstr(err.message, "gnuplot is not installed") == NULL)
    fail_msg("%s", err.message);
  free(places);
  surface_free(&surface);
  points_free(&points);
}

/* As many frames as were asked for, the last epoch always. */
static void frames_lie_where_most_is_learned(void **state) {
  (void)state;
  const struct {
    int epochs, frames;
    const char *expected;
  } cases[] = {{20, 6, "0 2 3 6 11 20"}, {500, 5, "0 5 22 106 500"}, {1, 6, "0 1"}, {3, 1, "3"}, {9, 2, "0 9"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    PointRun run = run_of(cases[i].epochs, 1, 1, NULL);
    char text[128] = "";
    run.frames = cases[i].frames;
    for (int epoch = 0; epoch <= run.epochs; epoch++)
      if (point_run_draws(&run, epoch))
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", text[0] == '\0' ? "" : " ", epoch);
    assert_string_equal(text, cases[i].expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_activation_lets_the_gradient_through),
      cmocka_unit_test(gradients_match_central_differences),
      cmocka_unit_test(gradients_of_the_kernels_do_too),
      cmocka_unit_test(a_neuron_finds_the_line),
      cmocka_unit_test(xor_needs_a_hidden_layer),
      cmocka_unit_test(devices_agree),
      cmocka_unit_test(a_run_ends_when_it_is_solved),
      cmocka_unit_test(a_run_that_diverges_says_so),
      cmocka_unit_test(points_are_what_they_are_called),
      cmocka_unit_test(the_plane_is_drawn),
      cmocka_unit_test(frames_lie_where_most_is_learned),
  };
  return TEST_MAIN("point_net", tests);
}
