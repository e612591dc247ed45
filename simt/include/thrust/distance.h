/* thrust/distance.h -*- c++ -*- */
#ifndef SIMT_THRUST_DISTANCE
#define SIMT_THRUST_DISTANCE

#include "thrust/simt_run.h"

namespace thrust {
using std::distance;
}  // namespace thrust

#endif /* SIMT_THRUST_DISTANCE */
