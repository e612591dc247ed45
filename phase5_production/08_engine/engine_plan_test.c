/* The file of a plan: what is written is read; whatever is damaged is refused in a sentence. */
#include "common/test.h"

#include "phase5_production/08_engine/engine_plan.h"

static char folder[] = "/tmp/engine_plan_XXXXXX";

static EnginePlanFile example(void) {
  static const unsigned char model[] = "a model of ONNX would be here";
  EnginePlanFile plan;
  memset(&plan, 0, sizeof plan);
  snprintf(plan.device, sizeof plan.device, "GPU Example, compute capability 9.0");
  snprintf(plan.precision, sizeof plan.precision, "fp16");
  snprintf(plan.choices, sizeof plan.choices, "recipe:layers,conv1:winograd");
  plan.max_batch = 64;
  plan.max_height = 224;
  plan.max_width = 192;
  plan.cuda_graphs = 1;
  plan.model = model;
  plan.model_size = sizeof model;
  return plan;
}

/* The bytes of a written plan, to be freed. */
static unsigned char *written(size_t *size) {
  Error err;
  char path[64];
  const EnginePlanFile plan = example();
  snprintf(path, sizeof path, "%s/a.nnplan", folder);
  if (engine_plan_write(&plan, path, &err) != 0) fail_msg("%s", err.message);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  unsigned char *bytes = (unsigned char *)xmalloc(4096);
  *size = fread(bytes, 1, 4096, file);
  fclose(file);
  return bytes;
}

