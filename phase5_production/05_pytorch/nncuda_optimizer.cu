/* nncuda_optimizer.cu - optimizer steps on all tensors of a model, with the kernels of phase4_training/01_sgd: the
 * table of the tensors is an argument of the kernel, as many tensors at a time as it has room for. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "common/nn/optimizers/adam.cuh"
#include "common/nn/optimizers/sgd.cuh"
#include "phase4_training/01_sgd/multi_tensor.cuh"

/* slot[s]: of all tensors. */
typedef struct Tensors {
  int64_t count;
  float *const *w;
  const float *const *grad;
  float *const *slot[2];
  const int64_t *length;
} Tensors;

/* "w[3]" is what a message names. */
static inline void call_tensor(Call *call, const char *name, int64_t i, const void *pointer) {
  if (pointer != NULL && (uintptr_t)pointer % sizeof(float) == 0 && !nncuda_checks) return; /* no text for each */
  char text[48];
  snprintf(text, sizeof text, "%s[%lld]", name, (long long)i);
  call_array(call, text, pointer, sizeof(float));
}

static inline void call_tensors(Call *call, const Tensors *t, int slots, const char *const names[2]) {
  call_size(call, "tensors", t->count, 0, INT_MAX);
  if (call->status != NNCUDA_OK || t->count == 0) return;
  call_array(call, "w", t->w, sizeof(void *));
  call_array(call, "grad", t->grad, sizeof(void *));
  for (int s = 0; s < slots; s++) call_array(call, names[s], t->slot[s], sizeof(void *));
  call_array(call, "length", t->length, sizeof(int64_t));
  for (int64_t i = 0; i < t->count && call->status == NNCUDA_OK; i++) {
    if (t->length[i] < 0 || t->length[i] > INT_MAX - TENSOR_CHUNK) {
      char text[32];
      snprintf(text, sizeof text, "length[%lld]", (long long)i);
      call_size(call, text, t->length[i], 0, INT_MAX - TENSOR_CHUNK);
    }
    if (t->length[i] == 0) continue;
    call_tensor(call, "w", i, t->w[i]);
    call_tensor(call, "grad", i, t->grad[i]);
    for (int s = 0; s < slots; s++) call_tensor(call, names[s], i, t->slot[s][i]);
  }
}

template <int SLOTS>
static inline OptimizerArrays<SLOTS> tensors_arrays(const Tensors *t, int64_t i) {
  float *slot[2] = {};
  for (int s = 0; s < SLOTS; s++) slot[s] = t->slot[s][i];
  return optimizer_arrays<SLOTS>(t->w[i], slot, t->grad[i]);
}

template <typename Rule, int SLOTS>
static inline void tensors_step_gpu(const Tensors *t, Rule rule, StepValues step) {
  for (int64_t first = 0; first < t->count; first += TENSORS_MOST) {
    TensorTable<SLOTS> table;
    table.count = t->count - first < TENSORS_MOST ? (int)(t->count - first) : TENSORS_MOST;
    table.decayed = table.count; /* rule.weight_decay is for all tensors */
    table.first[0] = 0;
    for (int i = 0; i < table.count; i++) {
      table.tensor[i] = tensors_arrays<SLOTS>(t, first + i);
      table.length[i] = (int)t->length[first + i];
      const int64_t floats = table.length[i] == 0 ? 0 : table.length[i] + (int64_t)tensor_before(table.tensor[i]);
      table.first[i + 1] = table.first[i] + (int)((floats + TENSOR_CHUNK - 1) / TENSOR_CHUNK);
    }
    if (table.first[table.count] == 0) continue;
    tensor_table_float4_kernel<<<(unsigned)table.first[table.count], TENSOR_BLOCK>>>(table, rule, step);
    CUDA_CHECK_LAUNCH();
  }
}

