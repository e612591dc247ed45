"""The names of ImageNet's 1000 classes, out of an installed torchvision (python3-torchvision on Debian).

torchvision keeps them as a list in models/_meta.py. The file is parsed, not run, and PyTorch is not imported. Without
torchvision the list is empty: programs then say "class 281", and what to install.
"""

_SCRIPT = """
import ast, importlib.util, os
package = importlib.util.find_spec("torchvision")  # looks for it, and does not import it
for folder in package.submodule_search_locations if package else []:
    with open(os.path.join(folder, "models", "_meta.py"), encoding="utf-8") as file:
        for node in ast.parse(file.read()).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_IMAGENET_CATEGORIES":
                names = ast.literal_eval(node.value)
                if len(names) == 1000:
                    print(*names, sep=chr(10))
"""

def _imagenet_classes_impl(ctx):
    names = ""
    for python in [ctx.which("python3"), "/usr/bin/python3"]:
        if python and not names and ctx.path(python).exists:
            found = ctx.execute([python, "-c", _SCRIPT])
            names = found.stdout if found.return_code == 0 else ""
    ctx.file("imagenet_classes.txt", names)
    ctx.file("BUILD", 'exports_files(["imagenet_classes.txt"])')

imagenet_classes = repository_rule(
    implementation = _imagenet_classes_impl,
    configure = True,
    doc = "imagenet_classes.txt, a name in each line, or an empty file. Looked for again whenever Bazel starts.",
    local = True,
)
