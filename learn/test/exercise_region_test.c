/* The parser, the cutter and the authors' files, on texts as students and authors leave them. */
#include "common/test.h"
#include "learn/exercise_proof.h"
#include "learn/init.h"
#include "learn/report.h"

static const char source[] =
    "#include <a.h>\n"
    "int f(int x) {\n"
    "  // >>> exercise first_one: give x back\n"
    "  // hint: one\n"
    "  // hint: two\n"
    "  // hint: three\n"
    "  int y = x;\n"
    "  return y;\n"
    "  // <<< exercise\n"
    "}\n"
    "// >>> exercise second: nothing\n"
    "// <<< exercise\n";

static Regions regions;

static Region *find(const char *text, const char *name) {
  regions_find(text, strlen(text), &regions);
  return regions_named(&regions, name);
}

static void reads_the_course(void **state) {
  (void)state;
  const Region *region = find(source, "first_one");
  assert_null(regions.problem);
  assert_int_equal(regions.count, 2);
  assert_null(region->problem);
  assert_string_equal(region->task, "give x back");
  assert_int_equal(region->hints, 3);
  assert_string_equal(region->hint[2], "three");
  assert_int_equal(region->line, 3);
  assert_string_equal(region_lines(source, region), "  int y = x;\n  return y;\n");
  assert_string_equal(region_indent(source, region), "  ");
  assert_string_equal(region_lines(source, find(source, "second")), "");
  assert_null(find(source, "first"));
}

/* One line changed: what is said, and are the other regions still there? */
static void says_what_is_damaged(void **state) {
  (void)state;
  const Region *region = find("// >>> exercise a: b\nx\n// >>> exercise c: d\ny\n// <<< exercise\n", "a");
  assert_non_null(strstr(region->problem, "missing before line 3"));
  assert_null(regions_named(&regions, "c")->problem);
  region = find("// >>> exercise a: b\nx\n", "a");
  assert_non_null(strstr(region->problem, "is missing"));
  find("x\n// <<< exercise\n", "a");
  assert_non_null(strstr(regions.problem, "line 2"));
  region = find("// >>> exercise a: b\n// <<< exercise\n// >>> exercise a: b\n// <<< exercise\n", "a");
  assert_non_null(strstr(region->problem, "twice, in lines 1 and 3"));
  region = find("// >>> exercise Name b\n// <<< exercise\n", "");
  assert_non_null(strstr(region->problem, "NAME"));
  find("", "a");
  assert_int_equal(regions.count, 0);
  region = find("  // >>> exercise a: b", "a"); /* no newline at the end */
  assert_non_null(region->problem);
}

static char *cut(const char *stub) {
  const Region *region = find(source, "first_one");
  Text out = {0};
  text_append(&out, source, region->begin);
  region_write_cut(&out, "  ", region, stub);
  text_add(&out, source + region->end);
  return keep_text(&out);
}

static void cuts_and_pastes(void **state) {
  (void)state;
  const char *text = cut("  TODO(first_one);\n");
  Region region = *find(text, "first_one");
  assert_null(region.problem);
  assert_true(region.cut);
  assert_string_equal(region_lines(text, &region), "  TODO(first_one);\n");
  assert_null(strstr(text, "int y"));
  assert_null(strstr(text, "hint"));

  Text pasted = {0};
  const char *lines = "#if 1\n  return 1; // mine\n#endif\n";
  region_paste(&pasted, text, strlen(text), &region, lines);
  region = *find(pasted.bytes, "first_one");
  assert_null(region.problem);
  assert_string_equal(region_lines(pasted.bytes, &region), lines);
  assert_int_equal(region.body_line, 7);
  text_free(&pasted);
}

static void notices_what_a_student_deleted(void **state) {
  (void)state;
  static const char *const needed[] = {"#if !MINE", "#include \".learn", "#else", "#endif"};
  for (int i = 0; i < 4; i++) {
    char *text = cut("  TODO(first_one);\n");
    char *line = strstr(text, needed[i]);
    assert_non_null(line);
    memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n') + 1) + 1);
    const Region *region = find(text, "first_one");
    assert_true(region->problem != NULL || !region->cut);
  }
}

