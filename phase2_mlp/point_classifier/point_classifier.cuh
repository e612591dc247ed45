/* point_classifier.cuh - what lessons 1 and 2 train: one neuron that classifies points, or a hidden layer before it.
 *
 *   hidden = 0    x (B,2) ------------------------------------------------> z (B) = x w2^T + b2
 *   hidden = H    x (B,2) -> a (B,H) = x w1^T + b1 -> h = activation(a) --> z (B) = h w2^T + b2
 *
 * sigmoid(z) is the probability of class 1, the loss its binary cross-entropy; losses.cuh has value and gradient. All
 * parameters lie in one array, all gradients in another of the same layout: w2 (last), b2, w1 (hidden,2), b1 (hidden),
 * so that a step is one update. CPU: the plain loops; GPU: the kernels of perceptron.cuh and hidden_layer.cuh.
 */
#ifndef PHASE2_MLP_POINT_CLASSIFIER_CUH
#define PHASE2_MLP_POINT_CLASSIFIER_CUH

#include "common/device.h"
#include "common/options.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase1_building_blocks/09_losses/losses.cuh"
#include "phase1_building_blocks/11_random_init/random_init.cuh"
#include "phase2_mlp/01_perceptron/perceptron.cuh"
#include "phase2_mlp/02_xor/hidden_layer.cuh"
#include "phase2_mlp/point_classifier/decision_surface.h"

enum { POINT_NET_STREAM = 2 }; /* of the random numbers, and the next */

typedef struct PointNet {
  Device device;
  int hidden, last; /* last: inputs of the neuron that decides, 2 or hidden */
  Activation activation;
  size_t count; /* of parameters */
  float *parameters, *gradients;
  float *w2, *b2, *w1, *b1, *dw2, *db2, *dw1, *db1; /* within those two */
  float *h, *da, *z, *dz, *total;                   /* (most,hidden) twice, (most) twice, (1) */
} PointNet;

/* For up to `most` points at a time. */
static inline PointNet point_net_create(Device device, int hidden, Activation activation, int most) {
  PointNet net;
  memset(&net, 0, sizeof net);
  net.device = device;
  net.hidden = hidden;
  net.last = hidden > 0 ? hidden : 2;
  net.activation = activation;
  net.count = (size_t)net.last + 1 + (size_t)hidden * 3;
  net.parameters = (float *)device_alloc(device, net.count * sizeof(float));
  net.gradients = (float *)device_alloc(device, net.count * sizeof(float));
  net.w2 = net.parameters, net.dw2 = net.gradients;
  net.b2 = net.w2 + net.last, net.db2 = net.dw2 + net.last;
  net.w1 = net.b2 + 1, net.dw1 = net.db2 + 1;
  net.b1 = net.w1 + 2 * hidden, net.db1 = net.dw1 + 2 * hidden;
  net.h = (float *)device_alloc(device, (size_t)most * hidden * sizeof(float));
  net.da = (float *)device_alloc(device, (size_t)most * hidden * sizeof(float));
  net.z = (float *)device_alloc(device, most * sizeof(float));
  net.dz = (float *)device_alloc(device, most * sizeof(float));
  net.total = (float *)device_alloc(device, sizeof(float));
  return net;
}

static inline void point_net_destroy(PointNet *net) {
  float *const memory[] = {net->parameters, net->gradients, net->h, net->da, net->z, net->dz, net->total};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device_free(net->device, memory[i]);
  memset(net, 0, sizeof *net);
}

