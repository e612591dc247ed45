/* streams.cu - copies to the GPU are slow, and can be hidden behind work.
 *
 *     bazel run //phase2_mlp:streams
 *
 * A GPU reads its own memory about eighty times as fast as that of the host. Here 65,536 images in the host's memory
 * pass through a multi-layer perceptron batch by batch: normalised, 784-512-10, forward. input_pipeline.cuh has six
 * ways to bring them to the GPU, from a copy that the host waits for to copies that run beside the work.
 *
 * The share of the copies that is hidden is 1 - (time - work) / copies. `work` is the time of `resident`, which copies
 * nothing; `copies` are those of `pinned`, which run alone; time - work is the part of the copies that is not hidden.
 * The share is limited to 0 and 100 %. The first copy has nothing to hide behind.
 *
 * Without a GPU the same program runs on the emulated one. Its times mean nothing, so the timelines show steps: each
 * copy and each kernel is one, and begins as early as the streams and events permit. */
#include "common/options.h"
#include "common/threads.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase2_mlp/06_streams/input_pipeline_mlp.cuh"

#include <nvtx3/nvToolsExt.h>

#ifdef SIMT_REWRITTEN
enum { REAL = 0, BATCH = 32, BATCHES = 6, HIDDEN = 16 };
#else
enum { REAL = 1, BATCH = 4096, BATCHES = 16, HIDDEN = 512 };
#endif
enum { MAX_ROUNDS = 101, VERSIONS = 6 };

typedef struct Version {
  const char *name;
  FeedVersion *feed;
  const char *limit; /* what limits this version, and what the next one changes */
} Version;

static const Version versions[VERSIONS] = {
    {"pageable", feed_pageable, "The driver first copies the images to pinned memory of its own. Pin the images."},
    {"pinned", feed_pinned,
     "Copies run at the bus's speed, but copy and work take turns. Give copies their own stream."},
    {"overlapped", feed_overlapped, "Two buffers: the GPU works on one while a copy fills the other."},
    {"staged", feed_staged, "Only two batches are pinned; the host must fill them as fast as the GPU works."},
    {"mapped", feed_mapped, "No copy and no buffer: the first kernel reads the host's memory and waits for the bus."},
    {"resident", feed_resident, "No copies: the images are in the GPU's memory already. For sets that fit into it."},
};

typedef struct Options {
  CommonOptions common;
  int batches, hidden, rounds;
  const char *only;
} Options;