/* A file of a student's tree: helpers go above the comment of the first function with an exercise. */
static void helpers_have_a_place(void **state) {
  (void)state;
  static const char file[] =
      "#include <a.h>\n\nint g(void) {\n\n  return 1;\n}\n\n/* What f does.\n\n * More of it. */\nint f(int x) {\n\n"
      "  // >>> exercise one: do it\n  return x;\n  // <<< exercise\n}\n";
  const size_t place = helpers_place(file, (size_t)(strstr(file, "  // >>>") - file));
  assert_true(starts_with(file + place, "/* What f does."));
  static Regions regions;
  Text cut = {0}, pasted = {0}, moved = {0};
  text_append(&cut, file, place);
  helpers_write(&cut, "p_a", "// here\n");
  regions_find(file, strlen(file), &regions);
  const Region *exercise = regions_named(&regions, "one");
  text_append(&cut, file + place, exercise->begin - place);
  region_write_cut(&cut, "  ", exercise, "  TODO(one);\n");
  text_add(&cut, file + exercise->end);
  const char *line = "";
  assert_int_equal(regions_differ(cut.bytes, cut.bytes, &line), 0);
  assert_true(regions_paste(&pasted, cut.bytes, cut.length, "helpers", 0, "int h;\n"));
  assert_string_equal(
      find(pasted.bytes, "helpers")->problem == NULL ? region_lines(pasted.bytes, find(pasted.bytes, "helpers")) : "",
      "int h;\n");
  assert_int_equal(regions_differ(pasted.bytes, cut.bytes, &line), 0); /* the student's place, comments, white space */
  text_printf(&moved, "// a note\n\n#define X 1\n%s", pasted.bytes);
  assert_int_equal(regions_differ(moved.bytes, cut.bytes, &line), 3);
  assert_string_equal(line, "#define X 1");
  /* Pasted with its number, a line stands where the student has it: below empty lines, or behind #line. */
  const int at = find(cut.bytes, "one")->body_line;
  text_free(&moved);
  assert_true(regions_paste(&moved, cut.bytes, cut.length, "one", at + 2, "  y();\n"));
  assert_non_null(strstr(moved.bytes, "#else\n\n\n  y();\n#endif"));
  text_free(&moved);
  assert_true(regions_paste(&moved, cut.bytes, cut.length, "one", 2, "  y();"));
  assert_non_null(strstr(moved.bytes, "#else\n#line 2\n  y();\n#endif"));
  assert_false(regions_paste(&moved, cut.bytes, cut.length, "two", 0, ""));
  static const char *const needed[] = {"#if MINE_ANY", "namespace {", "}\n#endif\n// <<< h", "#endif\n// <<< h",
                                       "// <<< h"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    char *damaged = keep(cut.bytes), *gone = strstr(damaged, needed[i]);
    memmove(gone, strchr(gone, '\n') + 1, strlen(strchr(gone, '\n') + 1) + 1);
    assert_non_null(find(damaged, "helpers")->problem);
  }
  text_free(&cut);
  text_free(&pasted);
  text_free(&moved);
}

static void sees_code_without_comments(void **state) {
  (void)state;
  assert_string_equal(code_only("a // b\nc /* d\n */ e"), "a \nc \n  e");
  assert_string_equal(code_only("\"// x\" '\"' 1'000"), "\"\" '' 1'000");
  assert_string_equal(code_only("// a \\\nb\nc"), "\nc");
  assert_string_equal(code_only("L'\"' 0xff'ff return'\"' 1'\"'"), "L'' 0xff'ff return'' 1''");
  assert_true(code_is_empty("  // only a comment\n  TODO(x);  // your lines\n"));
  assert_true(code_is_empty(""));
  assert_false(code_is_empty("  x = 1;\n"));
  assert_false(code_is_empty("  int row = 0;\n  TODO(x);\n"));
  assert_true(code_has_todo("x; TODO(y);"));
  assert_null(code_brackets("f(a[1]); { } // }"));
  assert_non_null(code_brackets("if (x) { y();"));
  assert_non_null(code_brackets("} static int z() {"));
  assert_false(code_has_todo("x; // TODO(y);"));
}

