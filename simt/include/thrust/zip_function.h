/* thrust/zip_function.h - a function of several arguments for the tuples of a zip_iterator. -*- c++ -*- */
#ifndef SIMT_THRUST_ZIP_FUNCTION
#define SIMT_THRUST_ZIP_FUNCTION

#include "thrust/tuple.h"

namespace thrust {

template <class Function>
class zip_function {
 public:
  zip_function(Function function) : function_(function) {}
  template <class... T>
  decltype(auto) operator()(const tuple<T...> &arguments) const {
    return call(arguments, std::index_sequence_for<T...>());
  }

 private:
  template <class Tuple, size_t... i>
  decltype(auto) call(const Tuple &arguments, std::index_sequence<i...>) const {
    return function_(get<i>(arguments)...);
  }
  mutable Function function_;
};

template <class Function>
zip_function<Function> make_zip_function(Function function) {
  return {function};
}

}  // namespace thrust

#endif /* SIMT_THRUST_ZIP_FUNCTION */
