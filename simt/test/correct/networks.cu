// The kernels of a neural network at ragged sizes: full of guards, shared rows and reused tiles.
#include "check.h"

#define ALL 0xffffffffu

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(ALL, value, step));
  return value;
}

// Softmax of a row by a block: the maximum and the sum go through the same shared array.
__global__ void softmax_rows(const float *x, float *y, int columns) {
  __shared__ float s[32];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32;
  x += blockIdx.x * columns;
  y += blockIdx.x * columns;
  float max = -INFINITY, sum = 0;
  for (int i = t; i < columns; i += blockDim.x) max = fmaxf(max, x[i]);
  max = warp_max(max);
  if (lane == 0) s[warp] = max;
  __syncthreads();
  max = warp_max(lane < warps ? s[lane] : -INFINITY);
  __syncthreads();
  for (int i = t; i < columns; i += blockDim.x) sum += expf(x[i] - max);
  sum = warp_sum(sum);
  if (lane == 0) s[warp] = sum;
  __syncthreads();
  sum = warp_sum(lane < warps ? s[lane] : 0);
  for (int i = t; i < columns; i += blockDim.x) y[i] = expf(x[i] - max) / sum;
}

// Layer normalisation, a warp for each row; the last block's idle warps leave before any shuffle.
__global__ void layer_norm(const float *x, float *y, int rows, int columns) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += row * columns;
  y += row * columns;
  float mean = 0, variance = 0;
  for (int i = lane; i < columns; i += 32) mean += x[i];
  mean = warp_sum(mean) / columns;
  for (int i = lane; i < columns; i += 32) variance += (x[i] - mean) * (x[i] - mean);
  variance = warp_sum(variance) / columns;
  for (int i = lane; i < columns; i += 32) y[i] = (x[i] - mean) * rsqrtf(variance + 1e-5f);
}

// Convolution of a tile with its halo; the halo is loaded by a loop with uneven turns and zeros outside the image.
__global__ void convolve(const float *x, const float *w, float *y, int height, int width) {
  __shared__ float s[10][18];
  int x0 = blockIdx.x * 16 - 1, y0 = blockIdx.y * 8 - 1, t = threadIdx.y * 16 + threadIdx.x;
  for (int i = t; i < 180; i += 128) {
    int row = y0 + i / 18, column = x0 + i % 18;
    s[i / 18][i % 18] = row >= 0 && row < height && column >= 0 && column < width ? x[row * width + column] : 0;
  }
  __syncthreads();
  int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (row >= height || column >= width) return;
  float sum = 0;
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++) sum += w[r * 3 + c] * s[threadIdx.y + r][threadIdx.x + c];
  y[row * width + column] = sum;
}

// Gradient of a bias: each block sums some rows and adds its part to the total.
__global__ void bias_gradient(const float *dy, float *db, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) sum += dy[row * columns + column];
  atomicAdd(&db[column], sum);
}

// Max pooling and its gradient: the index of the winner, windows that do not overlap.
__global__ void max_pool(const float *x, float *y, int *winner, int height, int width) {
  int column = threadIdx.x, row = blockIdx.x, best = 2 * row * width + 2 * column;
  if (column >= width / 2 || row >= height / 2) return;
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 2; c++) {
      int i = (2 * row + r) * width + 2 * column + c;
      if (x[i] > x[best]) best = i;
    }
  y[row * (width / 2) + column] = x[best];
  winner[row * (width / 2) + column] = best;
}
__global__ void max_pool_gradient(const float *dy, const int *winner, float *dx, int n) {
  if (threadIdx.x < n) dx[winner[threadIdx.x]] += dy[threadIdx.x];
}

// Attention with a running maximum: the tile of keys is loaded anew each turn.
__global__ void attention(const float *q, const float *k, const float *v, float *out, int n) {
  __shared__ float s_k[16][9], s_v[16][9];
  int t = threadIdx.x, row = blockIdx.x * 16 + t;
  float own[8], sum[8] = {0}, max = -INFINITY, weight = 0;
  for (int d = 0; d < 8; d++) own[d] = row < n ? q[row * 8 + d] : 0;
  for (int first = 0; first < n; first += 16) {
    __syncthreads();
    for (int i = t; i < 128; i += 16) {
      int key = first + i / 8;
      s_k[i / 8][i % 8] = key < n ? k[key * 8 + i % 8] : 0;
      s_v[i / 8][i % 8] = key < n ? v[key * 8 + i % 8] : 0;
    }
    __syncthreads();
    for (int j = 0; j < 16 && first + j < n; j++) {
      float score = 0;
      for (int d = 0; d < 8; d++) score += own[d] * s_k[j][d];
      float larger = fmaxf(max, score), old = expf(max - larger), now = expf(score - larger);
      weight = weight * old + now;
      for (int d = 0; d < 8; d++) sum[d] = sum[d] * old + now * s_v[j][d];
      max = larger;
    }
  }
  if (row < n)
    for (int d = 0; d < 8; d++) out[row * 8 + d] = sum[d] / weight;
}

