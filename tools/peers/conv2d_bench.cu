/* conv2d_bench.cu - our convolutions beside cuDNN's, in one run: the tables "beside cuDNN" of phase 3's READMEs.
 *
 *     bazel run --config=cuda //tools/peers:conv2d_bench                            # every table
 *     bazel run --config=cuda //tools/peers:conv2d_bench -- bias_relu bfloat16      # these two
 *
 *   float32         3 x 3 with padding 1: the three passes, the fastest of our methods (lesson 8 has the list) beside
 *                   the fastest of cuDNN's engines and of the algorithms of its older API
 *   implicit_gemm   forward: implicit_gemm of lesson 3 beside IMPLICIT_PRECOMP_GEMM
 *   bias_relu       forward with bias and ReLU: the fastest of ours, one call, beside cuDNN's fastest algorithm in one
 *                   call, and in three
 *   bfloat16        the layers of ResNet-18 in NHWC: the three passes, the faster of mma.sync and wgmma (which takes
 *                   mma.sync for shapes that it refuses) beside the fastest of cuDNN
 *
 * float32 is without tensor cores on both sides. Every candidate may use 1 GiB of workspace, and counts only if its
 * result is right. Each is timed once to find the fastest of its side; then these take turns, TURNS times, and the
 * median of their times is printed, in microseconds: of one call in a CUDA graph, or between events where cuDNN's call
 * cannot be recorded; L2 warm (conv2d_duel_lesson.cuh). */
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_fused.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_backward_wgmma.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_duel_lesson.cuh"

#if CUDNN_COMPILED

typedef __nv_bfloat16 bfloat16;

enum { TURNS = 5 };

typedef struct Bench {
  DuelCase c;          /* the first member: what is timed gets its address */
  bfloat16 *x, *w, *y; /* NULL in float32; else the same in NHWC, rounded */
  float *bias;
  const Cudnn *dnn;
  cudnnHandle_t handle;
} Bench;

/* What is timed, and its name. */
typedef struct Candidate {
  const char *name;
  int (*launch)(const DuelCase *c, const void *what);
  const void *what;
} Candidate;

/* ---------------------------------------------------------------------------------------------------------------- */
/* Arrays */

static bfloat16 *rounded(const float *from, int n, int c, int pixels) {
  bfloat16 *to;
  CUDA_CHECK(cudaMalloc(&to, (size_t)n * c * pixels * sizeof *to));
  conv2d_to_nhwc(to, from, n, c, pixels);
  return to;
}

static void bench_open(Bench *b, Conv2dShape s, Conv2dPass pass, bool small, float *workspace) {
  duel_open(&b->c, s, pass, workspace);
  b->x = b->w = b->y = NULL;
  b->bias = duel_array((size_t)s.k, 4);
  if (!small) return;
  b->x = rounded(b->c.x, s.n, s.c, s.h * s.w);
  b->w = rounded(b->c.w, s.k, s.c / s.groups, s.r * s.s);
  b->y = rounded(b->c.y, s.n, s.k, conv2d_out_h(s) * conv2d_out_w(s));
}

static void bench_close(Bench *b) {
  void *const all[] = {b->x, b->w, b->y, b->bias};
  for (int i = 0; i < 4; i++) CUDA_CHECK(cudaFree(all[i]));
  duel_close(&b->c);
}

static bfloat16 *small_output(const Bench *b) {
  return b->c.pass == CONV2D_FORWARD ? b->y : b->c.pass == CONV2D_BACKWARD_INPUT ? b->x : b->w;
}

static void bench_poison(const Bench *b) {
  duel_poison(&b->c);
  if (b->x != NULL) CUDA_CHECK(cudaMemsetAsync(small_output(b), 0xff, duel_output_count(&b->c) * sizeof(bfloat16)));
}

