/* thrust_test.cu - Thrust's vectors, algorithms and iterators, against plain loops, for ragged sizes. The same program
 * passes with NVIDIA's Thrust on a GPU. */
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/equal.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/find.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/generate.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/logical.h>
#include <thrust/mismatch.h>
#include <thrust/pair.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/swap.h>
#include <thrust/system_error.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/transform_scan.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>
#include <thrust/universal_vector.h>
#include <thrust/zip_function.h>

#include <algorithm>
#include <list>
#include <numeric>
#include <vector>

#include "collective.h" /* last: cmocka makes macros of common words */

static const int sizes[] = {0, 1, 31, 257, 1000, 4097};

template <class T>
static thrust::host_vector<T> random_vector(int n, int range) {
  thrust::host_vector<T> x((size_t)n);
  for (int i = 0; i < n; i++) x[(size_t)i] = (T)((int)(next_random() >> 8) % range - range / 2);
  return x;
}

/* Compares any two vectors, element by element, on the host. */
template <class A, class B>
static void assert_same(const A &actual, const B &expected, int line) {
  if (actual.size() != expected.size()) fail_msg("line %d: size %zu, not %zu", line, actual.size(), expected.size());
  thrust::host_vector<typename A::value_type> x(actual.begin(), actual.end());
  for (size_t i = 0; i < x.size(); i++)
    if (!(x[i] == expected[i])) fail_msg("line %d: element %zu of %zu differs", line, i, x.size());
}
#define SAME(actual, expected) assert_same(actual, expected, __LINE__)

