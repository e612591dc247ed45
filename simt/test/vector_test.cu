/* vector_test.cu - the vector types: size, alignment and member order on both sides, make_*(), dim3. */
#include "map.cuh"

#include <type_traits>

/* CUDA C++ Programming Guide, "Built-in Vector Types": the alignment of each. */
// clang-format off
#define EACH_TYPE(_)                                                                                                   \
  _(char1, signed char, 1, 1)                                                                                          \
  _(char2, signed char, 2, 2)                                                                                          \
  _(char3, signed char, 3, 1)                                                                                          \
  _(char4, signed char, 4, 4)                                                                                          \
  _(uchar1, unsigned char, 1, 1) _(uchar2, unsigned char, 2, 2) _(uchar3, unsigned char, 3, 1)                         \
      _(uchar4, unsigned char, 4, 4) _(short1, short, 1, 2) _(short2, short, 2, 4) _(short3, short, 3, 2)              \
          _(short4, short, 4, 8) _(ushort1, unsigned short, 1, 2) _(ushort2, unsigned short, 2, 4)                     \
              _(ushort3, unsigned short, 3, 2) _(ushort4, unsigned short, 4, 8) _(int1, int, 1, 4) _(int2, int, 2, 8)  \
                  _(int3, int, 3, 4) _(int4, int, 4, 16) _(uint1, unsigned, 1, 4) _(uint2, unsigned, 2, 8)             \
                      _(uint3, unsigned, 3, 4) _(uint4, unsigned, 4, 16) _(long1, long, 1, 8) _(long2, long, 2, 16)    \
                          _(long3, long, 3, 8) _(ulong1, unsigned long, 1, 8) _(ulong2, unsigned long, 2, 16)          \
                              _(ulong3, unsigned long, 3, 8) _(longlong1, long long, 1, 8)                             \
                                  _(longlong2, long long, 2, 16) _(longlong3, long long, 3, 8)                         \
                                      _(ulonglong1, unsigned long long, 1, 8) _(ulonglong2, unsigned long long, 2, 16) \
                                          _(ulonglong3, unsigned long long, 3, 8) _(float1, float, 1, 4)               \
                                              _(float2, float, 2, 8) _(float3, float, 3, 4) _(float4, float, 4, 16)    \
                                                  _(double1, double, 1, 8) _(double2, double, 2, 16)                   \
                                                      _(double3, double, 3, 8)
/* CUDA 13 says which: those of four 64-bit members come with an alignment of 16 or 32. */
#if CUDART_VERSION >= 13000
#define EACH_WIDE_TYPE(_)                                                                                            \
  _(long4_16a, long, 4, 16)                                                                                          \
  _(long4_32a, long, 4, 32)                                                                                          \
  _(ulong4_16a, unsigned long, 4, 16)                                                                                \
  _(ulong4_32a, unsigned long, 4, 32)                                                                                \
  _(longlong4_16a, long long, 4, 16) _(longlong4_32a, long long, 4, 32) _(ulonglong4_16a, unsigned long long, 4, 16) \
      _(ulonglong4_32a, unsigned long long, 4, 32) _(double4_16a, double, 4, 16) _(double4_32a, double, 4, 32)
#else
#define EACH_WIDE_TYPE(_)
#endif

