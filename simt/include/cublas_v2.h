/* cublas_v2.h - the names that programs use for cuBLAS's second API: cublasSgemm is cublasSgemm_v2, and so on. */
#ifndef CUBLAS_V2_H_
#define CUBLAS_V2_H_

#include "cublas_api.h"

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2

#define cublasSaxpy cublasSaxpy_v2
#define cublasScopy cublasScopy_v2
#define cublasSswap cublasSswap_v2
#define cublasSscal cublasSscal_v2
#define cublasIsamax cublasIsamax_v2
#define cublasIsamin cublasIsamin_v2
#define cublasSgemv cublasSgemv_v2
#define cublasStrmv cublasStrmv_v2
#define cublasStrsv cublasStrsv_v2
#define cublasSgemm cublasSgemm_v2
#define cublasSsymm cublasSsymm_v2
#define cublasSsyrk cublasSsyrk_v2
#define cublasSsyr2k cublasSsyr2k_v2
#define cublasStrmm cublasStrmm_v2
#define cublasStrsm cublasStrsm_v2
#define cublasSdot cublasSdot_v2
#define cublasSrot cublasSrot_v2
#define cublasSrotg cublasSrotg_v2
#define cublasSger cublasSger_v2
#define cublasSsyr cublasSsyr_v2
#define cublasSsymv cublasSsymv_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasSasum cublasSasum_v2

#define cublasDaxpy cublasDaxpy_v2
#define cublasDcopy cublasDcopy_v2
#define cublasDswap cublasDswap_v2
#define cublasDscal cublasDscal_v2
#define cublasIdamax cublasIdamax_v2
#define cublasIdamin cublasIdamin_v2
#define cublasDgemv cublasDgemv_v2
#define cublasDtrmv cublasDtrmv_v2
#define cublasDtrsv cublasDtrsv_v2
#define cublasDgemm cublasDgemm_v2
#define cublasDsymm cublasDsymm_v2
#define cublasDsyrk cublasDsyrk_v2
#define cublasDsyr2k cublasDsyr2k_v2
#define cublasDtrmm cublasDtrmm_v2
#define cublasDtrsm cublasDtrsm_v2
#define cublasDdot cublasDdot_v2
#define cublasDrot cublasDrot_v2
#define cublasDrotg cublasDrotg_v2
#define cublasDger cublasDger_v2
#define cublasDsyr cublasDsyr_v2
#define cublasDsymv cublasDsymv_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasDasum cublasDasum_v2

#define cublasCaxpy cublasCaxpy_v2
#define cublasCcopy cublasCcopy_v2
#define cublasCswap cublasCswap_v2
#define cublasCscal cublasCscal_v2
#define cublasIcamax cublasIcamax_v2
#define cublasIcamin cublasIcamin_v2
#define cublasCgemv cublasCgemv_v2
#define cublasCtrmv cublasCtrmv_v2
#define cublasCtrsv cublasCtrsv_v2
#define cublasCgemm cublasCgemm_v2
#define cublasCsymm cublasCsymm_v2
#define cublasCsyrk cublasCsyrk_v2
#define cublasCsyr2k cublasCsyr2k_v2
#define cublasCtrmm cublasCtrmm_v2
#define cublasCtrsm cublasCtrsm_v2
#define cublasCdotu cublasCdotu_v2
#define cublasCdotc cublasCdotc_v2
#define cublasCgeru cublasCgeru_v2
#define cublasCgerc cublasCgerc_v2
#define cublasScnrm2 cublasScnrm2_v2
#define cublasScasum cublasScasum_v2
#define cublasCsscal cublasCsscal_v2

#define cublasZaxpy cublasZaxpy_v2
#define cublasZcopy cublasZcopy_v2
#define cublasZswap cublasZswap_v2
#define cublasZscal cublasZscal_v2
#define cublasIzamax cublasIzamax_v2
#define cublasIzamin cublasIzamin_v2
#define cublasZgemv cublasZgemv_v2
#define cublasZtrmv cublasZtrmv_v2
#define cublasZtrsv cublasZtrsv_v2
#define cublasZgemm cublasZgemm_v2
#define cublasZsymm cublasZsymm_v2
#define cublasZsyrk cublasZsyrk_v2
#define cublasZsyr2k cublasZsyr2k_v2
#define cublasZtrmm cublasZtrmm_v2
#define cublasZtrsm cublasZtrsm_v2
#define cublasZdotu cublasZdotu_v2
#define cublasZdotc cublasZdotc_v2
#define cublasZgeru cublasZgeru_v2
#define cublasZgerc cublasZgerc_v2
#define cublasDznrm2 cublasDznrm2_v2
#define cublasDzasum cublasDzasum_v2
#define cublasZdscal cublasZdscal_v2

