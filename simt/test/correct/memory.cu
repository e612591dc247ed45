// Memory used in ways that look wrong and are not.
#include "check.h"

struct __align__(16) Particle {
  float3 position;
  float mass;
};

struct Padded { /* three bytes that nobody sets */
  char tag;
  int value;
};

struct Batch {
  const float *x;
  float *y;
  int n;
};

union Bits {
  float number;
  unsigned bits;
};

__constant__ float c_weight[5];
__device__ int d_table[32];
__device__ float d_scale = 2;
__managed__ int m_count;

// Many threads store the same value: whichever comes last, the result is the same.
__global__ void any_negative(const int *x, int n, bool *found) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < 0) *found = true;
}

// A static variable of a device function is device memory, one for each instance of a template.
template <class T>
__device__ T count_by(T step) {
  static __device__ T sum = 1;
  static T last[2];
  sum += step - last[1];
  last[1] = step;
  return sum;
}

__global__ void count_calls(int *x) {
  for (int i = 0; i < 3; i++) x[0] = count_by(2 + i), x[1] = (int)count_by(0.5f);
}

// Each thread reads back what it wrote itself: no barrier needed.
__global__ void read_own_write(int *x) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  s[t] = s[t] * s[t];
  x[t] = s[t] + 1;
  x[t] += x[t];
}

// In place, element by element; ragged.
__global__ void relu_in_place(float *x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = fmaxf(x[i], 0);
}

// Input and output are the same array, __restrict__ is not claimed.
__global__ void axpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

// The first half was set by cudaMemset, the second half by this kernel; then all is read.
__global__ void set_second_half(int *x, int n) { x[n / 2 + threadIdx.x] = threadIdx.x; }
__global__ void sum_all(const int *x, int n, int *sum) {
  int total = 0;
  for (int i = 0; i < n; i++) total += x[i];
  *sum = total;
}

// Rows with a pitch: the padding is never set and never used.
__global__ void scale_pitched(float *x, size_t pitch, int width, int height) {
  int column = threadIdx.x, row = blockIdx.x;
  if (column < width && row < height) ((float *)((char *)x + row * pitch))[column] *= 2;
}

// The kernel's fill starts at a small offset in a large allocation that several arrays share.
__global__ void copy_part(const float *from, float *to, int n) {
  if (threadIdx.x < n) to[threadIdx.x] = from[threadIdx.x];
}

// A struct of 16 bytes goes as a whole.
__global__ void move_particles(Particle *p, float dt) {
  Particle own = p[threadIdx.x];
  own.position.x += dt * own.mass;
  p[threadIdx.x] = own;
}

// Copies of a struct with padding: its unset bytes travel along and are not looked at.
__global__ void reverse_padded(const Padded *in, Padded *out, int n) { out[threadIdx.x] = in[n - 1 - threadIdx.x]; }
__global__ void fill_padded(Padded *out) {
  out[threadIdx.x].tag = 'a' + threadIdx.x;
  out[threadIdx.x].value = threadIdx.x;
}

// float4 on aligned data, the rest one by one.
__global__ void add_by_fours(const float *x, float *y, int n) {
  int i = 4 * threadIdx.x;
  if (i + 3 < n) {
    float4 a = *(const float4 *)(x + i), b = *(float4 *)(y + i);
    *(float4 *)(y + i) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
  } else {
    for (; i < n; i++) y[i] += x[i];
  }
}

// A stencil whose border is guarded: no neighbour outside is ever read.
__global__ void stencil(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int reach = -2; reach <= 2; reach++)
    if (i + reach >= 0 && i + reach < n) sum += c_weight[reach + 2] * x[i + reach];
  y[i] = sum;
}

// A pointer to before the array, and only elements inside are touched.
__global__ void one_based(float *x, int n) {
  float *from_one = x - 1;
  int i = threadIdx.x + 1;
  if (i <= n) from_one[i] = i;
}

// Bits of a float through a union, and through memory of another type.
__global__ void bits_of_floats(const float *x, unsigned *y) {
  Bits b;
  b.number = x[threadIdx.x];
  y[threadIdx.x] = b.bits ^ ((const unsigned *)x)[threadIdx.x];
}

// Pointers inside a struct that is passed by value, and a table of pointers in device memory.
__global__ void batch_in_struct(Batch batch) {
  int i = threadIdx.x;
  if (i < batch.n) batch.y[i] = 2 * batch.x[i];
}
__global__ void batch_of_pointers(float *const *row, int width) {
  if (threadIdx.x < width) row[blockIdx.x][threadIdx.x] = blockIdx.x;
}

// Device variables, set by symbol and by kernels.
__global__ void use_symbols(float *y) {
  y[threadIdx.x] = d_scale * d_table[threadIdx.x];
  if (threadIdx.x == 0) atomicAdd(&m_count, 1);
}

// The host's page-locked memory, which a kernel may use.
__global__ void double_in_place(int *x) { x[threadIdx.x] *= 2; }

