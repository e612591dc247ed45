/* thrust/simt_run.h - where Thrust's algorithms run: execution policies, and how work is launched. -*- c++ -*-
 *
 * This is not NVIDIA's Thrust, but a stand-in with the same names. An algorithm is a plain loop. On the host it runs as
 * such. On the device it runs in kernels on the policy's stream, as our CUB does: a CUDA thread for each element where
 * the elements are independent (each()), and one thread for all of them where they are not (compute()). In a kernel
 * every policy means the calling thread. Results are those of Thrust; speed and memory traffic are not.
 */
#ifndef SIMT_THRUST_RUN
#define SIMT_THRUST_RUN

#include <new>

#include "cub/util_device.cuh"
#include "thrust/system_error.h"
#include "thrust/version.h"

namespace thrust {

struct host_system_tag {};
struct device_system_tag {};
struct any_system_tag {};

namespace details {

/* Where the program calls; not two parameters as elsewhere, for a 0 would do for a file's name. */
struct Site {
  const char *file;
  int line;
};
#define SIMT_THRUST_SITE ::thrust::details::Site site = {__builtin_FILE(), __builtin_LINE()}

/* ---- iterators ---- */

/* Where an iterator's elements are: iterators of ours say so, and those of others are the host's. */
template <class Iterator, class = void>
struct SystemOf {
  typedef host_system_tag type;
};
template <class Iterator>
struct SystemOf<Iterator, std::void_t<typename Iterator::simt_system>> {
  typedef typename Iterator::simt_system type;
};

template <class... Iterator>
struct Systems {
  static constexpr bool device = (std::is_same_v<typename SystemOf<Iterator>::type, device_system_tag> || ...);
  static constexpr bool host = (std::is_same_v<typename SystemOf<Iterator>::type, host_system_tag> || ...);
  typedef std::conditional_t<device, device_system_tag, std::conditional_t<host, host_system_tag, any_system_tag>> type;
};

template <class Iterator, class = void>
struct HasRaw : std::false_type {};
template <class Iterator>
struct HasRaw<Iterator, std::void_t<decltype(std::declval<const Iterator &>().simt_raw())>> : std::true_type {};

/* The iterator as a kernel takes it: plain pointers instead of device_ptr, also inside of other iterators. */
template <class Iterator>
auto raw(const Iterator &iterator) {
  if constexpr (HasRaw<Iterator>::value)
    return iterator.simt_raw();
  else
    return iterator;
}
template <class Iterator>
using Raw = decltype(raw(std::declval<const Iterator &>()));

template <class Iterator>
using value_of = typename std::iterator_traits<Iterator>::value_type;
template <class Iterator>
using reference_of = decltype(*std::declval<Iterator &>());

template <class Iterator>
constexpr bool is_random_access =
    std::is_base_of_v<std::random_access_iterator_tag, typename std::iterator_traits<Iterator>::iterator_category>;

template <class In>
size_t length(In first, In last) {
  return (size_t)std::distance(first, last);
}

/* ---- execution policies ---- */

template <class Derived>
struct Policy {
  const Derived &me() const { return static_cast<const Derived &>(*this); }
};

struct HostPolicy : Policy<HostPolicy> { /* thrust::host */
  static constexpr bool on_device = false;
};
struct SequentialPolicy : Policy<SequentialPolicy> { /* thrust::seq */
  static constexpr bool on_device = false;
};
/* thrust::device, thrust::cuda::par. There is hardly any temporary storage: an allocator for it is not asked. */
struct DevicePolicy : Policy<DevicePolicy> {
  static constexpr bool on_device = true;
  cudaStream_t stream = nullptr;
  bool waits = true;
  constexpr DevicePolicy(cudaStream_t stream = nullptr, bool waits = true) : stream(stream), waits(waits) {}
  constexpr DevicePolicy on(cudaStream_t other) const { return {other, waits}; }
  template <class Allocator>
  constexpr DevicePolicy operator()(Allocator &&) const {
    return *this;
  }
};

/* That of a call without one. */
template <class... Iterator>
constexpr auto policy_for() {
  typedef Systems<Iterator...> In;
  static_assert(!(In::device && In::host),
                "simt: Thrust: one range is in host memory and the other in device memory; copy one of them first, or "
                "name a policy such as thrust::device for raw device pointers");
  if constexpr (In::host)
    return HostPolicy();
  else
    return DevicePolicy();
}

/* ---- work ---- */

template <class P, class... Iterator>
constexpr void check_policy() {
  static_assert(!(std::is_same_v<P, HostPolicy> && Systems<Iterator...>::device),
                "simt: Thrust: thrust::host cannot reach the elements of a device_vector; use thrust::device");
}

template <class P>
bool runs_here() {
  return !P::on_device || simt_in_kernel();
}

/* Pointers alone do not say what they point to. A real Thrust would read device memory on the host, and crash. */
template <class Iterator>
void check_host_pointer(const char *name, Site site, const Iterator &iterator) {
  if constexpr (std::is_pointer_v<Iterator>) {
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, (const void *)iterator) != cudaSuccess ||
        attributes.type != cudaMemoryTypeDevice)
      return;
    throw system_error(cudaErrorIllegalAddress, cuda_category(),
                       std::string(site.file) + ":" + std::to_string(site.line) + ": " + name +
                           " runs on the host, for it is given plain pointers and no policy, but one of them is to "
                           "device memory: pass thrust::device first, or wrap them by thrust::device_pointer_cast()");
  }
}
template <class P, class... Iterator>
void check_host_pointers(const char *name, Site site, const Iterator &...iterators) {
  if (!P::on_device && !simt_in_kernel()) (check_host_pointer(name, site, iterators), ...);
}

