/* thrust/memory.h - raw_pointer_cast(). -*- c++ -*- */
#include "thrust/device_ptr.h"
