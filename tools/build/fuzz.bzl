"""fuzz_test: a libFuzzer target that runs for some seconds as a test, under AddressSanitizer and UBSan.

    load("//tools/build:fuzz.bzl", "fuzz_test")

    fuzz_test(name = "idx_fuzz", src = "idx_fuzz.c", corpus = glob(["testdata/idx/*"]), deps = ["//common:idx"])

    bazel test //common:idx_fuzz
    bazel test //common:idx_fuzz --test_arg=-max_total_time=600 --test_arg=-seed=0 --test_timeout=900

The source defines LLVMFuzzerTestOneInput(). The default seed is fixed; 0 means a new one. An input that fails is left
in bazel-testlogs/PACKAGE/NAME/test.outputs/outputs.zip. The test is SKIPPED where clang or its runtime is missing
(Debian: apt install clang libclang-rt-dev).
"""

load("@local_clang//:defs.bzl", "CLANG", "HAS_FUZZER")

_FLAGS = [
    "-fsanitize=fuzzer,address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
    "-O1",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-pragmas",
]

_SCRIPT = """#!/bin/bash
mkdir -p "$TEST_TMPDIR/corpus"
cp -L {corpus} "$TEST_TMPDIR/corpus/" || exit 1
exec {fuzzer} -max_total_time={seconds} -seed=1 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \\
  -artifact_prefix="${{TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}}/" "$@" "$TEST_TMPDIR/corpus"
"""

def _fuzz_test_impl(ctx):
    info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    compile_ctx = info.compilation_context
    libraries, link_flags = [], []
    for linker_input in info.linking_context.linker_inputs.to_list():
        link_flags += linker_input.user_link_flags
        for library in linker_input.libraries:
            libraries.append(library.pic_static_library or library.static_library)

    fuzzer = ctx.actions.declare_file(ctx.label.name + ".fuzzer")
    args = ctx.actions.args()
    args.add_all(_FLAGS)
    args.add_all(compile_ctx.defines, format_each = "-D%s")
    args.add_all(compile_ctx.quote_includes, before_each = "-iquote")
    args.add_all(compile_ctx.includes, before_each = "-I")
    args.add_all(compile_ctx.system_includes, before_each = "-isystem")
    args.add_all(["-o", fuzzer, ctx.file.src])
    args.add_all(libraries + link_flags)
    ctx.actions.run(
        executable = CLANG,
        arguments = [args],
        inputs = depset([ctx.file.src] + libraries, transitive = [compile_ctx.headers]),
        outputs = [fuzzer],
        mnemonic = "Fuzzer",
        progress_message = "Building the fuzzer %s" % ctx.label,
        env = {"PATH": "/usr/bin:/bin"},
    )
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(script, is_executable = True, content = _SCRIPT.format(
        corpus = " ".join(["'%s'" % f.short_path for f in ctx.files.corpus]) or "/dev/null",
        fuzzer = fuzzer.short_path,
        seconds = ctx.attr.seconds,
    ))
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = [fuzzer] + ctx.files.corpus))]

_fuzz_test = rule(
    implementation = _fuzz_test_impl,
    attrs = {
        "corpus": attr.label_list(allow_files = True, doc = "Inputs to start from."),
        "deps": attr.label_list(providers = [CcInfo]),
        "seconds": attr.int(default = 10),
        "src": attr.label(allow_single_file = [".c"], mandatory = True),
    },
    test = True,
)

def fuzz_test(name, **kwargs):
    """A libFuzzer target as a test; see the top of the file.

    Args:
      name: the target.
      **kwargs: src, deps, corpus, seconds.
    """
    _fuzz_test(
        name = name,
        size = "small",
        tags = kwargs.pop("tags", []) + ["fuzz"],
        target_compatible_with = [] if HAS_FUZZER else ["//tools/build:clang_with_fuzzer"],
        **kwargs
    )
