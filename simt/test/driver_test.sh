#!/usr/bin/env bash
# driver_test.sh - simtcc as nvcc's users call it; the programs of faults/ run, those of refuse/ are refused.
#
#     driver_test.sh [name...]      only the tests with these names (driver_test.sh --list)
#
# A line with `// REFUSED: text` must be refused with that text in the message, and no other line may be; one with two of
# them twice.
# Environment: SIMTCC, the driver.
set -uo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
case $simtcc in /*) ;; *) simtcc=$PWD/$simtcc ;; esac
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/driver.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
. "$here/cache.sh"
unset SIMT_ORDER SIMT_STREAMS SIMT_THREADS SIMTCC_REWRITE
passed=0 failed=0 problem=''

# In a test: each gives its output to $work/out and $work/err; the first failure is told.
fail() { [ -n "$problem" ] || problem=$1; }
ok() { "$@" >"$work/out" 2>"$work/err" || fail "failed: ${*/$simtcc/simtcc}: $(head -n 5 "$work/err")"; }
bad() { if "$@" >"$work/out" 2>"$work/err"; then fail "did not fail: ${*/$simtcc/simtcc}"; fi; }
says() { grep -qF -- "$2" "$work/$1" || fail "not in $1: $2; there is: $(head -n 8 "$work/$1")"; }
silent() { if grep -qF -- "$2" "$work/$1"; then fail "in $1: $2"; fi; }
quiet() { [ ! -s "$work/err" ] || fail "messages: $(head -n 5 "$work/err")"; }

# ---- programs ----

write_sources() {
  cat >kernel.cuh <<'EOF'
#pragma once
__device__ int square(int x) { return x * x; }  // not inline: belongs to each file that includes it
__device__ int calls;
__constant__ int offset = OFFSET;
template <class F, class... A>
void launch(F kernel, A... a) {
  kernel<<<1, 32>>>(a...);
}
EOF
  cat >first.cu <<'EOF'
#define OFFSET 1
#include "kernel.cuh"
__global__ void first(int *x) { calls = 1; x[threadIdx.x] = square(threadIdx.x) + offset; }
void run_first(int *x) { launch(first, x); }
EOF
  cat >second.cu <<'EOF'
#define OFFSET 100
#include "kernel.cuh"
__global__ void second(int *x) { x[threadIdx.x] += square(1) + offset + calls; }
void run_second(int *x) { launch(second, x); }
EOF
  cat >main.cpp <<'EOF'
#include <cuda_runtime.h>
extern "C" int half(int x);
void run_first(int *x);
void run_second(int *x);
int main() {
  int *x, h[32];
  if (cudaMalloc((void **)&x, sizeof h)) return 1;
  run_first(x);
  run_second(x);
  if (cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost)) return 2;
  for (int i = 0; i < 32; i++)
    if (h[i] != i * i + 1 + 1 + 100) return 3;
  return cudaFree(x) || half(4) != 2;
}
EOF
  cat >half.c <<'EOF'
#include <cuda_runtime_api.h>
int half(int x) { int *restrict p = &x; return *p / 2; }
EOF
  cat >one.cu <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#ifndef VALUE
#define VALUE 1
#endif
__global__ void k(int *x) { *x = VALUE; }
int main(int argc, char **argv) {
  int *x, h = 0;
  cudaMalloc(&x, sizeof h);
  k<<<1, 1>>>(x);
  cudaMemcpy(&h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  printf("value %d", h);
  for (int i = 1; i < argc; i++) printf(" %s", argv[i]);
  printf("\n");
  return argc > 1 ? atoi(argv[1]) : 0;
}
EOF
}

# For tests that build the runtime: a C compiler that does not optimise it, which is half of the time.
quick_cc() {
  printf '#!/bin/sh\n[ "$1" != --version ] || exec echo quick\nexec gcc "$@" -O0\n' >quick_cc
  chmod +x quick_cc
  export CC=$PWD/quick_cc
}

