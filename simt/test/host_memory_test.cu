/* host_memory_test.cu - allocation, copies of every kind, memsets, symbols, and the error codes of wrong ones. The same
 * program passes on a GPU; what only the emulator promises stands between #ifdef SIMT_REWRITTEN. */
#include <math.h>
#include <unistd.h>

#include "collective.h"

static unsigned char pattern(size_t seed, size_t i) { return (unsigned char)(seed * 37 + i * 11 + (i >> 8)); }

static void fill_pattern(unsigned char *bytes, size_t count, size_t seed) {
  for (size_t i = 0; i < count; i++) bytes[i] = pattern(seed, i);
}

static void expect_pattern(const unsigned char *bytes, size_t count, size_t seed) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != pattern(seed, i)) fail_msg("byte %zu is %d, not %d", i, bytes[i], pattern(seed, i));
}

/* An error is expected; the last error is cleared. */
#define REFUSED(call, code)                     \
  do {                                          \
    assert_int_equal(call, code);               \
    assert_int_equal(cudaGetLastError(), code); \
  } while (0)

/* ---- allocation ---- */

enum { SLOTS = 200, ROUNDS = 3000 };

/* Random allocations and frees: none overlaps another, each keeps its bytes. */
static void test_many_allocations(void **state) {
  (void)state;
  static struct {
    unsigned char *device;
    size_t bytes, seed;
  } slots[SLOTS];
  static unsigned char host[100000];
  for (int round = 0; round < ROUNDS; round++) {
    int i = next_random() % SLOTS;
    if (slots[i].device) {
      memset(host, 0, slots[i].bytes);
      CHECK(cudaMemcpy(host, slots[i].device, slots[i].bytes, cudaMemcpyDeviceToHost));
      expect_pattern(host, slots[i].bytes, slots[i].seed);
      CHECK(cudaFree(slots[i].device));
      slots[i].device = NULL;
    } else {
      slots[i].bytes = next_random() % (round % 7 ? 3000 : sizeof host) + 1;
      slots[i].seed = round;
      CHECK(cudaMalloc(&slots[i].device, slots[i].bytes));
      assert_int_equal((uintptr_t)slots[i].device % 256, 0);
      fill_pattern(host, slots[i].bytes, slots[i].seed);
      CHECK(cudaMemcpy(slots[i].device, host, slots[i].bytes, cudaMemcpyHostToDevice));
    }
  }
  for (int i = 0; i < SLOTS; i++) {
    CHECK(cudaFree(slots[i].device));
    slots[i].device = NULL;
  }
}

static void test_out_of_memory(void **state) {
  (void)state;
  size_t free_bytes, total, after;
  void *big = NULL, *more = NULL;
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  assert_true(free_bytes <= total && free_bytes > 0);
  CHECK(cudaMalloc(&big, free_bytes / 10 * 6));
  REFUSED(cudaMalloc(&more, free_bytes / 10 * 6), cudaErrorMemoryAllocation);
  CHECK(cudaMemGetInfo(&after, &total));
  assert_true(after <= free_bytes - free_bytes / 10 * 6);
  CHECK(cudaFree(big));
  CHECK(cudaMalloc(&more, free_bytes / 10 * 6));
  CHECK(cudaFree(more));
  CHECK(cudaMemGetInfo(&after, &total));
  assert_int_equal(after, free_bytes); /* nothing is lost */
  REFUSED(cudaMalloc(&more, (size_t)1 << 60), cudaErrorMemoryAllocation);
  REFUSED(cudaMalloc(&more, (size_t)-1), cudaErrorMemoryAllocation);
}

#ifdef SIMT_REWRITTEN
/* Freed neighbours become one: what is left of the arena is whole again whatever the order of frees. Most of it is
 * taken before, in one piece, for AddressSanitizer notes the state of every byte at each call. */
static void test_holes_join(void **state) {
  (void)state;
  enum { PARTS = 9, PART = 1 << 20 };
  size_t free_bytes, total;
  void *most;
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  CHECK(cudaMalloc(&most, free_bytes - (PARTS + 1) * (size_t)PART));
  for (int order = 0; order < 6; order++) {
    void *parts[PARTS], *whole;
    for (int i = 0; i < PARTS; i++) CHECK(cudaMalloc(&parts[i], PART));
    for (int i = 0; i < PARTS; i++) CHECK(cudaFree(parts[(i * (order % 2 ? 4 : 2) + order) % PARTS]));
    CHECK(cudaMalloc(&whole, PARTS * (size_t)PART));
    CHECK(cudaFree(whole));
  }
  CHECK(cudaFree(most));
}

