// Libraries that are not there: each #include with its own reason, and the rest of the file is judged as well.
#include <cuda_gl_interop.h>           // REFUSED: OpenGL interoperation is not supported
#include <cuda_fp4.h>                  // REFUSED: numbers of 4 bits belong to compute capability 10.0
#include <cudnn_adv.h>                 // REFUSED: this part of cuDNN is not supported
#include <cusolverDn.h>                // REFUSED: cuSOLVER is not supported
#include <cusparse.h>                  // REFUSED: cuSPARSE is not supported
#include <cutlass/gemm/device/gemm.h>  // REFUSED: CUTLASS is not supported
#include <nccl.h>                      // REFUSED: the emulator has one GPU
#include <npp.h>                       // REFUSED: NPP
#include <nvjpeg.h>                    // REFUSED: nvJPEG
#include <nvrtc.h>                     // REFUSED: NVRTC
#include <stdio.h>
#include <texture_types.h>         // REFUSED: textures are not supported
#include <thrust/device_vector.h>
#include <thrust/iterator/iterator_facade.h>  // REFUSED: what there is of thrust/iterator/: constant_iterator.h
#include <thrust/set_operations.h>  // REFUSED: #include <thrust/set_operations.h>: this part of Thrust is not supported
#include <thrust/shuffle.h>         // REFUSED: scatter.h sequence.h sort.h swap.h
#include <cub/nowhere.cuh>         // REFUSED: this part of CUB is not supported
#include "cufftw.h"                // REFUSED: this part of cuFFT is not supported
#include "helper_cuda.h"           // REFUSED: belongs to NVIDIA's samples

__global__ void k() { asm("exit;"); }  // REFUSED: inline PTX

int main() { return 0; }
