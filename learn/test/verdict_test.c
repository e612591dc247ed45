/* What is said of a run: from what the inspector counted, and from how a program ended. No program runs. */
#include "learn/verdict.h"

#include "learn/expectation.h"

#include "common/test.h"

static void count(Measured *m, const char *name, double value) {
  for (int i = 0; i < COUNTS; i++)
    if (strcmp(count_names[i], name) == 0) {
      m->count[i] = value;
      return;
    }
  fail_msg("%s is not counted", name);
}

/* 65536 floats, in blocks of 256 threads that are all at work; each takes `each` floats, with stores of `width`. */
static Measured grid(double each, double width) {
  Measured m;
  memset(&m, 0, sizeof m);
  const double threads = 65536 / each;
  count(&m, "global_store_requests", 65536 / 32 / width);
  count(&m, "global_store_sectors", 8192);
  count(&m, "launched_blocks", threads / 256);
  count(&m, "launched_threads", threads);
  count(&m, "working_blocks", threads / 256);
  count(&m, "working_warps", threads / 32);
  count(&m, "working_threads", threads);
  return m;
}

static Diagnosis objected;

static const char *judged(Measured yours, Measured reference) {
  Verdict verdict;
  memset(&verdict, 0, sizeof verdict);
  verdict.yours = yours;
  verdict.reference = reference;
  objected = DIAGNOSIS_NONE;
  return verdict_whose_work(&verdict, &objected);
}

static void assert_objects(Measured yours, Measured reference, const char *says) {
  const char *objection = judged(yours, reference);
  if (objection == NULL || strstr(objection, says) == NULL)
    fail_msg("expected \"%s\", got \"%s\"", says, objection == NULL ? "nothing" : objection);
}

/* Fewer threads, with several elements each; more threads; sums; atomics. */
static void right_grids_pass(void **state) {
  (void)state;
  for (double each = 1; each <= 16; each *= 2)
    for (double width = 1; width <= 4; width *= 4) {
      const char *objection = judged(grid(each, width), grid(1, 1));
      if (objection != NULL) fail_msg("%g floats in stores of %g: %s", each, width, objection);
      assert_null(judged(grid(1, 1), grid(each, width)));
    }
  Measured sums = grid(1, 1); /* a block's sum is stored by one of its threads */
  count(&sums, "global_store_requests", 256);
  count(&sums, "global_store_sectors", 256);
  assert_null(judged(sums, sums));
  Measured more = sums; /* a warp for each sum instead of a thread */
  count(&more, "launched_threads", 32 * 65536);
  count(&more, "working_threads", 32 * 65536);
  assert_null(judged(more, sums));
  Measured atomics = grid(1, 1);
  count(&atomics, "global_store_requests", 0);
  count(&atomics, "global_store_sectors", 0);
  count(&atomics, "global_atomic_requests", 2048);
  assert_null(judged(atomics, grid(1, 1)));
  Measured small = grid(1024, 1); /* so little to do that one warp is what the task needs */
  assert_null(judged(small, small));
}

static void a_sliver_of_the_grid_is_rejected(void **state) {
  (void)state;
  Measured block = grid(1, 1);
  count(&block, "working_blocks", 1);
  count(&block, "working_warps", 8);
  count(&block, "working_threads", 256);
  assert_objects(block, grid(1, 1), "one block did all the work");
  assert_objects(block, grid(1, 1), "256 of 65536 threads, in 1 of 256 blocks, read or wrote device memory");
  Measured warp = block;
  count(&warp, "working_warps", 1);
  count(&warp, "working_threads", 32);
  assert_objects(warp, grid(1, 1), "one warp did all the work");
  Measured thread = warp; /* with float4: 16 times as many requests are no longer there */
  count(&thread, "working_threads", 1);
  count(&thread, "global_store_requests", 16384);
  assert_objects(thread, grid(1, 1), "one warp did all the work");
  Measured lane = grid(1, 1); /* one of each warp */
  count(&lane, "working_threads", 2048);
  assert_objects(lane, grid(1, 1), "a small part of the threads did all the work");
  Measured two = grid(1, 1);
  count(&two, "working_blocks", 2);
  count(&two, "working_warps", 16);
  count(&two, "working_threads", 512);
  assert_objects(two, grid(1, 1), "a small part of the threads did all the work: 512 of 65536");
  Measured small = grid(32, 1); /* 8 blocks: the smallest of which it can be said */
  Measured alone = small;
  count(&alone, "working_blocks", 1);
  count(&alone, "working_warps", 8);
  count(&alone, "working_threads", 256);
  assert_objects(alone, small, "one block did all the work");
}

