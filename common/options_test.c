#include "common/options.h"
#include "common/test.h"

#include <fcntl.h>
#include <sys/wait.h>

typedef struct Options {
  double lr;
  int64_t layers;
  char file[64];
} Options;

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case 'l':
      options->lr = option_float(state, arg, "--lr", 1e-9, 100);
      return 0;
    case 'n':
      options->layers = option_int(state, arg, "--layers", -3, 12);
      return 0;
    case ARGP_KEY_ARG:
      snprintf(options->file, sizeof options->file, "%s", arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option rows[] = {{"lr", 'l', "RATE", 0, "Learning rate (default: 0.05)", 0},
                                          {"layers", 'n', "N", 0, "Layers (default: 5)", 0},
                                          OPTION_END};
static const struct argp without_files = {rows, parse, NULL, "Does nothing.", NULL, NULL, NULL};
static const struct argp with_files = {rows, parse, "FILE", "Does nothing.", NULL, NULL, NULL};

static CommonOptions common;
static Options options;

/* Parses in this process what must be right; the arguments are separated by single spaces. */
static void accept(const struct argp *own, unsigned supported, const char *line) {
  static char copy[256];
  char *argv[16];
  int argc = 0;
  snprintf(copy, sizeof copy, "./sample %s", line);
  for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) argv[argc++] = word;
  argv[argc] = NULL;
  memset(&options, 0, sizeof options);
  common = options_default(supported);
  common.epochs = 5;
  options_parse(&common, own, &options, argc, argv);
}

/* Parses in a child what ends the program. Gives its exit status, and what it wrote on both streams. */
static int run(const struct argp *own, unsigned supported, const char *argument, char *output, size_t size) {
  char path[PATH_MAX];
  test_path(path, sizeof path, "output");
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    char program[] = "/a/long/path/sample", copy[256];
    char *argv[] = {program, copy, NULL};
    snprintf(copy, sizeof copy, "%s", argument);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0) _exit(99);
    program_invocation_short_name = program + 13;
    common = options_default(supported);
    options_parse(&common, own, &options, 2, argv);
    fflush(NULL);
    _exit(42); /* it was accepted */
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  output[fread(output, 1, size - 1, file)] = '\0';
  fclose(file);
  return WEXITSTATUS(status);
}

/* Usage error: status 2, and these words in the first line, which begins with the program's bare name. */
static void refuse(const char *argument, const char *words) {
  char output[4096];
  int status = run(&without_files, OPTIONS_TRAINER, argument, output, sizeof output);
  if (status != 2) fail_msg("%s: exit status %d, expected 2; output: %s", argument, status, output);
  assert_int_equal(strncmp(output, "sample: ", 8), 0);
  output[strcspn(output, "\n")] = '\0';
  if (strstr(output, words) == NULL) fail_msg("%s: expected \"%s\" in: %s", argument, words, output);
}

static void defaults_stay(void **state) {
  (void)state;
  accept(&without_files, OPTIONS_TRAINER, "");
  char runs[300];
  snprintf(runs, sizeof runs, "runs/%s", program_invocation_short_name);
  assert_int_equal(common.device, device_default());
  assert_int_equal(common.seed, 1);
  assert_int_equal(common.epochs, 5);
  assert_int_equal(common.batch_size, 64);
  assert_int_equal(common.json, 0);
  assert_string_equal(common.data_dir, "");
  assert_string_equal(common.output_dir, runs);
}

static void every_option_is_read(void **state) {
  (void)state;
  accept(&with_files, OPTIONS_TRAINER,
         "--device=cpu --seed=9223372036854775807 --epochs 100000 --batch-size=65536 --data-dir=some/where "
         "--output-dir=/out --json -l 0.5 --layers=-3 digit.png");
  assert_int_equal(common.device, DEVICE_CPU);
  assert_int_equal(common.seed, INT64_MAX);
  assert_int_equal(common.epochs, 100000);
  assert_int_equal(common.batch_size, 65536);
  assert_int_equal(common.json, 1);
  assert_string_equal(common.data_dir, "some/where");
  assert_string_equal(common.output_dir, "/out");
  assert_true(options.lr == 0.5);
  assert_int_equal(options.layers, -3);
  assert_string_equal(options.file, "digit.png");
  accept(&without_files, OPTIONS_TRAINER, "--device=gpu --seed=0 --lr=1e-9");
  assert_int_equal(common.device, DEVICE_GPU);
  assert_int_equal(common.seed, 0);
  assert_true(options.lr == 1e-9);
}