# Two at once build the runtime; neither sees the other's half of it.
test_cache_is_built_by_two_at_once() {
  local CC
  quick_cc
  mkdir -p cache
  (XDG_CACHE_HOME=$PWD/cache "$simtcc" one.cu -o one1 2>err1 || echo "$?" >failed1) &
  (XDG_CACHE_HOME=$PWD/cache "$simtcc" one.cu -o one2 2>err2 || echo "$?" >failed2) &
  wait
  if [ -f failed1 ] || [ -f failed2 ]; then fail "$(cat err1 err2)"; fi
  ok ./one1
  ok ./one2
  says out 'value 1'
  [ -z "$(find cache -name '.*.[0-9]*')" ] || fail "temporary files are left: $(find cache -name '.*')"
  ok env XDG_CACHE_HOME="$PWD/cache" "$simtcc" one.cu -o one3
  quiet
}

# What g++ has kept of the headers is of no use any more: nobody hears of it, and the next call keeps it anew.
test_cache_is_damaged() {
  local CC
  quick_cc
  if [ -d cache ]; then mv cache damaged; else mkdir damaged; fi # the one of the test above
  ok env XDG_CACHE_HOME="$PWD/damaged" "$simtcc" one.cu -o one1
  local header
  header=$(find damaged -name '*.gch')
  [ -f "$header" ] || fail "no header is kept: $(find damaged)"
  for bytes in 0 1000 5000000; do
    truncate -s $bytes "$header"
    ok env XDG_CACHE_HOME="$PWD/damaged" "$simtcc" one.cu -o one1
    quiet
    ok ./one1
    [ ! -f "$header" ] || fail "the header of $bytes bytes is still there"
    ok env XDG_CACHE_HOME="$PWD/damaged" "$simtcc" one.cu -o one1
    quiet
  done
  echo '__global__ void k(int *pch) { *pch = precompiled; }' >precompiled.cu
  bad env XDG_CACHE_HOME="$PWD/damaged" "$simtcc" -c precompiled.cu
  [ "$(grep -c 'not declared' "$work/err")" = 1 ] || fail "not one message: $(cat "$work/err")"
  rm -rf damaged
}

test_many_files() {
  ok "$simtcc" first.cu second.cu main.cpp half.c -o program
  ok ./program
  ok "$simtcc" -c first.cu -o f.o
  ok "$simtcc" -dc second.cu
  ok "$simtcc" -c main.cpp half.c
  for object in second.o main.o half.o; do [ -f $object ] || fail "-c did not make $object"; done
  ok "$simtcc" -lib second.o half.c -o libparts.a
  ok "$simtcc" f.o main.o -L. -lparts
  ok ./a.out
  mkdir -p objects
  ok "$simtcc" -c first.cu second.cu -odir objects
  ok "$simtcc" objects/first.o objects/second.o main.cpp half.o -o program2
  ok ./program2
  bad "$simtcc" -c first.cu second.cu -o both.o
  says err '-o with one file only'
}

# With -rdc=true device functions and variables may be defined in another file.
test_device_code_across_files() {
  cat >a.cu <<'EOF'
extern __device__ int shared_by_files;
__device__ int triple(int x);
__global__ void k(int *x) { *x = triple(shared_by_files); }
int main() {
  int *x, h;
  cudaMalloc(&x, 4);
  k<<<1, 1>>>(x);
  cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost);
  cudaFree(x);
  return h != 15;
}
EOF
  echo '__device__ int shared_by_files = 5; __device__ int triple(int x) { return 3 * x; }' >b.cu
  ok "$simtcc" -rdc=true a.cu b.cu -o program
  ok ./program
  ok "$simtcc" -dc a.cu b.cu
  ok "$simtcc" -dlink a.o b.o -o link.o
  ok "$simtcc" a.o b.o link.o -lcudadevrt -o program
  ok ./program
}

test_defines_and_standards() {
  ok "$simtcc" -DVALUE=7 one.cu -o one
  ok ./one
  says out 'value 7'
  ok "$simtcc" --define-macro VALUE=8 -U OTHER one.cu -o one
  ok ./one
  says out 'value 8'
  mkdir -p headers
  printf '#define VALUE 9\ntemplate <class T> __global__ void unused(T *p) { unused<<<1, 1>>>(p); }\n' |
    sed 's/ unused<<<.*>>>(p);//' >headers/value.h
  ok "$simtcc" -include value.h -isystem headers one.cu -o one
  ok ./one
  says out 'value 9'
  for standard in c++11 c++14 c++17 c++20; do ok "$simtcc" -std=$standard one.cu -c -o one.o; done
  ok "$simtcc" --std c++14 -O3 one.cu -c -o one.o
  cp one.cu one.cc
  ok "$simtcc" -x cu one.cc -o one
  ok ./one
}

