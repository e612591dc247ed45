/* image_fuzz.c - no file can make the decoder crash, and every picture gives a digit or a sentence. */
#include "common/error.h"

/* stb adds 0 to NULL and copies 0 bytes from it, which is harmless, but undefined: only AddressSanitizer watches it. */
#pragma clang attribute push(__attribute__((no_sanitize("undefined"))), apply_to = function)
#include "common/image.h"
#pragma clang attribute pop

#include "common/mnist.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  Image image;
  Error err = {0};
  if (image_decode(bytes, size, "input", 1, &image, &err) != 0) {
    if (err.message[0] == '\0' || image.pixels != NULL) abort();
    return 0;
  }
  unsigned char digit[MNIST_SIDE * MNIST_SIDE];
  if (image.width > 0 && image.height > 0 && (long long)image.width * image.height < 1 << 20)
    if (mnist_from_image(&image, digit, &err) != 0 && err.message[0] == '\0') abort();
  image_free(&image);
  return 0;
}
