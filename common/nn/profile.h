/* profile.h - where the time of a training step goes: --profile of every program that trains a network.
 *
 *     Profile profile;
 *     profile_open(&profile, &task, &data_mnist, &net, batch, seed);
 *     profile_measure(&profile);
 *     profile_print(stdout, &profile);
 *     profile_write(&profile, title, directory);       // profile.csv, profile.svg, profile.png
 *
 * For each operation of a step: its time in a running step, its share of the step, what it reads and writes, what it
 * computes, and the time that this machine's roofs leave for that (common/roof.h), measured in the same run.
 *
 * On a CPU the clock is read between two operations. On a GPU an event is recorded between two, in a step whose
 * launches wait on the GPU until all of them have come, so that none is timed with the host's pace. An event costs the
 * GPU up to a microsecond, as much as a small kernel; so each operation is also timed `alone`, launched many times in
 * one CUDA graph, and its roof is compared with that. What it works on lies in the cache then, so that a small
 * operation can be above the roof of the memory. An emulated GPU has no times: there the table has launches, bytes and
 * FLOPs alone.
 */
#ifndef COMMON_NN_PROFILE_H
#define COMMON_NN_PROFILE_H

#include "common/nn/step_graph.h"
#include "common/nn/step_parts.h"
#include "common/plot.h"
#include "common/roof.h"
#include "common/timer.h"
#include "common/train_log.h"

enum { PROFILE_ROUNDS = 15, PROFILE_STEPS = 20, PROFILE_REPEATS = 100 };

typedef struct ProfileRow {
  double seconds, alone; /* of one; NAN where it was not measured */
  int launches;          /* kernels and copies; 0 on a CPU */
} ProfileRow;

typedef struct Profile {
  StepParts parts;
  ProfileRow *row;    /* one for each part */
  double step, graph; /* seconds of a whole step: operation by operation, and as one CUDA graph; NAN */
  double sum;         /* of row[].seconds of the parts that work; NAN */
  int launches;       /* of a step */
  Roof roof;          /* 0: not measured */
} Profile;

/* Whether this device has a speed. */
static inline int profile_has_times(Device device) {
#ifdef SIMT_REWRITTEN
  return device == DEVICE_CPU;
#else
  (void)device;
  return 1;
#endif
}

static inline void profile_open(Profile *p, const Task *task, const DataSource *source, Model *net, int batch,
                                uint64_t seed) {
  memset(p, 0, sizeof *p);
  step_parts_open(&p->parts, task, source, net, batch, seed);
  p->row = (ProfileRow *)xcalloc((size_t)p->parts.count, sizeof *p->row);
  for (int i = 0; i < p->parts.count; i++) p->row[i].seconds = p->row[i].alone = NAN;
  p->step = p->graph = p->sum = NAN;
}

static inline void profile_close(Profile *p) {
  step_parts_close(&p->parts);
  free(p->row);
  memset(p, 0, sizeof *p);
}

static inline void profile_step(Profile *p) {
  for (int i = 0; i < p->parts.count; i++) step_part_run(&p->parts, i);
}

/* The median of PROFILE_ROUNDS samples of each part: (parts, rounds). A part that does not work is in no table, and its
 * time is that of a look at the clock: it does not count. */
static inline void profile_medians(Profile *p, double *samples) {
  p->sum = 0;
  for (int i = 0; i < p->parts.count; i++) {
    p->row[i].seconds = timer_stats(samples + (size_t)i * PROFILE_ROUNDS, PROFILE_ROUNDS).median;
    if (step_part_works(&p->parts, i)) p->sum += p->row[i].seconds;
  }
}

static inline void profile_measure_cpu(Profile *p) {
  const int count = p->parts.count;
  double *samples = (double *)xmalloc((size_t)count * PROFILE_ROUNDS * sizeof *samples), whole[PROFILE_ROUNDS];
  for (int round = -2; round < PROFILE_ROUNDS; round++) { /* two to warm up */
    const double start = seconds_now();
    double before = start;
    for (int i = 0; i < count; i++) {
      step_part_run(&p->parts, i);
      const double now = seconds_now();
      if (round >= 0) samples[(size_t)i * PROFILE_ROUNDS + round] = now - before;
      before = now;
    }
    if (round >= 0) whole[round] = before - start;
  }
  profile_medians(p, samples);
  p->step = timer_stats(whole, PROFILE_ROUNDS).median;
  free(samples);
}