inline void finish(const DevicePolicy &policy, const char *name) {
  if (policy.waits) check(cudaStreamSynchronize(policy.stream), name);
}

/* work(i, iterators...) for each i < count, in any order. On the host one copy of `work` does it all. */
template <class P, class Work, class... Iterator>
void each(const P &policy, const char *name, Site site, size_t count, Work work, Iterator... iterators) {
  check_policy<P, Iterator...>();
  if (count == 0) return;
  if (runs_here<P>()) {
    check_host_pointers<P>(name, site, iterators...);
    for (size_t i = 0; i < count; i++) work(i, raw(iterators)...);
  } else if constexpr (P::on_device) {
    check(simt::kern(name, site.file, site.line,
                     [=](size_t n, auto... at) {
                       size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
                       if (i >= n) return;
                       Work mine = work;
                       mine(i, at...);
                     })
              .cfg(dim3((unsigned)((count + 255) / 256)), dim3(256), 0, policy.stream)
              .run(count, raw(iterators)...),
          name);
    finish(policy, name);
  }
}

/* Memory of the policy's system for a moment. */
template <class T, class P>
class Scratch {
 public:
  Scratch(const P &, size_t count, const char *name, Site site) : here_(runs_here<P>()), data_(nullptr) {
    if (here_)
      data_ = (T *)::operator new(count * sizeof(T));
    else
      check(cudaMalloc((void **)&data_, count * sizeof(T), site.file, site.line), name);
  }
  ~Scratch() {
    if (here_)
      ::operator delete(data_);
    else
      cudaFree(data_);
  }
  Scratch(const Scratch &) = delete;
  T *get() const { return data_; }

 private:
  bool here_;
  T *data_;
};

/* work(iterators...) in one thread; gives its result to the host. */
template <class Result, class P, class Work, class... Iterator>
Result compute(const P &policy, const char *name, Site site, Work work, Iterator... iterators) {
  check_policy<P, Iterator...>();
  if (runs_here<P>()) {
    check_host_pointers<P>(name, site, iterators...);
    return work(raw(iterators)...);
  }
  if constexpr (P::on_device) {
    Scratch<Result, P> result(policy, 1, name, site);
    check(cub::details::submit(
              name, policy.stream, site.file, site.line,
              [=](Result *to, auto... at) {
                Work mine = work;
                new (to) Result(mine(at...));
              },
              result.get(), raw(iterators)...),
          name);
    alignas(Result) unsigned char bytes[sizeof(Result)];
    check(cudaMemcpyAsync(bytes, result.get(), sizeof bytes, cudaMemcpyDeviceToHost, policy.stream), name);
    check(cudaStreamSynchronize(policy.stream), name);
    return *(Result *)(void *)bytes;
  }
  __builtin_unreachable();
}

/* value(i) as if it were element i of an array. */
template <class Function>
struct Indexed {
  mutable Function value;
  decltype(auto) operator[](size_t i) const { return value(i); }
};
template <class Function>
Indexed<Function> indexed(Function value) {
  return {value};
}

/* op(initial, the fold of in[0 .. count)) */
template <class T, class In, class Op>
T fold(In in, size_t count, T initial, Op op) {
  if (count == 0) return initial;
  return op(initial, cub::details::fold<T>(in, count, op));
}

}  // namespace details

template <class Iterator>
using iterator_system = details::SystemOf<Iterator>;
template <class Iterator>
using iterator_system_t = typename details::SystemOf<Iterator>::type;
template <class Iterator>
using iterator_traits = std::iterator_traits<Iterator>;
template <class Iterator>
using iterator_value_t = typename std::iterator_traits<Iterator>::value_type;
template <class Iterator>
struct iterator_value {
  typedef iterator_value_t<Iterator> type;
};
template <class Iterator>
struct iterator_difference {
  typedef typename std::iterator_traits<Iterator>::difference_type type;
};
template <class Iterator>
struct iterator_reference {
  typedef details::reference_of<Iterator> type;
};

static constexpr details::HostPolicy host{};
static constexpr details::SequentialPolicy seq{};
static constexpr details::DevicePolicy device{};

namespace system {
namespace cuda {
static constexpr details::DevicePolicy par{};
static constexpr details::DevicePolicy par_nosync{nullptr, false};
}  // namespace cuda
}  // namespace system
namespace cuda = system::cuda;

}  // namespace thrust

#endif /* SIMT_THRUST_RUN */
