/* onednn.c - convolutions of float tensors of any strides, by oneDNN.
 *
 * oneDNN chooses in which order its kernel wants each array; where the tensor has another, it is reordered before or
 * after. To choose, and to generate the code, takes milliseconds: what was made for a convolution is kept. */
#include "onednn.h"

#include <omp.h>
#include <pthread.h>

enum { KEPT_MOST = 512 };

/* One of the three arrays: as the tensor lies, and as the kernel wants it. */
typedef struct Side {
  dnnl_memory_desc_t ours, theirs;
  dnnl_primitive_t reorder; /* NULL: the same; in the direction of the pass */
  int argument;             /* of the convolution */
} Side;

typedef struct Kept {
  struct Kept *next;
  Convolution of; /* all but c.math and c.reorder matter */
  dnnl_primitive_t convolution;
  Side side[3];   /* x, w, y */
  size_t scratch; /* bytes */
} Kept;

static dnnl_engine_t engine;
static Kept *kept;
static int kept_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- descriptions ---- */

/* Its strides and, where `any` is given, the same shape in the order that oneDNN likes. */
static dnnl_status_t describe(dnnl_memory_desc_t *desc, dnnl_memory_desc_t *any, const Tensor *t, int groups) {
  dnnl_dims_t dims, strides;
  int rank = 0;
  if (groups > 1) {
    dims[rank] = groups;
    strides[rank++] = (dnnl_dim_t)t->dim[0] / groups * t->stride[0];
  }
  for (int i = 0; i < 4; i++, rank++) {
    dims[rank] = i == 0 ? t->dim[0] / groups : t->dim[i];
    strides[rank] = t->stride[i];
  }
  const dnnl_status_t status = describe_strided(desc, rank, dims, dnnl_f32, strides);
  return status == dnnl_success ? describe_tagged(any, rank, dims, dnnl_f32, dnnl_format_tag_any) : status;
}

static Window2d window_of(const Convolution *c) {
  Window2d w = {{0}, {0}, {0}};
  for (int i = 0; i < 2; i++) {
    w.stride[i] = c->c.stride[i];
    w.gaps[i] = c->c.dilation[i] - 1;
    w.padding[i] = c->c.padding[i];
  }
  return w;
}

/* ---- making ---- */

static int written_side(Pass pass) { return pass == FORWARD ? 2 : pass == BACKWARD_DATA ? 0 : 1; }

static dnnl_primitive_attr_t attributes(void) {
  dnnl_primitive_attr_t attr;
  dnnl_primitive_attr_create(&attr);
  dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user); /* several threads run one primitive */
  return attr;
}

static dnnl_status_t make_reorder(Side *side, int is_result) {
  dnnl_memory_desc_t *from = is_result ? &side->theirs : &side->ours;
  dnnl_memory_desc_t *to = is_result ? &side->ours : &side->theirs;
  if (dnnl_memory_desc_equal(MEMORY(*from), MEMORY(*to))) return dnnl_success;
  dnnl_primitive_desc_t desc;
  dnnl_status_t status = dnnl_reorder_primitive_desc_create(&desc, MEMORY(*from), engine, MEMORY(*to), engine, NULL);
  if (status != dnnl_success) return status;
  status = dnnl_primitive_create(&side->reorder, desc);
  dnnl_primitive_desc_destroy(desc);
  return status;
}

static void unmake(Kept *k) {
  for (int i = 0; i < 3; i++) {
    if (k->side[i].reorder) dnnl_primitive_destroy(k->side[i].reorder);
    forget(&k->side[i].ours);
    forget(&k->side[i].theirs);
  }
  if (k->convolution) dnnl_primitive_destroy(k->convolution);
  free(k);
}