// clang-format on
struct Layout {
  const char *name;
  int size, alignment, members, member_size;
};
#define LAYOUT(type, member, count, alignment) \
  {#type, (int)sizeof(type), (int)alignof(type), count, (int)sizeof(member)},
#define EXPECTED_ALIGNMENT(type, member, count, alignment) alignment,
static const Layout layouts[] = {EACH_TYPE(LAYOUT) EACH_WIDE_TYPE(LAYOUT)};
static const int alignments[] = {EACH_TYPE(EXPECTED_ALIGNMENT) EACH_WIDE_TYPE(EXPECTED_ALIGNMENT)};
enum { TYPES = sizeof(layouts) / sizeof(layouts[0]) };

#define PLAIN(type, member, count, alignment)                                                            \
  static_assert(std::is_trivially_copyable<type>::value && std::is_standard_layout<type>::value, #type); \
  static_assert(std::is_same<decltype(type().x), member>::value, #type);
EACH_TYPE(PLAIN)
EACH_WIDE_TYPE(PLAIN)

#define REPORT(type, member, count, alignment) \
  *out++ = (int)sizeof(type);                  \
  *out++ = (int)alignof(type);
static __global__ void layout_kernel(int *out) { EACH_TYPE(REPORT) EACH_WIDE_TYPE(REPORT) }

static void test_layout_is_the_gpus_on_both_sides(void **state) {
  (void)state;
  int *out = device_array<int>(2 * TYPES);
  layout_kernel<<<1, 1>>>(out);
  const std::vector<int> device = download(out, 2 * TYPES);
  for (int i = 0; i < TYPES; i++) {
    const Layout &l = layouts[i];
    const int bytes = l.members * l.member_size, rounded = (bytes + alignments[i] - 1) / alignments[i] * alignments[i];
    if (l.alignment != alignments[i] || l.size != rounded || device[2 * i] != l.size ||
        device[2 * i + 1] != l.alignment)
      fail_msg("%s: size %d alignment %d on the host, %d and %d on the device; expected %d and %d", l.name, l.size,
               l.alignment, device[2 * i], device[2 * i + 1], rounded, alignments[i]);
  }
}

static void test_dim3(void **state) {
  (void)state;
  static_assert(sizeof(dim3) == 12 && alignof(dim3) == 4 && std::is_trivially_copyable<dim3>::value, "dim3");
  const dim3 none, one(5), two(5, 6), three(5, 6, 7), list = {2, 3}, copy = uint3{7, 8, 9};
  const uint3 back = three;
  assert_true(none.x == 1 && none.y == 1 && none.z == 1);
  assert_true(one.x == 5 && one.y == 1 && one.z == 1);
  assert_true(two.x == 5 && two.y == 6 && two.z == 1);
  assert_true(list.x == 2 && list.y == 3 && list.z == 1);
  assert_true(copy.x == 7 && copy.y == 8 && copy.z == 9);
  assert_true(back.x == 5 && back.y == 6 && back.z == 7);
  constexpr dim3 constant(4, 4);
  static_assert(constant.x == 4 && constant.z == 1, "dim3 can be computed by the compiler");
}

/* A program's own operators must not collide with ours: CUDA has none. */
static __host__ __device__ float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

struct Made {
  char4 c;
  uchar3 uc;
  short4 s;
  ushort2 us;
  int3 i;
  uint4 ui;
  long2 l;
  longlong2 ll;
  ulonglong1 ull;
  float4 f;
  float3 f3;
  double2 d;
};

static __host__ __device__ Made make_all(int k) {
  Made m;
  m.c = make_char4((signed char)k, (signed char)-k, 3, 4);
  m.uc = make_uchar3((unsigned char)k, 200, 3);
  m.s = make_short4((short)k, -2, 3, (short)-k);
  m.us = make_ushort2((unsigned short)k, 65535);
  m.i = make_int3(k, -k, 7);
  m.ui = make_uint4((unsigned)k, 2, 3, 4294967295u);
  m.l = make_long2(k, -k);
  m.ll = make_longlong2(k * 1000000007ll, -1);
  m.ull = make_ulonglong1(18446744073709551615ull - (unsigned)k);
  m.f = make_float4((float)k, 2, 3, 4) + make_float4(0.5f, 0, 0, 1);
  m.f3 = make_float3((float)k, 1, 2);
  m.d = make_double2(k, 0.1);
  return m;
}

static __global__ void make_kernel(Made *out) { out[threadIdx.x] = make_all((int)threadIdx.x); }

static void test_make_puts_the_members_in_order(void **state) {
  (void)state;
  const int n = 33;
  Made *out = device_array<Made>(n);
  make_kernel<<<1, n>>>(out);
  const std::vector<Made> device = download(out, n);
  for (int k = 0; k < n; k++) {
    const Made &m = device[k];
    assert_true(m.c.x == k && m.c.y == -k && m.c.z == 3 && m.c.w == 4);
    assert_true(m.uc.x == k && m.uc.y == 200 && m.uc.z == 3);
    assert_true(m.s.x == k && m.s.y == -2 && m.s.z == 3 && m.s.w == -k);
    assert_true(m.us.x == k && m.us.y == 65535);
    assert_true(m.i.x == k && m.i.y == -k && m.i.z == 7);
    assert_true(m.ui.x == (unsigned)k && m.ui.y == 2 && m.ui.z == 3 && m.ui.w == 4294967295u);
    assert_true(m.l.x == k && m.l.y == -k);
    assert_true(m.ll.x == k * 1000000007ll && m.ll.y == -1);
    assert_true(m.ull.x == 18446744073709551615ull - (unsigned)k);
    assert_true(m.f.x == k + 0.5f && m.f.y == 2 && m.f.z == 3 && m.f.w == 5);
    assert_true(m.f3.x == k && m.f3.y == 1 && m.f3.z == 2);
    assert_true(m.d.x == k && m.d.y == 0.1);
  }
}

/* A float4 over four floats: which member is which. */
static __global__ void view_kernel(const float *in, float *out, int n) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n / 4) return;
  const float4 v = ((const float4 *)in)[i];
  ((float4 *)out)[i] = make_float4(v.w, v.z, v.y, v.x);
}

static void test_a_float4_views_four_floats(void **state) {
  (void)state;
  const int n = 4 * 131;
  std::vector<float> values(n);
  for (int i = 0; i < n; i++) values[i] = (float)i;
  float *in = upload(values), *out = device_array<float>(n);
  view_kernel<<<3, 64>>>(in, out, n);
  const std::vector<float> got = download(out, n);
  CHECK(cudaFree(in));
  for (int i = 0; i < n; i++) assert_true(got[i] == (float)(i / 4 * 4 + 3 - i % 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout_is_the_gpus_on_both_sides),
      cmocka_unit_test(test_dim3),
      cmocka_unit_test(test_make_puts_the_members_in_order),
      cmocka_unit_test(test_a_float4_views_four_floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