static void test_new_memory_is_no_number(void **state) {
  (void)state;
  float *device, host[100];
  for (int round = 0; round < 2; round++) { /* used memory, too */
    CHECK(cudaMalloc(&device, sizeof host));
    CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 100; i++) assert_true(isnan(host[i]));
    CHECK(cudaMemset(device, 0, sizeof host));
    CHECK(cudaFree(device));
  }
}
#endif

static void test_frees(void **state) {
  (void)state;
  char *device, *pinned, *malloced = (char *)malloc(64);
  CHECK(cudaFree(NULL));
  CHECK(cudaFreeHost(NULL));
  CHECK(cudaMalloc(&device, 64));
  REFUSED(cudaFree(device + 8), cudaErrorInvalidValue);
  CHECK(cudaFree(device));
  REFUSED(cudaFree(device), cudaErrorInvalidValue);
  CHECK(cudaMallocHost(&pinned, 64));
  REFUSED(cudaFreeHost(pinned + 8), cudaErrorInvalidValue);
  CHECK(cudaFreeHost(pinned));
  REFUSED(cudaFreeHost(malloced), cudaErrorInvalidValue);
  free(malloced);
  CHECK(cudaMalloc(&device, 0));
  assert_null(device);
}

static void test_what_a_pointer_is(void **state) {
  (void)state;
  char *device, *pinned, *managed, *malloced = (char *)malloc(64);
  cudaPointerAttributes a;
  CHECK(cudaMalloc(&device, 64));
  CHECK(cudaMallocHost(&pinned, 64));
  CHECK(cudaMallocManaged(&managed, 64));
  CHECK(cudaPointerGetAttributes(&a, device + 63));
  assert_int_equal(a.type, cudaMemoryTypeDevice);
  assert_ptr_equal(a.devicePointer, device + 63);
  assert_int_equal(a.device, 0);
  CHECK(cudaPointerGetAttributes(&a, pinned + 5));
  assert_int_equal(a.type, cudaMemoryTypeHost);
  assert_ptr_equal(a.hostPointer, pinned + 5);
  CHECK(cudaPointerGetAttributes(&a, managed));
  assert_int_equal(a.type, cudaMemoryTypeManaged);
  assert_ptr_equal(a.hostPointer, managed);
  assert_ptr_equal(a.devicePointer, managed);
  CHECK(cudaPointerGetAttributes(&a, malloced));
  assert_int_equal(a.type, cudaMemoryTypeUnregistered);
  CHECK(cudaFree(device));
  CHECK(cudaFree(managed));
  CHECK(cudaFreeHost(pinned));
  free(malloced);
}

/* ---- copies ---- */

static const size_t sizes[] = {1, 3, 255, 256, 257, 4097, 70001};
enum { SIZES = sizeof sizes / sizeof sizes[0], MOST = 70001, BAND = 64 };

