"""libnncuda.so.1: where it is, whether it is new enough, how its functions are called, what its errors become.

The library is opened when the first operation needs it, from the first of these places that has it:

    $NNCUDA_LIBRARY                      a file; nothing else is tried where it is set
    nncuda/libnncuda.so.1                beside this file
    the lesson's folder, then bazel-bin  in a checkout: `bazel build //phase5_production:nncuda`
    the loader's own search              LD_LIBRARY_PATH, /usr/lib

Where the library is older than this package, or of another major version, the first operation raises a RuntimeError
that names both versions. nncuda.h documents every function; _SIGNATURES says the same in one letter for each argument,
and a test compares the two.
"""
import contextlib
import ctypes
import os
import threading

import torch

NEEDED = 10000  # NNCUDA_VERSION of the header that _SIGNATURES was written for
_NAMES = ("libnncuda.so.1", "libnncuda.so")
_LESSON = os.path.join("phase5_production", "05_pytorch")

# i int, l int64_t, d double, p pointer, z size_t, u uint32_t, U uint64_t, s text. What stands before > is returned.
_TYPES = {"i": ctypes.c_int, "l": ctypes.c_int64, "d": ctypes.c_double, "p": ctypes.c_void_p, "z": ctypes.c_size_t,
          "u": ctypes.c_uint32, "U": ctypes.c_uint64, "s": ctypes.c_char_p}
# Functions that compute begin with device, stream, dtype: written ":".
_SIGNATURES = {
    "version": "i>", "version_text": "s>", "check_version": "i>i", "last_error": "s>", "last_argument": "s>",
    "status_name": "s>i", "device_count": "i>", "device_name": "i>isz", "set_checks": "i>i",
    "softmax_forward": "i>:ppll", "softmax_backward": "i>:pppll",
    "cross_entropy_workspace": "z>ill", "cross_entropy": "i>:pppppillildpz", "scale": "i>:pppl",
    "activation_forward": "i>:ippl", "activation_backward": "i>:ipppl",
    "add_relu_forward": "i>:pppl", "add_relu_backward": "i>:pppl", "dropout": "i>:ppldUu",
    "matmul": "i>:ppplll" + "iii", "linear_workspace": "z>illl", "linear_forward": "i>:pppplllipz",
    "linear_backward_workspace": "z>illli", "linear_backward": "i>:ppppppplllipz",
    "conv2d_output": "i>ppp", "conv2d_workspace": "z>ip", "conv2d_forward_workspace": "z>ip",
    "set_convolution": "i>i", "conv2d_forward": "i>:pppppippz",
    "conv2d_backward_input": "i>:ppp" + "ppz", "conv2d_backward_weight": "i>:pppp" + "ppz",
    "conv2d_nhwc_workspace": "z>ii", "conv2d_nhwc_forward": "i>:pppppippz", "conv2d_fold_batch_norm": "i>:ppppppppdll",
    "pool2d_output": "i>ppp", "max_pool2d_forward": "i>:pppip", "max_pool2d_backward": "i>:pppp",
    "avg_pool2d_forward": "i>:ppip", "avg_pool2d_backward": "i>:ppip",
    "stem_pool2d_workspace": "z>iipp", "stem_pool2d_forward": "i>:pppp" + "pppz",
    "global_avg_pool2d_forward": "i>:ppll", "global_avg_pool2d_backward": "i>:ppll",
    "layer_norm_forward": "i>:pppppdll", "layer_norm_backward_workspace": "z>ill",
    "layer_norm_backward": "i>:pppppppllpz",
    "batch_norm_passed": "z>lll", "batch_norm_workspace": "z>illl",
    "batch_norm_forward": "i>:" + "p" * 10 + "idd" + "lllpz", "batch_norm_evaluate": "i>:" + "p" * 7 + "idlll",
    "batch_norm_backward": "i>:" + "p" * 11 + "illlpz",
    "attention_forward": "i>:pppppllll" + "i", "attention_backward_workspace": "z>iillll",
    "attention_backward": "i>:" + "p" * 9 + "llll" + "ipz",
    "sgd_step": "i>iplpppp" + "dddidi", "adam_step": "i>iplppppp" + "ddddd" + "il",
}


class Conv2dShape(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in (
        "n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "padding_h", "padding_w", "dilation_h", "dilation_w",
        "groups")]


class Pool2dShape(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in (
        "n", "c", "h", "w", "kernel_h", "kernel_w", "stride_h", "stride_w", "padding_h", "padding_w", "dilation_h",
        "dilation_w", "ceil_mode")]


OK, BAD_ARGUMENT, UNSUPPORTED, NO_DEVICE, CUDA_ERROR, VERSION_MISMATCH = range(6)
_EXCEPTIONS = {BAD_ARGUMENT: ValueError, UNSUPPORTED: NotImplementedError}  # the others: RuntimeError


def _candidates():
    """Files to try, in order."""
    here = os.path.dirname(os.path.realpath(__file__))
    folders = [here, os.path.dirname(os.path.dirname(here))]  # beside this file; the lesson's folder
    at = here
    while os.path.dirname(at) != at:
        at = os.path.dirname(at)
        folders.append(os.path.join(at, "bazel-bin", _LESSON))
    return [os.path.join(folder, name) for folder in folders for name in _NAMES]


