/* cudnn_duel.cu - the networks of phase 3 by our kernels, by cuDNN, and by the faster of the two in each layer: time
 * and memory of a training step and of inference.
 *
 *     bazel run //phase5_production:cudnn_duel                               all networks, batches of 1, 16, 64 and 256
 *     bazel run //phase5_production:cudnn_duel -- --network=lenet --batch-size=64 --use=training
 *     bazel run //phase5_production:cudnn_duel -- --network=resnet_cifar --batch-size=64 --by-layer
 *
 * Times are those of a step as one CUDA graph, on a GPU; ours is then the faster of what `train` runs by default and
 * with --conv=auto. An emulated GPU has none: there the table has memory, which is the same as on a GPU but for
 * workspaces: cuDNN's, and ours, which follow the number of multiprocessors.
 */
#include "common/options.h"
#include "phase5_production/02_cudnn_duel/cudnn_duel_lesson.cuh"

typedef struct Options {
  CommonOptions common;
  const TrainNetwork *network; /* NULL: all */
  int use;                     /* -1: both */
  int by_layer;
  double context, library; /* bytes that CUDA took before the first model, and that cuDNN took; 0: not measured */
} Options;

enum { KEY_NETWORK = 1, KEY_USE, KEY_BY_LAYER };

typedef enum Side { OURS, CUDNN, MIXED, SIDES } Side;

static const char *const side_names[] = {"ours", "cudnn", "mixed"};

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case KEY_NETWORK:
      options->network = NULL; /* of an option before this one */
      for (int i = 0; i < DUEL_NETWORKS; i++)
        if (strcmp(duel_network(i)->name, arg) == 0) options->network = duel_network(i);
      if (options->network == NULL)
        argp_failure(state, 2, 0, "--network=%s: expected lenet, fashion_cnn, resnet_mnist or resnet_cifar", arg);
      return 0;
    case KEY_USE:
      if (strcmp(arg, "training") != 0 && strcmp(arg, "inference") != 0)
        argp_failure(state, 2, 0, "--use=%s: expected training or inference", arg);
      options->use = strcmp(arg, "training") == 0 ? MODEL_TRAIN : MODEL_INFER;
      return 0;
    case KEY_BY_LAYER:
      options->by_layer = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* --------------------------------------------------------------------------------------------------------- the rows */

typedef struct DuelRow {
  const char *network;
  ModelUse use;
  int batch;
  Side side;
  DuelTime time;
  MemoryCount memory;
  double arena, allocated; /* bytes: of what shares memory; of all arrays, as device_alloc() has counted */
  char words[IMPLEMENTATION_TEXT];
} DuelRow;

enum { ROWS = DUEL_NETWORKS * 2 * DUEL_BATCHES * SIDES };

static DuelRow rows[ROWS];
static int row_count;

static double mib(double bytes) { return bytes / 1048576; }

static DuelRow *new_row(const Contest *c, Side side) {
  DuelRow *row = &rows[row_count++];
  memset(row, 0, sizeof *row); /* another one may have stood there: measure_best_of_ours() */
  row->network = c->network->name;
  row->use = c->use;
  row->batch = c->batch;
  row->side = side;
  return row;
}

static void print_header(int times) {
  printf("%-13s %-10s %5s %-6s", "network", "use", "batch", "by");
  if (times) printf(" %10s %7s %12s", "step us", "x cuDNN", "images/s");
  printf(" %9s %9s %8s", "peak MiB", "allocated", "x cuDNN");
  for (int k = 0; k < MEMORY_KINDS; k++) printf(" %11s", memory_kind_name(k));
  putchar('\n');
}

/* The row of cuDNN in the same contest; NULL: there is none. */
static const DuelRow *library_row(const DuelRow *row) {
  for (int i = 0; i < row_count; i++)
    if (rows[i].side == CUDNN && rows[i].network == row->network && rows[i].use == row->use &&
        rows[i].batch == row->batch)
      return &rows[i];
  return NULL;
}

static void print_row(const DuelRow *row) {
  const DuelRow *library = library_row(row);
  printf("%-13s %-10s %5d %-6s", row->network, duel_use_name(row->use), row->batch, side_names[row->side]);
  if (row->time.graph > 0) {
    printf(" %10.1f", 1e6 * row->time.graph);
    if (library)
      printf(" %6.2fx", library->time.graph / row->time.graph);
    else
      printf(" %7s", "-");
    printf(" %12.0f", row->batch / row->time.graph);
  }
  printf(" %9.2f %9.2f", mib((double)row->memory.peak), mib(row->allocated));
  if (library)
    printf(" %7.2fx", row->allocated / library->allocated);
  else
    printf(" %8s", "-");
  for (int k = 0; k < MEMORY_KINDS; k++) printf(" %11.2f", mib((double)row->memory.at_peak[k]));
  putchar('\n');
  fflush(stdout);
}

