/* thrust/random/linear_congruential_engine.h -*- c++ -*- */
#include "thrust/random.h"