/* ---------------------------------------------------------------------------------------------------------------- */

static int read_text(Exercise *exercise, const char *text, Error *err) {
  const Region region = *find(source, "first_one");
  return exercise_read(exercise, "p/exercises/first_one.txt", text, "p/a.cuh", source, &region, err);
}

static void reads_an_authors_file(void **state) {
  (void)state;
  Exercise exercise;
  Error err;
  assert_int_equal(read_text(&exercise,
                             "# a comment\ntitle: T\ncheck: p/exercises/a_check.cu f\nnext: long\n  line\npoints: 5\n"
                             "limit: shared_load_conflicts <= 0: because\n"
                             "limit: global_load_sectors / global_load_requests <= 4.5: so\n"
                             "mutant: one\nexpect: this | that\n- int y = x;\n+ int y = 1;\n\n"
                             "mutant: two\nexpect: that\n-   return y;\nmutant: three\nexpect: x\n+ ;\n",
                             &err),
                   0);
  assert_string_equal(exercise.name, "first_one");
  assert_string_equal(exercise.next, "long line");
  assert_string_equal(exercise.launcher, "f");
  assert_int_equal(exercise.points, 5);
  assert_int_equal(exercise.limits, 2);
  assert_string_equal(exercise.limit[1].per, "global_load_requests");
  assert_true(exercise.limit[1].at_most == 4.5);
  assert_int_equal(exercise.mutants, 3);
  assert_string_equal(exercise.mutant[0].lines, "  int y = 1;\n  return y;\n");
  assert_string_equal(exercise.mutant[1].lines, "  int y = x;\n");
  assert_string_equal(exercise.mutant[2].lines, "  ;\n");
  assert_string_equal(exercise.stub, "  TODO(first_one);  // your lines here, instead of this one\n");
  assert_null(exercise.broken);
  assert_false(exercise.streams);
  assert_int_equal(read_text(&exercise, "streams: yes\n", &err), 0);
  assert_true(exercise.streams);
  assert_int_equal(read_text(&exercise, "stub:\n| int y = 0;\n| TODO(first_one);\n", &err), 0);
  assert_string_equal(exercise.stub, "  int y = 0;\n  TODO(first_one);\n");
  assert_int_equal(read_text(&exercise, "broken: it\n- int y = x;\n+ int y = x + 1;\n", &err), 0);
  assert_string_equal(exercise.stub, "  int y = x + 1;\n  return y;\n");
}

static void refuses_an_authors_mistakes(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } mistakes[] = {
      {"titel: x\n", "\"titel:\" is not known"},
      {"hello\n", "expected \"key: value\""},
      {"check: only_one\n", "check: PROGRAM.cu LAUNCHER"},
      {"points: many\n", "whole number"},
      {"streams: 2\n", "streams: yes is expected"},
      {"limit: shared_load_conflicts = 0\n", "limit: COUNT"},
      {"- int y = x;\n", "belongs below"},
      {"| int y;\n", "belongs below \"stub:\""},
      {"mutant: m\n- int z;\n+ int y;\n", "not in the solution"},
      {"mutant: m\n-\n", "not in the solution"},
  };
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    Exercise exercise;
    Error err;
    assert_int_equal(read_text(&exercise, mistakes[i].text, &err), -1);
    if (strstr(err.message, mistakes[i].says) == NULL || strstr(err.message, "/first_one.txt:") == NULL)
      fail_msg("%s: %s", mistakes[i].text, err.message);
  }
}

