/* graph.h - what the files of the graph API know of each other: descriptors, which hold their attributes, and the
 * program that a graph of operations is. */
#ifndef SIMT_DNN_GRAPH_H
#define SIMT_DNN_GRAPH_H

#include "dnn.h"

typedef struct Slot { /* one attribute */
  struct Slot *next;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
  void *data;
} Slot;

typedef struct ProgramOperand {
  Tensor t;
  int64_t id;
  int by_value, written;
  char name[40]; /* for messages */
} ProgramOperand;

/* A convolution, or a tensor, and the pointwise operations that follow. */
typedef struct Program {
  int has_convolution, x, w, y; /* operands; y -1: virtual. Without a convolution x is what the first step reads */
  Convolution convolution;
  Tensor value; /* packed, of what the steps compute on */
  float alpha, beta;
  int operands, steps;
  ProgramOperand operand[CALL_OPERANDS];
  Pointwise step[CALL_STEPS];
} Program;

/* What a cudnnBackendDescriptor_t points to. Others that were given it hold it, too. */
typedef struct Descriptor {
  cudnnBackendDescriptorType_t type;
  int finalized, references;
  Slot *slots;
  Program *program; /* of an operation graph that is finalized */
} Descriptor;

/* ---- attributes.c ---- */

enum { SET = 1, NEEDED = 2, GIVEN = 4 }; /* may be set; must be, before it is finalized; read only */
enum { MANY = 64 };

typedef struct Attribute {
  cudnnBackendDescriptorType_t of;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int most, use;
  cudnnBackendDescriptorType_t holds; /* the kind of descriptors that it is */
} Attribute;
extern const Attribute dnn_attributes[]; /* of all descriptors that are offered */
extern const int dnn_attribute_count;

const Attribute *attribute_of(const Descriptor *d, cudnnBackendAttributeName_t name); /* NULL: it has none */
const Slot *slot_of(const Descriptor *d, cudnnBackendAttributeName_t name);           /* NULL: it was not set */
size_t attribute_type_bytes(cudnnBackendAttributeType_t type);
int is_operation(cudnnBackendDescriptorType_t type);
Descriptor *descriptor_new(cudnnBackendDescriptorType_t type);
void descriptor_release(Descriptor *d);
void descriptor_clear(Descriptor *d);
/* -1: no memory. `to` becomes what `from` is. */
int descriptor_put(Descriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                   const void *values);
int descriptor_copy(Descriptor *to, const Descriptor *from);
const char *descriptor_name(cudnnBackendDescriptorType_t type);

/* Attributes: the i-th value, or `otherwise` where the attribute was not set. */
int64_t attribute_count(const Descriptor *d, cudnnBackendAttributeName_t name);
int64_t integer(const Descriptor *d, cudnnBackendAttributeName_t name, int i, int64_t otherwise);
double real(const Descriptor *d, cudnnBackendAttributeName_t name, double otherwise);
void *pointer(const Descriptor *d, cudnnBackendAttributeName_t name, int i); /* a descriptor, a handle, an address */

/* ---- plan.c ---- */

/* The finalization of each kind; a status with its sentence where it is refused. */
cudnnStatus_t finalize_tensor(const Descriptor *d);
cudnnStatus_t finalize_convolution(const Descriptor *d);
cudnnStatus_t finalize_operation(const Descriptor *d); /* convolution or pointwise */
cudnnStatus_t finalize_graph(Descriptor *d);
/* Engines of a graph, and what one needs. */
int engine_count(const Program *p);
cudnnStatus_t engine_bytes(const Program *p, int engine, size_t *bytes, const char **why);

/* ---- execute.c ---- */

typedef struct PointwiseKind {
  cudnnPointwiseMode_t mode;
  const char *name;
  int arguments; /* 0: refused by name */
} PointwiseKind;

const PointwiseKind *pointwise_kind(cudnnPointwiseMode_t mode); /* NULL: cuDNN has none */

/* ---- graph.c ---- */

/* Of a graph, and what was made of it up to a plan; its engine's number, from the engine on. */
const Program *program_of(const Descriptor *d);
int engine_of(const Descriptor *d);

#define FINALIZE "cudnnBackendFinalize"

#endif /* SIMT_DNN_GRAPH_H */
