"""Which of the two ways to libnncuda is taken: ctypes, which needs no compiler, or the torch extension, which costs
less per call.

    NNCUDA_BACKEND=ctypes|extension|auto     in the environment; auto, the default: the extension where it is installed
    nncuda.set_backend("extension")          at any time
    nncuda.build_extension()                 compile it now, with torch.utils.cpp_extension.load, and use it

Both call the same functions of the same library: results are equal bit by bit.
"""
import importlib
import os
import threading
import types

from . import _ctypes_more, _ctypes_ops, _library

# Every operation of this level, by name. The extension has each of them.
NAMES = ("softmax", "softmax_backward", "cross_entropy", "scale_", "activation", "activation_backward", "add_relu",
         "add_relu_backward", "dropout", "matmul", "linear", "linear_backward", "conv2d", "conv2d_backward_input",
         "conv2d_backward_weight", "conv2d_nhwc", "fold_batch_norm", "stem_pool2d", "max_pool2d", "max_pool2d_backward",
         "avg_pool2d", "avg_pool2d_backward", "global_avg_pool2d", "global_avg_pool2d_backward", "layer_norm",
         "layer_norm_backward", "batch_norm", "batch_norm_evaluate", "batch_norm_backward", "attention",
         "attention_backward", "sgd_step", "adam_step")

ops = types.SimpleNamespace()  # what functional.py calls; its members are exchanged by set_backend()
name = None
_extension = None
_reason = ""  # why one that is there cannot be loaded
_lock = threading.Lock()


def _use(chosen, *sources):
    global name
    for operation in NAMES:
        for source in sources:
            if hasattr(source, operation):
                setattr(ops, operation, getattr(source, operation))
                break
    name = chosen


def _connect(module):
    """Gives the extension the same library that ctypes uses."""
    module.open(_library.library().path, _library.NEEDED, _library.usual_host())
    if module.told not in _library.listeners:
        _library.listeners.append(module.told)
    return module


def _installed():
    """The extension that `pip install .` built, or None."""
    global _reason
    try:
        return importlib.import_module("nncuda._C")
    except ModuleNotFoundError:
        return None
    except ImportError as error:  # built for another PyTorch, for example
        _reason = " for this PyTorch (%s)" % error
        return None


def set_backend(chosen):
    """"ctypes", "extension", or "auto". Gives the name of the one that is used now."""
    global _extension
    if chosen not in ("ctypes", "extension", "auto"):
        raise ValueError("set_backend: %r; expected 'ctypes', 'extension' or 'auto'" % (chosen,))
    with _lock:
        if chosen != "ctypes" and _extension is None:
            _extension = _installed()
        if chosen == "extension" and _extension is None:
            raise RuntimeError("the torch extension is not installed%s; build it with `pip install -e .` in the folder "
                               "of setup.py, or with nncuda.build_extension()" % _reason)
        if chosen != "ctypes" and _extension is not None:
            _use("extension", _connect(_extension))
        else:
            _use("ctypes", _ctypes_ops, _ctypes_more)
    return name


def build_extension(verbose=False, build_directory=None, flags=()):
    """Compiles csrc/extension.cc for this PyTorch (some 20 seconds the first time; kept in PyTorch's folder for
    extensions), and uses it. flags: more options for the compiler."""
    global _extension
    from ._build import compile_now
    module = compile_now(verbose, build_directory, flags)
    with _lock:
        _extension = module
    return set_backend("extension")


def initialize():
    """At import: what the environment says. Opens nothing where the extension is not installed."""
    wanted = os.environ.get("NNCUDA_BACKEND", "auto")
    if wanted not in ("ctypes", "extension", "auto"):
        raise ValueError("NNCUDA_BACKEND=%s: expected ctypes, extension or auto" % wanted)
    _use("ctypes", _ctypes_ops, _ctypes_more)
    if wanted == "extension" or (wanted == "auto" and _installed() is not None):
        set_backend(wanted)