# What nvcc takes changes nothing, and one line says so.
test_options_of_nvcc() {
  ok "$simtcc" -arch=sm_90 -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=\"sm_90,compute_90\" \
    --gpu-architecture sm_75 -code=sm_90 -lineinfo --generate-line-info -G -g -maxrregcount=64 --maxrregcount 32 \
    -Xptxas -v --ptxas-options=-O3,-v -use_fast_math --use_fast_math --extended-lambda --expt-relaxed-constexpr \
    -Wno-deprecated-gpu-targets -diag-suppress 177,550 --diag-suppress=1 -cudart static -cudart=shared -t 4 --threads=0 \
    -Xcudafe --display_error_number -ccbin g++ -m64 -keep --ftz=true -prec-div=false --fmad=false -rdc=false -w -O2 \
    -default-stream per-thread --resource-usage -Werror all-warnings -Xcompiler -Wall,-Wextra --compiler-options "-O1 -g" \
    -Xlinker --as-needed -Xcompiler -Wl,--no-undefined -lcudart -lcuda -lcudadevrt -lnvToolsExt --cudart shared \
    -forward-unknown-to-host-compiler -fno-exceptions -march=native --source-in-ptx -res-usage one.cu -o one
  [ "$(wc -l <"$work/err")" = 1 ] || fail "more than one line: $(cat "$work/err")"
  says err 'note: ignored, because kernels run on the CPU: -arch=sm_90'
  ok ./one
  bad "$simtcc" --no-such-option one.cu
  says err 'unknown option --no-such-option'
  bad "$simtcc" -ptx one.cu
  says err 'there is no GPU code here'
  bad "$simtcc" -shared one.cu
  says err 'shared library'
  bad "$simtcc" -o
  says err '-o needs a value'
  bad "$simtcc"
  says err 'no input file'
  bad "$simtcc" missing.cu
  says err 'cannot read missing.cu'
  bad "$simtcc" README.txt
  says err 'what kind of file is this'
  ok "$simtcc" --help
  says out 'usage: simtcc'
}

test_openmp_only_if_asked() {
  cat >omp.cu <<'EOF'
#include <omp.h>
int main() {
  int most = 0;
#pragma omp parallel num_threads(2)
#pragma omp critical
  most = omp_get_num_threads() > most ? omp_get_num_threads() : most;
  return most != 2;
}
EOF
  ok "$simtcc" -Xcompiler -fopenmp omp.cu -o omp
  ok ./omp
}

test_rewritten_text() {
  ok "$simtcc" -E one.cu
  says out '::simt::kern("k", "one.cu", 10,'
  silent out '__global__'
  ok "$simtcc" -E one.cu -o one.cpp
  ok g++ -std=gnu++17 -I"$(dirname "$simtcc")/include" -c one.cpp -o one.o
  ok "$simtcc" one.o -o one
  ok ./one
  printf '__global__ void unrolled(int *x) {\n#pragma unroll\n  for (int i = 0; i < 8; i++) x[i] = i;\n}\n' >unrolled.cu
  ok "$simtcc" -E unrolled.cu
  says out '#pragma GCC unroll 32'
  ok "$simtcc" -E --no-unroll unrolled.cu
  silent out '#pragma GCC unroll 32'
  printf '__global__ void nested(float *x) {\n' >nested.cu
  for i in 1 2 3; do printf '#pragma unroll\nfor (int i%d = 0; i%d < 32; i%d++)\n' $i $i $i; done >>nested.cu
  printf 'x[i1] += x[i2] * x[i3];\n}\n' >>nested.cu
  ok timeout 60 "$simtcc" -c nested.cu
  says err 'nested.cu:3: note: simt: #pragma unroll is ignored for this loop'
  says err '--no-unroll'
  ok "$simtcc" --no-unroll -c nested.cu
  quiet
}

test_dependencies() {
  ok "$simtcc" -MD -c first.cu -o first.o
  for wanted in '^first.o:.*first.cu' 'kernel.cuh'; do grep -q "$wanted" first.d || fail "first.d: $(cat first.d)"; done
  ok "$simtcc" -MMD -MP -MF deps.mk -MT target -c first.cu -o first.o
  for wanted in '^target:' '^kernel.cuh:'; do grep -q "$wanted" deps.mk || fail "deps.mk: $(cat deps.mk)"; done
  ok "$simtcc" -MM first.cu
  says out 'kernel.cuh'
  silent out 'cuda_runtime.h'
}

