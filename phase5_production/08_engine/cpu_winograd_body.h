/* cpu_winograd_body.h - the transforms of F(4x4,3x3) for vectors of channels; cpu_conv2d_body.h includes it.
 *
 * The lines are those of phase3_cnn/04_conv2d_winograd/winograd_transform.cuh (derived in its README.md), on a vector
 * of channels instead of a number.
 */
enum { WINOGRAD_SIDE = CPU_WINOGRAD_TILE + 2 };

/* v[i * step] = Bt d of one line */
SIMD_INLINE void cpu_winograd_input_line(V *v, const V *d, const int step) {
  const V even = d[4 * step] - 4 * d[2 * step], odd = d[3 * step] - 4 * d[1 * step];
  const V even_2 = d[4 * step] - d[2 * step], odd_2 = 2 * (d[3 * step] - d[1 * step]);
  const V first = 4 * d[0] - 5 * d[2 * step] + d[4 * step];
  const V last = 4 * d[1 * step] - 5 * d[3 * step] + d[5 * step];
  v[0] = first;
  v[1 * step] = even + odd;
  v[2 * step] = even - odd;
  v[3 * step] = even_2 + odd_2;
  v[4 * step] = even_2 - odd_2;
  v[5 * step] = last;
}

/* y[i * step] = At m of one line */
SIMD_INLINE void cpu_winograd_output_line(V *y, const V *m, const int step) {
  const V sum = m[1 * step] + m[2 * step], difference = m[1 * step] - m[2 * step];
  const V sum_2 = m[3 * step] + m[4 * step], difference_2 = m[3 * step] - m[4 * step];
  y[0] = m[0] + sum + sum_2;
  y[1 * step] = difference + 2 * difference_2;
  y[2 * step] = sum + 4 * sum_2;
  y[3 * step] = difference + 8 * difference_2 + m[5 * step];
}

/* A tile of x in one block of channels -> 36 points of v. */
static void cpu_winograd_input(const CpuWinogradTile *t) {
  for (int i = 0; i < CPU_BLOCK; i += CPU_LANES) {
    V d[WINOGRAD_SIDE * WINOGRAD_SIDE];
    if (t->rows >= WINOGRAD_SIDE && t->columns >= WINOGRAD_SIDE) {
#pragma GCC unroll 6
      for (int h = 0; h < WINOGRAD_SIDE; h++)
#pragma GCC unroll 6
        for (int w = 0; w < WINOGRAD_SIDE; w++)
          d[h * WINOGRAD_SIDE + w] = cpu_load(t->x + h * t->x_row + w * CPU_BLOCK + i);
    } else {
      for (int h = 0; h < WINOGRAD_SIDE; h++) /* beyond the array there is nothing that an output depends on */
        for (int w = 0; w < WINOGRAD_SIDE; w++)
          d[h * WINOGRAD_SIDE + w] =
              h < t->rows && w < t->columns ? cpu_load(t->x + h * t->x_row + w * CPU_BLOCK + i) : (V){0};
    }
#pragma GCC unroll 6
    for (int w = 0; w < WINOGRAD_SIDE; w++) cpu_winograd_input_line(d + w, d + w, WINOGRAD_SIDE);
#pragma GCC unroll 6
    for (int h = 0; h < WINOGRAD_SIDE; h++) cpu_winograd_input_line(d + h * WINOGRAD_SIDE, d + h * WINOGRAD_SIDE, 1);
#pragma GCC unroll 36
    for (int f = 0; f < WINOGRAD_SIDE * WINOGRAD_SIDE; f++) cpu_store(t->points + f * t->point + i, d[f]);
  }
}

/* 36 points of m -> a tile of y in one block of filters, with what follows the sum. */
static void cpu_winograd_output(const CpuWinogradTile *t) {
  const V least = (V){0} + t->least, most = (V){0} + t->most;
  for (int i = 0; i < CPU_BLOCK; i += CPU_LANES) {
    V m[WINOGRAD_SIDE * WINOGRAD_SIDE], y[CPU_WINOGRAD_TILE * CPU_WINOGRAD_TILE];
#pragma GCC unroll 36
    for (int f = 0; f < WINOGRAD_SIDE * WINOGRAD_SIDE; f++) m[f] = cpu_load(t->points + f * t->point + i);
#pragma GCC unroll 6
    for (int w = 0; w < WINOGRAD_SIDE; w++) cpu_winograd_output_line(m + w, m + w, WINOGRAD_SIDE);
#pragma GCC unroll 4
    for (int h = 0; h < CPU_WINOGRAD_TILE; h++)
      cpu_winograd_output_line(y + h * CPU_WINOGRAD_TILE, m + h * WINOGRAD_SIDE, 1);
    const V bias = cpu_load(t->bias + i);
#pragma GCC unroll 4
    for (int h = 0; h < CPU_WINOGRAD_TILE; h++)
#pragma GCC unroll 4
      for (int w = 0; w < CPU_WINOGRAD_TILE; w++) {
        if (h >= t->rows || w >= t->columns) continue;
        const size_t to = h * t->y_row + w * CPU_BLOCK + i;
        V sum = y[h * CPU_WINOGRAD_TILE + w] + bias;
        if (t->added) sum += cpu_load(t->added + to);
        cpu_store(t->y + to, CPU_CLIP(sum, least, most));
      }
  }
}