// A local array that stays inside its bounds, indexed by data.
__global__ void local_histogram(const unsigned char *x, int n, int *counts) {
  int count[4] = {0, 0, 0, 0};
  for (int i = threadIdx.x; i < n; i += blockDim.x) count[x[i] & 3]++;
  for (int k = 0; k < 4; k++) atomicAdd(&counts[k], count[k]);
}

struct Node {
  int value;
  Node *next;
};

// Each thread has a list of its own on the device's heap, reads it and frees it as it goes. What one thread frees the
// next one may get.
__global__ void list_on_heap(int *y) {
  Node *head = NULL;
  for (int i = 0; i < 5; i++) {
    Node *node = i % 2 ? new Node : (Node *)malloc(sizeof *node);
    node->value = i + (int)threadIdx.x;
    node->next = head;
    head = node;
  }
  int sum = 0;
  for (int i = 4; head; i--) {
    Node *next = head->next;
    sum += head->value;
    if (i % 2)
      delete head;
    else
      free(head);
    head = next;
  }
  y[threadIdx.x] = sum;
}

int main(void) {
  int x[256], y[256], ok;
  float a[256], b[256];
  for (int i = 0; i < 256; i++) a[i] = x[i] = (i * 37 + 11) % 101 - 30;
  int *dx = to_device(x, 256), *dy = zeros_on_device<int>(256);
  float *da = to_device(a, 256), *db = raw_on_device<float>(256);

  bool found, *dfound = zeros_on_device<bool>(1);
  any_negative<<<4, 64>>>(dx, 250, dfound);
  fetch(&found, dfound, 1);
  check("many threads store the same value", found);

  count_calls<<<1, 1>>>(dy);
  fetch(y, dy, 2);
  check("static variables of device functions", y[0] == 1 + 2 + 1 + 1 && y[1] == 1);

  read_own_write<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == 2 * (x[i] * x[i] + 1);
  check("own writes read back", ok);

  relu_in_place<<<2, 64>>>(da, 250);
  fetch(b, da, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) ok &= b[i] == (i < 250 && a[i] < 0 ? 0 : a[i]);
  check("in place, element by element", ok);

  TRY(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
  axpy<<<2, 128>>>(2, da, da, 256);
  fetch(b, da, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) ok &= b[i] == 3 * a[i];
  check("input and output are one array", ok);

  int *dhalf = raw_on_device<int>(128);
  TRY(cudaMemset(dhalf, 0, 64 * sizeof(int)));
  set_second_half<<<1, 64>>>(dhalf, 128);
  sum_all<<<1, 1>>>(dhalf, 128, dy);
  fetch(y, dy, 1);
  check("set by cudaMemset and by a kernel", y[0] == 63 * 64 / 2);

  float *dpitched;
  size_t pitch;
  TRY(cudaMallocPitch((void **)&dpitched, &pitch, 10 * sizeof(float), 6));
  TRY(cudaMemcpy2D(dpitched, pitch, a, 10 * sizeof(float), 10 * sizeof(float), 6, cudaMemcpyHostToDevice));
  scale_pitched<<<6, 32>>>(dpitched, pitch, 10, 6);
  TRY(cudaMemcpy2D(b, 10 * sizeof(float), dpitched, pitch, 10 * sizeof(float), 6, cudaMemcpyDeviceToHost));
  ok = 1;
  for (int i = 0; i < 60; i++) ok &= b[i] == 2 * a[i];
  check("padding of pitched rows is never used", ok);

  char *arena = raw_on_device<char>(4096);
  float *first = (float *)arena, *second = (float *)(arena + 256), *third = (float *)(arena + 1024);
  TRY(cudaMemcpy(first, a, 50 * sizeof(float), cudaMemcpyHostToDevice));
  copy_part<<<1, 64>>>(first, second, 50);
  copy_part<<<1, 64>>>(second, third, 50);
  fetch(b, third, 50);
  check("several arrays in one allocation", memcmp(a, b, 50 * sizeof(float)) == 0);

  Particle p[64];
  for (int i = 0; i < 64; i++) p[i] = {{(float)i, 0, 0}, 2};
  Particle *dp = to_device(p, 64);
  move_particles<<<1, 64>>>(dp, 0.5f);
  fetch(p, dp, 64);
  check("structs of 16 bytes", p[7].position.x == 8 && p[63].mass == 2);

  Padded padded[16], *dpadded = raw_on_device<Padded>(32);
  fill_padded<<<1, 16>>>(dpadded);
  reverse_padded<<<1, 16>>>(dpadded, dpadded + 16, 16);
  fetch(padded, dpadded + 16, 16);
  check("padding inside a struct", padded[0].value == 15 && padded[0].tag == 'p');

  TRY(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(db, a, sizeof a, cudaMemcpyHostToDevice));
  add_by_fours<<<1, 64>>>(da, db, 250);
  fetch(b, db, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) ok &= b[i] == (i < 250 ? 2 : 1) * a[i];
  check("float4 on aligned data", ok);

  float weight[5] = {1, 2, 3, 2, 1};
  TRY(cudaMemcpyToSymbol(c_weight, weight, sizeof weight));
  stencil<<<4, 64>>>(da, db, 250);
  fetch(b, db, 250);
  check("guarded stencil", b[0] == 3 * a[0] + 2 * a[1] + a[2] && b[249] == a[247] + 2 * a[248] + 3 * a[249]);

  one_based<<<1, 64>>>(db, 50);
  fetch(b, db, 50);
  check("a pointer to before the array", b[0] == 1 && b[49] == 50);

  bits_of_floats<<<1, 64>>>(da, (unsigned *)dy);
  fetch(y, dy, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == 0;
  check("bits of a float", ok);

  batch_in_struct<<<1, 64>>>(Batch{da, db, 50});
  fetch(b, db, 50);
  check("pointers in a struct", b[0] == 2 * a[0] && b[49] == 2 * a[49]);

  float *row[4] = {db, db + 32, db + 64, db + 96}, **drow = to_device(row, 4);
  batch_of_pointers<<<4, 32>>>(drow, 32);
  fetch(b, db, 128);
  check("a table of pointers", b[0] == 0 && b[127] == 3);

  int table[32];
  void *address;
  for (int i = 0; i < 32; i++) table[i] = i;
  TRY(cudaMemcpyToSymbol(d_table, table, 16 * sizeof(int)));
  TRY(cudaGetSymbolAddress(&address, d_table));
  TRY(cudaMemcpy((int *)address + 16, table + 16, 16 * sizeof(int), cudaMemcpyHostToDevice));
  m_count = 4;
  use_symbols<<<1, 32>>>(db);
  fetch(b, db, 32);
  check("device and managed variables", b[31] == 62 && b[3] == 6 && m_count == 5);

  int *managed, *pinned, *mapped, *registered = (int *)malloc(4096);
  TRY(cudaMallocManaged((void **)&managed, 32 * sizeof(int)));
  TRY(cudaMallocHost((void **)&pinned, 32 * sizeof(int)));
  TRY(cudaHostAlloc((void **)&mapped, 32 * sizeof(int), cudaHostAllocMapped));
  TRY(cudaHostRegister(registered, 4096, cudaHostRegisterMapped));
  for (int i = 0; i < 32; i++) managed[i] = pinned[i] = mapped[i] = registered[i] = i;
  int *from_mapped, *from_registered;
  TRY(cudaHostGetDevicePointer((void **)&from_mapped, mapped, 0));
  TRY(cudaHostGetDevicePointer((void **)&from_registered, registered, 0));
  double_in_place<<<1, 32>>>(managed);
  double_in_place<<<1, 32>>>(pinned);
  double_in_place<<<1, 32>>>(from_mapped);
  double_in_place<<<1, 32>>>(from_registered);
  TRY(cudaDeviceSynchronize());
  check("managed memory, used by the host after a wait", managed[31] == 62);
  check("page-locked memory in a kernel", pinned[31] == 62);
  check("mapped memory in a kernel", mapped[31] == 62);
  check("registered memory in a kernel", registered[31] == 62);
  TRY(cudaHostUnregister(registered));

  int n = 0;  // no elements: no launch, since a grid of no blocks would be an error
  if (n > 0) double_in_place<<<n, 32>>>(dx);
  TRY(cudaGetLastError());
  TRY(cudaMemcpy(dx, x, 0, cudaMemcpyHostToDevice));
  check("nothing to do", 1);

  for (int i = 0; i < 3; i++) {  // a new allocation often lies where the last one was
    int *again = raw_on_device<int>(64);
    TRY(cudaMemset(again, 1, 64 * sizeof(int)));
    double_in_place<<<1, 64>>>(again);
    fetch(y, again, 64);
    check("memory allocated again", y[63] == 0x02020202);
    TRY(cudaFree(again));
  }

  unsigned char text[100];
  int counts[4] = {0};
  for (int i = 0; i < 100; i++) counts[(text[i] = i * i / 3) & 3]++;
  unsigned char *dtext = to_device(text, 100);
  TRY(cudaMemset(dy, 0, 4 * sizeof(int)));
  local_histogram<<<1, 32>>>(dtext, 100, dy);
  fetch(y, dy, 4);
  check("a local array indexed by data", memcmp(y, counts, sizeof counts) == 0);

  list_on_heap<<<1, 64>>>(dy);
  fetch(y, dy, 64);
  check("a list on the device's heap", y[0] == 10 && y[63] == 10 + 5 * 63);

  TRY(cudaFree(NULL));
  TRY(cudaFreeHost(pinned));
  TRY(cudaFreeHost(mapped));
  free(registered);
  void *all[] = {dx, dy, da, db, dfound, dhalf, dpitched, arena, dp, dpadded, drow, managed, dtext};
  for (void *one : all) TRY(cudaFree(one));
  return finish();
}
