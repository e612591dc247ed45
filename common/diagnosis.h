/* diagnosis.h - what is wrong with a kernel, as a name that programs can compare.
 *
 * A check explains itself to people in sentences with numbers in them. Beside the sentences it collects names from one
 * list, in the order in which they are said; the first is the one to look at first:
 *
 *     Diagnoses found = {0};
 *     diagnoses_add(&found, DIAGNOSIS_NEVER_WRITTEN);
 *     diagnoses_add(&found, DIAGNOSIS_LAST_TILE);
 *     if (diagnoses_has(&found, DIAGNOSIS_LAST_TILE)) ...
 *     diagnoses_text(&found, text, sizeof text);             // "never_written last_tile"
 *
 * The names are what an author of exercises writes behind `expect:`, and what a grader's reports hold. They are part
 * of the course's interface: a name keeps its meaning.
 */
#ifndef COMMON_DIAGNOSIS_H
#define COMMON_DIAGNOSIS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* what g++ always has */
#endif
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
/* Enumerator, name, and what it says. Of the values of an output: the order in which compare.h looks for them. */
#define DIAGNOSIS_LIST(D)                                                                                              \
  /* It did not come to a result. */                                                                                   \
  D(NOT_IMPLEMENTED, not_implemented, "the line TODO(...) is still there, or the exercise has no lines")               \
  D(REFUSED, refused, "the lines use something that no exercise needs, and that a grader does not compile")            \
  D(DOES_NOT_COMPILE, does_not_compile, "the compiler reports an error")                                               \
  D(CRASHED, crashed, "the program crashed, or used too much memory, output or processor time")                        \
  D(EXITED, exited, "the program ended itself: it called exit(), or a call failed")                                    \
  D(TIMEOUT, timeout, "it had not finished when the time was over")                                                    \
  D(DISTURBED, disturbed, "something other than results came through the channel for results")                         \
  /* The inspector, the emulator or CUDA reports it. */                                                                \
  D(BARRIER, barrier, "not all threads of a block come to the same barrier")                                           \
  D(DEADLOCK, deadlock, "the threads of a block wait for each other")                                                  \
  D(WARP_MASK, warp_mask, "a warp operation names lanes that do not take part, or not the lane that calls it")         \
  D(DATA_RACE, data_race, "two threads access the same memory, one of them writes, and nothing orders them")           \
  D(OUT_OF_BOUNDS, out_of_bounds, "an access lies outside its array")                                                  \
  D(USE_AFTER_FREE, use_after_free, "memory is used that was freed")                                                   \
  D(UNINITIALISED_READ, uninitialised_read, "memory is read that nothing has written")                                 \
  D(MISALIGNED, misaligned, "a vector access at an address that is not a multiple of its size")                        \
  D(HOST_POINTER, host_pointer, "a kernel uses memory of the host")                                                    \
  D(DEVICE_POINTER, device_pointer, "host code uses memory of the device")                                             \
  D(NULL_POINTER, null_pointer, "a null pointer is used")                                                              \
  D(READ_ONLY_WRITE, read_only_write, "a kernel writes constant memory")                                               \
  D(MISSING_SYNC, missing_sync, "the host does not wait for a kernel or a copy")                                       \
  D(STREAM_RACE, stream_race, "two streams use the same memory, and nothing orders them")                              \
  D(WRONG_DEVICE, wrong_device, "a kernel uses memory of another GPU")                                                 \
  D(LAUNCH, launch, "a launch with a grid, a block or shared memory that no GPU accepts")                              \
  D(ENDLESS, endless, "a kernel does not come to an end")                                                              \
  D(ILLEGAL_ADDRESS, illegal_address, "an access to an address that belongs to no array")                              \
  D(ASSERTION, assertion, "an assert() in a kernel failed")                                                            \
  D(CUDA_ERROR, cuda_error, "another error of CUDA")                                                                   \
  /* Two runs disagree, or more was written than the outputs. */                                                       \
  D(NOT_REPEATED, not_repeated, "a second run on the same inputs gives other results")                                 \
  D(THREAD_ORDER, thread_order, "right with the threads in one order, and wrong in the other")                         \
  D(STREAM_ORDER, stream_order, "wrong in an order of kernels and copies that streams and events permit")              \
  D(INPUT_CHANGED, input_changed, "an input was written")                                                              \
  D(GPU_DIFFERS, gpu_differs, "right in the emulator, and wrong on the GPU")                                           \
  /* Values of an output. */                                                                                           \
  D(REFERENCE_NAN, reference_nan, "NaN is expected, which is the reference's mistake")                                 \
  D(NEVER_WRITTEN, never_written, "elements were never written")                                                       \
  D(READ_BEFORE_WRITTEN, read_before_written, "elements were computed from what the output held before")               \
  D(NAN, nan, "elements are NaN")                                                                                      \
  D(INFINITE, infinite, "elements are infinite")                                                                       \
  D(ZERO, zero, "all wrong elements are zero")                                                                         \
  D(ONE_VALUE, one_value, "all wrong elements have one value")                                                         \
  D(SIGN, sign, "the sign is the opposite")                                                                            \
  D(FACTOR, factor, "all wrong elements are off by one factor")                                                        \
  D(OFFSET, offset, "all wrong elements are off by one constant term")                                                 \
  D(AFFINE, affine, "a * x + b where x is expected")                                                                   \
  D(FUNCTION, function, "a function of what is expected: its square, its logarithm")                                   \
  D(LINE_FACTOR, line_factor, "each row or column has a factor, or a term, of its own")                                \
  D(TRANSPOSED, transposed, "rows and columns are exchanged, in the output or within its tiles")                       \
  D(SHIFTED, shifted, "elements hold the value of a neighbour")                                                        \
  D(PERMUTED, permuted, "whole rows or columns hold the values of others")                                             \
  D(REPEATED, repeated, "a number stands twice where each must stand once")                                            \
  D(REORDERED, reordered, "the right numbers in another order")                                                        \
  D(MOVED, moved, "element i holds what belongs into k i, i / k, or the first of k neighbours")                        \
  D(GATHERED, gathered, "of each k rows or columns the first holds the sum of all")                                    \
  D(BYTES, bytes, "the bytes of a number are in a wrong order, or taken for signed ones")                              \
  D(WRONG_ZEROS, wrong_zeros, "zeros where there should be none, and none where there should be")                      \
  D(ROUNDING, rounding, "the errors are small: rounding beyond the tolerance")                                         \
  D(WRONG_VALUES, wrong_values, "elements are wrong, and nothing is recognised in them")                               \
  /* What they would be right for: the formula, the sum, the inputs. */                                                \
  D(COPY, copy, "the output is a copy of an input")                                                                    \
  D(WRONG_TERM, wrong_term, "a term of the formula is missing, superfluous, or has a wrong factor")                    \
  D(WRONG_PRODUCT, wrong_product, "a factor that depends on an input is missing or superfluous")                       \
  D(FOLLOWS, follows, "right by its formula, from another output that is wrong")                                       \
  D(ADDED_PART, added_part, "what is added to an input, or to a product of inputs, has a wrong factor")                \
  D(SUM_TERMS, sum_terms, "a sum lacks terms, or has one twice")                                                       \
  D(SUM_OPERAND, sum_operand, "a sum reads an input with wrong indices, or leaves it out")                             \
  D(INPUT_INDEX, input_index, "rows or columns of an input stand for others, or do not count")                         \
  D(INPUT_TRANSPOSED, input_transposed, "an input is read with rows and columns exchanged, or its tiles")              \
  D(INPUT_VALUE, input_value, "an input is left out, or has a factor or a function applied")                           \
  D(NOT_LOOKED_UP, not_looked_up, "an index is used where the one that it looks up belongs")                           \
  D(OTHER_ARGUMENT, other_argument, "right for another argument of the call")                                          \
  D(BACKWARDS, backwards, "right if a size ran backwards: a comparison of indices the wrong way round")                \
  /* Where the wrong elements are. */                                                                                  \
  D(EVERYWHERE, everywhere, "every element is wrong")                                                                  \
  D(LAST_TILE, last_tile, "the rows, columns or elements beyond the last whole tile")                                  \
  D(AFTER_FIRST, after_first, "all but the first rows, columns or elements")                                           \
  D(EVERY_NTH, every_nth, "every n-th element")                                                                        \
  D(ALL_BUT_EVERY_NTH, all_but_every_nth, "all but every n-th element")                                                \
  D(SCATTERED, scattered, "the wrong elements form no pattern")                                                        \
  D(STEP, step, "an output that is written in steps is wrong from one of them on")                                     \
  D(OTHERS_RIGHT, others_right, "another output is right, so that what both depend on is not the cause")               \
  /* Right results at too high a cost, or from elsewhere. */                                                           \
  D(LIMIT, limit, "right, but a count is above the limit of the exercise")                                             \
  D(NOT_ON_GPU, not_on_gpu, "no kernel wrote the results, or only a part of them")                                     \
  D(ONE_WARP, one_warp, "one warp did all the work")                                                                   \
  D(ONE_BLOCK, one_block, "one block did all the work")                                                                \
  D(FEW_THREADS, few_threads, "a small part of the threads did all the work")                                          \
  D(GRID_TOO_LARGE, grid_too_large, "far more threads were launched than have something to do")