/* There and back through a second buffer, at odd offsets; the bytes around stay. */
static void test_copies_of_every_kind(void **state) {
  (void)state;
  unsigned char *from = (unsigned char *)malloc(MOST), *to = (unsigned char *)malloc(MOST + 2 * BAND);
  unsigned char *a, *b, *pinned;
  CHECK(cudaMalloc(&a, MOST + BAND));
  CHECK(cudaMalloc(&b, MOST + BAND));
  CHECK(cudaMallocHost(&pinned, MOST + BAND));
  for (int i = 0; i < SIZES; i++) {
    size_t n = sizes[i];
    fill_pattern(from, n, i);
    memset(to, 99, MOST + 2 * BAND);
    CHECK(cudaMemcpy(a + 5, from, n, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b + 11, a + 5, n, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(pinned + 3, b + 11, n, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(a, pinned + 3, n, cudaMemcpyDefault));
    CHECK(cudaMemcpy(b, a, n, cudaMemcpyDefault));
    CHECK(cudaMemcpy(to + BAND, b, n, cudaMemcpyDefault));
    expect_pattern(to + BAND, n, i);
    for (int k = 0; k < BAND; k++) assert_true(to[k] == 99 && to[BAND + n + k] == 99);
    memset(to, 0, n);
    CHECK(cudaMemcpy(to, from, n, cudaMemcpyHostToHost));
    expect_pattern(to, n, i);
    CHECK(cudaMemcpyPeer(b, 0, a, 0, n));
  }
  CHECK(cudaMemcpy(a, from, 0, cudaMemcpyHostToDevice));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(pinned));
  free(from);
  free(to);
}

static void test_rows(void **state) {
  (void)state;
  enum { WIDTH = 37, HEIGHT = 11, HOST_PITCH = 50 };
  unsigned char from[HEIGHT][HOST_PITCH], to[HEIGHT][HOST_PITCH], *device;
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&device, &pitch, WIDTH, HEIGHT));
  assert_true(pitch >= WIDTH && pitch % 32 == 0);
  fill_pattern(from[0], sizeof from, 1);
  memset(to, 99, sizeof to);
  CHECK(cudaMemcpy2D(device, pitch, from, HOST_PITCH, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2D(to, HOST_PITCH, device, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < HOST_PITCH; x++) assert_int_equal(to[y][x], x < WIDTH ? from[y][x] : 99);
  CHECK(cudaMemset2D(device + pitch + 2, pitch, 7, 5, 3)); /* columns 2 to 6 of rows 1 to 3 */
  CHECK(cudaMemcpy2DAsync(to, HOST_PITCH, device, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToHost, 0));
  CHECK(cudaDeviceSynchronize());
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) assert_int_equal(to[y][x], y >= 1 && y <= 3 && x >= 2 && x <= 6 ? 7 : from[y][x]);
  REFUSED(cudaMemcpy2D(device, WIDTH - 1, from, HOST_PITCH, WIDTH, HEIGHT, cudaMemcpyHostToDevice),
          cudaErrorInvalidPitchValue);
  CHECK(cudaFree(device));
}

static void test_boxes(void **state) {
  (void)state;
  enum { X = 13, Y = 5, Z = 4 };
  static unsigned char from[Z][Y][X], to[Z][Y][X];
  cudaPitchedPtr device;
  CHECK(cudaMalloc3D(&device, make_cudaExtent(X, Y, Z)));
  assert_true(device.pitch >= X && device.xsize == X && device.ysize == Y);
  fill_pattern(from[0][0], sizeof from, 2);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(from, X, X, Y);
  copy.dstPtr = device;
  copy.extent = make_cudaExtent(X, Y, Z);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  /* The box of 4 x 3 x 2 at (2, 1, 1) goes to (7, 2, 0). */
  copy.srcPtr = device;
  copy.dstPtr = make_cudaPitchedPtr(to, X, X, Y);
  copy.srcPos = make_cudaPos(2, 1, 1);
  copy.dstPos = make_cudaPos(7, 2, 0);
  copy.extent = make_cudaExtent(4, 3, 2);
  copy.kind = cudaMemcpyDeviceToHost;
  memset(to, 99, sizeof to);
  CHECK(cudaMemcpy3D(&copy));
  for (int z = 0; z < Z; z++)
    for (int y = 0; y < Y; y++)
      for (int x = 0; x < X; x++) {
        int inside = x >= 7 && x < 11 && y >= 2 && y < 5 && z < 2;
        assert_int_equal(to[z][y][x], inside ? from[z + 1][y - 1][x - 5] : 99);
      }
  CHECK(cudaMemset3D(device, 3, make_cudaExtent(X, Y, Z)));
  copy.srcPos = copy.dstPos = make_cudaPos(0, 0, 0);
  copy.extent = make_cudaExtent(X, Y, Z);
  CHECK(cudaMemcpy3D(&copy));
  for (int i = 0; i < X * Y * Z; i++) assert_int_equal(((unsigned char *)to)[i], 3);
  CHECK(cudaFree(device.ptr));
}

static void test_memset(void **state) {
  (void)state;
  unsigned char *device, host[1000];
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMemset(device, 0x1234, sizeof host)); /* only the low byte counts */
  CHECK(cudaMemsetAsync(device + 10, 0, 5, 0));
  CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; i++) assert_int_equal(host[i], i >= 10 && i < 15 ? 0 : 0x34);
  CHECK(cudaMemset(device, 0, 0));
  CHECK(cudaFree(device));
}

/* ---- refused copies ---- */

