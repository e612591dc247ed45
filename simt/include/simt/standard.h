/* standard.h - cuda::std is the C++ library that every g++ has: functions compiled for the host run in kernels, too. */
#ifndef SIMT_STANDARD_H
#define SIMT_STANDARD_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace cuda {
namespace std {
using namespace ::std;
}
}  // namespace cuda

#endif /* SIMT_STANDARD_H */
