/* conv2d_cost.cuh - how long a method takes at least: a model of one line, which chooses a method without measuring.
 *
 * The model is a roofline: a kernel takes as long as its products or its bytes, whichever takes longer, and each launch
 * takes a while. It leaves out caches, tiles that are half empty, and multiprocessors without work. The measured table
 * of README.md shows where it is wrong.
 */
#ifndef PHASE3_CNN_CONV2D_COST_CUH
#define PHASE3_CNN_CONV2D_COST_CUH

#include "common/check.h"
#include "common/error.h"

typedef struct Conv2dCost {
  double flops, bytes; /* a multiplication and an addition are two; bytes to and from memory */
  double rate;         /* of the GPU's multipliers that the kernel reaches on a large layer: 0.6 */
  int launches;
} Conv2dCost;

/* What a GPU can do at most. */
typedef struct Conv2dMachine {
  double flops, bytes, launch; /* per second, per second, seconds */
} Conv2dMachine;

/* An H200: 132 multiprocessors at 1.98 GHz. */
static const Conv2dMachine conv2d_duel_machine = {66.9e12, 4.2e12, 2e-6};

/* Seconds that the machine takes for the work of `cost`. */
static __host__ __device__ inline double conv2d_cost_seconds(Conv2dCost cost, Conv2dMachine machine) {
  double seconds = 0;
  // >>> exercise duel_cost: the time of a method by the roofline, from its products, its bytes and its launches
  // hint: products take flops / (rate * machine.flops) seconds, bytes take bytes / machine.bytes
  // hint: a GPU computes and moves bytes at the same time, so the larger of the two counts; launches come on top
  // hint: seconds = fmax(flops / (rate * machine.flops), bytes / machine.bytes) + launches * machine.launch, of cost
  seconds = fmax(cost.flops / (cost.rate * machine.flops), cost.bytes / machine.bytes) + cost.launches * machine.launch;
  // <<< exercise
  return seconds;
}

/* The model for many methods at once: us (n) from GFLOP (n), MB (n) and per cent of the multipliers' rate (n); method i
 * has i % 4 launches. What the exercise's check runs. */
static inline void conv2d_duel_costs_cpu(float *us, const float *gflop, const float *mb, const float *percent, int n) {
  for (int i = 0; i < n; i++) {
    double products = gflop[i] * 1e9 / (percent[i] * 0.01 * 50e12), moved = mb[i] * 1e6 / 2e12;
    if (products < moved) products = moved;
    us[i] = (float)(1e6 * products + 3 * (i % 4));
  }
}

static __global__ void conv2d_duel_costs_kernel(float *us, const float *gflop, const float *mb, const float *percent,
                                                int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Conv2dMachine machine = {50e12, 2e12, 3e-6};
  const Conv2dCost cost = {gflop[i] * 1e9, mb[i] * 1e6, percent[i] * 0.01, i % 4};
  us[i] = (float)(1e6 * conv2d_cost_seconds(cost, machine));
}

static inline void conv2d_duel_costs(float *us, const float *gflop, const float *mb, const float *percent, int n) {
  conv2d_duel_costs_kernel<<<(n + 255) / 256, 256>>>(us, gflop, mb, percent, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV2D_COST_CUH */
