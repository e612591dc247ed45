/* graph.c - the graph API. */
#include "dnn.h"

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *d) {
  (void)type, (void)d;
  return not_supported_here("not yet");
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  (void)d;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  (void)d;
  return not_supported_here("not yet");
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t n,
                                       cudnnBackendAttributeType_t t, int64_t c, const void *v) {
  (void)d, (void)n, (void)t, (void)c, (void)v;
  return not_supported_here("not yet");
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t n,
                                       cudnnBackendAttributeType_t t, int64_t c, int64_t *k, void *v) {
  (void)d, (void)n, (void)t, (void)c, (void)v, (void)k;
  return not_supported_here("not yet");
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t p, cudnnBackendDescriptor_t v) {
  (void)h, (void)p, (void)v;
  return not_supported_here("not yet");
}