/* The rest of NVIDIA's list: an error at the line that calls it. */
#define SIMT_CUBLAS_NOT_OFFERED(name) \
  SIMT_NOT_OFFERED_FUNCTION(cublasStatus_t, cublas##name, "the emulation offers only a part of cuBLAS (cublas_api.h)")
SIMT_CUBLAS_NOT_OFFERED(Sgbmv);
SIMT_CUBLAS_NOT_OFFERED(Stbmv);
SIMT_CUBLAS_NOT_OFFERED(Stpmv);
SIMT_CUBLAS_NOT_OFFERED(Stpsv);
SIMT_CUBLAS_NOT_OFFERED(Stbsv);
SIMT_CUBLAS_NOT_OFFERED(Dgbmv);
SIMT_CUBLAS_NOT_OFFERED(Dtbmv);
SIMT_CUBLAS_NOT_OFFERED(Dtpmv);
SIMT_CUBLAS_NOT_OFFERED(Dtpsv);
SIMT_CUBLAS_NOT_OFFERED(Dtbsv);
SIMT_CUBLAS_NOT_OFFERED(Cgbmv);
SIMT_CUBLAS_NOT_OFFERED(Ctbmv);
SIMT_CUBLAS_NOT_OFFERED(Ctpmv);
SIMT_CUBLAS_NOT_OFFERED(Ctpsv);
SIMT_CUBLAS_NOT_OFFERED(Ctbsv);
SIMT_CUBLAS_NOT_OFFERED(Zgbmv);
SIMT_CUBLAS_NOT_OFFERED(Ztbmv);
SIMT_CUBLAS_NOT_OFFERED(Ztpmv);
SIMT_CUBLAS_NOT_OFFERED(Ztpsv);
SIMT_CUBLAS_NOT_OFFERED(Ztbsv);
SIMT_CUBLAS_NOT_OFFERED(Srotm);
SIMT_CUBLAS_NOT_OFFERED(Drotm);
SIMT_CUBLAS_NOT_OFFERED(Srotmg);
SIMT_CUBLAS_NOT_OFFERED(Drotmg);
SIMT_CUBLAS_NOT_OFFERED(Crot);
SIMT_CUBLAS_NOT_OFFERED(Csrot);
SIMT_CUBLAS_NOT_OFFERED(Zrot);
SIMT_CUBLAS_NOT_OFFERED(Zdrot);
SIMT_CUBLAS_NOT_OFFERED(Crotg);
SIMT_CUBLAS_NOT_OFFERED(Zrotg);
SIMT_CUBLAS_NOT_OFFERED(Csymv);
SIMT_CUBLAS_NOT_OFFERED(Zsymv);
SIMT_CUBLAS_NOT_OFFERED(Chemv);
SIMT_CUBLAS_NOT_OFFERED(Zhemv);
SIMT_CUBLAS_NOT_OFFERED(Ssbmv);
SIMT_CUBLAS_NOT_OFFERED(Dsbmv);
SIMT_CUBLAS_NOT_OFFERED(Chbmv);
SIMT_CUBLAS_NOT_OFFERED(Zhbmv);
SIMT_CUBLAS_NOT_OFFERED(Sspmv);
SIMT_CUBLAS_NOT_OFFERED(Dspmv);
SIMT_CUBLAS_NOT_OFFERED(Chpmv);
SIMT_CUBLAS_NOT_OFFERED(Zhpmv);
SIMT_CUBLAS_NOT_OFFERED(Csyr);
SIMT_CUBLAS_NOT_OFFERED(Zsyr);
SIMT_CUBLAS_NOT_OFFERED(Cher);
SIMT_CUBLAS_NOT_OFFERED(Zher);
SIMT_CUBLAS_NOT_OFFERED(Sspr);
SIMT_CUBLAS_NOT_OFFERED(Dspr);
SIMT_CUBLAS_NOT_OFFERED(Chpr);
SIMT_CUBLAS_NOT_OFFERED(Zhpr);
SIMT_CUBLAS_NOT_OFFERED(Ssyr2);
SIMT_CUBLAS_NOT_OFFERED(Dsyr2);
SIMT_CUBLAS_NOT_OFFERED(Csyr2);
SIMT_CUBLAS_NOT_OFFERED(Zsyr2);
SIMT_CUBLAS_NOT_OFFERED(Cher2);
SIMT_CUBLAS_NOT_OFFERED(Zher2);
SIMT_CUBLAS_NOT_OFFERED(Sspr2);
SIMT_CUBLAS_NOT_OFFERED(Dspr2);
SIMT_CUBLAS_NOT_OFFERED(Chpr2);
SIMT_CUBLAS_NOT_OFFERED(Zhpr2);
SIMT_CUBLAS_NOT_OFFERED(Cherk);
SIMT_CUBLAS_NOT_OFFERED(Zherk);
SIMT_CUBLAS_NOT_OFFERED(Cher2k);
SIMT_CUBLAS_NOT_OFFERED(Zher2k);
SIMT_CUBLAS_NOT_OFFERED(Chemm);
SIMT_CUBLAS_NOT_OFFERED(Zhemm);
SIMT_CUBLAS_NOT_OFFERED(Ssyrkx);
SIMT_CUBLAS_NOT_OFFERED(SgetrfBatched);
SIMT_CUBLAS_NOT_OFFERED(SgetriBatched);
SIMT_CUBLAS_NOT_OFFERED(SgetrsBatched);
SIMT_CUBLAS_NOT_OFFERED(SmatinvBatched);
SIMT_CUBLAS_NOT_OFFERED(SgeqrfBatched);
SIMT_CUBLAS_NOT_OFFERED(SgelsBatched);
SIMT_CUBLAS_NOT_OFFERED(Stpttr);
SIMT_CUBLAS_NOT_OFFERED(Strttp);
SIMT_CUBLAS_NOT_OFFERED(Dsyrkx);
SIMT_CUBLAS_NOT_OFFERED(DgetrfBatched);
SIMT_CUBLAS_NOT_OFFERED(DgetriBatched);
SIMT_CUBLAS_NOT_OFFERED(DgetrsBatched);
SIMT_CUBLAS_NOT_OFFERED(DmatinvBatched);
SIMT_CUBLAS_NOT_OFFERED(DgeqrfBatched);
SIMT_CUBLAS_NOT_OFFERED(DgelsBatched);
SIMT_CUBLAS_NOT_OFFERED(Dtpttr);
SIMT_CUBLAS_NOT_OFFERED(Dtrttp);
SIMT_CUBLAS_NOT_OFFERED(Csyrkx);
SIMT_CUBLAS_NOT_OFFERED(CgetrfBatched);
SIMT_CUBLAS_NOT_OFFERED(CgetriBatched);
SIMT_CUBLAS_NOT_OFFERED(CgetrsBatched);
SIMT_CUBLAS_NOT_OFFERED(CmatinvBatched);
SIMT_CUBLAS_NOT_OFFERED(CgeqrfBatched);
SIMT_CUBLAS_NOT_OFFERED(CgelsBatched);
SIMT_CUBLAS_NOT_OFFERED(Ctpttr);
SIMT_CUBLAS_NOT_OFFERED(Ctrttp);
SIMT_CUBLAS_NOT_OFFERED(Zsyrkx);
SIMT_CUBLAS_NOT_OFFERED(ZgetrfBatched);
SIMT_CUBLAS_NOT_OFFERED(ZgetriBatched);
SIMT_CUBLAS_NOT_OFFERED(ZgetrsBatched);
SIMT_CUBLAS_NOT_OFFERED(ZmatinvBatched);
SIMT_CUBLAS_NOT_OFFERED(ZgeqrfBatched);
SIMT_CUBLAS_NOT_OFFERED(ZgelsBatched);
SIMT_CUBLAS_NOT_OFFERED(Ztpttr);
SIMT_CUBLAS_NOT_OFFERED(Ztrttp);
SIMT_CUBLAS_NOT_OFFERED(Cherkx);
SIMT_CUBLAS_NOT_OFFERED(Zherkx);
SIMT_CUBLAS_NOT_OFFERED(Cgemm3m);
SIMT_CUBLAS_NOT_OFFERED(Zgemm3m);
SIMT_CUBLAS_NOT_OFFERED(CgemmEx);
SIMT_CUBLAS_NOT_OFFERED(CsyrkEx);
SIMT_CUBLAS_NOT_OFFERED(CherkEx);
SIMT_CUBLAS_NOT_OFFERED(DotcEx);
SIMT_CUBLAS_NOT_OFFERED(AsumEx);
SIMT_CUBLAS_NOT_OFFERED(IamaxEx);
SIMT_CUBLAS_NOT_OFFERED(IaminEx);
SIMT_CUBLAS_NOT_OFFERED(CopyEx);
SIMT_CUBLAS_NOT_OFFERED(SwapEx);
SIMT_CUBLAS_NOT_OFFERED(RotEx);
SIMT_CUBLAS_NOT_OFFERED(RotgEx);
SIMT_CUBLAS_NOT_OFFERED(HSHgemvBatched);
SIMT_CUBLAS_NOT_OFFERED(HSSgemvBatched);
SIMT_CUBLAS_NOT_OFFERED(HSHgemvStridedBatched);
SIMT_CUBLAS_NOT_OFFERED(HSSgemvStridedBatched);
SIMT_CUBLAS_NOT_OFFERED(SgemmGroupedBatched);
SIMT_CUBLAS_NOT_OFFERED(DgemmGroupedBatched);
SIMT_CUBLAS_NOT_OFFERED(GemmGroupedBatchedEx);
SIMT_CUBLAS_NOT_OFFERED(SetLoggerCallback);
SIMT_CUBLAS_NOT_OFFERED(GetLoggerCallback);
SIMT_CUBLAS_NOT_OFFERED(Xerbla);
#undef SIMT_CUBLAS_NOT_OFFERED

#endif /* CUBLAS_V2_H_ */
