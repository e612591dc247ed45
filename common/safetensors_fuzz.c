/* safetensors_fuzz.c - no file can make the reader crash or leak, and every tensor of an accepted file can be read. */
#include "common/fuzz_file.h"

#include "common/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  SafetensorsFile in;
  Error err = {0};
  if (safetensors_open(fuzz_file(bytes, size), &in, &err) != 0) {
    if (err.message[0] == '\0' || in.tensors != NULL || in.header != NULL) abort();
    return 0;
  }
  size_t total = 0;
  for (size_t i = 0; i < in.count; i++) {
    const SafetensorsTensor *tensor = &in.tensors[i];
    unsigned char *data = (unsigned char *)xmalloc(tensor->bytes);
    if (safetensors_find(&in, tensor->name) != tensor || tensor->bytes > size) abort();
    if (safetensors_read(&in, tensor->name, tensor->dtype, tensor->rank, tensor->shape, data, &err) != 0) abort();
    if (memcmp(data, bytes + in.data_start + tensor->offset, tensor->bytes) != 0) abort();
    total += tensor->bytes;
    free(data);
  }
  if (in.data_start + total != size) abort();
  safetensors_metadata(&in, "format");
  safetensors_close(&in);
  return 0;
}
