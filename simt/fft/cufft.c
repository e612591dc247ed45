/* cufft.c - cuFFT's plans and transforms (simt/include/cufft.h says what equals NVIDIA's).
 *
 * A plan is three sizes and, for input and output, where each element lies. An execution is copied into the stream's
 * queue with all that it needs, so that the plan may be destroyed at once. Each transform of a batch is gathered into
 * an array of complex doubles, transformed line by line along each dimension, and scattered. Of a spectrum of real data
 * the array holds the half that is stored: n/2 + 1 numbers along the last dimension.
 */
#include "cufft.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "cufftXt.h"
#include "fft.h"
#include "hooks.h"
#include "runtime.h"

/* Element (i,j,k) of transform b is at b * dist + ((i * embed[1] + j) * embed[2] + k) * stride. */
typedef struct Layout {
  long long embed[3], stride, dist;
} Layout;

typedef struct Transform {
  cufftType type;
  long long n[3], batch; /* leading sizes are 1 */
  int packed;            /* no layout given: it follows from the sizes */
  Layout in, out;
} Transform;

typedef struct Plan {
  int used, made;
  Transform transform;
  cudaStream_t stream;
  void *work_area;
  int allocates_itself;
} Plan;

static Plan *plans; /* plan h is plans[h - 1] */
static int plan_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_double(cufftType type) { return type == CUFFT_D2Z || type == CUFFT_Z2D || type == CUFFT_Z2Z; }
static int is_from_real(cufftType type) { return type == CUFFT_R2C || type == CUFFT_D2Z; }
static int is_to_real(cufftType type) { return type == CUFFT_C2R || type == CUFFT_Z2D; }
static int is_complex(cufftType type) { return type == CUFFT_C2C || type == CUFFT_Z2Z; }

static size_t in_bytes(const Transform *t) { return (is_double(t->type) ? 8 : 4) * (is_from_real(t->type) ? 1 : 2); }
static size_t out_bytes(const Transform *t) { return (is_double(t->type) ? 8 : 4) * (is_to_real(t->type) ? 1 : 2); }

/* Of the last dimension in a spectrum. */
static long long spectrum_length(const Transform *t) { return is_complex(t->type) ? t->n[2] : t->n[2] / 2 + 1; }

/* ---- messages ---- */

typedef struct Where {
  const char *function;
  const void *caller;
} Where;
#define HERE ((Where){__func__, __builtin_return_address(0)})

static const char *status_name(cufftResult status) {
  switch (status) {
    case CUFFT_INVALID_PLAN:
      return "CUFFT_INVALID_PLAN";
    case CUFFT_INVALID_TYPE:
      return "CUFFT_INVALID_TYPE";
    case CUFFT_INVALID_VALUE:
      return "CUFFT_INVALID_VALUE";
    case CUFFT_INVALID_SIZE:
      return "CUFFT_INVALID_SIZE";
    case CUFFT_NO_WORKSPACE:
      return "CUFFT_NO_WORKSPACE";
    case CUFFT_NOT_SUPPORTED:
      return "CUFFT_NOT_SUPPORTED";
    default:
      return "CUFFT_EXEC_FAILED";
  }
}

