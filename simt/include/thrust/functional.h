/* thrust/functional.h - operations as objects: plus, maximum, less ..., and placeholders _1, _2 for short ones.
 * -*- c++ -*- */
#ifndef SIMT_THRUST_FUNCTIONAL
#define SIMT_THRUST_FUNCTIONAL

#include "thrust/simt_run.h"

namespace thrust {

/* Of older versions: what an operation's types are called. */
template <class A, class Result>
struct unary_function {
  typedef A argument_type;
  typedef Result result_type;
};
template <class A, class B, class Result>
struct binary_function {
  typedef A first_argument_type;
  typedef B second_argument_type;
  typedef Result result_type;
};

/* name<T>, and name<> for any types. */
#define SIMT_THRUST_BINARY(name, Result, expression)                                 \
  template <class T = void>                                                          \
  struct name : binary_function<T, T, Result> {                                      \
    constexpr Result operator()(const T &a, const T &b) const { return expression; } \
  };                                                                                 \
  template <>                                                                        \
  struct name<void> {                                                                \
    typedef void is_transparent;                                                     \
    template <class A, class B>                                                      \
    constexpr auto operator()(const A &a, const B &b) const {                        \
      return expression;                                                             \
    }                                                                                \
  };
#define SIMT_THRUST_UNARY(name, Result, expression)                      \
  template <class T = void>                                              \
  struct name : unary_function<T, Result> {                              \
    constexpr Result operator()(const T &a) const { return expression; } \
  };                                                                     \
  template <>                                                            \
  struct name<void> {                                                    \
    typedef void is_transparent;                                         \
    template <class A>                                                   \
    constexpr auto operator()(const A &a) const {                        \
      return expression;                                                 \
    }                                                                    \
  };
SIMT_THRUST_BINARY(plus, T, a + b)
SIMT_THRUST_BINARY(minus, T, a - b)
SIMT_THRUST_BINARY(multiplies, T, a *b)
SIMT_THRUST_BINARY(divides, T, a / b)
SIMT_THRUST_BINARY(modulus, T, a % b)
SIMT_THRUST_BINARY(bit_and, T, a &b)
SIMT_THRUST_BINARY(bit_or, T, a | b)
SIMT_THRUST_BINARY(bit_xor, T, a ^ b)
SIMT_THRUST_BINARY(equal_to, bool, a == b)
SIMT_THRUST_BINARY(not_equal_to, bool, a != b)
SIMT_THRUST_BINARY(greater, bool, a > b)
SIMT_THRUST_BINARY(less, bool, a < b)
SIMT_THRUST_BINARY(greater_equal, bool, a >= b)
SIMT_THRUST_BINARY(less_equal, bool, a <= b)
SIMT_THRUST_BINARY(logical_and, bool, a &&b)
SIMT_THRUST_BINARY(logical_or, bool, a || b)
SIMT_THRUST_BINARY(maximum, T, a < b ? b : a)
SIMT_THRUST_BINARY(minimum, T, b < a ? b : a)
SIMT_THRUST_UNARY(negate, T, -a)
SIMT_THRUST_UNARY(square, T, a *a)
SIMT_THRUST_UNARY(logical_not, bool, !a)
#undef SIMT_THRUST_BINARY
#undef SIMT_THRUST_UNARY

template <class T = void>
struct identity : unary_function<T, T> {
  constexpr const T &operator()(const T &a) const { return a; }
};
template <>
struct identity<void> {
  template <class A>
  constexpr A &&operator()(A &&a) const {
    return (A &&) a;
  }
};
template <class A = void, class B = void>
struct project1st {
  constexpr const A &operator()(const A &a, const B &) const { return a; }
};
template <>
struct project1st<void, void> {
  template <class A, class B>
  constexpr A operator()(const A &a, const B &) const {
    return a;
  }
};
template <class A = void, class B = void>
struct project2nd {
  constexpr const B &operator()(const A &, const B &b) const { return b; }
};
template <>
struct project2nd<void, void> {
  template <class A, class B>
  constexpr B operator()(const A &, const B &b) const {
    return b;
  }
};

/* ---- placeholders: 2 * _1 + _2 is a function of two arguments ---- */

namespace details {

template <class Function>
struct Expression {
  Function function;
  template <class... A>
  constexpr auto operator()(const A &...a) const {
    return function(a...);
  }
};
template <class Function>
constexpr Expression<Function> expression(Function function) {
  return {function};
}

template <size_t index>
struct Placeholder {
  template <class First, class... A>
  constexpr auto operator()(const First &first, const A &...a) const {
    if constexpr (index == 0)
      return first;
    else
      return Placeholder<index - 1>()(a...);
  }
};

template <class T>
struct IsExpression : std::false_type {};
template <class Function>
struct IsExpression<Expression<Function>> : std::true_type {};

template <class T>
constexpr auto as_expression(const T &operand) {
  if constexpr (IsExpression<T>::value)
    return operand;
  else
    return expression([operand](const auto &...) { return operand; });
}

#define SIMT_THRUST_OPERATOR(sign)                                                                         \
  template <class A, class B, std::enable_if_t<IsExpression<A>::value || IsExpression<B>::value, int> = 0> \
  constexpr auto operator sign(const A &a, const B &b) {                                                   \
    return expression(                                                                                     \
        [x = as_expression(a), y = as_expression(b)](const auto &...v) { return x(v...) sign y(v...); });  \
  }
SIMT_THRUST_OPERATOR(+)
SIMT_THRUST_OPERATOR(-)
SIMT_THRUST_OPERATOR(*)
SIMT_THRUST_OPERATOR(/)
SIMT_THRUST_OPERATOR(%)
SIMT_THRUST_OPERATOR(&)
SIMT_THRUST_OPERATOR(|)
SIMT_THRUST_OPERATOR(^)
SIMT_THRUST_OPERATOR(<)
SIMT_THRUST_OPERATOR(>)
SIMT_THRUST_OPERATOR(<=)
SIMT_THRUST_OPERATOR(>=)
SIMT_THRUST_OPERATOR(==)
SIMT_THRUST_OPERATOR(!=)
SIMT_THRUST_OPERATOR(&&)
SIMT_THRUST_OPERATOR(||)
#undef SIMT_THRUST_OPERATOR
template <class Function>
constexpr auto operator-(const Expression<Function> &a) {
  return expression([a](const auto &...v) { return -a(v...); });
}
template <class Function>
constexpr auto operator!(const Expression<Function> &a) {
  return expression([a](const auto &...v) { return !a(v...); });
}

}  // namespace details

namespace placeholders {
static constexpr details::Expression<details::Placeholder<0>> _1{};
static constexpr details::Expression<details::Placeholder<1>> _2{};
static constexpr details::Expression<details::Placeholder<2>> _3{};
}  // namespace placeholders

}  // namespace thrust

#endif /* SIMT_THRUST_FUNCTIONAL */
