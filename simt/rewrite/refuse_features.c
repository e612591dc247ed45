/* refuse_features.c - what cannot work on a CPU or is not supported: inline PTX, textures. */
#include "refuse.h"

#include <ctype.h>

/* The text of the string literals from token i on, with single spaces for what separates its words. */
static char *text_of_strings(int i) {
  Text text = {0};
  append(&text, "", 0);
  for (; is_kind(i, STRING); i++) {
    const char *p = memchr(tokens[i].text, '"', tokens[i].length), *end = tokens[i].text + tokens[i].length - 1;
    if (!p) continue;
    if (p > tokens[i].text && p[-1] == 'R') p += strcspn(p, "(");
    for (p++; p < end; p++) {
      bool escape = p[0] == '\\' && strchr("nt", p[1]);
      p += escape;
      if (!escape && !isspace((unsigned char)*p))
        append(&text, p, 1);
      else if (text.length && text.data[text.length - 1] != ' ')
        append(&text, " ", 1);
    }
  }
  while (text.length && text.data[text.length - 1] == ' ') text.data[--text.length] = 0;
  return text.data;
}

void check_assembly(int i) {
  const Item *function = function_at(i);
  int open = i + 1;
  while (is_one_of(open, "volatile __volatile__ __volatile goto inline __inline__")) open++;
  if (!is(open, "(") || !is_kind(open + 1, STRING) || !function) return;
  char *start = text_of_strings(open + 1);
  if (!*start) return; /* asm volatile("" ::: "memory"): the compiler keeps its order of accesses */
  bool is_ptx = is_kernel_or_device_only(function);
  for (const char *p = start; *p && !is_ptx; p++) /* add.s32: no processor's assembly but the GPU's has such dots */
    is_ptx = isalpha((unsigned char)p[0]) && p[1] == '.' && isalpha((unsigned char)p[2]);
  if (!is_ptx) return;

  static const char *const instead[][2] = {
      {"cp.async.bulk", "simt::tma_load() and its kin (simt/hopper.h) where SIMT_REWRITTEN is defined"},
      {"cp.async", "__pipeline_memcpy_async() (cuda_pipeline.h), or cuda::memcpy_async()"},
      {"wgmma", "simt::wgmma() and its kin (simt/hopper.h) where SIMT_REWRITTEN is defined"},
      {"setmaxnreg", "nothing where SIMT_REWRITTEN is defined: it changes no result"},
      {"mma", "nvcuda::wmma (mma.h)"},
      {"ldmatrix", "nvcuda::wmma::load_matrix_sync() (mma.h)"},
      {"cvta", "__cvta_generic_to_shared(); with the instruction that used the address, the CUDA function for it"},
      {"mbarrier",
       "cuda::barrier, or simt::mbarrier_wait() and its kin (simt/hopper.h) where SIMT_REWRITTEN is defined"},
      {"barrier.cluster", "cooperative_groups::this_cluster().sync()"},
      {"mapa", "cooperative_groups::this_cluster().map_shared_rank()"},
      {"fence.proxy.async", "simt::fence_async_proxy() (simt/hopper.h) where SIMT_REWRITTEN is defined"},
      {"laneid", "threadIdx.x % warpSize"},
      {"lanemask", "an expression of threadIdx.x % warpSize"},
      {"warpid", "threadIdx.x / warpSize"},
      {"smid", "blockIdx: which multiprocessor a block runs on is nothing to rely on"},
      {"globaltimer", "clock64()"},
      {"clock", "clock64()"},
      {"nanosleep", "__nanosleep()"},
      {"barrier", "__syncthreads(), cooperative groups or cuda::barrier"},
      {"bar.", "__syncthreads(), cooperative groups or cuda::barrier"},
      {"shfl", "__shfl_sync() and its kin"},
      {"vote", "__ballot_sync(), __any_sync() or __all_sync()"},
      {"match", "__match_any_sync()"},
      {"redux", "__reduce_add_sync() and its kin"},
      {"membar", "__threadfence()"},
      {"fence", "__threadfence()"},
      {"atom.", "atomicAdd() and its kin"},
      {"red.", "atomicAdd() and its kin"},
      {"prefetch", "nothing: it changes no result"},
      {"discard", "nothing: it changes no result"},
      {"ld.", "*pointer, or __ldg(), __ldcs(), __ldcg()"},
      {"st.", "*pointer = value, or __stcs(), __stcg()"},
      {"ex2", "exp2f()"},
      {"lg2", "log2f()"},
      {"tanh", "tanhf()"},
      {"rcp", "1 / x, or __frcp_rn()"},
      {"rsqrt", "rsqrtf()"},
      {"sqrt", "sqrtf()"},
      {"sin", "sinf()"},
      {"cos", "cosf()"},
      {"fma", "fmaf()"},
      {"cvt", "a conversion like __float2int_rn() or __float2half()"},
      {"dp4a", "__dp4a()"},
      {"lop3", "&, | and ^"},
      {"prmt", "__byte_perm()"},
      {"bfe", ">> and &"},
      {"bfi", "<<, & and |"},
      {"popc", "__popc()"},
      {"clz", "__clz()"},
      {"brev", "__brev()"},
      {"trap", "__trap()"},
      {"exit", "return"},
  };
  const char *advice = "C++, or the CUDA function that does the same";
  for (size_t k = 0; k < sizeof instead / sizeof *instead; k++) {
    if (!strstr(start, instead[k][0])) continue;
    advice = instead[k][1];
    break;
  }
  refuse(i, "inline PTX \"%.40s%s\" is a GPU's machine code and cannot run on a CPU; instead write %s", start,
         strlen(start) > 40 ? ".." : "", advice);
}