/* ---- operations: some for the device alone, some for both ---- */

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct DeviceTwice { /* __device__ alone: it must not run on the host */
  __device__ int operator()(int x) const { return 2 * x; }
};
struct HostTwice {
  int operator()(int x) const { return 2 * x; }
};
struct IsOdd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};
struct Above {
  int limit;
  __host__ __device__ bool operator()(int x) const { return x > limit; }
};
struct ByLastDigit {
  __host__ __device__ bool operator()(int a, int b) const { return abs(a) % 10 < abs(b) % 10; }
};
struct Sevens {
  __host__ __device__ int operator()() const { return 7; }
};
struct TripleOfIndex {
  __host__ __device__ int operator()(long long i) const { return (int)(3 * i); }
};
struct StoreSum { /* of a tuple of references */
  template <class Tuple>
  __host__ __device__ void operator()(Tuple t) const {
    thrust::get<2>(t) = thrust::get<0>(t) + 10 * thrust::get<1>(t);
  }
};
struct CountInto {
  int *counts;
  __device__ void operator()(int x) const { atomicAdd(&counts[x & 7], 1); }
};
struct Larger {
  __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
struct SumAndCount {
  __host__ __device__ thrust::tuple<int, int> operator()(const thrust::tuple<int, int> &a,
                                                         const thrust::tuple<int, int> &b) const {
    return thrust::make_tuple(thrust::get<0>(a) + thrust::get<0>(b), thrust::get<1>(a) + thrust::get<1>(b));
  }
};
struct WithOne {
  __host__ __device__ thrust::tuple<int, int> operator()(int x) const { return thrust::make_tuple(x, 1); }
};
struct Dot {
  __host__ __device__ int operator()(const thrust::tuple<int, int> &t) const {
    return thrust::get<0>(t) * thrust::get<1>(t);
  }
};
struct SumOfTwo {
  __host__ __device__ int operator()(int a, int b) const { return a + b; }
};
struct Point {
  int x, y;
  __host__ __device__ bool operator==(const Point &other) const { return x == other.x && y == other.y; }
};
struct Nearer {
  __host__ __device__ bool operator()(const Point &a, const Point &b) const { return a.x + a.y < b.x + b.y; }
};

/* ---- vectors ---- */

static void test_vectors(void **state) {
  (void)state;
  thrust::device_vector<int> empty, zeros(5), sevens(5, 7), floats_from_zero(3, 0);
  assert_true(empty.empty() && empty.size() == 0);
  SAME(zeros, std::vector<int>(5));
  SAME(sevens, std::vector<int>(5, 7));
  thrust::host_vector<int> h = random_vector<int>(1000, 5000);
  thrust::device_vector<int> d = h, copy(d), part(h.begin() + 10, h.begin() + 20), listed{3, 1, 4, 1, 5};
  SAME(d, h);
  SAME(copy, h);
  SAME(part, std::vector<int>(h.begin() + 10, h.begin() + 20));
  SAME(listed, (std::vector<int>{3, 1, 4, 1, 5}));
  std::vector<int> standard(h.begin(), h.end());
  std::list<int> chain(h.begin(), h.end());
  SAME(thrust::device_vector<int>(standard), h);
  SAME(thrust::device_vector<int>(chain.begin(), chain.end()), h);
  SAME(thrust::device_vector<float>(d), h); /* of another type */
  SAME(thrust::device_vector<int>(thrust::make_counting_iterator(0), thrust::make_counting_iterator(4)),
       (std::vector<int>{0, 1, 2, 3}));
  assert_true(d == copy && d == h && !(d != h) && !(d == part));

  thrust::device_vector<int> assigned;
  assigned = h;
  SAME(assigned, h);
  assigned = standard;
  SAME(assigned, h);
  assigned = part;
  SAME(assigned, part);
  assigned.assign(4, 9);
  SAME(assigned, std::vector<int>(4, 9));
  thrust::host_vector<int> back = d;
  SAME(back, h);
  back = part;
  SAME(back, part);
  thrust::device_vector<int> moved = std::move(copy);
  SAME(moved, h);

  d.resize(1003);
  assert_int_equal(d[999], h[999]);
  assert_int_equal(d[1002], 0);
  d.resize(1005, -2);
  assert_int_equal(d[1004], -2);
  d.resize(2);
  assert_int_equal(d.size(), 2);
  for (int i = 0; i < 40; i++) d.push_back(i);
  assert_int_equal(d.size(), 42);
  assert_true(d.capacity() >= 42);
  assert_int_equal(d[0], h[0]);
  assert_int_equal(d[41], 39);
  assert_int_equal(d.front(), h[0]);
  assert_int_equal(d.back(), 39);
  d.pop_back();
  assert_int_equal(d.back(), 38);
  d.erase(d.begin());
  assert_int_equal(d[0], h[1]);
  d.erase(d.begin() + 1, d.begin() + 11);
  assert_int_equal(d[1], 10);
  d.insert(d.begin() + 1, 77);
  d.insert(d.begin(), h.begin(), h.begin() + 3);
  assert_int_equal(d[2], h[2]);
  assert_int_equal(d[4], 77);
  assert_int_equal(d[5], 10);
  assert_int_equal(d.size(), 34);
  d.clear();
  d.shrink_to_fit();
  assert_true(d.empty());
  d.swap(moved);
  SAME(d, h);
  assert_int_equal(moved.size(), 0);
  thrust::host_vector<int> backwards(d.rbegin(), d.rend());
  for (size_t i = 0; i < h.size(); i++) assert_int_equal(backwards[i], h[h.size() - 1 - i]);
  thrust::device_vector<Point> points(3, Point{1, 2});
  points[1] = Point{5, 6};
  Point one = points[1], two = points[2];
  assert_int_equal(one.x + 10 * one.y, 65);
  assert_int_equal(two.x + 10 * two.y, 21);
}

static void test_pointers_and_references(void **state) {
  (void)state;
  thrust::device_ptr<int> p = thrust::device_malloc<int>(100);
  thrust::fill(p, p + 100, 3);
  p[5] = 8;
  *(p + 6) = p[5];
  p[7] += 4;
  p[8]++;
  --p[9];
  p[10] = p[5] + p[7] * 2;
  int *raw = thrust::raw_pointer_cast(p), host[11];
  CHECK(cudaMemcpy(host, raw, sizeof host, cudaMemcpyDeviceToHost));
  const int expected[11] = {3, 3, 3, 3, 3, 8, 8, 7, 4, 2, 22};
  for (int i = 0; i < 11; i++) assert_int_equal(host[i], expected[i]);
  assert_true(p[5] == 8 && p[5] > p[4] && &p[5] == p + 5 && (p + 5) - p == 5 && p != nullptr && p < p + 1);
  thrust::device_ptr<const int> constant = p;
  assert_int_equal(constant[5], 8);
  thrust::device_ptr<int> wrapped = thrust::device_pointer_cast(raw), other(raw);
  assert_true(wrapped == p && other == p && thrust::raw_pointer_cast(&p[3]) == raw + 3);
  thrust::device_free(p);
  thrust::device_vector<float> v(4, 1.5f);
  float *data = thrust::raw_pointer_cast(v.data()), *first = thrust::raw_pointer_cast(&v[0]);
  assert_true(data == first && thrust::raw_pointer_cast(v.begin().base() == v.data() ? v.data() : v.data()) == data);
  float x = v[2];
  assert_true(x == 1.5f);
}

static void test_without_memory(void **state) {
  (void)state;
  bool caught = false;
  try {
    thrust::device_vector<char> huge((size_t)1 << 50);
  } catch (const std::bad_alloc &) {
    caught = true;
  }
  assert_true(caught);
  (void)cudaGetLastError();
  thrust::system_error error(cudaErrorInvalidValue, thrust::cuda_category(), "why");
  assert_int_equal(error.code().value(), cudaErrorInvalidValue);
  assert_non_null(strstr(error.what(), "why"));
}

/* ---- elements by themselves ---- */

static void test_transform(void **state) {
  (void)state;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  for (int n : sizes) {
    thrust::host_vector<int> h = random_vector<int>(n, 1000), k = random_vector<int>(n, 1000);
    thrust::device_vector<int> d = h, e = k, out((size_t)n);
    std::vector<int> twice, product;
    for (int i = 0; i < n; i++) twice.push_back(2 * h[(size_t)i]), product.push_back(h[(size_t)i] * k[(size_t)i]);
    int *from = thrust::raw_pointer_cast(d.data()), *to = thrust::raw_pointer_cast(out.data());

    assert_true(thrust::transform(d.begin(), d.end(), out.begin(), DeviceTwice()) == out.end());
    SAME(out, twice);
    thrust::transform(d.begin(), d.end(), e.begin(), out.begin(), thrust::multiplies<int>());
    SAME(out, product);
    assert_true(thrust::transform(thrust::device, from, from + n, to, DeviceTwice()) == to + n);
    SAME(out, twice);
    thrust::transform(thrust::cuda::par.on(stream), d.begin(), d.end(), e.begin(), out.begin(), thrust::multiplies<>());
    CHECK(cudaStreamSynchronize(stream));
    SAME(out, product);
    thrust::transform(thrust::cuda::par_nosync.on(stream), from, from + n, to, DeviceTwice());
    CHECK(cudaStreamSynchronize(stream));
    SAME(out, twice);
    thrust::transform(thrust::cuda::par, d.begin(), d.end(), d.begin(), thrust::negate<int>()); /* in place */
    thrust::host_vector<int> result((size_t)n);
    thrust::transform(h.begin(), h.end(), result.begin(), HostTwice());
    SAME(result, twice);
    thrust::transform(thrust::host, h.begin(), h.end(), k.begin(), result.begin(), thrust::multiplies<int>());
    SAME(result, product);
    for (int i = 0; i < n; i++) product[(size_t)i] = -h[(size_t)i];
    SAME(d, product);

    thrust::fill(out.begin(), out.end(), 5);
    thrust::transform_if(d.begin(), d.end(), out.begin(), Square(), IsOdd());
    for (int &x : product) x = x & 1 ? x * x : 5;
    SAME(out, product);
  }
  CHECK(cudaStreamDestroy(stream));
}

static void test_for_each(void **state) {
  (void)state;
  for (int n : sizes) {
    thrust::host_vector<int> h = random_vector<int>(n, 1000);
    thrust::device_vector<int> d = h, counts(8), k(h), out((size_t)n);
    thrust::for_each(d.begin(), d.end(), CountInto{thrust::raw_pointer_cast(counts.data())});
    thrust::for_each_n(thrust::device, d.begin(), n / 2, CountInto{thrust::raw_pointer_cast(counts.data())});
    std::vector<int> expected(8), sums;
    for (int i = 0; i < n; i++) expected[h[(size_t)i] & 7] += i < n / 2 ? 2 : 1;
    SAME(counts, expected);

    thrust::for_each(thrust::make_zip_iterator(thrust::make_tuple(d.begin(), k.begin(), out.begin())),
                     thrust::make_zip_iterator(thrust::make_tuple(d.end(), k.end(), out.end())), StoreSum());
    for (int i = 0; i < n; i++) sums.push_back(11 * h[(size_t)i]);
    SAME(out, sums);
    int total = 0;
    thrust::for_each(h.begin(), h.end(), [&total](int x) { total += x; });
    assert_int_equal(total, std::accumulate(h.begin(), h.end(), 0));
  }
}

static void test_fill_and_sequence(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::device_vector<int> d(size);
    std::vector<int> expected(size);
    thrust::sequence(d.begin(), d.end());
    for (size_t i = 0; i < size; i++) expected[i] = (int)i;
    SAME(d, expected);
    thrust::sequence(thrust::device, d.begin(), d.end(), 5);
    for (size_t i = 0; i < size; i++) expected[i] = (int)i + 5;
    SAME(d, expected);
    thrust::sequence(d.begin(), d.end(), 5, -3);
    for (size_t i = 0; i < size; i++) expected[i] = 5 - 3 * (int)i;
    SAME(d, expected);
    thrust::fill_n(d.begin(), n / 2, 9);
    for (size_t i = 0; i < size / 2; i++) expected[i] = 9;
    SAME(d, expected);
    thrust::replace(d.begin(), d.end(), 9, 1);
    thrust::replace_if(d.begin(), d.end(), IsOdd(), 2);
    for (int &x : expected) x = x == 9 || x & 1 ? 2 : x;
    SAME(d, expected);
    thrust::generate(d.begin(), d.end(), Sevens());
    SAME(d, std::vector<int>(size, 7));
    thrust::tabulate(d.begin(), d.end(), TripleOfIndex());
    for (size_t i = 0; i < size; i++) expected[i] = 3 * (int)i;
    SAME(d, expected);
    thrust::reverse(d.begin(), d.end());
    std::reverse(expected.begin(), expected.end());
    SAME(d, expected);
    thrust::host_vector<int> h(size);
    int next = 0;
    thrust::generate(h.begin(), h.end(), [&next] { return next++; });
    for (int i = 0; i < n; i++) assert_int_equal(h[(size_t)i], i);
    thrust::device_vector<int> e(h);
    thrust::swap_ranges(d.begin(), d.end(), e.begin());
    SAME(e, expected);
    SAME(d, h);
  }
}

