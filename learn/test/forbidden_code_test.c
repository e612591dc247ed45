/* What a grader refuses to compile: hostile lines, each for its reason, and none of an author's own. */
#include "learn/forbidden_code.h"
#include "common/test.h"
#include "learn/source.h"

#include <time.h>

static void assert_refused(const char *lines, const char *says) {
  const char *refused = forbidden_lines(lines, 1);
  if (refused == NULL || strstr(refused, says) == NULL)
    fail_msg("%s: expected \"%s\", got \"%s\"", lines, says, refused == NULL ? "nothing" : refused);
}

static void refuses_what_reaches_out(void **state) {
  (void)state;
  static const struct {
    const char *lines, *says;
  } hostile[] = {
      {"#include \"/etc/passwd\"\n", "only #pragma unroll"},
      {"#pragma unroll 1e+'x\"' /* \"\n}\nstatic void own() {\n// */\n", "closes"},
      {"#pragma unroll 4 /**/ _Pragma\n#pragma omp parallel\n", "only #pragma unroll"},
      {"int x; #define y\n", "a # in the middle"},
      {"%:include <stdio.h>\n", "digraphs"},
      {"// \\ \n {\n", "ends with \\"},
      {"R\"(})\";", "raw strings"},
      {"asm(\"nop\");", "assembler"},
      {"x; __asm__ volatile(\"nop\");", "assembler"},
      {"static int q __attribute__((section(\".text\\n.incbin \\\"/etc/passwd\\\"\"))) = 1;", "__attribute__"},
      {"_Pragma(\"redefine_extname puts own\")", "_Pragma"},
      {"[ /* */ [gnu::no_sanitize_thread]] int x[1];", "attributes"},
      {"<:<:gnu::constructor:>:> int x;", "digraphs"},
      {"int __REDIRECT(own, (void), fork);", "__REDIRECT"},
      {"simt_inspect_forget();", "simt"},
      {"lesson_inspect_begin();", "lesson_"},
      {"learn_not_implemented(\"x\");", "learn_not"},
      {"void __tsan_write4(void *);", "__tsan"},
      /* A ' that belongs to a number hides no bracket, and one that does not, no code. */
      {"f(1e+'x); } static void own() { f(1e+'x);\n", "closes"},
      {"f(1'_); } static void own() { f(1'_);\n", "closes"},
      {"f(.5e-'x); } static void own() { f(0x1p+'x);\n", "closes"},
      {"f(1'''x); } static void own() { f(1'''x);\n", "''"},
      {"wchar_t q = L'\"'; } //\"\nstatic void own() { wchar_t q = L'\"'; //\"\n", "closes"},
  };
  for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) assert_refused(hostile[i].lines, hostile[i].says);
}

/* The line in the student's file, below comments of several lines, and what to write instead. */
static void names_the_line(void **state) {
  (void)state;
  const char *helpers = "int x;\nusing namespace std;\n";
  assert_string_equal(
      forbidden_lines("x = 1;\n/* a\n b */\n#if 0\n#endif\n", 51),
      "line 54: \"#if 0\": of the preprocessor only #pragma unroll is allowed in an exercise; put lines "
      "that you want to leave out into a comment");
  assert_refused("\n  #define IDX(r, c) 0\n", "line 2: \"#define");
  assert_refused("#define IDX 0\n", "in the place for helpers");
  assert_refused("\n\n[[maybe_unused]] int x;\n", "line 3: attributes");
  assert_refused("\nx = 'a'; asm(\"\");\n", "line 2: inline assembler");
  assert_refused("\n\nint x; \\\n", "line 3: a line that ends with");
  assert_non_null(strstr(forbidden_written("x = 1;\n", 51, helpers, 40), "helpers: line 41: \"using\""));
}

/* At file scope there is more to take the place of. */
static void refuses_helpers_that_reach_out(void **state) {
  (void)state;
  static const char *const hostile[] = {"extern \"C\" ssize_t write(int, const void *, size_t) { return 0; }\n",
                                        "}\nint x;\nnamespace {\n", "} namespace std { int x; } namespace {\n",
                                        "using namespace std;\n", "#define x\n"};
  for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
    if (forbidden_written("x = 1;\n", 1, hostile[i], 1) == NULL) fail_msg("%s", hostile[i]);
  const char *honest =
      "enum { TILE = 32 };\ntemplate <int N> static __device__ float times(float x) { return N * x; }\n"
      "__constant__ float weights[TILE];\ntypedef struct Place { int row, externs; } Place;\n";
  if (forbidden_written("x = 1;\n", 1, honest, 1) != NULL) fail_msg("%s", forbidden_written("x = 1;\n", 1, honest, 1));
  assert_non_null(forbidden_written("#define x\n", 1, honest, 1));
}

static void allows_honest_lines(void **state) {
  (void)state;
  static const char *const honest[] = {
      "#pragma unroll 4\nfor (int i = 0; i < 4; i++) x[i] = y[i][0];\n",
      "int n = 1'000'000, m = 0xff'ff; char c = '\\'', d = 'x'; float e = 1e-3f, f = .5f - '0';\n",
      "__shared__ float tile[32][33];\n__syncthreads();\nfloat x = __shfl_xor_sync(0xffffffff, y, 1);\n",
      "// it isn't an asm, a # or a [[x]]\nconst char *plasma = \"# } [[ asm\"; /* simt_x */\n",
      "w[i] -= learn_rate * gradient[i];\n",
      "float v = a[b[0]]; auto f = [&](int i) { return a[i]; };\n"};
  for (size_t i = 0; i < sizeof honest / sizeof *honest; i++)
    if (forbidden_lines(honest[i], 1) != NULL) fail_msg("%s: %s", honest[i], forbidden_lines(honest[i], 1));
}

/* It is read outside of the sandbox: whatever is handed in, that must not take long. */
static void is_not_held_up(void **state) {
  (void)state;
  Text text = {0};
  text_add(&text, "1");
  for (int i = 0; i < 4 << 20; i++) text_add(&text, "'1");
  double begin = (double)clock();
  const char *code = code_only(text.bytes);
  assert_int_equal(strlen(code), text.length);
  assert_true((double)clock() - begin < 5.0 * CLOCKS_PER_SEC);
  assert_refused(text.bytes, "longer than 64 KB");
  text_free(&text);
}

/* What authors want of students passes. */
static void allows_every_solution(void **state) {
  (void)state;
  static Source course;
  char root[PATH_MAX];
  Error err;
  if (runfiles_find("WORKSPACE", root, sizeof root, &err) != 0) fail_msg("%s", err.message);
  *strrchr(root, '/') = '\0';
  if (source_open(&course, root, &err) != 0) fail_msg("%s", err.message);
  assert_true(course.exercises.count > 60);
  for (int i = 0; i < course.exercises.count; i++) {
    const Exercise *exercise = &course.exercises.item[i];
    for (int m = -2; m < exercise->mutants; m++) {
      const char *lines = m == -2 ? exercise->solution : m == -1 ? exercise->stub : exercise->mutant[m].lines;
      if (forbidden_lines(lines, 1) != NULL) fail_msg("%s: %s\n%s", exercise->name, forbidden_lines(lines, 1), lines);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refuses_what_reaches_out),
                                     cmocka_unit_test(names_the_line),
                                     cmocka_unit_test(refuses_helpers_that_reach_out),
                                     cmocka_unit_test(allows_honest_lines),
                                     cmocka_unit_test(is_not_held_up),
                                     cmocka_unit_test(allows_every_solution)};
  return TEST_MAIN("refuse", tests);
}
