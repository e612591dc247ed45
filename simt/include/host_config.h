/* host_config.h - which host compilers nvcc takes: here any that knows C++17. */
#include "host_defines.h"