/* clang-format on */

typedef enum Diagnosis {
  DIAGNOSIS_NONE,
#define DIAGNOSIS_ENUMERATOR(upper, lower, says) DIAGNOSIS_##upper,
  DIAGNOSIS_LIST(DIAGNOSIS_ENUMERATOR)
#undef DIAGNOSIS_ENUMERATOR
      DIAGNOSIS_KINDS
} Diagnosis;

/* What one check found, in the order in which its message says it. */
enum { DIAGNOSES_MOST = 16, DIAGNOSES_TEXT = 512 };
typedef struct Diagnoses {
  int count;
  Diagnosis item[DIAGNOSES_MOST];
} Diagnoses;

typedef struct DiagnosisEntry {
  const char *name, *says;
} DiagnosisEntry;

/* "never_written", and the sentence about it. */
static inline DiagnosisEntry diagnosis_entry(Diagnosis diagnosis) {
  static const DiagnosisEntry entries[] = {{"none", "nothing is wrong"},
#define DIAGNOSIS_ENTRY(upper, lower, says) {#lower, says},
                                           DIAGNOSIS_LIST(DIAGNOSIS_ENTRY)
#undef DIAGNOSIS_ENTRY
  };
  return entries[diagnosis > DIAGNOSIS_NONE && diagnosis < DIAGNOSIS_KINDS ? diagnosis : DIAGNOSIS_NONE];
}

