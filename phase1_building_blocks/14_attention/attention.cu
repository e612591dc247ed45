/* attention.cu - attention without its matrix: what a GPU wastes on memory, and how not to.
 *
 *     bazel run //phase1_building_blocks:attention
 *
 * Attention is two matrix products and a softmax between them. Done one after the other they write S x S scores for
 * every head: the last column tells how much memory that takes beside the arrays, and the times what it costs to go
 * there and back. But the softmax can be computed as the scores come (lesson 8), so that a tile of them lives in
 * registers, is used, and forgotten. That is FlashAttention: not one operation fewer, only fewer bytes.
 *
 * The tables: the forward pass; the same when a query may only look back; forward and backward together, where p is
 * computed again rather than kept; and the forward pass in bfloat16 on tensor cores, where products are so cheap that
 * all that is left is what lies between them. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/14_attention/attention_backward_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_cublas.cuh"
#include "phase1_building_blocks/14_attention/attention_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core_lesson.cuh"

static void say_what_is_left_out(void) {
  if (mma_refusal() != NULL) fprintf(stderr, "The tables of bfloat16 are left out: %s.\n", mma_refusal());
}

int main(int argc, char **argv) {
  Lesson forward = attention_lesson(false), causal = attention_lesson(true),
         gradients = attention_gradients_lesson(false);
  Lesson bf16 = attention_bf16_lesson(false), bf16_causal = attention_bf16_lesson(true);
  forward.before = say_what_is_left_out;
  const LessonVersion forward_versions[] = {
      attention_version(
          "three_kernels", attention_three_kernels,
          "S x S scores, written and read twice, float by float. Keep them in the kernel: online softmax."),
      attention_version(
          "flash_rows", attention_flash_rows,
          "Nothing but q, k, v and o in memory. A float4 of K serves 4 products: share it among queries."),
      attention_version("flash", attention_flash,
                        "16 floats from shared memory for 64 products: near what the multipliers of float32 do."),
      lesson_library_version(
          attention_version("cuBLAS and softmax", attention_cublas,
                            "The vendor's products around our softmax: as fast as three calls can be.")),
  };
  const LessonVersion causal_versions[] = {
      attention_version("three_kernels_causal", attention_three_kernels,
                        "Half of the scores are -inf, computed, stored and read all the same."),
      attention_version("flash_rows_causal", attention_flash_rows,
                        "Tiles that no query of the block sees are skipped."),
      attention_version(
          "flash_causal", attention_flash,
          "Blocks of the last queries have most to do, and begin first. The diagonal's tiles are half empty."),
  };
  const LessonVersion gradient_versions[] = {
      attention_gradients_version(
          "gradients_naive", attention_gradients_naive,
          "p and ds in memory: 2 S x S floats for each head. Compute p again from lse instead."),
      attention_gradients_version("gradients_flash", attention_gradients_flash,
                                  "7 products where 5 would do, but no sum has two owners: the same bits every time."),
  };
  const LessonVersion bf16_versions[] = {
      attention_bf16_version("wmma", attention_wmma,
                             "Scores, p and o go through shared memory, for nobody knows who holds what."),
      attention_bf16_version(
          "mma", attention_mma,
          "All stays in registers. Exponentials and products of a warp take turns: that is the limit."),
  };
  const LessonVersion bf16_causal_versions[] = {
      attention_bf16_version("wmma_causal", attention_wmma, ""),
      attention_bf16_version("mma_causal", attention_mma, ""),
  };
  const LessonTable tables[] = {
      {"Attention, forward", forward_versions, sizeof forward_versions / sizeof *forward_versions},
      {"Causal", causal_versions, sizeof causal_versions / sizeof *causal_versions, &causal},
      {"Forward and backward", gradient_versions, sizeof gradient_versions / sizeof *gradient_versions, &gradients},
      {"bfloat16, forward", bf16_versions, sizeof bf16_versions / sizeof *bf16_versions, &bf16},
      {"bfloat16, causal", bf16_causal_versions, sizeof bf16_causal_versions / sizeof *bf16_causal_versions,
       &bf16_causal},
  };
  const int count = sizeof tables / sizeof *tables;
  return lesson_main(argc, argv, &forward, tables, mma_refusal() == NULL ? count : count - 2);
}
