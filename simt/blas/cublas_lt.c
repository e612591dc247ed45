/* cublas_lt.c - cublasLt on OpenBLAS: attributes of descriptors in tables, products described by them.
 *
 * describe() checks an operation for cublasLtMatmul() and for the heuristic, so that both refuse the same ones. A
 * product is computed as sums in float (or double); the epilogue works on these, then they are rounded to D's type.
 */
#include "cublasLt.h"

#include <limits.h>
#include <stdatomic.h>

#include "blas.h"

#define CALLER __func__, __builtin_return_address(0)

/* ---- what the descriptors hold ---- */

typedef struct Layout {
  uint32_t type;
  int32_t order;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch;
  uint32_t batch_mode;
  int64_t stride, plane;
} Layout;

typedef struct Operation {
  int32_t compute, scale, pointer_mode, trans_a, trans_b, trans_c, fill;
  uint32_t epilogue;
  const void *bias;
  void *aux;
  int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
  int32_t bias_type, aux_type, sm_count;
  int32_t a_mode, b_mode, c_mode, d_mode, aux_mode, out_mode;
  const void *a_scale, *b_scale, *c_scale, *d_scale, *aux_scale;
  void *out_scale, *d_amax, *aux_amax, *emulation;
  int8_t fast_accumulation;
} Operation;

typedef struct Preference {
  uint64_t workspace, implementations;
  uint32_t search, reductions, alignment_a, alignment_b, alignment_c, alignment_d;
  float waves;
} Preference;

typedef struct Algorithm {
  uint32_t made; /* ALGORITHM_MADE, by AlgoGetHeuristic or AlgoInit */
  int32_t id, splits;
  uint32_t tile, reduction, swizzling, option, stages;
  uint16_t inner_shape, cluster_shape;
} Algorithm;
#define ALGORITHM_MADE 0x73696d74

_Static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "a layout is larger than its descriptor");
_Static_assert(sizeof(Operation) <= sizeof(cublasLtMatmulDescOpaque_t), "an operation is larger than its descriptor");
_Static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "a preference is larger than its own");
_Static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm is larger than its descriptor");

static const Operation new_operation = {
    .fill = CUBLAS_FILL_MODE_FULL, .epilogue = CUBLASLT_EPILOGUE_DEFAULT, .bias_type = -1, .aux_type = -1};

/* ---- attributes ---- */

