/* options.h - the command line that all programs share, on glibc's argp.
 *
 * A program says which of the shared options it has, gives their defaults, and describes its own in a `struct argp`:
 *
 *     static error_t parse(int key, char *arg, struct argp_state *state) {
 *       Options *options = (Options *)state->input;
 *       switch (key) {
 *         case 'l': options->lr = option_float(state, arg, "--lr", 1e-9, 100); return 0;
 *         default: return ARGP_ERR_UNKNOWN;
 *       }
 *     }
 *
 *     int main(int argc, char **argv) {
 *       static const struct argp_option rows[] = {{"lr", 'l', "RATE", 0, "Learning rate", 0}, OPTION_END};
 *       static const struct argp own = {rows, parse, NULL, "Trains LeNet-5 on MNIST.", NULL, NULL, NULL};
 *       Options options = ...;
 *       CommonOptions common = options_default(OPTIONS_TRAINER);
 *       common.epochs = 5;
 *       options_parse(&common, &own, &options, argc, argv);
 *
 * What cannot be understood ends the program with one sentence, the range that is accepted, and exit status 2. The
 * third field of `own` describes the arguments that are no options ("FILE..."); NULL refuses them. options_parse()
 * turns the two folders into paths that are valid whatever the current folder; it makes neither.
 */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/device.h"
#include "common/error.h"
#include "common/runfiles.h"

#include <argp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>

#define NN_VERSION "0.1"

/* Each is a bit of a program's set, and the key of the option in argp. */
enum {
  OPTIONS_DEVICE = 0x1000,
  OPTIONS_SEED = 0x2000,
  OPTIONS_EPOCHS = 0x4000,
  OPTIONS_BATCH_SIZE = 0x8000,
  OPTIONS_DATA_DIR = 0x10000,
  OPTIONS_OUTPUT_DIR = 0x20000,
  OPTIONS_JSON = 0x40000,
  OPTIONS_TRAINER = 0x7f000, /* all of them */
  OPTIONS_LESSON = OPTIONS_DEVICE | OPTIONS_SEED | OPTIONS_JSON
};

#define OPTION_END \
  { NULL, 0, NULL, 0, NULL, 0 } /* ends the rows */

typedef struct CommonOptions {
  unsigned supported; /* OPTIONS_..., or'ed */
  unsigned given;     /* those that the user typed */
  Device device;
  uint64_t seed;
  int epochs, batch_size;
  int json;                  /* 1: the last line on stdout is a JSON object */
  char data_dir[PATH_MAX];   /* "": the data that Bazel laid out */
  char output_dir[PATH_MAX]; /* "runs/PROGRAM" */
  /* Called before the arguments are read, with all options of the program: it may replace them. NULL: nobody does. */
  void (*rewrite)(void *input, const struct argp *all, int *argc, char ***argv);
  void *rewrite_input;
} CommonOptions;

/* The GPU where this program has kernels and there is a real GPU to run them, else the CPU. */
static inline Device device_default(void) {
#if defined(__CUDACC__) && !defined(SIMT_REWRITTEN) /* the emulated GPU is for whoever asks for it */
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return DEVICE_GPU; /* makes no CUDA context yet */
#endif
  return DEVICE_CPU;
}

/* A program started with stdin, stdout or stderr closed would open its first file in their place, and print into it.
 * A write beyond the limit on a file's size (ulimit -f) shall fail with a sentence, not end the program by SIGXFSZ. */
static inline void options_prepare_files(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd) _exit(1);
  signal(SIGXFSZ, SIG_IGN);
}

static inline CommonOptions options_default(unsigned supported) {
  CommonOptions options;
  options_prepare_files();
  memset(&options, 0, sizeof options);
  options.supported = supported;
  options.device = supported & OPTIONS_DEVICE ? device_default() : DEVICE_CPU;
  options.seed = 1;
  options.epochs = 1;
  options.batch_size = 64;
  snprintf(options.output_dir, sizeof options.output_dir, "runs/%s", program_invocation_short_name);
  return options;
}

/* A whole number from min to max, both included. */
static inline int64_t option_int(const struct argp_state *state, const char *arg, const char *name, int64_t min,
                                 int64_t max) {
  char *end;
  errno = 0;
  long long value = strtoll(arg, &end, 10);
  if (end == arg || *end != '\0' || (unsigned char)arg[0] <= ' ' || errno != 0 || value < min || value > max)
    argp_error(state, "%s=%s: a whole number from %lld to %lld is expected", name, arg, (long long)min, (long long)max);
  return value;
}

/* A number from min to max, both included. */
static inline double option_float(const struct argp_state *state, const char *arg, const char *name, double min,
                                  double max) {
  char *end;
  double value = strtod(arg, &end);
  if (end == arg || *end != '\0' || (unsigned char)arg[0] <= ' ' ||
      !(value >= min && value <= max)) /* NaN fails both */
    argp_error(state, "%s=%s: a number from %g to %g is expected", name, arg, min, max);
  return value;
}

/* A path, not empty, kept as typed; see user_path(). `out` has room for PATH_MAX bytes. */
static inline void option_path(const struct argp_state *state, const char *arg, const char *name, char *out) {
  if (arg[0] == '\0') argp_error(state, "%s=: a path is expected", name);
  if ((size_t)snprintf(out, PATH_MAX, "%s", arg) >= PATH_MAX)
    argp_error(state, "%s=%.40s...: the path is too long", name, arg);
}

typedef struct OptionsParser {
  CommonOptions *common;
  const struct argp *own;
  void *own_input;
  struct argp_option rows[9];
  char texts[9][PATH_MAX + 64];
  int count;
} OptionsParser;

