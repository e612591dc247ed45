// Which function a call means, only a compiler knows: overloads, members, constructors, operators, templates. nvcc 13
// refuses and accepts the same lines.
#include <assert.h>
#include <stdio.h>
#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <new>
#include <string>
#include <utility>
#include <vector>

__device__ int over(int x) { return x; }
int over(float x) { return (int)x; }

struct Host {
  float x;
  Host(float x) : x(x) {}
  Host operator+(Host o) const { return Host(x + o.x); }
  operator int() const { return (int)x; }
  float get() const { return x; }
  static int make(int x) { return x; }
};
Host operator*(Host a, Host b) { return Host(a.x * b.x); }

struct Device {
  float x;
  __device__ Device(float x) : x(x) {}
  __device__ Device operator+(Device o) const { return Device(x + o.x); }
  __device__ float get() const { return x; }
  __device__ float later() const;
  static __device__ int make(int x) { return x; }
  float host_get() const { return x; }
};
__device__ float Device::later() const { return x; }
__device__ Device operator*(Device a, Device b) { return Device(a.x * b.x); }

struct HoldsHost {  // REFUSED: Host::Host() is a function of the host, and HoldsHost::HoldsHost() runs on the GPU
  Host h{1.0f};
};
struct HoldsDevice {
  Device d;
  int count = 3;
  __device__ HoldsDevice() : d(1.0f) {}
};
struct Defaulted {
  int x = 4;
  Defaulted() = default;
  Defaulted(const Defaulted &) = default;
};
struct Square {
  int operator()(int x) const { return x * x; }
};
struct DeviceSquare {
  __device__ int operator()(int x) const { return x * x; }
};
template <class T>
struct Box {
  T x;
  Box(T x) : x(x) {}
};
template <class T>
struct DeviceBox {
  T x;
  __device__ DeviceBox(T x) : x(x) {}
  __device__ T get();
};
template <class T>
__device__ T DeviceBox<T>::get() {
  return x;
}
struct Virtual {
  __device__ virtual int get(int x) { return x; }
};
namespace space {
int square(int x) { return x * x; }
__device__ int cube(int x) { return x * x * x; }
}  // namespace space
template <class F>
__device__ int apply(F f, int x) {
  return f(x);  // REFUSED: Square::operator()() is a function of the host, and apply() runs on the GPU
}
constexpr int twice(int x) { return 2 * x; }
__host__ __device__ constexpr int thrice(int x) { return 3 * x; }
__device__ int redeclared(int x);
int redeclared(int x) { return x; }
__device__ int defined_later(int x);
typedef int (*Function)(int);
auto file_lambda = [](int x) { return x; };

__global__ void k(int *p, float *f, Function *table) {
  p[0] = over(1);
  p[0] = over(1.5f);       // REFUSED: over() is a function of the host, and k() runs on the GPU: write __device__
  Host a(1.0f);            // REFUSED: Host::Host() is a function of the host
  Host b = a;
  b = a + b;               // REFUSED: Host::operator+() is a function of the host
  b = a * b;               // REFUSED: operator*() is a function of the host
  b = a * (a + b);         // REFUSED: Host::operator+() is a function // REFUSED: : operator*() is a function
  p[0] = a;                // REFUSED: Host::operator int() is a function of the host
  f[0] = a.get();          // REFUSED: Host::get() is a function of the host
  p[0] = Host::make(1);    // REFUSED: Host::make() is a function of the host
  Device c(1.0f), d = c;
  d = c + d * c;
  f[0] = d.get() + d.later() + d.x + Device::make(1);
  f[0] = d.host_get();     // REFUSED: Device::host_get() is a function of the host
  HoldsHost holds_host;
  HoldsDevice holds;
  Defaulted e, g = e;
  p[0] = apply(Square(), 1) + apply(DeviceSquare(), 2) + g.x + holds.count;
  Box<int> box(p[0]);      // REFUSED: Box<int>::Box() is a function of the host
  DeviceBox<int> device_box(p[0]);
  Virtual v;
  p[0] = device_box.get() + v.get(1) + table[1](2);
  p[0] = space::square(1); // REFUSED: space::square() is a function of the host
  p[0] = space::cube(1) + redeclared(1) + defined_later(1) + thrice(p[1]);
  p[0] = file_lambda(p[1]); // REFUSED: this lambda() is a function of the host
  auto l = [=](int x) { return x + p[1]; };
  p[0] = l(1) + apply(l, 2);
  std::array<int, 4> array;
  array[p[1]] = 1;         // REFUSED: std::array<int, 4>::operator[]() is a function of the C++ library
  p[0] = std::plus<int>()(p[1], p[2]);  // REFUSED: std::plus<int>::operator()() is a function of the C++ library
  std::vector<int> vector; // REFUSED: std::vector<int>::vector() is a function of the C++ library
  for (int i : {1, 2, 3}) p[i] = i;
  p[0] = std::forward<int>(p[1]) + __popc(p[2]) + __builtin_popcount(p[3]) + alignof(Host);
  int *q = new int[3];
  Device *placed = new (q) Device(1.0f);
  delete[] q;
  assert(p[0]);
  printf("%f\n", placed->get());
  throw 1;                 // REFUSED: k() runs on the GPU, which has no exceptions
}  // REFUSED: std::vector<int>::~vector() is a function of the C++ library
__device__ int defined_later(int x) { return x; }

int main() {
  Host host(1.0f);
  std::vector<int> sorted{twice(2), 1, over(1.0f), host + host};
  std::sort(sorted.begin(), sorted.end());
  k<<<1, 1>>>(nullptr, nullptr, nullptr);
}