/* ------------------------------------------------------------------------------------------------------------- GPU */

#ifdef __CUDACC__
/* What is captured between the two is a graph of so many launches. */
static inline void profile_capture(void) {
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
}

static inline cudaGraph_t profile_captured(int *launches) {
  cudaGraph_t graph;
  size_t nodes = 0;
  CUDA_CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
  CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  *launches = (int)nodes;
  return graph;
}

static inline void profile_count_launches(Profile *p) {
  p->launches = 0;
  for (int i = 0; i < p->parts.count; i++) {
    profile_capture();
    step_part_run(&p->parts, i);
    CUDA_CHECK(cudaGraphDestroy(profile_captured(&p->row[i].launches)));
    p->launches += p->row[i].launches;
  }
}

/* Keeps the GPU busy, while the host launches what comes next. */
static __global__ void profile_hold_kernel(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) continue;
}

static inline void profile_hold(double seconds) {
  profile_hold_kernel<<<1, 1>>>((long long)((seconds < 0.1 ? seconds : 0.1) * 2e9));
  CUDA_CHECK_LAUNCH();
}

/* `launch`: seconds that the host takes to launch a step. */
static inline void profile_measure_in_step(Profile *p, double launch) {
  const int count = p->parts.count;
  double *samples = (double *)xmalloc((size_t)count * PROFILE_ROUNDS * sizeof *samples);
  cudaEvent_t *event = (cudaEvent_t *)xmalloc((size_t)(count + 1) * sizeof *event);
  for (int i = 0; i <= count; i++) CUDA_CHECK(cudaEventCreate(&event[i]));
  for (int round = -1; round < PROFILE_ROUNDS; round++) { /* the first warms up */
    profile_hold(3 * launch + 1e-4);
    CUDA_CHECK(cudaEventRecord(event[0], cudaStreamPerThread));
    for (int i = 0; i < count; i++) {
      step_part_run(&p->parts, i);
      CUDA_CHECK(cudaEventRecord(event[i + 1], cudaStreamPerThread));
    }
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    for (int i = 0; i < count && round >= 0; i++) {
      float milliseconds;
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event[i], event[i + 1]));
      samples[(size_t)i * PROFILE_ROUNDS + round] = 1e-3 * milliseconds;
    }
  }
  profile_medians(p, samples);
  for (int i = 0; i <= count; i++) CUDA_CHECK(cudaEventDestroy(event[i]));
  free(event);
  free(samples);
}

/* Seconds of one of `repeats` runs of part i, or of a whole step where i < 0, in one graph. */
static inline double profile_time_graph(Profile *p, int i, int repeats) {
  double samples[PROFILE_ROUNDS];
  int launches;
  cudaGraphExec_t exec;
  profile_capture();
  for (int r = 0; r < repeats; r++)
    if (i < 0)
      profile_step(p);
    else
      step_part_run(&p->parts, i);
  cudaGraph_t graph = profile_captured(&launches);
  if (launches == 0) {
    CUDA_CHECK(cudaGraphDestroy(graph));
    return 0;
  }
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  GpuTimer timer = gpu_timer_open();
  for (int round = -1; round < PROFILE_ROUNDS; round++) {
    gpu_timer_start(&timer);
    CUDA_CHECK(cudaGraphLaunch(exec, cudaStreamPerThread));
    const double seconds = gpu_timer_stop(&timer) / repeats;
    if (round >= 0) samples[round] = seconds;
  }
  gpu_timer_close(&timer);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  return timer_stats(samples, PROFILE_ROUNDS).median;
}