static inline error_t options_parse_common(int key, char *arg, struct argp_state *state) {
  OptionsParser *parser = (OptionsParser *)state->input;
  CommonOptions *common = parser->common;
  if (key >= OPTIONS_DEVICE && key <= OPTIONS_JSON) common->given |= (unsigned)key;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = parser->own_input;
      return 0;
    case ARGP_KEY_ARG:
      if (parser->own->args_doc == NULL)
        argp_error(state, "\"%s\" is not an option, and this program takes no other arguments", arg);
      return ARGP_ERR_UNKNOWN; /* the program's own parser has a look */
    case OPTIONS_DEVICE:
      common->device = strcmp(arg, "gpu") == 0 ? DEVICE_GPU : DEVICE_CPU;
      if (strcmp(arg, device_name(common->device)) != 0) argp_error(state, "--device=%s: cpu or gpu is expected", arg);
      return 0;
    case OPTIONS_SEED:
      common->seed = (uint64_t)option_int(state, arg, "--seed", 0, INT64_MAX);
      return 0;
    case OPTIONS_EPOCHS:
      common->epochs = (int)option_int(state, arg, "--epochs", 1, 100000);
      return 0;
    case OPTIONS_BATCH_SIZE:
      common->batch_size = (int)option_int(state, arg, "--batch-size", 1, 65536);
      return 0;
    case OPTIONS_DATA_DIR:
      option_path(state, arg, "--data-dir", common->data_dir);
      return 0;
    case OPTIONS_OUTPUT_DIR:
      option_path(state, arg, "--output-dir", common->output_dir);
      return 0;
    case OPTIONS_JSON:
      common->json = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* Adds a row of --help, when the program has that option. */
__attribute__((format(printf, 5, 6))) static inline void options_row(OptionsParser *parser, int key, const char *name,
                                                                     const char *arg, const char *format, ...) {
  if ((parser->common->supported & (unsigned)key) == 0) return;
  va_list args;
  va_start(args, format);
  vsnprintf(parser->texts[parser->count], sizeof parser->texts[0], format, args);
  va_end(args);
  const struct argp_option row = {name, key, arg, 0, parser->texts[parser->count], 0};
  parser->rows[parser->count++] = row;
}

/* Reads the command line into `common` and, through own->parser, into `own_input`. */
static inline void options_parse(CommonOptions *common, const struct argp *own, void *own_input, int argc,
                                 char **argv) {
  static OptionsParser parser; /* too large for some stacks */
  memset(&parser, 0, sizeof parser);
  parser.common = common;
  parser.own = own;
  parser.own_input = own_input;
  parser.rows[0].doc = "Options of all programs:";
  parser.rows[0].group = 2; /* after the program's own */
  parser.count = 1;
  options_row(&parser, OPTIONS_DEVICE, "device", "cpu|gpu", "Where to compute (default, on this machine: %s)",
              device_name(common->device));
  options_row(&parser, OPTIONS_SEED, "seed", "N", "Seed of all that is random (default: %llu)",
              (unsigned long long)common->seed);
  options_row(&parser, OPTIONS_EPOCHS, "epochs", "N", "Passes over the training set (default: %d)", common->epochs);
  options_row(&parser, OPTIONS_BATCH_SIZE, "batch-size", "N", "Samples a step (default: %d)", common->batch_size);
  options_row(&parser, OPTIONS_DATA_DIR, "data-dir", "DIR", "Folder with the data set (default: %s)",
              common->data_dir[0] != '\0' ? common->data_dir : "the one that Bazel fetched");
  options_row(&parser, OPTIONS_OUTPUT_DIR, "output-dir", "DIR", "Folder for the results (default: %s)",
              common->output_dir);
  options_row(&parser, OPTIONS_JSON, "json", NULL, "Print the results as a JSON object, on the last line of stdout");

  const struct argp_child children[] = {{own, 0, "Options of this program:", 1}, {NULL, 0, NULL, 0}};
  const struct argp all = {parser.rows, options_parse_common, NULL, NULL, children, NULL, NULL};
  setenv("ARGP_HELP_FMT", "no-dup-args-note,rmargin=100", 0); /* 0: the user's own taste comes first */
  argp_err_exit_status = 2;
#if defined(__CUDACC__) && defined(SIMT_REWRITTEN)
  static char version[256];
  snprintf(version, sizeof version, "%s " NN_VERSION " (Neural Networks in CUDA, for the CPU and an emulated GPU)",
           program_invocation_short_name);
#elif defined(__CUDACC__)
  static char version[256];
  snprintf(version, sizeof version, "%s " NN_VERSION " (Neural Networks in CUDA, for CPU and GPU, CUDA %d.%d)",
           program_invocation_short_name, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  static char version[256];
  snprintf(version, sizeof version, "%s " NN_VERSION " (Neural Networks in CUDA, for the CPU alone)",
           program_invocation_short_name);
#endif
  argp_program_version = version;
  argv[0] = program_invocation_short_name; /* getopt's messages begin with it, and Bazel's path is long */
  if (common->rewrite) common->rewrite(common->rewrite_input, &all, &argc, &argv);
  argp_parse(&all, argc, argv, 0, NULL, &parser);

  Error err;
  char typed[PATH_MAX];
  memcpy(typed, common->output_dir, sizeof typed);
  if (user_path(typed, common->output_dir, PATH_MAX, &err) != 0) die("--output-dir: %s", err.message);
  memcpy(typed, common->data_dir, sizeof typed);
  if (typed[0] != '\0' && user_path(typed, common->data_dir, PATH_MAX, &err) != 0) die("--data-dir: %s", err.message);
}

#endif /* COMMON_OPTIONS_H */