test_output_that_is_no_file() {
  [ "$(id -u)" = 0 ] && mknod -m 666 null c 1 3 2>/dev/null || ln -s /dev/null null
  ok "$simtcc" -c one.cu -o null
  bad "$simtcc" -c "$here/refuse/texture.cu" -o null
  [ -c null ] || fail "the device is gone"
}

test_run() {
  "$simtcc" --run one.cu -- 3 words >"$work/out" 2>"$work/err"
  [ $? = 3 ] || fail "the program's exit status is lost"
  says out 'value 1 3 words'
}

test_called_from_anywhere() {
  mkdir -p bin elsewhere
  ln -sf "$simtcc" bin/simtcc
  cd elsewhere && ok ../bin/simtcc ../one.cu -o one && ok ./one
  cd ..
}

# NVIDIA's folder on the command line does not hide simt's headers.
test_nvidia_headers_are_not_used() {
  mkdir -p nvidia/include
  for header in cuda_runtime.h cuda_runtime_api.h; do echo '#error "from NVIDIA"' >nvidia/include/$header; done
  ok "$simtcc" -Invidia/include -I nvidia/include one.cu -o one
  says err 'nvidia/include'
  ok env CPATH="$PWD/nvidia/include" "$simtcc" one.cu -o one
}

# Only the student's lines, with the reason; no templates, no headers of ours.
test_messages() {
  cat >wrong.cu <<'EOF'
#include <stdio.h>
__global__ void k(int *p, int n) { p[threadIdx.x] = n; }
template <class T> __global__ void t(T *p, T n) { p[0] = n; }
template <class T> __global__ void inside(T *p) { p->missing = 3; }
int main() {
  float *d;
  cudaMalloc(&d, 4);
  k<<<1, 64>>>(d, 3);
  k<<<1, 64>>>();
  t<<<1, 64>>>(d, 3);
  k<<<1, "x">>>(0, 3);
  inside<<<1, 1>>>(d);
  missing<<<1, 2>>>(d);
  cudaMemcpy(d, d);
  return undeclared;
}
EOF
  bad "$simtcc" -c wrong.cu
  says err "wrong.cu:8: error: cannot convert 'float*' to 'int*'"
  says err ' 8 |   k<<<1, 64>>>(d, 3);'
  grep -q "^wrong.cu:2: note:  *initializing argument 1 of 'void k(int\*, int)'" "$work/err" || fail "no note of line 2"
  says err "wrong.cu:9: error: too few arguments to function 'void k(int*, int)'"
  says err "wrong.cu:10: error: no matching function for call to 't(float*&, int&)'"
  says err "wrong.cu:11: error: invalid conversion from 'const char*' to 'unsigned int'"
  says err "wrong.cu:4: error: request for member 'missing' in '* p', which is of non-class type 'float'"
  says err 'wrong.cu:12:   required from here'
  says err "wrong.cu:13: error: 'missing' was not declared in this scope"
  says err "wrong.cu:14: error:"
  says err "wrong.cu:15: error: 'undeclared' was not declared in this scope"
  says err "wrong.cu:10: note:   deduced conflicting types"
  for word in simt:: launch.h /usr/include lambda '^~' std::; do silent err "$word"; done
  [ "$(grep -c error: "$work/err")" = 8 ] || fail "8 errors were expected: $(cat "$work/err")"
  bad "$simtcc" --verbose -c wrong.cu
  says err 'launch.h'
  printf '#include "not_there.h"\nint main() {}\n' >include.cu
  bad "$simtcc" include.cu
  says err 'include.cu:1:10: fatal error: not_there.h: No such file or directory'
  printf '#include <cstdio>\n#include <cusparse.h>\nint main() {}\n' >include.cpp
  bad "$simtcc" include.cpp
  says err 'include.cpp:2: error: simt: #include <cusparse.h>: cuSPARSE is not supported'
  printf '#error "stop"\n' >stop.cu
  bad "$simtcc" stop.cu
  says err 'stop.cu:1:2: error: #error "stop"'
}