/* Each line taken from a complete exercise is missed. */
static void lint_tells_what_is_missing(void **state) {
  (void)state;
  static const char *const lines[] = {"title: T\n",
                                      "check: p/exercises/a_check.cu f\n",
                                      "next: n\n",
                                      "limit: shared_load_conflicts <= 0: because\n",
                                      "mutant: one\n",
                                      "expect: nan\n",
                                      "- int y = x;\n",
                                      "+ int y = 1;\n",
                                      "mutant: two\nexpect: zero | data_race\n-   return y;\n",
                                      "mutant: three\nexpect: zero\n+ ;\n"};
  enum { LINES = sizeof lines / sizeof *lines };
  static Source course;
  char folder[PATH_MAX];
  Error err;
  course.root = test_path(folder, sizeof folder, "course");
  assert_int_equal(text_write_quick(keep_printf("%s/p/exercises/a_check.cu", course.root), "", 0, &err), 0);
  assert_int_equal(text_write_quick(keep_printf("%s/p/a.cuh", course.root), "int f();", 8, &err), 0);
  for (int without = -1; without < LINES; without++) {
    Text text = {0};
    Exercise exercise;
    int faults = 0;
    for (int i = 0; i < LINES; i++)
      if (i != without) text_add(&text, lines[i]);
    if (without == 3) text_add(&text, "limit: bank_conflicts <= 0: because\nlimit: shared_load_conflicts <= 0:\n");
    int status = read_text(&exercise, text.bytes, &err);
    text_free(&text);
    if (without == 4 || without == 6 || without == 7) continue; /* still an exercise, another one */
    assert_int_equal(status, 0);
    lint_exercise(&course, &exercise, &faults);
    if ((faults > 0) != (without >= 0)) fail_msg("without %s: %d faults", without < 0 ? "-" : lines[without], faults);
  }
  /* the expectation, and why it is a fault; NULL where it is none */
  static const char *const expectations[][2] = {{"expect: wrong_values\n", "says nothing that helps"},
                                                {"expect: sign | wrong_values\n", "and neither does this alternative"},
                                                {"expect: wrong_values\nunexplained: a hash\n", NULL},
                                                {"expect: wrong sign\n", "no name, and more words"},
                                                {"expect: sign | elements_wrong\n", "no such name"},
                                                {"expect: sign \"negative\"\n", NULL}};
  for (size_t e = 0; e < sizeof expectations / sizeof *expectations; e++) {
    Text text = {0};
    Exercise exercise;
    int faults = 0;
    for (int i = 0; i < LINES; i++) text_add(&text, i == 5 ? expectations[e][0] : lines[i]);
    assert_int_equal(read_text(&exercise, text.bytes, &err), 0);
    text_free(&text);
    lint_exercise(&course, &exercise, &faults);
    lint_expectations(&exercise, &faults);
    assert_int_equal(faults, expectations[e][1] != NULL);
  }
  Exercise exercise;
  int faults = 0;
  assert_int_equal(read_text(&exercise, "stub:\n| int y = x;\n| return y;\n", &err), 0); /* solved already */
  lint_exercise(&course, &exercise, &faults);
  assert_true(faults >= 5);
  assert_true(lint_has_word(&course, "p/a.cuh", "f"));
  assert_false(lint_has_word(&course, "p/a.cuh", "g"));
}

