// Kernels in templates of templates: variadic kernels, specialisations, explicit instantiation, members, policies, launches in
// odd places; attributes in every order.
#include <cstdio>
#include <tuple>
#include <type_traits>
#include <utility>

template <typename T> __global__ void typed(T *p, T v);
template <typename T> __global__ void typed(T *p, T v) { p[threadIdx.x] += v; }
template <> __global__ void typed<short>(short *p, short v) { p[threadIdx.x] += v * 2; }
template __global__ void typed<double>(double *, double);

template <typename... Ts> __global__ void variadic(int *out, Ts... values) { out[0] = static_cast<int>((values + ... + 0)); out[1] = sizeof...(Ts); }
template <template <typename> class Op, typename T, int N = 2> __global__ void policy(T *p) { p[threadIdx.x] = Op<T>::apply(p[threadIdx.x]) + N; }
template <typename T> struct Twice { __host__ __device__ static constexpr T apply(T x) { return 2 * x; } };
template <class T> struct Triple { static __device__ T apply(T x) { return 3 * x; } };

static void __global__ __launch_bounds__(64) static_void_global(int *p) { p[threadIdx.x]++; }
__launch_bounds__(64, 4) __global__ void bounds_first(int *p) { p[threadIdx.x]++; }
extern "C" { __global__ void c_linkage(int *p) { p[threadIdx.x]++; } }
namespace { __global__ void anonymous(int *p) { p[threadIdx.x]++; } }
inline namespace v1 { namespace detail { template <int I> __global__ void nested(int *p) { p[threadIdx.x] += I; } } }
__device__ __noinline__ int noinline_fn(int x) { return x + 1; }
__noinline__ __device__ int noinline_first(int x) { return x + 1; }
static __forceinline__ __device__ int forced(int x) { return x + 1; }
__forceinline__ static __device__ __host__ constexpr int forced2(int x) { return x + 1; }
[[nodiscard]] __device__ inline auto trailing(int x) -> decltype(x + 1) { return x + 1; }
__device__ int overloaded(int x) { return x + 1; }
__device__ float overloaded(float x) { return x + 100; }
struct Big { int a[20]; double b; __host__ __device__ int sum() const { int s = 0; for (int v : a) s += v; return s + (int)b; } };
enum class Mode : unsigned char { add, subtract };

__global__ void functions(int *p, Mode mode, const Big big, __grid_constant__ const Big fixed)
{
    int x = p[threadIdx.x];
    x = noinline_fn(noinline_first(forced(forced2(trailing(overloaded(x))))));
    x += overloaded(1.f) == 101.f;
    p[threadIdx.x] = (mode == Mode::add ? x : -x) + big.sum() + fixed.sum();
}

template <typename Derived> struct Launcher {
    int *p;
    template <typename K> void go(K k, int n) { static_cast<Derived *>(this)->prepare(); k<<<1, n>>>(p); }
    template <int I> void all() { if constexpr (I > 0) { detail::nested<I><<<1, 32>>>(p); this->template all<I - 1>(); } }
};
struct Concrete : Launcher<Concrete> { int prepared = 0; void (*member)(int *) = anonymous; void prepare() { prepared++; } };

template <typename T> struct Traits { static void run(T *p) { policy<Twice, T><<<1, dim3(32)>>>(p); policy<Triple, T, (5 > 4) ? 1 : 0><<<dim3{1}, 32, sizeof(T)>>>(p); } };

typedef void (*kernel_ptr)(int *);
kernel_ptr pick(int i) { static const kernel_ptr all[] = {bounds_first, &c_linkage, detail::nested<7>}; return all[i % 3]; }