test_files_that_are_none() {
  mkdir -p folder.cu
  bad "$simtcc" folder.cu
  says err 'error: folder.cu is a folder'
  bad "$simtcc" -c one.cu -o folder.cu
  says err '-o folder.cu is a folder: name a file in it, or give the folder with -odir'
  head -c 100 /bin/sh >binary.cu
  bad "$simtcc" binary.cu
  says err 'binary.cu is no source text'
  [ "$(wc -l <"$work/err")" = 1 ] || fail "more than one line: $(cat "$work/err")"
}

test_kernel_without_a_body() {
  cat >declared.cu <<'EOF'
__global__ void k(int *p, float x);
template <class T> __global__ void t(T *p);
int main() {
  k<<<1, 1>>>(0, 3);
  k<<<1, 2>>>(0, 4);
  t<int><<<1, 1>>>(0);
}
EOF
  bad "$simtcc" declared.cu
  says err 'declared.cu:4: error: simt: kernel k(int*, float) is declared but not defined'
  says err 'declared.cu:6: error: simt: kernel void t<int>(int*) is declared but not defined'
  silent err 'simt::Call'
  echo '__global__ void k(int *p, int x) {}' >defined.cu
  bad "$simtcc" declared.cu defined.cu
  says err 'are its parameters the same there?'
}

test_libraries() {
  cat >blas.cu <<'EOF'
#include <cublas_v2.h>
#include <curand.h>
int main() {
  cublasHandle_t handle;
  curandGenerator_t generator;
  return cublasCreate(&handle) || cublasDestroy(handle) ||
         curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT) || curandDestroyGenerator(generator);
}
EOF
  ok "$simtcc" blas.cu -lcublas -lcurand -o blas
  ok ./blas
  bad "$simtcc" blas.cu -o blas
  says err 'add -lcublas'
  cat >light.cu <<'EOF'
#include <cublasLt.h>
int main() {
  cublasLtHandle_t handle;
  return cublasLtCreate(&handle) || cublasLtDestroy(handle);
}
EOF
  ok "$simtcc" light.cu -lcublasLt -o light
  ok ./light
  bad "$simtcc" light.cu -o light
  says err 'cublasLtCreate: add -lcublasLt'
  bad "$simtcc" one.cu -lcusparse
  says err '-lcusparse: cuSPARSE is not supported'
  cat >layer.cu <<'EOF'
#include <cudnn.h>
int main() {
  cudnnHandle_t handle;
  return cudnnCreate(&handle) || cudnnDestroy(handle);
}
EOF
  ok "$simtcc" layer.cu -lcudnn -o layer
  ok ./layer
  bad "$simtcc" layer.cu -o layer
  says err 'cudnnCreate: add -lcudnn'
  printf '#include <cudnn.h>\nint main() { cudnnCreateRNNDescriptor(0); }\n' >recurrent.cu
  bad "$simtcc" recurrent.cu -lcudnn -o recurrent
  says err "cudnnCreateRNNDescriptor: the emulation's cuDNN has no recurrent networks"
  cat >fourier.cu <<'EOF'
#include <cufft.h>
int main() {
  cufftHandle plan;
  return cufftPlan1d(&plan, 6, CUFFT_C2C, 1) || cufftDestroy(plan);
}
EOF
  ok "$simtcc" fourier.cu -lcufft -o fourier
  ok ./fourier
  bad "$simtcc" fourier.cu -o fourier
  says err 'cufftPlan1d: add -lcufft'
  bad "$simtcc" one.cu -lcufftw
  says err '-lcufftw: this part of cuFFT is not supported'
  cat >fourier_xt.cu <<'EOF'
#include <cufftXt.h>
__device__ cufftComplex doubled(void *in, size_t i, void *, void *) { return ((cufftComplex *)in)[2 * i]; }
__device__ cufftCallbackLoadC load = doubled;
int main() {
  cudaLibXtDesc *several;
  size_t bytes;
  cufftXtMalloc(1, &several, CUFFT_XT_FORMAT_INPLACE);
  cufftXtSetCallback(1, (void **)&load, CUFFT_CB_LD_COMPLEX, NULL);
  cufftXtSetWorkAreaPolicy(1, CUFFT_WORKAREA_MINIMAL, &bytes);
  cufftSetPlanPropertyInt64(1, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, 1);
}
EOF
  bad "$simtcc" fourier_xt.cu -lcufft -o fourier_xt
  says err 'cufftXtMalloc: the emulation has no cuFFT for several GPUs'
  says err 'cufftXtSetCallback: the emulation has no cuFFT for several GPUs, no callbacks'
  says err 'cufftXtSetWorkAreaPolicy: the emulation has'
  says err 'cufftSetPlanPropertyInt64: plans of the emulation have no properties'
  cat >own.cu <<'EOF'