def _open():
    """The library as ctypes has it, and its path."""
    wanted = os.environ.get("NNCUDA_LIBRARY")
    if wanted:
        if not os.path.exists(wanted):
            raise RuntimeError("NNCUDA_LIBRARY=%s: there is no such file; expected libnncuda.so.1: build it with "
                               "`bazel build //phase5_production:nncuda`" % wanted)
        files = [os.path.abspath(wanted)]
    else:
        files = [path for path in _candidates() if os.path.exists(path)] or list(_NAMES)
    reasons = []
    for path in files:
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            reasons.append(str(error))
    hint = "" if wanted else " (looked beside the package, in bazel-bin, and where the loader looks)"
    raise RuntimeError("libnncuda.so.1 cannot be loaded%s: %s; build it with `bazel build //phase5_production:nncuda`, "
                       "or set NNCUDA_LIBRARY to its path" % (hint, "; ".join(reasons)))


def version_text(version):
    return "%d.%d.%d" % (version // 10000, version // 100 % 100, version % 100)


def _check_version(library, path):
    try:
        library.nncuda_version.restype = ctypes.c_int
        found = library.nncuda_version()
    except AttributeError:
        raise RuntimeError("%s has no function nncuda_version; expected libnncuda.so.1 of version %s or newer"
                           % (path, version_text(NEEDED))) from None
    if found < NEEDED or found // 10000 != NEEDED // 10000:
        age = "older than" if found < NEEDED else "of another major version than"
        raise RuntimeError("%s is version %s, %s this package, which needs %s: build it again with "
                           "`bazel build //phase5_production:nncuda`, or set NNCUDA_LIBRARY to a file that fits"
                           % (path, version_text(found), age, version_text(NEEDED)))


class Library:
    """The functions as attributes: library.softmax_forward(device, stream, dtype, ...) gives a status."""

    def __init__(self):
        self.handle, self.path = _open()
        _check_version(self.handle, self.path)
        for name, signature in _SIGNATURES.items():
            result, _, arguments = signature.partition(">")
            function = getattr(self.handle, "nncuda_" + name, None)
            if function is None:
                setattr(self, name, self._lacks(name))
                continue
            function.restype = _TYPES[result]
            function.argtypes = [_TYPES[letter] for letter in arguments.replace(":", "ipi")]
            setattr(self, name, function)
        self.text = self.version_text().decode()
        self.emulated = "emulated" in self.text  # device 0 is the emulated GPU, which takes host pointers

    def _lacks(self, name):
        def raises(*_):
            raise RuntimeError("%s (version %s) has no function nncuda_%s, which this operation needs: build it again "
                               "with `bazel build //phase5_production:nncuda`"
                               % (self.path, version_text(self.version()), name))
        return raises

    def check(self, status):
        """Raises what the last call of this thread complains about, unless status is OK."""
        if status != OK:
            raise _EXCEPTIONS.get(status, RuntimeError)(self.last_error().decode())


_lock = threading.Lock()
_library = None


def library():
    """The library, opened at the first call."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = Library()
    return _library


# ---------------------------------------------------------------------------------------------------------------------
# Where a call goes: which device, which stream

class _Thread(threading.local):
    stream_device = None  # index of the GPU, within `with nncuda.stream()`
    host = None           # device for tensors on the CPU; None: as the environment says


_thread = _Thread()
_HOST = {"cpu": -1, "emulated": 0}
listeners = []  # the extension: functions that are told (host device, stream's device) of this thread


def _changed():
    for listener in listeners:
        listener(None if _thread.host is None else host_device(), _thread.stream_device)


def _environment_host():
    name = os.environ.get("NNCUDA_DEVICE", "cpu")
    if name not in _HOST:
        raise ValueError("NNCUDA_DEVICE=%s: expected cpu (C functions) or emulated (the kernels, on the CPU)" % name)
    return name


def usual_host():
    """What the environment says of all threads, as host_device() gives it."""
    return _host(_environment_host())


def host_device():
    """The library's device for tensors on the CPU: -1, its C functions, or 0, its emulated GPU."""
    return _host(_thread.host or _environment_host())


def _host(name):
    if name == "emulated" and not library().emulated:
        raise RuntimeError("%s is %s, which has no emulated GPU; expected a library of the cpu backend: "
                           "`bazel build --config=cpu //phase5_production:nncuda`" % (library().path, library().text))
    return _HOST[name]


@contextlib.contextmanager
def host(name):
    """In this thread: how tensors on the CPU are computed, "cpu" or "emulated"."""
    if name not in _HOST:
        raise ValueError("host: name is %r; expected 'cpu' or 'emulated'" % (name,))
    before, _thread.host = _thread.host, name
    try:
        _changed()
        yield
    finally:
        _thread.host = before
        _changed()


@contextlib.contextmanager
def stream(value, device=None):
    """In this thread: compute on this stream, a torch.cuda.Stream, or another library's cudaStream_t as a number, with
    `device`, the index of its GPU. As torch.cuda.stream(), and tensors of another device are refused."""
    if isinstance(value, int) and isinstance(device, int):
        value = torch.cuda.ExternalStream(value, device="cuda:%d" % device)
    if not isinstance(value, torch.cuda.Stream):
        raise TypeError("stream: %r with device %r; expected a torch.cuda.Stream, or a cudaStream_t as an int with the "
                        "index of its device" % (value, device))
    before, _thread.stream_device = _thread.stream_device, value.device.index
    try:
        _changed()
        with torch.cuda.stream(value):
            yield
    finally:
        _thread.stream_device = before
        _changed()


def stream_device():
    """The index of the GPU of `with nncuda.stream()`, or None."""
    return _thread.stream_device