int main()
{
    int *p, h[32], bad = 0;
    double *d;
    short *s;
    cudaMallocManaged(&p, sizeof h); cudaMallocManaged(&d, 32 * sizeof *d); cudaMallocManaged(&s, 32 * sizeof *s);
    for (int i = 0; i < 32; i++) { p[i] = i; d[i] = i; s[i] = i; }
    typed<<<1, 32>>>(p, 5); typed<double><<<1, 32>>>(d, 0.5); typed<short><<<1, 32>>>(s, 3);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++) bad += p[i] != i + 5 || d[i] != i + 0.5 || s[i] != i + 6;
    variadic<<<1, 1>>>(p); cudaDeviceSynchronize(); bad += p[0] != 0 || p[1] != 0;
    variadic<<<1, 1>>>(p, 1, 2.5f, 3L, (char)4); cudaDeviceSynchronize(); bad += p[0] != 10 || p[1] != 4;

    for (int i = 0; i < 32; i++) p[i] = 0;
    static_void_global<<<1, 32>>>(p); bounds_first<<<1, 32>>>(p); ::c_linkage<<<1, 32>>>(p); (anonymous)<<<1, 32>>>(p); v1::detail::nested<3><<<1, 32>>>(p);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++) bad += p[i] != 7;
    Concrete c;
    c.p = p;
    c.go(anonymous, 32); c.go(detail::nested<2>, 32); c.member<<<1, 32>>>(p); c.all<4>();
    Concrete *cp = &c;
    cp->member<<<1, 32>>>(cp->p); (cp->member)<<<1, 32>>>(p); (*cp).member<<<1, 32>>>(p);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++) bad += p[i] != 7 + 1 + 2 + 1 + 10 + 3;
    bad += c.prepared != 2;

    for (int i = 0; i < 32; i++) p[i] = i;
    Traits<int>::run(p);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++) bad += p[i] != 3 * (2 * i + 2) + 1;

    Big big = {}, fixed;
    for (int i = 0; i < 20; i++) { big.a[i] = i; fixed.a[i] = 1; }
    big.b = 2.5; fixed.b = 0;
    for (int i = 0; i < 32; i++) p[i] = i;
    functions<<<1, 32>>>(p, Mode::subtract, big, fixed);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++) bad += p[i] != -(i + 7) + 190 + 2 + 20;

    // odd places
    for (int i = 0; i < 32; i++) p[i] = 0;
    int n = 32, zero = 0;
    bool yes = n > 3;
    pick(0)<<<1, n>>>(p), pick(1)<<<1, n>>>(p); pick(2)<<<1, n>>>(p);                                  // 9
    yes ? bounds_first<<<1, n>>>(p) : c_linkage<<<1, n>>>(p);                                          // 10
    for (int i = 0; i < 3; i++, bounds_first<<<1, n>>>(p)) ;                                           // 13
    do c_linkage<<<1, n>>>(p); while (zero);                                                           // 14
    switch (n) { case 32: bounds_first<<<1, n>>>(p); break; default: bounds_first<<<1, 1>>>(p); }      // 15
    if (!yes) bounds_first<<<1, 1>>>(p); else if (n == 32) bounds_first<<<1, n>>>(p); else return 3;   // 16
    auto launch = [&](auto k) { k<<<n >> 5, n>>>(p); return cudaGetLastError(); };
    bad += launch(bounds_first) != cudaSuccess;                                                        // 17
    { using namespace detail; nested<sizeof(int) * 2><<<1, (n << 1) >> 1, 0>>>(p); }                   // 25
    detail::nested<(3 > 2)><<<1, n>>>(&p[zero >> 1]);                                                  // 26
    printf("%s", "k<<<1, 1>>>() in a string\n"); // and k<<<1, 1>>>(); in a comment
    const char *raw = R"(raw <<<"1">>> string)";
    bad += raw[4] != '<';
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++) if (p[i] != 26) { bad++; if (i == 0) printf("p[0] is %d, not 26\n", p[0]); }
    cudaError_t e = cudaGetLastError();
    cudaFree(p); cudaFree(d); cudaFree(s);
    printf("%s, %d wrong\n%s\n", cudaGetErrorString(e), bad, bad || e ? "syntax FAILED" : "syntax OK");
    return bad || e;
}