extern "C" int cuInitEverything(int);
void cudaOwnHelper(float *);
int main() {
  cudaOwnHelper(nullptr);
  return cuInitEverything(0);
}
EOF
  bad "$simtcc" own.cu -lcuda -lm
  local own
  for own in cuInitEverything cudaOwnHelper; do says err "error: $own() is declared, but none of the files given"; done
  silent err 'emulated GPU'
}

# With nvcc's option kernels may call what is constexpr, of the program and of the C++ library, and nothing else.
test_relaxed_constexpr() {
  cat >relaxed.cu <<'EOF'
#include <algorithm>
#include <array>
#include <limits>
constexpr int cube(int x) { return x * x * x; }
__global__ void k(int *p) {
  std::array<int, 4> a{};
  a[p[0]] = std::max(p[1], std::numeric_limits<int>::min()) + cube(p[2]);
#ifdef SWAP
  std::swap(p[0], p[1]);
#elif defined ROTATE
  std::rotate(p, p + 1, p + 3);
#endif
  p[3] = a[p[0]];
}
int main() { k<<<1, 1>>>(nullptr); }
EOF
  ok "$simtcc" --expt-relaxed-constexpr -c relaxed.cu
  quiet
  bad "$simtcc" --expt-relaxed-constexpr -DSWAP -c relaxed.cu
  says err 'relaxed.cu:9: error: simt: std::swap() is a function of the C++ library'
  bad "$simtcc" --expt-relaxed-constexpr -DROTATE -c relaxed.cu
  says err 'relaxed.cu:11: error: simt: std::_V2::rotate() is a function of the C++ library'
  ok "$simtcc" -std=c++20 --expt-relaxed-constexpr -DROTATE -c relaxed.cu
  bad "$simtcc" -c relaxed.cu
  says err 'relaxed.cu:7: error: simt: std::max() is a function of the C++ library'
  says err 'relaxed.cu:7: error: simt: std::numeric_limits<int>::min() is a function of the C++ library'
  says err 'relaxed.cu:7: error: simt: cube() is a function of the host'
  [ "$(grep -c error: "$work/err")" = 3 ] || fail "not three messages: $(cat "$work/err")"
}

# Sums over lanes that were right while a warp ran in step are wrong here; one line says so. What waits in between, polls a
# flag or keeps to itself is not meant.
test_lanes_in_step() {
  cat >step.cu <<'EOF'
__device__ void by_hand(volatile float *s, int t) {
  s[t] += s[t + 16];
  s[t] += s[t + 8];
  s[t] += s[t + 4];
}
__global__ void loop(float *out) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = out[threadIdx.x];
  for (int o = 16; o > 0; o /= 2)
    if (threadIdx.x < o) s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + o];
  out[threadIdx.x] = s[threadIdx.x];
}
EOF
  ok "$simtcc" -c step.cu
  says err 'step.cu:3: warning: simt: by_hand() relies on the lanes of a warp running in step: s is volatile'
  says err 'step.cu:10: warning: simt: loop() relies on the lanes'
  [ "$(grep -c warning: "$work/err")" = 2 ] || fail "not two warnings: $(cat "$work/err")"
  cat >waits.cu <<'EOF'
__global__ void waits(float *out, volatile int *flag, volatile float *mine, float *plain, int n) {
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  float v = s[t + 16];
  __syncwarp();
  s[t] += v;
  for (int o = 16; o > 0; o /= 2) {
    if (t < o) s[t] += s[t + o];
    __syncthreads();
  }
  s[t] += s[t + 8];
  __syncwarp();
  s[t] += s[t + 4];
  while (flag[0] == 0) __nanosleep(10);
  flag[t] = flag[t] + 1;
  flag[t] = 0;
  for (int i = t; i < n; i += 32) mine[i] = mine[i + n];
  for (int i = 0; i < n; i++) mine[t] = mine[t] * 2;
  plain[t] += plain[t + 16];
  plain[t] += plain[t + 8];
  out[t] = s[t];
}
EOF
  ok "$simtcc" -c waits.cu
  quiet
}

