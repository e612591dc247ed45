#error "cublasXt (several GPUs) is not emulated: include cublas_v2.h"