static inline void profile_measure_gpu(Profile *p) {
  profile_step(p); /* loads the kernels */
  device_synchronize(DEVICE_GPU);
  profile_count_launches(p);
  if (!profile_has_times(DEVICE_GPU)) return;
  double samples[PROFILE_ROUNDS];
  for (int round = -1; round < PROFILE_ROUNDS; round++) {
    const double start = seconds_now();
    for (int step = 0; step < PROFILE_STEPS; step++) profile_step(p);
    device_synchronize(DEVICE_GPU);
    if (round >= 0) samples[round] = (seconds_now() - start) / PROFILE_STEPS;
  }
  p->step = timer_stats(samples, PROFILE_ROUNDS).median;
  profile_measure_in_step(p, p->step);
  p->graph = profile_time_graph(p, -1, PROFILE_STEPS);
  for (int i = 0; i < p->parts.count; i++) {
    const double repeats = 1e-3 / (p->row[i].seconds + 1e-9);
    p->row[i].alone = profile_time_graph(p, i,
                                         repeats < 1                 ? 1
                                         : repeats < PROFILE_REPEATS ? (int)repeats
                                                                     : PROFILE_REPEATS);
  }
}
#endif

/* Nothing that the measured network keeps is of use afterwards. */
static inline void profile_measure(Profile *p) {
  const Device device = p->parts.net->context.device;
  p->parts.net->hyper.lr = 0;
  p->parts.net->hyper.momentum = 0.9f;
  if (profile_has_times(device)) p->roof = roof_measure(device);
  ON_DEVICE(device, profile_measure_gpu(p), profile_measure_cpu(p));
}

/* ---------------------------------------------------------------------------------------------------------- results */

/* What the roof is compared with: alone, where that was measured. */
static inline double profile_compared(const ProfileRow *row) { return row->alone > 0 ? row->alone : row->seconds; }

/* Seconds at least by the roofs, NAN where there are none; and whether the memory is the lower one. */
static inline double profile_least(const Profile *p, int i, int *memory) {
  const StepPart *part = &p->parts.part[i];
  const double bytes = roof_seconds(&p->roof, part->bytes, 0), flops = roof_seconds(&p->roof, 0, part->flops);
  *memory = bytes >= flops;
  return bytes > 0 || flops > 0 ? (*memory ? bytes : flops) : NAN;
}

static inline void profile_print_row(FILE *out, const Profile *p, int i) {
  const StepPart *part = &p->parts.part[i];
  const ProfileRow *row = &p->row[i];
  int memory;
  const double least = profile_least(p, i, &memory), time = profile_compared(row);
  fprintf(out, "%-14s %-9s", part->layer, part->direction);
  if (isfinite(row->seconds)) fprintf(out, "%9.1f %6.1f %%", row->seconds * 1e6, 100 * row->seconds / p->sum);
  if (isfinite(row->alone)) fprintf(out, "%9.1f", row->alone * 1e6);
  if (p->launches > 0) fprintf(out, "%9d", row->launches);
  fprintf(out, "%11.1f", part->bytes / 1e3);
  if (part->flops > 0)
    fprintf(out, "%9.2f", part->flops / 1e6);
  else if (isfinite(least))
    fprintf(out, "%9s", "");
  if (isfinite(least)) fprintf(out, "%9.2f %8.1f %%  %s", least * 1e6, 100 * least / time, memory ? "memory" : "FMA");
  fputc('\n', out);
}