static void a_grid_far_too_large_is_rejected(void **state) {
  (void)state;
  Measured large = grid(1, 1);
  count(&large, "launched_blocks", 65536);
  count(&large, "launched_threads", 65536 * 256);
  assert_objects(large, grid(1, 1), "the grid is far too large: 16777216 threads were launched, and 65536 found");
}

static void results_from_elsewhere_are_rejected(void **state) {
  (void)state;
  Measured none;
  memset(&none, 0, sizeof none);
  assert_objects(none, grid(1, 1), "No kernel wrote to global memory");
  Measured part = grid(1, 1);
  count(&part, "global_store_requests", 20);
  count(&part, "global_store_sectors", 80);
  assert_objects(part, grid(1, 1), "stored only a part of the results");
}

/* What is made of a judge's answer, without its verdict and message, and of what the worker printed. */
static Verdict verdict_of_answer(const VerdictJob *job, const char *verdict, const char *answer, const char *message,
                                 const char *printed) {
  Judged judged;
  Verdict result;
  memset(&judged, 0, sizeof judged);
  memset(&result, 0, sizeof result);
  judged_read(&judged, keep_printf("verdict %s\n%s", verdict, answer));
  judged.message = message;
  judged.worker.output = printed;
  verdict_set(&result, job, &judged);
  return result;
}

static Verdict verdict_on(const VerdictJob *job, const char *verdict, const char *message, const char *printed) {
  const char *answer = strcmp(verdict, "finding") == 0 ? "findings 1\ndiagnosis data_race\n" : "";
  return verdict_of_answer(job, verdict, answer, message, printed);
}

static void assert_says(const Verdict *verdict, const char *says, const char *not_this) {
  if (strstr(verdict->message, says) == NULL || (not_this != NULL && strstr(verdict->message, not_this) != NULL))
    fail_msg("expected \"%s\", and not \"%s\", got \"%s\"", says, not_this == NULL ? "" : not_this, verdict->message);
}

static VerdictJob job_in(Tree *tree, const char *root) {
  VerdictJob job;
  memset(&job, 0, sizeof job);
  memset(tree, 0, sizeof *tree);
  tree->root = root;
  job.tree = tree;
  job.overlay = "";
  job.seconds = 5;
  return job;
}

static void a_launch_that_was_ended(void **state) {
  (void)state;
  Tree tree;
  VerdictJob job = job_in(&tree, "/nowhere");
  const char *ended = "on 31: the launch timed out (cudaErrorLaunchTimeout)";
  const char *timed_out = "status 702\nfindings 0\ndiagnosis endless\n";
  Verdict v = verdict_of_answer(&job, "cuda", "status 702\nfindings 1\ndiagnosis data_race\n",
                                "=== simt: data race: tile", "=== simt: barrier divergence: some are missing\n");
  assert_says(&v, "Not all threads of a block come to the same barrier:\n=== simt: barrier", "data race"); /* follows */
  v = verdict_of_answer(&job, "cuda", timed_out, ended,
                        "=== simt: barrier divergence: threads have returned\n    kernel k\n");
  assert_int_equal(v.kind, VERDICT_WRONG);
  assert_int_equal(verdict_diagnosis(&v), DIAGNOSIS_BARRIER);
  assert_says(&v, "Not all threads of a block come to the same barrier:\n=== simt: barrier",
              "a loop that does not end");
  v = verdict_of_answer(&job, "cuda", timed_out, ended, "=== simt: deadlock: no thread of the block can go on\n");
  assert_int_equal(v.kind, VERDICT_TIMEOUT);
  assert_true(verdict_has(&v, DIAGNOSIS_DEADLOCK));
  assert_says(&v, "wait for each other", "a loop that does not end");
  v = verdict_of_answer(&job, "cuda", timed_out, ended, "=== simt: watchdog: thread (0,0,0) has run for 3 seconds\n");
  assert_int_equal(v.kind, VERDICT_TIMEOUT);
  assert_says(&v, "a loop that does not end", NULL);
}

/* The inspector has told of the access at which the processor then stopped. */
static void a_fault_is_told_once(void **state) {
  (void)state;
  Tree tree;
  VerdictJob job = job_in(&tree, "/nowhere");
  const char *printed = "=== simt: illegal address: thread (1,0,0) accessed 0x10\n";
  Verdict v = verdict_of_answer(&job, "cuda", "status 700\nfindings 1\ndiagnosis out_of_bounds\n",
                                "on 31: === simt: out of bounds: x (124 bytes), 0 bytes past its end", printed);
  assert_says(&v, "out of bounds", "illegal address");
  assert_int_equal(verdict_diagnosis(&v), DIAGNOSIS_OUT_OF_BOUNDS);
  v = verdict_of_answer(&job, "cuda", "status 700\nfindings 0\ndiagnosis illegal_address\n",
                        "on 31: an illegal memory access (cudaErrorIllegalAddress)", printed);
  assert_says(&v, "illegal address", NULL);
}

