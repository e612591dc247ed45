/* nncuda_cross_entropy.cu - softmax and cross-entropy in one. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase5_production/05_pytorch/nncuda_cross_entropy.cuh"
#include "phase5_production/05_pytorch/nncuda_workspace.cuh"

/* The arrays of the workspace; gives its bytes. */
static inline size_t cross_entropy_place(CrossEntropy *e, void *workspace, int device, int64_t rows, int64_t classes) {
  Workspace w = workspace_begin(workspace);
  e->counts = (LabelCounts *)workspace_take(&w, 1, sizeof *e->counts);
  e->known = (int *)workspace_take(&w, (size_t)rows, sizeof *e->known);
  e->losses = (float *)workspace_take(&w, (size_t)rows, sizeof *e->losses);
  e->row = device == NNCUDA_CPU ? (float *)workspace_take(&w, (size_t)classes, sizeof *e->row) : NULL;
  return w.bytes;
}

size_t nncuda_cross_entropy_workspace(int device, int64_t rows, int64_t classes) {
  CrossEntropy e;
  if (rows < 1 || classes < 1) return 0;
  return cross_entropy_place(&e, NULL, device, rows, classes);
}

/* On the CPU the labels can be looked at. */
static inline void cross_entropy_cpu_checked(Call *call, const CrossEntropy *e) {
  const LabelCounts counts = cross_entropy_labels_cpu(e);
  if (counts.wrong == 0) {
    cross_entropy_cpu(e, counts);
    return;
  }
  const int64_t label =
      e->wide ? ((const int64_t *)e->labels)[counts.first] : ((const int32_t *)e->labels)[counts.first];
  nncuda_thread.failed = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, "labels",
                                     "labels[%d] is %lld; expected 0 to %d, or ignore_index, which is %lld",
                                     counts.first, (long long)label, e->classes - 1, (long long)e->ignored);
}

int nncuda_cross_entropy(int device, void *stream, int dtype, void *loss, void *dlogits, int64_t *report,
                         const void *logits, const void *labels, int index, int64_t rows, int64_t classes,
                         int reduction, int64_t ignore_index, double label_smoothing, void *workspace,
                         size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, index, NNCUDA_INT32, NNCUDA_INT64);
  CALL_SIZE(call, rows, 1, INT_MAX);
  CALL_SIZE(call, classes, 1, INT_MAX);
  CALL_SIZE(call, reduction, NNCUDA_MEAN, NNCUDA_SUM);
  CALL_REAL(call, label_smoothing, 0, 1);
  CALL_ARRAY(call, loss);
  CALL_OPTIONAL(call, dlogits);
  if (report != NULL) call_array(&call, "report", report, sizeof *report);
  CALL_ARRAY(call, logits);
  call_array(&call, "labels", labels, index == NNCUDA_INT64 ? sizeof(int64_t) : sizeof(int32_t));
  call_workspace(&call, workspace, workspace_bytes, nncuda_cross_entropy_workspace(device, rows, classes));
  CrossEntropy e = {(float *)loss,
                    (float *)dlogits,
                    report,
                    (const float *)logits,
                    labels,
                    index == NNCUDA_INT64,
                    (int)rows,
                    (int)classes,
                    reduction == NNCUDA_MEAN,
                    ignore_index,
                    (float)label_smoothing,
                    NULL,
                    NULL,
                    NULL,
                    NULL};
  if (call.status == NNCUDA_OK) cross_entropy_place(&e, workspace, device, rows, classes);
  CALL_RUN(call, cross_entropy_gpu(&e), cross_entropy_cpu_checked(&call, &e));
  return call.status;
}
