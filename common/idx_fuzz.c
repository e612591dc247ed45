/* idx_fuzz.c - no file can make idx_read() crash, leak, or hand out an array that disagrees with its shape. */
#include "common/fuzz_file.h"

#include "common/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  IdxArray array;
  Error err = {0};
  if (idx_read(fuzz_file(bytes, size), &array, &err) != 0) {
    if (err.message[0] == '\0' || array.data != NULL) abort();
    return 0;
  }
  size_t count = 1;
  for (int i = 0; i < array.rank; i++) count *= array.shape[i];
  if (array.rank < 1 || array.count != count) abort();
  volatile unsigned char last = 0;
  for (size_t i = 0; i < count; i++) last = array.data[i]; /* all of it is ours to read */
  (void)last;
  idx_free(&array);
  return 0;
}
