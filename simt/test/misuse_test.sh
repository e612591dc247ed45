#!/usr/bin/env bash
# misuse_test.sh - collectives used wrongly are errors of the compiler, at the line of the caller, that say what to do; or
# faults of the launch that name it. Environment: SIMTCC, the driver.
set -uo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
case $simtcc in /*) ;; *) simtcc=$PWD/$simtcc ;; esac
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/misuse.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
. "$here/cache.sh"
unset SIMT_ORDER SIMT_STREAMS SIMT_THREADS SIMTCC_REWRITE
cd "$work" || exit 2
passed=0 failed=0

write_kernel() { # the kernel's statements: they are line 11 of k.cu
  cat >k.cu <<EOF2
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <mma.h>
#include <stdio.h>
namespace cg = cooperative_groups;
using namespace nvcuda;
__global__ void kernel(int *x, float *f) {
$1
}
int main() {
  int *x; float *f;
  cudaMalloc(&x, 4096); cudaMalloc(&f, 4096);
  kernel<<<1, 64>>>(x, f);
  cudaError_t error = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorName(error));
  return error != cudaSuccess;
}
EOF2
}

verdict() { # name, problem
  if [ -z "$2" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1: $2"
    head -n 8 err
  fi
}

refused() { # statements, text of the message
  local problem=
  write_kernel "$1"
  "$simtcc" -std=c++17 k.cu -o k >out 2>err && problem="it was compiled"
  grep -qF -- "$2" err || problem="no message says: $2"
  grep -q 'k.cu:11' err || problem="no message names k.cu:11"
  verdict "$1" "$problem"
}

faulty() { # statements, text of the report
  local problem=
  write_kernel "$1"
  "$simtcc" -std=c++17 k.cu -o k >out 2>err || problem="it was not compiled"
  [ -n "$problem" ] || ! timeout 60 ./k >out 2>err || problem="it ran without an error"
  grep -qF -- "$2" err || problem="${problem:-no report says: $2}"
  grep -q 'k.cu:11' err || problem="${problem:-no report names k.cu:11}"
  verdict "$1" "$problem"
}

# What Volta took away.
for call in '__shfl(3, 1)' '__shfl_up(1.0f, 1u)' '__shfl_down(1.0f, 1u)' '__shfl_xor(3, 1)' '__any(1)' '__all(1)' \
  '__ballot(1)'; do
  refused "x[0] = (int)$call;" "${call%%(*}_sync(0xffffffff, ...)"
done

# Groups.
refused 'auto t = cg::tiled_partition<64>(cg::this_thread_block()); x[0] = t.size();' \
  'use the thread_block and shared memory'
refused 'auto t = cg::tiled_partition<24>(cg::this_thread_block()); x[0] = t.size();' \
  'the size of a tile is a power of two'
refused 'x[0] = cg::reduce(cg::this_thread_block(), x[1], cg::plus<int>());' \
  'split the block with tiled_partition<32>(block) first'
refused 'x[0] = cg::inclusive_scan(cg::this_thread_block(), x[1]);' \
  'split the block with tiled_partition<32>(block) first'
refused 'auto t = cg::tiled_partition<4>(cg::coalesced_threads()); x[0] = t.size();' 'tiled_partition(group, size)'
faulty 'cg::tiled_partition(cg::this_thread_block(), 12).sync();' 'the size of a tile is 1, 2, 4, 8, 16 or 32'
faulty 'cg::this_grid().sync();' 'cudaLaunchCooperativeKernel()'

# Matrices.
refused 'wmma::fragment<wmma::accumulator, 16, 16, 4, float> c; x[0] = c.num_elements;' 'see the table at its top'
refused 'wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; wmma::load_matrix_sync(c, f, 16);' 'mem_row_major'
refused 'wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a; '\
'wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b; '\
'wmma::fragment<wmma::accumulator, 16, 16, 16, int> c; wmma::mma_sync(c, a, b, c);' \
  'D is float'

# Barriers and copies.
faulty '__shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, 32); '\
'__syncthreads(); (void)b.arrive(3);' \
  'misses only'
faulty '__pipeline_memcpy_async(f + threadIdx.x, f + 64, 12);' 'it copies 4, 8 or 16 bytes'
faulty '__pipeline_memcpy_async(f + 1, f + 64, 16);' 'must be multiples of 16'

# Masks.
faulty 'if (threadIdx.x != 3) x[threadIdx.x] = __shfl_sync(0x8, 1, 3);' 'which does not contain it'
faulty 'if (threadIdx.x % 32 == 3) __syncwarp(); else __syncthreads();' 'deadlock'

echo "$passed passed, $failed failed"
[ $failed = 0 ]