/* A solution that stands for another exercise: the student sees where that is, and no path to it. */
static void the_reference_is_a_place_of_the_students(void **state) {
  (void)state;
  Tree tree;
  char root[] = "/tmp/verdict_test.XXXXXX";
  if (mkdtemp(root) == NULL) fail_msg("no folder: %s", strerror(errno));
  VerdictJob job = job_in(&tree, root);
  tree.exercises.count = 1;
  tree.exercises.item[0].name = "add";
  tree.exercises.item[0].file = "add.cuh";
  const char *text =
      "// hello\n  // >>> exercise add: adds\n#if !MINE(add)\n#include \".learn/reference/add.cuh\"\n#else\n  "
      "TODO(add);\n#endif\n  // <<< exercise\n";
  Error err;
  if (text_write_file(keep_printf("%s/add.cuh", root), text, strlen(text), &err) != 0) fail_msg("%s", err.message);
  Verdict v = verdict_on(
      &job, "finding",
      keep_printf("    %s/.learn/reference/add.cuh:12 (k): thread\n    .learn/reference/no.cuh:1", root), "");
  assert_says(&v, "    add.cuh:6 (k): thread\n", "reference/add");
  unlink(keep_printf("%s/add.cuh", root));
  rmdir(root);
}

/* A program that died is told apart by its exit status, its own lines, and the error that the judge has heard of. What
 * it printed decides nothing. */
static void a_worker_that_ended(void **state) {
  (void)state;
  static const struct {
    int status;
    const char *lines, *answer;
    VerdictKind kind;
    Diagnosis diagnosis;
  } ends[] = {{3, "  TODO(add);\n", "", VERDICT_TODO, DIAGNOSIS_NOT_IMPLEMENTED},
              {3, "  exit(3);\n", "", VERDICT_DIED, DIAGNOSIS_EXITED},
              {3, "  exit(3);  // TODO(add)\n", "", VERDICT_DIED, DIAGNOSIS_EXITED},
              {1, "  x = 1;\n", "", VERDICT_DIED, DIAGNOSIS_EXITED},
              {1, "  x = 1;\n", "status 9\ndiagnosis launch\n", VERDICT_WRONG, DIAGNOSIS_LAUNCH},
              {128 + SIGSEGV, "  x = 1;\n", "", VERDICT_DIED, DIAGNOSIS_CRASHED}};
  Tree tree;
  VerdictJob job = job_in(&tree, "/nowhere");
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    Judged judged;
    Verdict v;
    memset(&judged, 0, sizeof judged);
    memset(&v, 0, sizeof v);
    job.lines = ends[i].lines;
    judged_read(&judged, keep_printf("verdict died\n%smessage ", ends[i].answer));
    judged.worker.status = ends[i].status;
    judged.worker.output = "not implemented: add\nx.cu:3: f() failed: invalid argument (cudaErrorInvalidValue)\n";
    verdict_set(&v, &job, &judged);
    assert_int_equal(v.kind, ends[i].kind);
    assert_int_equal(verdict_diagnosis(&v), ends[i].diagnosis);
  }
}

/* The kind of a report is told from words in it, and from what the program itself prints. */
static void reports_of_the_emulator(void **state) {
  (void)state;
  Diagnoses found = {0};
  const char *printed =
      "=== simt: watchdog: it waits at a deadlock\nI say === simt: mask\n=== simt: deadlock: no thread can go on\n";
  const char *at = verdict_reports(printed, DIAGNOSIS_DEADLOCK, &found);
  assert_non_null(at);
  assert_memory_equal(at, "=== simt: deadlock", 18);
  assert_int_equal(found.count, 2);
  assert_int_equal(found.item[0], DIAGNOSIS_ENDLESS);
  assert_int_equal(found.item[1], DIAGNOSIS_DEADLOCK);
  assert_null(verdict_reports(printed, DIAGNOSIS_BARRIER, &found));
}