// SGD with momentum over all parameters, grid stride; the velocity starts at zero by cudaMemset.
__global__ void sgd(float *w, const float *dw, float *velocity, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    velocity[i] = 0.9f * velocity[i] + dw[i];
    w[i] -= 0.1f * velocity[i];
  }
}

static int near(float a, double b) { return fabs(a - b) <= 1e-4 * (1 + fabs(b)); }

int main(void) {
  enum { ROWS = 7, COLUMNS = 45, N = 37 };
  float x[ROWS * COLUMNS], y[ROWS * COLUMNS], w[9], q[N * 8], out[N * 8];
  int ok = 1;
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = sinf(i);
  for (int i = 0; i < 9; i++) w[i] = i - 4;
  for (int i = 0; i < N * 8; i++) q[i] = cosf(i);
  float *dx = to_device(x, ROWS * COLUMNS), *dy = raw_on_device<float>(ROWS * COLUMNS), *dw = to_device(w, 9);
  float *dq = to_device(q, N * 8), *dout = raw_on_device<float>(N * 8), *dzero = zeros_on_device<float>(ROWS * COLUMNS);
  int *dwinner = raw_on_device<int>(3 * 22);

  softmax_rows<<<ROWS, 64>>>(dx, dy, COLUMNS);
  fetch(y, dy, ROWS * COLUMNS);
  for (int row = 0; row < ROWS; row++) {
    double sum = 0;
    for (int i = 0; i < COLUMNS; i++) sum += exp(x[row * COLUMNS + i]);
    for (int i = 0; i < COLUMNS; i++) ok &= near(y[row * COLUMNS + i], exp(x[row * COLUMNS + i]) / sum);
  }
  check("softmax", ok);

  layer_norm<<<2, 128>>>(dx, dy, ROWS, COLUMNS);
  fetch(y, dy, ROWS * COLUMNS);
  ok = 1;
  for (int row = 0; row < ROWS; row++) {
    double sum = 0, squares = 0;
    for (int i = 0; i < COLUMNS; i++)
      sum += y[row * COLUMNS + i], squares += y[row * COLUMNS + i] * y[row * COLUMNS + i];
    ok &= near(sum, 0) && fabs(squares - COLUMNS) < 0.1;
  }
  check("layer normalisation", ok);

  convolve<<<dim3(3, 1), dim3(16, 8)>>>(dx, dw, dy, ROWS, COLUMNS);
  fetch(y, dy, ROWS * COLUMNS);
  ok = 1;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    double sum = 0;
    for (int k = 0; k < 9; k++) {
      int row = i / COLUMNS + k / 3 - 1, column = i % COLUMNS + k % 3 - 1;
      if (row >= 0 && row < ROWS && column >= 0 && column < COLUMNS) sum += w[k] * x[row * COLUMNS + column];
    }
    ok &= near(y[i], sum);
  }
  check("convolution of a tile with its halo", ok);

  bias_gradient<<<dim3(2, 3), 32>>>(dx, dzero, ROWS, COLUMNS);
  fetch(y, dzero, COLUMNS);
  ok = 1;
  for (int i = 0; i < COLUMNS; i++) {
    double sum = 0;
    for (int row = 0; row < ROWS; row++) sum += x[row * COLUMNS + i];
    ok &= near(y[i], sum);
  }
  check("gradient of a bias", ok);

  max_pool<<<3, 32>>>(dx, dy, dwinner, ROWS, COLUMNS / 2 * 2);
  TRY(cudaMemset(dzero, 0, ROWS * COLUMNS * sizeof(float)));
  max_pool_gradient<<<1, 64>>>(dy, dwinner, dzero, 22);
  fetch(y, dzero, ROWS * COLUMNS);
  int winners = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) winners += y[i] != 0;
  check("max pooling", winners == 22);

  attention<<<3, 16>>>(dq, dq, dq, dout, N);
  fetch(out, dout, N * 8);
  ok = 1;
  for (int i = 0; i < N; i++)
    for (int d = 0; d < 8; d++) {
      double sum = 0, weight = 0;
      for (int j = 0; j < N; j++) {
        double score = 0;
        for (int e = 0; e < 8; e++) score += q[i * 8 + e] * q[j * 8 + e];
        weight += exp(score);
        sum += exp(score) * q[j * 8 + d];
      }
      ok &= near(out[i * 8 + d], sum / weight);
    }
  check("attention", ok);

  TRY(cudaMemset(dzero, 0, ROWS * COLUMNS * sizeof(float)));
  for (int step = 0; step < 3; step++) sgd<<<2, 64>>>(dx, dx, dzero, ROWS * COLUMNS);
  fetch(y, dx, ROWS * COLUMNS);
  double value = x[5], velocity = 0;
  for (int step = 0; step < 3; step++) velocity = 0.9 * velocity + value, value -= 0.1 * velocity;
  check("SGD with momentum", near(y[5], value));

  void *all[] = {dx, dy, dw, dq, dout, dzero, dwinner};
  for (void *one : all) TRY(cudaFree(one));
  return finish();
}
