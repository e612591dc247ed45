/* engine.cu - the inference engine as a program.
 *
 *     bazel run //phase5_production:engine -- build model.onnx -o model.nnplan
 *     bazel run //phase5_production:engine -- run model.nnplan cat.jpg dog.jpg        the likeliest classes
 *     bazel run //phase5_production:engine -- bench model.nnplan --max-batch=64 --json
 *     bazel run //phase5_production:engine -- show model.onnx -o model.svg
 *
 * Without arguments it shows the passes on a thin ResNet-18. build prints what each pass changes. Wherever a plan is
 * expected, a file of ONNX is taken, too.
 */
#include <sys/stat.h>

#include "common/options.h"
#include "common/threads_begin.h"
#include "phase5_production/08_engine/engine_bench.cuh"
#include "phase5_production/08_engine/engine_command.cuh"
#include "phase5_production/08_engine/engine_demo.cuh"
#include "phase5_production/08_engine/engine_show.cuh"

enum { BUILD = 1, GPU, PRECISION, MAX_BATCH, MAX_HEIGHT, MAX_WIDTH, INVARIANT, THREADS, CHOICES, TOP, RANDOM, ROUNDS };
enum { NO_GRAPHS = 0x200, NO_MEASURING }; /* no letters */

static void parse_command(EngineCommand *c, struct argp_state *state, const char *arg) {
  static const char *const names[] = {"build", "run", "bench", "show"};
  for (int i = 0; i < 4; i++)
    if (strcmp(arg, names[i]) == 0) {
      c->verb = (EngineVerb)(i + 1);
      return;
    }
  argp_error(state, "\"%.80s\": build, run, bench or show is expected first", arg);
}

static void parse_argument(EngineCommand *c, struct argp_state *state, char *arg) {
  if (state->arg_num == 0)
    parse_command(c, state, arg);
  else if (state->arg_num == 1)
    option_path(state, arg, "MODEL", c->model);
  else if (c->file_count < ENGINE_MOST_FILES)
    c->files[c->file_count++] = arg;
  else
    argp_error(state, "at most %d files are possible", ENGINE_MOST_FILES);
}

