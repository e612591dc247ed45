/* thrust/iterator/iterator_traits.h -*- c++ -*- */
#include "thrust/simt_run.h"
