// A tiled product whose threads use the tile before the others have filled it.
// mode: inspect
// expect: data race
// also: uninitialised read
// expect-text: s_a
#include <stdio.h>
#define TILE 16
#define N 32

__global__ void matmul(const float *a, const float *b, float *c) {
  __shared__ float s_a[TILE][TILE], s_b[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0;
  for (int tile = 0; tile < N; tile += TILE) {
    s_a[y][x] = a[row * N + tile + x];  // BUG
    s_b[y][x] = b[(tile + y) * N + column];
    for (int k = 0; k < TILE; k++) sum += s_a[y][k] * s_b[k][x];  // BUG-OTHER
    __syncthreads();
  }
  c[row * N + column] = sum;
}

int main(void) {
  static float a[N * N], c[N * N];
  float *da, *db, *dc;
  for (int i = 0; i < N * N; i++) a[i] = i % 7;
  cudaMalloc(&da, sizeof a);
  cudaMalloc(&db, sizeof a);
  cudaMalloc(&dc, sizeof c);
  cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
  cudaMemcpy(db, a, sizeof a, cudaMemcpyHostToDevice);
  matmul<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(da, db, dc);
  cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost);
  printf("%g\n", c[N * N - 1]);
  cudaFree(da);
  cudaFree(db);
  cudaFree(dc);
}
