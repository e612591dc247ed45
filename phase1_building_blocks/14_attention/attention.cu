/* attention.cu - attention without storing its matrix of scores.
 *
 *     bazel run //phase1_building_blocks:attention
 *
 * Attention is two matrix products and a softmax between them. As three kernels they write S x S scores per head: the
 * last column shows how much memory that takes besides the arrays, and the times show what it costs to write and read
 * it. But the softmax can be computed online (lesson 8): a tile of scores is computed in registers, used, and
 * discarded. That is FlashAttention: the same operations with less memory traffic.
 *
 * The tables: the forward pass; the causal forward pass, in which a query sees only earlier keys; forward and backward
 * together, where p is computed again instead of being kept; and the same in bfloat16 on tensor cores, where the
 * products are so fast that the exponentials and the data movement between the products limit the speed; at last with
 * the instructions of Hopper, where the two overlap. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/14_attention/attention_backward_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_tensor_core_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_tf32.cuh"
#include "phase1_building_blocks/14_attention/attention_backward_wgmma.cuh"
#include "phase1_building_blocks/14_attention/attention_cublas.cuh"
#include "phase1_building_blocks/14_attention/attention_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core_lesson.cuh"
#include "phase1_building_blocks/14_attention/attention_wgmma.cuh"

static void say_what_is_left_out(void) {
  if (mma_refusal() != NULL) {
    fprintf(stderr, "The versions with tensor cores are left out: %s.\n", mma_refusal());
    return;
  }
  if (matmul_wgmma_refusal() == NULL) return;
  fprintf(stderr, "The versions with wgmma are left out: %s.\n", matmul_wgmma_refusal());
#ifdef SIMT_REWRITTEN
  fprintf(stderr, "SIMT_CAPABILITY=9.0 in the environment gives it 9.0.\n");
#endif
}

int main(int argc, char **argv) {
  Lesson forward = attention_lesson(false), causal = attention_lesson(true),
         gradients = attention_gradients_lesson(false);
  Lesson bf16 = attention_bf16_lesson(false), bf16_causal = attention_bf16_lesson(true);
  Lesson bf16_gradients = attention_bf16_gradients_lesson(false);
  forward.before = say_what_is_left_out;
  LessonVersion forward_versions[] = {
      attention_version("three_kernels", attention_three_kernels,
                        "S x S scores per head are written and read several times. Keep tiles of them in registers."),
      attention_version(
          "flash_rows", attention_flash_rows,
          "Only q, k, v and o move. But each float of K is loaded for one product: use it for 8 queries."),
      attention_version("flash", attention_flash,
                        "16 floats from shared memory serve 64 products: the float32 multipliers are the limit."),
      attention_version("tf32", attention_tf32,
                        "Three products on tensor cores for each one of float32: the tensor cores are the limit."),
      lesson_library_version(
          attention_version("cuBLAS and softmax", attention_cublas,
                            "The vendor's products and our softmax, in three calls: the scores go to memory.")),
  };
  const LessonVersion causal_versions[] = {
      attention_version("three_kernels_causal", attention_three_kernels,
                        "Half of the scores are -inf, but they are stored and read like the others."),
      attention_version("flash_rows_causal", attention_flash_rows,
                        "Skips the tiles of keys that no query of the block sees."),
      attention_version(
          "flash_causal", attention_flash,
          "Blocks of the last queries have most work and start first. Half of each diagonal tile is wasted."),
      attention_version("tf32_causal", attention_tf32, ""),
  };
  const LessonVersion gradient_versions[] = {
      attention_gradients_version("gradients_naive", attention_gradients_naive,
                                  "Stores p and ds, 2 S x S floats per head. Compute p again from lse instead."),
      attention_gradients_version(
          "gradients_flash", attention_gradients_flash,
          "7 products instead of 5, but each sum belongs to one block: the same bits every run."),
      attention_gradients_version(
          "gradients_tf32", attention_gradients_tf32,
          "5 products, of 3 on tensor cores each; all blocks add to dq. Limit: the tensor cores."),
  };
  const LessonVersion bf16_versions[] = {
      attention_bf16_version("wmma", attention_wmma,
                             "Scores, p and o pass through shared memory: the layout of a fragment is not documented."),
      attention_bf16_version(
          "mma", attention_mma,
          "All stay in registers. Each warp alternates between products and exponentials: the limit."),
      attention_bf16_version("wgmma_alternate", attention_wgmma_alternate,
                             "No warp loads or copies operands. But each warpgroup waits for each of its products."),
      attention_bf16_version("wgmma_turns", attention_wgmma_turns,
                             "One multiplies while others compute exponentials. But maxima and rescaling take time."),
      attention_bf16_version("wgmma", attention_wgmma,
                             "Keeps the first tile's maximum while that is safe. Exponentials and products remain."),
  };
  const LessonVersion bf16_causal_versions[] = {
      attention_bf16_version("wmma_causal", attention_wmma, ""),
      attention_bf16_version("mma_causal", attention_mma, ""),
      attention_bf16_version("wgmma_alternate_causal", attention_wgmma_alternate, ""),
      attention_bf16_version("wgmma_turns_causal", attention_wgmma_turns, ""),
      attention_bf16_version("wgmma_causal", attention_wgmma, ""),
  };
  const LessonVersion bf16_gradient_versions[] = {
      attention_bf16_gradients_version(
          "gradients_mma", attention_gradients_mma,
          "p and ds stay in registers for dv and dk. Only ds goes through shared memory, for dq."),
      attention_bf16_gradients_version(
          "gradients_wgmma", attention_gradients_wgmma,
          "Tiles by TMA, operands from shared memory; one warpgroup's products overlap the other's exponentials."),
  };
  const int no_mma = mma_refusal() != NULL; /* no tf32 either: in the first table the library's version moves up */
  const int forward_count = (int)(sizeof forward_versions / sizeof *forward_versions) - no_mma;
  if (no_mma) forward_versions[forward_count - 1] = forward_versions[forward_count];
  const int left_out = matmul_wgmma_refusal() == NULL ? 0 : 3; /* the versions with wgmma */
  const LessonTable tables[] = {
      {"Attention, forward", forward_versions, forward_count},
      {"Causal", causal_versions, (int)(sizeof causal_versions / sizeof *causal_versions) - no_mma, &causal},
      {"Forward and backward", gradient_versions, (int)(sizeof gradient_versions / sizeof *gradient_versions) - no_mma,
       &gradients},
      {"bfloat16, forward", bf16_versions, (int)(sizeof bf16_versions / sizeof *bf16_versions) - left_out, &bf16},
      {"bfloat16, causal", bf16_causal_versions,
       (int)(sizeof bf16_causal_versions / sizeof *bf16_causal_versions) - left_out, &bf16_causal},
      {"bfloat16, forward and backward", bf16_gradient_versions, left_out ? 1 : 2, &bf16_gradients},
  };
  const int count = sizeof tables / sizeof *tables;
  return lesson_main(argc, argv, &forward, tables, no_mma ? count - 3 : count);
}
