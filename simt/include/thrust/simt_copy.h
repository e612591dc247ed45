/* thrust/simt_copy.h - copies within and between host and device. -*- c++ -*- */
#ifndef SIMT_THRUST_COPY_RANGE
#define SIMT_THRUST_COPY_RANGE

#include "thrust/device_ptr.h"

namespace thrust {
namespace details {

/* *out++ for each element: any kind of iterator of the host. */
template <class In, class Out>
Out copy_here(In first, In last, Out out) {
  for (; first != last; ++first, (void)++out) *out = *first;
  return out;
}

template <class P, class In, class Out>
Out copy_there(const P &policy, In first, In last, Out out, Site site) {
  size_t count = length(first, last);
  each(
      policy, "thrust::copy", site, count, [](size_t i, auto from, auto to) { to[i] = from[i]; }, first, out);
  return out + (ptrdiff_t)count;
}

/* The host's memory for n elements, which it does not construct. */
template <class T>
using HostScratch = Scratch<T, HostPolicy>;

template <class In, class Out>
Out copy_to_host(In first, In last, Out out, Site site) {
  typedef value_of<In> T;
  size_t count = length(first, last);
  if (count == 0) return out;
  if constexpr (!std::is_pointer_v<Raw<In>>) {
    Scratch<T, DevicePolicy> computed(device, count, "thrust::copy", site);
    copy_there(device, first, last, device_ptr<T>(computed.get()), site);
    return copy_to_host(device_ptr<T>(computed.get()), device_ptr<T>(computed.get() + count), out, site);
  } else if constexpr (std::is_same_v<Out, T *>) {
    check(cudaMemcpy(out, raw(first), count * sizeof(T), cudaMemcpyDeviceToHost, site.file, site.line), "thrust::copy");
    return out + count;
  } else {
    HostScratch<T> copy(HostPolicy(), count, "thrust::copy", site);
    copy_to_host(first, last, copy.get(), site);
    return copy_here(copy.get(), copy.get() + count, out);
  }
}

template <class In, class Out>
Out copy_to_device(In first, In last, Out out, Site site) {
  typedef std::remove_cv_t<value_of<std::conditional_t<std::is_pointer_v<Raw<Out>>, Raw<Out>, In>>> T;
  size_t count = length(first, last);
  if (count == 0) return out;
  if constexpr (!std::is_pointer_v<Raw<Out>>) {
    Scratch<T, DevicePolicy> copy(device, count, "thrust::copy", site);
    device_ptr<T> begin(copy.get());
    copy_to_device(first, last, begin, site);
    return copy_there(device, begin, begin + (ptrdiff_t)count, out, site);
  } else if constexpr (std::is_same_v<In, T *> || std::is_same_v<In, const T *>) {
    check(cudaMemcpy(raw(out), first, count * sizeof(T), cudaMemcpyHostToDevice, site.file, site.line), "thrust::copy");
    return out + (ptrdiff_t)count;
  } else {
    HostScratch<T> copy(HostPolicy(), count, "thrust::copy", site);
    for (T *to = copy.get(); first != last; ++first) new (to++) T(*first);
    return copy_to_device((const T *)copy.get(), (const T *)copy.get() + count, out, site);
  }
}

/* From where the one range is to where the other is. */
template <class In, class Out>
Out copy_range(In first, In last, Out out, Site site) {
  typedef Systems<In> From;
  typedef Systems<Out> To;
  if (simt_in_kernel()) return copy_here(first, last, out);
  if constexpr (!From::device) check_host_pointers<HostPolicy>("thrust::copy", site, first);
  if constexpr (!To::device) check_host_pointers<HostPolicy>("thrust::copy", site, out);
  if constexpr (From::device && To::host)
    return copy_to_host(first, last, out, site);
  else if constexpr (From::host && To::device)
    return copy_to_device(first, last, out, site);
  else if constexpr (From::host || To::host)
    return copy_here(first, last, out);
  else
    return copy_there(device, first, last, out, site);
}

}  // namespace details
}  // namespace thrust

#endif /* SIMT_THRUST_COPY_RANGE */