static void folders_are_the_user_s(void **state) {
  (void)state;
  setenv("BUILD_WORKING_DIRECTORY", "/home/ada", 1);
  accept(&without_files, OPTIONS_TRAINER, "--data-dir=mnist --output-dir=out/1");
  assert_string_equal(common.data_dir, "/home/ada/mnist");
  assert_string_equal(common.output_dir, "/home/ada/out/1");
  accept(&without_files, OPTIONS_TRAINER, "");
  assert_string_equal(common.data_dir, "");
  assert_int_equal(strncmp(common.output_dir, "/home/ada/runs/", 15), 0);
  unsetenv("BUILD_WORKING_DIRECTORY");
}

static void bad_whole_numbers(void **state) {
  (void)state;
  const char *bad[] = {"0", "-1", "100001", "abc", "5x", "1.5", "", " 5", "0x10", "1e3", "nan", "99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char argument[64], words[128];
    snprintf(argument, sizeof argument, "--epochs=%s", bad[i]);
    snprintf(words, sizeof words, "%s: a whole number from 1 to 100000 is expected", argument);
    refuse(argument, words);
  }
  refuse("--batch-size=0", "from 1 to 65536");
  refuse("--batch-size=65537", "from 1 to 65536");
  refuse("--seed=-1", "from 0 to 9223372036854775807");
  refuse("--seed=9223372036854775808", "from 0 to 9223372036854775807");
  refuse("--layers=-4", "from -3 to 12");
}

static void bad_numbers(void **state) {
  (void)state;
  const char *bad[] = {"0", "-0.1", "100.1", "1e400", "-1e400", "nan", "inf", "-inf", "fast", "", "0.1.2", " 1"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char argument[64], words[128];
    snprintf(argument, sizeof argument, "--lr=%s", bad[i]);
    snprintf(words, sizeof words, "%s: a number from 1e-09 to 100 is expected", argument);
    refuse(argument, words);
  }
}

static void bad_words(void **state) {
  (void)state;
  refuse("--device=cuda", "--device=cuda: cpu or gpu is expected");
  refuse("--device=", "cpu or gpu is expected");
  refuse("--data-dir=", "--data-dir=: a path is expected");
  refuse("--output-dir=", "--output-dir=: a path is expected");
  refuse("--no-such-option", "unrecognized option '--no-such-option'");
  refuse("-q", "invalid option -- 'q'");
  refuse("--epochs", "requires an argument");
  refuse("digit.png", "\"digit.png\" is not an option");
}

static void only_what_the_program_has(void **state) {
  (void)state;
  char output[4096];
  assert_int_equal(run(&with_files, OPTIONS_DEVICE, "--epochs=3", output, sizeof output), 2);
  assert_non_null(strstr(output, "unrecognized option '--epochs=3'"));
  assert_int_equal(run(&with_files, OPTIONS_DEVICE, "--help", output, sizeof output), 0);
  assert_null(strstr(output, "--epochs"));
  assert_non_null(strstr(output, "--device=cpu|gpu"));
}

static void help_and_version(void **state) {
  (void)state;
  char output[4096];
  assert_int_equal(run(&with_files, OPTIONS_TRAINER, "--help", output, sizeof output), 0);
  const char *expected[] = {
      "Usage: sample [OPTION...] FILE", "Does nothing.", "-l, --lr=RATE", "(default: 0.05)", "--batch-size=N",
      "Samples a step (default: 64)",   "--json"};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
    if (strstr(output, expected[i]) == NULL) fail_msg("expected \"%s\" in: %s", expected[i], output);
  assert_true(strstr(output, "--lr=RATE") < strstr(output, "--device")); /* the program's own come first */
  assert_int_equal(run(&without_files, OPTIONS_TRAINER, "--version", output, sizeof output), 0);
  assert_int_equal(strncmp(output, "sample " NN_VERSION, strlen("sample " NN_VERSION)), 0);
}

int main(void) {
  unsetenv("BUILD_WORKING_DIRECTORY");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_stay),
      cmocka_unit_test(every_option_is_read),
      cmocka_unit_test(folders_are_the_user_s),
      cmocka_unit_test(bad_whole_numbers),
      cmocka_unit_test(bad_numbers),
      cmocka_unit_test(bad_words),
      cmocka_unit_test(only_what_the_program_has),
      cmocka_unit_test(help_and_version),
  };
  return TEST_MAIN("options", tests);
}
