/* Options from a JSON file: what a program then has, what it says of a file that is not right, and what it writes. */
#include "common/nn/config.h"
#include "common/options.h"
#include "common/test.h"

enum { KEY_CONFIG = 0x200000, KEY_LINE, KEY_EPOCHS, KEY_NESTEROV, KEY_FIND };

typedef struct Options {
  double lr;
  int epochs, nesterov, find;
  char layers[64];
} Options;

static Options options;
static Config config;

static error_t parse(int key, char *arg, struct argp_state *state) {
  switch (key) {
    case KEY_CONFIG:
      return 0;
    case KEY_LINE:
      config_at(&config, arg, state);
      return 0;
    case 'l':
      options.lr = option_float(state, arg, "--lr", 1e-9, 100);
      return 0;
    case KEY_EPOCHS:
      options.epochs = (int)option_int(state, arg, "--train-epochs", 1, 1000);
      return 0;
    case KEY_NESTEROV:
      options.nesterov++;
      return 0;
    case KEY_FIND:
      options.find = arg ? (int)option_int(state, arg, "--find-lr", 20, 100) : 50;
      return 0;
    case 'L':
      snprintf(options.layers + strlen(options.layers), sizeof options.layers - strlen(options.layers), "[%s]", arg);
      return 0;
    case ARGP_KEY_END:
      if (options.epochs == 13) argp_error(state, "--train-epochs=13: another number is expected");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option child_rows[] = {{"layers", 'L', "N,N", 0, "Layers", 0}, OPTION_END};
static const struct argp child = {child_rows, parse, NULL, NULL, NULL, NULL, NULL};
static const struct argp_child children[] = {{&child, 0, NULL, 0}, {NULL, 0, NULL, 0}};
static const struct argp_option rows[] = {{"config", KEY_CONFIG, "FILE", 0, "File", 0},
                                          {CONFIG_LINE, KEY_LINE, "N", OPTION_HIDDEN, "", 0},
                                          {"lr", 'l', "RATE", 0, "Rate", 0},
                                          {"train-epochs", KEY_EPOCHS, "N", 0, "Epochs", 0},
                                          {"epochs", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0},
                                          {"nesterov", KEY_NESTEROV, NULL, 0, "A flag", 0},
                                          {"find-lr", KEY_FIND, "N", OPTION_ARG_OPTIONAL, "Optional", 0},
                                          OPTION_END};
static const struct argp argp = {rows, parse, NULL, NULL, children, NULL, NULL};

static const char *file(const char *text, size_t size) {
  static char path[PATH_MAX];
  FILE *out = fopen(test_path(path, sizeof path, "run.json"), "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(text, 1, size, out), size);
  assert_int_equal(fclose(out), 0);
  return path;
}

/* Reads the file and the arguments that are not NULL, as a program does. */
static void read_options(const char *path, const char *a, const char *b) {
  static char argument[PATH_MAX + 16], program[] = "sample";
  char *words[8] = {program, argument}, **argv = words;
  int argc = 2;
  snprintf(argument, sizeof argument, "--config=%s", path);
  if (a) argv[argc++] = (char *)a;
  if (b) argv[argc++] = (char *)b;
  memset(&options, 0, sizeof options);
  config_close(&config);
  argp_err_exit_status = 2;
  config_open(&config, &argp, argc, argv);
  config_arguments(&config, &argc, &argv);
  if (argp_parse(&argp, argc, argv, 0, NULL, NULL) != 0) exit(3);
}

static void with(const char *text, const char *a, const char *b) { read_options(file(text, strlen(text)), a, b); }

static void values_of_every_type_are_taken(void **state) {
  (void)state;
  with("{\"lr\": 0.02, \"train_epochs\": 3, \"nesterov\": true,\n \"find-lr\": 30, \"layers\": \"784,10\"}", NULL,
       NULL);
  assert_true(options.lr == 0.02);
  assert_int_equal(options.epochs, 3);
  assert_int_equal(options.nesterov, 1);
  assert_int_equal(options.find, 30);
  assert_string_equal(options.layers, "[784,10]");
  with("{\"lr\": \"1e-3\", \"epochs\": 1e2, \"nesterov\": false, \"find-lr\": true}", NULL, NULL);
  assert_true(options.lr == 1e-3);
  assert_int_equal(options.epochs, 100); /* a hidden second name */
  assert_int_equal(options.nesterov, 0);
  assert_int_equal(options.find, 50);
  with("{}", NULL, NULL);
  assert_true(options.lr == 0);
}

/* Also by its short name or an abbreviation; and it replaces, where an option would add to what was given before. */
static void what_is_typed_comes_first(void **state) {
  (void)state;
  const char *text = "{\"lr\": 0.02, \"layers\": \"784,10\", \"train-epochs\": 0}";
  with(text, "-L1,2", "--train=7");
  assert_true(options.lr == 0.02);
  assert_string_equal(options.layers, "[1,2]");
  assert_int_equal(options.epochs, 7);
  assert_int_equal(config.rows[config_find(&config, "layers")].replaced, 1);
  assert_int_equal(config.rows[config_find(&config, "lr")].replaced, 0);
}

typedef struct Wrong {
  const char *text, *sentence;
} Wrong;

/* What a program says that ends with status 2. */
static void expect_refused(const char *path, const char *a, const char *sentence) {
  static char output[4096];
  char log[PATH_MAX];
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    program_invocation_short_name = (char *)"sample";
    if (freopen(test_path(log, sizeof log, "stderr"), "w", stderr) == NULL) _exit(99);
    read_options(path, a, NULL);
    _exit(42);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  output[test_read_file(test_path(log, sizeof log, "stderr"), output, sizeof output - 1)] = '\0';
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 2 || strstr(output, sentence) == NULL)
    fail_msg("status %x, expected exit 2 and \"%s\":\n%s", status, sentence, output);
}

static void a_file_that_is_not_right_is_refused(void **state) {
  (void)state;
  const Wrong wrong[] = {
      {"", "it is empty; a JSON file of options is expected"},
      {" \n\t", "it is empty"},
      {"{\"lr\": 0.1,\n \"epochs\": }", "line 2, column 12 is not JSON"},
      {"[1]", "it holds an array; an object is expected"},
      {"3", "is not JSON"},
      {"{\"lr\": 0.1,\n \"lr\": 0.2}", "run.json: line 2, column 5: duplicate object key"},
      {"{\"train-epochs\": 1,\n\n \"train_epochs\": 2}", "line 3: \"train_epochs\" is in line 1, too; give it once"},
      {"{\"train-epochs\": 1, \"epochs\": 2}", "line 1: \"epochs\" is in line 1, too"},
      {"{\n\"lr\": 1,\n\"nestrov\": true}",
       "line 3: \"nestrov\" is not an option of this program; do you mean \"nesterov\"?"},
      {"{\"train_epoch\": 1}", "do you mean \"train-epochs\"?"},
      {"{\"zzzzzzzz\": 1}", "\"zzzzzzzz\" is not an option of this program; --help lists them"},
      {"{\"config\": \"a.json\"}", "line 1: \"config\" is not a key of a file"},
      {"{\"\\u0001\": 3}", "is not a key of a file"},
      {"{\"lr\": [0.1]}", "line 1: \"lr\" is [0.1]; a number or a string is expected"},
      {"{\"lr\": null}", "\"lr\" is null; a number or a string"},
      {"{\"lr\": true}", "\"lr\" is true; a number or a string"},
      {"{\"nesterov\": 1}", "\"nesterov\" is 1; true or false is expected"},
      {"{\"nesterov\": \"true\"}", "\"nesterov\" is \"true\"; true or false is expected"},
      {"{\"find-lr\": {}}", "\"find-lr\" is {}; true, false, a number or a string is expected"},
      {"{\n \"layers\": \"a{[\\\"\",\n \"lr\": \"high\"}", "run.json, line 3: --lr=high: a number from 1e-09 to 100"},
      {"{\"lr\": \"\"}", "line 1: --lr=: a number from"},
      {"{\"train-epochs\": 2.5}", "line 1: --train-epochs=2.5: a whole number from 1 to 1000"},
      {"{\"lr\": 99999999999999999999}", "is not JSON"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    expect_refused(file(wrong[i].text, strlen(wrong[i].text)), NULL, wrong[i].sentence);
  expect_refused(file("{\"lr\"\0: 1}", 10), NULL, "is not JSON");
  expect_refused(file("{\"lr\": \"\xff\"}", 11), NULL, "is not JSON");
  expect_refused(test_tmpdir(), NULL, "it is a folder; a JSON file of options is expected");
  expect_refused("/no/such.json", NULL, "--config=/no/such.json: it cannot be opened: No such file");
  expect_refused("/dev/zero", NULL, "it has more than 1048576 bytes");
  /* What is typed is not the file's fault. */
  expect_refused(file("{\"lr\": 1}", 9), "--lr=0", "sample: --lr=0: a number from");
  expect_refused(file("{\"train-epochs\": 13}", 20), NULL, "sample: --train-epochs=13: another number");
}

/* A pipe says it once, and is asked twice. */
static void a_pipe_is_kept(void **state) {
  (void)state;
  int ends[2];
  char path[64];
  size_t size;
  Error err;
  const char *text = "{\"lr\": 0.5}";
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
  close(ends[1]);
  snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
  char *first = config_read_text(path, &size, &err);
  close(ends[0]);
  assert_non_null(first);
  assert_string_equal(first, text);
  assert_int_equal(size, strlen(text));
  free(first);
  read_options(path, NULL, NULL);
  assert_true(options.lr == 0.5);
  /* So is what is wrong with it; a file is read anew. */
  assert_int_equal(pipe(ends), 0);
  close(ends[1]);
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  for (int i = 0; i < 2; i++) {
    assert_null(config_read_text(path, &size, &err));
    assert_non_null(strstr(err.message, "it is empty; a JSON file"));
    if (i == 0) close(ends[0]);
  }
  with("{\"lr\": 2}", NULL, NULL);
  with("{\"lr\": 3}", NULL, NULL);
  assert_true(options.lr == 3);
}

/* Options that are only to be looked at: right ones end the program with success, wrong ones as ever. */
static void values_can_be_looked_at(void **state) {
  (void)state;
  const char *const said[] = {"--lr=1", "--lr=1000"};
  const int expected[] = {0, 2};
  for (int i = 0; i < 2; i++) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
      char log[PATH_MAX];
      if (freopen(test_path(log, sizeof log, "stderr"), "w", stderr) == NULL) _exit(99);
      with("{}", said[i], "--" CONFIG_LINE "=" CONFIG_END);
      _exit(42);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected[i]);
  }
}

static void the_file_and_the_user_are_told_apart(void **state) {
  (void)state;
  with("{\"lr\": 0.02, \"nesterov\": false, \"train-epochs\": 3, \"find-lr\": true}", "--epochs=5", NULL);
  assert_true(config_is_from_file(&config, "lr"));
  assert_true(config_is_from_file(&config, "find_lr"));
  assert_false(config_is_from_file(&config, "train-epochs")); /* typed, too */
  assert_false(config_is_from_file(&config, "nesterov"));     /* off */
  assert_false(config_is_from_file(&config, "layers"));
  assert_false(config_is_from_file(&config, "unknown"));
  assert_false(config_is_from_file(NULL, "lr"));
  assert_true(config_is_whole(&config.rows[config_find(&config, "epochs")]));
  assert_false(config_is_whole(&config.rows[config_find(&config, "lr")]));
  assert_false(config_is_whole(&config.rows[config_find(&config, "nesterov")]));
  assert_false(config_is_whole(&config.rows[config_find(&config, "layers")]));
}

/* Written and read again it is the same, to the last bit. */
static void what_is_written_is_read_again(void **state) {
  (void)state;
  char path[PATH_MAX], number[64], text[512];
  const char *const without[] = {"find-lr", NULL};
  Error err;
  const double lr = 0.1 + 0.2;
  with("{\"layers\": \"784 \\\"x\\\"\", \"find-lr\": 30, \"nesterov\": true}", "--epochs=5", NULL);
  config_set(&config, "lr", config_number(lr, number, sizeof number));
  config_set(&config, "unknown", "1");
  if (config_write(&config, test_path(path, sizeof path, "written.json"), without, &err) != 0)
    fail_msg("%s", err.message);
  text[test_read_file(path, text, sizeof text - 1)] = '\0';
  assert_string_equal(text,
                      "{\n  \"lr\": 0.30000000000000004,\n  \"train-epochs\": 5,\n  \"nesterov\": true,\n"
                      "  \"layers\": \"784 \\\"x\\\"\"\n}\n");
  read_options(path, NULL, NULL);
  assert_true(options.lr == lr);
  assert_int_equal(options.epochs, 5);
  assert_int_equal(options.nesterov, 1);
  assert_string_equal(options.layers, "[784 \"x\"]");
  assert_int_equal(config_write(&config, "/no/such/folder.json", without, &err), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_of_every_type_are_taken),
      cmocka_unit_test(what_is_typed_comes_first),
      cmocka_unit_test(a_file_that_is_not_right_is_refused),
      cmocka_unit_test(what_is_written_is_read_again),
      cmocka_unit_test(a_pipe_is_kept),
      cmocka_unit_test(values_can_be_looked_at),
      cmocka_unit_test(the_file_and_the_user_are_told_apart),
  };
  return TEST_MAIN("config", tests);
}