/* Of the largest value. The reference has factors that are not rounded: with bfloat16 up to 2^-8 per product. */
static double bench_error(const Bench *b) {
  const Conv2dShape s = b->c.shape;
  if (b->x != NULL && b->c.pass == CONV2D_FORWARD)
    conv2d_to_nchw(b->c.y, b->y, s.n, s.k, conv2d_out_h(s) * conv2d_out_w(s));
  else if (b->x != NULL && b->c.pass == CONV2D_BACKWARD_INPUT)
    conv2d_to_nchw(b->c.x, b->x, s.n, s.c, s.h * s.w);
  else if (b->x != NULL)
    conv2d_to_nchw(b->c.w, b->w, s.k, s.c / s.groups, s.r * s.s);
  return duel_error(&b->c);
}

static __global__ void bias_relu_kernel(float *y, const float *bias, int filters, int pixels, size_t count) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = fmaxf(y[i] + bias[i / pixels % filters], 0.0f);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Ours */

static int launch_winograd_bias_relu(const DuelCase *c, const void *bias) {
  conv2d_bias_relu_forward_winograd(c->y, c->x, c->w, (const float *)bias, c->shape, c->workspace);
  return 0;
}

static int launch_gemm_bias_relu(const DuelCase *c, const void *bias) {
  conv2d_bias_relu_forward_implicit_gemm(c->y, c->x, c->w, (const float *)bias, c->shape, c->workspace);
  return 0;
}

static int launch_mma(const DuelCase *c, const void *bench) {
  const Bench *b = (const Bench *)bench;
  if (c->pass == CONV2D_FORWARD)
    conv2d_forward_nhwc_mma(b->y, b->x, b->w, NULL, c->shape, false);
  else if (c->pass == CONV2D_BACKWARD_INPUT)
    conv2d_backward_input_nhwc_mma(b->x, b->y, b->w, c->shape, (bfloat16 *)c->workspace);
  else
    conv2d_backward_weight_nhwc_mma(b->w, NULL, b->y, b->x, c->shape, c->workspace);
  return 0;
}

static int launch_wgmma(const DuelCase *c, const void *bench) {
  const Bench *b = (const Bench *)bench;
  if (c->pass == CONV2D_FORWARD)
    conv2d_forward_nhwc_wgmma(b->y, b->x, b->w, NULL, c->shape, false);
  else if (c->pass == CONV2D_BACKWARD_INPUT)
    conv2d_backward_input_nhwc_wgmma(b->x, b->y, b->w, c->shape, (bfloat16 *)c->workspace);
  else
    conv2d_backward_weight_nhwc_wgmma(b->w, NULL, b->y, b->x, c->shape, c->workspace);
  return 0;
}

/* Times a candidate and keeps it where it is right and the fastest so far. */
static void consider(const Bench *b, Candidate candidate, Candidate *best, double *seconds) {
  const DuelRun run = {candidate.launch, &b->c, candidate.what};
  bench_poison(b);
  if (candidate.launch(&b->c, candidate.what) != 0) return;
  const double error = bench_error(b);
  if (!(error < 1e-2))
    die("%s computes %s wrong: an error of %g of the largest value", candidate.name, conv2d_shape_text(b->c.shape).text,
        error);
  const double time = duel_time(&run, *seconds);
  if (time < 0 || time >= *seconds) return;
  *seconds = time;
  *best = candidate;
}

static Candidate our_method(const Bench *b, const char *only) {
  Candidate best = {NULL, NULL, NULL};
  double seconds = 1e9;
  for (int i = CONV2D_DUEL_METHODS - 1; i >= 0; i--) { /* the slow ones come last: they are timed roughly */
    const Conv2dMethod *method = conv2d_duel_method(i);
    if ((only != NULL && strcmp(method->name, only) != 0) || !duel_takes(&b->c, method)) continue;
    consider(b, (Candidate){method->name, duel_launch_method, method}, &best, &seconds);
  }
  return best;
}

static Candidate our_bias_relu(const Bench *b) {
  Candidate best = {NULL, NULL, NULL};
  double seconds = 1e9;
  consider(b, (Candidate){"winograd", launch_winograd_bias_relu, b->bias}, &best, &seconds);
  consider(b, (Candidate){"implicit_gemm", launch_gemm_bias_relu, b->bias}, &best, &seconds);
  return best;
}

