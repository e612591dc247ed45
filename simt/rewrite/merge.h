/* merge.h - one text out of two, preprocessed without and with __CUDA_ARCH__. */
#ifndef SIMT_REWRITE_MERGE_H
#define SIMT_REWRITE_MERGE_H

const char *merge(const char *host_text, const char *device_text);

#endif /* SIMT_REWRITE_MERGE_H */
