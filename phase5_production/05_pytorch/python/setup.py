"""Installs the package nncuda, with the torch extension where it can be compiled.

    pip install -e . --no-build-isolation       # in this folder; uses the installed PyTorch
    NNCUDA_NO_EXTENSION=1 pip install -e .      # without a compiler: calls go through ctypes

The library itself is not built here: `bazel build //phase5_production:nncuda`, then NNCUDA_LIBRARY=.../libnncuda.so.1,
or a copy beside the package.
"""
import os
import runpy

from setuptools import find_packages, setup

HERE = os.path.dirname(os.path.abspath(__file__))


def extension():
    """Keyword arguments for the extension, none without PyTorch or where it is not wanted."""
    if os.environ.get("NNCUDA_NO_EXTENSION") == "1":
        return {}
    try:
        from torch.utils import cpp_extension
    except ImportError:
        print("nncuda: PyTorch is not installed here; no extension is compiled: use --no-build-isolation")
        return {}
    options = runpy.run_path(os.path.join(HERE, "nncuda", "_build.py"))["settings"]()
    kind = cpp_extension.CUDAExtension if options["with_cuda"] else cpp_extension.CppExtension
    return {
        "ext_modules": [kind("nncuda._C", ["nncuda/csrc/extension.cc"], include_dirs=options["include_dirs"],
                             libraries=options["libraries"], extra_compile_args=options["cflags"])],
        "cmdclass": {"build_ext": cpp_extension.BuildExtension},
    }


setup(
    name="nncuda",
    version="1.0.0",
    description="The CUDA kernels of Neural Networks in CUDA as PyTorch operations, layers and optimizers",
    packages=find_packages(include=["nncuda", "nncuda.*"]),
    package_data={"nncuda": ["libnncuda.so.1", "csrc/*"]},
    python_requires=">=3.8",
    **extension(),
)
