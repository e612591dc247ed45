"""@local_clang: a clang that can build fuzzers, or the fact that there is none."""

_PROBE = "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return !data && size; }\n"

def _clang_configure_impl(ctx):
    clang = ctx.which("clang")
    works = False
    if clang != None:
        ctx.file("probe.c", _PROBE)
        works = ctx.execute([clang, "-fsanitize=fuzzer,address,undefined", "probe.c", "-o", "probe"]).return_code == 0
    ctx.file("BUILD")
    ctx.file("defs.bzl", '"""What clang_configure found on this machine."""\nCLANG = %r\nHAS_FUZZER = %s\n' % (
        str(clang.realpath) if works else "",
        works,
    ))

clang_configure = repository_rule(
    implementation = _clang_configure_impl,
    configure = True,
    environ = ["PATH"],
    local = True,
)
