#pragma once
// All kernels compute C = alpha * A @ B + beta * C, row-major, M x K times K x N.
#include "kernels/1_naive.cuh"
#include "kernels/2_coalesced.cuh"
#include "kernels/3_shared.cuh"
#include "kernels/4_1D_blocktiling.cuh"
#include "kernels/5_2D_blocktiling.cuh"
#include "kernels/6_vectorized.cuh"
#include "kernels/7_warptiling.cuh"
