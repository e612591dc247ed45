"""Stand-ins for the repositories that Bazel itself wants to download, so that a build needs no network.

Debian's Bazel has its embedded tools patched to do without most of them; what is left is listed here. An upstream
release (it knows its version, Debian's does not) brings or downloads its own.
"""

def bazel_shims():
    """Declares the stand-ins that this Bazel needs. Call it first in WORKSPACE: the first definition wins."""
    version = native.bazel_version
    if version and not version.startswith("4."):
        return
    names = ["rules_cc", "remote_coverage_tools"]
    if hasattr(native, "module_name"):  # Bazel 6 or later, as Debian sid's 7.7.1
        names += ["bazel_skylib", "rules_python"]
    else:  # Debian 12's 4.2.3
        names += ["rules_java", "platforms"]
    for name in names:
        native.local_repository(name = name, path = "third_party/bazel_shims/" + name)
