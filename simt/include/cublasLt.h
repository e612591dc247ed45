#error "cublasLt is not emulated: cublasGemmEx() and cublasGemmStridedBatchedEx() of cublas_v2.h do the same products"
