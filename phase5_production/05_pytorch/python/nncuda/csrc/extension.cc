// extension.cc - the operations of _ctypes_ops.py and _ctypes_more.py, by their names and arguments, without ctypes:
// checks the tensors, allocates what comes out, and calls the same functions of libnncuda. There are no kernels here.
//
// Built by `pip install -e .` (setup.py) or by nncuda.build_extension(). Only the parts of PyTorch's headers that are
// needed are included: <torch/extension.h> takes three times as long to compile.
#include <checks.h>  // search path: this folder and that of nncuda.h (_build.py), because pip knows no workspace

namespace {

using Sizes = std::vector<int64_t>;
constexpr int F32 = NNCUDA_FLOAT32;

// Functions of the library at `path`; one that does not fit leaves those that are there.
void open(const std::string &path, int needed, int host) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(text("libnncuda.so.1 cannot be loaded: ", dlerror()));
  Functions found;
  const char *missing = nullptr;
#define FIND(name)                                                   \
  found.name = (decltype(found.name))dlsym(handle, "nncuda_" #name); \
  if (!found.name) missing = #name;
  NNCUDA_FUNCTIONS(FIND)
#undef FIND
  if (missing)
    throw std::runtime_error(text(path, " has no function nncuda_", missing,
                                  ": build it again with `bazel build //phase5_production:nncuda`"));
  const int version = found.version();
  if (version < needed || version / 10000 != needed / 10000)
    throw std::runtime_error(
        text(path, " has version number ", version, "; expected ", needed, " or newer of the same major version"));
  found.path = path;
  found.text = found.version_text();
  found.emulated = found.text.find("emulated") != std::string::npos;
  nn = found;
  usual_host = host;
}

void told(std::optional<int> host, std::optional<int> stream_device) {
  thread_host = host;
  thread_stream_device = stream_device;
}

std::pair<int64_t, int64_t> rows_of(const char *op, const Tensor &x) {
  if (x.dim() == 0) throw py::value_error(text(op, ": x has shape (); expected at least one dimension"));
  const int64_t cols = x.size(-1);
  return {cols ? x.numel() / cols : 0, cols};
}

// --------------------------------------------------------------------------------------------------------------------
// Softmax, cross-entropy

Tensor softmax(Object x_) {
  const char *op = "softmax";
  Tensor x = tensor(op, "x", x_);
  const Place place = where(op, x);
  auto [rows, cols] = rows_of(op, x);
  Tensor y = empty_like(x);
  if (rows) run(nn.softmax_forward, place, F32, pointer(y), pointer(x), rows, cols);
  return y;
}

Tensor softmax_backward(Object dy_, Object y_) {
  const char *op = "softmax_backward";
  Tensor y = tensor(op, "y", y_), dy = like(op, "dy", dy_, y.sizes(), y, "y"), dx = empty_like(y);
  auto [rows, cols] = rows_of(op, y);
  if (rows) run(nn.softmax_backward, where(op, y), F32, pointer(dx), pointer(dy), pointer(y), rows, cols);
  return dx;
}

std::tuple<Tensor, Tensor> cross_entropy(Object logits_, Object labels_, int reduction, int64_t ignore_index,
                                         double label_smoothing, bool gradient) {
  const char *op = "cross_entropy";
  Tensor logits = tensor(op, "input", logits_, 2, "rows, classes"), labels = unpack(op, "target", labels_);
  const int64_t rows = logits.size(0), classes = logits.size(1);
  if (labels.scalar_type() != at::kLong)
    throw py::type_error(text(
        op, ": target has dtype ", python_text(labels_, "dtype"), "; expected torch.int64: ",
        labels.is_floating_point() ? "probabilities as targets are not supported" : "convert it with target.long()"));
  if (labels.dim() != 1 || labels.size(0) != rows)
    throw py::value_error(text(op, ": target has shape ", shape_text(labels.sizes()), "; expected (", rows,
                               ",), one class for each row"));
  same_device(op, "target", labels, logits, "input");
  const Place place = where(op, logits, "input");
  labels = labels.contiguous();
  Tensor loss = empty({}, logits), dlogits = gradient ? empty_like(logits) : empty({0}, logits);
  Workspace work(logits, nn.cross_entropy_workspace(place.device, rows, classes));
  run(nn.cross_entropy, place, F32, pointer(loss), gradient ? pointer(dlogits) : nullptr, (int64_t *)nullptr,
      pointer(logits), pointer(labels), NNCUDA_INT64, rows, classes, reduction, ignore_index, label_smoothing,
      work.pointer, work.bytes);
  return {loss, dlogits};
}

py::object scale_(Object y_, Object factor_) {
  const char *op = "scale_";
  refuse_strides(op, "y", y_);
  Tensor y = tensor(op, "y", y_), factor = like(op, "factor", factor_, {}, y, "y");
  run(nn.scale, where(op, y, "y"), F32, pointer(y), pointer(y), pointer(factor), y.numel());
  return y_;
}

// --------------------------------------------------------------------------------------------------------------------
// Element by element

Tensor activation(Object x_, int kind) {
  Tensor x = tensor("activation", "x", x_);
  const Place place = where("activation", x);
  Tensor y = empty_like(x);
  run(nn.activation_forward, place, F32, kind, pointer(y), pointer(x), x.numel());
  return y;
}

Tensor activation_backward(Object dy_, Object y_, int kind) {
  const char *op = "activation_backward";
  Tensor y = tensor(op, "y", y_), dy = like(op, "dy", dy_, y.sizes(), y, "y"), dx = empty_like(y);
  run(nn.activation_backward, where(op, y), F32, kind, pointer(dx), pointer(dy), pointer(y), y.numel());
  return dx;
}

Tensor add_relu(Object a_, Object b_) {
  const char *op = "add_relu";
  Tensor a = tensor(op, "a", a_), b = like(op, "b", b_, a.sizes(), a, "a");
  const Place place = where(op, a, "a");
  Tensor y = empty_like(a);
  run(nn.add_relu_forward, place, F32, pointer(y), pointer(a), pointer(b), a.numel());
  return y;
}

Tensor add_relu_backward(Object dy_, Object y_) {
  const char *op = "add_relu_backward";
  Tensor y = tensor(op, "y", y_), dy = like(op, "dy", dy_, y.sizes(), y, "y"), d = empty_like(y);
  run(nn.add_relu_backward, where(op, y, "y"), F32, pointer(d), pointer(dy), pointer(y), y.numel());
  return d;
}

Tensor dropout(Object x_, double p, uint64_t seed, uint32_t offset) {
  Tensor x = tensor("dropout", "x", x_);
  const Place place = where("dropout", x);
  Tensor y = empty_like(x);
  run(nn.dropout, place, F32, pointer(y), pointer(x), x.numel(), p, seed, offset);
  return y;
}

// --------------------------------------------------------------------------------------------------------------------
// Matrix products

Tensor matmul(Object a_, Object b_, bool transpose_a, bool transpose_b) {
  const char *op = "matmul";
  Tensor a = tensor(op, "a", a_, 2), b = tensor(op, "b", b_, 2);
  same_device(op, "b", b, a, "a");
  const int64_t m = a.size(transpose_a), k = a.size(!transpose_a), inner = b.size(transpose_b),
                n = b.size(!transpose_b);
  if (k != inner)
    throw py::value_error(text("matmul: a is ", shape_text(a.sizes()), " and b is ", shape_text(b.sizes()),
                               "; the inner sizes ", k, " and ", inner, " differ; expected equal ones"));
  const Place place = where(op, a, "a");
  Tensor c = empty({m, n}, a);
  run(nn.matmul, place, F32, pointer(c), pointer(a), pointer(b), m, n, k, transpose_a, transpose_b, 0);
  return c;
}

Sizes linear_shape(const Tensor &x, int64_t outs) {
  Sizes shape = x.sizes().vec();
  shape.back() = outs;
  return shape;
}

Tensor linear(Object x_, Object weight_, Object bias_, bool relu) {
  const char *op = "linear";
  Tensor x = tensor(op, "x", x_), weight = tensor(op, "weight", weight_, 2, "out, in");
  same_device(op, "weight", weight, x, "x");
  const int64_t outs = weight.size(0), ins = weight.size(1);
  if (x.dim() == 0 || x.size(-1) != ins)
    throw py::value_error(text("linear: x has shape ", shape_text(x.sizes()), "; expected (..., ", ins,
                               "), because weight is ", shape_text(weight.sizes()), " (out, in)"));
  Tensor bias = maybe(op, "bias", bias_, {outs}, x);
  const Place place = where(op, x);
  Tensor y = empty(linear_shape(x, outs), x);
  const int64_t batch = ins ? x.numel() / ins : 0;
  Workspace work(x, nn.linear_workspace(place.device, batch, ins, outs));
  run(nn.linear_forward, place, F32, pointer(y), pointer(x), pointer(weight), pointer(bias), batch, ins, outs, relu,
      work.pointer, work.bytes);
  return y;
}

using Maybe = std::optional<Tensor>;
Maybe result(const Tensor &x) { return x.defined() ? Maybe(x) : Maybe(); }

std::tuple<Maybe, Maybe, Maybe> linear_backward(Object dy_, Object y_, Object x_, Object weight_, bool need_x,
                                                bool need_weight, bool need_bias, bool relu) {
  const char *op = "linear_backward";
  Tensor x = tensor(op, "x", x_), weight = tensor(op, "weight", weight_), y, dx, dw, db;
  const int64_t outs = weight.size(0), ins = weight.size(1), batch = ins ? x.numel() / ins : 0;
  Tensor dy = like(op, "dy", dy_, linear_shape(x, outs), x, "x");
  if (relu) y = like(op, "y", y_, dy.sizes(), x, "x");
  if (need_x) dx = empty_like(x);
  if (need_weight) dw = empty_like(weight);
  if (need_bias) db = empty({outs}, x);
  const Place place = where(op, x);
  Workspace work(x, nn.linear_backward_workspace(place.device, batch, ins, outs, relu));
  run(nn.linear_backward, place, F32, pointer(dx), pointer(dw), pointer(db), pointer(dy), pointer(y), pointer(x),
      pointer(weight), batch, ins, outs, relu, work.pointer, work.bytes);
  return {result(dx), result(dw), result(db)};
}

// --------------------------------------------------------------------------------------------------------------------
// Convolution

struct Conv {
  nncuda_conv2d_shape shape;
  int64_t p, q;