# Of __host__ __device__ functions nvcc only warns.
test_host_device_function_calls_host_function() {
  cat >both.cu <<'EOF'
struct H {
  int x;
  H(int x) : x(x) {}
};
__host__ __device__ int both(int x) { return H(x).x; }
__global__ void k(int *p) { *p = both(3); }
int main() { return both(0); }
EOF
  ok "$simtcc" -c both.cu
  says err 'both.cu:5: warning: simt: H::H() is a function of the host, and both() is __host__ __device__'
}

# The rewriter lets a __host__ __device__ function launch: the host may call it. A kernel that does is told so.
# As Bazel does it: -E, and g++ by way of check_calls. It refuses what simtcc refuses.
test_check_calls() {
  local rewriter folder source
  folder=$(cd "${simtcc%/*}" && pwd)
  bad "$simtcc" -c "$here/refuse/call_in_kernel.cu"
  grep -o ':[0-9]*: error: simt: .*' "$work/err" | sort >wanted
  for source in one.cu "$here/refuse/call_in_kernel.cu"; do
    ok "$simtcc" -E --verbose --functions=called.cu.cpp.functions "$source" -o called.cu.cpp
    rewriter=$(sed -n 's/^+ \([^ ]*\) .*--functions=.*/\1/p' "$work/err")
    "${CXX:-g++}" -std=gnu++17 -w -wrapper "$folder/check_calls,$rewriter" -c called.cu.cpp -o called.o 2>"$work/err"
    grep -o ':[0-9]*: error: simt: .*' "$work/err" | sort >found
    [ "$source" != one.cu ] || [ -f called.o ] || fail "refused: $(cat "$work/err")"
  done
  if [ ! -s wanted ] || ! cmp -s wanted found; then fail "$(diff wanted found)"; fi
}

test_launch_by_a_kernel_is_reported() {
  cat >nested.cu <<'EOF'
__global__ void child() {}
__host__ __device__ void both() { child<<<1, 1>>>(); }
__global__ void parent() { both(); }
int main(int argc, char **) {
  both();
  if (argc > 1) parent<<<1, 1>>>();
  return cudaDeviceSynchronize() != cudaSuccess;
}
EOF
  ok "$simtcc" nested.cu -o nested
  ok ./nested
  bad timeout 60 ./nested x
  says err '=== simt: a kernel launches child (dynamic parallelism)'
  says err 'nested.cu:2'
}

# A fault in a function of a header is at the header's line.
test_fault_in_a_header() {
  printf '#pragma once\n\n__device__ __noinline__ int set(int *x, int y) {\n  *x = y;\n  return y;\n}\n' >set.cuh
  cat >fault.cu <<'EOF'
#include "set.cuh"
__global__ void k(int *x) { set(x, 1); }
int main() {
  int *x = NULL;
  k<<<1, 1>>>(x);
  return cudaDeviceSynchronize() != cudaSuccess;
}
EOF
  ok "$simtcc" fault.cu -o fault
  bad ./fault
  says err 'set.cuh:4 (set'
}

test_address_sanitizer() {
  local CC
  quick_cc
  cat >asan.cu <<'EOF'
#include <stdlib.h>
__device__ __noinline__ void fill(int *a, int last) { for (int i = 0; i <= last; i++) a[i] = i; }
__global__ void k(int *x, int past, int last) { int a[4]; fill(a, last);
  __syncthreads();
  x[past] = threadIdx.x + a[1];
}
int main(int argc, char **) {
  int *x, *volatile h = (int *)malloc(4);
  cudaMalloc(&x, 4);
  k<<<2, 64>>>(x, argc == 3, argc < 4 ? 3 : 4);
  cudaMemcpy(h, x, 4, cudaMemcpyDeviceToHost);
  cudaFree(x);
  if (argc > 1) h[1] = 3;
  free(h);
}
EOF
  ok "$simtcc" --asan asan.cu -o asan
  ok ./asan
  bad ./asan x
  says err 'AddressSanitizer: heap-buffer-overflow'
  says err 'asan.cu:13'
  bad ./asan x y
  says err '=== simt: AddressSanitizer: heap-buffer-overflow, write of 4 bytes'
  says err 'thread (63,0,0)'
  says err 'asan.cu:5 (k(int*, int, int))'
  says err 'asan.cu:10 with <<<(2,1,1), (64,1,1)>>>'
  bad ./asan x y z # a caller's array, which --inspect does not see
  says err '=== simt: AddressSanitizer: stack-buffer-overflow, write of 4 bytes'
  says err 'asan.cu:2 (fill)'
}

