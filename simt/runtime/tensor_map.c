/* tensor_map.c - tensor maps as the driver makes them, and what the Tensor Memory Accelerator does with one: the copy
 * of a box to shared memory. Outside of the tensor the box is filled with zeros.
 */
#include "hopper.h"

#include "cuda.h"
#include "host.h"

enum { MAGIC = 0x53494d54 }; /* "SIMT" */

static const char *const type_names[] = {"uint8",       "uint16",   "uint32",      "int32",   "uint64",
                                         "int64",       "float16",  "float32",     "float64", "bfloat16",
                                         "float32_ftz", "tfloat32", "tfloat32_ftz"};
static const uint8_t type_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
enum { TYPES = sizeof type_bytes };

typedef char map_fits[sizeof(TensorMap) <= sizeof(CUtensorMap) ? 1 : -1];

static CUresult wrong(SimtSite site, CUresult result, const char *format, ...) __attribute__((format(printf, 3, 4)));
static CUresult wrong(SimtSite site, CUresult result, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  simt_report_call(result == CUDA_ERROR_NOT_SUPPORTED ? "not supported" : "tensor map", "cuTensorMapEncodeTiled", site,
                   "%s", text);
  return result;
}

/* In the order of the documentation of cuTensorMapEncodeTiled(). */
static CUresult check(SimtSite site, unsigned type, unsigned rank, const void *address, const cuuint64_t *size,
                      const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, unsigned swizzle) {
  const CUresult bad = CUDA_ERROR_INVALID_VALUE;
  if (type >= TYPES) return wrong(site, bad, "the type is %u; expected one of CUtensorMapDataType", type);
  if (rank < 1 || rank > TENSOR_RANKS) return wrong(site, bad, "the rank is %u; expected 1 to 5", rank);
  if (!address || !size || !box || !step || (rank > 1 && !stride)) return wrong(site, bad, "a pointer is NULL");
  if ((uintptr_t)address % 16 != 0)
    return wrong(site, bad, "the tensor begins at %p; expected a multiple of 16 bytes", address);
  unsigned bytes = type_bytes[type];
  for (unsigned i = 0; i < rank; i++) {
    if (size[i] < 1 || size[i] > (cuuint64_t)1 << 32)
      return wrong(site, bad, "size %u is %llu; expected 1 to 2^32", i, (unsigned long long)size[i]);
    if (box[i] < 1 || box[i] > 256) return wrong(site, bad, "size %u of the box is %u; expected 1 to 256", i, box[i]);
    if (step[i] < 1 || step[i] > 8) return wrong(site, bad, "step %u is %u; expected 1 to 8", i, step[i]);
    if (step[i] != 1)
      return wrong(site, CUDA_ERROR_NOT_SUPPORTED, "step %u is %u; only steps of 1 are emulated", i, step[i]);
  }
  for (unsigned i = 1; i < rank; i++)
    if (stride[i - 1] % 16 != 0 || stride[i - 1] >= (cuuint64_t)1 << 40)
      return wrong(site, bad,
                   "stride %u is %llu bytes; expected a multiple of 16, less than 2^40: pad the rows, or copy them "
                   "another way",
                   i - 1, (unsigned long long)stride[i - 1]);
  unsigned row = box[0] * bytes, width = swizzle ? 16u << swizzle : 0;
  if (row % 16 != 0)
    return wrong(site, bad, "a row of the box has %u %s, %u bytes; expected a multiple of 16 bytes", box[0],
                 type_names[type], row);
  if (width && row > width)
    return wrong(site, bad, "a row of the box has %u bytes; with the %u-byte swizzle expected at most %u", row, width,
                 width);
  if (width && row < width)
    return wrong(site, CUDA_ERROR_NOT_SUPPORTED,
                 "a row of the box has %u bytes and the swizzle is %u bytes wide; only full rows are emulated", row,
                 width);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  SimtSite site = SIMT_CALLER;
  if (simt_capability() < 90)
    return wrong(
        site, CUDA_ERROR_NOT_SUPPORTED,
        "tensor maps need compute capability 9.0; the emulated GPU has 8.0\n    try: SIMT_CAPABILITY=9.0 in the "
        "environment");
  if (!map || (uintptr_t)map % SIMT_MAP_ALIGNMENT != 0)
    return wrong(site, CUDA_ERROR_INVALID_VALUE, "the map is at %p; expected a multiple of %d bytes", (void *)map,
                 SIMT_MAP_ALIGNMENT);
  if ((unsigned)swizzle > CU_TENSOR_MAP_SWIZZLE_128B || (unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
    return wrong(site, CUDA_ERROR_INVALID_VALUE, "swizzle %d, promotion %d: expected 0 to 3", (int)swizzle,
                 (int)promotion);
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
    return wrong(site, CUDA_ERROR_NOT_SUPPORTED, "interleaved tensors are not emulated");
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return wrong(site, CUDA_ERROR_NOT_SUPPORTED, "outside of the tensor only zeros are emulated");
  CUresult result = check(site, type, rank, address, size, stride, box, step, swizzle);
  if (result != CUDA_SUCCESS) return result;
  TensorMap m = {.address = address,
                 .magic = MAGIC,
                 .rank = (uint8_t)rank,
                 .element = type_bytes[type],
                 .swizzle = (uint8_t)(swizzle ? 16u << swizzle : 0)};
  for (unsigned i = 0; i < rank; i++) {
    m.size[i] = (uint32_t)(size[i] - 1);
    m.box[i] = (uint16_t)box[i];
    if (i) m.stride[i - 1] = stride[i - 1];
  }
  memset(map, 0, sizeof *map);
  memcpy(map, &m, sizeof m);
  return CUDA_SUCCESS;
}

int simt_tensor_map_valid(const TensorMap *map) { return map->magic == MAGIC; }

size_t simt_tensor_box_bytes(const TensorMap *map) {
  size_t bytes = map->element;
  for (int i = 0; i < map->rank; i++) bytes *= map->box[i];
  return bytes;
}

size_t simt_tensor_inside_bytes(const TensorMap *map, const int *place) {
  size_t bytes = map->element;
  for (int i = 0; i < map->rank; i++) {
    long long low = place[i] < 0 ? 0 : place[i], high = (long long)place[i] + map->box[i];
    if (high > (long long)map->size[i] + 1) high = (long long)map->size[i] + 1;
    bytes *= high > low ? (size_t)(high - low) : 0;
  }
  return bytes;
}

size_t simt_tensor_extent(const TensorMap *map) {
  size_t bytes = ((size_t)map->size[0] + 1) * map->element;
  for (int i = 1; i < map->rank; i++) bytes += (size_t)map->size[i] * map->stride[i - 1];
  return bytes;
}

/* ---- a box ---- */

/* The r-th row of the box at `place` in the tensor, from x = 0 on; NULL: it is outside. */
static char *row_of(const TensorMap *map, const int *place, size_t r) {
  char *row = map->address;
  int inside = 1;
  for (int i = 1; i < map->rank; i++, r /= map->box[i - 1]) {
    long long index = place[i] + (long long)(r % map->box[i]);
    inside &= index >= 0 && index <= (long long)map->size[i];
    row += index * (long long)map->stride[i - 1];
  }
  return inside ? row : NULL;
}

void simt_tensor_tell_reads(const TensorMap *map, const int *place, const void *pc) {
  long long low = place[0] < 0 ? 0 : place[0], high = (long long)place[0] + map->box[0];
  size_t rows = simt_tensor_box_bytes(map) / ((size_t)map->box[0] * map->element);
  if (high > (long long)map->size[0] + 1) high = (long long)map->size[0] + 1;
  for (size_t r = 0; r < rows && low < high; r++) {
    const char *row = row_of(map, place, r);
    if (row) TELL_INSPECTOR(bulk_reads(pc, row + low * map->element, (size_t)(high - low) * map->element));
  }
  (void)pc;
}

void simt_tensor_write(const TensorMap *map, const int *place, const char *from, uint32_t at) {
  char row[256 * 8];
  size_t row_bytes = (size_t)map->box[0] * map->element, rows = simt_tensor_box_bytes(map) / row_bytes;
  long long first = place[0], last = first + map->box[0];
  long long low = first < 0 ? 0 : first, high = last > (long long)map->size[0] + 1 ? (long long)map->size[0] + 1 : last;
  for (size_t r = 0; r < rows && low < high; r++) {
    char *to = row_of(map, place, r);
    if (!to) continue;
    for (size_t i = 0; i < row_bytes; i += 16) {
      uint32_t chunk = at + (uint32_t)(r * row_bytes + i);
      memcpy(row + i, from + (int)(simt_swizzle(chunk, map->swizzle) - at), 16);
    }
    size_t bytes = (size_t)(high - low) * map->element;
    memcpy(to + low * map->element, row + (low - first) * map->element, bytes);
    TELL_INSPECTOR(host_wrote(to + low * map->element, bytes));
  }
}

void simt_tensor_copy(const TensorMap *map, const int *place, char *to, uint32_t at) {
  char row[256 * 8];
  size_t row_bytes = (size_t)map->box[0] * map->element, rows = simt_tensor_box_bytes(map) / row_bytes;
  long long first = place[0], last = first + map->box[0]; /* of the row; inside of the tensor: low .. high */
  long long low = first < 0 ? 0 : first, high = last > (long long)map->size[0] + 1 ? (long long)map->size[0] + 1 : last;
  for (size_t r = 0; r < rows; r++) {
    const char *from = low < high ? row_of(map, place, r) : NULL;
    if (from && low == first && high == last) {
      memcpy(row, from + first * map->element, row_bytes);
    } else {
      memset(row, 0, row_bytes);
      if (from)
        memcpy(row + (low - first) * map->element, from + low * map->element, (size_t)(high - low) * map->element);
    }
    for (size_t i = 0; i < row_bytes; i += 16) {
      uint32_t chunk = at + (uint32_t)(r * row_bytes + i);
      memcpy(to + (int)(simt_swizzle(chunk, map->swizzle) - at), row + i, 16);
    }
  }
}

/* ---- how a program finds the driver's function ---- */

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
  RETURN_IF_STICKY;
  if (!symbol || !function || flags > cudaEnablePerThreadDefaultStream) return simt_error(cudaErrorInvalidValue);
  int known = strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  *function = known ? (void *)cuTensorMapEncodeTiled : NULL;
  if (status) *status = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return simt_error(known || status ? cudaSuccess : cudaErrorSymbolNotFound);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status) {
  (void)version;
  return cudaGetDriverEntryPoint(symbol, function, flags, status);
}
