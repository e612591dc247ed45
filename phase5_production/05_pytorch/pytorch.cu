/* pytorch.cu - a library's kernels in the order of the program that calls it, and what libnncuda.so.1 says to a caller.
 *
 *     bazel run //phase5_production:pytorch
 *
 * First the four ways of nncuda_order.cuh: is the result right, does the host wait, how long is the host busy? Then a
 * program in C meets the library: its version, what it says of calls that are wrong, what memory it wants.
 */
#include "common/options.h"
#include "common/timer.h"
#include "phase5_production/05_pytorch/nncuda.h"
#include "phase5_production/05_pytorch/nncuda_order.cuh"

enum { PROGRAMS = 8, ELEMENTS = 1 << 16, TURNS = 200 };

static const struct Way {
  const char *name, *calls, *host;
  OrderVersion *version;
} ways[] = {
    {"none", "launch", "goes on", order_none},
    {"wait", "wait, launch, wait", "waits", order_wait},
    {"events", "record, wait event, launch, record, wait event", "goes on", order_events},
    {"given", "launch", "goes on", order_given},
};

#ifndef SIMT_REWRITTEN
/* Microseconds of the host for one call of the library. */
static double order_host_us(OrderVersion *version, float *out, const float *in) {
  Order o;
  double best = INFINITY;
  order_open(&o, out, in, ELEMENTS);
  for (int round = 0; round < 7; round++) {
    CUDA_CHECK(cudaDeviceSynchronize());
    const double start = seconds_now();
    for (int turn = 0; turn < TURNS; turn++) version(&o);
    const double us = 1e6 * (seconds_now() - start) / TURNS;
    if (us < best) best = us;
  }
  order_close(&o);
  return best;
}
#endif

static void show_ways(void) {
  const size_t n = (size_t)PROGRAMS * ELEMENTS, bytes = n * sizeof(float);
  float *in = (float *)xmalloc(bytes), *expected = (float *)xmalloc(bytes), *got = (float *)xmalloc(bytes);
  float *device_in = (float *)device_alloc(DEVICE_GPU, bytes), *device_out = (float *)device_alloc(DEVICE_GPU, bytes);
  for (size_t i = 0; i < n; i++) in[i] = 2 + (float)(i % 1000) / 128;
  order_cpu(expected, in, (int)n);
  device_upload(DEVICE_GPU, device_in, in, bytes);
  printf("%d programs, each with a kernel before the library's and one behind it:\n\n", PROGRAMS);
  printf("%-8s%-50s%-10s%s\n", "order", "the library's calls", "the host", "result");
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    size_t wrong = 0;
    CUDA_CHECK(cudaMemset(device_out, 0, bytes));
    order_run(device_out, device_in, PROGRAMS, ELEMENTS, ways[w].version);
    device_download(DEVICE_GPU, got, device_out, bytes);
    for (size_t i = 0; i < n; i++) wrong += !(fabsf(got[i] - expected[i]) <= 1e-4f);
    printf("%-8s%-50s%-10s%s", ways[w].name, ways[w].calls, ways[w].host, wrong ? "wrong" : "right");
#ifndef SIMT_REWRITTEN
    printf(", %.2f us of the host", order_host_us(ways[w].version, device_out, device_in));
#endif
    putchar('\n');
  }
  device_free(DEVICE_GPU, device_out);
  device_free(DEVICE_GPU, device_in);
  free(in), free(expected), free(got);
}

static void say(int status) { printf("  %-23s  %s\n", nncuda_status_name(status), nncuda_last_error()); }

static void show_library(void) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  nncuda_conv2d_shape layer1 = {64, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1};
  if (nncuda_check_version(NNCUDA_VERSION) != NNCUDA_OK) die("%s", nncuda_last_error());
  printf("\n%s\n\n", nncuda_version_text());
  if (nncuda_softmax_forward(NNCUDA_CPU, NULL, NNCUDA_FLOAT32, x, x, 2, 4) != NNCUDA_OK) die("%s", nncuda_last_error());
  printf("softmax of 1 2 3 4: %.4f %.4f %.4f %.4f\n\nWhat it says of wrong calls:\n\n", x[0], x[1], x[2], x[3]);
  say(nncuda_softmax_forward(NNCUDA_CPU, NULL, NNCUDA_FLOAT32, x, NULL, 2, 4));
  say(nncuda_softmax_forward(NNCUDA_CPU, NULL, NNCUDA_FLOAT32, x, x, 2, -4));
  say(nncuda_softmax_forward(NNCUDA_CPU, NULL, NNCUDA_BFLOAT16, x, x, 2, 4));
  say(nncuda_conv2d_forward(NNCUDA_CPU, NULL, NNCUDA_FLOAT32, x, x, x, NULL, NULL, 0, &layer1, NULL, 0));
  say(nncuda_check_version(NNCUDA_VERSION + 100));
  printf("\nMemory that it wants from its caller, on GPU 0:\n\n");
  printf("  cross-entropy, 4096 x 50257               %8zu bytes\n", nncuda_cross_entropy_workspace(0, 4096, 50257));
  printf("  batch norm, 64 x 64 x 56 x 56             %8zu bytes\n", nncuda_batch_norm_workspace(0, 64, 64, 56 * 56));
  printf("  attention backward, 8 x 16 x 1024 x 64    %8zu bytes\n",
         nncuda_attention_backward_workspace(0, NNCUDA_FLOAT32, 8, 16, 1024, 64));
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {OPTION_END};
  static const struct argp own = {rows, NULL, NULL, "Four ways to order two streams, and a tour of libnncuda.so.1.",
                                  NULL, NULL, NULL};
  CommonOptions common = options_default(0);
  char description[160];
  Error err;
  options_parse(&common, &own, NULL, argc, argv);
#ifdef SIMT_REWRITTEN /* streams that keep no order but what events make, as a GPU's: read when the program starts */
  if (getenv("SIMT_STREAMS") == NULL) {
    setenv("SIMT_STREAMS", "random:1", 0);
    execv("/proc/self/exe", argv);
  }
#endif
  if (device_open(DEVICE_GPU, description, sizeof description, &err) != 0) die("%s", err.message);
#ifdef SIMT_REWRITTEN
  printf("On an emulated GPU, whose streams keep no order but that of events. No times here.\n");
#else
  printf("On %s.\n", description);
#endif
  show_ways();
  show_library();
  return 0;
}