# Plain pointers do not say where they point to: a real Thrust would crash.
test_pointers_given_to_thrust() {
  cat >thrust.cu <<'EOF'
#include <thrust/device_vector.h>
#include <thrust/sort.h>
int main(int argc, char **) {
  thrust::device_vector<int> d(10);
  int h[10] = {}, *p = thrust::raw_pointer_cast(d.data()), *m;
  cudaMallocManaged(&m, sizeof h);
  thrust::sort(m, m + 10);
  thrust::sort(h, h + 10);
  thrust::sort(thrust::device, p, p + 10);
  if (argc == 2) thrust::sort(p, p + 10);
  if (argc == 3) thrust::copy(p, p + 10, h);
  if (argc == 4) thrust::sort(thrust::device, h, h + 10);
  return 0;
}
EOF
  ok "$simtcc" thrust.cu -o program
  ok ./program
  quiet
  bad ./program 1
  says err 'thrust.cu:10: thrust::sort runs on the host'
  says err 'pass thrust::device first'
  bad ./program 1 2
  says err 'thrust.cu:11: thrust::copy runs on the host'
  bad ./program 1 2 3
  says err 'of kernel thrust::sort is 0x'
  says err 'launched at thrust.cu:12'
}

# ---- faults/ and refuse/ ----

refused() { # file.cu, its folder is the present one
  local text file line wanted=0 source=$1
  bad "$simtcc" -std=c++17 "$source" -o "$work/program"
  for file in "$source" "${source%.cu}.cuh"; do
    [ -f "$file" ] || continue
    while IFS=: read -r line text; do
      while [[ $text == *'// REFUSED: '* ]]; do
        wanted=$((wanted + 1))
        text=${text#*// REFUSED: }
        grep -F -- "$file:$line: error: simt: " "$work/err" | grep -qF -- "${text%% // REFUSED: *}" ||
          fail "$file:$line is not refused with: ${text%% // REFUSED: *}; but: $(grep -F "$file:$line:" "$work/err")"
      done
    done < <(grep -n '// REFUSED: ' "$file")
  done
  [ $wanted -gt 0 ] || fail "no line with // REFUSED:"
  [ "$(grep -c 'error: ' "$work/err")" = $wanted ] || fail "$wanted errors were expected: $(cat "$work/err")"
  silent err 'No such file'
  [ ! -e "$work/program" ] || fail "it was compiled all the same"
}

test_source() { # folder/file.cu
  local source=${1##*/} flags
  cd "$here/${1%/*}" || exit 2
  if grep -qs '// REFUSED: ' "$source" "${source%.cu}.cuh"; then
    refused "$source"
  else
    flags=$(sed -n 's,^// flags: ,,p' "$source")
    # shellcheck disable=SC2086 # a list
    ok "$simtcc" -std=c++17 $flags "$source" -o "$work/program"
    for order in forward reverse; do
      SIMT_ORDER=$order timeout 60 "$work/program" >"$work/out" 2>"$work/err" ||
        fail "order $order: status $?: $(head -n 5 "$work/out" "$work/err")"
    done
  fi
  rm -f "$work/program"
  cd "$work/files" || exit 2
}

tests=()
for name in $(declare -F | sed -n 's/^declare -f test_//p'); do [ "$name" = source ] || tests+=("$name"); done
for file in "$here"/faults/*.cu "$here"/refuse/*.cu; do tests+=("${file#"$here"/}"); done
if [ "${1:-}" = --list ]; then
  printf '%s\n' "${tests[@]}"
  exit
fi
[ $# -gt 0 ] && tests=("$@")
mkdir "$work/files" && cd "$work/files" && write_sources || exit 2
for name in "${tests[@]}"; do
  problem=''
  if [[ $name == */* ]]; then test_source "$name"; else "test_$name"; fi
  if [ -z "$problem" ]; then
    printf 'ok    %s\n' "$name"
    passed=$((passed + 1))
  else
    printf 'FAIL  %s\n      %s\n' "$name" "${problem//$'\n'/$'\n'      | }"
    failed=$((failed + 1))
  fi
done
echo "driver_test: $passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