  Conv(const char *op, at::IntArrayRef x, at::IntArrayRef w, const Sizes &stride, const Sizes &padding,
       const Sizes &dilation, int64_t groups) {
    if (x.size() != 4 || w.size() != 4 || stride.size() != 2 || padding.size() != 2 || dilation.size() != 2)
      throw py::value_error(text(op, ": a shape of 4 sizes, and stride, padding and dilation of 2 are expected"));
    if (x[1] != w[1] * groups)
      throw py::value_error(text(op, ": x has shape ", shape_text(x), ", weight ", shape_text(w), ", groups is ",
                                 groups, "; expected ", w[1] * groups,
                                 " channels in x (weight's second size times groups)"));
    shape = {x[0],      x[1],      x[2],       x[3],       w[0],        w[2],        w[3],
             stride[0], stride[1], padding[0], padding[1], dilation[0], dilation[1], groups};
    check(nn.conv2d_output(&shape, &p, &q));
  }
};

Tensor conv2d(Object x_, Object weight_, Object bias_, Object residual_, bool relu, const Sizes &stride,
              const Sizes &padding, const Sizes &dilation, int64_t groups) {
  const char *op = "conv2d";
  Tensor x = tensor(op, "x", x_, 4, "N, C, H, W"), weight = tensor(op, "weight", weight_, 4, "K, C/groups, R, S");
  same_device(op, "weight", weight, x, "x");
  const Place place = where(op, x);
  Conv conv(op, x.sizes(), weight.sizes(), stride, padding, dilation, groups);
  Tensor y = empty({x.size(0), weight.size(0), conv.p, conv.q}, x),
         bias = maybe(op, "bias", bias_, {weight.size(0)}, x);
  Tensor residual = maybe(op, "residual", residual_, y.sizes(), x);
  Workspace work(x, nn.conv2d_forward_workspace(place.device, &conv.shape));
  run(nn.conv2d_forward, place, F32, pointer(y), pointer(x), pointer(weight), pointer(bias), pointer(residual), relu,
      &conv.shape, work.pointer, work.bytes);
  return y;
}

Tensor conv2d_backward_input(Object dy_, Object weight_, const Sizes &x_shape, const Sizes &stride,
                             const Sizes &padding, const Sizes &dilation, int64_t groups) {
  const char *op = "conv2d_backward_input";
  Tensor weight = tensor(op, "weight", weight_, 4);
  Conv conv(op, x_shape, weight.sizes(), stride, padding, dilation, groups);
  Tensor dy = like(op, "dy", dy_, {x_shape[0], weight.size(0), conv.p, conv.q}, weight, "weight"),
         dx = empty(x_shape, dy);
  const Place place = where(op, dy, "dy");
  Workspace work(dy, nn.conv2d_workspace(place.device, &conv.shape));
  run(nn.conv2d_backward_input, place, F32, pointer(dx), pointer(dy), pointer(weight), &conv.shape, work.pointer,
      work.bytes);
  return dx;
}

std::tuple<Tensor, Maybe> conv2d_backward_weight(Object dy_, Object x_, const Sizes &weight_shape, bool need_bias,
                                                 const Sizes &stride, const Sizes &padding, const Sizes &dilation,
                                                 int64_t groups) {
  const char *op = "conv2d_backward_weight";
  Tensor x = tensor(op, "x", x_, 4), db;
  Conv conv(op, x.sizes(), weight_shape, stride, padding, dilation, groups);
  Tensor dy = like(op, "dy", dy_, {x.size(0), weight_shape[0], conv.p, conv.q}, x, "x"), dw = empty(weight_shape, x);
  if (need_bias) db = empty({weight_shape[0]}, x);
  const Place place = where(op, x);
  Workspace work(x, nn.conv2d_workspace(place.device, &conv.shape));
  run(nn.conv2d_backward_weight, place, F32, pointer(dw), pointer(db), pointer(dy), pointer(x), &conv.shape,
      work.pointer, work.bytes);
  return {dw, result(db)};
}

Tensor conv2d_nhwc(Object x_, Object weight_, Object bias_, Object residual_, bool relu, const Sizes &stride,
                   const Sizes &padding, const Sizes &dilation, int64_t groups) {
  const char *op = "conv2d_nhwc";
  const at::ScalarType given = unpack(op, "x", x_).scalar_type();
  const at::ScalarType dtype = given == at::kHalf || given == at::kBFloat16 ? given : at::kFloat;
  const int number = dtype == at::kHalf ? NNCUDA_FLOAT16 : dtype == at::kBFloat16 ? NNCUDA_BFLOAT16 : NNCUDA_TF32;
  Tensor x = channels_last(op, "x", x_, dtype), weight = channels_last(op, "weight", weight_, dtype), residual;
  same_device(op, "weight", weight, x, "x");
  const Place place = where(op, x);
  Conv conv(op, x.sizes(), weight.sizes(), stride, padding, dilation, groups);
  Tensor y = at::empty({x.size(0), weight.size(0), conv.p, conv.q}, x.options(), at::MemoryFormat::ChannelsLast);
  Tensor bias = maybe(op, "bias", bias_, {weight.size(0)}, x);
  if (!residual_.is_none()) {
    residual = channels_last(op, "residual", residual_, dtype);
    if (residual.sizes() != y.sizes())
      throw py::value_error(
          text(op, ": residual has shape ", shape_text(residual.sizes()), "; expected ", shape_text(y.sizes())));
    same_device(op, "residual", residual, x, "x");
  }
  Workspace work(x, residual.defined() ? nn.conv2d_nhwc_workspace(place.device, number) : 0);
  run(nn.conv2d_nhwc_forward, place, number, pointer(y), pointer(x), pointer(weight), (const float *)pointer(bias),
      pointer(residual), relu, &conv.shape, work.pointer, work.bytes);
  return y;
}

std::tuple<Tensor, Tensor> fold_batch_norm(Object weight_, Object bias_, Object gamma_, Object beta_, Object mean_,
                                           Object var_, double epsilon) {
  const char *op = "fold_batch_norm";
  Tensor weight = tensor(op, "weight", weight_, 4, "K, C/groups, R, S");
  const int64_t filters = weight.size(0);
  auto one = [&](const char *name, Object x) { return like(op, name, x, {filters}, weight, "weight"); };
  Tensor bias = bias_.is_none() ? Tensor() : one("bias", bias_);
  Tensor gamma = one("gamma", gamma_), beta = one("beta", beta_), mean = one("mean", mean_), var = one("var", var_);
  Tensor new_weight = empty_like(weight), new_bias = empty({filters}, weight);
  run(nn.conv2d_fold_batch_norm, where(op, weight, "weight"), F32, pointer(new_weight), pointer(new_bias),
      pointer(weight), pointer(bias), pointer(gamma), pointer(beta), pointer(mean), pointer(var), epsilon, filters,
      filters ? weight.numel() / filters : 0);
  return {new_weight, new_bias};
}

}  // namespace

