/* Text, pictures and charts of a page. */
#include "common/chart.h"
#include "common/environment.h"
#include "common/runfiles.h"
#include "common/test.h"

static char written[1 << 17];

/* What `write` prints, as a string. */
static const char *printed(void (*write)(FILE *)) {
  FILE *out = fmemopen(written, sizeof written, "w");
  assert_non_null(out);
  write(out);
  fputc('\0', out);
  fclose(out);
  return written;
}

/* ---- text ---- */

static const char *text;
static void write_text(FILE *out) { html_text(out, text); }

static void markup_is_escaped(void **state) {
  (void)state;
  const char *const cases[][2] = {
      {"", ""},
      {"<script>alert(\"1\" + '2') && a</script>",
       "&lt;script&gt;alert(&quot;1&quot; + &#39;2&#39;) &amp;&amp; a&lt;/script&gt;"},
      {"caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x99\x82", "caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x99\x82"},
      {"a\x01"
       "b\x7F\n",
       "a?b?\n"},
      {"\xC3(\xE9t\xE9 \xED\xA0\x80 \xC0\xAF \xF8 \xE2\x86",
       "?(?t? ??? ?? ? ??"}}; /* latin-1, surrogate, overlong, cut */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    text = cases[i][0];
    assert_string_equal(printed(write_text), cases[i][1]);
  }
}

static void write_base64(FILE *out) { html_base64(out, (const unsigned char *)text, strlen(text)); }

