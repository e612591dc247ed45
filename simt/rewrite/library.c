/* library.c - tables of the functions of C, C++ and CUDA, by name. */
#include "library.h"

#include <ctype.h>
#include <string.h>

#include "errors.h"
#include "text.h"

/* Functions of C that CUDA has for kernels as well. */
const char KERNEL_FUNCTIONS[] =
    "printf vprintf malloc free memcpy memset clock clock64 __assert_fail __assertfail alloca abs labs llabs "
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf erfc "
    "erfcinv "
    "erfcx erfinv exp exp10 exp2 expm1 fabs fdim fdivide floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf "
    "isnan j0 "
    "j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround max min modf nan nearbyint nextafter "
    "norm "
    "norm3d norm4d normcdf normcdfinv pow powi rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d round rsqrt "
    "scalbln "
    "scalbn signbit sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn "
    "acosf acoshf asinf asinhf atanf atan2f atanhf cbrtf ceilf copysignf cosf coshf cospif erff erfcf erfcinvf erfcxf "
    "erfinvf expf exp10f exp2f expm1f fabsf fdimf fdividef floorf fmaf fmaxf fminf fmodf frexpf hypotf ilogbf j0f j1f "
    "jnf "
    "ldexpf lgammaf llrintf llroundf logf log10f log1pf log2f logbf lrintf lroundf modff nanf nearbyintf nextafterf "
    "powf "
    "remainderf remquof rintf roundf rsqrtf scalblnf scalbnf sinf sincosf sincospif sinhf sinpif sqrtf tanf tanhf "
    "tgammaf "
    "truncf y0f y1f ynf __finite __isinf __isnan __signbit __finitef __isinff __isnanf __signbitf __signbitd "
    "__isfinited __builtin_va_start __builtin_va_end";

/* Functions of the C++ library that are C++'s operations; nvcc takes them for __host__ __device__. */
const char KERNEL_STANDARD[] =
    "move forward initializer_list "
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor "
    "fma fmax "
    "fmin fmod frexp hypot ilogb isfinite isinf isnan isnormal isgreater isgreaterequal isless islessequal "
    "islessgreater "
    "isunordered fpclassify ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint "
    "nextafter "
    "pow remainder remquo rint round scalbln scalbn signbit sin sinh sqrt tan tanh tgamma trunc";

/* What to write instead. `names` are of C's library and CUDA's host functions ... */
static const struct {
  const char *names, *instead;
} INSTEAD[] = {
    {"time gettimeofday clock_gettime times ftime",
     "clock64() counts a multiprocessor's cycles; measure a kernel's time on the host, with cudaEventRecord()"},
    {"rand srand random srandom rand_r drand48 lrand48 erand48 srand48 nrand48 mrand48 getrandom getentropy arc4random",
     "use curand_kernel.h, a generator for kernels (in the course: common/philox.h)"},
    {"fprintf puts putchar putc fputs fputc perror vfprintf dprintf putchar_unlocked",
     "print with printf(), which kernels have"},
    {"sprintf snprintf vsprintf vsnprintf asprintf", "print with printf(), or format the text on the host"},
    {"fopen fclose fread fwrite fscanf scanf sscanf fgets fgetc getc getchar gets open close read write fflush fseek "
     "ftell "
     "remove rename mmap",
     "read and write files on the host, and copy the data with cudaMemcpy()"},
    {"exit _exit abort quick_exit atexit raise kill",
     "end a thread with return; __trap() ends the kernel with an error"},
    {"calloc realloc posix_memalign aligned_alloc strdup",
     "allocate with cudaMalloc() on the host, before the launch (a kernel has malloc(), free(), new and delete)"},
    {"sleep usleep nanosleep", "__nanosleep() waits in a kernel"},
    {"memmove memcmp memchr strlen strcpy strncpy strcmp strncmp strcat strchr strstr strtok",
     "write the loop (a kernel has memcpy() and memset())"},
    {"atoi atof atol strtol strtod strtof getenv system", "do it on the host, and pass the result as an argument"},
    {"qsort bsearch", "sort on the host, or with cub::DeviceRadixSort"},
    {"drem significand gamma finite isdigit isalpha toupper tolower isspace div ldiv", "write the expression"},
    {"cudaMemcpy cudaMemcpyToSymbol cudaMemcpyFromSymbol cudaMemcpy2D cudaMemcpy3D cudaMemcpyPeer cudaMemcpyAsync "
     "cudaMemcpyToSymbolAsync cudaMemcpyFromSymbolAsync cudaMemcpy2DAsync",
     "copy on the host, before the launch; a kernel copies by assignment, element by element"},
    {"cudaMemset cudaMemsetAsync cudaMemset2D", "set it on the host, before the launch, or assign to the elements"},
    {"cudaMalloc cudaFree cudaMallocHost cudaFreeHost cudaMallocManaged cudaMallocAsync cudaFreeAsync cudaHostAlloc",
     "allocate on the host, before the launch"},
    {"cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cudaStreamWaitEvent",
     "__syncthreads() waits for the threads of a block; the host waits for a kernel"},
};