static void parse_end(const EngineCommand *c, struct argp_state *state) {
  if (state->arg_num == 0) return; /* the demonstration */
  if (state->arg_num < 2)
    argp_error(state, "a command and a model are expected: build, run, bench or show, and FILE.onnx");
  if (c->file_count > 0 && c->verb != ENGINE_RUN)
    argp_error(state, "\"%.80s\": only run takes pictures or tensors", c->files[0]);
  if (c->verb == ENGINE_BUILD && c->output[0] == '\0')
    argp_error(state, "build: the plan's name is expected: -o FILE.nnplan");
  if (c->verb == ENGINE_SHOW && c->output[0] == '\0')
    argp_error(state, "show: the picture's name is expected: -o FILE.svg");
  if (c->verb == ENGINE_RUN && c->file_count == 0 && !c->random)
    argp_error(state, "run: pictures, a tensor (.pb) or --random is expected");
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  EngineCommand *c = (EngineCommand *)state->input;
  EngineOptions *o = &c->options;
  switch (key) {
    case 'o':
      option_path(state, arg, "-o", c->output);
      return 0;
    case GPU:
      o->gpu = (int)option_int(state, arg, "--gpu", 0, 1023);
      return 0;
    case PRECISION:
      if (engine_precision_find(arg, &o->precision) != 0)
        argp_error(state, "--precision=%.40s: fp32, tf32, fp16 or bf16 is expected", arg);
      c->precision_given = 1;
      return 0;
    case MAX_BATCH:
      o->max_batch = (int)option_int(state, arg, "--max-batch", 1, 65536);
      return 0;
    case MAX_HEIGHT:
      o->max_height = (int)option_int(state, arg, "--max-height", 1, 65536);
      return 0;
    case MAX_WIDTH:
      o->max_width = (int)option_int(state, arg, "--max-width", 1, 65536);
      return 0;
    case INVARIANT:
      o->batch_invariant = 1;
      return 0;
    case THREADS:
      o->threads = (int)option_int(state, arg, "--threads", 1, 1024);
      return 0;
    case CHOICES:
      o->choices = arg;
      return 0;
    case NO_GRAPHS:
      o->cuda_graphs = 0;
      return 0;
    case NO_MEASURING:
      o->measure = 0;
      return 0;
    case TOP:
      c->top = (int)option_int(state, arg, "--top", 1, 1000);
      return 0;
    case RANDOM:
      c->random = 1;
      return 0;
    case ROUNDS:
      c->rounds = (int)option_int(state, arg, "--rounds", 3, 100000);
      return 0;
    case ARGP_KEY_ARG:
      parse_argument(c, state, arg);
      return 0;
    case ARGP_KEY_END:
      parse_end(c, state);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void read_command(EngineCommand *c, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"output", 'o', "FILE", 0, "build: the plan; show: the picture (SVG)", 0},
      {"gpu", GPU, "N", 0, "Which GPU, from 0 (default: 0)", 0},
      {"precision", PRECISION, "TYPE", 0, "What products are computed in: fp32, tf32, fp16 or bf16 (default: fp32)", 0},
      {"max-batch", MAX_BATCH, "N", 0, "The largest batch, for which memory is planned (default: 1)", 0},
      {"max-height", MAX_HEIGHT, "N", 0, "The largest height, of a model that takes any", 0},
      {"max-width", MAX_WIDTH, "N", 0, "The largest width", 0},
      {"batch-invariant", INVARIANT, NULL, 0, "A sample's answer does not depend on the others, bit by bit", 0},
      {"threads", THREADS, "N", 0, "Of a CPU (default: all cores)", 0},
      {"choices", CHOICES, "TEXT", 0, "Kernels by name: recipe:layers,conv1:winograd", 0},
      {"no-graphs", NO_GRAPHS, NULL, 0, "Launch kernel by kernel, without CUDA graphs", 0},
      {"no-measuring", NO_MEASURING, NULL, 0, "Choose kernels by rules alone", 0},
      {"top", TOP, "N", 0, "run: so many classes (default: 5)", 0},
      {"random", RANDOM, NULL, 0, "run: a random input of --max-batch samples", 0},
      {"rounds", ROUNDS, "N", 0, "bench: inferences of which the median is printed (default: 200)", 0},
      OPTION_END};
  static const struct argp own = {rows,
                                  parse,
                                  "[build|run|bench|show MODEL [FILE...]]",
                                  "Optimises a model of ONNX for this machine, and runs it.",
                                  NULL,
                                  NULL,
                                  NULL};
  memset(c, 0, sizeof *c);
  c->options = engine_options();
  c->top = 5;
  c->rounds = 200;
  c->common = options_default(OPTIONS_DEVICE | OPTIONS_SEED | OPTIONS_JSON);
  options_parse(&c->common, &own, c, argc, argv);
  c->options.device = c->common.device;
}

/* Whether both names are of one file, which may be linked; a name without a file is not. */
static int same_file(const char *a, const char *b) {
  struct stat one, other;
  return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

int main(int argc, char **argv) {
  static EngineCommand command;
  Error err;
  Engine engine;
  char path[PATH_MAX];
  command.start = seconds_now();
  const double start = command.start;
  threads_begin();
  read_command(&command, argc, argv);
  command.start = start;
  if (command.verb == ENGINE_DEMO) {
    if (engine_command_demo(&command, &err) != 0) die("%s", err.message);
    stdout_finish();
    return 0;
  }
  if (user_path(command.model, path, sizeof path, &err) != 0) die("%s", err.message);
  snprintf(command.model, sizeof command.model, "%s", path);
  if (command.output[0] && user_path(command.output, path, sizeof path, &err) != 0) die("%s", err.message);
  if (command.output[0]) snprintf(command.output, sizeof command.output, "%s", path);
  if (same_file(command.output, command.model))
    die("-o %s is the model itself, which would be lost; choose another name", command.output);
  if (command.verb == ENGINE_BUILD) command.options.log = stdout;
  if (engine_open(&engine, command.model, &command.options, &err) != 0) die("%s", err.message);
  const int status = command.verb == ENGINE_BUILD   ? engine_command_build(&engine, &command, &err)
                     : command.verb == ENGINE_RUN   ? engine_command_run(&engine, &command, &err)
                     : command.verb == ENGINE_BENCH ? engine_command_bench(&engine, &command, &err)
                                                    : engine_command_show(&engine, &command, &err);
  if (status != 0) die("%s", err.message);
  engine_close(&engine);
  stdout_finish();
  return 0;
}
