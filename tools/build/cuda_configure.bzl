"""@local_cuda: the CUDA toolkit and the GPU of this machine, or the fact that there is none.

The toolkit is the first of $CUDA_HOME, $CUDA_PATH, the nvcc on PATH and /usr/local/cuda that has bin/nvcc and
include/cuda_runtime.h. Without one every library here is empty, so that everything still loads and builds on the CPU.
"""

# target -> libraries to link
_LIBRARIES = {
    "cublas": ["cublasLt", "cublas"],
    "cudnn": ["cudnn"],
    "cufft": ["cufft"],
    "curand": ["curand"],
    "nccl": ["nccl"],
}

def _find_toolkit(ctx):
    candidates = [ctx.os.environ.get("CUDA_HOME"), ctx.os.environ.get("CUDA_PATH")]
    nvcc = ctx.which("nvcc")
    if nvcc != None:
        candidates.append(str(nvcc.realpath.dirname.dirname))
    candidates.append("/usr/local/cuda")
    for candidate in candidates:
        if candidate:
            root = ctx.path(candidate)
            if root.get_child("bin").get_child("nvcc").exists and \
               root.get_child("include").get_child("cuda_runtime.h").exists:
                return root
    return None

def _find_gpus(ctx):
    """Returns (is there a GPU, the compute capabilities as "90" or "80,90")."""
    smi = ctx.which("nvidia-smi")
    if smi != None:
        query = ctx.execute([smi, "--query-gpu=compute_cap", "--format=csv,noheader"], timeout = 20)
        archs = []
        for line in query.stdout.split("\n"):
            arch = line.strip().replace(".", "")
            if query.return_code == 0 and arch.isdigit() and arch not in archs:
                archs.append(arch)
        if archs:
            return True, ",".join(sorted(archs))
    return ctx.path("/dev/nvidia0").exists, ""

def _simt_copts(ctx):
    """Flags for emulated kernels: as nvcc compiles for the GPU of this machine, g++ does for its processor."""
    cpuinfo = ctx.execute(["sh", "-c", "grep -m1 '^flags' /proc/cpuinfo"]).stdout.split(" ")
    if "avx2" in cpuinfo and "fma" in cpuinfo and "bmi2" in cpuinfo:
        return ["-march=x86-64-v3"]
    return []

def _gcc(ctx):
    """The major version of the compiler; 0: it is not gcc."""
    version = ctx.execute(["sh", "-c", "${CC:-gcc} --version | grep -qi clang || ${CC:-gcc} -dumpversion"]).stdout
    major = version.split(".")[0].strip()
    return int(major) if major.isdigit() else 0

def _inspect_copts(gcc):
    """Flags for inspected kernels that only newer compilers need; the reasons stand in simt/simtcc."""
    return (["-fno-tree-sink"] if gcc >= 14 else []) + (["-fno-tree-forwprop"] if gcc >= 16 else [])

def _library_dir(root):
    for name in ["lib64", "lib"]:
        if root.get_child(name).exists:
            return str(root.get_child(name))
    return str(root)

def _exists_in(ctx, directory, file):
    return ctx.path(directory).get_child(file).exists

def _cudnn(ctx, root):
    """The version of cuDNN's header: common/check_cudnn.h asks whether there is one."""
    command = "echo '#include <cudnn.h>' | ${CC:-gcc} -E -dM -x c -I%s - | grep -E 'CUDNN_(MAJOR|MINOR|PATCHLEVEL) '"
    return ctx.execute(["sh", "-c", command % root.get_child("include")]).stdout or "no cuDNN\n"

def _cuda_configure_impl(ctx):
    root = _find_toolkit(ctx)
    has_gpu, archs = _find_gpus(ctx)
    build = ['package(default_visibility = ["//visibility:public"])', 'exports_files(["version.txt"])']
    if root == None:
        ctx.file("version.txt", "no CUDA toolkit\n")
        for name in ["headers", "cudart"] + _LIBRARIES.keys():
            build.append('cc_library(name = "%s")' % name)
    else:
        nvcc = root.get_child("bin").get_child("nvcc")
        ctx.file("version.txt", ctx.execute([nvcc, "--version"]).stdout + _cudnn(ctx, root))  # an input of every nvcc action
        ctx.symlink(root.get_child("include"), "include")
        lib = _library_dir(root)
        build.append("""
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**", "include/cooperative_groups/**"]),
    includes = ["include"],
)
cc_library(
    name = "cudart",
    linkopts = ["-L%s", "-lcudart_static", "-lrt", "-lpthread", "-ldl"],
    deps = [":headers"],
)""" % lib)
        for name, links in _LIBRARIES.items():
            if not _exists_in(ctx, lib, "lib%s.so" % links[-1]) and \
               not _exists_in(ctx, "/usr/lib/x86_64-linux-gnu", "lib%s.so" % links[-1]):
                # Named by a target, it makes that target incompatible instead of breaking the workspace.
                build.append('cc_library(name = "%s", target_compatible_with = ["@nn//tools/build:nvidia_gpu"])' % name)
                continue
            linkopts = ["-L" + lib] + ["-l" + link for link in links] + ["-Wl,-rpath," + lib]
            if lib != "/usr/local/cuda/lib64":
                linkopts.append("-Wl,-rpath,/usr/local/cuda/lib64")
            build.append('cc_library(name = "%s", linkopts = %s, deps = [":headers"])' % (name, linkopts))
    ctx.file("BUILD", "\n".join(build) + "\n")
    ctx.file("defs.bzl", '''"""What cuda_configure found on this machine."""
HAS_CUDA = %s
NVCC = %r
DEFAULT_ARCHS = %r
DEFAULT_BACKEND = %r
DEFAULT_GPU = %r
IS_GCC = %r
INSPECT_COPTS = %r
SIMT_COPTS = %r
''' % (
        root != None,
        str(root.get_child("bin").get_child("nvcc")) if root != None else "",
        archs or "90",
        "cuda" if root != None and has_gpu else "cpu",
        "yes" if has_gpu else "no",
        _gcc(ctx) > 0,
        _inspect_copts(_gcc(ctx)),
        _simt_copts(ctx),
    ))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    configure = True,
    environ = ["CC", "CUDA_HOME", "CUDA_PATH", "PATH"],
    local = True,
)