static void test_gather_and_scatter(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> h = random_vector<int>(n, 1000), order(size);
    for (int i = 0; i < n; i++) order[(size_t)i] = i;
    for (int i = n - 1; i > 0; i--) std::swap(order[(size_t)i], order[next_random() % (unsigned)(i + 1)]);
    thrust::device_vector<int> d = h, map = order, out(size);
    std::vector<int> gathered(size), scattered(size);
    for (size_t i = 0; i < size; i++) gathered[i] = h[(size_t)order[i]], scattered[(size_t)order[i]] = h[i];
    thrust::gather(map.begin(), map.end(), d.begin(), out.begin());
    SAME(out, gathered);
    thrust::scatter(d.begin(), d.end(), map.begin(), out.begin());
    SAME(out, scattered);
    auto there = thrust::make_permutation_iterator(d.begin(), map.begin());
    thrust::copy(there, there + n, out.begin());
    SAME(out, gathered);
    assert_int_equal(thrust::reduce(there, there + n), std::accumulate(h.begin(), h.end(), 0));
    thrust::copy(d.begin(), d.end(), thrust::make_permutation_iterator(out.begin(), map.begin()));
    SAME(out, scattered);
    thrust::fill(out.begin(), out.end(), 0);
    thrust::scatter_if(d.begin(), d.end(), map.begin(), d.begin(), out.begin(), IsOdd());
    for (size_t i = 0; i < size; i++) scattered[(size_t)order[i]] = h[i] & 1 ? h[i] : 0;
    SAME(out, scattered);
  }
}

/* ---- copies and selections ---- */

