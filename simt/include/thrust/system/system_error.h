/* thrust/system/system_error.h -*- c++ -*- */
#include "thrust/system_error.h"
