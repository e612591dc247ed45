/* onnx_import.cuh - a model of ONNX becomes a Graph of common/nn: what PyTorch and TensorFlow export runs on our
 * kernels.
 *
 *     OnnxModel file;
 *     OnnxImport import;
 *     Model net;
 *     if (onnx_model_read(&file, "resnet18.onnx", &err) != 0) ...
 *     if (onnx_import(&import, &file, NULL, 0, &err) != 0) ...
 *     if (model_open(&net, import.graph, context, NULL, max_batch, MODEL_INFER, &err) != 0) ...   // takes the graph
 *     if (onnx_import_parameters(&import, &net, &err) != 0) ...
 *     ... fill model_output(&net, import.inputs[0].node), model_forward(&net, batch), read import.outputs[0].node ...
 *
 * There is one type of graph. A node of ONNX that is what one of the course's operations computes becomes this
 * operation (conv2d_op, batch_norm2d_op, linear_op, ...), with PyTorch's names of its parameters where the file has
 * them. So everything that works on our networks works on what is imported: fuse.h, lower.h, implementation.h, the
 * rungs of lesson 4. Everything else becomes an operation of this lesson (nd_*_op.cuh), which takes any rank and type.
 *
 * The batch. ONNX has one list of axes; here the first of them is the number of samples. Where the first size of an
 * input is symbolic (dynamic_axes of PyTorch), it is the batch: Node.whole is 0, and every node must keep it first.
 * Otherwise the first size is fixed: Node.whole has it, and the batch of model_forward() does not matter.
 * OnnxImportInput can set either. All other sizes are numbers when a model is imported. So arithmetic on shapes (Shape,
 * Gather, Concat, Reshape) is done then, with the batch as a symbol: what is computed from constants is a constant.
 */
#ifndef PHASE5_PRODUCTION_ONNX_IMPORT_CUH
#define PHASE5_PRODUCTION_ONNX_IMPORT_CUH

#include "common/nn/model.h"
#include "common/onnx/onnx.h"

/* In OnnxImportInput.dim[0]: the batch. Elsewhere, and 0: as the file says. */
enum { ONNX_IMPORT_BATCH = -1, ONNX_IMPORT_AS_FILE = 0 };

/* What the caller knows of an input of the model. */
typedef struct OnnxImportInput {
  const char *name; /* NULL: all inputs that no other entry names */
  int rank;         /* 0, and no value: as the file says */
  int64_t dim[ONNX_MAX_RANK];
  const void *value; /* (dim) of the input's type: a constant; NULL: given at run time */
} OnnxImportInput;

/* An input or output of the graph. */
typedef struct OnnxImportValue {
  char name[256]; /* the file's */
  int node;       /* of the graph, as it was imported; graph_find(graph, node_name) finds it later */
  char node_name[NODE_NAME];
  DType type;
  int rank;
  int64_t dim[ONNX_MAX_RANK]; /* ONNX_IMPORT_BATCH: the batch */
} OnnxImportValue;

/* The bytes of a parameter, by its name. */
typedef struct OnnxConstant {
  char name[NODE_NAME + 32];
  const void *data;
  size_t bytes;
  DType type;
  int quantized; /* for onnx_import_quantized(); -1: it was not */
} OnnxConstant;

/* Integers that a parameter was made of by DequantizeLinear: x = scale (data - zero). */
typedef struct OnnxQuantized {
  DType type;
  int rank, axis; /* axis: of `scales`, where there are several */
  int64_t dim[ONNX_MAX_RANK];
  size_t count, scale_count; /* scale_count: 1 or dim[axis] */
  const void *data, *zeros;  /* zeros: (scale_count) of `type`, NULL: all 0 */
  const float *scales;
} OnnxQuantized;

/* What became of a node of the file. */
typedef enum OnnxFate { ONNX_FOLDED, ONNX_VANISHED, ONNX_OURS, ONNX_GENERIC } OnnxFate;

typedef struct OnnxImportRow {
  const char *name, *op; /* of the model, which must stay open */
  OnnxFate fate;
  char became[96]; /* the names of the graph's operations */
} OnnxImportRow;

enum { ONNX_IMPORT_VALUES = 32 };

typedef struct OnnxImport {
  Graph *graph; /* until model_open() has taken it */
  OnnxImportValue inputs[ONNX_IMPORT_VALUES], outputs[ONNX_IMPORT_VALUES];
  int input_count, output_count;
  int batched;     /* whether the batch is dynamic */
  char needs[256]; /* after a failure: the input of the model whose value must be given; "": it is not that */
  OnnxImportRow *rows;
  int row_count;
  OnnxConstant *constants;
  int constant_count, constant_capacity;
  struct Import *state; /* owns the constants' bytes */
} OnnxImport;

/* The graph of a model. `inputs` (count) may name some inputs, or none. The model must stay open until the import is
 * closed. -1 with a sentence that names the node. */
int onnx_import(OnnxImport *out, const OnnxModel *m, const OnnxImportInput *inputs, int count, Error *err);

/* Fills the parameters and constants of a model of the imported graph. -1 where the model has one that the file did not
 * have. Counters of training steps stay. */
int onnx_import_parameters(const OnnxImport *in, Model *m, Error *err);

/* By the parameter's name; NULL: it is none of the file's. */
const OnnxConstant *onnx_import_constant(const OnnxImport *in, const char *param);

/* 1 where the parameter was made by DequantizeLinear of a constant; the integers then. */
int onnx_import_quantized(const OnnxImport *in, const char *param, OnnxQuantized *quantized);

/* Frees everything but the graph of a model that was opened. Call onnx_import_drop() where none was. */
void onnx_import_close(OnnxImport *in);
static inline void onnx_import_drop(OnnxImport *in) {
  graph_destroy(in->graph);
  onnx_import_close(in);
}

/* The operators that can be imported, by name; NULL behind the last. */
const char *onnx_import_operator(int i);

#endif /* PHASE5_PRODUCTION_ONNX_IMPORT_CUH */