static void test_copy(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> h = random_vector<int>(n, 1000), back(size);
    thrust::device_vector<int> d(size), e(size);
    assert_true(thrust::copy(h.begin(), h.end(), d.begin()) == d.end());
    thrust::copy(d.begin(), d.end(), e.begin());
    thrust::copy_n(e.begin(), n, back.begin());
    SAME(back, h);
    std::vector<int> standard(size);
    std::list<int> chain;
    thrust::copy(d.begin(), d.end(), standard.begin());
    SAME(standard, h);
    thrust::copy(standard.begin(), standard.end(), std::back_inserter(chain));
    assert_true(std::equal(chain.begin(), chain.end(), h.begin()) && chain.size() == size);
    thrust::device_vector<double> wide(size);
    thrust::copy(h.begin(), h.end(), wide.begin());
    SAME(wide, h);
    thrust::host_vector<long long> wider(size);
    thrust::copy(wide.begin(), wide.end(), wider.begin());
    SAME(wider, h);
  }
}

static void test_copy_if(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> h = random_vector<int>(n, 1000), mark = random_vector<int>(n, 100);
    thrust::device_vector<int> d = h, m = mark, out(size), other(size);
    std::vector<int> odd, even, marked, unmarked;
    for (size_t i = 0; i < size; i++) {
      (h[i] & 1 ? odd : even).push_back(h[i]);
      (mark[i] > 7 ? marked : unmarked).push_back(h[i]);
    }
    out.erase(thrust::copy_if(d.begin(), d.end(), out.begin(), IsOdd()), out.end());
    SAME(out, odd);
    out.resize(size);
    out.resize(
        (size_t)(thrust::copy_if(thrust::device, d.begin(), d.end(), m.begin(), out.begin(), Above{7}) - out.begin()));
    SAME(out, marked);
    out = d;
    out.erase(thrust::remove_if(out.begin(), out.end(), IsOdd()), out.end());
    SAME(out, even);
    out = d;
    out.erase(thrust::remove_if(out.begin(), out.end(), m.begin(), Above{7}), out.end());
    SAME(out, unmarked);
    out = d;
    out.erase(thrust::remove(out.begin(), out.end(), 4), out.end());
    std::vector<int> rest(h.begin(), h.end());
    rest.erase(std::remove(rest.begin(), rest.end(), 4), rest.end());
    SAME(out, rest);
    out = d;
    auto middle = thrust::stable_partition(out.begin(), out.end(), IsOdd());
    assert_int_equal(middle - out.begin(), odd.size());
    rest = odd;
    rest.insert(rest.end(), even.begin(), even.end());
    SAME(out, rest);
    auto ends = thrust::partition_copy(d.begin(), d.end(), out.begin(), other.begin(), IsOdd());
    assert_int_equal(ends.first - out.begin(), odd.size());
    assert_int_equal(ends.second - other.begin(), even.size());
    thrust::host_vector<int> wanted(size);
    wanted.resize((size_t)(thrust::copy_if(h.begin(), h.end(), wanted.begin(), IsOdd()) - wanted.begin()));
    SAME(wanted, odd);
  }
}

/* ---- many to one ---- */

static void test_reduce(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> h = random_vector<int>(n, 1000), k = random_vector<int>(n, 1000);
    thrust::device_vector<int> d = h, e = k;
    int *raw = thrust::raw_pointer_cast(d.data()), sum = 0, squares = 0, dot = 0, largest = -3, odd = 0, fours = 0;
    for (size_t i = 0; i < size; i++) {
      sum += h[i];
      squares += h[i] * h[i];
      dot += h[i] * k[i];
      largest = std::max(largest, h[i]);
      odd += h[i] & 1;
      fours += h[i] == 4;
    }
    assert_int_equal(thrust::reduce(d.begin(), d.end()), sum);
    assert_int_equal(thrust::reduce(thrust::device, raw, raw + n), sum);
    assert_int_equal(thrust::reduce(d.begin(), d.end(), 100), sum + 100);
    assert_int_equal(thrust::reduce(d.begin(), d.end(), -3, Larger()), largest);
    assert_int_equal(thrust::reduce(d.begin(), d.end(), -3, thrust::maximum<int>()), largest);
    assert_int_equal(thrust::reduce(h.begin(), h.end(), 1, thrust::plus<int>()), sum + 1);
    assert_int_equal(thrust::transform_reduce(d.begin(), d.end(), Square(), 0, thrust::plus<int>()), squares);
    assert_int_equal(thrust::inner_product(d.begin(), d.end(), e.begin(), 5), dot + 5);
    assert_int_equal(thrust::inner_product(thrust::device, d.begin(), d.end(), e.begin(), 0, thrust::plus<int>(),
                                           thrust::multiplies<int>()),
                     dot);
    assert_int_equal(thrust::count_if(d.begin(), d.end(), IsOdd()), odd);
    assert_int_equal(thrust::count(d.begin(), d.end(), 4), fours);
    thrust::tuple<int, int> both =
        thrust::transform_reduce(d.begin(), d.end(), WithOne(), thrust::make_tuple(0, 0), SumAndCount());
    assert_int_equal(thrust::get<0>(both), sum);
    assert_int_equal(thrust::get<1>(both), n);
    auto pairs = thrust::make_zip_iterator(thrust::make_tuple(d.begin(), e.begin()));
    assert_int_equal(thrust::transform_reduce(pairs, pairs + n, Dot(), 0, thrust::plus<int>()), dot);
    auto products = thrust::make_transform_iterator(pairs, Dot());
    assert_int_equal(thrust::reduce(products, products + n), dot);
    thrust::counting_iterator<int> first(0);
    assert_int_equal(thrust::transform_reduce(first, first + n, DeviceTwice(), 0, thrust::plus<int>()), n * (n - 1));
    assert_int_equal(thrust::reduce(thrust::make_constant_iterator(3), thrust::make_constant_iterator(3) + n), 3 * n);
  }
}

