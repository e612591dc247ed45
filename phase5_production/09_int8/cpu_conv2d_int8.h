/* cpu_conv2d_int8.h - convolution, linear layer, pooling and sums of int8 numbers on the CPU: the bits of int8.cuh's
 * loops.
 *
 *     CpuInt8 *conv;
 *     if (cpu_int8_conv2d_open(&conv, shape, x_shape, y_shape, w, end, &err) != 0) ...
 *     cpu_int8_run(conv, y, x, added, n, threads);
 *     cpu_int8_close(conv);
 *
 * Activations lie in blocks of 16 channels with a border (cpu_layout.h), an element of cpu_int8_bytes() bytes each. A
 * kernel is that of cpu_conv2d_body.h with another product: 32 bits of x are multiplied with 32 bits of each filter,
 * and the products are added to a sum of 32 bits, exactly.
 *
 *     kernels      an element of x is                     the product                    of a vector
 *     avx512vnni   1 byte: x of 0 to 255 (uint8), or      vpdpbusd: 4 of u8 times s8     64 products
 *                  x + 128 of -128 to 127 (int8)
 *     avxvnni      the same                               the same                       32
 *     avx512       2 bytes                                vpmaddwd: 2 of s16 times s16   32
 *     avx2         2 bytes                                the same                       16
 *     portable     2 bytes                                the same, or shifts            8
 *
 * vpdpbusd needs unsigned first factors, as what comes out of a ReLU is. Of int8, x + 128 are: sum of (x + 128)
 * w = sum of x w + 128 sum of w, and the second term is a constant of each filter, which the bias takes off again.
 * The border then holds 128, the number zero.
 *
 * AVX2 has vpmaddubsw, too, which multiplies 32 pairs u8 times s8 at once. But it adds two products in 16 bits, and
 * saturates: 255 * 127 * 2 = 64770 is more than 32767. It is exact only if weights have 7 bits (255 * 64 * 2 = 32640),
 * or, of int8, if it multiplies |w| with x * sign(w) (128 * 127 * 2 = 32512), which takes an instruction more, and x
 * = -128 must not occur. With the instruction that adds its pairs and the sum itself that is four per 32 products;
 * vpmaddwd takes two per 16, has no such conditions, and its sums, 2 * 255 * 128 at most, are exact. So x has 16
 * bits there.
 */
#ifndef PHASE5_PRODUCTION_CPU_CONV2D_INT8_H
#define PHASE5_PRODUCTION_CPU_CONV2D_INT8_H

#include "phase5_production/08_engine/cpu_conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As cpu_kernels(): NULL is the best that this processor has. What was packed and planned before is of no use after. */
const char *cpu_int8_kernels(const char *name);

/* Of an element of an activation: 1 or 2. An array has cpu_count(shape) of them per image. */
size_t cpu_int8_bytes(void);

/* How a sum of products becomes y; Int8End of int8.cuh, on the host and without what is given to each call. */
typedef struct CpuInt8End {
  const float *scale;        /* (K) */
  const int32_t *bias;       /* (K), or NULL */
  float middle, added_scale; /* as Int8End */
  bool relu;
  bool to_float;                               /* y is float32, in blocks of cpu_layout.h */
  bool x_positive, y_positive, added_positive; /* these arrays are uint8 */
} CpuInt8End;

typedef struct CpuInt8 CpuInt8;

/* shape: its n does not matter. w (K,R,S,C/groups). x's border is at least the padding. -1 with a sentence. */
int cpu_int8_conv2d_open(CpuInt8 **conv, Conv2dShape shape, CpuShape x, CpuShape y, const int8_t *w, CpuInt8End end,
                         Error *err);

/* y (N,K) from all numbers of x: w (K,H,W,C), y's shape is cpu_shape(K, 1, 1, 0). */
int cpu_int8_linear_open(CpuInt8 **linear, CpuShape x, int k, const int8_t *w, CpuInt8End end, Error *err);

/* added: NULL or an array of y's shape. */
void cpu_int8_run(const CpuInt8 *conv, void *y, const void *x, const void *added, int n, int threads);
void cpu_int8_close(CpuInt8 *conv);
size_t cpu_int8_weight_bytes(const CpuInt8 *conv);

/* `positive` is said of each array: it is uint8, not int8.
 * x (N,C,H,W) float32 -> y, as int8_quantize() rounds; and back. */
void cpu_int8_quantize(void *y, const float *x, float scale, bool positive, CpuShape shape, int n, int threads);
void cpu_int8_dequantize(float *x, const void *y, float scale, bool positive, CpuShape shape, int n, int threads);

/* The same from float32 in blocks; the borders of the two may differ. */
void cpu_int8_quantize_blocks(void *y, CpuShape y_shape, const float *x, CpuShape x_shape, float scale, bool positive,
                              int n, int threads);

/* Numbers of 8 bits with the channels last, (N,H,W,pitch), as the GPU has them; pitch >= C. */
void cpu_int8_pack(void *y, const int8_t *x, bool positive, CpuShape shape, int pitch, int n, int threads);
void cpu_int8_unpack(int8_t *x, const void *y, bool positive, CpuShape shape, int pitch, int n, int threads);

/* The largest of each window, which has x's kind; or the mean: the exact sum times `unit` / elements, scale_x /
 * scale_y, rounded. */
typedef struct CpuInt8Pool {
  CpuPool2d window;
  float unit;
  bool x_positive, y_positive; /* y: of a mean */
} CpuInt8Pool;

void cpu_int8_pool2d_run(void *y, CpuShape y_shape, const void *x, CpuShape x_shape, CpuInt8Pool pool, int n,
                         int threads);

/* y = round(a scale_a + b scale_b), all of one shape; relu: or 0. */
typedef struct CpuInt8Add {
  float scale_a, scale_b;
  bool relu, a_positive, b_positive, y_positive;
} CpuInt8Add;

void cpu_int8_add_run(void *y, const void *a, const void *b, CpuShape shape, CpuInt8Add add, int n, int threads);

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_CPU_CONV2D_INT8_H */
