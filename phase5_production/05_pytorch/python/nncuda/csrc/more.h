// more.h - the twin of _ctypes_more.py: pooling, norms, attention, steps of optimizers; a part of extension.cc.
#pragma once

namespace {

// --------------------------------------------------------------------------------------------------------------------
// Pooling

struct Pool {
  nncuda_pool2d_shape shape;
  Sizes y;

  Pool(at::IntArrayRef x, const Sizes &kernel, const Sizes &stride, const Sizes &padding, const Sizes &dilation,
       bool ceil_mode) {
    if (x.size() != 4 || kernel.size() != 2 || stride.size() != 2 || padding.size() != 2 || dilation.size() != 2)
      throw py::value_error("pooling: a shape of 4 sizes, and kernel, stride, padding and dilation of 2 are expected");
    shape = {x[0],      x[1],       x[2],       x[3],        kernel[0],   kernel[1], stride[0],
             stride[1], padding[0], padding[1], dilation[0], dilation[1], ceil_mode};
    int64_t p, q;
    check(nn.pool2d_output(&shape, &p, &q));
    y = {x[0], x[1], p, q};
  }
};

std::tuple<Tensor, Tensor> max_pool2d(Object x_, const Sizes &kernel, const Sizes &stride, const Sizes &padding,
                                      const Sizes &dilation, bool ceil_mode, bool relu) {
  Tensor x = tensor("max_pool2d", "x", x_, 4, "N, C, H, W");
  Pool pool(x.sizes(), kernel, stride, padding, dilation, ceil_mode);
  Tensor y = empty(pool.y, x), argmax = at::empty(pool.y, x.options().dtype(at::kByte));
  run(nn.max_pool2d_forward, where("max_pool2d", x), F32, pointer(y), (uint8_t *)pointer(argmax), pointer(x), relu,
      &pool.shape);
  return {y, argmax};
}

Tensor stem_pool2d(Object x_, Object weight_, Object bias_, bool tensor_cores, const Sizes &stride,
                   const Sizes &padding, const Sizes &kernel, const Sizes &pool_stride, const Sizes &pool_padding) {
  const char *op = "stem_pool2d";
  Tensor x = tensor(op, "x", x_, 4, "N, C, H, W");
  const at::ScalarType given = unpack(op, "weight", weight_).scalar_type();
  const at::ScalarType dtype = tensor_cores && (given == at::kHalf || given == at::kBFloat16) ? given : at::kFloat;
  const int number = !tensor_cores            ? NNCUDA_FLOAT32
                     : dtype == at::kHalf     ? NNCUDA_FLOAT16
                     : dtype == at::kBFloat16 ? NNCUDA_BFLOAT16
                                              : NNCUDA_TF32;
  Tensor weight =
      tensor_cores ? channels_last(op, "weight", weight_, dtype) : tensor(op, "weight", weight_, 4, "K, C, R, S");
  same_device(op, "weight", weight, x, "x");
  const Place place = where(op, x);
  Conv conv(op, x.sizes(), weight.sizes(), stride, padding, {1, 1}, 1);
  const Sizes out = {x.size(0), weight.size(0), conv.p, conv.q};
  Pool pool(out, kernel, pool_stride, pool_padding, {1, 1}, false);
  Tensor bias = like(op, "bias", bias_, {weight.size(0)}, x, "x");
  Tensor y =
      at::empty(pool.y, weight.options(), tensor_cores ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  Workspace work(x, nn.stem_pool2d_workspace(place.device, number, &conv.shape, &pool.shape));
  run(nn.stem_pool2d_forward, place, number, pointer(y), pointer(x), pointer(weight), (const float *)pointer(bias),
      &conv.shape, &pool.shape, work.pointer, work.bytes);
  return y;
}

Tensor max_pool2d_backward(Object dy_, Object argmax_, const Sizes &x_shape, const Sizes &kernel, const Sizes &stride,
                           const Sizes &padding, const Sizes &dilation, bool ceil_mode) {
  const char *op = "max_pool2d_backward";
  Tensor argmax = tensor(op, "argmax", argmax_, -1, "", at::kByte),
         dy = like(op, "dy", dy_, argmax.sizes(), argmax, "argmax");
  Pool pool(x_shape, kernel, stride, padding, dilation, ceil_mode);
  Tensor dx = empty(x_shape, dy);
  run(nn.max_pool2d_backward, where(op, dy, "dy"), F32, pointer(dx), pointer(dy), (const uint8_t *)pointer(argmax),
      &pool.shape);
  return dx;
}

Tensor avg_pool2d(Object x_, const Sizes &kernel, const Sizes &stride, const Sizes &padding, bool ceil_mode,
                  bool count_include_pad) {
  Tensor x = tensor("avg_pool2d", "x", x_, 4, "N, C, H, W");
  Pool pool(x.sizes(), kernel, stride, padding, {1, 1}, ceil_mode);
  Tensor y = empty(pool.y, x);
  run(nn.avg_pool2d_forward, where("avg_pool2d", x), F32, pointer(y), pointer(x), count_include_pad, &pool.shape);
  return y;
}

Tensor avg_pool2d_backward(Object dy_, const Sizes &x_shape, const Sizes &kernel, const Sizes &stride,
                           const Sizes &padding, bool ceil_mode, bool count_include_pad) {
  const char *op = "avg_pool2d_backward";
  Tensor dy = tensor(op, "dy", dy_, 4);
  Pool pool(x_shape, kernel, stride, padding, {1, 1}, ceil_mode);
  dy = like(op, "dy", dy_, pool.y, dy, "dy");
  Tensor dx = empty(x_shape, dy);
  run(nn.avg_pool2d_backward, where(op, dy, "dy"), F32, pointer(dx), pointer(dy), count_include_pad, &pool.shape);
  return dx;
}

Tensor global_avg_pool2d(Object x_) {
  Tensor x = tensor("global_avg_pool2d", "x", x_, 4, "N, C, H, W"), y = empty({x.size(0), x.size(1), 1, 1}, x);
  run(nn.global_avg_pool2d_forward, where("global_avg_pool2d", x), F32, pointer(y), pointer(x), y.numel(),
      x.size(2) * x.size(3));
  return y;
}

Tensor global_avg_pool2d_backward(Object dy_, const Sizes &x_shape) {
  const char *op = "global_avg_pool2d_backward";
  if (x_shape.size() != 4) throw py::value_error(text(op, ": x_shape has ", x_shape.size(), " sizes; expected 4"));
  Tensor dy = tensor(op, "dy", dy_, 4);
  dy = like(op, "dy", dy_, {x_shape[0], x_shape[1], 1, 1}, dy, "dy");
  Tensor dx = empty(x_shape, dy);
  run(nn.global_avg_pool2d_backward, where(op, dy, "dy"), F32, pointer(dx), pointer(dy), dy.numel(),
      x_shape[2] * x_shape[3]);
  return dx;
}

// --------------------------------------------------------------------------------------------------------------------
// Norms

std::tuple<Tensor, Tensor> layer_norm(Object x_, Object weight_, Object bias_, double epsilon) {
  const char *op = "layer_norm";
  Tensor x = tensor(op, "x", x_), weight = tensor(op, "weight", weight_);
  if (weight.dim() == 0 || weight.dim() > x.dim() || x.sizes().slice(x.dim() - weight.dim()) != weight.sizes())
    throw py::value_error(text("layer_norm: weight has shape ", shape_text(weight.sizes()), ", x ",
                               shape_text(x.sizes()), "; expected the last sizes of x"));
  same_device(op, "weight", weight, x, "x");
  Tensor bias = like(op, "bias", bias_, weight.sizes(), x, "x"), y = empty_like(x);
  const int64_t cols = weight.numel(), rows = cols ? x.numel() / cols : 0;
  Tensor saved = empty({rows, 2}, x);
  run(nn.layer_norm_forward, where(op, x), F32, pointer(y), pointer(saved), pointer(x), pointer(weight), pointer(bias),
      epsilon, rows, cols);
  return {y, saved};
}

std::tuple<Maybe, Maybe, Maybe> layer_norm_backward(Object dy_, Object x_, Object weight_, Object saved_, bool need_x,
                                                    bool need_weight) {
  const char *op = "layer_norm_backward";
  Tensor x = tensor(op, "x", x_), weight = tensor(op, "weight", weight_), saved = tensor(op, "saved", saved_), dx, dw,
         db;
  Tensor dy = like(op, "dy", dy_, x.sizes(), x, "x");
  const int64_t rows = saved.size(0), cols = weight.numel();
  if (need_x) dx = empty_like(x);
  if (need_weight) dw = empty_like(weight), db = empty_like(weight);
  const Place place = where(op, x);
  Workspace work(x, nn.layer_norm_backward_workspace(place.device, rows, cols));
  run(nn.layer_norm_backward, place, F32, pointer(dx), pointer(dw), pointer(db), pointer(dy), pointer(x),
      pointer(weight), pointer(saved), rows, cols, work.pointer, work.bytes);
  return {result(dx), result(dw), result(db)};
}

struct BatchNorm {
  Tensor x, z, gamma, beta;
  int64_t n, c, pixels;

  BatchNorm(const char *op, Object x_, Object z_, Object gamma_, Object beta_, int after) {
    x = tensor(op, "x", x_, 4, "N, C, H, W");
    n = x.size(0), c = x.size(1), pixels = x.size(2) * x.size(3);
    gamma = like(op, "weight", gamma_, {c}, x, "x");
    beta = like(op, "bias", beta_, {c}, x, "x");
    if (after == NNCUDA_THEN_ADD_RELU)
      z = like(op, "z", z_, x.sizes(), x, "x");
    else if (!z_.is_none())
      throw py::value_error(text(op, ": z is given, but nothing is added; expected None"));
  }
};

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm(Object x_, Object z_, Object gamma_, Object beta_,
                                                      Object running_mean_, Object running_var_, int after,
                                                      double momentum, double epsilon) {
  const char *op = "batch_norm";
  BatchNorm b(op, x_, z_, gamma_, beta_, after);
  if (!running_mean_.is_none()) refuse_strides(op, "running_mean", running_mean_);
  if (!running_var_.is_none()) refuse_strides(op, "running_var", running_var_);
  Tensor running_mean = maybe(op, "running_mean", running_mean_, {b.c}, b.x),
         running_var = maybe(op, "running_var", running_var_, {b.c}, b.x);
  const Place place = where(op, b.x);
  const int64_t bits = after == NNCUDA_THEN_ADD_RELU ? (int64_t)nn.batch_norm_passed(b.n, b.c, b.pixels) : 0;
  Tensor y = empty_like(b.x), mean = empty({b.c}, b.x), inv_std = empty({b.c}, b.x);
  Tensor passed = at::empty({bits}, b.x.options().dtype(at::kByte));
  Workspace work(b.x, nn.batch_norm_workspace(place.device, b.n, b.c, b.pixels));
  run(nn.batch_norm_forward, place, F32, pointer(y), pointer(mean), pointer(inv_std), bits ? pointer(passed) : nullptr,
      pointer(running_mean), pointer(running_var), pointer(b.x), pointer(b.z), pointer(b.gamma), pointer(b.beta), after,
      momentum, epsilon, b.n, b.c, b.pixels, work.pointer, work.bytes);
  return {y, mean, inv_std, passed};
}

Tensor batch_norm_evaluate(Object x_, Object z_, Object gamma_, Object beta_, Object mean_, Object var_, int after,
                           double epsilon) {
  const char *op = "batch_norm";
  BatchNorm b(op, x_, z_, gamma_, beta_, after);
  Tensor mean = like(op, "running_mean", mean_, {b.c}, b.x, "x"), var = like(op, "running_var", var_, {b.c}, b.x, "x"),
         y = empty_like(b.x);
  run(nn.batch_norm_evaluate, where(op, b.x), F32, pointer(y), pointer(b.x), pointer(b.z), pointer(b.gamma),
      pointer(b.beta), pointer(mean), pointer(var), after, epsilon, b.n, b.c, b.pixels);
  return y;
}

std::tuple<Tensor, Maybe, Tensor, Tensor> batch_norm_backward(Object dy_, Object x_, Object gamma_, Object beta_,
                                                              Object mean_, Object inv_std_, Object passed_, int after,
                                                              bool need_z) {
  const char *op = "batch_norm_backward";
  Tensor x = tensor(op, "x", x_, 4), gamma = tensor(op, "weight", gamma_), beta = tensor(op, "bias", beta_);
  Tensor mean = tensor(op, "mean", mean_), inv_std = tensor(op, "inv_std", inv_std_),
         passed = unpack(op, "passed", passed_), dz;
  Tensor dy = like(op, "dy", dy_, x.sizes(), x, "x"), dx = empty_like(x), dgamma = empty_like(gamma),
         dbeta = empty_like(beta);
  if (need_z) dz = empty_like(x);
  const int64_t n = x.size(0), c = x.size(1), pixels = x.size(2) * x.size(3);
  const Place place = where(op, x);
  Workspace work(x, nn.batch_norm_workspace(place.device, n, c, pixels));
  run(nn.batch_norm_backward, place, F32, pointer(dx), pointer(dz), pointer(dgamma), pointer(dbeta), pointer(dy),
      pointer(x), pointer(gamma), pointer(beta), pointer(mean), pointer(inv_std),
      passed.numel() ? pointer(passed) : nullptr, after, n, c, pixels, work.pointer, work.bytes);
  return {dx, result(dz), dgamma, dbeta};
}

int attention_dtype(const Tensor &q) { return q.scalar_type() == at::kBFloat16 ? NNCUDA_BFLOAT16 : NNCUDA_FLOAT32; }

std::tuple<Tensor, Tensor> attention(Object q_, Object k_, Object v_, bool causal) {
  const char *op = "scaled_dot_product_attention";
  const at::ScalarType given = unpack(op, "query", q_).scalar_type(),
                       dtype = given == at::kBFloat16 ? given : at::kFloat;
  Tensor q = tensor(op, "query", q_, 4, "batch, heads, length, depth", dtype);
  Tensor k = like(op, "key", k_, q.sizes(), q, "query", dtype), v = like(op, "value", v_, q.sizes(), q, "query", dtype);
  Tensor o = empty_like(q), lse = at::empty(q.sizes().slice(0, 3), q.options().dtype(at::kFloat));
  run(nn.attention_forward, where(op, q, "query"), attention_dtype(q), pointer(o), pointer(lse), pointer(q), pointer(k),
      pointer(v), q.size(0), q.size(1), q.size(2), q.size(3), causal);
  return {o, lse};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(Object dout_, Object q_, Object k_, Object v_, Object o_,
                                                      Object lse_, bool causal) {
  const char *op = "attention_backward";
  const at::ScalarType dtype = unpack(op, "query", q_).scalar_type();
  Tensor q = tensor(op, "query", q_, 4, "", dtype), lse = tensor(op, "lse", lse_);
  auto one = [&](const char *name, Object x) { return like(op, name, x, q.sizes(), q, "query", dtype); };
  Tensor k = one("key", k_), v = one("value", v_), o = one("o", o_), dout = one("dout", dout_);
  Tensor dq = empty_like(q), dk = empty_like(q), dv = empty_like(q);
  const Place place = where(op, q, "query");
  const int64_t b = q.size(0), h = q.size(1), l = q.size(2), d = q.size(3);
  Workspace work(q, nn.attention_backward_workspace(place.device, attention_dtype(q), b, h, l, d));
  run(nn.attention_backward, place, attention_dtype(q), pointer(dq), pointer(dk), pointer(dv), pointer(dout),
      pointer(q), pointer(k), pointer(v), pointer(o), pointer(lse), b, h, l, d, causal, work.pointer, work.bytes);
  return {dq, dk, dv};
}

// --------------------------------------------------------------------------------------------------------------------
// Optimizers: optim.py has checked the tensors.

std::vector<float *> pointers(const std::vector<Tensor> &tensors) {
  std::vector<float *> list;
  list.reserve(tensors.size());
  for (const Tensor &x : tensors) list.push_back((float *)x.data_ptr());
  return list;
}

Sizes lengths(const std::vector<Tensor> &tensors) {
  Sizes list;
  list.reserve(tensors.size());
  for (const Tensor &x : tensors) list.push_back(x.numel());
  return list;
}

using List = const std::vector<Tensor> &;

void sgd_step(List weights, List gradients, List buffers, double lr, double momentum, double dampening, bool nesterov,
              double weight_decay, bool first_step) {
  auto w = pointers(weights), g = pointers(gradients), b = pointers(buffers);
  const Sizes n = lengths(weights);
  run(nn.sgd_step, where("SGD", weights.at(0), "a parameter"), (int64_t)n.size(), w.data(),
      (const float *const *)g.data(), momentum ? b.data() : nullptr, n.data(), lr, momentum, dampening, nesterov,
      weight_decay, first_step);
}

void adam_step(List weights, List gradients, List averages, List squares, double lr, double beta1, double beta2,
               double epsilon, double weight_decay, bool decoupled, int64_t step) {
  auto w = pointers(weights), g = pointers(gradients), m = pointers(averages), v = pointers(squares);
  const Sizes n = lengths(weights);
  run(nn.adam_step, where("Adam", weights.at(0), "a parameter"), (int64_t)n.size(), w.data(),
      (const float *const *)g.data(), m.data(), v.data(), n.data(), lr, beta1, beta2, epsilon, weight_decay, decoupled,
      step);
}

}  // namespace
