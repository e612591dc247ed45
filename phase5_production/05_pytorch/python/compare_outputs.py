#!/usr/bin/env python3
"""Does optimize_resnet18() leave the results the same? Runs torchvision's ResNet-18 and each stage of fusion on the
same pictures, and compares the logits.

    python3 compare_outputs.py --tolerance 1e-5
    python3 compare_outputs.py --tolerance 1e-5 --device=cpu --batch-size=2 --side=64
    python3 compare_outputs.py --weights=resnet18.pth --images=DIR    # pictures of a folder, scaled to --side

The error is the largest difference of a logit, divided by the largest logit of the original. Beside it, for both, the
error against the same network in float64: two float32 results may differ from each other by as much as each does from
the truth. Exit status 1 if an error is above the tolerance, or if the class with the largest logit differs where it is
not a tie.
"""
import argparse
import copy
import json
import os
import sys

import torch

try:
    import torchvision
except ImportError:
    sys.exit("compare_outputs.py: torchvision is not installed; expected it beside PyTorch: apt install "
             "python3-torchvision")

import nncuda
from nncuda.data import DataError, _picture, _pictures_of
from nncuda.ops.fused_ops import FUSIONS, optimize_resnet18
from nncuda.training import pick_device

STAGES = [("add_relu",), ("add_relu", "conv_relu"), FUSIONS]


def pictures(options):
    """(N,3,side,side), normalised as torchvision's weights expect."""
    if not options.images:
        return torch.randn(options.batch_size, 3, options.side, options.side,
                           generator=torch.Generator().manual_seed(options.seed))
    if not os.path.isdir(options.images):
        raise DataError("%s: no such directory; expected one with pictures" % options.images)
    files = _pictures_of(options.images)[:options.batch_size]
    if not files:
        raise DataError("%s: holds no pictures; expected .JPEG, .jpg, .png, .ppm or .bmp" % options.images)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    return torch.stack([(_picture(path, options.side).float() / 255 - mean) / std for path in files])


def settle(model, x):
    """Initial weights have the running statistics 0 and 1, with which a batch norm that is folded wrongly may pass:
    training mode on other pictures gives real ones."""
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(max(2, min(len(x), 8)), *x.shape[1:], device=x.device))
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--model", choices=["resnet18", "resnet34"], default="resnet18")
    parser.add_argument("--device", help="cuda, cuda:1 or cpu; default: the GPU where there is one")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", choices=["float32", "tf32", "float16", "bfloat16"], default="float32",
                        help="of the last stage: tensor cores need another --tolerance, such as 5e-3")
    parser.add_argument("--weights", help="a .pth file of torchvision's state_dict; default: initial weights")
    parser.add_argument("--images", metavar="DIR", help="pictures; default: random ones")
    parser.add_argument("--json", action="store_true", help="the last line is JSON")
    options = parser.parse_args()
    if not 0 < options.tolerance < 1:
        parser.error("--tolerance is %g; expected more than 0 and less than 1" % options.tolerance)
    if options.batch_size < 1 or options.side < 32:
        parser.error("--batch-size is %d, --side is %d; expected at least 1 and 32"
                     % (options.batch_size, options.side))
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        device = pick_device(options.device)
        torch.manual_seed(options.seed)
        model = getattr(torchvision.models, options.model)().to(device)
        x = pictures(options).to(device)
        if options.weights:
            nncuda.load_checkpoint(model.cpu(), options.weights).to(device)
            model.eval()
        else:
            settle(model, x)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        sys.exit("compare_outputs.py: %s" % error)

    with torch.inference_mode():
        exact = copy.deepcopy(model).double()(x.double())
        original = model(x).double()
        largest = float(exact.abs().max())
        def error_of(a, b):
            return float((a - b).abs().max()) / largest
        print("%s, %d pictures of %d x %d, on %s; largest logit %.3f"
              % (options.model, len(x), options.side, options.side, device, largest))
        print("%-32s%14s%14s%10s" % ("", "to original", "to float64", "top-1"))
        print("%-32s%14s%14.2e" % ("original", "", error_of(original, exact)))
        rows, failed = [], False
        for fuse in STAGES:
            precision = options.precision if fuse == FUSIONS else "float32"
            logits = optimize_resnet18(model, fuse=fuse, precision=precision)(x).double()
            error = error_of(logits, original)
            two = original.topk(2).values
            clear = (two[:, 0] - two[:, 1]) > 2 * options.tolerance * largest  # not a tie
            agree = (logits.argmax(1) == original.argmax(1)) | ~clear
            rows.append({"fuse": list(fuse), "error": error, "error_float64": error_of(logits, exact),
                         "top1": float(agree.float().mean())})
            good = error <= options.tolerance and bool(agree.all())  # NaN is not good
            failed |= not good
            print("%-32s%14.2e%14.2e%9.1f%%%s" % (", ".join(fuse), error, rows[-1]["error_float64"],
                                                  100 * rows[-1]["top1"], "" if good else "  FAILED"))
    print("%s: tolerance %g" % ("the results differ" if failed else "the results are the same", options.tolerance))
    if options.json:
        print(json.dumps({"program": "compare_outputs", "device": str(device), "tolerance": options.tolerance,
                          "ok": not failed, "rows": rows}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
