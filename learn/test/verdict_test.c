/* What is said of a run: from what the inspector counted, and from how a program ended. No program runs. */
#include "learn/verdict.h"

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

static const char *judged(Measured yours, Measured reference) {
  Verdict verdict;
  memset(&verdict, 0, sizeof verdict);
  verdict.yours = yours;
  verdict.reference = reference;
  return verdict_whose_work(&verdict);
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

/* The judge's patience ends, and the program had ended long before, or holds all the memory that it gets. */
static void late_or_gone(void **state) {
  (void)state;
  const char *const ends[] = {"/bin/sh", "-c", "exit 0", NULL}, *const waits[] = {"/bin/sleep", "60", NULL};
  for (int gone = 0; gone < 2; gone++) {
    VerdictJob job;
    Trial trial;
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
    if (process_start(&trial.worker, &spec, &err) != 0) fail_msg("%s", err.message);
    spec = process_spec(waits);
    spec.seconds = 0.2;
    if (process_start(&trial.referee, &spec, &err) != 0) fail_msg("%s", err.message);
    if (trial_finish(&trial, &job, &judged, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(judged.verdict, gone ? "died" : "timeout");
    assert_true(gone || (judged.memory > 0 && judged.memory < VERDICT_MUCH_MEMORY));
    verdict_set(&verdict, &job, &judged);
    assert_int_equal(verdict.kind, gone ? VERDICT_DIED : VERDICT_TIMEOUT);
    assert_non_null(
        strstr(verdict.message, gone ? "status 0 instead of returning" : "is there a loop that does not end"));
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
      cmocka_unit_test(late_or_gone),
      cmocka_unit_test(a_compiler_that_gives_up),
      cmocka_unit_test(what_is_not_text),
      cmocka_unit_test(numbers_are_written_out),
  };
  return TEST_MAIN("verdict", tests);
}
