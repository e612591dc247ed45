#include "common/plot.h"
#include "common/runfiles.h"
#include "common/test.h"

#include <dirent.h>

enum { STEPS = 100 };

static double x[STEPS], loss[STEPS], accuracy[STEPS];
static PlotSeries series[] = {{"training loss", x, loss, STEPS, 0}, {"test accuracy", x, accuracy, 20, 1}};
static Plot plot = {"LeNet-5 on MNIST", "step", "loss", "accuracy", 0, 0, series, 2};
static char folder[PATH_MAX], usual_path[4096], start[PATH_MAX];

static const char *slurp(const char *path, size_t *size) {
  static char bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_msg("%s is missing", path);
  *size = fread(bytes, 1, sizeof bytes - 1, file);
  bytes[*size] = '\0';
  fclose(file);
  return bytes;
}

static int files_in_folder(void) {
  int count = 0;
  DIR *files = opendir(folder);
  assert_non_null(files);
  for (const struct dirent *file; (file = readdir(files)) != NULL;)
    count += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0;
  closedir(files);
  return count;
}

/* Each test begins in a new folder, with smooth curves and the usual PATH. */
static int setup(void **state) {
  static int number;
  char name[32];
  (void)state;
  for (int i = 0; i < STEPS; i++) {
    x[i] = i;
    loss[i] = 2.3 * exp(-i / 20.0);
    accuracy[i] = 1 - 0.9 * exp(-i / 5.0);
  }
  setenv("PATH", usual_path, 1);
  snprintf(name, sizeof name, "plot%d", number++);
  return make_directories(test_path(folder, sizeof folder, name), NULL) || chdir(folder);
}

static void need_gnuplot(void) {
  Error err;
  if (plot_write(&plot, "probe.svg", &err) != 0 && strstr(err.message, "not installed") != NULL) skip();
  unlink("probe.svg");
}

/* A stand-in for gnuplot that runs this shell script. */
static void fake_gnuplot(const char *body) {
  char path[2 * PATH_MAX];
  assert_int_equal(make_directories("bin", NULL), 0);
  FILE *script = fopen("bin/gnuplot", "w");
  assert_non_null(script);
  fprintf(script, "#!/bin/sh\n%s\n", body);
  fclose(script);
  assert_int_equal(chmod("bin/gnuplot", 0755), 0);
  snprintf(path, sizeof path, "%s/bin", folder);
  setenv("PATH", path, 1);
}

static void draws_svg(void **state) {
  (void)state;
  need_gnuplot();
  size_t size;
  Error err;
  assert_int_equal(plot_write(&plot, "curve.svg", &err), 0);
  const char *svg = slurp("curve.svg", &size);
  assert_int_equal(strncmp(svg, "<?xml", 5), 0);
  assert_non_null(strstr(svg, "</svg>"));
  const char *texts[] = {"LeNet-5 on MNIST", "step", "loss", "accuracy", "training loss", "test accuracy"};
  for (int i = 0; i < 6; i++) {
    char element[64];
    snprintf(element, sizeof element, "<text>%s</text>", texts[i]);
    if (strstr(svg, element) == NULL) fail_msg("no %s in the picture", element);
  }
  assert_non_null(strstr(svg, "fill=\"#ffffff\""));            /* the background */
  assert_non_null(strstr(svg, "stroke='rgb(  0, 114, 178)'")); /* the colours of both lines */
  assert_non_null(strstr(svg, "stroke='rgb(213,  94,   0)'"));
  /* The 20 points of the second line are marked, and the one in the legend; the 100 of the first are not. */
  assert_int_equal(test_count(svg, "<use xlink:href='#gpPt6' transform="), 20 + 1);
}

static void draws_png(void **state) {
  (void)state;
  need_gnuplot();
  static const unsigned char head[] = {0x89, 'P', 'N', 'G', '\r', '\n', 26, '\n', 0, 0, 0, 13,
                                       'I',  'H', 'D', 'R', 0,    0,    5,  160,  0, 0, 3, 132}; /* 1440 x 900 */
  size_t size, empty_size;
  plot.log_y = 1;
  assert_int_equal(plot_write(&plot, "curve.png", NULL), 0);
  plot.log_y = 0;
  const char *png = slurp("curve.png", &size);
  assert_memory_equal(png, head, sizeof head);
  assert_memory_equal(png + size - 8, "IEND", 4);
  Plot dot = plot;
  dot.series_count = 1;
  series[0].count = 1;
  assert_int_equal(plot_write(&dot, "dot.png", NULL), 0);
  series[0].count = STEPS;
  slurp("dot.png", &empty_size);
  assert_true(size > empty_size + 5000); /* the curves take room */
  assert_int_equal(files_in_folder(), 2);
}

static void leaves_out_what_cannot_be_drawn(void **state) {
  (void)state;
  need_gnuplot();
  size_t size;
  Error err;
  loss[3] = NAN;
  loss[4] = INFINITY;
  loss[5] = 0;
  loss[6] = -1;
  plot.log_y = 1;
  assert_int_equal(plot_write(&plot, "log.svg", &err), 0);
  for (int i = 0; i < STEPS; i++) loss[i] = NAN; /* one of two is empty */
  assert_int_equal(plot_write(&plot, "one.svg", &err), 0);
  const char *svg = slurp("one.svg", &size);
  assert_null(strstr(svg, "<text>training loss</text>"));
  assert_non_null(strstr(svg, "<text>test accuracy</text>"));
  for (int i = 0; i < STEPS; i++) accuracy[i] = NAN;
  assert_int_equal(plot_write(&plot, "none.svg", &err), -1);
  assert_non_null(strstr(err.message, "none.svg is not drawn: there is not one point"));
  plot.log_y = 0;
  assert_int_equal(access("none.svg", F_OK), -1);
}

