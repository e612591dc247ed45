/* rewrite_test.c - the rewriter's output and refusals, case by case. Runs of white space count as one space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka's header needs the four above */
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* a case says only what it needs */

#include "simt/rewrite/text.h"

int rewrite_main(int argc, char **argv); /* simt/rewrite/main.c */

/* What a device function becomes: the file's own. */
#define OWN "static __attribute__((unused))"

typedef struct Case {
  const char *name, *input;
  const char *wanted[6];   /* each is part of the output; of the messages, if `fails` */
  const char *unwanted[3]; /* none of these is */
  const char *device;      /* the text preprocessed with __CUDA_ARCH__ */
  const char *option;
  int fails; /* so many errors */
} Case;

static const Case CASES[] = {
    /* ---- launches ---- */
    {"launch",
     "void f() { k<<<1, 2>>>(p, n); }",
     {"::simt::kern(\"k\", \"t.cu\", 1, [=](auto... simt_a) { k(simt_a...); }).cfg(1, 2).run(p, n);"}},
    {"launch: four parameters", "void f() { k<<<g, b, 4 * n, s>>>(); }", {".cfg(g, b, 4 * n, s).run();"}},
    {"launch: > in a template argument",
     "void f() { k<int, (3 > 2) ? 5 : 6><<<1, 2>>>(p); }",
     {"kern(\"k<int, (3 > 2) ? 5 : 6>\"", "{ k<int, (3 > 2) ? 5 : 6>(simt_a...); }"}},
    {"launch: >> in a template argument",
     "void f() { k<S<(8>>1)>::v><<<1, 2>>>(p); }",
     {"{ k<S<(8>>1)>::v>(simt_a...); }).cfg(1, 2).run(p)"}},
    {"launch: << in a template argument", "void f() { k<1<<3><<<1, 2>>>(p); }", {"{ k<1<<3>(simt_a...); }).cfg(1, 2)"}},
    {"launch: namespace",
     "void f() { ns::k<float><<<1, 2>>>(p); ::k<<<3, 4>>>(); ::a::b<int>::k<<<5, 6>>>(); }",
     {"kern(\"ns::k<float>\"", "{ ::k(simt_a...); }).cfg(3, 4)", "{ ::a::b<int>::k(simt_a...); }).cfg(5, 6)"}},
    {"launch: a return before ::", "void f() { return ::k<<<3, 4>>>(); }", {"return ::simt::kern(\"::k\""}},
    {"launch: function pointers",
     "void f() { kp<<<1, 2>>>(); (*kp)<<<3, 4>>>(); table[i + 1][2]<<<5, 6>>>(); }",
     {"{ kp(simt_a...); }).cfg(1, 2)", "{ (*kp)(simt_a...); }).cfg(3, 4)",
      "{ table[i + 1][2](simt_a...); }).cfg(5, 6)"}},
    {"launch: members",
     "void f() { o.kp<<<1, 2>>>(); this->kp<<<3, 4>>>(); (*o).t[1].kp<<<5, 6>>>(); choose<3>(n)<<<7, 8>>>(); }",
     {"{ o.kp(simt_a", "{ this->kp(simt_a", "{ (*o).t[1].kp(simt_a", "{ choose<3>(n)(simt_a"}},
    {"launch: dependent name",
     "template <class T> void f() { T::template k<int><<<1, 2>>>(p); }",
     {"{ T::template k<int>(simt_a...); })"}},
    {"launch: if and else",
     "void f() { if (a) k<<<1, 2>>>(); else m<<<3, 4>>>(); if (b) (*kp)<<<5, 6>>>(); }",
     {"if (a) ::simt::kern(\"k\"", "; else ::simt::kern(\"m\"", "if (b) ::simt::kern(\"(*kp)\""}},
    {"launch: in a loop's body",
     "void f() { for (;;) (*kp)<<<5, 6>>>(); while (x) (k)<<<5, 6>>>(); }",
     {"for (;;) ::simt::kern(\"(*kp)\"", "while (x) ::simt::kern(\"(k)\""}},
    {"launch: braces", "void f() { k<<<{2, 2}, {3, 3, 3}>>>(p); }", {".cfg({2, 2}, {3, 3, 3}).run(p)"}},
    {"launch: a formatter's spelling",
     "void f() { k << <g, b >> > (p); k < 8 > << < g, b >> >(q); }",
     {"{ k (simt_a...); }).cfg( g, b ).run (p)", "{ k < 8 > (simt_a...); }).cfg( g, b ).run (q)"}},
    {"launch: shift in the parameters", "void f() { k<<<n >> 8, 1 << 8>>>(p); }", {".cfg(n >> 8, 1 << 8).run(p)"}},
    {"launch: template at the end of the parameters", "void f() { k<<<g, F<3>>>>(p); }", {".cfg(g, F<3>).run(p)"}},
    {"launch: template before the end", "void f() { k<<<g<A<B<3>>>(), 1>>>(p); }", {".cfg(g<A<B<3>>>(), 1).run(p)"}},
    {"launch: brackets in comments and strings",
     "void f() { k<<<1 /* ) >>>( */, 2>>>(\"<<<\", // )\n '>', R\"x(>>>)\")x\"); }",
     {".cfg(1 /* ) >>>( */, 2).run(\"<<<\", // ) '>', R\"x(>>>)\")x\")"}},
    {"launch: no launch in a string",
     "const char *s = \"k<<<1, 2>>>(p)\"; // k<<<1, 2>>>(p)",
     {"\"k<<<1, 2>>>(p)\"; // k<<<1, 2>>>(p)"}},
    {"launch: lines",
     "void f() {\n k\n<\nint\n>\n<<<\n1\n,\n2\n>>>\n(\np\n)\n;\n}",
     {"kern(\"k<int>\", \"t.cu\", 2, [=]"}},
    {"launch: two in a statement",
     "void f() { k<<<1, 2>>>(a), m<<<3, 4>>>(b); c ? k<<<1, 2>>>(a) : k<<<1, 3>>>(a); }",
     {".cfg(1, 2).run(a), ::simt::kern(\"m\"", ".cfg(3, 4).run(b); c ? ::simt::kern(\"k\"",
      ".run(a) : ::simt::kern(\"k\""}},
    {"launch: in an argument", "void f() { run([&] { k<<<1, 2>>>(a); }); }", {"run([&] { ::simt::kern(\"k\""}},
    {"launch: at file scope", "int x = (k<<<1, 2>>>(p), 0);", {"1, [](auto... simt_a)"}},
    {"launch: in a lambda at file scope", "auto l = [] { k<<<1, 2>>>(p); };", {"1, [=](auto... simt_a)"}},
    {"launch: in a member function", "struct S { void f() { k<<<1, 2>>>(p); } int y; };", {"1, [=](auto... simt_a)"}},
    {"launch: pack", "template <class... A> void f(A... a) { k<<<1, 2>>>(a...); }", {".run(a...)"}},
    {"launch: operator<< <T> is none",
     "void f() { operator<< <int>(a, b); x.operator<< <T>(y); }",
     {"operator<< <int>(a, b); x.operator<< <T>(y);"}},

    {"launch: inspected",
     "void f() { k<<<1, 2>>>(p, 0); }",
     {"[=](auto simt_0, auto) __attribute__((noinline, no_sanitize_thread, no_sanitize_coverage)) { k(simt_0, 0); })"},
     {NULL},
     NULL,
     "--inspect"},

    /* ---- arguments whose text stays in the call ---- */
    {"zero",
     "void f() { k<<<1, 2>>>(0, n, 0); }",
     {"[=](auto, auto simt_1, auto) { k(0, simt_1, 0); }", ".run(::simt::literal_zero{}, n, ::simt::literal_zero{})"}},
    {"zero: NULL, with its markers",
     "void f() { k<<<1, 2>>>(\n# 1 \"t.cu\" 3 4\n __null\n# 1 \"t.cu\"\n , n); }",
     {"[=](auto, auto simt_1) { k(__null, simt_1); }"}},
    {"zero: braces",
     "void f() { k<<<1, 2>>>(p, {1, x}); }",
     {"[=](auto simt_0, auto) { k(simt_0, {1, x}); }", ".run(p, ::simt::literal_zero{} )"}},
    {"zero: commas of a template",
     "void f() { k<<<1, 2>>>(g<int, 3>(x), S<1, 2>{}, op<int, 0>, 0); }",
     {"[=](auto simt_0, auto simt_1, auto simt_2, auto) {", ".run(g<int, 3>(x), S<1, 2>{}, op<int, 0>, ::simt"}},
    {"zero: a shift in template arguments",
     "void f() { k<<<1, 2>>>(g<N << 3, 2>(x), 0); }",
     {"[=](auto simt_0, auto) {", ".run(g<N << 3, 2>(x), ::simt"}},
    {"zero: commas between comparisons",
     "void f() { k<<<1, 2>>>(a < b, c > d, 0); }",
     {"[=](auto simt_0, auto simt_1, auto) {"}},
    {"zero: not in an expression",
     "void f() { k<<<1, 2>>>(0 + n, a[0], 0x0, nullptr); }",
     {".run(0 + n, a[0], 0x0, nullptr)"}},
    {"zero: beside a pack", "template <class... A> void f(A... a) { k<<<1, 2>>>(a..., 0); }", {"[=](auto... simt_a)"}},

    /* ---- __shared__ ---- */
    {"shared",
     "__global__ void k() { __shared__ float a[4], b; }",
     {"void k() { static thread_local float a[4], b; }"}},
    {"shared: any order",
     "__global__ void k() { static __shared__ int a; volatile __shared__ int b; float __shared__ c[2]; __shared__ "
     "volatile "
     "int d; }",
     {"static thread_local int a; volatile static thread_local int b; float static thread_local c[2]; static "
      "thread_local "
      "volatile int d;"},
     {"static static"}},
    {"shared: alignment",
     "__global__ void k() { __shared__ alignas(16) float a[4]; alignas(8) __shared__ int b; __shared__ "
     "__attribute__((aligned(16))) int c; x: __shared__ alignas(32) int d; }",
     {"{ alignas(16) static thread_local float a[4]; alignas(8) static thread_local int b; static thread_local "
      "__attribute__((aligned(16))) int c; x: alignas(32) static thread_local int d; }"}},
    {"shared: after if ()",
     "__global__ void k() { if (x) { __shared__ int a; } for (;;) { __shared__ int b; } }",
     {"if (x) { static thread_local int a; } for (;;) { static thread_local int b; }"}},
    {"shared: of a class",
     "__global__ void k() { __shared__ typename B<T>::Storage s; __shared__ union { int a; float b; } u; }",
     {"static thread_local typename B<T>::Storage s; static thread_local union { int a; float b; } u;"}},
    {"shared: at file scope", "__shared__ int a[3];", {"static thread_local int a[3];"}},
    {"dynamic",
     "__global__ void k() { extern __shared__ float s[]; }",
     {"{ float (&s)[] = *(float (*)[])simt_dynamic_shared(); }"}},
    {"dynamic: any order and type",
     "__global__ void k() { __shared__ extern volatile unsigned char s[]; extern __align__(16) __shared__ float4 t[]; "
     "extern "
     "__shared__ __attribute__((aligned(8))) T *u[]; extern __shared__ alignas(16) ns::V<int, 3> v[]; }",
     {"volatile unsigned char (&s)[] = *(volatile unsigned char (*)[])simt_dynamic_shared();",
      "float4 (&t)[] = *(float4 (*)[])simt_dynamic_shared();", "T *(&u)[] = *(T *(*)[])simt_dynamic_shared();",
      "ns::V<int, 3> (&v)[] = *(ns :: V < int , 3 > (*)[])simt_dynamic_shared();"}},
    {"dynamic: several, sizes, none",
     "__global__ void k() { extern __shared__ int a[], b[][33], c[256], d; }",
     {"int (&a)[] = *(int (*)[])simt_dynamic_shared(), (&b)[][33] = *(int (*)[][33])simt_dynamic_shared(), (&c)[256] = "
      "*(int "
      "(*)[256])simt_dynamic_shared(), (&d) = *(int (*))simt_dynamic_shared();"}},
    {"dynamic: at file scope",
     "extern __shared__ float s[];\n__device__ void f() { s[0] = 1; }\n__global__ void k() { x.s = 1; }\n"
     "__global__ void m(float *s) { s[0] = 1; }\nvoid host() { int s; }",
     {"void f() { float (&s)[] = *(float (*)[])simt_dynamic_shared(); { s[0] = 1; } }", "void k() { x.s = 1; }",
      "void m(float *s) { s[0] = 1; }", "void host() { int s; }"},
     {"extern", "float s[];"}},

    /* ---- __device__, __constant__, __managed__ variables ---- */
    {"variable",
     "__device__ int a;\n__device__ float b[2] = {1, 2};\n__constant__ float c[4];\n__constant__ int d = 3;",
     {"static int a __attribute__((unused, section(\"simt_bss,\\\"aw\\\",@nobits#\")));",
      "static float b[2] __attribute__((unused, section(\"simt_device\"))) = {1, 2};",
      "static float c[4] __attribute__((unused, section(\"simt_cbss,\\\"aw\\\",@nobits#\")));",
      "static int d __attribute__((unused, section(\"simt_constant\"))) = 3;"}},
    {"variable: managed",
     "__device__ __managed__ int a = 1; __managed__ float *b;",
     {"static int a __attribute__((unused, section(\"simt_managed\"))) = 1;",
      "static float *b __attribute__((unused, section(\"simt_mbss"}},
    {"variable: several",
     "__device__ int a, b[2] = {1, 2}, *c;",
     {"static int a __attribute__((unused, section(\"simt_bss,\\\"aw\\\",@nobits#\"))), b[2] "
      "__attribute__((unused, section(\"simt_device\"))) = {1, 2}, *c __attribute__((unused, section(\"simt_bss"}},
    {"variable: static and alignment",
     "static __device__ int a; __device__ static int b; __device__ alignas(16) int c;",
     {"static int a __attr", "static int b __attr", "alignas(16) static int c __attr"},
     {"static static"}},
    {"variable: constant ones stay",
     "__constant__ const int a = 1; __device__ constexpr int b = 2; const __device__ int c = 3;",
     {"static const int a = 1;", "constexpr int b = 2;", "const static int c = 3;"},
     {"section"}},
    {"variable: pointers to constants",
     "__device__ const float *a; __device__ float *const b = 0; __constant__ const T<int, 3> *c;",
     {"static const float *a __attribute__", "static float *const b = 0;", "static const T<int, 3> *c __attr"}},
    {"variable: function pointers",
     "__device__ float (*f)(float) = g; __device__ F t[] = {a, b}; __device__ int (*u[2])(int);",
     {"static float (*f)(float) __attribute__((unused, section(\"simt_device\"))) = g;",
      "static F t[] __attribute__((unused, section(\"simt_device\"))) = {a, b};",
      "static int (*u[2])(int) __attribute__"}},
    {"variable: of a class",
     "__device__ cuda::atomic<int, s> a(0); __device__ P p{1, 2};",
     {"static cuda::atomic<int, s> a __attribute__((unused, section(\"simt_device\")))(0);",
      "static P p __attribute__((unused, section(\"simt_device\"))){1, 2};"}},
    {"variable: with its class",
     "__device__ struct B { int v[3]; } b = {{1, 2, 3}}, c; __constant__ struct { int x; } d;",
     {"static struct B { int v[3]; } b __attribute__((unused, section(\"simt_device\"))) = {{1, 2, 3}}, c "
      "__attribute__",
      "static struct { int x; } d __attribute__"}},
    {"variable: extern",
     "extern __device__ int a; __device__ int a = 3;",
     {"extern int a; int a __attribute__((unused, section(\"simt_device\"))) = 3;"}},
    {"variable: namespace and class",
     "namespace n { __device__ int a; } struct S { static __device__ int b; }; __device__ int S::b = 3; template "
     "<class T> "
     "__device__ int V<T>::c = 3; inline __device__ int d;",
     {"namespace n { static int a __attr", "static int b; };",
      " int S::b __attribute__((unused, section(\"simt_device\"))) = 3;",
      "template <class T> int V<T>::c = 3; inline int d;"}},
    {"variable: -rdc",
     "__device__ int a; extern __constant__ float b[];",
     {" int a __attribute__", "extern float b[];"},
     {"static"},
     NULL,
     "--rdc"},
    {"variable: clang",
     "__device__ int a;",
     {"static int a __attribute__((unused, section(\"simt_device\")));"},
     {NULL},
     NULL,
     "--clang"},
    {"variable: not a function",
     "__device__ int a(); __device__ float b(int, float); __device__ T<int> c(const T<int> &x);",
     {OWN " int a(); " OWN " float b(int, float); " OWN " T<int> c(const T<int> &x);"},
     {"section"}},
    {"variable: a parameter named as one",
     "__global__ void k(__grid_constant__ const S s) {}",
     {"void k( const S s) {}"}},

    /* ---- functions ---- */
    {"function: words vanish",
     "__global__ void __launch_bounds__(256, 2) k() {} template <class T> __host__ __device__ T f(T x) { return x; }",
     {" void k() {}", "template <class T> T f(T x) { return x; }"},
     {"__"}},
    {"function: a file's own",
     "__device__ int f(int); __device__ int f(int x) { return x; } int __device__ g() { return 1; }",
     {OWN " int f(int); " OWN " int f(int x) { return x; } int " OWN " g()"}},
    {"function: others' too",
     "__host__ __device__ int f() { return 1; } __device__ __host__ int g(); __global__ void k();",
     {" int f() { return 1; } int g(); void k();"},
     {"static", "inline"}},
    {"function: -rdc", "__device__ int f(int);", {" int f(int);"}, {"static"}, NULL, "--rdc"},
    {"function: inline already",
     "inline __device__ int f(); __device__ inline int g(); static __device__ int h();",
     {"inline int f(); inline int g(); static int h();"},
     {"static inline", "inline static"}},
    {"function: members",
     "struct S { __device__ int f(); __device__ S() {} __device__ ~S() {} }; __device__ int S::f() { return 1; }",
     {"struct S { int f(); S() {} ~S() {} }; inline int S::f()"}},
    {"function: specialisation",
     "template <> __device__ int f<int>(int x) { return x; }",
     {"template <> inline int f<int>(int x)"}},
    {"function: friend",
     "struct S { friend __device__ int f(S); }; __device__ int f(S) { return 1; }",
     {"inline int f(S)"}},
    {"function: operator",
     "__device__ float4 operator+(float4 a, float4 b) { return a; } __device__ bool operator<(P a, P b);",
     {OWN " float4 operator+(float4 a", OWN " bool operator<(P a"}},
    {"function: extern",
     "extern __device__ int f(int); extern \"C\" __device__ int g(int);",
     {" " OWN " int f(int); extern \"C\" int g"}},
    {"function: forceinline",
     "__device__ __forceinline__ int f(); static __forceinline__ __device__ int g(); __forceinline__ inline int h(); "
     "inline "
     "__device__ __forceinline__ int i();",
     {" inline __attribute__((always_inline)) int f();", "static inline __attribute__((always_inline)) int g();",
      " __attribute__((always_inline)) inline int h();", "inline __attribute__((always_inline)) int i();"},
     {"inline inline"}},
    {"function: forceinline twice",
     "__forceinline__ __device__ __forceinline__ int f();",
     {"inline __attribute__((always_inline)) __attribute__((always_inline)) int f();"}},
    {"function: noinline",
     "__noinline__ __device__ int f(); __attribute__((__noinline__)) int g(); __attribute__((cold, __noinline__)) int "
     "h();",
     {"__attribute__((noinline)) " OWN " int f(); __attribute__((__noinline__)) int g(); __attribute__((cold, "
      "__noinline__)) int h();"}},
    {"function: lambda",
     "void f() { auto l = [=] __host__ __device__ (int i) { return i; }; }",
     {"[=] (int i) { return i; }"}},
    {"function: system header untouched",
     "# 1 \"/usr/include/s.h\" 1 3\n__device__ int a;\nk<<<\n# 2 \"t.cu\" 2\nint x;",
     {"__device__ int a; k<<<"}},
    {"function: system header untouched after its markers",
     "# 1 \"/usr/include/s.h\" 1 3\nint a;\n# 9 \"/usr/include/s.h\" 3\n__device__ int x;\n# 2 \"t.cu\" 2\n",
     {"__device__ int x;"}},
    {"function: file again after a system header",
     "# 1 \"/usr/include/s.h\" 1 3\nint a;\n# 2 \"t.cu\" 2\n__device__ int x;",
     {"static int x"}},

    /* ---- unroll ---- */
    {"unroll",
     "void f() {\n#pragma unroll\nfor (;;) ;\n#pragma unroll 4\nfor (;;) ;\n#pragma unroll(8)\nfor (;;) ;\n#pragma "
     "unroll N\nfor "
     "(;;) ;\n#pragma unroll 512\nfor (;;) ;\n}",
     {"{ #pragma GCC unroll 32 for (;;) ; #pragma GCC unroll 4 for (;;) ; #pragma GCC unroll 8 for (;;) ; #pragma GCC "
      "unroll 32 "
      "for (;;) ; #pragma GCC unroll 64 for (;;) ; }"}},
    {"unroll: not what would become too large",
     "void f() {\n#pragma unroll\nfor (int i = 0; i < 64; i++)\n#pragma unroll\nfor (int j = 0; j < 64; j++)\n#pragma "
     "unroll\nfor (int k = 0; k < 64; k++) x[i] += y[j] * z[k];\n}",
     {"{ for (int i = 0; i < 64; i++) #pragma GCC unroll 32 for (int j = 0; j < 64; j++) #pragma GCC unroll 32 for "
      "(int k"}},
    {"unroll: counts that are constants",
     "const int N = 4, M = 2;\nvoid f() {\n#pragma unroll\nfor (int i = 0; i < N; i += M)\n#pragma unroll\nfor (int j "
     "= 0; "
     "j < N; j++)\n#pragma unroll\nfor (int k = 0; k < 64; k++) x[i] += y[j] * z[k];\n}",
     {"{ #pragma GCC unroll 32 for (int i = 0; i < N; i += M) #pragma GCC unroll 32 for (int j"}},
    {"unroll: not at all",
     "void f() {\n#pragma nounroll\nfor (;;) ;\n#pragma unroll 1\nfor (;;) ;\n}",
     {"{ for (;;) ; for (;;) ; }"}},
    {"unroll: only a loop that g++ takes",
     "void f() {\n#pragma unroll\nx = 1;\n#pragma unroll\nwhile (x) ;\n#pragma unroll\nfor (; a && b;) ;\n#pragma "
     "unroll\nfor (; a ? b : "
     "c;) ;\n#pragma omp parallel\nfor (;;) ;\n}",
     {"{ x = 1; while (x) ; for (; a && b;) ; for (; a ? b : c;) ; #pragma omp parallel for (;;) ; }"}},

    /* ---- kernels as void * ---- */
    {"kernel argument",
     "void f() { cudaLaunchKernel((void *)k, g, b, a, 0, 0); cudaLaunchCooperativeKernel((const void *)k<int, 3>, g, "
     "b, a); "
     "cudaFuncSetAttribute(reinterpret_cast<const void *>(k), x, 1); cudaFuncGetAttributes(&a, (void const *)k); "
     "cudaOccupancyMaxPotentialBlockSize(&a, &b, (void *)k, 0, 0); cudaLaunchKernel((void *)&k, g); }",
     {"cudaLaunchKernel( k, g", "cudaLaunchCooperativeKernel( k<int, 3>, g", "cudaFuncSetAttribute( (k), x",
      "cudaFuncGetAttributes(&a, k);", "cudaOccupancyMaxPotentialBlockSize(&a, &b, k, 0", "cudaLaunchKernel( &k, g"}},
    {"kernel address",
     "__global__ void k() {} template <class T> __global__ void m() {} void f() { p.func = (void *)k; q = (const void "
     "*)&n::k; t = "
     "{(void *)m<int>, (void *)x}; u = reinterpret_cast<void *>(k); v = reinterpret_cast<const void *>(&k); k; }",
     {"p.func = (void *)::simt::kernel_address(k);", "q = (const void *)::simt::kernel_address(&n::k);",
      "(void *)::simt::kernel_address(m<int>), (void *)x};", "u = (void *) (::simt::kernel_address(k));",
      "v = reinterpret_cast<const void *>(::simt::kernel_address(&k)); k;"}},
    {"kernel argument: other casts stay",
     "void f() { cudaMalloc((void **)&p, 4); cudaMemcpy((void *)p, q, 4); }",
     {"cudaMalloc((void **)&p, 4); cudaMemcpy((void *)p, q, 4);"}},

    /* ---- __CUDA_ARCH__ ---- */
    {"arch: a kernel's body is the device's",
     "__global__ void k() {\n\n a(); }\nint host;",
     {"{ # 2 \"t.cu\" b(); # 3 \"t.cu\" } int host;"},
     {"a()"},
     "__global__ void k() {\n b();\n }\nint host;"},
    {"arch: both ways where both may call",
     "__host__ __device__ void f() { a(); }",
     {"void f() { if (::simt_in_kernel()) { # 1 \"t.cu\" b(); } else { # 1 \"t.cu\" a(); }}"},
     {NULL},
     "__host__ __device__ void f() { b(); }"},
    {"arch: host functions stay", "void f() { a(); }", {"void f() { a(); }"}, {"b()"}, "void f() { b(); }"},
    {"arch: only the device's",
     "int x;\n\n\nint y;",
     {"int x; # 2 \"t.cu\" " OWN " void f() { } # 4 \"t.cu\" int y;"},
     {NULL},
     "int x;\n__device__ void f() { }\n\nint y;"},
    {"arch: only the host's",
     "int x;\n__device__ double atomicAdd(double *a, double b) { }\nint y;",
     {"int x;", "int y;"},
     {"atomicAdd"},
     "int x;\n\nint y;"},
    {"arch: other things of the device's do not come",
     "int x;",
     {"int x;"},
     {"only"},
     "int x; typedef int only; int only_too;"},
    {"arch: one or the other",
     "int x;\n\n__device__ int f() { return 1; }\nint y;",
     {OWN " int f() { return 2; }", "int y;"},
     {"return 1"},
     "int x;\n__device__ int f() { return 2; }\n\nint y;"},
    {"arch: a kernel of the host's alone stays",
     "int x;\n__global__ void k() { a(); }\nint y;",
     {"void k() { a(); }"},
     {NULL},
     "int x;\n\nint y;"},
    {"arch: in a namespace, in a class, first and last",
     "namespace n { struct S {\n int y;\n };\n }\n",
     {"namespace n { # 1 \"t.cu\" " OWN " int f();", "int y;", "int g() { return 1; }", "int h();"},
     {NULL},
     "namespace n { __device__ int f(); struct S {\n int y; __device__ int g() { return 1; }\n };\n }\n __device__ int "
     "h();"},
    {"arch: no PTX where there is another way",
     "__device__ int f() { return 1; }",
     {"return 1"},
     {"asm"},
     "__device__ int f() { asm(\"add.s32\"); }"},

    /* ---- refused ---- */
    {"refused: no name",
     "void f() { <<<1, 2>>>(p); }",
     {"t.cu:1: error: simt: there is no kernel's name before <<<"},
     .fails = 1},
    {"refused: not closed",
     "void f() {\n k<<<1, 2>>(p);\n k<<<1, 2>>>;\n}",
     {"t.cu:2: error: simt: after this <<<", "t.cu:3: error"},
     .fails = 2},
    {"refused: one parameter", "void f() { k<<<1>>>(p); }", {"this one has 1"}, .fails = 1},
    {"refused: five parameters", "void f() { k<<<1, 2, 3, 4, 5>>>(p); }", {"this one has 5"}, .fails = 1},
    {"refused: no )", "void f() { k<<<1, 2>>>(p; }", {"a ) is missing"}, .fails = 1},
    {"refused: dynamic parallelism",
     "__global__ void k() { m<<<1, 2>>>(); }\n__device__ void f() { m<<<1, 2>>>(); }\nvoid h() { k<<<1, 2>>>(); }",
     {"t.cu:1: error: simt: a kernel launches a kernel (dynamic parallelism)", "t.cu:2: error"},
     {"t.cu:3"},
     .fails = 2},
    {"refused: synchronising in a kernel",
     "__global__ void k() { cudaDeviceSynchronize(); }",
     {"dynamic parallelism"},
     .fails = 1},
    {"refused: PTX",
     "__device__ int f() { int r; asm volatile(\"mov.u32 %0, %%laneid;\" : \"=r\"(r)); return r; }",
     {"t.cu:1: error: simt: inline PTX \"mov.u32 %0, %%laneid;\"", "threadIdx.x % warpSize"},
     .fails = 1},
    {"refused: PTX in a lambda",
     "void f() { g([=] __device__() { asm(\"add.s32 %0, 1;\"); }); }",
     {"inline PTX"},
     .fails = 1},
    {"not refused: empty and host assembly",
     "__device__ void f() { asm volatile(\"\" ::: \"memory\"); } void h() { asm(\"mov %eax, %ebx\"); } int x "
     "asm(\"y\");",
     {"asm volatile(\"\" ::: \"memory\");", "asm(\"mov %eax, %ebx\")"}},
    {"refused: textures",
     "texture<float, 2> t;\nvoid f(cudaTextureObject_t t) {}\n__global__ void k() { x = tex2D(t, 1, 2); }",
     {"t.cu:1: error: simt: texture<..>: textures are not supported", "t.cu:2", "t.cu:3: error: simt: tex2D: textures"},
     .fails = 3},
    {"not refused: own functions",
     "__device__ float tex2D(int x) { return x; } __global__ void k() { tex2D(1); o.tex3D(1); }",
     {"tex2D(1)"}},
    {"refused: surfaces",
     "__global__ void k() { surf2Dwrite(1, s, 2, 3); }",
     {"surfaces are not supported"},
     .fails = 1},
    {"clusters",
     "__global__ void __cluster_dims__(2, 1, N) k() {}\ntemplate <int N> __global__ __cluster_dims__(4) void t() {}",
     {"void k() {} [[maybe_unused]] static const ::simt::ClusterDims simt_cluster_of_k{2, 1, N};",
      "static const ::simt::ClusterEntry simt_cluster_0(k, simt_cluster_of_k);",
      "void t() {} [[maybe_unused]] static const ::simt::ClusterDims simt_cluster_of_t{4};"}},
    {"refused: clusters of a template's size",
     "template <int N> __global__ __cluster_dims__(N) void t() {}",
     {"t.cu:1: error: simt: __cluster_dims__ with a parameter of the template"},
     .fails = 1},
    {"clusters: a name in two namespaces",
     "namespace a { __global__ void k(); __global__ __cluster_dims__(2) void k() {} }\n"
     "namespace b { __global__ void k() {} void f() { k<<<1, 2>>>(); a::k<<<1, 2>>>(); other<<<1, 2>>>(); } }",
     {"simt_cluster_of_k{2};", "void k() {} [[maybe_unused]] static const ::simt::ClusterDims simt_cluster_of_k{};",
      "{ k(simt_a...); }).in(simt_cluster_of_k).cfg(1, 2)", "{ a::k(simt_a...); }).in(a::simt_cluster_of_k).cfg(1, 2)",
      "{ other(simt_a...); }).cfg(1, 2)"}},
    {"refused: several GPUs", "void f() { cudaLaunchCooperativeKernelMultiDevice(p, 2); }", {"has one"}, .fails = 1},
    {"refused: the host's libraries",
     "__global__ void k() {\n rand();\n std::max(a, b);\n cudaGetLastError();\n std::numeric_limits<T>::max();\n}",
     {"t.cu:2: error: simt: rand() is a function of the host's C library, and k() runs on the GPU",
      "t.cu:3: error: simt: std::max() is a function of the C++ library",
      "t.cu:5: error: simt: "
      "std::numeric_limits<T>::max()"},
     .fails = 3},
    {"refused: the host's libraries, not what is constexpr",
     "__global__ void k() {\n std::swap(a, b);\n std::max(a, b);\n std::numeric_limits<T>::max();\n}",
     {"t.cu:2: error: simt: std::swap()"},
     {NULL},
     NULL,
     "--relaxed-constexpr=17",
     1},
    {"not refused: own functions of such names",
     "struct S { int puts(int); }; __device__ int rand() { return 1; }\n"
     "__global__ void k(int sleep) { int time = rand(); s.getenv(1); puts(time); auto exit = [] {}; exit(); sleep(3); "
     "mine::atoi(1); cuda::std::max(1, 2); sizeof(strlen(p)); float fopen(3); }\n"
     "template <class T> __device__ void unused() { srand(1); }\nvoid host() { srand(1); std::max(1, 2); }",
     {"srand(1);"}},
    {"refused: headers, with the including line",
     "\n# 1 \"stubs/thrust/shuffle.h\" 1\n# 3 \"t.cu\" 2\nint x;\n# 1 \"my.h\" 1\n\n\n# 1 \"stubs/cusparse.h\" 1\n# 4 "
     "\"my.h\" 2\n# 5 \"t.cu\" 2\n",
     {"t.cu:2: error: simt: #include <thrust/shuffle.h>: this part of Thrust is not supported",
      "my.h:3: error: simt: #include <cusparse.h>: cuSPARSE"},
     {NULL},
     NULL,
     "--stubs=stubs",
     2},
    {"refused: installed headers",
     "\n# 1 \"/usr/include/cudnn_adv.h\" 1 3\nint broken (\n# 3 \"t.cu\" 2\nint x;",
     {"t.cu:2: error: simt: #include <cudnn_adv.h>: this part of cuDNN"},
     .fails = 1},
    {"not refused: a program's own header of such a name",
     "# 1 \"nppes.h\" 1\n# 2 \"t.cu\" 2\n# 1 \"my/thrust/a.h\" 1\n# 3 \"t.cu\" 2\nint x;",
     {"int x;"}},
    {"not refused: ours",
     "# 1 \"ours/texture_types.h\" 1 3\n# 2 \"t.cu\" 2\nint x;",
     {"int x;"},
     {NULL},
     NULL,
     "--ours=ours"},
};

