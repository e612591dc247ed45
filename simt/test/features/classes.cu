// Classes in kernels: virtual functions, operators, recursion, constant expressions, objects made by new and in place.
#include <new>

#include "expect.h"

struct Shape {
  __device__ Shape(int *alive) : alive(alive) { atomicAdd(alive, 1); }
  __device__ virtual ~Shape() { atomicSub(alive, 1); }
  __device__ virtual float area() const = 0;
  __device__ virtual int corners() const { return 0; }
  int *alive;
};
struct Disc final : Shape {
  __device__ Disc(int *alive, float radius) : Shape(alive), radius(radius) {}
  __device__ float area() const override { return 3 * radius * radius; }
  float radius;
};
struct Box : Shape {
  __device__ Box(int *alive, float a, float b) : Shape(alive), a(a), b(b) {}
  __device__ float area() const override { return a * b; }
  __device__ int corners() const override { return 4; }
  float a, b;
};

__global__ void make(Shape **shapes, int *alive) {
  int i = threadIdx.x;
  shapes[i] = i % 2 ? static_cast<Shape *>(new Box(alive, i, 2)) : new Disc(alive, i);
}
__global__ void measure(Shape *const *shapes, float *area, int *corners) {
  area[threadIdx.x] = shapes[threadIdx.x]->area();
  atomicAdd(corners, shapes[threadIdx.x]->corners());
}
__global__ void drop(Shape **shapes) { delete shapes[threadIdx.x]; }

// A number modulo 97, with the operators that a reader expects.
struct Residue {
  int value;
  __host__ __device__ constexpr Residue(int v = 0) : value((v % 97 + 97) % 97) {}
  __host__ __device__ friend constexpr Residue operator*(Residue a, Residue b) { return a.value * b.value; }
  __host__ __device__ constexpr Residue operator-() const { return -value; }
  __host__ __device__ explicit operator bool() const { return value != 0; }
  __host__ __device__ Residue &operator+=(Residue b) { return *this = value + b.value; }
};
__host__ __device__ Residue power(Residue x, unsigned e) {  // by recursion
  if (e == 0) return 1;
  Residue half = power(x, e / 2);
  return e % 2 ? half * half * x : half * half;
}
constexpr Residue MINUS_ONE = -Residue(1);

__global__ void residues(int *out) {
  __shared__ alignas(Residue) unsigned char raw[32 * sizeof(Residue)];
  int i = threadIdx.x;
  Residue *own = new (raw + i * sizeof(Residue)) Residue(i);  // in shared memory
  __syncthreads();
  Residue sum = MINUS_ONE;
  if (*own) sum += power(*own, 96);  // 1, by Fermat
  Residue *many = (Residue *)malloc((i + 1) * sizeof(Residue));
  for (int k = 0; k <= i; k++) new (many + k) Residue(reinterpret_cast<Residue *>(raw)[k]);
  for (int k = 0; k <= i; k++) sum += many[k];
  free(many);
  out[i] = sum.value;
}

int main() {
  const int n = 32;
  Shape **shapes;
  int *numbers;  // alive, corners, then the residues
  float *area;
  WORKS(cudaMalloc(&shapes, n * sizeof *shapes));
  WORKS(cudaMallocManaged(&numbers, (n + 2) * sizeof *numbers));
  WORKS(cudaMallocManaged(&area, n * sizeof *area));
  numbers[0] = numbers[1] = 0;
  make<<<1, n>>>(shapes, numbers);
  measure<<<1, n>>>(shapes, area, numbers + 1);
  WORKS(cudaDeviceSynchronize());
  EXPECT(numbers[0] == n && numbers[1] == 4 * n / 2);
  for (int i = 0; i < n; i++) EXPECT(area[i] == (i % 2 ? 2 * i : 3 * i * i));
  drop<<<1, n>>>(shapes);
  residues<<<1, n>>>(numbers + 2);
  WORKS(cudaDeviceSynchronize());
  EXPECT(numbers[0] == 0);
  for (int i = 0; i < n; i++) EXPECT(numbers[2 + i] == ((i ? 0 : -1) + i * (i + 1) / 2 + 97) % 97);
  WORKS(cudaFree(shapes));
  WORKS(cudaFree(numbers));
  WORKS(cudaFree(area));
  return mistakes;
}