static cufftResult refuse(Where where, cufftResult status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static cufftResult refuse(Where where, cufftResult status, const char *format, ...) {
  char place[400], reason[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  simt_where((const char *)where.caller - 1, place, sizeof place);
  int known = strncmp(place, "0x", 2) != 0;
  simt_report_host("%s%s%s: %s: %s", where.function, known ? " at " : "", known ? place : "", status_name(status),
                   reason);
  return status;
}

#define TRY(expression)                           \
  do {                                            \
    cufftResult status_ = (expression);           \
    if (status_ != CUFFT_SUCCESS) return status_; \
  } while (0)

/* ---- the work ---- */

typedef struct Execution {
  Transform transform;
  int inverse;
  const void *in;
  void *out;
} Execution;

static long long place(const Layout *l, long long b, long long i, long long j, long long k) {
  return b * l->dist + ((i * l->embed[1] + j) * l->embed[2] + k) * l->stride;
}

static double number(const void *array, int wide, long long i) {
  return wide ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void put_number(void *array, int wide, long long i, double value) {
  if (wide) {
    ((double *)array)[i] = value;
  } else {
    ((float *)array)[i] = (float)value;
  }
}

/* The lines of `count` numbers, `step` apart, that begin at first ... first + lines - 1. */
static void transform_lines(SimtFft *fft, double *first, long long lines, long long count, long long step, double *from,
                            double *to) {
  for (long long line = 0; line < lines; line++, first += 2) {
    for (long long i = 0; i < count; i++) memcpy(from + 2 * i, first + 2 * i * step, 2 * sizeof *from);
    simt_fft_line(fft, from, to);
    for (long long i = 0; i < count; i++) memcpy(first + 2 * i * step, to + 2 * i, 2 * sizeof *from);
  }
}

/* Dimensions 0 and 1 of numbers (n0,n1,width). */
static void transform_others(const Transform *t, SimtFft *const fft[3], double *numbers, long long width, double *from,
                             double *to) {
  if (t->n[1] > 1) {
    for (long long i = 0; i < t->n[0]; i++)
      transform_lines(fft[1], numbers + 2 * i * t->n[1] * width, width, t->n[1], width, from, to);
  }
  if (t->n[0] > 1) transform_lines(fft[0], numbers, t->n[1] * width, t->n[0], t->n[1] * width, from, to);
}

/* cuFFT uses the input of a C2R transform of several dimensions as memory: whoever reads it afterwards gets NaN. */
static void spoil_input(const Execution *e, long long b) {
  const Transform *t = &e->transform;
  for (long long i = 0; i < t->n[0]; i++) {
    for (long long j = 0; j < t->n[1]; j++) {
      for (long long k = 0; k < spectrum_length(t); k++) {
        long long at = 2 * place(&t->in, b, i, j, k);
        put_number((void *)e->in, is_double(t->type), at, NAN);
        put_number((void *)e->in, is_double(t->type), at + 1, NAN);
      }
    }
  }
}

static void transform_one(const Execution *e, SimtFft *const fft[3], long long b, double *numbers, double *from,
                          double *to) {
  const Transform *t = &e->transform;
  long long width = spectrum_length(t), n = t->n[2];
  int wide = is_double(t->type);
  for (long long i = 0; i < t->n[0]; i++) {
    for (long long j = 0; j < t->n[1]; j++) {
      double *line = numbers + 2 * (i * t->n[1] + j) * width;
      if (is_from_real(t->type)) {
        for (long long k = 0; k < n; k++) {
          from[2 * k] = number(e->in, wide, place(&t->in, b, i, j, k));
          from[2 * k + 1] = 0;
        }
        simt_fft_line(fft[2], from, to);
        memcpy(line, to, (size_t)width * 2 * sizeof *line);
      } else {
        for (long long k = 0; k < width; k++) {
          long long at = 2 * place(&t->in, b, i, j, k);
          line[2 * k] = number(e->in, wide, at);
          line[2 * k + 1] = number(e->in, wide, at + 1);
        }
      }
    }
  }
  transform_others(t, fft, numbers, width, from, to);
  for (long long i = 0; i < t->n[0]; i++) {
    for (long long j = 0; j < t->n[1]; j++) {
      double *line = numbers + 2 * (i * t->n[1] + j) * width;
      if (is_complex(t->type)) transform_lines(fft[2], line, 1, n, 1, from, to);
      if (is_to_real(t->type)) { /* the other half: conjugates */
        memcpy(from, line, (size_t)width * 2 * sizeof *line);
        for (long long k = width; k < n; k++) {
          from[2 * k] = line[2 * (n - k)];
          from[2 * k + 1] = -line[2 * (n - k) + 1];
        }
        simt_fft_line(fft[2], from, to);
      }
      for (long long k = 0; k < (is_to_real(t->type) ? n : width); k++) {
        long long at = place(&t->out, b, i, j, k);
        if (is_to_real(t->type)) {
          put_number(e->out, wide, at, to[2 * k]);
        } else {
          put_number(e->out, wide, 2 * at, line[2 * k]);
          put_number(e->out, wide, 2 * at + 1, line[2 * k + 1]);
        }
        TELL_INSPECTOR(host_wrote((char *)e->out + (size_t)at * out_bytes(t), out_bytes(t)));
      }
    }
  }
}

static void work(void *context) {
  const Execution *e = context;
  const Transform *t = &e->transform;
  long long longest = 1, count = t->n[0] * t->n[1] * spectrum_length(t);
  SimtFft *fft[3] = {NULL, NULL, NULL};
  int good = 1;
  for (int d = 0; d < 3; d++) {
    if (t->n[d] > longest) longest = t->n[d];
    fft[d] = simt_fft_open(t->n[d], e->inverse);
    good = good && fft[d];
  }
  double *numbers = malloc((size_t)(count + 2 * longest) * 2 * sizeof *numbers);
  if (good && numbers) {
    double *from = numbers + 2 * count, *to = from + 2 * longest;
    int spoils = is_to_real(t->type) && e->in != e->out && t->n[0] * t->n[1] > 1;
    for (long long b = 0; b < t->batch; b++) {
      transform_one(e, fft, b, numbers, from, to);
      if (spoils) spoil_input(e, b);
    }
  } else {
    simt_report_host("cuFFT: no memory for a transform of %lld x %lld x %lld", t->n[0], t->n[1], t->n[2]);
    simt_error_sticky(cudaErrorMemoryAllocation);
  }
  free(numbers);
  for (int d = 0; d < 3; d++) {
    if (fft[d]) simt_fft_close(fft[d]);
  }
}

/* ---- plans ---- */

/* The plan of a handle, or NULL. With the lock held. */
static Plan *find(cufftHandle handle) {
  return handle >= 1 && handle <= plan_count && plans[handle - 1].used ? &plans[handle - 1] : NULL;
}

cufftResult cufftCreate(cufftHandle *handle) {
  if (!handle) return refuse(HERE, CUFFT_INVALID_VALUE, "the pointer to the handle is NULL");
  int free_one = 0;
  pthread_mutex_lock(&lock);
  while (free_one < plan_count && plans[free_one].used) free_one++;
  if (free_one == plan_count) {
    int more = plan_count ? 2 * plan_count : 16;
    Plan *larger = realloc(plans, (size_t)more * sizeof *plans);
    if (!larger) {
      pthread_mutex_unlock(&lock);
      return CUFFT_ALLOC_FAILED;
    }
    memset(larger + plan_count, 0, (size_t)(more - plan_count) * sizeof *larger);
    plans = larger;
    plan_count = more;
  }
  memset(&plans[free_one], 0, sizeof *plans);
  plans[free_one].used = 1;
  plans[free_one].allocates_itself = 1;
  *handle = free_one + 1;
  pthread_mutex_unlock(&lock);
  return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle handle) {
  if (handle == CUFFT_PLAN_NULL) return CUFFT_SUCCESS;
  pthread_mutex_lock(&lock);
  Plan *plan = find(handle);
  if (plan) plan->used = 0;
  pthread_mutex_unlock(&lock);
  return plan ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

/* Of spectra that lie packed. */
static size_t work_bytes(const Transform *t) {
  return (size_t)(t->batch * t->n[0] * t->n[1] * spectrum_length(t)) * (is_double(t->type) ? 16 : 8);
}

typedef struct Sizes { /* of cufftMakePlanMany64() */
  int rank;
  const long long *n, *inembed, *onembed;
  long long istride, idist, ostride, odist, batch;
  cufftType type;
} Sizes;

/* The number of elements from the first one of a layout to its last one. In double: it may not fit into an integer. */
static double span(const Transform *t, const Layout *l) {
  double rows = (double)(t->n[0] - 1) * (double)l->embed[1] + (double)(t->n[1] - 1);
  double elements = (rows * (double)l->embed[2] + (double)(t->n[2] - 1)) * (double)l->stride;
  return elements + (double)(t->batch - 1) * (double)l->dist + 1;
}

static cufftResult describe(Where where, Transform *t, Sizes s) {
  static const cufftType types[] = {CUFFT_R2C, CUFFT_C2R, CUFFT_C2C, CUFFT_D2Z, CUFFT_Z2D, CUFFT_Z2Z};
  int known = 0;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) known |= s.type == types[i];
  if (!known) {
    return refuse(where, CUFFT_INVALID_TYPE, "unknown type %d; expected CUFFT_R2C, C2R, C2C, D2Z, Z2D or Z2Z",
                  (int)s.type);
  }
  if (s.rank < 1 || s.rank > 3)
    return refuse(where, CUFFT_INVALID_VALUE, "%d dimensions: there must be 1 to 3", s.rank);
  if (!s.n) return refuse(where, CUFFT_INVALID_VALUE, "the sizes are NULL");
  if (s.batch < 1) return refuse(where, CUFFT_INVALID_SIZE, "the batch is %lld: it must be at least 1", s.batch);
  memset(t, 0, sizeof *t);
  t->type = s.type;
  t->batch = s.batch;
  t->packed = !s.inembed || !s.onembed;
  t->in = t->out = (Layout){{1, 1, 1}, 1, 0};
  double elements = 1;
  for (int d = 0; d < 3; d++) {
    int from = d - (3 - s.rank); /* leading sizes are 1 */
    t->n[d] = from < 0 ? 1 : s.n[from];
    elements *= (double)t->n[d];
    if (t->n[d] < 1)
      return refuse(where, CUFFT_INVALID_SIZE, "dimension %d has %lld elements: at least 1 is needed", from, t->n[d]);
    if (from > 0 && !t->packed) { /* the first embed is not used */
      t->in.embed[d] = s.inembed[from];
      t->out.embed[d] = s.onembed[from];
      if (s.inembed[from] < 1 || s.onembed[from] < 1) {
        return refuse(where, CUFFT_INVALID_VALUE, "inembed[%d] is %lld and onembed[%d] is %lld: at least 1 is needed",
                      from, s.inembed[from], from, s.onembed[from]);
      }
    }
  }
  if (elements * (double)s.batch > 1e12) {
    return refuse(where, CUFFT_INVALID_SIZE, "%.3g elements: more than the GPU's memory", elements * (double)s.batch);
  }
  if (t->packed) return CUFFT_SUCCESS; /* known when it is executed: in place or not */
  t->in.stride = s.istride;
  t->in.dist = s.idist;
  t->out.stride = s.ostride;
  t->out.dist = s.odist;
  if (s.istride < 1 || s.ostride < 1) {
    return refuse(where, CUFFT_INVALID_VALUE, "the strides are %lld and %lld: they must be at least 1", s.istride,
                  s.ostride);
  }
  if (s.batch > 1 && (s.idist < 1 || s.odist < 1)) {
    return refuse(where, CUFFT_INVALID_VALUE, "%lld transforms lie %lld and %lld elements apart: at least 1 is needed",
                  s.batch, s.idist, s.odist);
  }
  double largest = fmax(span(t, &t->in), span(t, &t->out));
  if (largest > 1e12) {
    return refuse(where, CUFFT_INVALID_VALUE, "the layout reaches over %.3g elements: more than the GPU's memory",
                  largest);
  }
  return CUFFT_SUCCESS;
}

static cufftResult make(Where where, cufftHandle handle, Sizes sizes, size_t *work_size) {
  Transform t;
  if (!work_size) return refuse(where, CUFFT_INVALID_VALUE, "the pointer to the size of the work area is NULL");
  pthread_mutex_lock(&lock);
  Plan *plan = find(handle);
  int made = plan && plan->made;
  pthread_mutex_unlock(&lock);
  if (!plan) return refuse(where, CUFFT_INVALID_PLAN, "there is no plan %d: call cufftCreate() first", handle);
  if (made) return refuse(where, CUFFT_INVALID_PLAN, "plan %d was made before: a plan is made once", handle);
  TRY(describe(where, &t, sizes));
  *work_size = work_bytes(&t);
  pthread_mutex_lock(&lock);
  plan = find(handle);
  if (plan) {
    plan->transform = t;
    plan->made = 1;
  }
  pthread_mutex_unlock(&lock);
  return CUFFT_SUCCESS;
}

static cufftResult estimate(Where where, Sizes sizes, size_t *work_size) {
  Transform t;
  TRY(describe(where, &t, sizes));
  if (!work_size) return refuse(where, CUFFT_INVALID_VALUE, "the pointer to the size is NULL");
  *work_size = work_bytes(&t);
  return CUFFT_SUCCESS;
}

static cufftResult estimate_of(Where where, cufftHandle handle, Sizes sizes, size_t *work_size) {
  pthread_mutex_lock(&lock);
  int known = find(handle) != NULL;
  pthread_mutex_unlock(&lock);
  if (!known) return refuse(where, CUFFT_INVALID_PLAN, "there is no plan %d", handle);
  return estimate(where, sizes, work_size);
}

static cufftResult plan_at_once(Where where, cufftHandle *handle, Sizes sizes) {
  if (!handle) return refuse(where, CUFFT_INVALID_VALUE, "the pointer to the handle is NULL");
  cufftHandle made;
  size_t work_size;
  TRY(cufftCreate(&made));
  cufftResult status = make(where, made, sizes, &work_size);
  if (status != CUFFT_SUCCESS) {
    cufftDestroy(made);
    return status;
  }
  *handle = made;
  return status;
}

static Sizes sizes_1d(long long *n, int nx, cufftType type, int batch) {
  n[0] = nx;
  return (Sizes){.rank = 1, .n = n, .type = type, .batch = batch};
}
static Sizes sizes_2d(long long *n, int nx, int ny, cufftType type) {
  n[0] = nx;
  n[1] = ny;
  return (Sizes){.rank = 2, .n = n, .type = type, .batch = 1};
}
static Sizes sizes_3d(long long *n, int nx, int ny, int nz, cufftType type) {
  n[0] = nx;
  n[1] = ny;
  n[2] = nz;
  return (Sizes){.rank = 3, .n = n, .type = type, .batch = 1};
}

/* `room`: for nine numbers. */
static Sizes sizes_many(long long *room, int rank, const int *n, const int *inembed, int istride, int idist,
                        const int *onembed, int ostride, int odist, cufftType type, int batch) {
  const int *from[3] = {n, inembed, onembed};
  for (int a = 0; a < 3; a++) {
    for (int d = 0; from[a] && d < rank && d < 3; d++) room[3 * a + d] = from[a][d];
  }
  return (Sizes){rank,
                 n ? room : NULL,
                 inembed ? room + 3 : NULL,
                 onembed ? room + 6 : NULL,
                 istride,
                 idist,
                 ostride,
                 odist,
                 batch,
                 type};
}

cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch) {
  long long n[1];
  return plan_at_once(HERE, plan, sizes_1d(n, nx, type, batch));
}

cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type) {
  long long n[2];
  return plan_at_once(HERE, plan, sizes_2d(n, nx, ny, type));
}

cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type) {
  long long n[3];
  return plan_at_once(HERE, plan, sizes_3d(n, nx, ny, nz, type));
}

cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                          int ostride, int odist, cufftType type, int batch) {
  long long room[9];
  return plan_at_once(HERE, plan,
                      sizes_many(room, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch));
}

cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *workSize) {
  long long n[1];
  return make(HERE, plan, sizes_1d(n, nx, type, batch), workSize);
}

cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *workSize) {
  long long n[2];
  return make(HERE, plan, sizes_2d(n, nx, ny, type), workSize);
}

cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *workSize) {
  long long n[3];
  return make(HERE, plan, sizes_3d(n, nx, ny, nz, type), workSize);
}

cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                              int ostride, int odist, cufftType type, int batch, size_t *workSize) {
  long long room[9];
  return make(HERE, plan, sizes_many(room, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch),
              workSize);
}

cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                                long long int istride, long long int idist, long long int *onembed,
                                long long int ostride, long long int odist, cufftType type, long long int batch,
                                size_t *workSize) {
  return make(HERE, plan, (Sizes){rank, n, inembed, onembed, istride, idist, ostride, odist, batch, type}, workSize);
}

cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t *workSize) {
  long long n[1];
  return estimate(HERE, sizes_1d(n, nx, type, batch), workSize);
}

cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t *workSize) {
  long long n[2];
  return estimate(HERE, sizes_2d(n, nx, ny, type), workSize);
}

cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t *workSize) {
  long long n[3];
  return estimate(HERE, sizes_3d(n, nx, ny, nz, type), workSize);
}

cufftResult cufftEstimateMany(int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                              int odist, cufftType type, int batch, size_t *workSize) {
  long long room[9];
  return estimate(HERE, sizes_many(room, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch),
                  workSize);
}

cufftResult cufftGetSize1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *workSize) {
  long long n[1];
  return estimate_of(HERE, plan, sizes_1d(n, nx, type, batch), workSize);
}

cufftResult cufftGetSize2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *workSize) {
  long long n[2];
  return estimate_of(HERE, plan, sizes_2d(n, nx, ny, type), workSize);
}

cufftResult cufftGetSize3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *workSize) {
  long long n[3];
  return estimate_of(HERE, plan, sizes_3d(n, nx, ny, nz, type), workSize);
}

cufftResult cufftGetSizeMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                             int ostride, int odist, cufftType type, int batch, size_t *workSize) {
  long long room[9];
  return estimate_of(
      HERE, plan, sizes_many(room, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch), workSize);
}

cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                               long long int istride, long long int idist, long long int *onembed,
                               long long int ostride, long long int odist, cufftType type, long long int batch,
                               size_t *workSize) {
  return estimate_of(HERE, plan, (Sizes){rank, n, inembed, onembed, istride, idist, ostride, odist, batch, type},
                     workSize);
}

