// Operations of the host that Thrust would run on the GPU, and a vector made in a kernel. nvcc refuses the same, at lines
// of its own headers.
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

struct HostTwice {
  int operator()(int x) const { return 2 * x; }  // REFUSED: HostTwice::operator()() is a function of the host, and a Thrust
};
struct HostOnly {  // it meets elements of the host alone
  int operator()(int x) const { return 3 * x; }
};
struct HostAdd {
  int operator()(int a, int b) const { return a + b; }  // REFUSED: write __host__ __device__ before it
};
struct DeviceLess {
  __device__ bool operator()(int a, int b) const { return a < b; }
};
template <class T>
struct Add {
  __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
struct HostDefault {
  int x;
  HostDefault() : x(0) {}
};

__global__ void k(thrust::device_vector<int> v, int *out) {
  out[0] = v[0];
  thrust::device_vector<int> other;  // REFUSED: k() runs on the GPU: give it the plain pointer thrust::raw_pointer_cast(
}  // REFUSED: Thrust's vectors are made on the host

int main() {
  thrust::host_vector<int> h(10);
  thrust::device_vector<int> d(10);
  thrust::device_vector<HostDefault> constructed(10);
  thrust::transform(h.begin(), h.end(), h.begin(), HostOnly());
  thrust::transform(d.begin(), d.end(), d.begin(), HostTwice());
  thrust::transform(d.begin(), d.end(), d.begin(), [] __device__(int x) { return x; });
  thrust::transform(d.begin(), d.end(), d.begin(), [](int x) { return x; });  // REFUSED: write [=] __device__ (..)
  int sum = thrust::reduce(d.begin(), d.end(), 0, HostAdd()) + thrust::reduce(d.begin(), d.end(), 0, Add<int>());
  thrust::sort(thrust::device, d.begin(), d.end(), DeviceLess());
  thrust::sort(h.begin(), h.end(), [](int a, int b) { return a < b; });
  return sum;
}
