/* ort.h: the search for the library and its errors, with and without ONNX Runtime; and runs, where it is there. */
#include "phase5_production/10_onnx_runtime/test_ort.h"

#include <sys/stat.h>

static char fake[PATH_MAX];

/* A model of testdata/. */
static const char *model(const char *name) {
  static char path[PATH_MAX], file[128];
  Error err;
  snprintf(file, sizeof file, "phase5_production/10_onnx_runtime/testdata/%s.onnx", name);
  if (runfiles_find(file, path, sizeof path, &err) != 0) fail_msg("%s", err.message);
  return path;
}

/* ORT_HOME for a while; NULL: without. */
static char home_before[PATH_MAX];
static void set_home(const char *home) {
  const char *now = getenv("ORT_HOME");
  snprintf(home_before, sizeof home_before, "%s", now ? now : "");
  if (home)
    setenv("ORT_HOME", home, 1);
  else
    unsetenv("ORT_HOME");
}
static void reset_home(void) {
  if (home_before[0])
    setenv("ORT_HOME", home_before, 1);
  else
    unsetenv("ORT_HOME");
}

static void open_fails(const char *home, ErrorCode code, const char *sentence) {
  Ort ort;
  Error err;
  set_home(home);
  const int status = ort_open(&ort, &err);
  reset_home();
  assert_int_equal(status, -1);
  if (strstr(err.message, sentence) == NULL) fail_msg("expected \"%s\" in: %s", sentence, err.message);
  assert_int_equal(err.code, code);
}

static void a_home_without_it_is_named(void **state) {
  (void)state;
  open_fails("/nowhere", ERROR_NOT_INSTALLED, "ORT_HOME=/nowhere: neither this folder nor its lib/ has");
  open_fails(test_tmpdir(), ERROR_NOT_INSTALLED, "run third_party/onnxruntime/fetch.sh");
}

/* A folder of the test with lib/libonnxruntime.so.1, which is `target`. */
static const char *home_with(const char *name, const char *target) {
  static char home[PATH_MAX];
  char lib[PATH_MAX + 8], link[PATH_MAX + 40];
  test_path(home, sizeof home, name);
  snprintf(lib, sizeof lib, "%s/lib", home);
  snprintf(link, sizeof link, "%s/libonnxruntime.so.1", lib);
  assert_true(mkdir(home, 0777) == 0 && mkdir(lib, 0777) == 0 && symlink(target, link) == 0);
  return home;
}

static void another_library_is_none(void **state) {
  (void)state;
  char libc[PATH_MAX] = "";
  Dl_info info;
  assert_true(dladdr((void *)(uintptr_t)getenv, &info) != 0 && realpath(info.dli_fname, libc) != NULL);
  open_fails(home_with("other", libc), ERROR_OTHER, "is no ONNX Runtime: it has no OrtGetApiBase()");
}

static void a_file_that_is_no_library_is_refused(void **state) {
  (void)state;
  open_fails(home_with("text", "/etc/passwd"), ERROR_OTHER, "ONNX Runtime cannot be loaded: ");
}

/* What cannot be loaded is not said to be missing. */
static void a_home_may_be_relative(void **state) {
  (void)state;
  char before[PATH_MAX];
  home_with("relative", "/etc/passwd");
  assert_true(getcwd(before, sizeof before) != NULL && chdir(test_tmpdir()) == 0);
  open_fails("relative", ERROR_OTHER, "ONNX Runtime cannot be loaded: ");
  assert_int_equal(chdir(before), 0);
}

static void a_version_without_our_interface_is_refused(void **state) {
  (void)state;
  open_fails(home_with("fake", fake), ERROR_OTHER,
             "is ONNX Runtime 1.2.3, which lacks version 17 of its interface; 1.17 or later is expected");
}

static void messages_lose_their_places_in_the_source(void **state) {
  (void)state;
  assert_string_equal(ort_says("/a/b.cc:12 f() [ONNXRuntimeError] : 1 : FAIL : no library"), "no library");
  assert_string_equal(ort_says("Exception during initialization: bad"), "bad");
  assert_string_equal(ort_says("plain : words"), "plain : words");
}

