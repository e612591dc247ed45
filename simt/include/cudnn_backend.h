/* cudnn_backend.h - an older name of cudnn_graph.h. */
#ifndef CUDNN_BACKEND_H_
#define CUDNN_BACKEND_H_

#include "cudnn_graph.h"

#endif /* CUDNN_BACKEND_H_ */