static Candidate our_bfloat16(const Bench *b) {
  Candidate best = {NULL, NULL, NULL};
  double seconds = 1e9;
  if (conv2d_wgmma_refusal() == NULL) consider(b, (Candidate){"wgmma", launch_wgmma, b}, &best, &seconds);
  consider(b, (Candidate){"mma", launch_mma, b}, &best, &seconds);
  return best;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* cuDNN's: a plan lives as long as the convolution that it is of */

typedef struct Theirs {
  CudnnConv2d conv;
  CudnnConv2dPlan plan;
  const Bench *bench;
  double seconds; /* < 0: none computes the layer */
} Theirs;

static int launch_theirs(const DuelCase *c, const void *what) {
  const Bench *b = ((const Theirs *)what)->bench;
  const CudnnConv2dArrays small = {b->x, b->w, b->y, c->workspace, b->bias};
  const CudnnConv2dArrays arrays = {c->x, c->w, c->y, c->workspace, b->bias};
  return cudnn_conv2d_run(&((const Theirs *)what)->plan, b->x != NULL ? &small : &arrays);
}

/* Keeps the plan where it is the fastest so far, and closes it otherwise. What is wrong does not count. */
static void consider_plan(Theirs *best, CudnnConv2dPlan plan) {
  const Bench *b = best->bench;
  Theirs tried = *best;
  const DuelRun run = {launch_theirs, &b->c, &tried};
  double seconds = -1;
  tried.plan = plan;
  bench_poison(b);
  if (plan.workspace <= DUEL_WORKSPACE && launch_theirs(&b->c, &tried) == 0 && bench_error(b) < 1e-2)
    seconds = duel_time(&run, best->seconds > 0 ? best->seconds : 1e9);
  if (seconds > 0 && (best->seconds < 0 || seconds < best->seconds)) {
    cudnn_conv2d_plan_close(&best->plan);
    best->plan = plan;
    best->seconds = seconds;
  } else {
    cudnn_conv2d_plan_close(&plan);
  }
}

enum { ENGINES = 1, ALGORITHMS = 2, FUSED = 4, SEPARATE = 8 };

/* only: an algorithm's name; NULL: any. */
static void theirs_open(Theirs *t, const Bench *b, int which, const char *only) {
  CudnnConv2dPlan plan;
  memset(t, 0, sizeof *t);
  t->bench = b;
  t->seconds = -1;
  cudnn_conv2d_open(&t->conv, b->dnn, b->handle, b->c.shape, b->c.pass,
                    b->x != NULL ? CUDNN_CONV2D_BFLOAT16 : CUDNN_CONV2D_FLOAT32);
  for (int i = 0; i < t->conv.engines && (which & ENGINES); i++)
    if (cudnn_conv2d_engine(&t->conv, i, &plan) == 0) consider_plan(t, plan);
  for (int i = 0; i < CUDNN_CONV2D_ALGORITHMS; i++) {
    const char *name = cudnn_conv2d_algorithm_name(b->c.pass, i);
    if (!(which & (ALGORITHMS | FUSED | SEPARATE)) || name == NULL || (only != NULL && strcmp(name, only) != 0))
      continue;
    if (cudnn_conv2d_algorithm(&t->conv, i, which & FUSED, which & SEPARATE, &plan) == 0) consider_plan(t, plan);
  }
}

static void theirs_close(Theirs *t) {
  cudnn_conv2d_plan_close(&t->plan);
  cudnn_conv2d_close(&t->conv);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tables */

/* Both in turns; the medians. */
static void in_turns(const Bench *b, Candidate ours, const Theirs *theirs, double *our_seconds, double *their_seconds) {
  const DuelRun our_run = {ours.launch, &b->c, ours.what}, their_run = {launch_theirs, &b->c, theirs};
  double our_times[TURNS], their_times[TURNS];
  for (int turn = 0; turn < TURNS; turn++) {
    our_times[turn] = duel_time(&our_run, 1e9);
    their_times[turn] = duel_time(&their_run, 1e9);
    if (our_times[turn] < 0 || their_times[turn] < 0) die("a call that ran before failed now");
  }
  *our_seconds = timer_stats(our_times, TURNS).median;
  *their_seconds = timer_stats(their_times, TURNS).median;
}

/* A line of a table; the logarithm of the ratio, or 0 and count unchanged where cuDNN has nothing. */
static void print_line(const Bench *b, Candidate ours, const Theirs *theirs, double *logs, int *count) {
  const Conv2dShape s = b->c.shape;
  double mine, other;
  if (ours.name == NULL) die("none of our methods computes %s", conv2d_shape_text(s).text);
  printf("%3d %4d %4d %3dx%-3d %dx%d/%d %-15s %-14s", s.n, s.c, s.k, s.h, s.w, s.r, s.s, s.stride_h,
         conv2d_pass_name(b->c.pass), ours.name);
  if (theirs->seconds < 0) {
    printf(" cuDNN has none that computes it\n");
    return;
  }
  in_turns(b, ours, theirs, &mine, &other);
  printf(" %8.1f %8.1f  %5.2fx  %8.1f  %s\n", 1e6 * mine, 1e6 * other, other / mine, 1e-12 * conv2d_flops(s) / mine,
         theirs->plan.name);
  fflush(stdout);
  *logs += log(other / mine);
  ++*count;
}

static void print_head(const char *title) {
  printf("\n%s\n%3s %4s %4s %-7s %-5s %-15s %-14s %8s %8s %7s %9s  %s\n", title, "n", "c", "k", "image", "rxs/u",
         "pass", "ours", "us", "cuDNN", "cuDNN/", "TFLOP/s", "cuDNN's fastest");
}

static void print_mean(const char *what, double logs, int count) {
  if (count > 0) printf("%s: geometric mean of cuDNN / ours, %d layers: %.2f\n", what, count, exp(logs / count));
}

static const int squares[][4] = {{64, 64, 64, 56},  {64, 128, 128, 28}, {64, 256, 256, 14},
                                 {64, 512, 512, 7}, {32, 64, 64, 112},  {32, 64, 64, 224}}; /* N, C, K, H = W */
enum { SQUARES = sizeof squares / sizeof *squares };

static Conv2dShape square(int i) {
  return conv2d_shape(squares[i][0], squares[i][1], squares[i][3], squares[i][3], squares[i][2], 3, 3, 1, 1);
}

static void table_float32(Bench *b, float *workspace) {
  print_head("float32, 3 x 3: the fastest of ours, the fastest of cuDNN's engines and algorithms");
  for (int pass = 0; pass < 3; pass++) {
    double logs = 0;
    int count = 0;
    for (int i = 0; i < SQUARES; i++) {
      Theirs theirs;
      bench_open(b, square(i), (Conv2dPass)pass, false, workspace);
      theirs_open(&theirs, b, ENGINES | ALGORITHMS, NULL);
      print_line(b, our_method(b, NULL), &theirs, &logs, &count);
      theirs_close(&theirs);
      bench_close(b);
    }
    print_mean(conv2d_pass_name((Conv2dPass)pass), logs, count);
  }
}

static void table_implicit_gemm(Bench *b, float *workspace) {
  double logs = 0;
  int count = 0;
  print_head("float32, implicit GEMM");
  for (int i = 0; i < SQUARES; i++) {
    Theirs theirs;
    bench_open(b, square(i), CONV2D_FORWARD, false, workspace);
    theirs_open(&theirs, b, ALGORITHMS, "IMPLICIT_PRECOMP_GEMM");
    print_line(b, our_method(b, "implicit_gemm"), &theirs, &logs, &count);
    theirs_close(&theirs);
    bench_close(b);
  }
  print_mean("implicit_gemm", logs, count);
}

static void table_bias_relu(Bench *b, float *workspace) {
  double logs[2] = {0, 0};
  int count[2] = {0, 0};
  print_head("float32, with bias and ReLU: ours in one call; cuDNN's fastest algorithm in one call, and in three");
  for (int i = 0; i < SQUARES; i++) {
    const Conv2dShape s = square(i);
    const size_t outputs = conv2d_y_count(s);
    bench_open(b, s, CONV2D_FORWARD, false, workspace);
    bias_relu_kernel<<<(unsigned)((outputs + 255) / 256), 256>>>(b->c.expected, b->bias, s.k,
                                                                 conv2d_out_h(s) * conv2d_out_w(s), outputs);
    CUDA_CHECK_LAUNCH();
    const Candidate ours = our_bias_relu(b);
    for (int separate = 0; separate < 2; separate++) {
      Theirs theirs;
      theirs_open(&theirs, b, separate ? SEPARATE : FUSED, NULL);
      print_line(b, ours, &theirs, &logs[separate], &count[separate]);
      theirs_close(&theirs);
    }
    bench_close(b);
  }
  print_mean("one call", logs[0], count[0]);
  print_mean("three calls", logs[1], count[1]);
}

static void table_bfloat16(Bench *b, float *workspace) {
  Conv2dDuelLayer layers[CONV2D_DUEL_LAYERS];
  const int layer_count = conv2d_duel_layers(layers);
  print_head("bfloat16, NHWC, the layers of ResNet-18");
  for (int pass = 0; pass < 3; pass++) {
    double logs = 0;
    int count = 0;
    for (int i = 0; i < layer_count; i++) {
      Conv2dShape s = layers[i].shape;
      Theirs theirs;
      if (strcmp(layers[i].network, "resnet18") != 0) continue;
      if (s.c % 8 != 0) continue; /* the first layer: 3 channels, for which neither has tensor cores in this layout */
      s.n = 64;
      bench_open(b, s, (Conv2dPass)pass, true, workspace);
      theirs_open(&theirs, b, ENGINES | ALGORITHMS, NULL);
      print_line(b, our_bfloat16(b), &theirs, &logs, &count);
      theirs_close(&theirs);
      bench_close(b);
    }
    print_mean(conv2d_pass_name((Conv2dPass)pass), logs, count);
  }
}

static const struct {
  const char *name;
  void (*print)(Bench *b, float *workspace);
} tables[] = {{"float32", table_float32},
              {"implicit_gemm", table_implicit_gemm},
              {"bias_relu", table_bias_relu},
              {"bfloat16", table_bfloat16}};
enum { TABLES = sizeof tables / sizeof *tables };

int main(int argc, char **argv) {
  int wanted[TABLES] = {0};
  for (int i = 1; i < argc; i++) {
    int t = 0;
    while (t < TABLES && strcmp(argv[i], tables[t].name) != 0) t++;
    if (t == TABLES) {
      fprintf(stderr, "conv2d_bench: unknown table %s; expected float32, implicit_gemm, bias_relu or bfloat16\n",
              argv[i]);
      return 2;
    }
    wanted[t] = 1;
  }
  Bench b;
  char description[512];
  float *workspace;
  Error err;
  memset(&b, 0, sizeof b);
  if (device_open(DEVICE_GPU, description, sizeof description, &err) != 0) die("%s", err.message);
  b.dnn = cudnn_load(&err);
  if (b.dnn == NULL) die("%s", err.message);
  b.handle = cudnn_handle(b.dnn);
  printf("%s; cuDNN %zu\n", description, b.dnn->cudnnGetVersion());
  CUDA_CHECK(cudaMalloc(&workspace, DUEL_WORKSPACE));
  for (int t = 0; t < TABLES; t++)
    if (argc == 1 || wanted[t]) tables[t].print(&b, workspace);
  CUDA_CHECK(cudaFree(workspace));
  CUDNN_CHECK(b.dnn, b.dnn->cudnnDestroy(b.handle));
  return 0;
}

#else

int main(void) { die("conv2d_bench was compiled without cuDNN: it needs --config=cuda and the header cudnn.h"); }

#endif
