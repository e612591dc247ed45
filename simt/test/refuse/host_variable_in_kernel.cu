// A kernel reads variables of the host. nvcc: "identifier is undefined in device code"; constants it lets through.
int factor = 3, unused;
const int offset = 7;
static float table[4] = {1, 2, 3, 4};
__device__ float scale = 2;

template <class T>
__device__ T scaled(T x) {
  return x * factor;  // REFUSED: factor is a variable of the host, and scaled() runs on the GPU
}

template <class T>
__device__ T never_compiled(T x) {
  return x * factor;
}

__global__ void k(float *p, int unused) {
  p[0] = scaled(p[1]) + offset + sizeof table;
  p[1] = table[threadIdx.x] * scale + unused;  // REFUSED: table is a variable of the host, and k() runs on the GPU
  float table = 3;                             // another one
  p[2] = table;
}

int main() { return factor - 3; }