static void test_a_long_sum(void **state) {
  (void)state;
  const int n = (1 << 22) + 1000;
  thrust::device_vector<float> d((size_t)n, 0.1f);
  float sum = thrust::reduce(d.begin(), d.end());
  assert_true(fabsf(sum - 0.1f * (float)n) < 1e-5f * (float)n); /* one by one it would be off by percents */
}

static void test_extrema(void **state) {
  (void)state;
  for (int n : sizes) {
    thrust::host_vector<int> h = random_vector<int>(n, 50);
    thrust::device_vector<int> d = h;
    auto smallest = std::min_element(h.begin(), h.end()), largest = std::max_element(h.begin(), h.end());
    assert_int_equal(thrust::min_element(d.begin(), d.end()) - d.begin(), smallest - h.begin());
    assert_int_equal(thrust::max_element(d.begin(), d.end()) - d.begin(), largest - h.begin());
    assert_int_equal(thrust::max_element(thrust::device, d.begin(), d.end(), thrust::greater<int>()) - d.begin(),
                     smallest - h.begin());
    if (n == 0) continue;
    auto both = thrust::minmax_element(d.begin(), d.end());
    assert_int_equal(*both.first, *smallest);
    assert_int_equal(*both.second, *largest);
    int *raw = thrust::raw_pointer_cast(d.data());
    assert_int_equal(thrust::min_element(thrust::device, raw, raw + n) - raw, smallest - h.begin());
  }
  assert_int_equal(thrust::max(3, 4), 4);
  assert_int_equal(thrust::min(3, 4), 3);
}

static void test_questions(void **state) {
  (void)state;
  for (int n : sizes) {
    thrust::host_vector<int> h = random_vector<int>(n, 4 * n + 4);
    thrust::device_vector<int> d = h, e = h;
    int limit = 2 * n;
    assert_int_equal(thrust::any_of(d.begin(), d.end(), Above{limit}), std::any_of(h.begin(), h.end(), Above{limit}));
    assert_int_equal(thrust::all_of(d.begin(), d.end(), IsOdd()), std::all_of(h.begin(), h.end(), IsOdd()));
    assert_int_equal(thrust::none_of(thrust::device, d.begin(), d.end(), IsOdd()),
                     std::none_of(h.begin(), h.end(), IsOdd()));
    assert_int_equal(thrust::find_if(d.begin(), d.end(), Above{n}) - d.begin(),
                     std::find_if(h.begin(), h.end(), Above{n}) - h.begin());
    assert_true(thrust::find(d.begin(), d.end(), 100000) == d.end());
    assert_true(thrust::equal(d.begin(), d.end(), e.begin()));
    if (n == 0) continue;
    e[(size_t)n - 1] = 12345;
    assert_false(thrust::equal(d.begin(), d.end(), e.begin()));
    auto place = thrust::mismatch(d.begin(), d.end(), e.begin());
    assert_int_equal(place.first - d.begin(), n - 1);
    assert_int_equal(place.second - e.begin(), n - 1);
  }
}

/* ---- order ---- */

static void test_scan(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> h = random_vector<int>(n, 1000);
    thrust::device_vector<int> d = h, out(size), keys(size);
    std::vector<int> up_to(size), before(size), largest(size), squares(size), anew(size), steps(size);
    int sum = 0, most = -1000, square = 0, run = 0;
    for (size_t i = 0; i < size; i++) {
      keys[i] = (int)i / 10;
      run = i % 10 == 0 ? h[i] : run + h[i];
      anew[i] = run;
      before[i] = sum + 3;
      up_to[i] = sum += h[i];
      largest[i] = most = std::max(most, h[i]);
      squares[i] = square += h[i] * h[i];
      steps[i] = i == 0 ? h[0] : h[i] - h[i - 1];
    }
    assert_true(thrust::inclusive_scan(d.begin(), d.end(), out.begin()) == out.end());
    SAME(out, up_to);
    thrust::exclusive_scan(d.begin(), d.end(), out.begin(), 3);
    SAME(out, before);
    thrust::exclusive_scan(thrust::device, d.begin(), d.end(), out.begin());
    for (int &x : before) x -= 3;
    SAME(out, before);
    thrust::inclusive_scan(d.begin(), d.end(), out.begin(), Larger());
    SAME(out, largest);
    thrust::transform_inclusive_scan(d.begin(), d.end(), out.begin(), Square(), thrust::plus<int>());
    SAME(out, squares);
    thrust::inclusive_scan_by_key(keys.begin(), keys.end(), d.begin(), out.begin());
    SAME(out, anew);
    thrust::exclusive_scan_by_key(keys.begin(), keys.end(), d.begin(), out.begin());
    for (size_t i = 0; i < size; i++) anew[i] -= h[i];
    SAME(out, anew);
    thrust::adjacent_difference(d.begin(), d.end(), out.begin());
    SAME(out, steps);
    int *raw = thrust::raw_pointer_cast(d.data());
    thrust::inclusive_scan(thrust::device, raw, raw + n, raw); /* in place */
    SAME(d, up_to);
    thrust::exclusive_scan(h.begin(), h.end(), h.begin());
    SAME(h, before);
  }
}