static inline const char *diagnosis_name(Diagnosis diagnosis) { return diagnosis_entry(diagnosis).name; }

/* By the first `length` characters of `name`; DIAGNOSIS_NONE: there is no such name. */
static inline Diagnosis diagnosis_named(const char *name, size_t length) {
  for (int d = DIAGNOSIS_NONE + 1; d < DIAGNOSIS_KINDS; d++) {
    const char *known = diagnosis_name((Diagnosis)d);
    if (strlen(known) == length && memcmp(known, name, length) == 0) return (Diagnosis)d;
  }
  return DIAGNOSIS_NONE;
}

static inline int diagnoses_has(const Diagnoses *list, Diagnosis diagnosis) {
  for (int i = 0; i < list->count; i++)
    if (list->item[i] == diagnosis) return 1;
  return 0;
}

/* Appends it, unless it is there already, or is DIAGNOSIS_NONE. */
static inline void diagnoses_add(Diagnoses *list, Diagnosis diagnosis) {
  if (diagnosis == DIAGNOSIS_NONE || diagnoses_has(list, diagnosis) || list->count == DIAGNOSES_MOST) return;
  list->item[list->count++] = diagnosis;
}

static inline void diagnoses_join(Diagnoses *list, const Diagnoses *more) {
  for (int i = 0; i < more->count; i++) diagnoses_add(list, more->item[i]);
}

/* The one to look at first. */
static inline Diagnosis diagnoses_first(const Diagnoses *list) {
  return list->count > 0 ? list->item[0] : DIAGNOSIS_NONE;
}

/* "never_written last_tile" */
static inline const char *diagnoses_text(const Diagnoses *list, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < list->count && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "", diagnosis_name(list->item[i]));
  return text;
}

/* The reverse, up to the end of the line. Names that are not known are left out: they are of a newer version. */
static inline void diagnoses_read(Diagnoses *list, const char *text) {
  list->count = 0;
  for (;;) {
    text += strspn(text, " ");
    const size_t length = strcspn(text, " \n");
    if (length == 0) return;
    diagnoses_add(list, diagnosis_named(text, length));
    text += length;
  }
}

#endif /* COMMON_DIAGNOSIS_H */
