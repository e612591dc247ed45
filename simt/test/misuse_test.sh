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

# A kernel of its own, on a line of its own, in FILE.cu; what must be said about it is in FILE.texts.
add() { # FILE, statements, text
  if [ ! -f "$1.cu" ]; then
    for header in cooperative_groups.h cooperative_groups/reduce.h cooperative_groups/scan.h cuda/barrier \
      cuda_pipeline.h mma.h stdio.h stdlib.h; do
      echo "#include <$header>"
    done >"$1.cu"
    echo 'namespace cg = cooperative_groups;' >>"$1.cu"
    echo 'using namespace nvcuda;' >>"$1.cu"
  fi
  printf '%s\n' "$3" >>"$1.texts"
  echo "__global__ void kernel_$(wc -l <"$1.texts")(int *x, float *f) { $2 }" >>"$1.cu"
}
removed() { add removed "$@"; } # the compiler sees these only when it sees nothing else
refused() { add refused "$@"; }
faulty() { add faulty "$@"; }

verdict() { # FILE.cu:LINE, problem, messages
  if [ -z "$2" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $(sed -n "${1#*:}p" "${1%:*}"): $2"
    head -n 8 "$3"
  fi
}

# Each kernel of FILE.cu has its message, at its line.
judge_refused() { # FILE
  local number=10 text problem
  ! "$simtcc" -std=c++17 -c "$1.cu" -o "$1.o" >out 2>err || verdict "$1.cu:1" 'it was compiled' err
  while read -r text; do
    number=$((number + 1)) problem=
    grep -F "$1.cu:$number:" err >found
    grep -qF -- "$text" found || problem="no message at its line, $number, says: $text"
    verdict "$1.cu:$number" "$problem" found
  done <"$1.texts"
}

# Each kernel of faulty.cu has its report, which names its line.
judge_faulty() {
  local number=10 text problem kernels k
  kernels=$(wc -l <faulty.texts)
  {
    echo 'int main(int argc, char **argv) {'
    echo '  int *x; float *f;'
    echo '  cudaMalloc(&x, 4096); cudaMalloc(&f, 4096);'
    for k in $(seq "$kernels"); do echo "  if (atoi(argv[1]) == $k) kernel_$k<<<1, 64>>>(x, f);"; done
    echo '  return cudaDeviceSynchronize() != cudaSuccess;'
    echo '}'
  } >>faulty.cu
  "$simtcc" -std=c++17 faulty.cu -o faulty >out 2>err || verdict faulty.cu:1 'it was not compiled' err
  while read -r text; do
    number=$((number + 1)) problem=
    if timeout 60 ./faulty $((number - 10)) >out 2>err </dev/null; then problem='it ran without an error'; fi
    grep -qF -- "$text" err || problem=${problem:-no report says: $text}
    grep -q "faulty.cu:$number[^0-9]" err || problem=${problem:-no report names its line, $number}
    verdict "faulty.cu:$number" "$problem" err
  done <faulty.texts
}

# What Volta took away.
for call in '__shfl(3, 1)' '__shfl_up(1.0f, 1u)' '__shfl_down(1.0f, 1u)' '__shfl_xor(3, 1)' '__any(1)' '__all(1)' \
  '__ballot(1)'; do
  removed "x[0] = (int)$call;" "${call%%(*}_sync(0xffffffff, ...)"
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

judge_refused removed
judge_refused refused
judge_faulty
echo "$passed passed, $failed failed"
[ $failed = 0 ]
