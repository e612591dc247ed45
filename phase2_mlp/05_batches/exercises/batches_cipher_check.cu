/* Checks the exercise of batch_order.cuh (learn/check.h): orders of 1 to 8192 images. */
#include "phase2_mlp/05_batches/batches_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(batch_order_lesson(batches_cipher_cpu))
