/* thrust/random/normal_distribution.h -*- c++ -*- */
#include "thrust/random.h"