/* The table, and what its figures are. */
static inline void profile_print(FILE *out, const Profile *p) {
  const Device device = p->parts.net->context.device;
  double bytes = 0, flops = 0;
  fprintf(out, "one training step, batch %d", p->parts.batch);
  if (p->launches > 0) fprintf(out, ", %d launches", p->launches);
  if (isfinite(p->step)) fprintf(out, ": %.1f us", p->step * 1e6);
  if (isfinite(p->graph)) fprintf(out, ", as one CUDA graph %.1f us", p->graph * 1e6);
  if (isfinite(p->sum)) fprintf(out, "; the operations below add up to %.1f us", p->sum * 1e6);
  fputc('\n', out);
  if (p->roof.bytes_per_second > 0)
    fprintf(out, "roofs of this run: %.1f GB/s copied, %.1f GFLOP/s of multiply-adds\n",
            p->roof.bytes_per_second * 1e-9, p->roof.flops_per_second * 1e-9);
  if (!profile_has_times(device))
    fprintf(out,
            "the GPU is emulated: its times mean nothing, so there are none; launches, bytes and FLOPs are a GPU's\n");
  fprintf(out, "\n%-24s", "operation");
  if (isfinite(p->sum)) fprintf(out, "%9s %8s", "us", "share");
  if (isfinite(p->graph)) fprintf(out, "%9s", "alone us");
  if (p->launches > 0) fprintf(out, "%9s", "launches");
  fprintf(out, "%11s%9s", "kB", "MFLOP");
  if (p->roof.bytes_per_second > 0) fprintf(out, "%9s %10s  %s", "least us", "of roof", "limit");
  fputc('\n', out);
  for (int i = 0; i < p->parts.count; i++) {
    if (!step_part_works(&p->parts, i)) continue;
    profile_print_row(out, p, i);
    bytes += p->parts.part[i].bytes;
    flops += p->parts.part[i].flops;
  }
  fprintf(out, "%-24s", "sum");
  if (isfinite(p->sum)) fprintf(out, "%9.1f %8s", p->sum * 1e6, "");
  if (isfinite(p->graph)) fprintf(out, "%9s", "");
  if (p->launches > 0) fprintf(out, "%9d", p->launches);
  fprintf(out, "%11.1f%9.2f\n\n", bytes / 1e3, flops / 1e6);
  fprintf(out, "kB: inputs, output, parameters, gradients and what is saved, each once; MFLOP: products alone\n");
  if (isfinite(p->graph))
    fprintf(
        out,
        "us: between two events in a running step; an event takes up to 1 us itself. alone us: many times in a row\n"
        "in one CUDA graph, not bound by launches, with its arrays in the cache: the roof is compared with this\n");
}

static inline json_t *profile_json(const Profile *p) {
  json_t *result = json_object(), *rows = json_array();
  json_object_set_new(result, "program", json_string(program_invocation_short_name));
  json_object_set_new(result, "device", json_string(device_name(p->parts.net->context.device)));
  json_object_set_new(result, "batch_size", json_integer(p->parts.batch));
  if (p->launches > 0) json_object_set_new(result, "launches", json_integer(p->launches));
  const double figures[] = {p->step * 1e6, p->graph * 1e6, p->sum * 1e6};
  const char *const names[] = {"step_us", "graph_us", "sum_us"};
  for (int i = 0; i < 3; i++)
    if (isfinite(figures[i])) json_object_set_new(result, names[i], json_real(figures[i]));
  if (p->roof.bytes_per_second > 0) {
    json_object_set_new(result, "copy_gbps", json_real(p->roof.bytes_per_second * 1e-9));
    json_object_set_new(result, "fma_gflops", json_real(p->roof.flops_per_second * 1e-9));
  }
  for (int i = 0; i < p->parts.count; i++) {
    const StepPart *part = &p->parts.part[i];
    const ProfileRow *row = &p->row[i];
    int memory;
    const double least = profile_least(p, i, &memory);
    if (!step_part_works(&p->parts, i)) continue;
    json_t *one =
        json_pack("{s:s, s:s, s:f}", "layer", part->layer, "direction", part->direction, "bytes", part->bytes);
    if (part->flops > 0) json_object_set_new(one, "flops", json_real(part->flops));
    if (p->launches > 0) json_object_set_new(one, "launches", json_integer(row->launches));
    if (isfinite(row->seconds)) json_object_set_new(one, "time_us", json_real(row->seconds * 1e6));
    if (isfinite(row->seconds)) json_object_set_new(one, "share", json_real(row->seconds / p->sum));
    if (isfinite(row->alone)) json_object_set_new(one, "alone_us", json_real(row->alone * 1e6));
    if (isfinite(least)) json_object_set_new(one, "least_us", json_real(least * 1e6));
    if (isfinite(least)) json_object_set_new(one, "roof_fraction", json_real(least / profile_compared(row)));
    json_array_append_new(rows, one);
  }
  json_object_set_new(result, "rows", rows);
  return result;
}