/* A solution that stands elsewhere is found, and hidden lines are out of the way. */
static void sees_solutions_elsewhere(void **state) {
  (void)state;
  static const char solution[] =
      "  if (row < rows && col < cols) out[(size_t)col * rows + row] = in[(size_t)row * cols + col];\n";
  static Source course;
  static Exercise exercise;
  Tokens seen;
  Error err;
  const char *twin =
      "// a comment\nvoid f(void) {\n  // >>> hidden one\n  for (;;) out[(size_t)col * rows +\n    row] = "
      "in[(size_t)row * cols + col]; /* so */\n  // <<< hidden\n}\n";
  const char *file = "p/a.cuh";
  course.file = &file;
  course.files = 1;
  exercise.solution = solution;
  exercise.file = "p/b.cuh";
  tokens_read(&seen, twin);
  assert_string_equal(leaks_elsewhere(&course, &seen, &exercise), "p/a.cuh:4 (of a student's tree), 71 %");
  tokens_free(&seen);
  const char *cut_twin = cut_hidden(file, twin, NULL, &err);
  assert_string_equal(cut_twin,
                      "// a comment\nvoid f(void) {\n#include \".learn/reference/hidden_p_a_1.cuh\"  // out of "
                      "sight: it would solve one\n}\n");
  tokens_read(&seen, cut_twin);
  assert_null(leaks_elsewhere(&course, &seen, &exercise));
  tokens_free(&seen);
  tokens_read(&seen, "size_t i = (size_t)row * cols + col; if (row < rows && col < cols) x();\n"); /* pieces */
  assert_null(leaks_elsewhere(&course, &seen, &exercise));
  tokens_free(&seen);
  /* In pieces: all of it, but for the names in between. Of another file that is no fault, nor are pieces far apart. */
  static const char pieces[] =
      "if (row < rows && col < cols) out[(size_t)col *  height + row] = in[(size_t)row * cols + col];\n";
  exercise.file = file;
  tokens_read(&seen, pieces);
  assert_string_equal(leaks_elsewhere(&course, &seen, &exercise), "p/a.cuh:1 (of a student's tree), 97 %");
  exercise.file = "p/b.cuh";
  assert_null(leaks_elsewhere(&course, &seen, &exercise));
  tokens_free(&seen);
  exercise.file = file;
  Text apart = {0};
  text_add(&apart, "if (row < rows && col < cols) out[(size_t)col * x;\n");
  for (int i = 0; i < 80; i++) text_add(&apart, "y;\n");
  text_add(&apart, "row] = in[(size_t)row * cols + col];\n");
  tokens_read(&seen, apart.bytes);
  assert_null(leaks_elsewhere(&course, &seen, &exercise));
  tokens_free(&seen);
  text_free(&apart);
  assert_null(cut_hidden(file, "// >>> hidden a\n// >>> hidden b\n// <<< hidden\n", NULL, &err));
  assert_null(cut_hidden(file, "// >>> hidden a\n", NULL, &err));
  assert_null(cut_hidden(file, "// >>> hidden a\n// <<< hidden\n// <<< hidden\n", NULL, &err));
}

static void knows_exercise_files(void **state) {
  (void)state;
  assert_string_equal(exercise_name_of("p/01_a/exercises/a_b.txt"), "a_b");
  assert_null(exercise_name_of("p/01_a.txt"));
  assert_null(exercise_name_of("p/exercises/01_a.cu"));
}

static void tells_bazel_of_the_includes(void **state) {
  (void)state;
  assert_string_equal(cut_check_path("p/exercises/a_check.cu"), ".learn/check/p_a_check.cu");
  assert_string_equal(cut_settings("build --copt=-Werror\ntest --x\n"),
                      "build --copt=-Werror\nbuild --per_file_copt=-(^|//)(simt|common)[/:]@-Wno-error\ntest --x\n");
  assert_string_equal(cut_settings("x\n_EXERCISES = []\n"), "x\n_EXERCISES = [\"//.learn:exercises\"]\n");
  assert_string_equal(cut_settings("f(\n    args.add(\"-Werror=all-warnings\")\n)\n"), "f(\n)\n");
}

/* Half the reference's cost earns no more than the same cost, and is worth a look. */
static void too_good_is_not_more(void **state) {
  (void)state;
  const Exercise exercise = {.name = "x", .points = 10};
  Grade grade = {.exercise = &exercise, .handed_in = true};
  grade.verdict.kind = VERDICT_RIGHT;
  grade.verdict.yours.seconds = 1;
  grade.verdict.reference.seconds = 2;
  grade_set(&grade);
  assert_true(grade.score == 10);
  assert_non_null(strstr(grade_text(&grade), "look at these lines"));
  grade.verdict.reference.seconds = 0.5;
  grade_set(&grade);
  assert_true(fabs(grade.score - 8.5) < 1e-9);
  assert_null(strstr(grade_text(&grade), "look at"));
}