/* ... these are std::, and {names, instead} of functions that C++17 has as constexpr. */
static const struct {
  const char *names;
  bool is_constexpr;
  const char *instead;
} INSTEAD_STANDARD[] = {
    {"max min", true, "use max() or min(), or fmaxf() and fminf() for floats"},
    {"clamp", true, "use min(max(x, low), high)"},
    {"minmax", true, "use min() and max()"},
    {"swap iter_swap exchange", false, "use a third variable"},
    {"sort stable_sort partial_sort nth_element", false, "sort on the host, or with cub::DeviceRadixSort"},
    {"accumulate reduce inner_product transform_reduce", false, "write the loop"},
    {"fill fill_n copy copy_n transform iota for_each generate reverse count count_if find find_if equal", false,
     "write the loop"},
    {"lower_bound upper_bound binary_search", false, "write the loop"},
    {"gcd lcm", true, "write the loop"},
    {"addressof launder get size begin end data distance", true, "use the pointer or the index itself"},
};

const char *instead_of(const char *name) {
  for (size_t i = 0; i < sizeof INSTEAD / sizeof *INSTEAD; i++)
    if (is_among(name, strlen(name), INSTEAD[i].names)) return INSTEAD[i].instead;
  return NULL;
}

const char *instead_of_standard(const char *name, bool *is_constexpr) {
  for (size_t i = 0; i < sizeof INSTEAD_STANDARD / sizeof *INSTEAD_STANDARD; i++) {
    if (!is_among(name, strlen(name), INSTEAD_STANDARD[i].names)) continue;
    if (is_constexpr) *is_constexpr = INSTEAD_STANDARD[i].is_constexpr;
    return INSTEAD_STANDARD[i].instead;
  }
  return NULL;
}

/* A function of CUDA's libraries for the host: cudaMemcpy, cuInit, cublasSgemm. */
static bool is_host_api(const char *name) {
  static const char *const prefixes[] = {"cuda", "cublas", "cudnn", "cufft", "curand", "cu", "nvtx"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (begins(name, prefixes[i]) && isupper((unsigned char)name[strlen(prefixes[i])])) return true;
  return false;
}

/* What a kernel may do with a vector of Thrust's, given by value. */
const char VECTOR_ACCESS[] = "operator begin end cbegin cend data front back size empty";

/* Of the device's runtime (nvcc -rdc=true), what needs no second kernel. */
const char DEVICE_RUNTIME[] =
    "cudaGetLastError cudaPeekAtLastError cudaGetErrorString cudaGetErrorName cudaGetDevice cudaGetDeviceCount "
    "cudaDeviceGetAttribute cudaFuncGetAttributes cudaRuntimeGetVersion";

void refuse_library(const char *file, int line, const char *name, const char *caller) {
  bool is_cuda = is_host_api(name);
  const char *instead = instead_of(name);
  refuse_call_at(file, line, "%s() is a function of %s, and %s() runs on the GPU: %s", name,
                 is_cuda ? "CUDA for the host" : "the host's C library", caller,
                 instead ? instead : "call it on the host, before or after the launch");
}

void refuse_standard(const char *file, int line, const char *name, const char *caller, const char *instead) {
  refuse_call_at(file, line,
                 "%s() is a function of the C++ library, which only the host has, and %s() runs on the GPU: %s", name,
                 caller, instead ? instead : "use cuda::std:: where there is one, or write it out");
}
