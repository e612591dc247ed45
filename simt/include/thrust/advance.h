/* thrust/advance.h -*- c++ -*- */
#ifndef SIMT_THRUST_ADVANCE
#define SIMT_THRUST_ADVANCE

#include "thrust/simt_run.h"

namespace thrust {
using std::advance;
using std::next;
using std::prev;
}  // namespace thrust

#endif /* SIMT_THRUST_ADVANCE */
