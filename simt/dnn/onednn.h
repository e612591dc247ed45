/* onednn.h - what onednn.c needs of oneDNN, whose version 3 (Ubuntu 24.04, Debian 13) has another interface than
 * version 2 (Debian 12): a description of memory is a handle there, and an operation is described when its primitive
 * descriptor is made. */
#ifndef SIMT_DNN_ONEDNN_H
#define SIMT_DNN_ONEDNN_H

#include <dnnl.h>

#include "dnn.h"

/* The spatial parameters of a convolution. */
typedef struct Window2d {
  dnnl_dims_t stride, gaps, padding; /* gaps: the dilation less one */
} Window2d;

#if DNNL_VERSION_MAJOR >= 3

#define MEMORY(m) (m) /* as the functions of oneDNN take it */
#define describe_strided dnnl_memory_desc_create_with_strides
#define describe_tagged dnnl_memory_desc_create_with_tag

static inline void forget(dnnl_memory_desc_t *m) {
  if (*m) dnnl_memory_desc_destroy(*m);
  *m = NULL;
}

static inline dnnl_status_t describe_as_asked(dnnl_memory_desc_t *m, dnnl_primitive_desc_t desc, dnnl_query_t query) {
  return dnnl_memory_desc_clone(m, dnnl_primitive_desc_query_md(desc, query, 0));
}

/* m: x, w, y */
static inline dnnl_status_t describe_convolution(dnnl_primitive_desc_t *desc, Pass pass, dnnl_engine_t engine,
                                                 dnnl_memory_desc_t *m, const Window2d *p, dnnl_primitive_desc_t hint,
                                                 dnnl_primitive_attr_t attr) {
  if (pass == FORWARD)
    return dnnl_convolution_forward_primitive_desc_create(desc, engine, dnnl_forward_training, dnnl_convolution_direct,
                                                          m[0], m[1], NULL, m[2], p->stride, p->gaps, p->padding,
                                                          p->padding, attr);
  if (pass == BACKWARD_DATA)
    return dnnl_convolution_backward_data_primitive_desc_create(desc, engine, dnnl_convolution_direct, m[0], m[1], m[2],
                                                                p->stride, p->gaps, p->padding, p->padding, hint, attr);
  return dnnl_convolution_backward_weights_primitive_desc_create(desc, engine, dnnl_convolution_direct, m[0], m[1],
                                                                 NULL, m[2], p->stride, p->gaps, p->padding, p->padding,
                                                                 hint, attr);
}

#else

#define MEMORY(m) (&(m))
#define describe_strided dnnl_memory_desc_init_by_strides
#define describe_tagged dnnl_memory_desc_init_by_tag

static inline void forget(dnnl_memory_desc_t *m) { (void)m; }

static inline dnnl_status_t describe_as_asked(dnnl_memory_desc_t *m, dnnl_primitive_desc_t desc, dnnl_query_t query) {
  *m = *dnnl_primitive_desc_query_md(desc, query, 0);
  return dnnl_success;
}

static inline dnnl_status_t describe_convolution(dnnl_primitive_desc_t *desc, Pass pass, dnnl_engine_t engine,
                                                 dnnl_memory_desc_t *m, const Window2d *p, dnnl_primitive_desc_t hint,
                                                 dnnl_primitive_attr_t attr) {
  dnnl_convolution_desc_t c;
  dnnl_status_t status;
  if (pass == FORWARD) {
    status = dnnl_dilated_convolution_forward_desc_init(&c, dnnl_forward_training, dnnl_convolution_direct, &m[0],
                                                        &m[1], NULL, &m[2], p->stride, p->gaps, p->padding, p->padding);
  } else if (pass == BACKWARD_DATA) {
    status = dnnl_dilated_convolution_backward_data_desc_init(&c, dnnl_convolution_direct, &m[0], &m[1], &m[2],
                                                              p->stride, p->gaps, p->padding, p->padding);
  } else {
    status = dnnl_dilated_convolution_backward_weights_desc_init(&c, dnnl_convolution_direct, &m[0], &m[1], NULL, &m[2],
                                                                 p->stride, p->gaps, p->padding, p->padding);
  }
  return status == dnnl_success ? dnnl_primitive_desc_create(desc, &c, attr, engine, hint) : status;
}

#endif

#endif /* SIMT_DNN_ONEDNN_H */