static json_t *row_json(const DuelRow *row) {
  const DuelRow *library = library_row(row);
  json_t *memory = json_object();
  for (int k = 0; k < MEMORY_KINDS; k++)
    json_object_set_new(memory, memory_kind_name(k), json_integer(row->memory.at_peak[k]));
  json_t *json =
      json_pack("{s:s, s:s, s:s, s:i, s:I, s:f, s:f, s:o}", "version", side_names[row->side], "network", row->network,
                "use", duel_use_name(row->use), "batch_size", row->batch, "peak_bytes", (json_int_t)row->memory.peak,
                "arena_bytes", row->arena, "allocated_bytes", row->allocated, "at_peak_bytes", memory);
  if (row->time.graph > 0) {
    json_object_set_new(json, "time_us", json_real(1e6 * row->time.graph));
    json_object_set_new(json, "images_per_second", json_real(row->batch / row->time.graph));
    if (library) json_object_set_new(json, "vs_library", json_real(library->time.graph / row->time.graph));
  }
  if (row->time.launched > 0) json_object_set_new(json, "launched_us", json_real(1e6 * row->time.launched));
  if (row->words[0]) json_object_set_new(json, "layers", json_string(row->words));
  return json;
}

/* -------------------------------------------------------------------------------------------------------- a contest */

/* Where cuDNN takes a node, its algorithm of this direction. */
static const char *algorithm_of(const Model *m, const StepPart *part) {
  const Node *node = &m->graph->nodes[part->node];
  const char *name = dnn_algorithm_name(node, part->kind == PART_FORWARD ? 0 : 2);
  return name ? name : "";
}

static int same_part(const StepPart *a, const StepPart *b) {
  return a->kind == b->kind && strcmp(a->layer, b->layer) == 0 && strcmp(a->direction, b->direction) == 0;
}

/* The operations of both, side by side: what ours computes together with another has no time of its own. */
static void print_layers(const Contest *c, const Profile *ours, const Profile *theirs, const Model *library) {
  printf("\n%s, %s, batch %d, microseconds of each operation by itself\n", c->network->name, duel_use_name(c->use),
         c->batch);
  printf("%-24s %-9s %9s %9s %9s  %s\n", "operation", "", "ours", "cuDNN", "least", "cuDNN's algorithm");
  for (int i = 0; i < theirs->parts.count; i++) {
    const StepPart *part = &theirs->parts.part[i];
    const int of_node = part->kind == PART_FORWARD || part->kind == PART_BACKWARD;
    int mine = 0, memory;
    while (mine < ours->parts.count && !same_part(&ours->parts.part[mine], part)) mine++;
    printf("%-24s %-9s", part->layer, part->direction);
    if (mine < ours->parts.count && step_part_works(&ours->parts, mine))
      printf(" %9.2f", 1e6 * profile_compared(&ours->row[mine]));
    else
      printf(" %9s", "with it");
    printf(" %9.2f", 1e6 * profile_compared(&theirs->row[i]));
    const double least = profile_least(theirs, i, &memory);
    if (isfinite(least))
      printf(" %9.2f", 1e6 * least);
    else
      printf(" %9s", "-");
    printf("  %s\n", of_node ? algorithm_of(library, part) : "");
  }
  putchar('\n');
}

/* One side: opened, and on a GPU measured. -1: it cannot compute. */
static int measure_side(const Contest *c, Side side, const char *how, int parts, Profile *p, Model *m, Error *err) {
  const size_t before = device_allocated(DEVICE_GPU).now;
  if (duel_open(m, c, how, err) != 0) return -1;
  DuelRow *row = new_row(c, side);
  row->memory = duel_memory(m);
  row->arena = (double)m->plan.arena_bytes;
  row->allocated = (double)(device_allocated(DEVICE_GPU).now - before);
  if (strchr(how, ':')) snprintf(row->words, sizeof row->words, "%s", how);
  if (profile_has_times(DEVICE_GPU)) row->time = duel_time(p, m, c, parts);
  return 0;
}

static void close_side(Profile *p, Model *m) {
  if (p->row) profile_close(p);
  model_close(m);
}

