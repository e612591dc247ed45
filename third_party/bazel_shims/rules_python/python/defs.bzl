"""The Python rules as Bazel has them built in (its own tools load them)."""

def py_binary(**kwargs):
    native.py_binary(**kwargs)

def py_library(**kwargs):
    native.py_library(**kwargs)

def py_runtime(**kwargs):
    native.py_runtime(**kwargs)

def py_test(**kwargs):
    native.py_test(**kwargs)

py_runtime_pair = None