template <typename Rule, int SLOTS>
static inline void tensors_step_cpu(const Tensors *t, Rule rule, StepValues step) {
  for (int64_t i = 0; i < t->count; i++) {
    const size_t n = (size_t)t->length[i];
    if (n > 0) optimizer_flat_cpu_fast(tensors_arrays<SLOTS>(t, i), n, n, rule, step);
  }
}

static inline void sgd_step_gpu(const Tensors *t, SgdRule rule, StepValues step) {
  if (t->slot[0] != NULL)
    tensors_step_gpu<SgdRule, 1>(t, rule, step);
  else
    tensors_step_gpu<SgdPlainRule, 0>(t, sgd_plain_rule(rule.weight_decay), step);
}

static inline void sgd_step_cpu(const Tensors *t, SgdRule rule, StepValues step) {
  if (t->slot[0] != NULL)
    tensors_step_cpu<SgdRule, 1>(t, rule, step);
  else
    tensors_step_cpu<SgdPlainRule, 0>(t, sgd_plain_rule(rule.weight_decay), step);
}

int nncuda_sgd_step(int device, void *stream, int64_t tensors, float *const *w, const float *const *grad,
                    float *const *momentum_buffer, const int64_t *length, double lr, double momentum, double dampening,
                    int nesterov, double weight_decay, int first_step) {
  static const char *const names[2] = {"momentum_buffer", ""};
  Call call = call_begin(__func__, device, stream);
  const Tensors t = {tensors, w, grad, {momentum != 0 ? momentum_buffer : NULL, NULL}, length};
  CALL_REAL(call, lr, 0, 1e30);
  CALL_REAL(call, momentum, 0, 1e30);
  CALL_REAL(call, dampening, 0, 1);
  CALL_FLAG(call, nesterov);
  CALL_REAL(call, weight_decay, 0, 1e30);
  CALL_FLAG(call, first_step);
  if (nesterov) call_real(&call, "momentum", momentum, 1e-30, 1e30);
  if (nesterov) call_real(&call, "dampening", dampening, 0, 0);
  call_tensors(&call, &t, momentum != 0, names);
  const SgdRule rule = sgd_rule((float)momentum, (float)weight_decay, nesterov);
  StepValues step = {};
  step.lr = (float)lr;
  step.share = first_step ? 1 : (float)(1 - dampening);
  CALL_RUN(call, sgd_step_gpu(&t, rule, step), sgd_step_cpu(&t, rule, step));
  return call.status;
}

int nncuda_adam_step(int device, void *stream, int64_t tensors, float *const *w, const float *const *grad,
                     float *const *exp_avg, float *const *exp_avg_sq, const int64_t *length, double lr, double beta1,
                     double beta2, double epsilon, double weight_decay, int decoupled, int64_t step) {
  static const char *const names[2] = {"exp_avg", "exp_avg_sq"};
  Call call = call_begin(__func__, device, stream);
  const Tensors t = {tensors, w, grad, {exp_avg, exp_avg_sq}, length};
  CALL_REAL(call, lr, 0, 1e30);
  CALL_REAL(call, beta1, 0, 0.999999999);
  CALL_REAL(call, beta2, 0, 0.999999999);
  CALL_REAL(call, epsilon, 0, 1e30);
  CALL_REAL(call, weight_decay, 0, 1e30);
  CALL_FLAG(call, decoupled);
  CALL_SIZE(call, step, 1, INT64_MAX);
  call_tensors(&call, &t, 2, names);
  Hyper hyper = {};
  hyper.beta1 = beta1, hyper.beta2 = beta2, hyper.epsilon = (float)epsilon, hyper.weight_decay = (float)weight_decay;
  const AdamRule rule = adam_rule(&hyper, decoupled);
  const StepValues values = step_values((float)lr, &hyper, (long)step - 1);
  CALL_RUN(call, (tensors_step_gpu<AdamRule, 2>(&t, rule, values)), (tensors_step_cpu<AdamRule, 2>(&t, rule, values)));
  return call.status;
}
