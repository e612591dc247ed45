/* thrust/system/error_code.h -*- c++ -*- */
#include "thrust/system_error.h"