/* ---- cufftXt.h: types by cudaDataType ---- */

static cufftResult type_of(Where where, cudaDataType in, cudaDataType out, cudaDataType execution, cufftType *type) {
  static const struct {
    cudaDataType in, out, execution;
    cufftType type;
  } known[] = {
      {CUDA_R_32F, CUDA_C_32F, CUDA_C_32F, CUFFT_R2C}, {CUDA_C_32F, CUDA_R_32F, CUDA_C_32F, CUFFT_C2R},
      {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUFFT_C2C}, {CUDA_R_64F, CUDA_C_64F, CUDA_C_64F, CUFFT_D2Z},
      {CUDA_C_64F, CUDA_R_64F, CUDA_C_64F, CUFFT_Z2D}, {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUFFT_Z2Z},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (known[i].in != in || known[i].out != out || known[i].execution != execution) continue;
    *type = known[i].type;
    return CUFFT_SUCCESS;
  }
  return refuse(where, CUFFT_NOT_SUPPORTED,
                "types %d to %d, executed in %d: the emulation has float and double, each in one precision", (int)in,
                (int)out, (int)execution);
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                                long long int istride, long long int idist, cudaDataType inputtype,
                                long long int *onembed, long long int ostride, long long int odist,
                                cudaDataType outputtype, long long int batch, size_t *workSize,
                                cudaDataType executiontype) {
  cufftType type = CUFFT_C2C;
  TRY(type_of(HERE, inputtype, outputtype, executiontype, &type));
  return make(HERE, plan, (Sizes){rank, n, inembed, onembed, istride, idist, ostride, odist, batch, type}, workSize);
}

