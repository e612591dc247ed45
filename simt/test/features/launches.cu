// A launch may stand wherever a call may. Each of these adds a bit of its own to one number: what is lost, shows.
// flags: --extended-lambda
#include <functional>
#include <map>
#include <string>

#include "expect.h"

__global__ void add(unsigned *to, unsigned bit) { *to += bit; }
__global__ void nothing() {}
template <unsigned FACTOR>
__global__ void add_times(unsigned *to, unsigned bit) {
  *to += FACTOR * bit;
}
template <class F>
__global__ void apply(unsigned *to, F f) {
  *to = f(*to);
}

typedef void (*Kernel)(unsigned *, unsigned);
static unsigned *to;  // managed
static int bits;      // so far
static unsigned next_bit() { return 1u << bits++; }

// clang-format off
#define LAUNCH(kernel, ...) \
  kernel                    \
      <<<                   \
        1,                  \
        1                   \
      >>>(__VA_ARGS__)
// clang-format on

struct Once {
  static constexpr Kernel kernel = add;
};
struct Times {
  template <unsigned FACTOR>
  static constexpr Kernel kernel = add_times<FACTOR>;
};
template <class POLICY>
static void by_dependent_name() {
  POLICY::kernel<<<1, 1>>>(to, next_bit());
}
template <class POLICY>
static void by_dependent_template() {
  POLICY::template kernel<1><<<1, 1>>>(to, next_bit());
}
template <class K, class... A>
static void pass_on(K kernel, A... arguments) {
  kernel<<<1, 1>>>(arguments...);
}
template <int N>
static void N_times() {
  if constexpr (N > 0) {
    add<<<1, 1>>>(to, next_bit());
    N_times<N - 1>();
  }
}

struct Runner {
  Kernel kernel, row[2][2];
  enum { THREADS = 1 };
  void run() { this->kernel<<<blocks(), THREADS>>>(to, next_bit()); }
  unsigned blocks() const { return 1; }
};

static Kernel pick(int i) {
  static const Kernel all[] = {add, &add, add_times<1>};
  return all[i];
}

static void statements(bool yes, int zero) {
  yes ? add<<<1, 1>>>(to, next_bit()) : add_times<8><<<1, 1>>>(to, 0);
  for (int i = 0; i < 2; i++, add<<<1, 1>>>(to, next_bit()))
    ;
  switch (zero) {
    case 0:
      add < <<1 << zero, 2>> 1 >>> (to, next_bit());
      break;
    default:
      add_times<3><<<1, 1>>>(to, 1);
  }
  LAUNCH(add, to, next_bit());
  do LAUNCH(add_times<(2 > 1)>, to, next_bit());
  while (zero);
  if (!yes)
    nothing<<<1, 1>>>();
  else
    add<<<1, 1>>>(to, next_bit()), add_times<sizeof(char)><<<dim3{1}, {1, 1, 1}>>>(to, next_bit());
}

static void through_pointers() {
  Runner runner = {add, {{add, add}, {add, add_times<1>}}}, *p = &runner;
  runner.run();
  p->kernel<<<1, 1>>>(to, next_bit());
  (*p).row[1][0]<<<1, 1>>>(to, next_bit());
  (p->row[1][1])<<<1, 1>>>(to, next_bit());
  pick(2)<<<1, 1>>>(to, next_bit());
  pass_on(add_times<1>, to, next_bit());
  by_dependent_name<Once>();
  by_dependent_template<Times>();
  N_times<3>();
}

static void lambdas() {
  unsigned bit = next_bit();
  apply<<<1, 1>>>(to, [=] __device__(unsigned x) { return x + bit; });
  bit = next_bit();
  apply<<<1, 1>>>(to, [=] __host__ __device__(unsigned x) -> unsigned { return x + bit; });
  std::map<std::string, std::function<void()>> named = {
      {"by reference", [&] { add<<<1, 1>>>(to, next_bit()); }},
      {"generic", [] { [](auto kernel) { kernel<<<1, 1>>>(to, next_bit()); }(add); }},
  };
  for (auto &[name, run] : named) run();
}

static void through_the_runtime() {
  unsigned bit = next_bit();
  void *arguments[] = {&to, &bit};
  WORKS(cudaLaunchKernel((void *)add_times<1>, dim3(1), dim3(1), arguments, 0, NULL));
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = dim3(1);
  WORKS(cudaLaunchKernelEx(&config, add, to, next_bit()));
}

int main(int argc, char **) {
  WORKS(cudaMallocManaged(&to, sizeof *to));
  *to = 0;
  statements(argc > 0, 0);
  through_pointers();
  lambdas();
  through_the_runtime();
  const char *text = "add<<<1, 1>>>(to, 1)", *raw = R"x(add<<<1, 1>>>(to, ")", 1))x";  // no launches
  EXPECT(text[3] == '<' && raw[3] == '<');
  WORKS(cudaDeviceSynchronize());
  EXPECT(*to == (1u << bits) - 1);
  printf("%d launches, sum %#x\n", bits, *to);
  WORKS(cudaFree(to));
  return mistakes;
}
