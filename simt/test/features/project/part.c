/* Plain C: the library, and the runtime's interface for C. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "series.h"

int wrong_in_c(int length) {
  Series s;
  int *restrict host = malloc(length * sizeof *host), wrong = 0;
  struct cudaDeviceProp properties = {.warpSize = 0};
  if (cudaGetDeviceProperties(&properties, 0) || properties.warpSize != 32) wrong++;
  if (series_make(&s, length, -5, 3) || series_read(&s, host) || series_drop(&s)) wrong++;
  for (int i = 0; i < length; i++) wrong += host[i] != 3 * i - 5;
  free(host);
  return wrong;
}