#include <more.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("open", &open);
  m.def("told", &told);
#define DEFINE(name) m.def(#name, &name);
  DEFINE(softmax)
  DEFINE(softmax_backward)
  DEFINE(cross_entropy)
  DEFINE(scale_)
  DEFINE(activation)
  DEFINE(activation_backward)
  DEFINE(add_relu)
  DEFINE(add_relu_backward)
  DEFINE(dropout)
  DEFINE(matmul)
  DEFINE(linear)
  DEFINE(linear_backward)
  DEFINE(conv2d)
  DEFINE(conv2d_backward_input)
  DEFINE(conv2d_backward_weight)
  DEFINE(conv2d_nhwc)
  DEFINE(fold_batch_norm)
  DEFINE(stem_pool2d)
  DEFINE(max_pool2d)
  DEFINE(max_pool2d_backward)
  DEFINE(avg_pool2d)
  DEFINE(avg_pool2d_backward)
  DEFINE(global_avg_pool2d)
  DEFINE(global_avg_pool2d_backward)
  DEFINE(layer_norm)
  DEFINE(layer_norm_backward)
  DEFINE(batch_norm)
  DEFINE(batch_norm_evaluate)
  DEFINE(batch_norm_backward)
  DEFINE(attention)
  DEFINE(attention_backward)
  DEFINE(sgd_step)
  DEFINE(adam_step)
}
