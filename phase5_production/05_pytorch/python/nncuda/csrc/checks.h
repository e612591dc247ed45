// checks.h - what extension.cc asks of its arguments, and how it calls libnncuda: the C++ twin of _checks.py and
// _library.py.
//
// Exceptions are those of Python, with the same sentences: TypeError (not a tensor, dtype), ValueError (shape, device),
// NotImplementedError (no kernel), RuntimeError (library, CUDA).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <mutex>
#include <optional>
#include <string>

#ifdef NNCUDA_WITH_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

#include <nncuda.h>

// Nothing of this file has a name outside of the extension: an inline function or variable would, and then the loader
// takes the first one of that name, which may be another library's. PyTorch loads dozens.
namespace {

namespace py = pybind11;
using at::Tensor;
using Object = const py::object &;  // a tensor, unchecked

// Every function of the library that the extension calls, found when Python gives us its path.
// clang-format off
#define NNCUDA_FUNCTIONS(F)                                                                                            \
  F(version) F(version_text) F(last_error) F(softmax_forward) F(softmax_backward) F(cross_entropy_workspace)           \
  F(cross_entropy) F(scale) F(activation_forward) F(activation_backward) F(add_relu_forward) F(add_relu_backward)      \
  F(dropout) F(matmul) F(linear_workspace) F(linear_forward) F(linear_backward_workspace) F(linear_backward)           \
  F(conv2d_output) F(conv2d_workspace) F(conv2d_forward_workspace) F(conv2d_forward) F(conv2d_backward_input)          \
  F(conv2d_backward_weight) F(conv2d_nhwc_workspace) F(conv2d_nhwc_forward) F(conv2d_fold_batch_norm)                  \
  F(stem_pool2d_workspace) F(stem_pool2d_forward) F(pool2d_output) F(max_pool2d_forward) F(max_pool2d_backward)        \
  F(avg_pool2d_forward) F(avg_pool2d_backward) F(global_avg_pool2d_forward) F(global_avg_pool2d_backward)              \
  F(layer_norm_forward) F(layer_norm_backward_workspace) F(layer_norm_backward) F(batch_norm_passed)                   \
  F(batch_norm_workspace) F(batch_norm_forward) F(batch_norm_evaluate) F(batch_norm_backward) F(attention_forward)     \
  F(attention_backward_workspace) F(attention_backward) F(sgd_step) F(adam_step)
// clang-format on

struct Functions {
#define MEMBER(name) decltype(&nncuda_##name) name = nullptr;
  NNCUDA_FUNCTIONS(MEMBER)
#undef MEMBER
  std::string path, text;
  bool emulated = false;
};

inline Functions nn;

// Of this thread, told by _library.py: the library's device for tensors on the CPU, and the GPU of nncuda.stream().
inline int usual_host = NNCUDA_CPU;
inline thread_local std::optional<int> thread_host, thread_stream_device;

// No iostreams: they format numbers by facets of the locale, of which a process with several copies of the C++ library
// may find the wrong ones.
inline void append(std::string &to, const char *part) { to += part; }
inline void append(std::string &to, const std::string &part) { to += part; }
inline void append(std::string &to, int64_t part) { to += std::to_string(part); }

template <typename... Parts>
std::string text(const Parts &...parts) {
  std::string all;
  (append(all, parts), ...);
  return all;
}

template <typename Sizes>
std::string shape_text(const Sizes &sizes) {
  std::string all = "(";
  for (size_t i = 0; i < sizes.size(); i++) all += (i ? ", " : "") + std::to_string(sizes[i]);
  return all + (sizes.size() == 1 ? ",)" : ")");
}

inline std::string python_text(py::handle x, const char *attribute) { return py::str(x.attr(attribute)); }
inline std::string device_text(const Tensor &x) { return x.device().str(); }

inline Tensor unpack(const char *op, const char *name, py::handle x) {
  if (!THPVariable_Check(x.ptr())) {
    const std::string kind = x.is_none() ? "None" : text("a ", Py_TYPE(x.ptr())->tp_name);
    throw py::type_error(text(op, ": ", name, " is ", kind, "; expected a torch.Tensor"));
  }
  return THPVariable_Unpack(x.ptr());
}

struct DtypeNames {
  const char *name, *convert;
};

inline DtypeNames names_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kLong:
      return {"torch.int64", "long"};
    case at::kByte:
      return {"torch.uint8", "byte"};
    case at::kHalf:
      return {"torch.float16", "half"};
    case at::kBFloat16:
      return {"torch.bfloat16", "bfloat16"};
    default:
      return {"torch.float32", "float"};
  }
}

// Refuses what is not a dense tensor of this dtype.
inline Tensor dense(const char *op, const char *name, py::handle object, at::ScalarType dtype) {
  Tensor x = unpack(op, name, object);
  const DtypeNames expected = names_of(dtype);
  if (x.scalar_type() != dtype)
    throw py::type_error(text(op, ": ", name, " has dtype ", python_text(object, "dtype"), "; expected ", expected.name,
                              ": convert it with ", name, ".", expected.convert, "()"));
  if (x.layout() != at::kStrided)
    throw py::type_error(text(op, ": ", name, " has layout ", python_text(object, "layout"),
                              "; expected a dense tensor: convert it with ", name, ".to_dense()"));
  return x;
}