/* Names and messages are a student's: no formula, no line of another grade, nothing that a terminal obeys. */
static void reports_only_text(void **state) {
  (void)state;
  assert_string_equal(report_csv_field("=1+1,\"x\""), "\"'=1+1,\"\"x\"\"\"");
  assert_string_equal(report_csv_field("\n=1"), "\"'\n=1\"");
  assert_string_equal(report_clean("a\033[2Jb\xC2\x9B"
                                   "2Jc\xFF\xC3\xA9"),
                      "a?[2Jb??2Jc?\xC3\xA9");
  assert_string_equal(report_line("bob\n  total 10\t"), "bob?  total 10?");
  assert_string_equal(report_xml("<a b=\"&\">"), "&lt;a b=&quot;&amp;&quot;&gt;");
}

/* A file of the test's, with a time of its own. */
static const char *made(const char *name, long seconds, const char *bytes) {
  char path[PATH_MAX];
  const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
  test_write_file(test_path(path, sizeof path, name), bytes, strlen(bytes));
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  return keep(path);
}

static void compiles_again_what_is_old(void **state) {
  (void)state;
  Build build;
  memset(&build, 0, sizeof build);
  const char *header = made("a.h", 100, "");
  build.program = made("program", 200, "");
  build.list = made("program.d", 200, keep_printf("x: \\\n %s\n", header));
  assert_false(build_is_stale(&build, "/"));
  build.rest = made("rest.o", 200, "");
  assert_false(build_is_stale(&build, "/"));
  made("rest.o", 201, "");
  assert_true(build_is_stale(&build, "/"));
  build.rest = NULL;
  assert_false(build_is_stale(&build, "/"));
  made("a.h", 201, "");
  assert_true(build_is_stale(&build, "/"));
}

/* course.bzl as an author or a formatter may leave it. */
static void reads_the_order(void **state) {
  (void)state;
  const char *const *names;
  Error err;
  const char text[] =
      "\"\"\"A \"comment\".\"\"\"\n\nCOURSE = {  # \"none\"\n    \"phase1_a/01_x\": [\"one\"],\r\n"
      "    \"phase1_a/02_y\" : [\"two\", \"three\"],\n    # \"later\",\n    \"phase1_a/03_z\": [],\n"
      "    \"phase1_a/04_w\": [\n        \"four\",  # \"five\"\n        \"six\"\n    ],\n}\nMORE = \"seven\"\n";
  assert_int_equal(source_order(text, &names, &err), 5);
  const char *const expected[] = {"one", "two", "three", "four", "six"};
  for (int i = 0; i < 5; i++) assert_string_equal(names[i], expected[i]);
  assert_int_equal(source_order("", &names, &err), -1);
  assert_non_null(strstr(err.message, "course.bzl: it has no \"COURSE = {\""));
  assert_int_equal(source_order("COURSE = {\n    \"phase1_a/01_x\": [\"one],\n}\n", &names, &err), -1);
  assert_non_null(strstr(err.message, "\"one],"));
  assert_int_equal(source_order("COURSE = {\n    \"phase1_a/01_x\": [\"one\"],\n", &names, &err), -1);
  assert_non_null(strstr(err.message, "does not end"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads_the_course),
                                     cmocka_unit_test(reads_the_order),
                                     cmocka_unit_test(says_what_is_damaged),
                                     cmocka_unit_test(cuts_and_pastes),
                                     cmocka_unit_test(notices_what_a_student_deleted),
                                     cmocka_unit_test(helpers_have_a_place),
                                     cmocka_unit_test(sees_code_without_comments),
                                     cmocka_unit_test(reads_an_authors_file),
                                     cmocka_unit_test(refuses_an_authors_mistakes),
                                     cmocka_unit_test(lint_tells_what_is_missing),
                                     cmocka_unit_test(sees_solutions_elsewhere),
                                     cmocka_unit_test(knows_exercise_files),
                                     cmocka_unit_test(tells_bazel_of_the_includes),
                                     cmocka_unit_test(too_good_is_not_more),
                                     cmocka_unit_test(reports_only_text),
                                     cmocka_unit_test(compiles_again_what_is_old)};
  return TEST_MAIN("region", tests);
}
