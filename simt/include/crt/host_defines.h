/* crt/host_defines.h - where newer toolkits keep host_defines.h. */
#include "../host_defines.h"
