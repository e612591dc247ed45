"""Compiles the torch extension when it is asked for (backend.build_extension), and says how to setup.py."""
import os

_HERE = os.path.dirname(os.path.realpath(__file__))


def header_folder():
    """Where nncuda.h is: the lesson's folder in a checkout, csrc/ in an archive."""
    folders = [os.environ.get("NNCUDA_INCLUDE", ""), os.path.dirname(os.path.dirname(_HERE)),
               os.path.join(_HERE, "csrc")]
    for folder in folders:
        if folder and os.path.exists(os.path.join(folder, "nncuda.h")):
            return folder
    raise RuntimeError("nncuda.h is not here: looked in %s; set NNCUDA_INCLUDE to its folder"
                       % ", ".join(filter(None, folders)))


def settings():
    """Keyword arguments that setup.py and compile_now() share. CUDA's headers are needed for one thing: the current
    stream."""
    import torch
    with_cuda = torch.version.cuda is not None
    # PyTorch 1 compiles extensions as C++14; later ones choose a standard that their headers need.
    standard = ["-std=c++17"] if torch.__version__.startswith("1.") else []
    return {
        "include_dirs": [header_folder(), os.path.join(_HERE, "csrc")],
        "cflags": standard + ["-O2", "-Wall", "-Wextra", "-Wno-unused-parameter"]
        + (["-DNNCUDA_WITH_CUDA"] if with_cuda else []),
        "libraries": ["c10_cuda"] if with_cuda else [],
        "with_cuda": with_cuda,
    }


def compile_now(verbose=False, build_directory=None, flags=()):
    """The module nncuda_extension, compiled where it is not up to date."""
    from torch.utils import cpp_extension
    options = settings()
    if build_directory:
        os.makedirs(build_directory, exist_ok=True)
    return cpp_extension.load(
        "nncuda_extension", [os.path.join(_HERE, "csrc", "extension.cc")], extra_cflags=options["cflags"] + list(flags),
        extra_ldflags=["-l" + name for name in options["libraries"]], extra_include_paths=options["include_dirs"],
        with_cuda=options["with_cuda"], verbose=verbose, build_directory=build_directory)
