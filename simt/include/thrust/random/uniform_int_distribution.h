/* thrust/random/uniform_int_distribution.h -*- c++ -*- */
#include "thrust/random.h"
