/* crt/host_config.h - where newer toolkits keep host_config.h. */
#include "../host_config.h"