static void types_have_names_and_sizes(void **state) {
  (void)state;
  assert_string_equal(ort_type_name(1), "float");
  assert_string_equal(ort_type_name(7), "int64");
  assert_string_equal(ort_type_name(16), "bfloat16");
  assert_string_equal(ort_type_name(23), "type 23");
  assert_int_equal(ort_type_bytes(1), 4);
  assert_int_equal(ort_type_bytes(8), 0);
  assert_int_equal(ort_type_bytes(16), 2);
  assert_int_equal(ort_type_bytes(99), 0);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* With ONNX Runtime */

static void session_of(OrtNet *net, Ort *ort, const char *name, OrtNetOptions options) {
  Error err;
  if (ort_session(net, ort, model(name), &options, &err) != 0) fail_msg("%s", err.message);
}

static void close_all(OrtNet *net, Ort *ort) {
  ort_session_close(net);
  ort_close(ort);
}

static void nothing_is_sent_to_its_maker(void **state) {
  (void)state;
  Ort ort;
  unsetenv("ORT_DISABLE_TELEMETRY");
  ort_required(&ort);
  assert_string_equal(getenv("ORT_DISABLE_TELEMETRY"), "1");
  ort_close(&ort);
}

static void a_model_is_described(void **state) {
  (void)state;
  Ort ort;
  OrtNet net;
  char text[256];
  ort_required(&ort);
  assert_true(atoi(ort.version) >= 1 && ort.path[0] == '/');
  session_of(&net, &ort, "twice", ort_net_options());
  assert_int_equal(net.inputs, 1);
  assert_string_equal(ort_port_text(&net.input[0], text, sizeof text), "x float (N,3,H,W)");
  assert_string_equal(ort_port_text(&net.output[0], text, sizeof text), "y float (N,3,H2,W2)");
  assert_int_equal(net.input[0].dim[0], -1);
  ort_session_close(&net);
  session_of(&net, &ort, "colours", ort_net_options());
  char *names = ort_metadata(&net, "class_names"), *none = ort_metadata(&net, "nothing");
  assert_non_null(names);
  assert_non_null(strstr(names, "\"blue\""));
  assert_null(none);
  free(names);
  close_all(&net, &ort);
}

/* colours.onnx: 20 times the mean of each channel, and of all. */
static void a_run_gives_the_numbers(void **state) {
  (void)state;
  Ort ort;
  OrtNet net;
  Error err;
  float x[2 * 3 * 64], y[2 * 4];
  for (int i = 0; i < 2 * 3 * 64; i++) x[i] = (float)(i / 64) + 0.25f * (float)(i % 2);
  ort_required(&ort);
  session_of(&net, &ort, "colours", ort_net_options());
  const OrtArray in = ort_floats(x, 4, 2, 3, 8, 8);
  OrtArray out = ort_floats(y, 2, 2, 4), allocated;
  memset(&allocated, 0, sizeof allocated);
  if (ort_run(&net, &in, &out, &err) != 0 || ort_run(&net, &in, &allocated, &err) != 0) fail_msg("%s", err.message);
  for (int n = 0; n < 2; n++)
    for (int c = 0; c < 3; c++) assert_float_equal(y[4 * n + c], 20 * ((float)(3 * n + c) + 0.125f), 1e-4f);
  assert_int_equal(allocated.rank, 2);
  assert_int_equal(allocated.dim[0], 2);
  assert_int_equal(allocated.dim[1], 4);
  assert_memory_equal(allocated.data, y, sizeof y);
  ort_array_free(&allocated);
  close_all(&net, &ort);
}

static void bound_arrays_give_the_same(void **state) {
  (void)state;
  Ort ort;
  OrtNet net;
  Error err;
  float x[3 * 6], y[3 * 24], z[3 * 24];
  for (int i = 0; i < 18; i++) x[i] = (float)i;
  ort_required(&ort);
  session_of(&net, &ort, "twice", ort_net_options());
  assert_int_equal(ort_run_bound(&net, &err), -1); /* nothing is bound */
  const OrtArray in = ort_floats(x, 4, 1, 3, 2, 3);
  OrtArray out = ort_floats(y, 4, 1, 3, 4, 6), bound = ort_floats(z, 4, 1, 3, 4, 6);
  if (ort_run(&net, &in, &out, &err) != 0 || ort_bind_input(&net, 0, &in, &err) != 0 ||
      ort_bind_output(&net, 0, &bound, &err) != 0 || ort_run_bound(&net, &err) != 0)
    fail_msg("%s", err.message);
  assert_memory_equal(y, z, sizeof y);
  for (int i = 0; i < 72; i++) assert_true(y[i] == x[i / 24 * 6 + i % 24 / 12 * 3 + i % 6 / 2]);
  x[0] = 100; /* a bound array is read at each run */
  if (ort_run_bound(&net, &err) != 0) fail_msg("%s", err.message);
  assert_true(z[0] == 100 && z[7] == 100 && z[2] == 1);
  close_all(&net, &ort);
}

static void wrong_shapes_are_a_sentence(void **state) {
  (void)state;
  Ort ort;
  OrtNet net;
  Error err;
  float x[3 * 49] = {0}, y[4];
  ort_required(&ort);
  session_of(&net, &ort, "colours", ort_net_options());
  const OrtArray in = ort_floats(x, 4, 1, 3, 7, 7);
  OrtArray out = ort_floats(y, 2, 1, 4);
  assert_int_equal(ort_run(&net, &in, &out, &err), -1);
  assert_non_null(strstr(err.message, "CPU provider"));
  close_all(&net, &ort);
}

static void bad_models_are_a_sentence(void **state) {
  (void)state;
  Ort ort;
  OrtNet net;
  Error err;
  OrtNetOptions options = ort_net_options();
  ort_required(&ort);
  assert_int_equal(ort_session(&net, &ort, "/nowhere.onnx", &options, &err), -1);
  assert_non_null(strstr(err.message, "cannot open /nowhere.onnx: No such file"));
  assert_int_equal(ort_session_bytes(&net, &ort, "noise", "\x08\x08garbage", 9, &options, &err), -1);
  assert_non_null(strstr(err.message, "noise (CPU provider): "));
  ort_close(&ort);
}

/* The profile says who computes; its file is gone afterwards. */
static void the_profile_names_the_provider(void **state) {
  (void)state;
  Ort ort;
  OrtPlacement placement;
  Error err;
  OrtNetOptions options = ort_net_options();
  float x[3 * 64] = {0};
  ort_required(&ort);
  setenv("TMPDIR", test_tmpdir(), 1);
  options.optimization = 0;
  const OrtArray in = ort_floats(x, 4, 1, 3, 8, 8);
  if (ort_placement(&ort, model("colours"), &options, &in, &placement, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(placement.cpu, 3);
  assert_int_equal(placement.cuda, 0);
  assert_string_equal(placement.on_cpu, "GlobalAveragePool, Flatten, Gemm");
  ort_close(&ort);
}

/* Without the provider's library, or without a GPU: a sentence, and not the CPU provider instead. */
static void a_missing_cuda_provider_is_named(void **state) {
  (void)state;
  Ort ort;
  OrtNet net;
  Error err;
  OrtNetOptions options = ort_net_options();
  options.cuda = 1;
  ort_required(&ort);
  if (ort_session(&net, &ort, model("colours"), &options, &err) == 0)
    ort_session_close(&net); /* this machine has it */
  else if (strstr(err.message, "CUDA provider") == NULL)
    fail_msg("%s", err.message);
  ort_close(&ort);
}

int main(void) {
  Error err;
  if (runfiles_find("phase5_production/10_onnx_runtime/libfake_ort.so", fake, sizeof fake, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_home_without_it_is_named),
                                     cmocka_unit_test(another_library_is_none),
                                     cmocka_unit_test(a_home_may_be_relative),
                                     cmocka_unit_test(a_file_that_is_no_library_is_refused),
                                     cmocka_unit_test(a_version_without_our_interface_is_refused),
                                     cmocka_unit_test(messages_lose_their_places_in_the_source),
                                     cmocka_unit_test(types_have_names_and_sizes),
                                     cmocka_unit_test(nothing_is_sent_to_its_maker),
                                     cmocka_unit_test(a_model_is_described),
                                     cmocka_unit_test(a_run_gives_the_numbers),
                                     cmocka_unit_test(bound_arrays_give_the_same),
                                     cmocka_unit_test(wrong_shapes_are_a_sentence),
                                     cmocka_unit_test(bad_models_are_a_sentence),
                                     cmocka_unit_test(the_profile_names_the_provider),
                                     cmocka_unit_test(a_missing_cuda_provider_is_named)};
  return TEST_MAIN("ort", tests);
}