/* An empty field is a figure that was not measured. */
static inline int profile_write_csv(const Profile *p, const char *path, Error *err) {
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  fprintf(file.stream, "layer,direction,time_us,alone_us,launches,bytes,flops,least_us\n");
  for (int i = 0; i < p->parts.count; i++) {
    const StepPart *part = &p->parts.part[i];
    const ProfileRow *row = &p->row[i];
    int memory;
    const double figures[] = {row->seconds * 1e6,
                              row->alone * 1e6,
                              p->launches > 0 ? row->launches : NAN,
                              part->bytes,
                              part->flops > 0 ? part->flops : NAN,
                              profile_least(p, i, &memory) * 1e6};
    if (!step_part_works(&p->parts, i)) continue;
    fprintf(file.stream, "%s,%s", part->layer, part->direction);
    for (int f = 0; f < 6; f++)
      if (isfinite(figures[f]))
        fprintf(file.stream, ",%.10g", figures[f]);
      else
        fputc(',', file.stream);
    fputc('\n', file.stream);
  }
  return atomic_file_commit(&file, err);
}

typedef struct ProfilePicture {
  const Profile *profile;
  const char *title;
} ProfilePicture;

/* A bar for each operation: its time, and within it what the roofs leave; without times its bytes. */
static inline void profile_print_script(FILE *script, const void *what, int png) {
  const ProfilePicture *picture = (const ProfilePicture *)what;
  const Profile *p = picture->profile;
  const int times = isfinite(p->sum);
  int rows = 0, memory;
  fputs("set encoding utf8\n$bars << END\n", script);
  for (int i = 0; i < p->parts.count; i++) {
    if (!step_part_works(&p->parts, i)) continue;
    const double least = profile_least(p, i, &memory) * 1e6;
    fprintf(script, "%d %.9g %.9g\n", rows++, times ? profile_compared(&p->row[i]) * 1e6 : p->parts.part[i].bytes / 1e3,
            isfinite(least) ? least : 0);
  }
  fputs("END\nset ytics scale 0 (", script);
  for (int i = 0, row = 0; i < p->parts.count; i++) {
    char name[2 * NODE_NAME];
    if (!step_part_works(&p->parts, i)) continue;
    snprintf(name, sizeof name, "%s %s", p->parts.part[i].layer, p->parts.part[i].direction);
    fputs(row ? ", " : "", script);
    plot_print_string(script, name);
    fprintf(script, " %d", row++);
  }
  const int height = 130 + 22 * rows;
  fprintf(script, ")\nset yrange [%d:-1]\nset xrange [0:*]\n", rows);
  if (png)
    fprintf(script, "set terminal pngcairo size 1440,%d noenhanced background '#ffffff' font 'Sans,16'\n",
            height * 3 / 2);
  else
    fprintf(script, "set terminal svg size 960,%d noenhanced background '#ffffff' font 'sans-serif,14'\n", height);
  plot_print_title(script, "set title", picture->title);
  plot_print_title(script, "set xlabel", times ? "microseconds" : "kB read and written");
  fputs(
      "set border 3\nset tics nomirror\nset grid xtics noytics\nset style fill solid 1 noborder\nset key below\n"
      "set lmargin 26\nplot $bars using (0):1:(0):2:($1-0.38):($1+0.38) with boxxyerror linecolor rgb '#0072b2' title ",
      script);
  plot_print_string(script, times ? "time" : "bytes");
  if (p->roof.bytes_per_second > 0)
    fputs(
        ", $bars using (0):1:(0):3:($1-0.15):($1+0.15) with boxxyerror linecolor rgb '#e69f00' title 'least, by the "
        "roofs'",
        script);
  fputc('\n', script);
}

/* profile.csv, .svg and .png in the folder; a note on stderr for a chart that cannot be drawn. */
static inline int profile_write(const Profile *p, const char *title, const char *directory, Error *err) {
  static const char *const pictures[] = {"profile.svg", "profile.png"};
  const ProfilePicture picture = {p, title};
  char path[PATH_MAX + 32];
  Error why;
  if (make_directories(directory, err) != 0) return -1;
  snprintf(path, sizeof path, "%s/profile.csv", directory);
  if (profile_write_csv(p, path, err) != 0) return -1;
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, pictures[i]);
    plot_report(plot_render(profile_print_script, &picture, path, &why), &why);
  }
  return 0;
}

#endif /* COMMON_NN_PROFILE_H */