typedef struct Attribute {
  int id;
  const char *name;
  size_t offset, size;
  int fixed; /* a product is refused unless the attribute is as it was */
} Attribute;
#define ATTRIBUTE_OF(Struct, id, field, fixed) \
  { id, #id, offsetof(Struct, field), sizeof(((Struct *)0)->field), fixed }

#define LAYOUT(id, field) ATTRIBUTE_OF(Layout, CUBLASLT_MATRIX_LAYOUT_##id, field, 0)
static const Attribute layout_attributes[] = {
    LAYOUT(TYPE, type),
    LAYOUT(ORDER, order),
    LAYOUT(ROWS, rows),
    LAYOUT(COLS, columns),
    LAYOUT(LD, ld),
    LAYOUT(BATCH_COUNT, batch),
    LAYOUT(STRIDED_BATCH_OFFSET, stride),
    LAYOUT(PLANE_OFFSET, plane),
    LAYOUT(BATCH_MODE, batch_mode),
};

#define OPERATION(id, field) ATTRIBUTE_OF(Operation, CUBLASLT_MATMUL_DESC_##id, field, 0)
#define FIXED(id, field) ATTRIBUTE_OF(Operation, CUBLASLT_MATMUL_DESC_##id, field, 1)
static const Attribute operation_attributes[] = {
    OPERATION(COMPUTE_TYPE, compute),
    OPERATION(SCALE_TYPE, scale),
    OPERATION(POINTER_MODE, pointer_mode),
    OPERATION(TRANSA, trans_a),
    OPERATION(TRANSB, trans_b),
    FIXED(TRANSC, trans_c),
    FIXED(FILL_MODE, fill),
    OPERATION(EPILOGUE, epilogue),
    OPERATION(BIAS_POINTER, bias),
    OPERATION(BIAS_BATCH_STRIDE, bias_stride),
    OPERATION(BIAS_DATA_TYPE, bias_type),
    OPERATION(EPILOGUE_AUX_POINTER, aux),
    OPERATION(EPILOGUE_AUX_LD, aux_ld),
    OPERATION(EPILOGUE_AUX_BATCH_STRIDE, aux_stride),
    OPERATION(EPILOGUE_AUX_DATA_TYPE, aux_type),
    OPERATION(ALPHA_VECTOR_BATCH_STRIDE, alpha_stride),
    OPERATION(SM_COUNT_TARGET, sm_count),
    OPERATION(FAST_ACCUM, fast_accumulation),
    FIXED(A_SCALE_POINTER, a_scale),
    FIXED(B_SCALE_POINTER, b_scale),
    FIXED(C_SCALE_POINTER, c_scale),
    FIXED(D_SCALE_POINTER, d_scale),
    FIXED(AMAX_D_POINTER, d_amax),
    FIXED(EPILOGUE_AUX_SCALE_POINTER, aux_scale),
    FIXED(EPILOGUE_AUX_AMAX_POINTER, aux_amax),
    FIXED(A_SCALE_MODE, a_mode),
    FIXED(B_SCALE_MODE, b_mode),
    FIXED(C_SCALE_MODE, c_mode),
    FIXED(D_SCALE_MODE, d_mode),
    FIXED(EPILOGUE_AUX_SCALE_MODE, aux_mode),
    FIXED(D_OUT_SCALE_POINTER, out_scale),
    FIXED(D_OUT_SCALE_MODE, out_mode),
    FIXED(EMULATION_DESCRIPTOR, emulation),
};

#define PREFERENCE(id, field) ATTRIBUTE_OF(Preference, CUBLASLT_MATMUL_PREF_##id, field, 0)
static const Attribute preference_attributes[] = {
    PREFERENCE(SEARCH_MODE, search),
    PREFERENCE(MAX_WORKSPACE_BYTES, workspace),
    PREFERENCE(REDUCTION_SCHEME_MASK, reductions),
    PREFERENCE(MIN_ALIGNMENT_A_BYTES, alignment_a),
    PREFERENCE(MIN_ALIGNMENT_B_BYTES, alignment_b),
    PREFERENCE(MIN_ALIGNMENT_C_BYTES, alignment_c),
    PREFERENCE(MIN_ALIGNMENT_D_BYTES, alignment_d),
    PREFERENCE(MAX_WAVES_COUNT, waves),
    PREFERENCE(IMPL_MASK, implementations),
};

#define CONFIG(id, field) ATTRIBUTE_OF(Algorithm, CUBLASLT_ALGO_CONFIG_##id, field, 0)
static const Attribute config_attributes[] = {
    CONFIG(ID, id),
    CONFIG(TILE_ID, tile),
    CONFIG(SPLITK_NUM, splits),
    CONFIG(REDUCTION_SCHEME, reduction),
    CONFIG(CTA_SWIZZLING, swizzling),
    CONFIG(CUSTOM_OPTION, option),
    CONFIG(STAGES_ID, stages),
    CONFIG(INNER_SHAPE_ID, inner_shape),
    CONFIG(CLUSTER_SHAPE_ID, cluster_shape),
};

/* What the one algorithm can do. */
static const struct Capabilities {
  int32_t yes, no;
  uint32_t none, one, pointer_modes, epilogues;
  uint64_t implementation;
} capabilities = {
    .yes = 1,
    .one = 1,
    .pointer_modes = CUBLASLT_POINTER_MODE_MASK_HOST | CUBLASLT_POINTER_MODE_MASK_DEVICE,
    .epilogues = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_GELU,
    .implementation = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA,
};
#define CAPABILITY(id, field) ATTRIBUTE_OF(struct Capabilities, CUBLASLT_ALGO_CAP_##id, field, 0)
#define EMPTY(id) /* a list of shapes */ \
  { CUBLASLT_ALGO_CAP_##id, "CUBLASLT_ALGO_CAP_" #id, 0, 0, 0 }
static const Attribute capability_attributes[] = {
    CAPABILITY(SPLITK_SUPPORT, no),
    CAPABILITY(REDUCTION_SCHEME_MASK, none),
    CAPABILITY(CTA_SWIZZLING_SUPPORT, none),
    CAPABILITY(STRIDED_BATCH_SUPPORT, yes),
    CAPABILITY(OUT_OF_PLACE_RESULT_SUPPORT, yes),
    CAPABILITY(UPLO_SUPPORT, no),
    EMPTY(TILE_IDS),
    CAPABILITY(CUSTOM_OPTION_MAX, no),
    CAPABILITY(CUSTOM_MEMORY_ORDER, no),
    CAPABILITY(POINTER_MODE_MASK, pointer_modes),
    CAPABILITY(EPILOGUE_MASK, epilogues),
    EMPTY(STAGES_IDS),
    CAPABILITY(LD_NEGATIVE, no),
    CAPABILITY(NUMERICAL_IMPL_FLAGS, implementation),
    CAPABILITY(MIN_ALIGNMENT_A_BYTES, one),
    CAPABILITY(MIN_ALIGNMENT_B_BYTES, one),
    CAPABILITY(MIN_ALIGNMENT_C_BYTES, one),
    CAPABILITY(MIN_ALIGNMENT_D_BYTES, one),
    CAPABILITY(POINTER_ARRAY_BATCH_SUPPORT, no),
    CAPABILITY(FLOATING_POINT_EMULATION_SUPPORT, no),
};

#define TABLE(table) table, sizeof table / sizeof *table

static Call lt_call(const char *function, const void *caller) {
  return new_call(NULL, CUBLAS_POINTER_MODE_HOST, function, caller);
}

/* The attribute `id` of `object`; NULL, with a report, where there is none. */
static const Attribute *find(const Call *c, const Attribute *table, size_t count, const void *object, int id) {
  for (size_t i = 0; object && i < count; i++) {
    if (table[i].id == id) return &table[i];
  }
  if (object) {
    invalid(c, "there is no attribute %d", id);
  } else {
    invalid(c, "the descriptor is NULL");
  }
  return NULL;
}

static cublasStatus_t set_attribute(const char *name, const void *caller, const Attribute *table, size_t count,
                                    void *object, int id, const void *value, size_t bytes) {
  Call c = lt_call(name, caller);
  const Attribute *a = find(&c, table, count, object, id);
  if (!a) return CUBLAS_STATUS_INVALID_VALUE;
  if (!value) return invalid(&c, "buf is NULL: the value of %s is read from there", a->name);
  if (bytes != a->size) return invalid(&c, "sizeInBytes is %zu, but %s has %zu bytes", bytes, a->name, a->size);
  memcpy((char *)object + a->offset, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_attribute(const char *name, const void *caller, const Attribute *table, size_t count,
                                    const void *object, int id, void *value, size_t bytes, size_t *written) {
  Call c = lt_call(name, caller);
  const Attribute *a = find(&c, table, count, object, id);
  if (!a) return CUBLAS_STATUS_INVALID_VALUE;
  if (!bytes && !written)
    return invalid(&c, "sizeInBytes is 0 and sizeWritten NULL: neither %s nor its size can be returned", a->name);
  if (bytes && !value) return invalid(&c, "buf is NULL: %s would be written there", a->name);
  if (bytes && a->size && bytes != a->size)
    return invalid(&c, "sizeInBytes is %zu, but %s has %zu bytes", bytes, a->name, a->size);
  if (bytes) memcpy(value, (const char *)object + a->offset, a->size);
  if (written) *written = a->size;
  return CUBLAS_STATUS_SUCCESS;
}

#define ATTRIBUTES(Kind, Descriptor, Id, table)                                                                       \
  cublasStatus_t cublasLt##Kind##SetAttribute(Descriptor object, Id id, const void *value, size_t bytes) {            \
    return set_attribute(CALLER, TABLE(table), object, (int)id, value, bytes);                                        \
  }                                                                                                                   \
  cublasStatus_t cublasLt##Kind##GetAttribute(Descriptor object, Id id, void *value, size_t bytes, size_t *written) { \
    return get_attribute(CALLER, TABLE(table), object, (int)id, value, bytes, written);                               \
  }

ATTRIBUTES(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, layout_attributes)
ATTRIBUTES(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, operation_attributes)
ATTRIBUTES(MatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, preference_attributes)

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t id,
                                                    const void *value, size_t bytes) {
  Call c = lt_call(CALLER);
  if (id == CUBLASLT_ALGO_CONFIG_ID) return invalid(&c, "CUBLASLT_ALGO_CONFIG_ID is set by cublasLtMatmulAlgoInit()");
  return set_attribute(CALLER, TABLE(config_attributes), algo, (int)id, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t id, void *value, size_t bytes,
                                                    size_t *written) {
  return get_attribute(CALLER, TABLE(config_attributes), algo, (int)id, value, bytes, written);
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoCapAttributes_t id,
                                                 void *value, size_t bytes, size_t *written) {
  return get_attribute(CALLER, TABLE(capability_attributes), algo ? &capabilities : NULL, (int)id, value, bytes,
                       written);
}

/* ---- descriptors: ..Init writes to memory of the program's, ..Create allocates ---- */

static cublasStatus_t fill(void *object, size_t size, size_t needed, const void *content, size_t bytes) {
  if (!object) return CUBLAS_STATUS_INVALID_VALUE;
  if (size < needed) return CUBLAS_STATUS_ALLOC_FAILED;
  memset(object, 0, needed);
  memcpy(object, content, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ld) {
  Layout content = {.type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
  return fill(layout, size, sizeof *layout, &content, sizeof content);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  Operation content = new_operation;
  content.compute = (int32_t)compute;
  content.scale = (int32_t)scale;
  return fill(operation, size, sizeof *operation, &content, sizeof content);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  Preference content = {.implementations = ~0ull,
                        .reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
                        .alignment_a = 256,
                        .alignment_b = 256,
                        .alignment_c = 256,
                        .alignment_d = 256};
  return fill(preference, size, sizeof *preference, &content, sizeof content);
}

/* `object` is where ..Create is to put the descriptor. */
#define CREATE(object, init, ...)                    \
  if (!(object)) return CUBLAS_STATUS_INVALID_VALUE; \
  *(object) = malloc(sizeof **(object));             \
  return *(object) ? init(*(object), sizeof **(object), ##__VA_ARGS__) : CUBLAS_STATUS_ALLOC_FAILED

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  CREATE(layout, cublasLtMatrixLayoutInit_internal, type, rows, columns, ld);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  CREATE(operation, cublasLtMatmulDescInit_internal, compute, scale);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  CREATE(preference, cublasLtMatmulPreferenceInit_internal);
}

/* NULL too, as free() does. */
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  free(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  free(operation);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  free(preference);
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- a product described, or the reason why not ---- */

typedef struct Matmul {
  Call call; /* its C is only read */
  Operand d, bias, aux;
  uint32_t epilogue;
} Matmul;
#define EPILOGUE_AUX 128 /* the bit of the epilogues with an auxiliary matrix */

static cublasStatus_t types_are_offered(const Call *call, int compute, int scale, cudaDataType a, cudaDataType b,
                                        cudaDataType c, cudaDataType d) {
  int wanted = compute >= CUBLAS_COMPUTE_16F && c == d && a != CUDA_R_8I
                   ? gemm_scalar_type((cublasComputeType_t)compute, a, b, d)
                   : -1;
  if (wanted == scale && (scale == CUDA_R_16F || scale == CUDA_R_32F || scale == CUDA_R_64F)) {
    return CUBLAS_STATUS_SUCCESS;
  }
  return not_supported(call,
                       "compute type %d, scale type %d and matrices of types %d, %d, %d, %d (see cublasComputeType_t, "
                       "cudaDataType) are not among the real types that cublasLt.h lists",
                       compute, scale, (int)a, (int)b, (int)c, (int)d);
}

/* An operand as its layout says; `batch` is that of all of them, 0 before the first. */
static cublasStatus_t shape(const Call *call, Operand *o, const char *name, const void *descriptor, int *batch) {
  const Layout *l = descriptor;
  if (!l) return invalid(call, "the layout of %s is NULL", name);
  if (l->order != CUBLASLT_ORDER_COL && l->order != CUBLASLT_ORDER_ROW) {
    return not_supported(call, "the order of %s is %d; CUBLASLT_ORDER_COL (0) and CUBLASLT_ORDER_ROW (1) are offered",
                         name, (int)l->order);
  }
  if (l->batch_mode != CUBLASLT_BATCH_MODE_STRIDED) {
    return not_supported(call, "the batch mode of %s is %u; only CUBLASLT_BATCH_MODE_STRIDED (0) is offered", name,
                         (unsigned)l->batch_mode);
  }
  if (l->plane)
    return not_supported(call, "CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET of %s is set: planes are not offered", name);
  if (l->rows > INT_MAX || l->columns > INT_MAX || l->ld > INT_MAX) {
    return not_supported(call, "%s is %llu x %llu, leading dimension %lld; more than %d each is not offered", name,
                         (unsigned long long)l->rows, (unsigned long long)l->columns, (long long)l->ld, INT_MAX);
  }
  if (l->rows == 0 || l->columns == 0 || l->batch < 1) {
    return invalid(call, "%s is %d x %d in a batch of %d: each must be at least 1", name, (int)l->rows, (int)l->columns,
                   (int)l->batch);
  }
  if (*batch && l->batch != *batch) {
    return invalid(call, "the batch count of %s is %d, that of A %d: they must be equal", name, (int)l->batch, *batch);
  }
  *batch = l->batch;
  *o = matrix(name, (cudaDataType)l->type, NULL, (int)l->rows, (int)l->columns, l->ld < 0 ? -1 : (int)l->ld);
  o->by_rows = l->order == CUBLASLT_ORDER_ROW;
  o->stride = l->stride;
  return leading_dimension(call, o);
}

#define NAME(epilogue) \
  case epilogue:       \
    return #epilogue

/* The name of an epilogue that is refused. NULL: it is offered, or it is not an epilogue. */
static const char *refused_epilogue(uint32_t epilogue) {
  switch (epilogue) {
    NAME(CUBLASLT_EPILOGUE_RELU_AUX);
    NAME(CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
    NAME(CUBLASLT_EPILOGUE_DRELU);
    NAME(CUBLASLT_EPILOGUE_DRELU_BGRAD);
    NAME(CUBLASLT_EPILOGUE_DGELU);
    NAME(CUBLASLT_EPILOGUE_DGELU_BGRAD);
    NAME(CUBLASLT_EPILOGUE_BGRADA);
    NAME(CUBLASLT_EPILOGUE_BGRADB);
    default:
      return NULL;
  }
}

static cublasStatus_t describe_epilogue(Matmul *x, const Operation *op) {
  const Call *call = &x->call;
  const Operand *d = &x->d;
  const char *refused = refused_epilogue(op->epilogue);
  if (refused) return not_supported(call, "%s is not offered; cublasLt.h lists the epilogues that are", refused);
  switch (op->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      break;
    default:
      return invalid(call, "%u is none of cublasLtEpilogue_t", (unsigned)op->epilogue);
  }
  x->epilogue = op->epilogue;
  if (op->epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  if (d->by_rows)
    return not_supported(call,
                         "an epilogue other than DEFAULT needs a D in CUBLASLT_ORDER_COL, in NVIDIA's library too");
  if (op->epilogue & CUBLASLT_EPILOGUE_BIAS) {
    if (op->bias_type >= 0 && op->bias_type != (int)d->type) {
      return not_supported(call, "the bias has type %d and D type %d (see cudaDataType); only equal types are offered",
                           (int)op->bias_type, (int)d->type);
    }
    x->bias = vector("the bias (CUBLASLT_MATMUL_DESC_BIAS_POINTER)", d->type, op->bias, d->rows, 1);
    x->bias.stride = op->bias_stride;
  }
  if (op->epilogue & EPILOGUE_AUX) {
    if (op->aux_type >= 0 && op->aux_type != (int)d->type) {
      return not_supported(call,
                           "the auxiliary matrix has type %d and D type %d (see cudaDataType); only equal types are "
                           "offered",
                           (int)op->aux_type, (int)d->type);
    }
    if (op->aux_ld < d->rows || op->aux_ld % 8 || op->aux_ld > INT_MAX) {
      return invalid(
          call,
          "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD is %lld; it must be a multiple of 8 and at least the %d rows "
          "of D",
          (long long)op->aux_ld, d->rows);
    }
    if (op->aux_stride % 8) {
      return invalid(call, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE is %lld; it must be a multiple of 8",
                     (long long)op->aux_stride);
    }
    x->aux = matrix("the auxiliary matrix (CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER)", d->type, op->aux, d->rows,
                    d->columns, (int)op->aux_ld);
    x->aux.stride = op->aux_stride;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* All but the pointers and alpha and beta. */
static cublasStatus_t describe(Matmul *x, const void *operation_descriptor, const void *layout_a, const void *layout_b,
                               const void *layout_c, const void *layout_d) {
  const Operation *op = operation_descriptor;
  Call *c = &x->call;
  Operand *a = &c->a, *b = &c->b, *d = &x->d;
  if (!op) return invalid(c, "the descriptor of the operation is NULL");
  for (size_t i = 0; i < sizeof operation_attributes / sizeof *operation_attributes; i++) {
    const Attribute *attribute = &operation_attributes[i];
    size_t at = attribute->offset;
    if (attribute->fixed && memcmp((const char *)op + at, (const char *)&new_operation + at, attribute->size) != 0) {
      return not_supported(c, "%s is set; it is not offered", attribute->name);
    }
  }
  if (op->pointer_mode != CUBLASLT_POINTER_MODE_HOST && op->pointer_mode != CUBLASLT_POINTER_MODE_DEVICE) {
    return not_supported(c, "CUBLASLT_MATMUL_DESC_POINTER_MODE is %d; HOST (0) and DEVICE (1) are offered",
                         (int)op->pointer_mode);
  }
  c->pointer_mode = (cublasPointerMode_t)op->pointer_mode;
  c->trans_a = (cublasOperation_t)op->trans_a;
  c->trans_b = (cublasOperation_t)op->trans_b;
  TRY(operation(c, "CUBLASLT_MATMUL_DESC_TRANSA", c->trans_a));
  TRY(operation(c, "CUBLASLT_MATMUL_DESC_TRANSB", c->trans_b));
  c->batch = 0;
  TRY(shape(c, a, "A", layout_a, &c->batch));
  TRY(shape(c, b, "B", layout_b, &c->batch));
  TRY(shape(c, &c->c, "C", layout_c, &c->batch));
  TRY(shape(c, d, "D", layout_d, &c->batch));
  TRY(types_are_offered(c, op->compute, op->scale, a->type, b->type, c->c.type, d->type));
  c->m = c->trans_a == CUBLAS_OP_N ? a->rows : a->columns;
  c->k = c->trans_a == CUBLAS_OP_N ? a->columns : a->rows;
  c->n = c->trans_b == CUBLAS_OP_N ? b->columns : b->rows;
  int k = c->trans_b == CUBLAS_OP_N ? b->rows : b->columns;
  if (k != c->k || d->rows != c->m || d->columns != c->n || c->c.rows != c->m || c->c.columns != c->n) {
    return invalid(
        c, "op(A) is %d x %d, op(B) %d x %d, C %d x %d and D %d x %d; expected m x k, k x n, and m x n for C and D",
        c->m, c->k, k, c->n, c->c.rows, c->c.columns, d->rows, d->columns);
  }
  int by_rows = a->by_rows + b->by_rows + c->c.by_rows + d->by_rows;
  if ((c->trans_a == CUBLAS_OP_C || c->trans_b == CUBLAS_OP_C) && by_rows != 0 && by_rows != 4) {
    return not_supported(
        c, "CUBLAS_OP_C with a matrix in CUBLASLT_ORDER_ROW needs all four in it, in NVIDIA's library too");
  }
  return describe_epilogue(x, op);
}

/* ---- the product ---- */

static double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

/* Columns of sums, for member i of the batch. */
static void apply_epilogue(const Matmul *x, int i, void *sums) {
  const Call *c = &x->call;
  cudaDataType type = sum_type(c);
  const void *bias = x->epilogue & CUBLASLT_EPILOGUE_BIAS ? member(c, &x->bias, i) : NULL;
  void *aux = x->epilogue & EPILOGUE_AUX ? member(c, &x->aux, i) : NULL;
  for (int column = 0; column < c->n; column++) {
    for (int row = 0; row < c->m; row++) {
      ptrdiff_t at = row + (ptrdiff_t)column * c->m;
      double number = load(type, sums, at);
      if (bias) number += load(x->bias.type, bias, row);
      if (aux) store(x->aux.type, line(&x->aux, aux, column), row, number);
      if (x->epilogue & CUBLASLT_EPILOGUE_RELU) number = number < 0 ? 0 : number; /* NaN stays */
      if (x->epilogue & CUBLASLT_EPILOGUE_GELU) number = gelu(number);
      store(type, sums, at, number);
    }
  }
  if (aux) written(&x->aux, aux);
}

static void work_matmul(void *context) {
  Matmul *x = context;
  Call *c = &x->call;
  void *sums = product_space(c);
  for (int i = 0; sums && i < c->batch; i++) {
    void *out = member(c, &x->d, i);
    product(c, member(c, &c->a, i), member(c, &c->b, i), member(c, &c->c, i), x->d.by_rows, sums);
    if (x->epilogue != CUBLASLT_EPILOGUE_DEFAULT) apply_epilogue(x, i, sums);
    sums_to(&x->d, sums, out);
    written(&x->d, out);
  }
  free(sums);
}

static cublasStatus_t is_made(const Call *call, const void *algo) {
  const Algorithm *algorithm = algo;
  if (algorithm && algorithm->made == ALGORITHM_MADE) return CUBLAS_STATUS_SUCCESS;
  return invalid(call, "algo was made neither by cublasLtMatmulAlgoGetHeuristic() nor by cublasLtMatmulAlgoInit()");
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t layout_a, const void *B, cublasLtMatrixLayout_t layout_b,
                              const void *beta, const void *C, cublasLtMatrixLayout_t layout_c, void *D,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  Matmul x = {.call = lt_call(CALLER)};
  Call *c = &x.call;
  (void)workspace;
  (void)workspace_bytes;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  TRY(describe(&x, operation, layout_a, layout_b, layout_c, layout_d));
  if (algo) TRY(is_made(c, algo));
  c->stream = stream;
  c->a.data = A;
  c->b.data = B;
  c->c.data = C;
  x.d.data = D;
  cudaDataType scalar_type = (cudaDataType)((const Operation *)operation)->scale;
  TRY(set_scalar(c, &c->alpha, "alpha", scalar_type, alpha));
  TRY(set_scalar(c, &c->beta, "beta", scalar_type, beta));
  int reads_ab = c->alpha.device || !is_zero(&c->alpha), reads_c = c->beta.device || !is_zero(&c->beta);
  if (reads_c && C == D && (c->c.by_rows != x.d.by_rows || c->c.ld != x.d.ld || c->c.stride != x.d.stride)) {
    return invalid(c, "C is D, but their layouts differ");
  }
  if ((x.epilogue & CUBLASLT_EPILOGUE_BIAS && !x.bias.data) || (x.epilogue & EPILOGUE_AUX && !x.aux.data)) {
    return invalid(c, "the epilogue needs %s, which is NULL", x.bias.name && !x.bias.data ? x.bias.name : x.aux.name);
  }
  if ((reads_ab && (!operand_is_good(c, &c->a) || !operand_is_good(c, &c->b))) ||
      (reads_c && !operand_is_good(c, &c->c)) || !operand_is_good(c, &x.d) || !operand_is_good(c, &x.bias) ||
      !operand_is_good(c, &x.aux)) { /* what the epilogue does not have has no rows */
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit_bytes(c, sizeof x, work_matmul);
}

/* ---- the algorithm ---- */

static cublasLtMatmulAlgo_t the_algorithm(void) {
  Algorithm algorithm = {.made = ALGORITHM_MADE, .splits = 1};
  cublasLtMatmulAlgo_t algo = {0};
  memcpy(&algo, &algorithm, sizeof algorithm);
  return algo;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t layout_a, cublasLtMatrixLayout_t layout_b,
                                              cublasLtMatrixLayout_t layout_c, cublasLtMatrixLayout_t layout_d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *returned) {
  Matmul x = {.call = lt_call(CALLER)};
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!preference || !results || !returned) {
    return invalid(&x.call, "%s is NULL",
                   !preference ? "preference"
                   : !results  ? "heuristicResultsArray"
                               : "returnAlgoCount");
  }
  *returned = 0;
  if (requested <= 0) return invalid(&x.call, "requestedAlgoCount is %d; it must be at least 1", requested);
  TRY(describe(&x, operation, layout_a, layout_b, layout_c, layout_d));
  results[0] =
      (cublasLtMatmulHeuristicResult_t){.algo = the_algorithm(), .state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                        cudaDataType_t type_a, cudaDataType_t type_b, cudaDataType_t type_c,
                                        cudaDataType_t type_d, int requested, int ids[], int *returned) {
  Call c = lt_call(CALLER);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!ids || !returned) return invalid(&c, "%s is NULL", ids ? "returnAlgoCount" : "algoIdsArray");
  *returned = 0;
  if (requested <= 0) return invalid(&c, "requestedAlgoCount is %d; it must be at least 1", requested);
  TRY(types_are_offered(&c, (int)compute, (int)scale, type_a, type_b, type_c, type_d));
  ids[0] = 0;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t type_a, cudaDataType_t type_b, cudaDataType_t type_c,
                                      cudaDataType_t type_d, int id, cublasLtMatmulAlgo_t *algo) {
  Call c = lt_call(CALLER);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!algo) return invalid(&c, "algo is NULL");
  if (id != 0) return invalid(&c, "there is no algorithm %d: cublasLtMatmulAlgoGetIds() gives the numbers", id);
  TRY(types_are_offered(&c, (int)compute, (int)scale, type_a, type_b, type_c, type_d));
  *algo = the_algorithm();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t layout_a, cublasLtMatrixLayout_t layout_b,
                                       cublasLtMatrixLayout_t layout_c, cublasLtMatrixLayout_t layout_d,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result) {
  Matmul x = {.call = lt_call(CALLER)};
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!result) return invalid(&x.call, "result is NULL");
  TRY(is_made(&x.call, algo));
  TRY(describe(&x, operation, layout_a, layout_b, layout_c, layout_d));
  result->workspaceSize = 0;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- the handle: one of cuBLAS's; nothing is read from it ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { return cublasCreate_v2((cublasHandle_t *)handle); }

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return handle ? cublasDestroy_v2((cublasHandle_t)handle) : CUBLAS_STATUS_INVALID_VALUE;
}

const char *cublasLtGetStatusName(cublasStatus_t status) { return cublasGetStatusName(status); }
const char *cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusString(status); }
size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }
cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value) { return cublasGetProperty(type, value); }

static _Atomic size_t heuristics_capacity = 8192;
static _Atomic unsigned instructions_mask;

cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *capacity) {
  if (!capacity) return CUBLAS_STATUS_INVALID_VALUE;
  *capacity = heuristics_capacity;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity) {
  heuristics_capacity = capacity;
  return CUBLAS_STATUS_SUCCESS;
}

unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask) { return atomic_exchange(&instructions_mask, mask); }

/* ---- the log ---- */

#define LOG(Setting, parameter, ok)                                    \
  cublasStatus_t cublasLtLogger##Setting(parameter) {                  \
    return (ok) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE; \
  }

LOG(SetCallback, cublasLtLoggerCallback_t callback __attribute__((unused)), 1)
LOG(SetFile, FILE *file __attribute__((unused)), 1)
LOG(OpenFile, const char *path __attribute__((unused)), 1)
LOG(SetLevel, int level, level >= 0 && level <= 5)
LOG(SetMask, int mask __attribute__((unused)), 1)
LOG(ForceDisable, void, 1)