static void reads_what_it_wrote(void **state) {
  (void)state;
  Error err;
  size_t size;
  char path[64];
  EnginePlanFile plan;
  const EnginePlanFile expected = example();
  free(written(&size));
  snprintf(path, sizeof path, "%s/a.nnplan", folder);
  if (engine_plan_open(&plan, path, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(plan.device, expected.device);
  assert_string_equal(plan.precision, expected.precision);
  assert_string_equal(plan.choices, expected.choices);
  assert_int_equal(plan.version, ENGINE_PLAN_VERSION);
  assert_int_equal(plan.max_batch, 64);
  assert_int_equal(plan.max_height, 224);
  assert_int_equal(plan.max_width, 192);
  assert_int_equal(plan.cuda_graphs, 1);
  assert_int_equal(plan.batch_invariant, 0);
  assert_int_equal(plan.model_size, expected.model_size);
  assert_memory_equal(plan.model, expected.model, expected.model_size);
  assert_int_equal((uintptr_t)plan.model % 64, 0);
  engine_plan_close(&plan);
}

/* The sentence of a refusal. */
static const char *refusal(const unsigned char *bytes, size_t size) {
  static Error err;
  EnginePlanFile plan;
  unsigned char *copy = (unsigned char *)xmalloc(size + 1); /* so that a sanitizer sees what lies behind */
  memcpy(copy, bytes, size);
  const int status = engine_plan_parse(&plan, "x.nnplan", copy, size, &err);
  free(copy);
  if (status == 0) fail_msg("a damaged plan of %zu bytes was read", size);
  return err.message;
}

static void refuses_every_length_but_its_own(void **state) {
  (void)state;
  size_t size;
  unsigned char *bytes = written(&size);
  for (size_t n = 0; n < size; n++) refusal(bytes, n);
  assert_non_null(strstr(refusal(bytes, size - 1), "truncated"));
  assert_non_null(strstr(refusal(bytes, 5), "is not a plan"));
  free(bytes);
}

static void refuses_every_changed_setting(void **state) {
  (void)state;
  size_t size;
  unsigned char *bytes = written(&size);
  const size_t text = 64, end = text + (size_t)engine_plan_get(bytes + 24, 8);
  for (size_t i = text; i < end; i++) {
    bytes[i] ^= 1;
    assert_non_null(strstr(refusal(bytes, size), "checksum"));
    bytes[i] ^= 1;
  }
  free(bytes);
}

/* Places that lie outside, wrap round, or cover each other. */
static void refuses_hostile_places(void **state) {
  (void)state;
  size_t size;
  unsigned char *bytes = written(&size);
  static const struct {
    int at;
    uint64_t value;
  } hostile[] = {{16, 0},       {16, 1 << 20},    {16, UINT64_MAX}, {24, UINT64_MAX}, {24, UINT64_MAX - 63},
                 {32, 8},       {32, UINT64_MAX}, {40, UINT64_MAX}, {40, 0},          {32, 64},
                 {24, 1 << 30}, {48, 0},          {48, UINT64_MAX}};
  for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
    unsigned char kept[8];
    memcpy(kept, bytes + hostile[i].at, 8);
    engine_plan_put(bytes + hostile[i].at, hostile[i].value, 8);
    refusal(bytes, size);
    memcpy(bytes + hostile[i].at, kept, 8);
  }
  free(bytes);
}

/* With the checksum that belongs to it. */
static const char *refusal_of_settings(const char *text) {
  unsigned char bytes[2048] = {0};
  const size_t size = strlen(text), model = (64 + size + 63) / 64 * 64;
  memcpy(bytes, ENGINE_PLAN_MAGIC, 8);
  engine_plan_put(bytes + 8, ENGINE_PLAN_VERSION, 4);
  engine_plan_put(bytes + 12, crc32(0, (const Bytef *)text, (uInt)size), 4);
  engine_plan_put(bytes + 16, 64, 8);
  engine_plan_put(bytes + 24, size, 8);
  engine_plan_put(bytes + 32, model, 8);
  engine_plan_put(bytes + 40, 4, 8);
  engine_plan_put(bytes + 48, model + 4, 8);
  memcpy(bytes + 64, text, size);
  return refusal(bytes, model + 4);
}

static void refuses_settings_that_make_no_sense(void **state) {
  (void)state;
  static const char rest[] = "precision=fp32\nmax_height=0\nmax_width=0\nbatch_invariant=0\ncuda_graphs=1\nchoices=\n";
  char text[1024];
  assert_non_null(strstr(refusal_of_settings(rest), "missing"));
  snprintf(text, sizeof text, "device=x\nmax_batch=0\n%s", rest);
  assert_non_null(strstr(refusal_of_settings(text), "max_batch=0"));
  snprintf(text, sizeof text, "device=x\nmax_batch=-1\n%s", rest);
  assert_non_null(strstr(refusal_of_settings(text), "makes no sense"));
  snprintf(text, sizeof text, "device=x\nmax_batch=99999999999999999999\n%s", rest);
  refusal_of_settings(text);
  snprintf(text, sizeof text, "device=x\nmax_batch=1\nmax_batch=1\n%s", rest);
  assert_non_null(strstr(refusal_of_settings(text), "twice"));
  snprintf(text, sizeof text, "device=x\nmax_batch=1\nshell=rm\n%s", rest);
  assert_non_null(strstr(refusal_of_settings(text), "unknown"));
  snprintf(text, sizeof text, "device=x\nmax_batch\n%s", rest);
  refusal_of_settings(text);
  snprintf(text, sizeof text, "device=%0300d\nmax_batch=1\n%s", 7, rest);
  refusal_of_settings(text);
  snprintf(text, sizeof text, "device=\033[2J\nmax_batch=1\n%s", rest);
  assert_non_null(strstr(refusal_of_settings(text), "control character (27)"));
}

/* Of another version nothing but the model is read. */
static void finds_the_model_of_another_version(void **state) {
  (void)state;
  Error err;
  size_t size;
  EnginePlanFile plan;
  unsigned char *bytes = written(&size);
  engine_plan_put(bytes + 8, 99, 4);
  bytes[70] ^= 1;
  assert_int_equal(engine_plan_parse(&plan, "x.nnplan", bytes, size, &err), 0);
  assert_int_equal(plan.version, 99);
  assert_string_equal(plan.choices, "");
  assert_memory_equal(plan.model, example().model, plan.model_size);
  free(bytes);
}

static void refuses_what_is_no_file(void **state) {
  (void)state;
  Error err;
  EnginePlanFile plan;
  assert_int_equal(engine_plan_open(&plan, folder, &err), -1);
  assert_int_equal(engine_plan_open(&plan, "/dev/null", &err), -1);
  assert_int_equal(engine_plan_open(&plan, "/tmp/there_is/none.nnplan", &err), -1);
  assert_non_null(strstr(err.message, "cannot open"));
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
  (void)state;
  char path[64];
  snprintf(path, sizeof path, "%s/a.nnplan", folder);
  unlink(path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_what_it_wrote),
      cmocka_unit_test(refuses_every_length_but_its_own),
      cmocka_unit_test(refuses_every_changed_setting),
      cmocka_unit_test(refuses_hostile_places),
      cmocka_unit_test(refuses_settings_that_make_no_sense),
      cmocka_unit_test(finds_the_model_of_another_version),
      cmocka_unit_test(refuses_what_is_no_file),
  };
  return cmocka_run_group_tests_name("engine_plan", tests, make_folder, remove_folder);
}
