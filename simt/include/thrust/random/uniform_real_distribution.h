/* thrust/random/uniform_real_distribution.h -*- c++ -*- */
#include "thrust/random.h"
