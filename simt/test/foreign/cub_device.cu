// CUB's device-wide primitives, two-phase style: reduce, sum, min/max, argmin, scans, select, partition, radix sort, run-length, histogram.
#include <cub/cub.cuh>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <numeric>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

// runs a two-phase call
#define CUB_CALL(...) do { \
    void *d_temp_storage = NULL; size_t temp_storage_bytes = 0; \
    CK(__VA_ARGS__); \
    CK(cudaMalloc(&d_temp_storage, temp_storage_bytes)); \
    CK(__VA_ARGS__); \
    CK(cudaFree(d_temp_storage)); } while (0)

struct LessThan {
    int compare;
    __host__ __device__ __forceinline__ explicit LessThan(int compare) : compare(compare) {}
    __host__ __device__ __forceinline__ bool operator()(const int &a) const { return a < compare; }
};
struct CustomMin {
    template <typename T>
    __host__ __device__ __forceinline__ T operator()(const T &a, const T &b) const { return (b < a) ? b : a; }
};

template <typename T> T *dev(const std::vector<T> &v) { T *p; CK(cudaMalloc(&p, v.size() * sizeof(T))); CK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice)); return p; }
template <typename T> std::vector<T> host(const T *p, size_t n) { std::vector<T> v(n); CK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost)); return v; }

