/* batches.cu - from bytes in any order to a batch of floats, and where the order comes from.
 *
 *     bazel run //phase2_mlp:batches
 *
 * A data set is read once an epoch, image by image, in an order that changes every time. MNIST is small: it lies on the
 * GPU as bytes, and a batch is gathered there. That is a copy with two twists. What is read lies scattered, but whole
 * images of it: a warp that stays within an image still reads neighbours. And bytes come in where floats go out, so
 * what limits the copy is the stores, if the arithmetic between does not: two divisions for each of the 50,000 pixels.
 *
 * The order itself is a question of how to do in parallel what everybody knows one after the other. Shuffling cards by
 * Fisher and Yates takes as many steps as there are cards, each of which needs the one before. Sorting by random keys
 * takes a few passes. And a cipher needs no pass at all: thread i encrypts i. batch_order.cuh tells what each is worth,
 * and bazel run //phase2_mlp:batch_orders what an order does to a network that learns. */
#include "common/lesson/main.h"
#include "phase2_mlp/05_batches/batches_lesson.cuh"

int main(int argc, char **argv) {
  Lesson gather = batch_gather_lesson(), shuffle = batch_order_lesson(batches_shuffle);
  Lesson sort = batch_order_lesson(batches_sort_cpu), cipher = batch_order_lesson(batches_cipher_cpu);
  const LessonVersion gathers[] = {
      batch_gather_version("rows", batch_gather_rows,
                           "A sector of 32 bytes for one pixel, and one for its float. Let neighbours be neighbours."),
      batch_gather_version("elements", batch_gather_elements,
                           "Whole sectors. But each thread divides to find its image, and asks for its number."),
      batch_gather_version("blocks", batch_gather_blocks,
                           "The block is the image. A byte a load: let a lane move four pixels at once."),
      batch_gather_version("warps", batch_gather_warps,
                           "A quarter of the requests. Two divisions a pixel are left; there are only 256 pixels."),
      batch_gather_version("gather", batch_gather_gpu,
                           "Divisions become a table in shared memory. What is left is the stores."),
      lesson_copy_version("As many bytes as x has, read and written."),
  };
  const LessonVersion shuffles[] = {
      batch_order_version("shuffle", batches_shuffle_gpu,
                          "One thread, each step waits for the memory. The host does it faster, and uploads.")};
  const LessonVersion sorts[] = {
      batch_order_version("sort", batches_sort_lesson,
                          "Any number of threads, five passes, scattered accesses: an order is random, after all.")};
  const LessonVersion ciphers[] = {batch_order_version(
      "cipher", batches_cipher_gpu, "No thread needs another one, or memory: only its own number, and the key.")};
  const LessonTable tables[] = {
      {"A batch of images", gathers, sizeof gathers / sizeof *gathers},
      {"An order by Fisher and Yates", shuffles, 1, &shuffle},
      {"An order by sorting random keys", sorts, 1, &sort},
      {"An order by a cipher", ciphers, 1, &cipher},
  };
  return lesson_main(argc, argv, &gather, tables, 4);
}