void check_name(int i) {
  static const struct {
    const char *names, *reason;
  } unsupported[] = {
      {"tex1D tex1Dfetch tex1DLod tex1DGrad tex1DLayered tex2D tex2DLod tex2DGrad tex2DLayered tex2Dgather tex3D "
       "tex3DLod "
       "tex3DGrad texCubemap texCubemapLayered cudaTextureObject_t cudaCreateTextureObject cudaDestroyTextureObject "
       "cudaTextureDesc cudaBindTexture cudaBindTexture2D cudaBindTextureToArray cudaUnbindTexture textureReference",
       "textures are not supported; read the array by its index (a[y * width + x]), and interpolate by hand"},
      {"surf1Dread surf1Dwrite surf2Dread surf2Dwrite surf3Dread surf3Dwrite cudaSurfaceObject_t "
       "cudaCreateSurfaceObject "
       "cudaDestroySurfaceObject cudaBindSurfaceToArray surfaceReference",
       "surfaces are not supported; write the array by its index (a[y * width + x])"},
      {"cudaLaunchCooperativeKernelMultiDevice multi_grid_group this_multi_grid",
       "a cooperative launch on several GPUs is not supported: the emulator has one; use "
       "cudaLaunchCooperativeKernel()"},
  };
  if (is_one_of(i - 1, ". ->")) return; /* a member of the program's own */
  for (size_t k = 0; k < sizeof unsupported / sizeof *unsupported; k++) {
    if (!is_one_of(i, unsupported[k].names)) continue;
    for (int f = 0; f < item_count; f++) /* the program has a function of that name */
      if (items[f].parameters >= 0 && items[f].name >= 0 && is_same(items[f].name, i)) return;
    refuse(i, "%s: %s", name_of(i), unsupported[k].reason);
    return;
  }
  if (is(i, "texture") && is(i + 1, "<") && !in_function(i))
    refuse(i, "texture<..>: %s", unsupported[0].reason);
  else if (is(i, "surface") && is(i + 1, "<") && !in_function(i))
    refuse(i, "surface<..>: %s", unsupported[1].reason);
  else if (is(i, "cudaDeviceSynchronize") && function_at(i) && is_kernel_or_device_only(function_at(i)))
    refuse(i, "cudaDeviceSynchronize() in a kernel belongs to dynamic parallelism, which is not supported");
}
