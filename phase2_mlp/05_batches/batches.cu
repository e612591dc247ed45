/* batches.cu - from bytes in any order to a batch of floats, and where the order comes from.
 *
 *     bazel run //phase2_mlp:batches
 *
 * A data set is read once per epoch, image by image, in an order that changes every time. MNIST is small: it lies on
 * the GPU as bytes, and a batch is gathered there. That is a copy with two differences. The images lie scattered, but
 * each in one piece: a warp that stays within an image still reads neighbours. And a byte is read where a float is
 * written, so the stores limit the copy, unless the arithmetic does: two divisions for each of the 50,000 pixels.
 *
 * The order, too, can be made in parallel. Shuffling by Fisher and Yates takes one step per image, and each step needs
 * the one before. Sorting by random keys takes a few passes. A cipher needs none: thread i encrypts i. batch_order.cuh
 * says how random each is, and bazel run //phase2_mlp:batch_orders what an order does to a network that learns. */
#include "common/lesson/main.h"
#include "phase2_mlp/05_batches/batches_lesson.cuh"

int main(int argc, char **argv) {
  Lesson gather = batch_gather_lesson(), shuffle = batch_order_lesson(batches_shuffle);
  Lesson sort = batch_order_lesson(batches_sort_cpu), cipher = batch_order_lesson(batches_cipher_cpu);
  const LessonVersion gathers[] = {
      batch_gather_version("rows", batch_gather_rows,
                           "A lane uses 1 byte of each sector it loads and 4 of each it stores. Let neighbouring lanes "
                           "take neighbouring pixels."),
      batch_gather_version(
          "elements", batch_gather_elements,
          "Sectors are used in full. But each thread divides to find its image, and loads its number."),
      batch_gather_version("blocks", batch_gather_blocks,
                           "One block per image, no division for the index. A lane loads one byte: let it load four."),
      batch_gather_version("warps", batch_gather_warps,
                           "A quarter of the requests. Each pixel still costs two divisions, and has only 256 values."),
      batch_gather_version("gather", batch_gather_gpu,
                           "A table in shared memory replaces the divisions. The stores are the limit now."),
      lesson_copy_version("As many bytes as x has, read and written."),
  };
  const LessonVersion shuffles[] = {
      batch_order_version("shuffle", batches_shuffle_gpu,
                          "One thread, and each step waits for the memory. The host is faster, upload included.")};
  const LessonVersion sorts[] = {batch_order_version(
      "sort", batches_sort_lesson,
      "Any number of threads, in five passes. The accesses are scattered, as the order is random.")};
  const LessonVersion ciphers[] = {
      batch_order_version("cipher", batches_cipher_gpu,
                          "A thread computes its element from its own number and the key: it reads nothing.")};
  const LessonTable tables[] = {
      {"A batch of images", gathers, sizeof gathers / sizeof *gathers},
      {"An order by Fisher and Yates", shuffles, 1, &shuffle},
      {"An order by sorting random keys", sorts, 1, &sort},
      {"An order by a cipher", ciphers, 1, &cipher},
  };
  return lesson_main(argc, argv, &gather, tables, 4);
}