static void what_an_author_expects(void **state) {
  (void)state;
  Verdict v;
  memset(&v, 0, sizeof v);
  v.kind = VERDICT_WRONG;
  v.message = "out: 3 of 9 elements are wrong";
  diagnoses_add(&v.found, DIAGNOSIS_NEVER_WRITTEN);
  diagnoses_add(&v.found, DIAGNOSIS_LAST_TILE);
  static const char *const met[] = {"never_written",
                                    "last_tile",
                                    "data_race | never_written",
                                    "nan|last_tile",
                                    "never_written \"3 of 9\"",
                                    "never_written \"4 of 9\" | last_tile"};
  static const char *const not_met[] = {"data_race", "nan | zero", "never_written \"4 of 9\"", "limit"};
  for (size_t i = 0; i < sizeof met / sizeof *met; i++) {
    assert_true(expectation_met(met[i], &v));
    assert_null(expectation_problem(met[i]));
  }
  for (size_t i = 0; i < sizeof not_met / sizeof *not_met; i++) {
    assert_false(expectation_met(not_met[i], &v));
    assert_null(expectation_problem(not_met[i]));
  }
  static const char *const unreadable[] = {
      "", "never written", "never_written \"3 of 9", "nan |", "| nan", "\"3 of 9\"", "nan, zero", "Nan", "nan zero"};
  for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
    assert_non_null(expectation_problem(unreadable[i]));
    assert_false(expectation_met(unreadable[i], &v));
  }
  assert_string_equal(expectation_problem("nan | elements_wrong"), "unknown diagnosis \"elements_wrong\"");
  assert_non_null(strstr(expectation_problem("never written"), "\"never written\" cannot be read; expected NAME"));
  assert_true(expectation_names_one("nan | wrong_values", DIAGNOSIS_WRONG_VALUES));
  assert_false(expectation_names_one("nan", DIAGNOSIS_WRONG_VALUES));
  diagnoses_add(&v.found, DIAGNOSIS_LIMIT);
  v.kind = VERDICT_LIMIT;
  assert_int_equal(verdict_diagnosis(&v), DIAGNOSIS_LIMIT);
  assert_true(expectation_met("limit", &v));
}

static void includers_are_left_out(void **state) {
  (void)state;
  const char *printed =
      "In file included from a_lesson.cuh:7,\n                 from .learn/check/a_check.cu:2:\n"
      "a.cuh: In function 'f':\na.cuh:3: error: it comes from nowhere\n    3 |   from (x);\n";
  assert_string_equal(without_includers(printed),
                      "a.cuh: In function 'f':\na.cuh:3: error: it comes from nowhere\n    3 |   from (x);\n");
  assert_string_equal(without_includers(""), "");
}

/* A wrong barrier is found where the course's lines rely on it. */
static void a_finding_in_no_line_of_the_students(void **state) {
  (void)state;
  static Exercise exercise;
  Tree tree;
  VerdictJob job = job_in(&tree, "/nowhere");
  job.exercise = &exercise;
  exercise.file = "phase/k.cuh";
  job.lines = "  one;\n  two;\n";
  job.line = 10;
  job.helpers = "int three;\n";
  job.helpers_line = 4;
  for (int line = 3; line <= 12; line++) {
    const bool own = line == 4 || line == 10 || line == 11;
    Verdict v = verdict_on(
        &job, "finding", keep_printf("=== simt: data race: x\n    other.cuh:10 (f)\n    phase/k.cuh:%d (k)", line), "");
    assert_says(&v, own ? "data race" : "The fault is in yours, at phase/k.cuh:10", own ? "look at" : NULL);
  }
  Verdict v = verdict_on(&job, "wrong", "out: 3 of 9 elements are wrong", "");
  assert_says(&v, "are wrong", "look at");
}

static void a_picture_follows_its_limit(void **state) {
  (void)state;
  static Exercise exercise;
  Tree tree;
  VerdictJob job = job_in(&tree, "/nowhere");
  job.exercise = &exercise;
  exercise.limits = 1;
  exercise.limit[0] = (Limit){"shared_load_conflicts", "", "Pad the rows.", 0};
  Judged judged;
  memset(&judged, 0, sizeof judged);
  judged.worker.output = "";
  judged_read(&judged, "verdict right\npicture0 of loads\npicture2 bank    7 7\npicture2 ideal   0 1\nmessage fine\n");
  Verdict v;
  memset(&v, 0, sizeof v);
  verdict_set(&v, &job, &judged);
  count(&v.yours, "shared_load_conflicts", 31744);
  verdict_limits(&job, &v);
  assert_int_equal(v.kind, VERDICT_LIMIT);
  assert_says(&v, "is 31744, at most 0 is allowed. Pad the rows.\nbank    7 7\nideal   0 1", "of loads");
}