/* Both by themselves, pair by pair as --layers compares them, and what the faster of each make together. */
static void measure_mixture(const Contest *c, const Options *options, const char *chosen, Profile *theirs,
                            const Model *library) {
  Profile pairs, mixed;
  Model m;
  Error err;
  char words[IMPLEMENTATION_TEXT];
  memset(&pairs, 0, sizeof pairs);
  memset(&mixed, 0, sizeof mixed);
  if (duel_open(&m, c, chosen, &err) != 0) die("%s", err.message);
  duel_time(&pairs, &m, c, 1);
  duel_mix(&pairs, theirs, m.graph, chosen, words);
  if (options->by_layer) {
    theirs->roof = roof_measure(DEVICE_GPU);
    print_layers(c, &pairs, theirs, library);
  }
  close_side(&pairs, &m);
  if (measure_side(c, MIXED, words, 0, &mixed, &m, &err) != 0) die("%s", err.message);
  close_side(&mixed, &m);
}

static void measure_ours(const Contest *c, const char *how) {
  Profile p;
  Model m;
  Error err;
  memset(&p, 0, sizeof p);
  if (measure_side(c, OURS, how, 0, &p, &m, &err) != 0) die("%s", err.message);
  close_side(&p, &m);
}

/* Ours: with all that it computes together or, where that is faster, with the convolutions that auto has chosen.
 * `chosen`: what the mixture begins with, the same. */
static void measure_best_of_ours(const Contest *c, char chosen[IMPLEMENTATION_TEXT]) {
  measure_ours(c, "ours");
  snprintf(chosen, IMPLEMENTATION_TEXT, "pairs");
  if (!profile_has_times(DEVICE_GPU)) return;
  duel_auto(c, chosen);
  if (strcmp(chosen, "pairs") == 0) return;
  measure_ours(c, chosen);
  DuelRow *usual = &rows[row_count - 2], *other = &rows[--row_count];
  if (other->time.graph < usual->time.graph)
    *usual = *other;
  else
    snprintf(chosen, IMPLEMENTATION_TEXT, "pairs");
}

static void contest(const Contest *c, const Options *options) {
  Profile theirs;
  Model library;
  Error err, none;
  char chosen[IMPLEMENTATION_TEXT];
  const int first = row_count;
  memset(&theirs, 0, sizeof theirs);
  measure_best_of_ours(c, chosen);
  if (measure_side(c, CUDNN, "cudnn", 1, &theirs, &library, &err) == 0) {
    if (profile_has_times(DEVICE_GPU)) measure_mixture(c, options, chosen, &theirs, &library);
    close_side(&theirs, &library);
  } else if (cudnn_load(&none) != NULL) { /* without cuDNN that was said at the beginning */
    printf("%s, %s, batch %d by cuDNN: %s\n", c->network->name, duel_use_name(c->use), c->batch, err.message);
  }
  for (int i = first; i < row_count; i++) print_row(&rows[i]);
}

/* ------------------------------------------------------------------------------------------------------ the picture */

/* A bar for each contest of the largest batch: time where there is one, else memory. */
static void print_picture(FILE *script, const void *what, int png) {
  const int times = row_count > 0 && rows[0].time.graph > 0;
  int most = 0, groups = 0;
  (void)what;
  for (int i = 0; i < row_count; i++)
    if (rows[i].batch > most) most = rows[i].batch;
  fputs("set encoding utf8\n$bars << END\n", script);
  for (int i = 0; i < row_count; i++)
    if (rows[i].side == OURS && rows[i].batch == most) {
      double value[SIDES] = {0, 0, 0};
      for (int j = i; j < row_count && rows[j].network == rows[i].network && rows[j].use == rows[i].use; j++)
        if (rows[j].batch == most) value[rows[j].side] = times ? 1e6 * rows[j].time.graph : mib(rows[j].allocated);
      fprintf(script, "\"%s %s\" %.9g %.9g %.9g\n", rows[i].network, duel_use_name(rows[i].use), value[0], value[1],
              value[2]);
      groups++;
    }
  fprintf(script, "END\nset terminal %s size 960,%d noenhanced background '#ffffff' font 'sans-serif,14'\n",
          png ? "pngcairo" : "svg", 420);
  plot_print_title(script, "set title", times ? "A step by ours, by cuDNN, and mixed" : "Memory by ours and by cuDNN");
  plot_print_title(script, "set ylabel", times ? "microseconds" : "MiB");
  fputs(
      "set style data histogram\nset style histogram clustered gap 1\nset style fill solid 1 noborder\nset logscale y\n"
      "set border 3\nset tics nomirror\nset xtics rotate by -20\nset key top left\nset grid ytics\n"
      "plot $bars using 2:xtic(1) title 'ours' linecolor rgb '#0072b2', $bars using 3 title 'cuDNN' linecolor rgb "
      "'#e69f00'",
      script);
  if (times) fputs(", $bars using 4 title 'mixed' linecolor rgb '#009e73'", script);
  fputc('\n', script);
}