static void test_sort(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> h = random_vector<int>(n, 300), place(size);
    thrust::device_vector<int> d = h;
    std::vector<int> up(h.begin(), h.end()), down, digits(up);
    std::sort(up.begin(), up.end());
    down.assign(up.rbegin(), up.rend());
    std::stable_sort(digits.begin(), digits.end(), ByLastDigit());
    assert_int_equal(thrust::is_sorted(d.begin(), d.end()), std::is_sorted(h.begin(), h.end()));
    thrust::sort(d.begin(), d.end());
    SAME(d, up);
    assert_true(thrust::is_sorted(d.begin(), d.end()));
    thrust::sort(thrust::cuda::par, d.begin(), d.end(), thrust::greater<int>());
    SAME(d, down);
    d = h;
    thrust::stable_sort(d.begin(), d.end(), ByLastDigit());
    SAME(d, digits);
    d = h;
    int *raw = thrust::raw_pointer_cast(d.data());
    thrust::sort(thrust::device, raw, raw + n);
    SAME(d, up);

    thrust::device_vector<int> values(size);
    thrust::sequence(values.begin(), values.end());
    d = h;
    thrust::stable_sort_by_key(d.begin(), d.end(), values.begin());
    SAME(d, up);
    std::vector<int> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return h[(size_t)a] < h[(size_t)b]; });
    SAME(values, order);
    thrust::sort_by_key(values.begin(), values.end(), d.begin(), thrust::less<int>()); /* back again */
    SAME(d, h);

    thrust::device_vector<float> x(size);
    for (size_t i = 0; i < size; i++) x[i] = (float)h[i] + 0.25f * (float)(i % 4);
    thrust::host_vector<float> reals = x;
    auto both = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), d.begin()));
    thrust::sort(both, both + n); /* by the float, then by the int */
    for (size_t i = 0; i < size; i++) order[i] = (int)i;
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return reals[(size_t)a] < reals[(size_t)b] ||
             (reals[(size_t)a] == reals[(size_t)b] && h[(size_t)a] < h[(size_t)b]);
    });
    for (size_t i = 0; i < size; i++) up[i] = h[(size_t)order[i]];
    SAME(d, up);
#ifdef SIMT_REWRITTEN /* CUDA 13.0's Thrust puts negative numbers first here, on the host */
    thrust::sort(h.begin(), h.end(), thrust::greater<int>());
    SAME(h, down);
#endif
  }
  thrust::device_vector<Point> points(3);
  points[0] = Point{5, 5}, points[1] = Point{1, 1}, points[2] = Point{0, 3};
  thrust::sort(points.begin(), points.end(), Nearer());
  SAME(points, (std::vector<Point>{{1, 1}, {0, 3}, {5, 5}}));
}

static void test_keys_and_runs(void **state) {
  (void)state;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> keys = random_vector<int>(n, 20), h = random_vector<int>(n, 1000);
    std::sort(keys.begin(), keys.end());
    thrust::device_vector<int> k = keys, d = h, keys_out(size), values_out(size);
    std::vector<int> unique, sums, first, most;
    for (size_t i = 0; i < size; i++) {
      if (i == 0 || keys[i] != keys[i - 1])
        unique.push_back(keys[i]), sums.push_back(0), first.push_back(h[i]), most.push_back(h[i]);
      sums.back() += h[i];
      most.back() = std::max(most.back(), h[i]);
    }
    auto ends = thrust::reduce_by_key(k.begin(), k.end(), d.begin(), keys_out.begin(), values_out.begin());
    keys_out.resize((size_t)(ends.first - keys_out.begin()));
    values_out.resize((size_t)(ends.second - values_out.begin()));
    SAME(keys_out, unique);
    SAME(values_out, sums);
    values_out.resize(size);
    auto other = thrust::reduce_by_key(k.begin(), k.end(), d.begin(), thrust::make_discard_iterator(),
                                       values_out.begin(), thrust::equal_to<int>(), Larger());
    values_out.resize((size_t)(other.second - values_out.begin()));
    SAME(values_out, most);
    values_out.resize(size);
    auto counts = thrust::reduce_by_key(thrust::device, k.begin(), k.end(), thrust::constant_iterator<int>(1),
                                        thrust::make_discard_iterator(), values_out.begin());
    values_out.resize((size_t)(counts.second - values_out.begin()));
    assert_int_equal(thrust::reduce(values_out.begin(), values_out.end()), n);

    thrust::device_vector<int> v = d, u = k, bounds(unique.size());
    auto unique_ends = thrust::unique_by_key(u.begin(), u.end(), v.begin());
    v.resize((size_t)(unique_ends.second - v.begin()));
    SAME(v, first);
    u = k;
    u.erase(thrust::unique(u.begin(), u.end()), u.end());
    SAME(u, unique);
    thrust::upper_bound(k.begin(), k.end(), u.begin(), u.end(), bounds.begin());
    for (size_t i = 0; i < unique.size(); i++) {
      auto end = std::upper_bound(keys.begin(), keys.end(), unique[i]);
      assert_int_equal(bounds[i], end - keys.begin());
    }
    assert_int_equal(thrust::lower_bound(k.begin(), k.end(), 3) - k.begin(),
                     std::lower_bound(keys.begin(), keys.end(), 3) - keys.begin());
    assert_int_equal(thrust::binary_search(thrust::device, k.begin(), k.end(), 3),
                     std::binary_search(keys.begin(), keys.end(), 3));
  }
}

/* ---- iterators, tuples, operations ---- */

