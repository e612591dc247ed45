/* headers.c - which headers are refused, and why. */
#include "headers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "options.h"
#include "text.h"

/* When a header is refused: */
#define ALWAYS ""    /* wherever the system has it */
#define MISSING NULL /* only if it is not installed */
                     /* "a/file.h": also if the program brings the library, which that file tells */

static const Header HEADERS[] = {
    {"thrust/", "thrust/version.h", "this part of Thrust is not supported; write the loop as a kernel, or use"},
    {"cudnn_frontend", ALWAYS, "cuDNN's frontend in C++ is not supported; cudnn.h has the graph API that it calls"},
    {"cudnn", ALWAYS, "this part of cuDNN is not supported; cudnn.h, cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h are"},
    {"cusparse", ALWAYS, "cuSPARSE is not supported; write the sparse product as a kernel"},
    {"cusolver", ALWAYS, "cuSOLVER is not supported; use LAPACK on the host"},
    {"nccl.h", ALWAYS, "NCCL is not supported: the emulator has one GPU; copy with cudaMemcpy()"},
    {"nvshmem", ALWAYS, "NVSHMEM is not supported: the emulator has one GPU"},
    {"cutlass/", "cutlass/cutlass.h",
     "CUTLASS is not supported: it is inline PTX inside; use cuBLAS (cublas_v2.h) or nvcuda::wmma (mma.h)"},
    {"cute/", "cute/config.hpp",
     "CuTe is not supported: it is inline PTX inside; use cuBLAS (cublas_v2.h) or nvcuda::wmma (mma.h)"},
    {"nvjpeg", ALWAYS, "nvJPEG is not supported; read images on the host, with libjpeg or stb_image"},
    {"npp", ALWAYS, "NPP is not supported; write the filter as a kernel"},
    {"optix", ALWAYS, "OptiX is not supported: it needs ray-tracing hardware"},
    {"nvrtc", ALWAYS, "NVRTC is not supported: kernels are compiled before the program runs"},
    {"cupti", ALWAYS, "CUPTI is not supported; simtcc --inspect counts what a profiler would"},
    {"nvml", ALWAYS, "NVML is not supported: there is no GPU to manage"},
    {"NvInfer", ALWAYS, "TensorRT is not supported: it exists only for a GPU"},
    {"cuda_gl_interop", ALWAYS, "OpenGL interoperation is not supported; copy the image to the host and write a file"},
    {"cuda_egl_interop", ALWAYS, "EGL interoperation is not supported; copy the image to the host and write a file"},
    {"cuda_vdpau_interop", ALWAYS, "VDPAU interoperation is not supported"},
    {"cuda_d3d", ALWAYS, "Direct3D interoperation is not supported"},
    {"texture_", ALWAYS, "textures are not supported; read the array by its index"},
    {"cuda_texture_types.h", ALWAYS, "textures are not supported; read the array by its index"},
    {"surface_", ALWAYS, "surfaces are not supported; write the array by its index"},
    {"cuda_surface_types.h", ALWAYS, "surfaces are not supported; write the array by its index"},
    {"cuda/ptx", ALWAYS, "cuda::ptx is not supported: it is GPU machine code; use the CUDA function for it"},
    {"GL/", MISSING, "OpenGL is not installed, and a window cannot share memory with the emulated GPU"},
    {"GLFW/", MISSING, "GLFW is not installed, and a window cannot share memory with the emulated GPU"},
    {"mpi.h", MISSING,
     "MPI is not installed (Debian: apt install libopenmpi-dev; then -I and -l as `mpicxx -show` says)"},
    {"helper_", MISSING,
     "this header belongs to NVIDIA's samples and not to CUDA: take their Common folder and add -I Common"},
    {"cuda_fp6", ALWAYS, "numbers of 6 bits belong to compute capability 10.0 and are not supported; cuda_fp8.h is"},
    {"cuda_fp4", ALWAYS, "numbers of 4 bits belong to compute capability 10.0 and are not supported; cuda_fp8.h is"},
    {"cublas", MISSING, "this part of cuBLAS is not supported; cublas_v2.h and cublasLt.h are"},
    {"cufft", MISSING, "this part of cuFFT is not supported; cufft.h and cufftXt.h are"},
    {"curand", MISSING, "this part of cuRAND is not supported; curand.h and curand_kernel.h are"},
    {"cub/", MISSING, "this part of CUB is not supported; #include <cub/cub.cuh> gives the parts that are"},
    {"cuda/", MISSING, "this part of libcu++ is not supported; see the folder simt/include/cuda for those that are"},
    {"cooperative_groups/", MISSING, "this part of cooperative groups is not supported; cooperative_groups.h is"},
    {"nv/", MISSING, "this part of libcu++ is not supported; test __CUDA_ARCH__ instead"},
};

const Header *refused_header(const char *path) {
  const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++) {
    const char *name = HEADERS[i].name;
    if (!strchr(name, '/')) {
      if (strncmp(file, name, strlen(name)) == 0) return &HEADERS[i];
    } else {
      const char *found = strstr(path, name);
      if (found && (found == path || found[-1] == '/')) return &HEADERS[i];
    }
  }
  return NULL;
}

static int is_offered(const struct dirent *entry) {
  const char *end = strrchr(entry->d_name, '.');
  return end && strcmp(end, ".h") == 0 && !begins(entry->d_name, "simt_");
}

const char *reason_for(const Header *header, const char *path) {
  if (strcmp(header->name, "thrust/") != 0) return header->reason;
  const char *part = strstr(path, header->name), *end = strrchr(part, '/');
  Text text = {0}, folder = {0};
  struct dirent **entries;
  appendf(&folder, "%s/%.*s", option_ours ? option_ours : "", (int)(end - part), part);
  int count = scandir(folder.data, &entries, is_offered, alphasort);
  if (count <= 0) count = 0, appendf(&text, "%s CUB (cub/cub.cuh) or Thrust's common headers", header->reason);
  for (int i = 0; i < count; i++) {
    if (i == 0) appendf(&text, "%s what there is of %.*s/:", header->reason, (int)(end - part), part);
    appendf(&text, " %s", entries[i]->d_name);
  }
  return text.data;
}

void check_header(const char *at_file, int at_line, const char *path, bool system) {
  bool is_stub = begins(path, option_stubs);
  if (begins(path, option_ours)) return;
  if (is_stub) path += strlen(option_stubs) + 1;
  const Header *header = refused_header(path);
  if (!header) return;
  const char *shown = strstr(path, header->name);
  if (!is_stub && header->when && *header->when) {
    Text proof = {0};
    appendf(&proof, "%.*s%s", (int)(shown - path), path, header->when);
    FILE *file = fopen(proof.data, "r");
    if (!file) return;
    fclose(file);
  } else if (!is_stub && (!header->when || !system)) {
    return;
  }
  refuse_at(at_file, at_line, "#include <%s>: %s", is_stub ? path : shown, reason_for(header, shown));
}