// The tensor, or a contiguous copy.
inline Tensor tensor(const char *op, const char *name, py::handle object, int dims = -1, const char *letters = "",
                     at::ScalarType dtype = at::kFloat) {
  Tensor x = dense(op, name, object, dtype);
  if (dims >= 0 && x.dim() != dims)
    throw py::value_error(text(op, ": ", name, " has shape ", shape_text(x.sizes()), "; expected ", dims, " dimensions",
                               *letters ? text(" (", letters, ")") : std::string()));
  return x.is_contiguous() ? x : x.contiguous();
}

// The tensor, or a copy, with shape (N,C,H,W) and elements that lie as (N,H,W,C).
inline Tensor channels_last(const char *op, const char *name, py::handle object, at::ScalarType dtype) {
  Tensor x = dense(op, name, object, dtype);
  if (x.dim() != 4)
    throw py::value_error(text(op, ": ", name, " has shape ", shape_text(x.sizes()), "; expected 4 dimensions"));
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

inline void same_device(const char *op, const char *name, const Tensor &x, const Tensor &first,
                        const char *first_name) {
  if (x.device() != first.device())
    throw py::value_error(text(op, ": ", name, " is on ", device_text(x), ", but ", first_name, " is on ",
                               device_text(first), "; expected one device: move it with ", name, ".to(", first_name,
                               ".device)"));
}

inline Tensor like(const char *op, const char *name, py::handle object, at::IntArrayRef shape, const Tensor &first,
                   const char *first_name, at::ScalarType dtype = at::kFloat) {
  Tensor x = tensor(op, name, object, -1, "", dtype);
  if (x.sizes() != shape)
    throw py::value_error(text(op, ": ", name, " has shape ", shape_text(x.sizes()), "; expected ", shape_text(shape)));
  same_device(op, name, x, first, first_name);
  return x;
}

inline void refuse_strides(const char *op, const char *name, Object object) {
  Tensor x = unpack(op, name, object);
  if (!x.is_contiguous())
    throw py::value_error(text(op, ": ", name, " is written into, and is not contiguous (shape ", shape_text(x.sizes()),
                               ", strides ", shape_text(x.strides()),
                               "); expected a contiguous tensor: a copy would not reach the original"));
}

// An optional tensor; undefined where it is None.
inline Tensor maybe(const char *op, const char *name, Object object, at::IntArrayRef shape, const Tensor &first) {
  return object.is_none() ? Tensor() : like(op, name, object, shape, first, "x");
}

// void *, so that one name serves for float *, uint8_t * and so on; of an undefined tensor NULL.
inline void *pointer(const Tensor &x) { return x.defined() ? x.data_ptr() : nullptr; }

// ---------------------------------------------------------------------------------------------------------------------
// Calls

struct Place {
  int device;
  void *stream;
};

inline Place where(const char *op, const Tensor &x, const char *name = "x") {
  if (!x.is_cuda()) {
    if (!x.is_cpu())
      throw py::value_error(
          text(op, ": ", name, " is on device ", device_text(x), "; expected a CUDA device or the CPU"));
    return {thread_host.value_or(usual_host), nullptr};
  }
#ifdef NNCUDA_WITH_CUDA
  const int index = x.get_device();
  if (nn.emulated)
    throw std::runtime_error(
        text(op, ": ", name, " is on cuda:", index, ", but ", nn.path, " is ", nn.text,
             "; expected a library built for CUDA: `bazel build --config=cuda //phase5_production:nncuda`"));
  if (thread_stream_device && *thread_stream_device != index)
    throw py::value_error(text(op, ": ", name, " is on cuda:", index,
                               ", but the stream of `with nncuda.stream()` belongs to cuda:", *thread_stream_device,
                               "; expected a stream of the tensor's device"));
  return {index, (void *)c10::cuda::getCurrentCUDAStream((c10::DeviceIndex)index).stream()};
#else
  throw std::runtime_error(text(op, ": ", name, " is on ", device_text(x),
                                ", but this extension was built without CUDA; ",
                                "build it again beside a PyTorch with CUDA, or use nncuda.set_backend('ctypes')"));
#endif
}

inline void check(int status) {
  if (status == NNCUDA_OK) return;
  const std::string message = nn.last_error();
  if (status == NNCUDA_BAD_ARGUMENT) throw py::value_error(message);
  if (status == NNCUDA_UNSUPPORTED) {
    PyErr_SetString(PyExc_NotImplementedError, message.c_str());
    throw py::error_already_set();
  }
  throw std::runtime_error(message);
}

// Other Python threads run meanwhile: the CPU versions take their time.
template <typename Function, typename... Arguments>
void run(Function function, const Place &place, Arguments... arguments) {
  int status;
  {
    py::gil_scoped_release release;
    status = function(place.device, place.stream, arguments...);
  }
  check(status);  // the same thread, so the error is ours
}

struct Workspace {
  Tensor memory;
  void *pointer = nullptr;
  size_t bytes;

  // The library's kernels want a multiple of 256 bytes, where PyTorch's allocator of a GPU begins; that of the CPU
  // gives 64.
  Workspace(const Tensor &x, size_t size) : bytes(size) {
    if (!size) return;
    memory = at::empty({(int64_t)size + 255}, x.options().dtype(at::kByte));
    pointer = (void *)(((uintptr_t)memory.data_ptr() + 255) & ~(uintptr_t)255);
  }
};

inline Tensor empty(at::IntArrayRef shape, const Tensor &x) { return at::empty(shape, x.options()); }
inline Tensor empty_like(const Tensor &x) { return at::empty(x.sizes(), x.options()); }

}  // namespace