static void test_wrong_directions(void **state) {
  (void)state;
  float *device, host[16] = {0};
  CHECK(cudaMalloc(&device, sizeof host));
  REFUSED(cudaMemcpy(device, host, sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  REFUSED(cudaMemcpy(host, device, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  REFUSED(cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyDeviceToHost, 0), cudaErrorInvalidValue);
  REFUSED(cudaMemcpy(device, host, sizeof host, (enum cudaMemcpyKind)7), cudaErrorInvalidMemcpyDirection);
  REFUSED(cudaMemcpy(NULL, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  REFUSED(cudaMemset(NULL, 0, 4), cudaErrorInvalidValue);
  CHECK(cudaFree(device));
  REFUSED(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
}

#ifdef SIMT_REWRITTEN
/* A GPU notices only what leaves the megabytes that it maps; here each byte counts. */
static void test_copies_beyond(void **state) {
  (void)state;
  char *device, *pinned, host[300] = {0};
  CHECK(cudaMalloc(&device, 100));
  CHECK(cudaMallocHost(&pinned, 100));
  REFUSED(cudaMemcpy(device, host, 101, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  REFUSED(cudaMemcpy(device + 60, host, 41, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device + 60, host, 40, cudaMemcpyHostToDevice));
  REFUSED(cudaMemcpy(host, device + 100, 1, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  REFUSED(cudaMemcpy(pinned, device, 101, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  REFUSED(cudaMemset(device, 0, 101), cudaErrorInvalidValue);
  REFUSED(cudaMemcpy2D(device, 10, host, 10, 8, 11, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK(cudaMemcpy2D(device, 10, host, 10, 10, 10, cudaMemcpyHostToDevice));
  REFUSED(cudaMemcpy(device, host, (size_t)-4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(pinned));
}

/* What is printed to stderr meanwhile; in a static buffer. */
static int saved_stderr;
static FILE *caught;
static void catch_stderr(void) {
  fflush(stderr);
  saved_stderr = dup(2);
  caught = tmpfile();
  assert_non_null(caught);
  dup2(fileno(caught), 2);
}

static const char *caught_text(void) {
  static char text[5000];
  fflush(stderr);
  dup2(saved_stderr, 2);
  close(saved_stderr);
  rewind(caught);
  text[fread(text, 1, sizeof text - 1, caught)] = '\0';
  fclose(caught);
  return text;
}

static void expect_text(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no \"%s\" in: %s", part, text);
}

static void expect_line(const char *text, int line) {
  char place[64];
  snprintf(place, sizeof place, "host_memory_test.cu:%d", line);
  expect_text(text, place);
}

static void test_diagnoses(void **state) {
  (void)state;
  float *device, host[100] = {0};
  const char *text;
  int made = __LINE__ + 1, copied;
  CHECK(cudaMalloc(&device, 100)); /* elements, not bytes */
  catch_stderr();
  copied = __LINE__ + 1;
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  text = caught_text();
  expect_text(text, "=== simt: out of bounds: cudaMemcpy");
  expect_text(text, "room for 100, 300 too few");
  expect_text(text, "4 times");
  expect_line(text, copied);
  expect_line(text, made);
  catch_stderr();
  copied = __LINE__ + 1;
  cudaMemcpyAsync(device, host, 4, cudaMemcpyDeviceToHost, 0);
  text = caught_text();
  expect_text(text, "=== simt: wrong direction: cudaMemcpyAsync");
  expect_text(text, "the kind is cudaMemcpyDeviceToHost, but the destination is the device's");
  expect_line(text, copied);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue ? cudaSuccess : cudaErrorUnknown);
  catch_stderr();
  cudaFree(device + 1);
  text = caught_text();
  expect_text(text, "invalid free");
  expect_text(text, "100 bytes of cudaMalloc");
  expect_line(text, made);
  CHECK(cudaFree(device));
  catch_stderr();
  cudaFree(device);
  text = caught_text();
  expect_text(text, "double free");
  expect_line(text, made);
  cudaGetLastError();
}

static void test_use_after_free(void **state) {
  (void)state;
  char *device;
  CHECK(cudaMalloc(&device, 100));
  CHECK(cudaFree(device));
  catch_stderr();
  REFUSED(cudaMemset(device, 0, 4), cudaErrorInvalidValue);
  expect_text(caught_text(), "use after free");
}

extern "C" void __asan_init(void) __attribute__((weak));

__global__ void write_at(char *x, int i) { x[i] = 1; }

static void test_overrun_is_found_at_free(void **state) {
  (void)state;
  char *device;
  if (__asan_init) skip(); /* AddressSanitizer stops at the write */
  CHECK(cudaMalloc(&device, 1000));
  write_at<<<1, 1>>>(device, 999);
  catch_stderr();
  CHECK(cudaFree(device));
  assert_string_equal(caught_text(), "");
  CHECK(cudaMalloc(&device, 1000));
  write_at<<<1, 1>>>(device, 1010);
  catch_stderr();
  CHECK(cudaFree(device));
  const char *text = caught_text();
  expect_text(text, "out of bounds");
  expect_text(text, "up to 11 bytes behind the 1000 bytes of cudaMalloc");
}
#endif

/* ---- symbols ---- */

__device__ int d_table[8];
__device__ int d_one = 5;
__constant__ float c_weight[4];
__constant__ const int c_fixed[3] = {7, 8, 9};
__managed__ int m_count = 3;
static int h_table[8];

__global__ void use_symbols(float *out) {
  for (int i = 0; i < 8; i++) d_table[i] *= 2;
  d_one++;
  m_count += 10;
  out[0] = c_weight[1] + c_fixed[2];
}

static void test_symbols(void **state) {
  (void)state;
  int table[8], one = 0, half[4] = {40, 50, 60, 70};
  const float weight[4] = {1, 2, 3, 4};
  float *out = new_array<float>(1);
  for (int i = 0; i < 8; i++) table[i] = i;
  CHECK(cudaMemcpyToSymbol(d_table, table, sizeof table));
  CHECK(cudaMemcpyToSymbol(d_table, half, sizeof half, 4 * sizeof(int)));
  CHECK(cudaMemcpyToSymbol(c_weight, weight, sizeof weight));
  use_symbols<<<1, 1>>>(out);
  finish();
  CHECK(cudaMemcpyFromSymbol(table, d_table, sizeof table));
  for (int i = 0; i < 8; i++) assert_int_equal(table[i], i < 4 ? 2 * i : 2 * (i * 10));
  CHECK(cudaMemcpyFromSymbol(&one, d_one, sizeof one));
  assert_int_equal(one, 6);
  assert_float_equal(*out, 11, 0);
  assert_int_equal(m_count, 13);
  int fixed[3] = {0};
  CHECK(cudaMemcpyFromSymbol(fixed, c_fixed, sizeof fixed));
  assert_int_equal(fixed[2], 9);
  int *address = NULL;
  size_t bytes = 0;
  CHECK(cudaGetSymbolAddress((void **)&address, d_table));
  CHECK(cudaGetSymbolSize(&bytes, d_table));
  assert_int_equal(bytes, 32);
  CHECK(cudaMemset(address + 2, 0, 8));
  CHECK(cudaMemcpyFromSymbolAsync(table, d_table, sizeof table, 0, cudaMemcpyDeviceToHost, 0));
  CHECK(cudaDeviceSynchronize());
  assert_true(table[1] == 2 && table[2] == 0 && table[3] == 0 && table[4] == 80);
  CHECK(cudaFree(out));
  REFUSED(cudaMemcpyToSymbol(d_table, table, sizeof table, 4), cudaErrorInvalidValue);
  REFUSED(cudaMemcpyToSymbol(h_table, table, sizeof table), cudaErrorInvalidSymbol);
  REFUSED(cudaMemcpyToSymbol(d_table, table, sizeof table, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  REFUSED(cudaGetSymbolAddress((void **)&address, h_table), cudaErrorInvalidSymbol);
}

/* ---- pinned, registered, managed memory; pools ---- */

__global__ void increment(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i]++;
}

static void expect_incremented(int *device, const int *host, int n) {
  increment<<<(n + 127) / 128, 128>>>(device, n);
  finish();
  for (int i = 0; i < n; i++) assert_int_equal(host[i], i + 1);
}

static void test_memory_of_both_sides(void **state) {
  (void)state;
  enum { N = 1000 };
  int *host, *device = NULL;
  unsigned flags = 0;
  CHECK(cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped));
  for (int i = 0; i < N; i++) host[i] = i;
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  expect_incremented(device, host, N);
  CHECK(cudaHostGetFlags(&flags, host));
  assert_true(flags & cudaHostAllocMapped);
  CHECK(cudaFreeHost(host));

  host = (int *)aligned_alloc(4096, 8192);
  for (int i = 0; i < N; i++) host[i] = i;
  CHECK(cudaHostRegister(host, 8192, cudaHostRegisterMapped));
  REFUSED(cudaHostRegister(host, 8192, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  expect_incremented(device, host, N);
  CHECK(cudaHostUnregister(host));
  REFUSED(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
  free(host);

  CHECK(cudaMallocManaged(&host, N * sizeof(int)));
  for (int i = 0; i < N; i++) host[i] = i;
  cudaMemLocation gpu = {};
  gpu.type = cudaMemLocationTypeDevice;
  CHECK(cudaMemAdvise(host, N * sizeof(int), cudaMemAdviseSetPreferredLocation, gpu));
  CHECK(cudaMemPrefetchAsync(host, N * sizeof(int), gpu, 0, 0));
  expect_incremented(host, host, N);
  CHECK(cudaFree(host));
#ifdef SIMT_REWRITTEN /* CUDA 12's forms, which CUDA 13 does not have */
  CHECK(cudaMallocManaged(&host, 64));
  CHECK(cudaMemAdvise(host, 64, cudaMemAdviseSetReadMostly, 0));
  CHECK(cudaMemPrefetchAsync(host, 64, 0));
  CHECK(cudaMemPrefetchAsync(host, 64, cudaCpuDeviceId, 0));
  CHECK(cudaFree(host));
#endif
}

static void test_pools(void **state) {
  (void)state;
  cudaMemPool_t pool;
  cudaStream_t stream;
  int *a, host[100];
  unsigned long long before = 0, used = 0, threshold = 1 << 20;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &before));
  CHECK(cudaMallocAsync(&a, sizeof host, stream));
  CHECK(cudaMemsetAsync(a, 0, sizeof host, stream));
  increment<<<1, 128, 0, stream>>>(a, 100);
  CHECK(cudaMemcpyAsync(host, a, sizeof host, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  assert_true(used >= before + sizeof host);
  CHECK(cudaFreeAsync(a, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < 100; i++) assert_int_equal(host[i], 1);
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  assert_int_equal(used, before);
  CHECK(cudaMallocAsync(&a, 64, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFree(a)); /* allowed, too */
  CHECK(cudaStreamDestroy(stream));
}

#ifdef SIMT_REWRITTEN
/* The program runs itself: `leak` forgets two buffers. */
static void test_leaks_are_told(void **state) {
  (void)state;
  char text[2000];
  setenv("SIMT_LEAKS", "1", 1);
  FILE *child = popen("exec /proc/$PPID/exe leak 2>&1", "r");
  unsetenv("SIMT_LEAKS");
  text[fread(text, 1, sizeof text - 1, child)] = '\0';
  assert_int_equal(pclose(child), 0);
  expect_text(text, "=== simt: leak: 3 allocations, 2064 bytes in all");
  expect_text(text, "2000 bytes in 2 allocations of cudaMalloc");
  expect_text(text, "64 bytes in 1 allocation of cudaMallocHost");
}

static int leak(void) {
  void *pointer;
  for (int i = 0; i < 3; i++)
    if (cudaMalloc(&pointer, 1000) != cudaSuccess) return 1;
  cudaFree(pointer);
  return cudaMallocHost(&pointer, 64) != cudaSuccess;
}
#endif

int main(int argc, char **argv) {
#ifdef SIMT_REWRITTEN
  if (argc > 1 && strcmp(argv[1], "leak") == 0) return leak();
#endif
  (void)argc, (void)argv;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_many_allocations),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_frees),
      cmocka_unit_test(test_what_a_pointer_is),
      cmocka_unit_test(test_copies_of_every_kind),
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_boxes),
      cmocka_unit_test(test_memset),
      cmocka_unit_test(test_wrong_directions),
      cmocka_unit_test(test_symbols),
      cmocka_unit_test(test_memory_of_both_sides),
      cmocka_unit_test(test_pools),
#ifdef SIMT_REWRITTEN
      cmocka_unit_test(test_holes_join),
      cmocka_unit_test(test_new_memory_is_no_number),
      cmocka_unit_test(test_copies_beyond),
      cmocka_unit_test(test_diagnoses),
      cmocka_unit_test(test_use_after_free),
      cmocka_unit_test(test_overrun_is_found_at_free),
      cmocka_unit_test(test_leaks_are_told),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