static dnnl_status_t make(Kept *k) {
  static const dnnl_query_t query[3][3] = {{dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
                                           {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
                                           {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
  static const int argument[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                     {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                     {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
  const Convolution *c = &k->of;
  const Tensor *tensor[3] = {&c->x, &c->w, &c->y};
  const Window2d window = window_of(c);
  dnnl_memory_desc_t any[3] = {0};
  dnnl_primitive_desc_t desc = NULL, hint = NULL;
  dnnl_status_t status = dnnl_success;
  for (int i = 0; i < 3 && status == dnnl_success; i++)
    status = describe(&k->side[i].ours, &any[i], tensor[i], i == 1 ? c->c.groups : 1);
  dnnl_primitive_attr_t attr = attributes();
  if (status == dnnl_success && c->pass != FORWARD) /* a backward pass is asked for with its forward pass */
    status = describe_convolution(&hint, FORWARD, engine, any, &window, NULL, attr);
  if (status == dnnl_success) status = describe_convolution(&desc, c->pass, engine, any, &window, hint, attr);
  dnnl_primitive_attr_destroy(attr);
  if (hint) dnnl_primitive_desc_destroy(hint);
  for (int i = 0; i < 3; i++) forget(&any[i]);
  if (status != dnnl_success) return status;
  for (int i = 0; i < 3 && status == dnnl_success; i++) {
    k->side[i].argument = argument[c->pass][i];
    status = describe_as_asked(&k->side[i].theirs, desc, query[c->pass][i]);
    if (status == dnnl_success) status = make_reorder(&k->side[i], i == written_side(c->pass));
  }
  k->scratch = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
  if (status == dnnl_success) status = dnnl_primitive_create(&k->convolution, desc);
  dnnl_primitive_desc_destroy(desc);
  return status;
}

/* *owned: it was not kept, and is the caller's. */
static dnnl_status_t find(const Convolution *c, Kept **found, int *owned) {
  dnnl_status_t status = dnnl_success;
  Convolution key = *c;
  key.c.math = CUDNN_DEFAULT_MATH;
  key.c.reorder = CUDNN_DEFAULT_REORDER;
  pthread_mutex_lock(&lock);
  if (!engine) status = dnnl_engine_create(&engine, dnnl_cpu, 0);
  *found = NULL;
  for (Kept *k = kept; k; k = k->next)
    if (memcmp(&k->of, &key, sizeof key) == 0) *found = k;
  *owned = 0;
  if (status == dnnl_success && !*found) {
    Kept *k = calloc(1, sizeof *k);
    if (k) k->of = key;
    status = k ? make(k) : dnnl_out_of_memory;
    *owned = kept_count >= KEPT_MOST;
    if (status != dnnl_success) {
      if (k) unmake(k);
    } else {
      *found = k;
      if (!*owned) k->next = kept, kept = k, kept_count++;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- running ---- */

static dnnl_status_t reorder(const Side *side, dnnl_stream_t stream, dnnl_memory_t from, dnnl_memory_t to) {
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  return dnnl_primitive_execute(side->reorder, stream, 2, arguments);
}

static dnnl_status_t execute(const Kept *k, float *const data[3]) {
  const int written = written_side(k->of.pass);
  dnnl_memory_t ours[3] = {0}, theirs[3] = {0}, scratch = NULL;
  dnnl_exec_arg_t arguments[4];
  dnnl_stream_t stream = NULL;
  dnnl_memory_desc_t bytes;
  const dnnl_dims_t size = {(dnnl_dim_t)(k->scratch ? k->scratch : 1)};
  dnnl_status_t status = describe_tagged(&bytes, 1, size, dnnl_u8, dnnl_a);
  if (status != dnnl_success) return status;
  status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
  if (status == dnnl_success) status = dnnl_memory_create(&scratch, MEMORY(bytes), engine, DNNL_MEMORY_ALLOCATE);
  forget(&bytes);
  arguments[3] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, scratch};
  for (int i = 0; i < 3 && status == dnnl_success; i++) {
    const Side *side = &k->side[i];
    status = dnnl_memory_create(&ours[i], MEMORY(side->ours), engine, data[i]);
    if (status == dnnl_success && side->reorder)
      status = dnnl_memory_create(&theirs[i], MEMORY(side->theirs), engine, DNNL_MEMORY_ALLOCATE);
    if (status == dnnl_success && side->reorder && i != written) status = reorder(side, stream, ours[i], theirs[i]);
    arguments[i] = (dnnl_exec_arg_t){side->argument, side->reorder ? theirs[i] : ours[i]};
  }
  if (status == dnnl_success) status = dnnl_primitive_execute(k->convolution, stream, 4, arguments);
  if (status == dnnl_success && k->side[written].reorder)
    status = reorder(&k->side[written], stream, theirs[written], ours[written]);
  if (stream) dnnl_stream_wait(stream);
  for (int i = 0; i < 3; i++) {
    if (ours[i]) dnnl_memory_destroy(ours[i]);
    if (theirs[i]) dnnl_memory_destroy(theirs[i]);
  }
  if (scratch) dnnl_memory_destroy(scratch);
  if (stream) dnnl_stream_destroy(stream);
  return status;
}

int onednn_convolve(const Convolution *c, const float *x, const float *w, const float *y, const char **why) {
  float *const data[3] = {(float *)x, (float *)w, (float *)y};
  const int threads = omp_get_max_threads();
  Kept *k;
  int owned = 0;
  omp_set_num_threads(dnn_threads()); /* of this host thread; a primitive is made for a number of threads */
  dnnl_status_t status = find(c, &k, &owned);
  if (status == dnnl_success) status = execute(k, data);
  omp_set_num_threads(threads);
  if (owned && k) unmake(k);
  if (status == dnnl_success) return 0;
  *why = status == dnnl_out_of_memory   ? "no memory"
         : status == dnnl_unimplemented ? "oneDNN has no convolution of this shape"
                                        : "oneDNN failed";
  return -1;
}
