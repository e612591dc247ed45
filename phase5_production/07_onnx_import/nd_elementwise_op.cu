/* nd_elementwise_op.cu - the Ops of nd_elementwise.cuh. */
#include "phase5_production/07_onnx_import/nd_op.cuh"

static void unary_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdUnary args = nd_attributes<NdUnary>(node);
  args.x = a->x[0];
  args.y = a->y;
  if (args.from == DTYPE_FLOAT32 && args.to == DTYPE_FLOAT32)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void binary_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdBinary args = nd_attributes<NdBinary>(node);
  args.a = a->x[0];
  args.b = a->x[1];
  args.y = a->y;
  if (args.a_type == DTYPE_FLOAT32 && args.b_type == DTYPE_FLOAT32 && args.to == DTYPE_FLOAT32)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void where_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdWhere args = nd_attributes<NdWhere>(node);
  args.condition = (const unsigned char *)a->x[0];
  args.a = a->x[1];
  args.b = a->x[2];
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

/* In the order of NdUnaryKind. */
#define UNARY(name) \
  { name, 0, OP_IN_PLACE, NULL, NULL, unary_forward, nd_no_backward }
const Op nd_unary_ops[] = {UNARY("Cast"),
                           UNARY("Abs"),
                           UNARY("Acos"),
                           UNARY("Acosh"),
                           UNARY("Affine"),
                           UNARY("Asin"),
                           UNARY("Asinh"),
                           UNARY("Atan"),
                           UNARY("Atanh"),
                           UNARY("Ceil"),
                           UNARY("Celu"),
                           UNARY("Clip"),
                           UNARY("Cos"),
                           UNARY("Cosh"),
                           UNARY("Elu"),
                           UNARY("Erf"),
                           UNARY("Exp"),
                           UNARY("Floor"),
                           UNARY("Gelu"),
                           UNARY("HardSigmoid"),
                           UNARY("HardSwish"),
                           UNARY("IsInf"),
                           UNARY("IsNaN"),
                           UNARY("LeakyRelu"),
                           UNARY("Log"),
                           UNARY("Mish"),
                           UNARY("Neg"),
                           UNARY("Not"),
                           UNARY("Reciprocal"),
                           UNARY("Relu"),
                           UNARY("Round"),
                           UNARY("Selu"),
                           UNARY("Shrink"),
                           UNARY("Sigmoid"),
                           UNARY("Sign"),
                           UNARY("Sin"),
                           UNARY("Sinh"),
                           UNARY("Softplus"),
                           UNARY("Softsign"),
                           UNARY("Sqrt"),
                           UNARY("Tan"),
                           UNARY("Tanh"),
                           UNARY("ThresholdedRelu")};
static_assert(sizeof nd_unary_ops / sizeof *nd_unary_ops == ND_THRESHOLDED_RELU + 1, "one name for each kind");
const Op nd_clip_op = UNARY("Clip");

/* In the order of NdBinaryKind. Of two equal shapes each element of y depends on the same one of a. */
#define BINARY(name) \
  { name, 0, OP_IN_PLACE, NULL, NULL, binary_forward, nd_no_backward }
const Op nd_binary_ops[] = {BINARY("Add"),
                            BINARY("And"),
                            BINARY("Div"),
                            BINARY("Equal"),
                            BINARY("Mod"),
                            BINARY("Greater"),
                            BINARY("GreaterOrEqual"),
                            BINARY("Less"),
                            BINARY("LessOrEqual"),
                            BINARY("Max"),
                            BINARY("Min"),
                            BINARY("Mod"),
                            BINARY("Mul"),
                            BINARY("Or"),
                            BINARY("Pow"),
                            BINARY("PRelu"),
                            BINARY("BitShift"),
                            BINARY("BitShift"),
                            BINARY("Sub"),
                            BINARY("Xor")};
static_assert(sizeof nd_binary_ops / sizeof *nd_binary_ops == ND_XOR + 1, "one name for each kind");

const Op nd_where_op = {"Where", 0, 0, NULL, NULL, where_forward, nd_no_backward};
