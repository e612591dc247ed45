/* thrust/random.h - linear congruential engines, and distributions. The sequences are Thrust's. -*- c++ -*- */
#ifndef SIMT_THRUST_RANDOM
#define SIMT_THRUST_RANDOM

#include <cuda_runtime.h>

#include "simt/not_offered.h"

namespace thrust {
namespace random {

/* x becomes (a x + c) mod m; m == 0: modulo the range of UInt. */
template <class UInt, UInt a, UInt c, UInt m>
class linear_congruential_engine {
 public:
  typedef UInt result_type;
  static constexpr UInt multiplier = a, increment = c, modulus = m;
  static constexpr UInt min = c == 0 ? 1 : 0, max = (UInt)(m - 1), default_seed = 1;

  explicit linear_congruential_engine(UInt value = default_seed) { seed(value); }
  void seed(UInt value = default_seed) {
    x_ = m ? value % (m ? m : 1) : value;
    if (c == 0 && x_ == 0) x_ = 1;
  }
  UInt operator()() { return x_ = after(a, c, x_); }
  /* n steps at once: those of 1, 2, 4 .. steps are of the same form. */
  void discard(unsigned long long n) {
    for (UInt factor = a, term = c; n; n /= 2) {
      if (n & 1) x_ = after(factor, term, x_);
      term = after(factor, term, term);
      factor = after(factor, 0, factor);
    }
  }
  friend bool operator==(const linear_congruential_engine &x, const linear_congruential_engine &y) {
    return x.x_ == y.x_;
  }
  friend bool operator!=(const linear_congruential_engine &x, const linear_congruential_engine &y) { return !(x == y); }

 private:
  static UInt after(UInt factor, UInt term, UInt x) {
    typedef std::conditional_t<sizeof(UInt) <= 4, unsigned long long, unsigned __int128> Wide;
    Wide next = (Wide)factor * x + term;
    return (UInt)(m ? next % (m ? m : 1) : next);
  }

  UInt x_;
};

typedef linear_congruential_engine<uint32_t, 16807, 0, 2147483647> minstd_rand0;
typedef linear_congruential_engine<uint32_t, 48271, 0, 2147483647> minstd_rand;
typedef minstd_rand default_random_engine;
SIMT_NOT_OFFERED_TYPE(taus88, "simt: of Thrust's random engines only the linear congruential ones exist");
SIMT_NOT_OFFERED_TYPE(ranlux24, "simt: of Thrust's random engines only the linear congruential ones exist");
SIMT_NOT_OFFERED_TYPE(ranlux48, "simt: of Thrust's random engines only the linear congruential ones exist");

/* The engine's next number as a fraction: 0 <= it < 1, up to rounding. */
template <class Real, class Engine>
Real simt_fraction(Engine &engine) {
  Real x = (Real)(engine() - Engine::min);
  return x / ((Real)(Engine::max - Engine::min) + (Real)1);
}

template <class Real = double>
class uniform_real_distribution {
 public:
  typedef Real result_type;
  explicit uniform_real_distribution(Real a = 0, Real b = 1) : a_(a), b_(b) {}
  template <class Engine>
  Real operator()(Engine &engine) const {
    return a_ + (b_ - a_) * simt_fraction<Real>(engine);
  }
  void reset() {}
  Real a() const { return a_; }
  Real b() const { return b_; }
  Real min() const { return a_; }
  Real max() const { return b_; }

 private:
  Real a_, b_;
};

template <class Int = int>
class uniform_int_distribution { /* both ends belong to it */
 public:
  typedef Int result_type;
  explicit uniform_int_distribution(Int a = 0, Int b = std::numeric_limits<Int>::max()) : a_(a), b_(b) {}
  template <class Engine>
  Int operator()(Engine &engine) const {
    double a = (double)a_, range = (double)b_ - a + 1;
    return (Int)(a + range * simt_fraction<double>(engine));
  }
  void reset() {}
  Int a() const { return a_; }
  Int b() const { return b_; }
  Int min() const { return a_; }
  Int max() const { return b_; }

 private:
  Int a_, b_;
};

template <class Real = double>
class normal_distribution {
 public:
  typedef Real result_type;
  explicit normal_distribution(Real mean = 0, Real deviation = 1) : mean_(mean), deviation_(deviation) {}
  template <class Engine>
  Real operator()(Engine &engine) const {
    double x = (double)(engine() - Engine::min) + 0.5, range = (double)(Engine::max - Engine::min) + 1;
    return mean_ + deviation_ * (Real)normcdfinv(x / range);
  }
  void reset() {}
  Real mean() const { return mean_; }
  Real stddev() const { return deviation_; }

 private:
  Real mean_, deviation_;
};

}  // namespace random

using namespace random;

}  // namespace thrust

#endif /* SIMT_THRUST_RANDOM */
