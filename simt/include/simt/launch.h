/* launch.h - what the rewriter turns `kernel<<<grid, block, shared, stream>>>(arguments)` into. C++17.
 *
 *     ::simt::kern("kernel", "file.cu", 12, [&](auto... a) { kernel(a...); }).cfg(grid, block, shared,
 * stream).run(arguments);
 *
 * A generic lambda and not `&kernel`: overloads, deduced template arguments and default arguments work as in CUDA, and
 * the compiler sees the kernel's body inside the loop over the threads.
 */
#ifndef SIMT_LAUNCH_H
#define SIMT_LAUNCH_H

#include <string.h>

#include <new>
#include <type_traits>
#include <utility>

#include "simt/core.h"

namespace simt {

/* A literal 0, NULL or nullptr among the arguments: a null pointer where the kernel takes a pointer, else the number.
 * */
struct literal_zero {
  constexpr operator int() const { return 0; }
  template <class T>
  constexpr operator T *() const {
    return nullptr;
  }
};

/* Object pointers are checked before the launch; pointers to functions are not. */
template <class T>
const void *checked_pointer(const T &argument) {
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (!std::is_function_v<std::remove_pointer_t<T>>) return (const void *)argument;
  }
  return nullptr;
}

/* The inspector's kernels must be called, not inlined: the compiler may keep the constant threadIdx in a register. It
 * does not look at the launcher, and decides itself which thread goes on when one has returned. */
#ifdef SIMT_INSPECT
#define SIMT_KERNEL_CALL __attribute__((noinline, no_sanitize_thread, no_sanitize_undefined, no_sanitize_coverage))
#define SIMT_THREAD_LOOP __attribute__((no_sanitize_thread, no_sanitize_undefined, no_sanitize_coverage))
enum { threads_in_a_row = 0 };
#else
#define SIMT_KERNEL_CALL inline __attribute__((always_inline))
#define SIMT_THREAD_LOOP
enum { threads_in_a_row = 1 };
#endif

/* A tuple, without library code between the loop and the kernel. */
template <size_t index, class T>
struct Argument {
  T value;
};
template <class Indices, class... T>
struct ArgumentList;
template <size_t... index, class... T>
struct ArgumentList<std::index_sequence<index...>, T...> : Argument<index, T>... {
  template <class Function>
  SIMT_KERNEL_CALL void give(const Function &function) const {
    function(static_cast<const Argument<index, T> &>(*this).value...);
  }
};

template <class Function, class... Arguments>
struct Call {
  Function function;
  ArgumentList<std::index_sequence_for<Arguments...>, Arguments...> arguments;

  /* Where each argument begins, and the end: the same in every copy. */
  template <size_t... index>
  const size_t *places(std::index_sequence<index...>) const {
    static const size_t place[] = {
        (size_t)((const char *)&static_cast<const Argument<index, Arguments> &>(arguments).value -
                 (const char *)this)...,
        sizeof *this};
    return place;
  }

  /* Starts threads of the block, one after the other, until none is left to start. A thread that waits keeps this
   * stack, and another loop, on another stack, goes on with the threads that it finds. */
  SIMT_THREAD_LOOP static void run_threads(const void *self) {
    const Call &call = *(const Call *)self;
    while (simt_threads.next < simt_threads.count) {
      int order = simt_threads.next++, rank = simt_threads.rank[order];
      uint3 &index = const_cast<uint3 &>(threadIdx);
      const uint3 &next = simt_threads.index[order];
      index.x = next.x; /* one by one: a copy of the structure is a call where the inspector looks on (simtcc) */
      index.y = next.y;
      index.z = next.z;
      simt_threads.running = rank;
      simt_threads.state[rank] = SIMT_RUNNING;
      call.arguments.give(call.function);
      simt_threads.state[rank] = SIMT_DONE;
      simt_threads.finished++;
      if (!threads_in_a_row) return;
      if (simt_threads.waiting) simt_thread_returned(rank);
    }
  }
};

/* Of a kernel with __cluster_dims__(x, y, z); x is 0 for one without. */
struct ClusterDims {
  unsigned x = 0, y = 1, z = 1;
};
struct ClusterEntry {
  template <class Kernel>
  ClusterEntry(Kernel *kernel, ClusterDims blocks) {
    simt_register_cluster((const void *)kernel, blocks.x, blocks.y, blocks.z);
  }
};

template <class Function>
struct Launch {
  Function function;
  SimtKernel kernel;

  Launch &in(ClusterDims blocks) {
    kernel.cluster = {blocks.x, blocks.y, blocks.z};
    return *this;
  }

  Launch &cfg(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    kernel.grid = {grid.x, grid.y, grid.z};
    kernel.block = {block.x, block.y, block.z};
    kernel.shared_bytes = shared_bytes;
    kernel.stream = stream;
    return *this;
  }

  template <class... Arguments>
  cudaError_t run(Arguments... arguments) {
    using This = Call<Function, Arguments...>;
    __asm__ volatile("" : : "r"(simt_above_shared)); /* so that it is linked, and first */
    const void *pointers[] = {checked_pointer(arguments)..., nullptr};
    const This call{function, {{arguments}...}};
    kernel.run_threads = This::run_threads;
    kernel.arguments = &call;
    kernel.arguments_size = sizeof call;
    kernel.pointers = pointers;
    kernel.argument_count = (int)sizeof...(Arguments);
#ifdef SIMT_INSPECT
    kernel.places = call.places(std::index_sequence_for<Arguments...>{});
#endif
    return simt_launch(&kernel);
  }
};

template <class Function>
Launch<Function> kern(const char *name, const char *file, int line, Function function) {
  return {function, SimtKernel{name, file, line, {}, {}, 0, nullptr, 0, nullptr, nullptr, 0, nullptr, 0}};
}

/* cudaLaunchKernel() and its kin: a function pointer, and the addresses of the arguments. */
template <class... Parameters, size_t... I>
cudaError_t launch_pointer(void (*function)(Parameters...), const char *name, dim3 grid, dim3 block, void **arguments,
                           size_t shared_bytes, cudaStream_t stream, int cooperative, const char *file, int line,
                           std::index_sequence<I...>) {
  (void)arguments; /* a kernel without parameters */
  auto launch = kern(name, file, line, [function](Parameters... a) { function(a...); });
  launch.cfg(grid, block, shared_bytes, stream);
  launch.kernel.cooperative = cooperative;
  return launch.run(*(std::remove_cv_t<std::remove_reference_t<Parameters>> *)arguments[I]...);
}

template <class... Parameters>
cudaError_t launch_pointer(void (*function)(Parameters...), const char *name, dim3 grid, dim3 block, void **arguments,
                           size_t shared_bytes, cudaStream_t stream, int cooperative, const char *file, int line) {
  return launch_pointer(function, name, grid, block, arguments, shared_bytes, stream, cooperative, file, line,
                        std::index_sequence_for<Parameters...>{});
}

/* `extern __shared__ T name[];` at file scope. */
template <class T>
struct dynamic_shared {
  operator T *() const { return (T *)simt_dynamic_shared(); }
};

}  // namespace simt

#endif /* SIMT_LAUNCH_H */
