"""cuda_library, cuda_binary, cuda_test: one .cu source, two backends.

    load("//tools/build:cuda.bzl", "cuda_library", "cuda_test")

    cuda_library(name = "relu", hdrs = ["relu.cuh"], deps = ["//common:device"])
    cuda_test(name = "relu_test", srcs = ["relu_test.cu"], deps = [":relu", "//common:test"])

Attributes are named as in rules_cuda. With --config=cuda nvcc compiles the .cu files, host code with the same --copt
and --cxxopt flags as any C++ file. With --config=cpu simt/ rewrites them to C++ and runs their kernels on the CPU; with
--config=inspect it also counts and checks every access; a program that reads the counts itself says `inspect = True`.
The libraries are ordinary C++ libraries to the rest of Bazel, so cc_* targets may depend on them and they on cc_*.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_cuda//:defs.bzl", "HAS_CUDA", "INSPECT_COPTS", "IS_GCC", "NVCC", "SIMT_COPTS")
load(":string_flag.bzl", "FlagInfo")

_MODE_FLAGS = {
    "dbg": ["-g", "-G", "-O0"],
    "fastbuild": ["-O1", "-lineinfo"],
    "opt": ["-O3", "-lineinfo", "-DNDEBUG"],
}

# To see that it compiles: kernels in half the time, and slow ones; what runs on the host in two thirds. With -O1 g++ takes
# texts to be longer than they are; what it warns of with -O3 is seen when the CPU backend compiles the same file.
_NVCC_CHECK_FLAGS = [
    "-O1",
    "-DNDEBUG",
    "-Xcicc=-O0",
    "-Xptxas=-O0",
    "-Xcompiler=-Wno-format-truncation",
    "-Xcompiler=-Wno-maybe-uninitialized",
]

def _arch_flags(archs, arch_specific):
    """"80,90" -> code for both; and PTX of the last for GPUs to come. Specific to an architecture: for 90a, not 90."""
    numbers = archs.split(",")
    for number in numbers:
        if not number.rstrip("af").isdigit():
            fail("--//tools/build:archs: '%s' is not a list of compute capabilities like 80,90" % archs)
    exact = [number + "a" if arch_specific and number == "90" else number for number in numbers]
    flags = ["-gencode=arch=compute_%s,code=sm_%s" % (number, number) for number in exact]
    return flags, ["-gencode=arch=compute_%s,code=compute_%s" % (numbers[-1], numbers[-1])]

# What CUDA sources rely on: type punning by pointer, and a * b + c in one rounding where the processor can. Line tables,
# for the place of a fault.
_TLS_FLAGS = {
    "inspect": ["-ftls-model=local-exec"],
    "plain": ["-ftls-model=local-exec"],  # a __shared__ array is thread-local; without this, its address is looked up
    "shared": ["-ftls-model=local-dynamic"],
}
_SIMT_FLAGS = [
    "-fomit-frame-pointer",
    "-fno-strict-aliasing",
    "-fno-aggressive-loop-optimizations",  # a loop beyond its array is reported, not made endless
    "-ffp-contract=fast",
    "-g1",
    "-Wno-unknown-pragmas",
    "-Wno-psabi",  # a tensor map as a kernel's parameter: its alignment was another matter in 2010
]

_QUICK_FLAGS = [
    "-O1",
    "-Wno-maybe-uninitialized",  # -O1 takes an array that a loop fills for one
]

# Those of simtcc --inspect; the reasons stand there.
_INSPECT_FLAGS = [
    "-gdwarf-4",
    "-g1",  # again: -gdwarf-4 alone means -g2
    "-O2",
    "-fsanitize=thread,bounds,object-size",
    "-fsanitize-coverage=trace-pc",
    "--param",
    "tsan-instrument-func-entry-exit=1",
    "--param",
    "tsan-distinguish-volatile=1",
    "-fno-tree-sra",
    "-fno-ipa-sra",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-store-merging",
    "-fno-expensive-optimizations",
    "-fno-tree-loop-distribute-patterns",
    "-fno-builtin-memset",
    "-fno-elide-constructors",
    "-fno-reorder-blocks",
    "-fno-reorder-blocks-and-partition",
    "-fno-crossjumping",
    "-fno-thread-jumps",
    "-fno-jump-tables",
    "-Wno-maybe-uninitialized",  # false with all these hooks
] + (["-mstringop-strategy=libcall"] if SIMT_COPTS else []) + INSPECT_COPTS  # x86-64

def _nvcc_run(ctx, src, compile_ctx, cc_toolchain, output, first_flags, host_flags, inputs = []):
    """nvcc of one .cu file: all flags but the first are the same, whatever it makes of it."""
    args = ctx.actions.args()
    args.add_all([src.path, "-o", output.path, "-ccbin", cc_toolchain.compiler_executable, "-std=c++17"])
    args.add_all(first_flags)
    args.add("-Werror=all-warnings")
    args.add("-objtemp")  # two sandboxes share /tmp and number their processes alike: so would nvcc its files there
    args.add_all(["-fPIC"] + host_flags + ctx.attr.host_copts, format_each = "-Xcompiler=%s")
    args.add_all(ctx.attr.ptxopts, before_each = "-Xptxas")
    args.add_all(ctx.attr.copts)
    args.add_all(compile_ctx.defines, format_each = "-D%s")
    args.add_all(compile_ctx.local_defines, format_each = "-D%s")
    args.add_all(compile_ctx.quote_includes, format_each = "-I%s")
    args.add_all(compile_ctx.includes, format_each = "-I%s")
    for directory in compile_ctx.system_includes.to_list():
        if "local_cuda" not in directory:  # nvcc knows its own headers
            args.add_all(["-isystem", directory])
    ctx.actions.run(
        executable = NVCC,
        arguments = [args],
        inputs = depset([src, ctx.file._cuda_version] + inputs, transitive = [compile_ctx.headers, cc_toolchain.all_files]),
        outputs = [output],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s with nvcc" % src.short_path,
        env = {"PATH": "/usr/bin:/bin", "TMPDIR": output.dirname},  # as -objtemp: what it asks gcc is still kept in /tmp
    )

def _nvcc(ctx, src, compile_ctx, cc_toolchain):
    """Compiles one .cu file for the GPU; returns the object."""
    name = "_cuda/%s/%s." % (ctx.label.name, src.basename)
    obj = ctx.actions.declare_file(name + "o")
    check = ctx.attr._nvcc[FlagInfo].value == "check"
    mode = _MODE_FLAGS[ctx.var["COMPILATION_MODE"]]
    host_flags = [f for f in ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts if not f.startswith("-std=")]
    code, ptx = _arch_flags(ctx.attr._archs[FlagInfo].value, ctx.attr.arch_specific)
    common = [ctx, src, compile_ctx, cc_toolchain]
    if check and ctx.attr.arch_specific:
        # wgmma wants the registers of -O3. What other GPUs get instead compiles with less, by itself: as PTX, which the
        # object waits for and does not contain.
        other = ctx.actions.declare_file(name + "ptx")
        _nvcc_run(*(common + [other, ["-ptx"] + ptx + _NVCC_CHECK_FLAGS, host_flags]))
        _nvcc_run(*(common + [obj, ["-c"] + code + mode, host_flags, [other]]))
    elif check:
        less = [f for f in host_flags if not f.startswith("-O")]
        _nvcc_run(*(common + [obj, ["-c"] + code + ptx + _NVCC_CHECK_FLAGS, less]))
    else:
        _nvcc_run(*(common + [obj, ["-c"] + code + ptx + mode, host_flags]))
    return obj

def _simt_standard(ctx):
    """-std for the preprocessor and the compiler alike: headers choose by it what they declare. nvcc's is GNU's, too."""
    standard = "gnu++17"
    for flag in ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.host_copts:
        if flag.startswith("-std="):
            standard = flag[len("-std="):]
    return "-std=" + ("gnu++" + standard[len("c++"):] if standard.startswith("c++") else standard)

def _to_cpp(ctx, src, compile_ctx, cc_toolchain):
    """Rewrites one .cu file to C++ that runs its kernels on the CPU; returns the .cpp file and the list of functions."""
    cpp = ctx.actions.declare_file("_simt/%s/%s.cpp" % (ctx.label.name, src.basename))
    functions = ctx.actions.declare_file(cpp.basename + ".functions", sibling = cpp)
    args = ctx.actions.args()
    args.add_all(["-E", src.path, "-o", cpp.path, "-ccbin", cc_toolchain.compiler_executable])
    args.add("--functions=" + functions.path)
    if ctx.attr._simt[FlagInfo].value == "inspect":
        args.add_all(["--inspect", "--no-unroll"])  # an access is a call: unrolled, a large kernel compiles for minutes
    else:
        args.add_all(SIMT_COPTS + ([] if ctx.attr.unroll else ["--no-unroll"]))
    args.add_all(ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.host_copts)
    args.add(_simt_standard(ctx))
    if ctx.var["COMPILATION_MODE"] == "opt":
        args.add("-DNDEBUG")
    args.add_all(compile_ctx.defines, format_each = "-D%s")
    args.add_all(compile_ctx.local_defines, format_each = "-D%s")
    args.add_all(compile_ctx.quote_includes, format_each = "-I%s")
    args.add_all(compile_ctx.includes, format_each = "-I%s")
    for directory in compile_ctx.system_includes.to_list():
        args.add_all(["-isystem", directory])
    ctx.actions.run(
        executable = ctx.file._simtcc,
        arguments = [args],
        inputs = depset([src], transitive = [compile_ctx.headers, cc_toolchain.all_files]),
        outputs = [cpp, functions],
        tools = [ctx.executable._rewrite],
        mnemonic = "SimtRewrite",
        progress_message = "Rewriting %s for the CPU" % src.short_path,
        env = {"PATH": "/usr/bin:/bin", "SIMTCC_REWRITE": ctx.executable._rewrite.path},
    )
    return cpp, functions

def _cuda_library_impl(ctx):
    use_cuda = ctx.attr._backend[FlagInfo].value == "cuda"
    if use_cuda and not HAS_CUDA:
        fail("--config=cuda: no CUDA toolkit was found in $CUDA_HOME, $CUDA_PATH, beside the nvcc on PATH or in " +
             "/usr/local/cuda; install one (developer.nvidia.com/cuda-downloads), or build with --config=cpu")
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    by_kind = {"c": [], "cc": [], "cpp": [], "cu": [], "cuh": [], "h": []}
    for src in ctx.files.srcs:
        if src.extension not in by_kind:
            fail("%s: %s is no .c, .cc, .cpp, .cu, .h or .cuh file" % (ctx.label, src.short_path))
        by_kind[src.extension].append(src)
    cpp_srcs = by_kind["cc"] + by_kind["cpp"]
    deps = [d[CcInfo] for d in ctx.attr.deps]
    deps.append((ctx.attr._cudart if use_cuda else ctx.attr._simt_runtime)[CcInfo])

    # cc_common.compile knows no .cuh files: they come as headers of a dependency.
    cuh = by_kind["cuh"] + [f for f in ctx.files.hdrs if f.extension == "cuh"]
    contexts = [cc_common.create_compilation_context(headers = depset(cuh))]
    contexts += [d.compilation_context for d in deps]
    package = ctx.label.package
    common = {
        "actions": ctx.actions,
        "cc_toolchain": cc_toolchain,
        "compilation_contexts": contexts,
        "defines": ctx.attr.defines,
        "disallow_nopic_outputs": True,
        "feature_configuration": features,
        "includes": [package + "/" + d if package else d for d in ctx.attr.includes],
        "local_defines": ctx.attr.local_defines,
        "private_hdrs": by_kind["h"],
        "public_hdrs": [f for f in ctx.files.hdrs if f.extension != "cuh"],
        "user_compile_flags": ctx.attr.host_copts,
    }

    # C and C++ go to two calls, because the -std flags differ.
    compile_ctx, outputs = cc_common.compile(name = ctx.label.name, srcs = by_kind["c"], **common)
    objects = list(outputs.pic_objects)
    if cpp_srcs:
        _, outputs = cc_common.compile(name = ctx.label.name + "_cpp", srcs = cpp_srcs, **common)
        objects += outputs.pic_objects
    if use_cuda:
        objects += [_nvcc(ctx, src, compile_ctx, cc_toolchain) for src in by_kind["cu"]]
    elif by_kind["cu"]:
        inspect = ctx.attr._simt[FlagInfo].value == "inspect"
        quick = not ctx.attr.optimize and ctx.var["COMPILATION_MODE"] == "opt" and not inspect
        common["user_compile_flags"] = ([] if inspect else SIMT_COPTS) + ctx.attr.host_copts + [_simt_standard(ctx)] + (
            _TLS_FLAGS[ctx.attr._simt[FlagInfo].value] + _SIMT_FLAGS + (_INSPECT_FLAGS if inspect else []) + (_QUICK_FLAGS if quick else [])
        )
        rewritten = [_to_cpp(ctx, src, compile_ctx, cc_toolchain) for src in by_kind["cu"]]
        additional = []
        if IS_GCC:  # each call that g++ resolves is checked; of others the rewriter has seen the name
            rewriter = ctx.executable._rewrite
            common["user_compile_flags"] += ["-wrapper", "%s,%s" % (ctx.file._check_calls.path, rewriter.path)]
            additional = [ctx.file._check_calls, rewriter] + [functions for _, functions in rewritten]
        _, outputs = cc_common.compile(
            name = ctx.label.name + "_simt",
            srcs = [cpp for cpp, _ in rewritten],
            additional_inputs = additional,
            **common
        )
        objects += outputs.pic_objects

    linking_ctx, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        alwayslink = ctx.attr.alwayslink,
        cc_toolchain = cc_toolchain,
        # -c opt links `objects`, the other modes `pic_objects`.
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        disallow_dynamic_library = True,
        feature_configuration = features,
        linking_contexts = [d.linking_context for d in deps],
        user_link_flags = ctx.attr.linkopts,
    )
    runfiles = ctx.runfiles(files = ctx.files.data)
    for target in ctx.attr.deps + ctx.attr.data:
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return [
        DefaultInfo(files = depset(objects), runfiles = runfiles),
        CcInfo(compilation_context = compile_ctx, linking_context = linking_ctx),
    ]

cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "alwayslink": attr.bool(),
        "arch_specific": attr.bool(doc = "With Hopper's own instructions (wgmma): 90 in --//tools/build:archs is 90a."),
        "copts": attr.string_list(doc = "Flags for nvcc."),
        "data": attr.label_list(allow_files = True),
        "defines": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = True),
        "host_copts": attr.string_list(doc = "Flags for the host compiler, in both backends."),
        "optimize": attr.bool(default = True, doc = "False: with -c opt the CPU backend compiles .cu files with -O1: fast, and they run slower."),
        "unroll": attr.bool(default = True, doc = "False: emulated kernels compile faster and run slower."),
        "includes": attr.string_list(),
        "linkopts": attr.string_list(),
        "local_defines": attr.string_list(),
        "ptxopts": attr.string_list(doc = "Flags for ptxas."),
        "srcs": attr.label_list(allow_files = True),
        "_archs": attr.label(default = "//tools/build:archs"),
        "_nvcc": attr.label(default = "//tools/build:nvcc"),
        "_backend": attr.label(default = "//tools/build:backend"),
        "_check_calls": attr.label(default = "//simt:check_calls", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_cuda_version": attr.label(default = "@local_cuda//:version.txt", allow_single_file = True),
        "_rewrite": attr.label(default = "//simt:rewrite", executable = True, cfg = "exec"),
        "_simt": attr.label(default = "//tools/build:simt"),
        "_simt_runtime": attr.label(default = "//simt", providers = [CcInfo]),
        "_simtcc": attr.label(default = "//simt:simtcc", allow_single_file = True),
        "_cudart": attr.label(default = "@local_cuda//:cudart", providers = [CcInfo]),
    },
    fragments = ["cpp"],
    incompatible_use_toolchain_transition = True,
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _inspect_impl(_settings, _attr):
    return {"//tools/build:simt": "inspect"}

_inspect = transition(
    implementation = _inspect_impl,
    inputs = [],
    outputs = ["//tools/build:simt"],
)

def _inspected_impl(ctx):
    return [ctx.attr.library[0][CcInfo]]

# A library and all below it as --config=inspect builds them.
_inspected = rule(
    implementation = _inspected_impl,
    attrs = {
        "library": attr.label(cfg = _inspect, providers = [CcInfo]),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    provides = [CcInfo],
)

_LIBRARY_ATTRS = ["arch_specific", "copts", "defines", "host_copts", "includes", "local_defines", "optimize", "ptxopts", "srcs", "unroll"]

def _cuda_program(rule, name, compatible, deps, inspect, kwargs):
    """A program is a library of its sources, kept whole, and a cc_binary or cc_test that links it."""
    library = {key: kwargs.pop(key) for key in _LIBRARY_ATTRS if key in kwargs}
    own = kwargs.pop("target_compatible_with", [])
    testonly = kwargs.get("testonly", rule == native.cc_test)
    objects = name + "_objects"
    cuda_library(
        name = objects,
        alwayslink = True,
        tags = kwargs.get("tags", []) + (["manual"] if inspect else []),  # the program decides which way
        target_compatible_with = own,
        testonly = testonly,
        visibility = ["//visibility:private"],
        deps = deps,
        **library
    )
    libraries = [":" + objects]
    if inspect:
        _inspected(
            name = name + "_inspected",
            library = ":" + objects,
            tags = kwargs.get("tags", []) + ["manual"],
            target_compatible_with = own,
            testonly = testonly,
            visibility = ["//visibility:private"],
        )
        libraries = select({
            "//tools/build:can_inspect": [":%s_inspected" % name],
            "//conditions:default": libraries,
        })
    rule(
        name = name,
        linkstatic = True,
        target_compatible_with = compatible + own,
        deps = libraries,
        **kwargs
    )
    return libraries

def cuda_binary(name, deps = [], inspect = False, **kwargs):
    """A program; attributes of cc_binary and cuda_library.

    Args:
      name: the target.
      deps: libraries.
      inspect: with the cpu backend the inspector looks on, and SIMT_INSPECT is defined (simt/inspector.h).
      **kwargs: the rest.
    """
    _cuda_program(native.cc_binary, name, [], deps, inspect, kwargs)

def cuda_test(name, deps = [], needs_gpu = True, inspect = False, orders = [], **kwargs):
    """A test; attributes of cc_test and cuda_library.

    Args:
      name: the target.
      deps: libraries.
      needs_gpu: with --config=cuda on a machine without a GPU the test is SKIPPED. False for a test of host code only.
      inspect: as for cuda_binary.
      orders: with the cpu backend it runs once more for each of these orders of the threads, "random:1" for example.
      **kwargs: the rest. With the cpu backend compiling a test takes longer than running it: `optimize` and `unroll` are
        False unless given.
    """
    kwargs = dict({"optimize": False, "unroll": False}, **kwargs)
    compatible = []
    if needs_gpu:
        kwargs["tags"] = kwargs.get("tags", []) + ["requires-gpu"]
        compatible = select({
            "//tools/build:cuda_without_gpu": ["//tools/build:nvidia_gpu"],
            "//conditions:default": [],
        })
    if orders:
        kwargs["tags"] = kwargs.get("tags", []) + ["thread-orders"]
    libraries = _cuda_program(native.cc_test, name, compatible, deps, inspect, kwargs)
    for order in orders:
        native.cc_test(
            name = name + "_" + order.replace(":", "_"),
            size = kwargs.get("size"),
            args = kwargs.get("args"),
            data = kwargs.get("data"),
            env = dict(kwargs.get("env", {}), SIMT_ORDER = order),
            linkstatic = True,
            tags = kwargs.get("tags", []) + ["emulated"],
            target_compatible_with = select({
                "//tools/build:cuda": ["//tools/build:nvidia_gpu"],  # a GPU has the order that it has
                "//conditions:default": [],
            }),
            deps = libraries,
        )

def _shared_impl(_settings, _attr):
    return {"//tools/build:simt": "shared"}

_shared = transition(
    implementation = _shared_impl,
    inputs = [],
    outputs = ["//tools/build:simt"],
)

def _in_shared_impl(ctx):
    return [cc_common.merge_cc_infos(cc_infos = [library[CcInfo] for library in ctx.attr.libraries])]

# Libraries and all below them as a shared library needs them.
_in_shared = rule(
    implementation = _in_shared_impl,
    attrs = {
        "libraries": attr.label_list(cfg = _shared, providers = [CcInfo]),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    provides = [CcInfo],
)

def cuda_shared_library(name, soname, version_script, deps, linkopts = [], **kwargs):
    """A shared library that any program can load.

    Args:
      name: of the file, libNAME.so.1.
      soname: the name by which programs ask for it.
      version_script: the linker's list of what it exports.
      deps: cuda_library targets with alwayslink; all that they need is linked into it.
      linkopts: more of them.
      **kwargs: of cc_binary.
    """
    _in_shared(
        name = name + "_parts",
        libraries = deps,
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    native.cc_binary(
        name = name,
        additional_linker_inputs = [version_script],
        linkopts = [
            "-Wl,-soname,%s" % soname,
            "-Wl,--version-script=$(location %s)" % version_script,
            "-Wl,-z,defs",  # all that it calls is there
            "-Wl,-z,nodelete",  # threads of it may run until the program ends
        ] + linkopts,
        linkshared = True,
        linkstatic = True,
        # A sanitizer belongs to the program: a shared library has none of its own, and Python is none.
        target_compatible_with = select({
            "//tools/build:sanitized": ["//tools/build:nvidia_gpu"],
            "//conditions:default": [],
        }),
        deps = select({
            "//tools/build:cuda": deps,
            "//conditions:default": [":%s_parts" % name],
        }),
        **kwargs
    )