static char *squeeze(const char *text) {
  Text out = {0};
  append(&out, "", 0);
  for (; *text; text++) {
    bool space = isspace((unsigned char)*text);
    if (!space) append(&out, text, 1);
    if (space && out.length && out.data[out.length - 1] != ' ') append(&out, " ", 1);
  }
  return out.data;
}

static int lines(const char *text) {
  int count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

static char *temporary(const char *content) {
  char name[] = "/tmp/rewrite_test.XXXXXX";
  int file = mkstemp(name);
  assert_true(file >= 0);
  if (content) {
    Text text = {0};
    appendf(&text, "# 1 \"t.cu\"\n%s\n", content);
    assert_int_equal(write(file, text.data, text.length), text.length);
  }
  close(file);
  return strdup(name);
}

static void check(void **state) {
  const Case *c = *state;
  char *input = temporary(c->input), *device = c->device ? temporary(c->device) : NULL;
  char *output = temporary(NULL), *messages = temporary(NULL);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    if (!freopen(output, "w", stdout) || !freopen(messages, "w", stderr)) _exit(99);
    char *arguments[] = {"rewrite", (char *)(c->option ? c->option : "--ours=simt/include"), input, device, NULL};
    int status = rewrite_main(device ? 4 : 3, arguments);
    fflush(NULL);
    _exit(status);
  }
  int status;
  waitpid(child, &status, 0);
  char *raw = read_file(c->fails ? messages : output), *errors_text = read_file(messages);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != (c->fails ? 1 : 0))
    fail_msg("status %d, messages: %s", status, errors_text);
  if (c->fails && lines(raw) != c->fails) fail_msg("%d errors were expected:\n%s", c->fails, raw);
  if (!c->fails && !c->device && lines(raw) != lines(c->input) + 2) fail_msg("lines were added or lost:\n%s", raw);
  char *text = squeeze(raw);
  for (int i = 0; i < 6 && c->wanted[i]; i++) {
    char *wanted = squeeze(c->wanted[i]);
    if (!strstr(text, wanted)) fail_msg("not in the output: %s\n%s", wanted, text);
  }
  for (int i = 0; i < 3 && c->unwanted[i]; i++)
    if (strstr(text, c->unwanted[i])) fail_msg("in the output: %s\n%s", c->unwanted[i], text);
  const char *const files[] = {input, output, messages, device};
  for (int i = 0; i < 4; i++)
    if (files[i]) unlink(files[i]);
}

/* The rewriter frees nothing: it ends soon. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

int main(void) {
  enum { COUNT = sizeof CASES / sizeof *CASES };
  static struct CMUnitTest tests[COUNT];
  for (int i = 0; i < COUNT; i++)
    tests[i] = (struct CMUnitTest){.name = CASES[i].name, .test_func = check, .initial_state = (void *)&CASES[i]};
  return cmocka_run_group_tests_name("rewrite", tests, NULL, NULL);
}