/* Nothing in a title or a path may run: each of these would leave a file "pwned" behind. */
static void titles_and_paths_are_only_text(void **state) {
  (void)state;
  need_gnuplot();
  const char *hostile[] = {
      "`touch pwned`",
      "$(touch pwned)",
      "\"; system(\"touch pwned\"); \"",
      "'; system('touch pwned'); '",
      "x'\nsystem 'touch pwned'\n'",
      "x\nset output 'pwned'\nEND",
      "END\n!touch pwned\n",
      "'.system('touch pwned').'",
      "backslash \\",
      "\\'. system('touch pwned') #",
      "@name %s %d {/Symbol a} a_b^c ~ & < > \x01\x1b[2J \r",
      "",
  };
  for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
    Plot bad = {hostile[i], hostile[i], hostile[i], hostile[i], 0, 0, series, 2};
    char path[128];
    Error err;
    size_t size;
    series[0].name = hostile[i];
    snprintf(path, sizeof path, "%s.svg", hostile[i]);
    for (char *slash = path; (slash = strchr(slash, '/')) != NULL;) *slash = '|';
    if (plot_write(&bad, path, &err) != 0) fail_msg("%s: %s", hostile[i], err.message);
    const char *svg = slurp(path, &size);
    assert_non_null(strstr(svg, "</svg>"));
    if (i < 2) assert_true(test_count(svg, hostile[i]) >= 5); /* three titles, the right one, and the series */
    if (i == 3) assert_non_null(strstr(svg, "'; system('touch pwned'); '"));
    if (i == 10) assert_non_null(strstr(svg, "@name %s %d {/Symbol a} a_b^c ~ &amp; &lt; > [2J </text>"));
    assert_int_equal(access("pwned", F_OK), -1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(files_in_folder(), 0);
  }
  series[0].name = "training loss";
}

static void without_gnuplot_training_goes_on(void **state) {
  (void)state;
  Error err;
  size_t size;
  fake_gnuplot("exit 0");
  assert_int_equal(unlink("bin/gnuplot"), 0);
  assert_int_equal(plot_write(&plot, "curve.svg", &err), -1);
  assert_string_equal(err.message, "curve.svg is not drawn: gnuplot is not installed; apt install gnuplot-nox");
  int saved = dup(2);
  assert_non_null(freopen("notes", "w", stderr));
  assert_int_equal(plot_or_note(&plot, "curve.svg"), -1);
  assert_int_equal(plot_or_note(&plot, "other.svg"), -1);
  fflush(stderr);
  dup2(saved, 2);
  const char *notes = slurp("notes", &size);
  assert_int_equal(test_count(notes, "gnuplot-nox\n"), 1); /* said once */
  assert_int_equal(test_count(notes, "\n"), 1);
  assert_int_equal(files_in_folder(), 2); /* bin and notes */
}

static void a_failure_leaves_the_old_picture(void **state) {
  (void)state;
  Error err;
  size_t size;
  const char *scripts[] = {"echo '<svg>'; echo 'line 3: out of ink' >&2; exit 3",
                           "echo '<?xml><svg> and then the disk'", "kill -9 $$"};
  const char *words[] = {"gnuplot failed: line 3: out of ink", "is the disk full?", "gnuplot failed"};
  FILE *old = fopen("curve.svg", "w");
  assert_non_null(old);
  fputs("old", old);
  fclose(old);
  for (int i = 0; i < 3; i++) {
    fake_gnuplot(scripts[i]);
    assert_int_equal(plot_write(&plot, "curve.svg", &err), -1);
    if (strstr(err.message, words[i]) == NULL) fail_msg("expected \"%s\" in: %s", words[i], err.message);
    assert_string_equal(slurp("curve.svg", &size), "old");
    assert_int_equal(files_in_folder(), 2); /* it and bin: no temporary file */
  }
}

static void names_that_cannot_be(void **state) {
  (void)state;
  Error err;
  const char *bad[] = {"curve.pdf", "curve", "", "curve.png.gz"};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(plot_write(&plot, bad[i], &err), -1);
    assert_non_null(strstr(err.message, "ends in .svg or .png"));
  }
  assert_int_equal(plot_write(&plot, "no/such/folder.svg", &err), -1);
  assert_non_null(strstr(err.message, "no/such/folder.svg"));
  assert_int_equal(make_directories("folder.svg", NULL), 0);
  assert_int_equal(plot_write(&plot, "folder.svg", &err), -1);
}

int main(void) {
  if (getenv("PATH") != NULL) snprintf(usual_path, sizeof usual_path, "%s", getenv("PATH"));
  if (getcwd(start, sizeof start) == NULL) die("no current folder");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(draws_svg, setup),
      cmocka_unit_test_setup(draws_png, setup),
      cmocka_unit_test_setup(leaves_out_what_cannot_be_drawn, setup),
      cmocka_unit_test_setup(titles_and_paths_are_only_text, setup),
      cmocka_unit_test_setup(without_gnuplot_training_goes_on, setup),
      cmocka_unit_test_setup(a_failure_leaves_the_old_picture, setup),
      cmocka_unit_test_setup(names_that_cannot_be, setup),
  };
  int status = TEST_MAIN("plot", tests);
  return chdir(start) == 0 ? status : 1;
}