static void draw(const Options *options) {
  static const char *const pictures[] = {"cudnn_duel.svg", "cudnn_duel.png"};
  char path[PATH_MAX + 32];
  Error err;
  if (make_directories(options->common.output_dir, &err) != 0) die("%s", err.message);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", options->common.output_dir, pictures[i]);
    plot_report(plot_render(print_picture, NULL, path, &err), &err);
  }
}

/* --------------------------------------------------------------------------------------------------------- the duel */

/* What CUDA itself and cuDNN take of the GPU's memory: the difference of what is in use around a first model. */
static void measure_library(Options *options) {
  if (!profile_has_times(DEVICE_GPU)) return;
  const Contest c = {duel_network(3), MODEL_TRAIN, 1};
  Profile p;
  Model m;
  Error err;
  const size_t before = device_allocated(DEVICE_GPU).now;
  options->context = duel_memory_in_use();
  memset(&p, 0, sizeof p);
  if (duel_open(&m, &c, "cudnn", &err) != 0) return;
  duel_time(&p, &m, &c, 0);
  options->library = duel_memory_in_use() - options->context - (double)(device_allocated(DEVICE_GPU).now - before);
  close_side(&p, &m);
  printf("memory of the GPU in use before the first model: %.0f MiB; by cuDNN's handle and kernels: %.0f MiB\n",
         mib(options->context), mib(options->library));
}

static void duel(Options *options) {
  static const int batches[DUEL_BATCHES] = {1, 16, 64, 256};
  const int given = options->common.given & OPTIONS_BATCH_SIZE;
  Error err;
  measure_library(options);
  if (cudnn_load(&err) == NULL) printf("Only ours compete: %s\n", err.message);
  if (!profile_has_times(DEVICE_GPU))
    printf("The GPU is emulated: its times mean nothing, so there are none, and no mixture.\n");
  printf("\n");
  print_header(profile_has_times(DEVICE_GPU));
  for (int n = 0; n < DUEL_NETWORKS; n++)
    for (int use = MODEL_TRAIN; use >= MODEL_INFER; use--)
      for (int b = 0; b < (given ? 1 : DUEL_BATCHES); b++) {
        const Contest c = {duel_network(n), (ModelUse)use, given ? options->common.batch_size : batches[b]};
        if (options->network && options->network != c.network) continue;
        if (options->use >= 0 && options->use != use) continue;
        contest(&c, options);
      }
  printf(
      "\npeak: the most that is in use at one moment of a step, and of what, as planned; allocated: what "
      "device_alloc() "
      "has\ncounted when the model is open. MiB. x cuDNN: %show many times as much memory.\n",
      profile_has_times(DEVICE_GPU) ? "how many times as fast, and " : "");
}

int main(int argc, char **argv) {
  static const struct argp_option rows_of[] = {
      {"network", KEY_NETWORK, "NAME", 0, "lenet, fashion_cnn, resnet_mnist or resnet_cifar (default: all)", 0},
      {"use", KEY_USE, "NAME", 0, "training or inference (default: both)", 0},
      {"by-layer", KEY_BY_LAYER, NULL, 0, "Also the time of each operation, ours and cuDNN's side by side", 0},
      OPTION_END};
  static const struct argp own = {
      rows_of,
      parse,
      NULL,
      "Time and memory of networks by our kernels, by cuDNN, and mixed: for 1, 16, 64 and 256 samples, or for those of "
      "--batch-size.",
      NULL,
      NULL,
      NULL};
  static Options options;
  char description[512];
  Error err;
  options.use = -1;
  options.common = options_default(OPTIONS_DEVICE | OPTIONS_JSON | OPTIONS_BATCH_SIZE | OPTIONS_OUTPUT_DIR);
  options.common.device = DEVICE_GPU;
  options_parse(&options.common, &own, &options, argc, argv);
  if (options.common.device != DEVICE_GPU) die("cuDNN computes on GPUs alone; leave --device=cpu out");
  if (device_open(DEVICE_GPU, description, sizeof description, &err) != 0) die("%s", err.message);
  printf("our kernels and cuDNN on %s\n", description);
  duel(&options);
  draw(&options);
  if (options.common.json) {
    json_t *result = json_pack("{s:s, s:s}", "lesson", "cudnn_duel", "device", "gpu"), *list = json_array();
    for (int i = 0; i < row_count; i++) json_array_append_new(list, row_json(&rows[i]));
    if (options.library > 0) json_object_set_new(result, "context_bytes", json_real(options.context));
    if (options.library > 0) json_object_set_new(result, "library_bytes", json_real(options.library));
    json_object_set_new(result, "rows", list);
    if (json_result(result, &err) != 0) die("%s", err.message);
  }
  stdout_finish();
  return 0;
}
