// What a kernel cannot be, and cannot take. nvcc lets `const Point &` through: the GPU would follow it to the host.
struct Point {
  float x, y;
  __global__ void move(float *p) { *p = x; }  // REFUSED: a kernel cannot be a member of a class
};

__global__ int answer(int *p) {  // REFUSED: a kernel returns nothing: __global__ void answer(..)
  *p = 42;
  return 42;
}

__global__ void by_reference(int *p, const Point &at) {  // REFUSED: a kernel's parameter cannot be a reference
  *p = (int)at.x;
}

__global__ void moved(int &&n) {}  // REFUSED: pass the value, or a pointer to device memory

using nothing = void;
__device__ int number;
__global__ nothing fine(Point at, const int (*row)[4], int *p = &number) { *p = (int)at.x + row[0][0]; }

int main() { return 0; }
