// Thrust's ranges in two memories at once. nvcc compiles some of this; the program then crashes.
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <memory>

int main() {
  thrust::host_vector<int> h(10);
  thrust::device_vector<int> d(10), e = h;
  thrust::transform(d.begin(), d.end(), h.begin(), thrust::negate<int>());  // REFUSED: copy one of them first
  thrust::sort(thrust::host, d.begin(), d.end());  // REFUSED: thrust::host cannot reach the elements of a device_vector
  thrust::make_zip_iterator(d.begin(), h.begin());  // REFUSED: a zip_iterator of ranges in host memory and in device
  thrust::device_vector<int, std::allocator<int>> own(10);  // REFUSED: an allocator of one's own is not supported
  thrust::copy(h.begin(), h.end(), d.begin());
}