int main()
{
    const int n = 20011;
    int bad = 0;
    std::vector<int> h(n);
    std::vector<float> f(n);
    for (auto &v : h) v = rand() % 500;
    for (auto &v : f) v = rand() % 1000 / 8.f - 60;
    int *d_in = dev(h), *d_out = dev(h), *d_num = dev(std::vector<int>{0, 0});
    float *d_f = dev(f), *d_fout = dev(f);
    #define REPORT(what) printf("%-22s %d wrong\n", what, bad)

    CUB_CALL(cub::DeviceReduce::Sum(d_temp_storage, temp_storage_bytes, d_in, d_out, n));
    bad += host(d_out, 1)[0] != std::accumulate(h.begin(), h.end(), 0);
    CUB_CALL(cub::DeviceReduce::Max(d_temp_storage, temp_storage_bytes, d_f, d_fout, n));
    bad += host(d_fout, 1)[0] != *std::max_element(f.begin(), f.end());
    CUB_CALL(cub::DeviceReduce::Min(d_temp_storage, temp_storage_bytes, d_f, d_fout, n));
    bad += host(d_fout, 1)[0] != *std::min_element(f.begin(), f.end());
    CUB_CALL(cub::DeviceReduce::Reduce(d_temp_storage, temp_storage_bytes, d_in, d_out, n, CustomMin(), 100000));
    bad += host(d_out, 1)[0] != *std::min_element(h.begin(), h.end());
    cub::KeyValuePair<int, float> *d_arg, arg;
    CK(cudaMalloc(&d_arg, sizeof *d_arg));
    CUB_CALL(cub::DeviceReduce::ArgMin(d_temp_storage, temp_storage_bytes, d_f, d_arg, n));
    CK(cudaMemcpy(&arg, d_arg, sizeof arg, cudaMemcpyDeviceToHost));
    bad += arg.key != std::min_element(f.begin(), f.end()) - f.begin() || arg.value != f[arg.key];
    REPORT("reduce");

    CUB_CALL(cub::DeviceScan::ExclusiveSum(d_temp_storage, temp_storage_bytes, d_in, d_out, n));
    std::vector<int> got = host(d_out, n), want(n);
    for (int i = 0, s = 0; i < n; s += h[i++]) want[i] = s;
    bad += got != want;
    CUB_CALL(cub::DeviceScan::InclusiveSum(d_temp_storage, temp_storage_bytes, d_in, d_out, n));
    got = host(d_out, n);
    std::partial_sum(h.begin(), h.end(), want.begin());
    bad += got != want;
    CUB_CALL(cub::DeviceScan::InclusiveScan(d_temp_storage, temp_storage_bytes, d_in, d_out, CustomMin(), n));
    got = host(d_out, n);
    for (int i = 0, m = 1 << 30; i < n; i++) want[i] = m = std::min(m, h[i]);
    bad += got != want;
    REPORT("scan");

    CUB_CALL(cub::DeviceSelect::If(d_temp_storage, temp_storage_bytes, d_in, d_out, d_num, n, LessThan(100)));
    int k = host(d_num, 1)[0];
    want.clear();
    std::copy_if(h.begin(), h.end(), std::back_inserter(want), LessThan(100));
    bad += k != (int)want.size() || host(d_out, k) != want;
    std::vector<char> flags(n);
    for (int i = 0; i < n; i++) flags[i] = i % 3 == 1;
    char *d_flags = dev(flags);
    CUB_CALL(cub::DeviceSelect::Flagged(d_temp_storage, temp_storage_bytes, d_in, d_flags, d_out, d_num, n));
    k = host(d_num, 1)[0];
    want.clear();
    for (int i = 1; i < n; i += 3) want.push_back(h[i]);
    bad += k != (int)want.size() || host(d_out, k) != want;
    REPORT("select");

    std::vector<unsigned> keys(n);
    std::vector<int> values(n), index(n);
    for (int i = 0; i < n; i++) { keys[i] = (unsigned)rand() * 2654435761u; values[i] = index[i] = i; }
    unsigned *d_keys = dev(keys), *d_keys_out = dev(keys);
    int *d_values = dev(values), *d_values_out = dev(values);
    CUB_CALL(cub::DeviceRadixSort::SortPairs(d_temp_storage, temp_storage_bytes, d_keys, d_keys_out, d_values, d_values_out, n));
    std::stable_sort(index.begin(), index.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    bad += host(d_values_out, n) != index;
    CUB_CALL(cub::DeviceRadixSort::SortKeys(d_temp_storage, temp_storage_bytes, d_f, d_fout, n));
    std::vector<float> sorted = f;
    std::sort(sorted.begin(), sorted.end());
    bad += host(d_fout, n) != sorted;
    CUB_CALL(cub::DeviceRadixSort::SortKeysDescending(d_temp_storage, temp_storage_bytes, d_in, d_out, n));
    want = h;
    std::sort(want.rbegin(), want.rend());
    bad += host(d_out, n) != want;
    cub::DoubleBuffer<unsigned> buffer(d_keys, d_keys_out);
    CUB_CALL(cub::DeviceRadixSort::SortKeys(d_temp_storage, temp_storage_bytes, buffer, n, 0, 16));
    std::vector<unsigned> low = host(buffer.Current(), n);
    for (int i = 1; i < n; i++) bad += (low[i] & 0xffff) < (low[i - 1] & 0xffff);
    REPORT("radix sort");

    // runs of the sorted numbers: unique, counts; histogram by two ways
    CK(cudaMemcpy(d_in, want.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    int *d_counts = dev(h);
    CUB_CALL(cub::DeviceRunLengthEncode::Encode(d_temp_storage, temp_storage_bytes, d_in, d_out, d_counts, d_num, n));
    k = host(d_num, 1)[0];
    std::vector<int> unique = host(d_out, k), counts = host(d_counts, k);
    int total = 0;
    for (int i = 0; i < k; i++) { total += counts[i]; bad += counts[i] != std::count(h.begin(), h.end(), unique[i]); }
    bad += total != n;
    int *d_hist = dev(std::vector<int>(10));
    CUB_CALL(cub::DeviceHistogram::HistogramEven(d_temp_storage, temp_storage_bytes, d_in, d_hist, 11, 0, 500, n));
    std::vector<int> hist = host(d_hist, 10), ref(10, 0);
    for (int v : h) ref[v / 50]++;
    bad += hist != ref;
    REPORT("runs, histogram");

    // segmented sum over 7 segments
    std::vector<int> offsets{0, 100, 100, 5000, 5001, 12000, 20000, n}, segs(7);
    int *d_off = dev(offsets), *d_segs = dev(segs);
    CUB_CALL(cub::DeviceSegmentedReduce::Sum(d_temp_storage, temp_storage_bytes, d_in, d_segs, 7, d_off, d_off + 1));
    segs = host(d_segs, 7);
    for (int s = 0; s < 7; s++) bad += segs[s] != std::accumulate(&want[offsets[s]], &want[offsets[s]] + (offsets[s + 1] - offsets[s]), 0);
    REPORT("segments");
    for (void *p : std::vector<void *>{d_in, d_out, d_num, d_f, d_fout, d_arg, d_flags, d_keys, d_keys_out, d_values, d_values_out, d_counts, d_hist, d_off, d_segs}) CK(cudaFree(p));
    puts(bad ? "device primitives FAILED" : "device primitives PASSED");
    return bad != 0;
}
