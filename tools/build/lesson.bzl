"""lesson: the targets of a lesson's folder, phaseN/NN_topic. phase: those of a phase.

    load("//tools/build:lesson.bzl", "lesson")

    lesson(
        name = "softmax",
        deps = ["//common:shared_memory_limit"],
        targets = {"softmax_test": {"orders": ["random:1"]}},
    )

What a file is follows from its name:

    *_lesson.cuh, *_cublas*, *_cudnn*, *_cufft*,
    *_curand*                                      library softmax_lesson: what only programs and tests include
    *_op.cuh, *_op.cu                              library softmax_op: the operation as networks use it (common/nn)
    the other .cuh and .h files                    library softmax_cuh
    test_*.h                                       library softmax_testing: what tests of several lessons share
    *_counts_test.cu                               test of the inspector's counts
    *_test.cu, *_test.c                            tests
    README.md                                      recorded_test: the outputs in it are what the programs print
    *_bench.cu                                     benchmark
    the other .cu files                            programs
    exercises/                                     what //learn cuts and checks

The GPU test pack takes all tests and programs by itself.
"""

load("//tools/build:cuda.bzl", "cuda_binary", "cuda_library", "cuda_test")

# What a header with exercises includes: in a student's tree, which //learn cuts, "//.learn:exercises".
_EXERCISES = []

_YARDSTICKS = ["*_lesson.cuh", "*_cublas*.cuh", "*_cudnn*.cuh", "*_cufft*.cuh", "*_curand*.cuh"]

def _stem(file):
    return file[:file.rindex(".")]

def _merged(defaults, more):
    """Lists are joined; other values are replaced."""
    merged = dict(defaults)
    for key, value in more.items():
        merged[key] = merged[key] + value if key in merged and type(value) == type([]) else value
    return merged

def recorded_test(documents, programs = {}, name = "recorded_test", **kwargs):
    """Compares the recorded blocks of documents with what the programs print (tools/record).

    Args:
      documents: files.
      programs: the labels in the blocks' marks, each with the target that Bazel builds for it.
      name: the test.
      **kwargs: the rest.
    """
    if _EXERCISES:
        return  # a student's kernels may count otherwise
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["//tools:record"],
        args = ["--check", "--built"] +
               ["--program=%s=$(rootpath %s)" % (label, target) for label, target in programs.items()] +
               ["$(rootpath %s)" % document for document in documents],
        data = documents + programs.values(),
        target_compatible_with = select({
            "//tools/build:can_inspect": [],
            "//conditions:default": ["//tools/build:nvidia_gpu"],  # which no platform has: skipped
        }),
        **kwargs
    )