static void test_iterators(void **state) {
  (void)state;
  thrust::device_vector<int> d(100);
  thrust::sequence(d.begin(), d.end());
  auto squares = thrust::make_transform_iterator(thrust::make_counting_iterator(1), Square());
  assert_int_equal(squares[3], 16);
  assert_int_equal(*(squares + 2), 9);
  assert_int_equal((squares + 7) - squares, 7);
  auto changed = thrust::make_transform_iterator(d.begin(), Square());
  assert_int_equal(changed[9], 81);
  thrust::device_vector<int> out(changed, changed + 100);
  assert_int_equal(out[99], 99 * 99);
  auto zip = thrust::make_zip_iterator(d.begin(), thrust::make_constant_iterator(5), changed);
  thrust::transform(zip, zip + 100, out.begin(),
                    thrust::make_zip_function([] __host__ __device__(int a, int b, int c) { return a + b + c; }));
  assert_int_equal(out[20], 20 + 5 + 400);
  thrust::tuple<int, int, int> third = zip[3];
  assert_int_equal(thrust::get<0>(third) + thrust::get<1>(third) + thrust::get<2>(third), 17);
  thrust::copy(thrust::make_reverse_iterator(d.end()), thrust::make_reverse_iterator(d.begin()), out.begin());
  assert_int_equal(out[0], 99);
  assert_int_equal(thrust::reduce(d.rbegin(), d.rbegin() + 10), 945);
  thrust::host_vector<int> h(10, 4), k(10, 6);
  auto on_host = thrust::make_zip_iterator(thrust::make_tuple(h.begin(), k.begin()));
  thrust::get<0>(on_host[2]) = 7;
  assert_int_equal(h[2], 7);
  assert_int_equal(thrust::transform_reduce(on_host, on_host + 10, Dot(), 0, thrust::plus<int>()), 9 * 24 + 42);
}

static void test_tuples(void **state) {
  (void)state;
  thrust::tuple<int, float, char> t(1, 2.5f, 'c'), u = t;
  assert_true(t == u && !(t < u) && t <= u);
  thrust::get<1>(u) = 3;
  assert_true(t != u && t < u && u > t);
  int i;
  float f;
  char c;
  thrust::tie(i, f, c) = u;
  assert_true(i == 1 && f == 3 && c == 'c');
  assert_int_equal((thrust::tuple_size<thrust::tuple<int, float, char>>::value), 3);
  thrust::tuple_element<1, thrust::tuple<int, float, char>>::type element = 1.5f;
  assert_true(element == 1.5f);
  auto [x, y, z] = t;
  assert_true(x == 1 && y == 2.5f && z == 'c');
  thrust::pair<int, float> p(1, 2.0f), q = thrust::make_pair(1, 3.0f);
  assert_true(p < q && p != q && p.first == q.first);
}

static void test_placeholders_and_lambdas(void **state) {
  (void)state;
  using namespace thrust::placeholders;
  for (int n : sizes) {
    size_t size = (size_t)n;
    thrust::host_vector<int> h = random_vector<int>(n, 100), k = random_vector<int>(n, 100);
    thrust::device_vector<int> d = h, e = k, out(size);
    int a = 3, *raw = thrust::raw_pointer_cast(out.data());
    std::vector<int> expected(size), bent(size);
    int large = 0;
    for (size_t i = 0; i < size; i++) {
      expected[i] = a * h[i] + k[i];
      bent[i] = h[i] % 7 - a;
      large += h[i] > 10 && h[i] < 40;
    }
    thrust::transform(d.begin(), d.end(), e.begin(), out.begin(), a * _1 + _2);
    SAME(out, expected);
    assert_int_equal(thrust::count_if(d.begin(), d.end(), _1 > 10 && _1 < 40), large);
    thrust::transform(d.begin(), d.end(), out.begin(), [a] __device__(int x) -> int { return x % 7 - a; });
    SAME(out, bent);
    thrust::for_each(thrust::device, thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n),
                     [raw] __device__(int i) { raw[i] = 2 * i; });
    for (size_t i = 0; i < size; i++) expected[i] = 2 * (int)i;
    SAME(out, expected);
  }
}

static void test_operations(void **state) {
  (void)state;
  assert_int_equal(thrust::plus<int>()(7, 2), 9);
  assert_int_equal(thrust::minus<int>()(7, 2), 5);
  assert_int_equal(thrust::divides<int>()(7, 2), 3);
  assert_int_equal(thrust::modulus<int>()(7, 2), 1);
  assert_int_equal(thrust::minimum<int>()(7, 2), 2);
  assert_int_equal(thrust::bit_xor<int>()(7, 2), 5);
  assert_int_equal(thrust::square<int>()(7), 49);
  assert_true(thrust::greater<int>()(7, 2) && !thrust::less<int>()(7, 2) && thrust::greater_equal<>()(7, 7));
  assert_true(thrust::not_equal_to<int>()(7, 2) && thrust::less_equal<int>()(2, 2));
  assert_true(thrust::logical_and<bool>()(true, true) && thrust::logical_or<bool>()(false, true));
  assert_true(thrust::logical_not<bool>()(false));
  assert_true(thrust::plus<>()(1, 0.5f) == 1.5f);
}

/* ---- in a kernel ---- */

__global__ void sort_rows(int *x, int columns, int *sums) {
  int *row = x + threadIdx.x * columns;
  thrust::sort(thrust::seq, row, row + columns);
  sums[threadIdx.x] = thrust::reduce(thrust::seq, row, row + columns, 0, thrust::plus<int>());
  thrust::pair<int, int> ends = thrust::make_pair(row[0], row[columns - 1]);
  thrust::tuple<int, int> t(ends.first, thrust::max(ends.first, ends.second));
  thrust::transform(thrust::seq, row, row + columns, row, thrust::negate<int>());
  row[0] = -thrust::get<0>(t);
  thrust::swap(row[0], row[columns - 1]);
}