cufftResult cufftXtGetSizeMany(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                               long long int istride, long long int idist, cudaDataType inputtype,
                               long long int *onembed, long long int ostride, long long int odist,
                               cudaDataType outputtype, long long int batch, size_t *workSize,
                               cudaDataType executiontype) {
  cufftType type = CUFFT_C2C;
  TRY(type_of(HERE, inputtype, outputtype, executiontype, &type));
  return estimate_of(HERE, plan, (Sizes){rank, n, inembed, onembed, istride, idist, ostride, odist, batch, type},
                     workSize);
}

/* ---- settings ---- */

#define SETTING(statement)     \
  pthread_mutex_lock(&lock);   \
  Plan *plan = find(handle);   \
  if (plan) statement;         \
  pthread_mutex_unlock(&lock); \
  return plan ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) { SETTING(plan->stream = stream); }
cufftResult cufftSetAutoAllocation(cufftHandle handle, int allocate) { SETTING(plan->allocates_itself = allocate); }
cufftResult cufftSetWorkArea(cufftHandle handle, void *area) { SETTING(plan->work_area = area); }

cufftResult cufftGetSize(cufftHandle handle, size_t *work_size) {
  if (!work_size) return refuse(HERE, CUFFT_INVALID_VALUE, "the pointer to the size is NULL");
  pthread_mutex_lock(&lock);
  Plan *plan = find(handle);
  int made = plan && plan->made;
  if (made) *work_size = work_bytes(&plan->transform);
  pthread_mutex_unlock(&lock);
  return made ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult cufftGetVersion(int *version) {
  if (!version) return CUFFT_INVALID_VALUE;
  *version = CUFFT_VERSION;
  return CUFFT_SUCCESS;
}

cufftResult cufftGetProperty(libraryPropertyType type, int *value) {
  static const int version[] = {CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH};
  if ((unsigned)type > PATCH_LEVEL) return CUFFT_INVALID_TYPE;
  if (!value) return CUFFT_INVALID_VALUE;
  *value = version[type];
  return CUFFT_SUCCESS;
}

/* ---- execution ---- */

/* Packed data. Real data of a transform in place has room for its spectrum. */
static void pack(Transform *t, int in_place) {
  long long half = spectrum_length(t), real = in_place ? 2 * half : t->n[2];
  t->in.embed[1] = t->out.embed[1] = t->n[1];
  t->in.embed[2] = is_from_real(t->type) ? real : half;
  t->out.embed[2] = is_to_real(t->type) ? real : half;
  t->in.dist = t->n[0] * t->n[1] * t->in.embed[2];
  t->out.dist = t->n[0] * t->n[1] * t->out.embed[2];
}

/* 1 when the data lies in memory that the GPU could use, whole. */
static int in_reach(Where where, const char *name, const void *data, const Transform *t, const Layout *l, int is_real,
                    size_t bytes) {
  SimtMemory memory;
  char text[512];
  long long width = is_real ? t->n[2] : spectrum_length(t);
  long long last = place(l, t->batch - 1, t->n[0] - 1, t->n[1] - 1, width - 1);
  size_t span = (size_t)(last + 1) * bytes;
  if (!simt_memory_find(data, &memory)) {
    refuse(where, CUFFT_EXEC_FAILED, "%s is %s. cuFFT works on device memory: cudaMalloc(), then cudaMemcpy()", name,
           !data          ? "NULL"
           : memory.freed ? "memory that was freed"
                          : "a host pointer");
  } else if (span > memory.size - (size_t)((const char *)data - (const char *)memory.base)) {
    refuse(where, CUFFT_EXEC_FAILED,
           "%s (%lld transforms, %zu bytes per element) needs %zu bytes, but begins %zu bytes into %s", name, t->batch,
           bytes, span, (size_t)((const char *)data - (const char *)memory.base),
           simt_memory_text(&memory, text, sizeof text));
  } else {
    return 1;
  }
  simt_error_sticky(cudaErrorIllegalAddress);
  return 0;
}

/* `type`: what the function executes; 0: whatever the plan is for. */
static cufftResult execute(Where where, cufftHandle handle, int type, const void *in, void *out, int direction) {
  pthread_mutex_lock(&lock);
  Plan *found = find(handle), plan = {0};
  if (found) plan = *found;
  pthread_mutex_unlock(&lock);
  if (!found) return refuse(where, CUFFT_INVALID_PLAN, "there is no plan %d", handle);
  if (!plan.made)
    return refuse(where, CUFFT_INVALID_PLAN, "plan %d is not made: call cufftMakePlan1d() or the like", handle);
  Execution e = {.transform = plan.transform, .in = in, .out = out};
  Transform *t = &e.transform;
  if (type && (int)t->type != type) {
    return refuse(where, CUFFT_INVALID_TYPE, "plan %d is for other types of input and output", handle);
  }
  if (is_complex(t->type) && direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) {
    return refuse(where, CUFFT_INVALID_VALUE, "the direction is %d: it must be CUFFT_FORWARD (-1) or CUFFT_INVERSE (1)",
                  direction);
  }
  size_t align = is_double(t->type) ? 16 : 8; /* of real data, too: kernels load pairs of numbers */
  if ((uintptr_t)in % align != 0 || (uintptr_t)out % align != 0) {
    return refuse(where, CUFFT_INVALID_VALUE,
                  "the input is at %p, the output at %p: both must lie at multiples of %zu bytes, a complex number", in,
                  out, align);
  }
  if (!plan.allocates_itself && !plan.work_area) {
    return refuse(where, CUFFT_NO_WORKSPACE,
                  "plan %d was told to allocate no work area, and cufftSetWorkArea() gave it none", handle);
  }
  e.inverse = is_complex(t->type) ? direction == CUFFT_INVERSE : is_to_real(t->type);
  if (t->packed) pack(t, in == out);
  if (simt_error_pending() != cudaSuccess) return CUFFT_EXEC_FAILED;
  if (!in_reach(where, "the input", in, t, &t->in, is_from_real(t->type), in_bytes(t)) ||
      !in_reach(where, "the output", out, t, &t->out, is_to_real(t->type), out_bytes(t))) {
    return CUFFT_EXEC_FAILED;
  }
  /* none: the legacy default stream, even where --default-stream makes NULL the thread's own */
  cudaStream_t stream = plan.stream ? plan.stream : cudaStreamLegacy;
  if (simt_stream_submit(stream, work, &e, sizeof e, where.function, NULL, 0) != cudaSuccess) return CUFFT_EXEC_FAILED;
  return simt_error_pending() == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, int direction) {
  return execute(HERE, plan, CUFFT_C2C, idata, odata, direction);
}

cufftResult cufftExecR2C(cufftHandle plan, cufftReal *idata, cufftComplex *odata) {
  return execute(HERE, plan, CUFFT_R2C, idata, odata, CUFFT_FORWARD);
}

cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *idata, cufftReal *odata) {
  return execute(HERE, plan, CUFFT_C2R, idata, odata, CUFFT_INVERSE);
}

cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleComplex *odata, int direction) {
  return execute(HERE, plan, CUFFT_Z2Z, idata, odata, direction);
}

cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *idata, cufftDoubleComplex *odata) {
  return execute(HERE, plan, CUFFT_D2Z, idata, odata, CUFFT_FORWARD);
}

cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleReal *odata) {
  return execute(HERE, plan, CUFFT_Z2D, idata, odata, CUFFT_INVERSE);
}

cufftResult cufftXtExec(cufftHandle plan, void *input, void *output, int direction) {
  return execute(HERE, plan, 0, input, output, direction);
}
