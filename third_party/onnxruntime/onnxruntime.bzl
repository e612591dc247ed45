"""ONNX Runtime, if it is there: no target needs it to be built, and what needs it to run says so or is skipped.

Taken from the first of these:
  ORT_HOME               a folder of yours with lib/libonnxruntime.so.1 (and include/onnxruntime_c_api.h)
  NN_ONNXRUNTIME=npm     npm packages, fetched by fetch.sh when a target first needs them
                         (--repo_env=NN_ONNXRUNTIME=npm)
  ~/.cache/nn_onnxruntime    where fetch.sh has put it
"""

_BUILD = """
package(default_visibility = ["//visibility:public"])

filegroup(
    name = "library",
    srcs = glob(["lib/*.so*"]),
)

cc_library(
    name = "header",
    hdrs = glob(["include/*.h"]),
    includes = ["include"],
)
"""

def _fetch(ctx):
    """Into the repository's folder; offline, npm looks into its cache."""
    script = ctx.path(Label("//third_party/onnxruntime:fetch.sh"))
    result = ctx.execute(["bash", str(script), "--header", "--to=" + str(ctx.path("."))], timeout = 900)
    if result.return_code != 0:
        fail("NN_ONNXRUNTIME=npm: " + result.stderr.strip())

def _link(ctx, folder):
    """The library with its providers, and the headers. What a folder has besides is left out."""
    for part in [folder, folder.get_child("lib")]:
        for name in ["libonnxruntime.so.1", "libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so"]:
            if part.get_child(name).exists and not ctx.path("lib/" + name).exists:
                ctx.symlink(part.get_child(name), "lib/" + name)
    include = folder.get_child("include")
    for name in ["onnxruntime_c_api.h", "onnxruntime_ep_c_api.h", "onnxruntime_error_code.h"]:
        if include.get_child(name).exists:
            ctx.symlink(include.get_child(name), "include/" + name)

def _local_onnxruntime_impl(ctx):
    named = ctx.os.environ.get("ORT_HOME", "")
    how = ctx.os.environ.get("NN_ONNXRUNTIME", "")
    cache = ctx.os.environ.get("XDG_CACHE_HOME", "") or ctx.os.environ.get("HOME", "") + "/.cache"
    if how not in ["", "npm"]:
        fail("NN_ONNXRUNTIME=%s: npm is expected, or nothing" % how)
    if named:
        if not ctx.path(named).exists:
            fail("ORT_HOME=%s: there is no such folder; correct it, or unset it" % named)
        _link(ctx, ctx.path(named))
        if not ctx.path("lib/libonnxruntime.so.1").exists:
            fail("ORT_HOME=%s: neither this folder nor its lib/ has libonnxruntime.so.1" % named)
    elif how == "npm":
        _fetch(ctx)
    elif cache.startswith("/") and ctx.path(cache + "/nn_onnxruntime").exists:
        _link(ctx, ctx.path(cache + "/nn_onnxruntime"))
    ctx.file("BUILD", _BUILD)
    ctx.file("defs.bzl", "HAS_HEADER = %s\n" % ctx.path("include/onnxruntime_c_api.h").exists)

local_onnxruntime = repository_rule(
    implementation = _local_onnxruntime_impl,
    configure = True,
    environ = ["HOME", "NN_OFFLINE", "NN_ONNXRUNTIME", "ORT_HOME", "XDG_CACHE_HOME"],
    local = True,
)