static void test_in_a_kernel(void **state) {
  (void)state;
  enum { ROWS = 33, COLUMNS = 20 };
  thrust::host_vector<int> h = random_vector<int>(ROWS * COLUMNS, 1000);
  thrust::device_vector<int> d = h, sums(ROWS);
  sort_rows<<<1, ROWS>>>(thrust::raw_pointer_cast(d.data()), COLUMNS, thrust::raw_pointer_cast(sums.data()));
  finish();
  std::vector<int> expected;
  for (int r = 0; r < ROWS; r++) {
    auto row = h.begin() + r * COLUMNS;
    std::sort(row, row + COLUMNS);
    expected.push_back(std::accumulate(row, row + COLUMNS, 0));
    for (int c = 0; c < COLUMNS; c++) row[c] = -row[c];
    std::swap(row[0], row[COLUMNS - 1]);
  }
  SAME(d, h);
  SAME(sums, expected);
}

/* ---- more ---- */

struct Draw { /* element i of a sequence */
  __host__ __device__ float operator()(unsigned i) const {
    thrust::default_random_engine engine(17);
    thrust::uniform_real_distribution<float> uniform(-2, 3);
    engine.discard(i);
    return uniform(engine);
  }
};

static void test_random_numbers(void **state) {
  (void)state;
  const int n = 10000;
  thrust::device_vector<float> d((size_t)n);
  thrust::transform(thrust::make_counting_iterator(0u), thrust::make_counting_iterator((unsigned)n), d.begin(), Draw());
  thrust::host_vector<float> h = d;
  uint64_t x = 17;
  double sum = 0, squares = 0;
  thrust::minstd_rand engine(17);
  thrust::uniform_int_distribution<int> dice(1, 6);
  thrust::random::normal_distribution<double> normal(10, 2);
  for (int i = 0; i < n; i++) {
    x = x * 48271 % 2147483647;
    thrust::minstd_rand copy = engine, other = engine;
    double fraction = (double)(x - 1) / 2147483646.0, bell = normal(copy);
    assert_int_equal(dice(other), 1 + (int)(6 * fraction));
    assert_int_equal(engine(), x);
    assert_true(fabs(h[(size_t)i] - (5 * fraction - 2)) < 1e-6);
    sum += bell;
    squares += (bell - 10) * (bell - 10);
  }
  assert_true(fabs(sum / n - 10) < 0.1 && fabs(squares / n - 4) < 0.25);
  thrust::minstd_rand0 old(5);
  assert_int_equal(old(), 5 * 16807);
  assert_true(engine == engine && thrust::minstd_rand(3) != engine);
}

__global__ void complex_arithmetic(thrust::complex<float> *z) {
  thrust::complex<float> a(3, 4), i(0, 1);
  z[0] = a * i + 2.0f;
  z[1] = a / i;
  z[2] = thrust::conj(a);
  z[3] = thrust::complex<float>(thrust::abs(a), thrust::norm(a));
  z[4] = thrust::exp(i * 3.14159265f);
  z[5].real(a.imag());
}

static void test_complex_numbers(void **state) {
  (void)state;
  thrust::device_vector<thrust::complex<float>> d(6);
  complex_arithmetic<<<1, 1>>>(thrust::raw_pointer_cast(d.data()));
  finish();
  thrust::host_vector<thrust::complex<float>> h = d;
  const float expected[6][2] = {{-2, 3}, {4, -3}, {3, -4}, {5, 25}, {-1, 0}, {4, 0}};
  for (size_t i = 0; i < 6; i++)
    assert_true(fabsf(h[i].real() - expected[i][0]) < 1e-5f && fabsf(h[i].imag() - expected[i][1]) < 1e-5f);
}

static void test_universal_vectors(void **state) {
  (void)state;
  thrust::host_vector<int> h = random_vector<int>(1000, 1000);
  thrust::universal_vector<int> u(h.begin(), h.end()), empty(3);
  int *raw = thrust::raw_pointer_cast(u.data());
  int &first = u[0];
  first = 5000;
  assert_int_equal(raw[0], 5000);
  thrust::sort(u.begin(), u.end());
  assert_int_equal(raw[999], 5000);
  h[0] = 5000;
  std::sort(h.begin(), h.end());
  SAME(u, h);
  for (int &x : u) x = -x;
  thrust::transform(u.begin(), u.end(), u.begin(), DeviceTwice());
  CHECK(cudaDeviceSynchronize());
  for (size_t i = 0; i < 1000; i++) assert_int_equal(u[i], -2 * h[i]);
  assert_int_equal(empty[2], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vectors),
      cmocka_unit_test(test_pointers_and_references),
      cmocka_unit_test(test_without_memory),
      cmocka_unit_test(test_transform),
      cmocka_unit_test(test_for_each),
      cmocka_unit_test(test_fill_and_sequence),
      cmocka_unit_test(test_gather_and_scatter),
      cmocka_unit_test(test_copy),
      cmocka_unit_test(test_copy_if),
      cmocka_unit_test(test_reduce),
      cmocka_unit_test(test_a_long_sum),
      cmocka_unit_test(test_extrema),
      cmocka_unit_test(test_questions),
      cmocka_unit_test(test_scan),
      cmocka_unit_test(test_sort),
      cmocka_unit_test(test_keys_and_runs),
      cmocka_unit_test(test_iterators),
      cmocka_unit_test(test_tuples),
      cmocka_unit_test(test_placeholders_and_lambdas),
      cmocka_unit_test(test_operations),
      cmocka_unit_test(test_in_a_kernel),
      cmocka_unit_test(test_random_numbers),
      cmocka_unit_test(test_complex_numbers),
      cmocka_unit_test(test_universal_vectors),
  };
  return cmocka_run_group_tests_name("thrust", tests, NULL, NULL);
}
