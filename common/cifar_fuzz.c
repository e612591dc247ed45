/* cifar_fuzz.c - no file can make cifar_read_file() crash, leak, or hand out labels beyond the classes. */
#include "common/fuzz_file.h"

#include "common/cifar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_as(const CifarKind *kind, const uint8_t *bytes, size_t size) {
  CifarSet set = {0, NULL, NULL};
  Error err = {0};
  const int status = cifar_read_file(fuzz_file(bytes, size), kind, &set, &err);
  const size_t record = CIFAR_PIXELS + (size_t)kind->label_bytes;
  if (status != 0 && err.message[0] == '\0') abort();
  if (status == 0 && (set.count == 0 || set.count * record != size)) abort();
  volatile unsigned char last = 0;
  for (size_t i = 0; i < set.count; i++)
    if (set.labels[i] >= kind->classes) abort();
  for (size_t i = 0; i < set.count * CIFAR_PIXELS; i++) last = set.images[i]; /* all of it is ours to read */
  (void)last;
  cifar_free(&set);
}

static void read_names(const uint8_t *bytes, size_t size) {
  char names[CIFAR_MAX_CLASSES][CIFAR_NAME];
  CifarKind kind = cifar10;
  Error err = {0};
  kind.names_file = fuzz_file(bytes, size) + 1; /* below the folder "" stands an absolute path */
  const int status = cifar_load_names("", &kind, names, &err);
  if (status == 0 || (status < 0 && err.message[0] == '\0')) abort();
  for (int i = 0; i < 10 && status == 1; i++)
    if (names[i][0] == '\0' || memchr(names[i], '\0', CIFAR_NAME) == NULL) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  read_as(&cifar10, bytes, size);
  read_as(&cifar100, bytes, size);
  read_names(bytes, size);
  return 0;
}
