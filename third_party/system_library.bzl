"""Libraries of the distribution, found by pkg-config; where it does not know one, by the compiler."""

_BUILD = """
cc_library(
    name = "%s",
    hdrs = glob([d + "/**/*" + end for d in %s for end in [".h", ".hh"]]),
    defines = %s,
    includes = %s,
    linkopts = %s,
    visibility = ["//visibility:public"],
)
"""

def _missing(ctx):
    fail(("@%s needs the library %s with its header %s, which is not installed. " +
          "On Debian and Ubuntu: apt install %s (or run ./setup.sh)") %
         (ctx.name, ctx.attr.lib, ctx.attr.header, ctx.attr.apt))

def _system_library_impl(ctx):
    lib = ctx.attr.lib
    if ctx.attr.link:
        command = "echo '#include <%s>' | ${CC:-gcc} -E -x c - >/dev/null" % ctx.attr.header
        if ctx.execute(["sh", "-c", command]).return_code != 0:
            _missing(ctx)
        ctx.file("BUILD", _BUILD % (lib, [], [], [], [ctx.attr.link]))
        return
    pkg_config = ctx.which("pkg-config")
    if pkg_config == None:
        fail("@%s needs pkg-config, which is not installed. On Debian and Ubuntu: apt install pkg-config" % lib)
    found = ctx.execute([pkg_config, "--cflags", "--libs", lib])
    if found.return_code != 0:
        _missing(ctx)

    # Every -I directory becomes includeN here, so that headers are inputs that Bazel knows.
    includes, linkopts, defines = [], [], []
    for flag in found.stdout.strip().split(" "):
        if flag.startswith("-I"):
            name = "include%d" % len(includes)
            ctx.symlink(flag[2:], name)
            includes.append(name)
        elif flag.startswith("-D"):
            defines.append(flag[2:])
        elif flag and not ctx.attr.header_only:
            linkopts.append(flag)

    ctx.file("BUILD", _BUILD % (lib, includes, defines, includes, linkopts))

system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "apt": attr.string(mandatory = True, doc = "The Debian package that brings it."),
        "header": attr.string(mandatory = True, doc = "The header, for the message."),
        "header_only": attr.bool(doc = "Leave out what pkg-config says about linking."),
        "lib": attr.string(mandatory = True, doc = "Its name for pkg-config; also the target's name."),
        "link": attr.string(doc = "The linker's option, for a library that pkg-config does not know."),
    },
    configure = True,
    environ = [
        "CC",
        "PKG_CONFIG_PATH",
    ],
    local = True,
)