/* Weights by Xavier and Glorot's rule, biases zero. */
static inline void point_net_init(PointNet *net, uint64_t seed) {
  float *host = (float *)xcalloc(net->count, sizeof(float));
  xavier_normal_init(host, net->last, net->last, 1, seed, POINT_NET_STREAM);
  xavier_normal_init(host + (net->w1 - net->w2), 2 * net->hidden, 2, net->hidden, seed, POINT_NET_STREAM + 1);
  device_upload(net->device, net->parameters, host, net->count * sizeof(float));
  free(host);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One step */

/* y (B,O) = x w^T + bias, and its gradients: dw and dbias from dy */
static inline void point_net_layer(Device device, float *y, const float *x, const float *w, const float *bias,
                                   int batch, int in, int out) {
  ON_DEVICE(device, perceptron_forward_gpu(y, x, w, bias, batch, in, out),
            linear_forward_cpu(y, x, w, bias, batch, in, out));
}
static inline void point_net_layer_gradients(Device device, float *dw, float *dbias, const float *dy, const float *x,
                                             int batch, int in, int out) {
  ON_DEVICE(device, perceptron_backward_weight_gpu(dw, dbias, dy, x, batch, in, out),
            linear_backward_weight_cpu(dw, dbias, dy, x, batch, in, out));
}

/* x (n,2) -> net->z (n) */
static inline void point_net_forward(PointNet *net, const float *x, int n) {
  const float *from = x;
  if (net->hidden > 0) {
    size_t elements = (size_t)n * net->hidden;
    point_net_layer(net->device, net->h, x, net->w1, net->b1, n, 2, net->hidden);
    ON_DEVICE(net->device, activation_forward_gpu(net->activation, net->h, net->h, elements),
              activation_forward_cpu(net->activation, net->h, net->h, elements));
    from = net->h;
  }
  point_net_layer(net->device, net->z, from, net->w2, net->b2, n, net->last, 1);
}

/* After point_net_forward() of the same x: the mean loss, and net->gradients of it. t (n) */
static inline void point_net_backward(PointNet *net, const float *x, const float *t, int n) {
  ON_DEVICE(net->device, bce_logits_gpu(net->total, net->dz, net->z, t, n),
            bce_logits_cpu(net->total, net->dz, net->z, t, n));
  point_net_layer_gradients(net->device, net->dw2, net->db2, net->dz, net->hidden > 0 ? net->h : x, n, net->last, 1);
  if (net->hidden == 0) return;
  ON_DEVICE(net->device, hidden_backward_gpu(net->activation, net->da, net->dz, net->w2, net->h, n, net->hidden, 1),
            hidden_backward_cpu(net->activation, net->da, net->dz, net->w2, net->h, n, net->hidden, 1));
  point_net_layer_gradients(net->device, net->dw1, net->db1, net->da, x, n, 2, net->hidden);
}

static inline void point_net_update(PointNet *net, float lr) {
  ON_DEVICE(net->device, perceptron_update_gpu(net->parameters, net->parameters, net->gradients, net->count, lr),
            perceptron_update_cpu(net->parameters, net->parameters, net->gradients, net->count, lr));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A training run */

typedef struct PointRun {
  const char *label; /* what the frames' titles begin with */
  int epochs, batch_size;
  double lr;
  int frames;   /* how many of the run's epochs are drawn, at most; 1: the last, 0: none */
  FILE *out;    /* where to; NULL: only onto the surface */
  int solved;   /* 1: ends as soon as every point is right */
  double *loss; /* (epochs + 1), of all points after each epoch; NULL: not wanted */
} PointRun;

typedef struct PointScore {
  double loss, accuracy;
  int epochs; /* that were trained */
} PointScore;

/* Loss and accuracy of all points, which lie on the device. */
static inline PointScore point_net_score(PointNet *net, const Points *points, const float *x, const float *t) {
  float loss, *z = (float *)xmalloc((size_t)points->count * sizeof *z);
  int right = 0;
  point_net_forward(net, x, points->count);
  ON_DEVICE(net->device, bce_logits_gpu(net->total, net->dz, net->z, t, points->count),
            bce_logits_cpu(net->total, net->dz, net->z, t, points->count));
  device_download(net->device, &loss, net->total, sizeof loss);
  device_download(net->device, z, net->z, (size_t)points->count * sizeof *z);
  for (int i = 0; i < points->count; i++) right += (z[i] > 0) == (points->t[i] > 0.5f);
  free(z);
  PointScore score = {loss, (double)right / points->count, 0};
  return score;
}

/* The network's probability at each place of the plane, as the surface's next frame. The network has room for
 * SURFACE_PLACES. */
static inline void point_net_draw(PointNet *net, Surface *surface, const char *label, PointScore score) {
  Frame *frame = surface_add(surface);
  float *places = surface_places(surface);
  float *x = (float *)device_alloc(net->device, 2 * SURFACE_PLACES * sizeof *x);
  device_upload(net->device, x, places, 2 * SURFACE_PLACES * sizeof *x);
  point_net_forward(net, x, SURFACE_PLACES);
  device_download(net->device, frame->p, net->z, SURFACE_PLACES * sizeof *x);
  sigmoid_forward_cpu(frame->p, frame->p, SURFACE_PLACES);
  snprintf(frame->title, sizeof frame->title, "%s%sepoch %d: loss %.4f, %.1f %% right", label,
           label[0] == '\0' ? "" : "\n", score.epochs, score.loss, 100 * score.accuracy);
  device_free(net->device, x);
  free(places);
}

/* Is this epoch one of the run's frames? The first and the last are drawn, and some between them, at growing distances:
 * most is learned early. */
static inline int point_run_draws(const PointRun *run, int epoch) {
  int gaps = run->frames - 1;
  if (epoch == run->epochs) return 1;
  for (int k = 1; k < gaps; k++)
    if (epoch == lround(pow(run->epochs, (double)k / gaps))) return 1;
  return epoch == 0 && gaps > 0;
}

/* The loss is not a number, infinite, or far above its start: the steps are so long that they jump over the minimum. */
static inline int point_net_check_loss(double loss, double most, long step, int epoch, double lr, Error *err) {
  if (isfinite(loss) && loss <= most) return 0;
  char what[64] = "is not finite";
  if (isfinite(loss)) snprintf(what, sizeof what, "has grown to %.4g instead of falling", loss);
  return error_set(err,
                   "the loss %s at step %ld (epoch %d): the learning rate %g is too high for this network; try --lr=%g",
                   what, step, epoch, lr, lr / 10);
}

/* The batches of one epoch, in the points' order. */
static inline int point_net_train_epoch(PointNet *net, const float *x, const float *t, int count, const PointRun *run,
                                        int epoch, long *step, Error *err) {
  for (int first = 0; first < count; first += run->batch_size) {
    int left = count - first, n = left < run->batch_size ? left : run->batch_size;
    float loss;
    point_net_forward(net, x + 2 * (size_t)first, n);
    point_net_backward(net, x + 2 * (size_t)first, t + first, n);
    device_download(net->device, &loss, net->total, sizeof loss);
    if (point_net_check_loss(loss, INFINITY, ++*step, epoch, run->lr, err) != 0) return -1;
    point_net_update(net, (float)run->lr);
  }
  return 0;
}

/* Trains; *score is that of the last epoch. -1 when the loss is not finite any more. */
static inline int point_net_train(PointNet *net, const Points *points, const PointRun *run, Surface *surface,
                                  PointScore *score, Error *err) {
  size_t bytes = (size_t)points->count * sizeof(float);
  float *x = (float *)device_alloc(net->device, 2 * bytes), *t = (float *)device_alloc(net->device, bytes);
  device_upload(net->device, x, points->x, 2 * bytes);
  device_upload(net->device, t, points->t, bytes);
  long step = 0;
  int status = 0;
  double most = INFINITY; /* before the end the loss may rise; at the end, twice the loss of the start is too much */
  for (int epoch = 0; status == 0; epoch++) {
    *score = point_net_score(net, points, x, t);
    score->epochs = epoch;
    if (epoch == 0) most = 2 * score->loss;
    status = point_net_check_loss(score->loss, epoch == run->epochs ? most : INFINITY, step, epoch, run->lr, err);
    if (status != 0) break;
    if (run->loss != NULL) run->loss[epoch] = score->loss;
    if (run->frames > 0 && point_run_draws(run, epoch)) {
      point_net_draw(net, surface, run->label, *score);
      if (run->out != NULL) surface_print(run->out, surface, &surface->frame[surface->frames - 1]);
    }
    if (epoch == run->epochs || (run->solved && score->accuracy == 1)) break;
    status = point_net_train_epoch(net, x, t, points->count, run, epoch + 1, &step, err);
  }
  device_free(net->device, x);
  device_free(net->device, t);
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What both programs begin and end with */

/* "xor on CPU", and the folder for the results. Ends the program when there is none, or no such device. */
static inline void point_program_open(const CommonOptions *common) {
  Error err;
  char description[512];
  if (device_open(common->device, description, sizeof description, &err) != 0) die("%s", err.message);
  if (make_directories(common->output_dir, &err) != 0) die("--output-dir: %s", err.message);
  printf("%s on %s\n\n", program_invocation_short_name, description);
}

/* OUTPUT_DIR/name, the frames as a picture. */
static inline void point_program_draw(const CommonOptions *common, const Surface *surface, const char *name) {
  char path[PATH_MAX + 32];
  Error err;
  snprintf(path, sizeof path, "%s/%s", common->output_dir, name);
  if (plot_report(surface_write(surface, path, &err), &err) == 0) printf("%s\n", path);
}

/* OUTPUT_DIR/loss.svg: a loss for each epoch from 0 on, in up to two runs of `epochs`; the second may be NULL. */
static inline void point_program_plot(const CommonOptions *common, const char *title, const char *first_name,
                                      const double *first, const char *second_name, const double *second, int epochs) {
  char path[PATH_MAX + 32];
  size_t count = (size_t)epochs + 1;
  double *x = (double *)xmalloc(count * sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = (double)i;
  PlotSeries series[2] = {{first_name, x, first, count, 0}, {second_name, x, second, count, 0}};
  Plot plot = {title, "epoch", "loss", NULL, 0, 0, series, second == NULL ? 1u : 2u};
  snprintf(path, sizeof path, "%s/loss.svg", common->output_dir);
  if (plot_or_note(&plot, path) == 0) printf("%s\n", path);
  free(x);
}

/* What is the same in both programs' JSON; the caller adds its own. */
static inline json_t *point_program_json(const CommonOptions *common, const Points *points, double lr) {
  return json_pack("{s:s, s:s, s:I, s:i, s:i, s:i, s:f}", "program", program_invocation_short_name, "device",
                   device_name(common->device), "seed", (json_int_t)common->seed, "epochs", common->epochs,
                   "batch_size", common->batch_size, "points", points->count, "lr", lr);
}

static inline int point_program_close(const CommonOptions *common, json_t *result) {
  Error err;
  if (common->json && json_result(json_incref(result), &err) != 0) die("%s", err.message);
  json_decref(result);
  stdout_finish();
  return 0;
}

#endif /* PHASE2_MLP_POINT_CLASSIFIER_CUH */