enum { OPTION_BATCHES = 1, OPTION_UNITS, OPTION_ROUNDS, OPTION_ONLY };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case OPTION_BATCHES:
      options->batches = (int)option_int(state, arg, "--batches", 1, 1000);
      return 0;
    case OPTION_UNITS:
      options->hidden = (int)option_int(state, arg, "--hidden", 1, 16384);
      return 0;
    case OPTION_ROUNDS:
      options->rounds = (int)option_int(state, arg, "--rounds", 1, MAX_ROUNDS);
      return 0;
    case OPTION_ONLY:
      for (int v = 0; v < VERSIONS; v++)
        if (strcmp(arg, versions[v].name) == 0) options->only = versions[v].name;
      if (options->only == NULL)
        argp_error(state, "--only=%s: pageable, pinned, overlapped, staged, mapped or resident is expected", arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Measuring */

typedef struct Measured {
  Comparison check;
  Timeline timeline;   /* of the round with the median time */
  double time, copies; /* ms, or steps: from the first to the last; all copies together, medians */
} Measured;

/* Milliseconds that the spans of a lane take together. */
static double lane_time(const Timeline *timeline, int lane) {
  double sum = 0;
  for (size_t i = 0; i < timeline->spans; i++)
    if (timeline->span[i].lane == lane) sum += timeline->span[i].end - timeline->span[i].begin;
  return sum;
}

/* All versions of `chosen` (bits) take turns; `rounds` times. */
static void measure(Feed *feed, unsigned chosen, int rounds, Measured *rows) {
  static Timeline timeline[VERSIONS][MAX_ROUNDS];
  static double time[VERSIONS][MAX_ROUNDS], copies[VERSIONS][MAX_ROUNDS];
  for (int round = -1; round < rounds; round++) /* round -1 is not measured: it loads kernels and touches memory */
    for (int turn = 0; turn < VERSIONS; turn++) {
      int v = (turn + round + 1) % VERSIONS, r = round < 0 ? 0 : round;
      if ((chosen >> v & 1) == 0 || (!REAL && round < 0)) continue;
      timeline_free(&timeline[v][r]);
      timeline[v][r] = feed_timeline(versions[v].name);
      nvtxRangePushA(versions[v].name);
      time[v][r] = feed_run(feed, versions[v].feed, &timeline[v][r]);
      nvtxRangePop();
      copies[v][r] = lane_time(&timeline[v][r], FEED_COPY);
    }
  for (int v = 0; v < VERSIONS; v++) {
    if ((chosen >> v & 1) == 0) continue;
    double sorted[MAX_ROUNDS];
    memcpy(sorted, time[v], (size_t)rounds * sizeof *sorted);
    timer_stats(sorted, (size_t)rounds);
    rows[v].time = sorted[rounds / 2]; /* one that there was */
    rows[v].copies = timer_stats(copies[v], (size_t)rounds).median;
    timeline_free(&rows[v].timeline);
    for (int r = 0; r < rounds; r++) {
      if (time[v][r] == rows[v].time && rows[v].timeline.spans == 0)
        rows[v].timeline = timeline[v][r];
      else
        timeline_free(&timeline[v][r]);
      memset(&timeline[v][r], 0, sizeof timeline[v][r]);
    }
  }
}

enum { PAGEABLE, PINNED, OVERLAPPED, STAGED, MAPPED, RESIDENT };

/* 0 to 1; see the top. */
static double hidden_share(const Measured *row, const Measured *rows) {
  double copies = row == &rows[PAGEABLE] ? row->copies : rows[PINNED].copies;
  return fmin(1, fmax(0, 1 - (row->time - rows[RESIDENT].time) / copies));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tables */

/* {"copy": [[batch, begin, end], ..], ..}: for other programs that draw the timeline */
static json_t *spans_json(const Timeline *timeline) {
  json_t *lanes = json_object();
  for (int lane = 0; lane < timeline->lanes; lane++) {
    json_t *spans = json_array();
    for (size_t i = 0; i < timeline->spans; i++) {
      const TimelineSpan *span = &timeline->span[i];
      if (span->lane != lane) continue;
      json_array_append_new(spans,
                            json_pack("[i, o, o]", span->number, json_number(span->begin), json_number(span->end)));
    }
    json_object_set_new(lanes, timeline->lane[lane], spans);
  }
  return lanes;
}

/* What every row has; the times of a version that ran once would be those of loading its kernels. */
static json_t *row_json(int v, const Measured *row) {
  json_t *object = json_pack("{s:s, s:b, s:o, s:o}", "version", versions[v].name, "ok", row->check.ok, "error",
                             json_number(row->check.error), "tolerance", json_number(row->check.tolerance));
  if (!REAL) json_object_set_new(object, "steps", json_integer((json_int_t)row->time));
  json_object_set_new(object, "spans_" TIMELINE_UNIT, spans_json(&row->timeline));
  return object;
}

static json_t *print_versions(const Options *options, const Measured *rows) {
  const double images = (double)options->batches * options->common.batch_size;
  json_t *all = json_array();
  printf("\n%-12s %9s %9s", "version", "error", "tolerance");
  if (REAL)
    printf(" %10s %10s %12s %10s %8s\n", "time", "copies", "images/s", "copied", "hidden");
  else
    printf(" %10s\n", "steps");
  for (int v = 0; v < VERSIONS; v++) {
    const Measured *row = &rows[v];
    json_t *object = row_json(v, row);
    printf("%-12s ", versions[v].name);
    if (row->check.ok)
      printf("%9.2g %9.2g", row->check.error, row->check.tolerance);
    else
      printf("%9s %9s", "WRONG", "-");
    if (!REAL) {
      printf(" %10.0f", row->time);
    } else {
      double rate = images * FEED_MLP_PIXELS / row->copies * 1e-6;
      printf(" %7.3f ms", row->time);
      json_object_set_new(object, "time_us", json_real(row->time * 1e3));
      json_object_set_new(object, "images_per_second", json_real(images / row->time * 1e3));
      if (row->copies > 0) {
        printf(" %7.3f ms", row->copies);
        json_object_set_new(object, "copy_us", json_real(row->copies * 1e3));
        json_object_set_new(object, "gbps", json_real(rate));
      } else {
        printf(" %10s", "-");
      }
      printf(" %10.1f M", images / row->time * 1e-3);
      if (row->copies > 0)
        printf(" %5.1f GB/s", rate);
      else
        printf(" %10s", "-");
      if (v != RESIDENT) {
        printf(" %6.1f %%", 100 * hidden_share(row, rows));
        json_object_set_new(object, "hidden", json_real(hidden_share(row, rows)));
      }
    }
    printf("\n    %s\n", versions[v].limit);
    if (!row->check.ok) printf("    WRONG: %s\n", row->check.message);
    json_array_append_new(all, object);
  }
  return all;
}

/* The same copies beside more and more work. At most as much of them is hidden as the work takes. */
static json_t *print_widths(const Options *options, const uint8_t *images) {
  static const int widths[] = {16, 64, 128, 256, 512, 1024};
  json_t *all = json_array();
  printf("\nThe same copies behind more or less work, two buffers\n\n%-12s %10s %10s %10s %8s %12s\n", "hidden units",
         "work", "copies", "time", "hidden", "at most");
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    static Measured rows[VERSIONS];
    static FeedMlp mlp;
    Feed feed;
    memset(rows, 0, sizeof rows);
    feed_mlp_open(&mlp, DEVICE_GPU, options->batches, options->common.batch_size, widths[i], options->common.seed);
    feed_open(&feed, images, options->batches, feed_mlp_bytes(&mlp), feed_mlp_work, &mlp);
    measure(&feed, 1u << PINNED | 1u << OVERLAPPED | 1u << RESIDENT, options->rounds, rows);
    double share = hidden_share(&rows[OVERLAPPED], rows), most = fmin(1, rows[RESIDENT].time / rows[PINNED].copies);
    printf("%-12d %7.3f ms %7.3f ms %7.3f ms %6.1f %% %10.1f %%\n", widths[i], rows[RESIDENT].time, rows[PINNED].copies,
           rows[OVERLAPPED].time, 100 * share, 100 * most);
    json_array_append_new(
        all, json_pack("{s:i, s:f, s:f, s:f, s:f}", "hidden_units", widths[i], "work_us", rows[RESIDENT].time * 1e3,
                       "copy_us", rows[PINNED].copies * 1e3, "time_us", rows[OVERLAPPED].time * 1e3, "hidden", share));
    for (int v = 0; v < VERSIONS; v++) timeline_free(&rows[v].timeline);
    feed_close(&feed);
    feed_mlp_close(&mlp);
  }
  return all;
}

/* GB/s of one copy to the GPU, by its size. */
static json_t *print_bandwidth(int rounds) {
  static const size_t sizes[] = {4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 128 << 20};
  const size_t most = 128 << 20;
  json_t *all = json_array();
  uint8_t *pageable = (uint8_t *)xmalloc(most), *pinned, *device;
  GpuTimer timer = gpu_timer_open();
  CUDA_CHECK(cudaMallocHost((void **)&pinned, most));
  CUDA_CHECK(cudaMalloc((void **)&device, most));
  memset(pageable, 1, most);
  memset(pinned, 1, most);
  printf("\nOne copy to the GPU, by its size\n\n%-10s %16s %16s\n", "bytes", "pageable", "pinned");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    double samples[2][MAX_ROUNDS], rate[2];
    for (int round = -1; round < rounds; round++)
      for (int kind = 0; kind < 2; kind++) {
        gpu_timer_start(&timer);
        CUDA_CHECK(cudaMemcpyAsync(device, kind == 0 ? pageable : pinned, sizes[i], cudaMemcpyHostToDevice, 0));
        samples[kind][round < 0 ? 0 : round] = gpu_timer_stop(&timer);
      }
    for (int kind = 0; kind < 2; kind++)
      rate[kind] = (double)sizes[i] / timer_stats(samples[kind], (size_t)rounds).median * 1e-9;
    printf("%6zu %s %11.2f GB/s %11.2f GB/s\n", sizes[i] >> (sizes[i] < 1 << 20 ? 10 : 20),
           sizes[i] < 1 << 20 ? "KiB" : "MiB", rate[0], rate[1]);
    json_array_append_new(
        all, json_pack("{s:i, s:f, s:f}", "bytes", (int)sizes[i], "pageable_gbps", rate[0], "pinned_gbps", rate[1]));
  }
  gpu_timer_close(&timer);
  CUDA_CHECK(cudaFree(device));
  CUDA_CHECK(cudaFreeHost(pinned));
  free(pageable);
  return all;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The program */

static void draw(const Options *options, const Measured *rows, const char *device) {
  char path[PATH_MAX + 64], title[256];
  Timeline timelines[VERSIONS];
  Error err;
  for (int v = 0; v < VERSIONS; v++) timelines[v] = rows[v].timeline;
  printf("\nTimelines, by the number of the batch\n\n");
  timeline_print(stdout, timelines, VERSIONS, TIMELINE_UNIT);
  if (!REAL) printf("Steps, not times: each copy and each kernel is one, as early as streams and events permit.\n");
  snprintf(title, sizeof title, "%d batches of %d images, 784-%d-10, %.100s", options->batches,
           options->common.batch_size, options->hidden, device);
  if (make_directories(options->common.output_dir, &err) != 0) die("%s", err.message);
  for (int v = -1; v < VERSIONS; v++) { /* all in one, and each alone */
    snprintf(path, sizeof path, "%s/%s.svg", options->common.output_dir, v < 0 ? "timelines" : versions[v].name);
    const int count = v < 0 ? VERSIONS : 1;
    const int status = timeline_draw(v < 0 ? timelines : &timelines[v], count, TIMELINE_UNIT, title, path, &err);
    if (plot_report(status, &err) != 0) return;
  }
  printf("Drawn: %s/timelines.svg, and each alone\n", options->common.output_dir);
}

/* Ends the program where the time or the memory for all batches is not to be had, and says how many would do. */
static void refuse_what_is_too_much(const Options *options) {
  const int batch = options->common.batch_size, hidden = options->hidden;
  const int widest = REAL && hidden < 1024 ? 1024 : hidden; /* print_widths() */
  const double flops = feed_mlp_flops(1, batch, hidden);
  double host = 0.9 * device_memory(DEVICE_CPU), gpu = host;
  /* The CPU makes the images and computes the reference. Without any layers an image takes as long as 400,000 FLOPs:
   * 3.4 us on two cores, which need two minutes for all of 1e13. */
  double in_time = floor(1e13 / (flops + 4e5 * batch));
  if (options->common.device == DEVICE_GPU && REAL) {
    /* In each round, and in one before, the images pass six times here and eighteen times in print_widths(). At 10 GB/s
     * 3e11 bytes take half a minute. */
    const double bytes = (double)batch * FEED_MLP_PIXELS * (options->rounds + 1) * (VERSIONS + 18);
    in_time = fmin(in_time, floor(fmin(1e15 / (flops * options->rounds), 3e11 / bytes)));
  } else if (options->common.device == DEVICE_GPU) {
    /* The emulated one needs for an image without any layers as long as for 30,000 FLOPs: a minute for all of 1e9. */
    in_time = fmin(in_time, floor(1e9 / ((flops + 3e4 * batch) * options->rounds)));
    gpu = host / 2;
  }
  if (options->common.device == DEVICE_GPU) gpu = fmin(REAL ? HUGE_VAL : gpu, 0.95 * device_memory(DEVICE_GPU));
  const double fit = feed_mlp_most_batches(batch, widest, host, gpu);
  double most = fmin(in_time, fit);
  if (options->batches <= most) return;
  fprintf(stderr, "%s: --batches=%d --batch-size=%d --hidden=%d --rounds=%d %s; ", program_invocation_short_name,
          options->batches, batch, hidden, options->rounds,
          in_time > fit ? "need more memory than there is" : "would take too long");
  if (most >= 1)
    fprintf(stderr, "try --batches=%.0f", most);
  else if (batch > 1)
    fprintf(stderr, "try --batch-size=%d or less, with --rounds=1", batch / 2);
  else
    fprintf(stderr, "try --rounds=1");
  const int emulated = !REAL && options->common.device == DEVICE_GPU;
  fprintf(stderr, "%s\n",
          emulated ? " (an emulated GPU; the order of the operations shows as well with few images)" : "");
  exit(2);
}

int main(int argc, char **argv) {
  static const struct argp_option help[] = {
      {"batches", OPTION_BATCHES, "N", 0, "Batches that are brought to the GPU", 0},
      {"hidden", OPTION_UNITS, "N", 0, "Hidden units: the more, the more work a batch is", 0},
      {"rounds", OPTION_ROUNDS, "N", 0, "Measurements, of which the median is shown", 0},
      {"only", OPTION_ONLY, "VERSION", 0, "Run this version alone, once, for a profiler", 0},
      OPTION_END};
  static const struct argp own = {help, parse, NULL, "Brings images to the GPU in six ways, and shows what overlaps.",
                                  NULL, NULL,  NULL};
  static Options options;
  static Measured rows[VERSIONS];
  static FeedMlp mlp;
  Feed feed;
  Error err;
  char device[512];
  threads_begin();
  options.common = options_default(OPTIONS_LESSON | OPTIONS_BATCH_SIZE | OPTIONS_OUTPUT_DIR);
  options.common.device = DEVICE_GPU; /* real or emulated: streams are what this lesson is about */
  options.common.batch_size = BATCH;
  options.batches = BATCHES;
  options.hidden = HIDDEN;
  options.rounds = REAL ? 11 : 1;
  options_parse(&options.common, &own, &options, argc, argv);
  threads_set(0);
  if (device_open(options.common.device, device, sizeof device, &err) != 0) die("%s", err.message);
  refuse_what_is_too_much(&options);
  printf("streams on %s: %d batches of %d images, 784-%d-10\n", device, options.batches, options.common.batch_size,
         options.hidden);
  if (!REAL && options.common.device == DEVICE_GPU)
    printf("There is no GPU here, and emulated times mean nothing: what is shown is the order of the operations.\n");
  fflush(stdout);

  uint8_t *images = feed_mlp_images(options.batches, options.common.batch_size, options.common.seed);
  double seconds;
  float *expected = feed_mlp_reference(images, options.batches, options.common.batch_size, options.hidden,
                                       options.common.seed, &seconds);
  printf("On the CPU: %.3f ms\n", seconds * 1e3);
  json_t *result = json_pack("{s:s, s:s, s:f, s:i, s:i, s:i}", "lesson", "streams", "device",
                             device_name(options.common.device), "cpu_us", seconds * 1e6, "batches", options.batches,
                             "batch_size", options.common.batch_size, "hidden_units", options.hidden);
  int wrong = 0;
  if (options.common.device == DEVICE_GPU) {
    feed_mlp_open(&mlp, DEVICE_GPU, options.batches, options.common.batch_size, options.hidden, options.common.seed);
    feed_open(&feed, images, options.batches, feed_mlp_bytes(&mlp), feed_mlp_work, &mlp);
    for (int v = 0; v < VERSIONS; v++) {
      if (options.only != NULL && strcmp(options.only, versions[v].name) != 0) continue;
      feed_forget(&feed);
      feed_mlp_forget(&mlp);
      rows[v].timeline = feed_timeline(versions[v].name);
      nvtxRangePushA(versions[v].name);
      rows[v].time = feed_run(&feed, versions[v].feed, &rows[v].timeline);
      nvtxRangePop();
      rows[v].check = feed_mlp_check(&mlp, expected);
      wrong += !rows[v].check.ok;
      if (options.only == NULL) continue;
      printf("%s: %s\n", versions[v].name, rows[v].check.message);
      json_object_set_new(result, "rows", json_pack("[o]", row_json(v, &rows[v])));
    }
    json_object_set_new(result, "gpu", json_text(device));
    if (options.only == NULL) {
      measure(&feed, (1u << VERSIONS) - 1, options.rounds, rows);
      json_object_set_new(result, "rows", print_versions(&options, rows));
      draw(&options, rows, device);
    }
    for (int v = 0; v < VERSIONS; v++) timeline_free(&rows[v].timeline);
    feed_close(&feed);
    feed_mlp_close(&mlp);
    if (REAL && options.only == NULL) {
      json_object_set_new(result, "widths", print_widths(&options, images));
      json_object_set_new(result, "bandwidth", print_bandwidth(options.rounds));
    }
  }
  free(expected);
  free(images);
  if (!options.common.json)
    json_decref(result);
  else if (json_result(result, &err) != 0) /* which takes it over */
    die("%s", err.message);
  stdout_finish();
  return wrong > 0;
}