/* RFC 4648, section 10. */
static void base64_is_that_of_the_standard(void **state) {
  (void)state;
  const char *const cases[][2] = {{"", ""},
                                  {"f", "Zg=="},
                                  {"fo", "Zm8="},
                                  {"foo", "Zm9v"},
                                  {"foob", "Zm9vYg=="},
                                  {"fooba", "Zm9vYmE="},
                                  {"foobar", "Zm9vYmFy"},
                                  {"\xFF\xEF\xBE", "/+++"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    text = cases[i][0];
    assert_string_equal(printed(write_base64), cases[i][1]);
  }
}

static unsigned char pixels[5 * 3 * 3];

static void write_picture(FILE *out) {
  const Image image = {5, 3, 3, pixels};
  html_picture(out, &image, 50, 30, "a \"4\"");
}

static int digit(char c) {
  return c >= 'A' && c <= 'Z'   ? c - 'A'
         : c >= 'a' && c <= 'z' ? c - 'a' + 26
         : c >= '0' && c <= '9' ? c - '0' + 52
         : c == '+'             ? 62
                                : 63;
}

/* Decoded again, the picture has the same pixels. */
static void a_picture_is_in_the_page(void **state) {
  (void)state;
  static const char begin[] = "<img width=\"50\" height=\"30\" alt=\"a &quot;4&quot;\" src=\"data:image/png;base64,";
  for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(37 * i + 11);
  const char *page = printed(write_picture);
  assert_int_equal(strncmp(page, begin, strlen(begin)), 0);
  const char *at = page + strlen(begin);
  unsigned char png[4096];
  size_t size = 0;
  for (; *at != '"'; at += 4) {
    const int group = digit(at[0]) << 18 | digit(at[1]) << 12 | (at[2] == '=' ? 0 : digit(at[2])) << 6 |
                      (at[3] == '=' ? 0 : digit(at[3]));
    png[size++] = (unsigned char)(group >> 16);
    if (at[2] != '=') png[size++] = (unsigned char)(group >> 8);
    if (at[3] != '=') png[size++] = (unsigned char)group;
  }
  assert_string_equal(at, "\">");
  Image image;
  Error err;
  if (image_decode(png, size, "page", 3, &image, &err) != 0) fail_msg("%s", err.message);
  assert_true(image.width == 5 && image.height == 3);
  assert_memory_equal(image.pixels, pixels, sizeof pixels);
  image_free(&image);
}

/* ---- charts ---- */

static const Chart *drawn;
static void write_chart(FILE *out) { chart_write(out, drawn); }

static void steps_are_round(void **state) {
  (void)state;
  const double cases[][3] = {{1, 6, 0.2}, {7, 6, 2}, {12, 6, 2}, {13, 6, 5}, {0.3, 6, 0.05}, {60000, 8, 10000}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_true(fabs(chart_step(cases[i][0], (int)cases[i][1]) / cases[i][2] - 1) < 1e-9);
}

/* By hand: 4 epochs over 448 pixels, and a loss from 0 to 2.1 (5 % of room above 2) over 236. */
static void points_are_where_they_belong(void **state) {
  (void)state;
  const double x[] = {0, 1, 2, 4}, y[] = {2, NAN, 0.5, 0};
  const ChartSeries series[] = {{"a <b>", x, y, 4, 1}, {"nothing", x, y + 1, 1, 2}};
  const Chart chart = {"Loss & more", "epoch", " %", 1, series, 2};
  drawn = &chart;
  const char *page = printed(write_chart);
  char expected[128];
  snprintf(expected, sizeof expected, "<polyline class=\"line s1\" points=\"58.0,%.1f 282.0,%.1f 506.0,248.0 \"/>",
           248 - 236 * 2 / 2.1, 248 - 236 * 0.5 / 2.1);
  if (!strstr(page, expected)) fail_msg("%s is missing in\n%s", expected, page);
  const char *const wanted[] = {"<b>Loss &amp; more</b>", "k1\">a &lt;b&gt;</span>",
                                "<title>a &lt;b&gt;, epoch 2: 0.5 %</title>", ">1.5 %</text>", ">4</text>"};
  for (int i = 0; i < 5; i++)
    if (!strstr(page, wanted[i])) fail_msg("%s is missing in\n%s", wanted[i], page);
  assert_null(strstr(page, "nothing")); /* a series without a point */
  assert_null(strstr(page, "nan"));
  assert_null(strstr(page, "NAN"));
}

static void a_chart_without_points_is_none(void **state) {
  (void)state;
  const double x[] = {1, 2}, y[] = {NAN, INFINITY};
  const ChartSeries series = {"a", x, y, 2, 0};
  const Chart chart = {"t", "x", "", 1, &series, 1};
  drawn = &chart;
  assert_string_equal(printed(write_chart), "");
}

/* 10,000 points, of which one stands out: it is in the line, which is short. And the axis is logarithmic. */
static void of_many_points_the_peaks_stay(void **state) {
  (void)state;
  enum { N = 10000 };
  static double x[N], y[N];
  for (int i = 0; i < N; i++) {
    x[i] = i;
    y[i] = 1 + 0.001 * (i % 7);
  }
  y[4321] = 100;
  const ChartSeries series = {"a", x, y, N, 0};
  const Chart chart = {"t", "x", "", 1, &series, 1};
  drawn = &chart;
  const char *page = printed(write_chart);
  assert_true(strlen(page) < 10000);
  char expected[64];
  ChartAxes axes = {0, 0, 0, 0, 0};
  assert_int_equal(chart_axes(&chart, &axes), 1);
  assert_int_equal(axes.log, 1);
  snprintf(expected, sizeof expected, "%.1f,%.1f ", chart_x(&axes, 4321), chart_y(&axes, 100));
  assert_non_null(strstr(page, expected));
  assert_true(fabs(chart_y(&axes, 10) - (chart_y(&axes, 1) + chart_y(&axes, 100)) / 2) < 1e-9);
  assert_non_null(strstr(page, ">10</text>"));
  assert_null(strstr(page, "<circle"));
}

/* ---- the environment ---- */

static void put(const char *folder, const char *name, const char *content) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  *strrchr(path, '/') = '\0';
  assert_int_equal(make_directories(path, NULL), 0);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(content, file);
  fclose(file);
}

static void the_commit_is_found(void **state) {
  (void)state;
  char folder[PATH_MAX], inner[PATH_MAX + 16], commit[512];
  test_path(folder, sizeof folder, "tree");
  snprintf(inner, sizeof inner, "%s/a/b", folder);
  put(inner, "file", "");
  put(folder, ".git/HEAD", "0123456789abcdef0123456789abcdef01234567\n"); /* a detached head */
  environment_commit(inner, commit, sizeof commit);
  assert_string_equal(commit, "0123456789abcdef0123456789abcdef01234567");
  put(folder, ".git/HEAD", "ref: refs/heads/main\n");
  put(folder, ".git/packed-refs", "# pack-refs\n11 refs/heads/other\n22 refs/heads/main\n33 refs/tags/main\n");
  environment_commit(inner, commit, sizeof commit);
  assert_string_equal(commit, "22 (refs/heads/main)");
  put(folder, ".git/refs/heads/main", "44\n"); /* newer than the packed one */
  environment_commit(inner, commit, sizeof commit);
  assert_string_equal(commit, "44 (refs/heads/main)");
  environment_commit("/proc", commit, sizeof commit);
  assert_string_equal(commit, "");
}

static void the_environment_is_named(void **state) {
  (void)state;
  HtmlRows rows;
  memset(&rows, 0, sizeof rows);
  environment_rows(&rows);
  const char *const names[] = {"command", "started", "processor", "system", "compiler"};
  for (int i = 0; i < 5; i++) {
    int found = 0;
    for (int k = 0; k < rows.count; k++)
      found |= strcmp(rows.row[k].name, names[i]) == 0 && strlen(rows.row[k].value) > 3;
    if (!found) fail_msg("%s is missing", names[i]);
  }
  assert_non_null(strstr(rows.row[0].value, "html_test"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(markup_is_escaped),
      cmocka_unit_test(base64_is_that_of_the_standard),
      cmocka_unit_test(a_picture_is_in_the_page),
      cmocka_unit_test(steps_are_round),
      cmocka_unit_test(points_are_where_they_belong),
      cmocka_unit_test(a_chart_without_points_is_none),
      cmocka_unit_test(of_many_points_the_peaks_stay),
      cmocka_unit_test(the_commit_is_found),
      cmocka_unit_test(the_environment_is_named),
  };
  return TEST_MAIN("html", tests);
}