def lesson(name, deps = [], lesson_deps = [], op_deps = [], op_hdrs = [], defines = [], libraries = [], targets = {}):
    """The targets of a lesson's folder.

    Args:
      name: the folder's name less its number, and the program's.
      deps: of the library NAME_cuh.
      lesson_deps: of NAME_lesson, beside NAME_cuh and //common/lesson.
      op_deps: of NAME_op, beside NAME_cuh and //common/nn:graph.
      op_hdrs: headers of NAME_op that are not called *_op.cuh, such as a network.
      defines: of NAME_cuh and all that use it.
      libraries: .cu files that are no programs: of a library that the BUILD file declares itself.
      targets: by the name of a program or test, attributes beside the usual ones. "harness": False is a program that
        does not use //common/lesson:main.
    """
    ops = native.glob(["*_op.cuh"]) + op_hdrs
    yardsticks = native.glob(_YARDSTICKS)
    helpers = native.glob(["test_*.h"])
    headers = native.glob(["*.cuh", "*.h"], exclude = ops + yardsticks + helpers)
    programs = native.glob(["*.cu"], exclude = ["*_test.cu", "*_bench.cu", "*_op.cu"] + libraries)
    tests = native.glob(["*_test.cu"])
    visible = {"visibility": ["//visibility:public"]}

    own = []
    if headers:
        cuda_library(name = name + "_cuh", hdrs = headers + _EXERCISES, defines = defines, deps = deps, **visible)
        own.append(":" + name + "_cuh")
    if yardsticks:
        cuda_library(name = name + "_lesson", hdrs = yardsticks, deps = own + ["//common/lesson"] + lesson_deps, **visible)
    if ops:
        # A program compiles every method that --conv=NAME knows, and runs one: compiling quickly counts. A step of a
        # network is recorded in the thread's own stream (common/nn/step_graph.h): kernels must go there.
        cuda_library(
            name = name + "_op",
            srcs = native.glob(["*_op.cu"]),
            hdrs = ops,
            local_defines = ["CUDA_API_PER_THREAD_DEFAULT_STREAM=1"],
            unroll = False,
            deps = own + ["//common/nn:graph"] + op_deps,
            **visible
        )
        own = own + [":" + name + "_op"]
    if yardsticks:
        own = own + [":" + name + "_lesson"]

    if helpers:
        cuda_library(name = name + "_testing", testonly = True, hdrs = helpers, deps = own + ["//common:test_arrays"], **visible)

    for file in programs:
        program = _stem(file)
        attributes = dict(targets.get(program, {}))
        harness = attributes.pop("harness", bool(yardsticks))
        usual = {"deps": own + (["//common/lesson:main"] if harness else []), "inspect": harness}
        cuda_binary(name = program, srcs = [file], **_merged(_merged(usual, visible), attributes))
    for file in native.glob(["*_bench.cu"]):
        cuda_binary(name = _stem(file), srcs = [file], **_merged(_merged({"deps": own}, visible), targets.get(_stem(file), {})))

    for file in tests:
        usual = {"deps": own + ["//common:test", "//common:test_arrays"], "size": "small", "srcs": [file]}
        if helpers:
            usual["deps"] = usual["deps"] + [":" + name + "_testing"]
        if file.endswith("_counts_test.cu"):
            usual["deps"] = own + ["//common/lesson:test_counts"]
            usual["inspect"] = True
            usual["orders"] = ["random:1"]
        cuda_test(name = _stem(file), **_merged(usual, targets.get(_stem(file), {})))
    for file in native.glob(["*_test.c"]):
        usual = {"data": [":" + _stem(program) for program in programs], "deps": ["//common:program_test"]}
        native.cc_test(name = _stem(file), srcs = [file], **_merged(usual, targets.get(_stem(file), {})))

    phase = native.package_name().split("/")[0]
    documents = native.glob(["README.md"])
    if documents:
        labels = {"//%s:%s" % (phase, _stem(file)): ":" + _stem(file) for file in programs}
        recorded_test(documents, labels, **targets.get("recorded_test", {}))

    # For the tests of learn/, which make a student's tree.
    native.filegroup(
        name = "sources",
        srcs = native.glob(["*.cu", "*.cuh", "*.h", "exercises/*.cu", "exercises/*.txt"]),
        **visible
    )

def phase(course, programs = {}, tests = {}):
    """A phase's short labels: //phase1_building_blocks:softmax is //phase1_building_blocks/08_softmax:softmax.

    Args:
      course: COURSE of //:course.bzl.
      programs: more labels, by name, with the folder of each; None where a lesson has no program of its name.
      tests: the same for tests.
    """
    package = native.package_name()
    folders = [folder[len(package) + 1:] for folder in course if folder.startswith(package + "/")]
    labels = {folder[folder.index("_") + 1:]: folder for folder in folders}
    labels.update(programs)
    for label, folder in labels.items():
        if folder:
            native.alias(name = label, actual = "//%s/%s:%s" % (package, folder, label), visibility = ["//visibility:public"])
    for label, folder in tests.items():  # of an alias `bazel test` runs nothing
        native.test_suite(name = label, tests = ["//%s/%s:%s" % (package, folder, label)])
    recorded_test(["README.md"])
    native.filegroup(
        name = "sources",
        srcs = native.glob(["*.cu", "*.cuh", "*.h"]) + ["//%s/%s:sources" % (package, folder) for folder in folders],
        visibility = ["//visibility:public"],
    )