/* The judge's patience ends, and the program had ended long before, or holds all the memory that it gets. */
static void late_or_gone(void **state) {
  (void)state;
  const char *const ends[] = {"/bin/sh", "-c", "exit 0", NULL}, *const waits[] = {"/bin/sleep", "60", NULL};
  for (int gone = 0; gone < 2; gone++) {
    VerdictJob job;
    CheckRun run;
    Judged judged;
    Verdict verdict;
    Error err;
    ProcessSpec spec = process_spec(gone ? ends : waits);
    Tree tree;
    memset(&tree, 0, sizeof tree);
    memset(&job, 0, sizeof job);
    tree.root = "/nowhere";
    job.tree = &tree;
    job.overlay = "";
    memset(&verdict, 0, sizeof verdict);
    job.seconds = 5;
    if (process_start(&run.worker, &spec, &err) != 0) fail_msg("%s", err.message);
    spec = process_spec(waits);
    spec.seconds = 0.2;
    if (process_start(&run.referee, &spec, &err) != 0) fail_msg("%s", err.message);
    if (check_run_finish(&run, &job, &judged, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(judged.verdict, gone ? "died" : "timeout");
    assert_true(gone || (judged.memory > 0 && judged.memory < VERDICT_MUCH_MEMORY));
    verdict_set(&verdict, &job, &judged);
    assert_int_equal(verdict.kind, gone ? VERDICT_DIED : VERDICT_TIMEOUT);
    assert_non_null(
        strstr(verdict.message, gone ? "status 0 instead of returning" : "or does each thread do the work of all?"));
    if (gone) continue;
    judged.memory = 3.9e9;
    verdict_set(&verdict, &job, &judged);
    assert_non_null(strstr(verdict.message, "After 5 s it had not finished: it held 3.9 GB of memory"));
  }
}

static void a_compiler_that_gives_up(void **state) {
  (void)state;
  Process compiler;
  memset(&compiler, 0, sizeof compiler);
  const char *message = compiler_message(&compiler,
                                         "g++: internal compiler error: File size limit exceeded signal\n"
                                         "Please submit a full bug report.\n");
  assert_non_null(strstr(message, "is there an enormous array"));
  assert_non_null(strstr(message, "It printed: g++: internal compiler error: File size limit exceeded signal"));
  assert_null(strstr(message, "bug report"));
  assert_non_null(strstr(compiler_message(&compiler, ""), "is there an enormous array"));
  const char *usual = "x.cu:3: error: expected ';'\n";
  assert_string_equal(compiler_message(&compiler, usual), usual);
}

static void what_is_not_text(void **state) {
  (void)state;
  assert_null(text_refused("", 0));
  assert_null(text_refused("int x;\n", 7));
  assert_non_null(strstr(text_refused("\xff\xfei\0n\0t\0", 8), "UTF-16"));
  assert_non_null(strstr(text_refused("i\0n\0t\0", 6), "UTF-16"));
  assert_non_null(strstr(text_refused("\0i\0n\0t", 6), "UTF-16"));
  assert_non_null(strstr(text_refused("int\nx\0;\n", 8), "line 2 holds a zero byte"));
}

static void numbers_are_written_out(void **state) {
  (void)state;
  assert_string_equal(keep_number(31740), "31740");
  assert_string_equal(keep_number(10240.25), "10240.2");
  assert_string_equal(keep_number(3.5), "3.5");
  assert_string_equal(keep_number(0), "0");
  assert_string_equal(keep_number(-NAN), "NaN");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_grids_pass),
      cmocka_unit_test(a_sliver_of_the_grid_is_rejected),
      cmocka_unit_test(a_grid_far_too_large_is_rejected),
      cmocka_unit_test(results_from_elsewhere_are_rejected),
      cmocka_unit_test(a_launch_that_was_ended),
      cmocka_unit_test(a_fault_is_told_once),
      cmocka_unit_test(the_reference_is_a_place_of_the_students),
      cmocka_unit_test(a_finding_in_no_line_of_the_students),
      cmocka_unit_test(a_worker_that_ended),
      cmocka_unit_test(reports_of_the_emulator),
      cmocka_unit_test(what_an_author_expects),
      cmocka_unit_test(includers_are_left_out),
      cmocka_unit_test(a_picture_follows_its_limit),
      cmocka_unit_test(late_or_gone),
      cmocka_unit_test(a_compiler_that_gives_up),
      cmocka_unit_test(what_is_not_text),
      cmocka_unit_test(numbers_are_written_out),
  };
  return TEST_MAIN("verdict", tests);
}
