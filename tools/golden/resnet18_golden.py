#!/usr/bin/env python3
"""What torchvision makes of its ResNet-18, for the tests of phase5_production/03_resnet18 (needs python3-torchvision).

    resnet18_golden.py names                  the tensors of its state_dict(): testdata/names.txt
    resnet18_golden.py crops                  CRC-32s of pictures that Pillow has resized: testdata/crops.txt
    resnet18_golden.py make FOLDER            weights as .pth files in FOLDER; golden.safetensors: pictures, logits and
                                              gradients; picture files, and torchvision's transforms of them
    resnet18_golden.py load FILE FOLDER       loads weights that we saved, strictly; their logits of the small pictures
                                              to FOLDER/logits.safetensors

Exit status 77 where torch, torchvision or Pillow is not installed. The whole network has 47 MB, so that these files are
made when a test runs; what is committed is small.
"""
import sys
import zlib

try:
    import numpy
    import torch
    import torchvision
    from PIL import Image
except ImportError:
    sys.exit(77)

from safetensors_files import read, write

BATCH, SIDE, SMALL = 2, 224, 64
FIRST = 210  # seed of the small pictures: the first that will do
MARGIN = 1e-5  # of every input of a ReLU from 0, in the small pictures
# width, height, shorter side, crop
CROPS = ((640, 480, 256, 224), (301, 777, 256, 224), (100, 81, 256, 224), (1, 1, 3, 2), (37, 23, 11, 8), (7, 9, 7, 7),
         (33, 64, 16, 13), (127, 31, 31, 5), (1000, 16, 5, 4), (255, 256, 256, 225))
PICTURES = (("wide.png", 640, 427), ("tall.png", 235, 501), ("small.png", 90, 61), ("photo.jpg", 500, 375))


def picture(width, height):
    """Random pixels; those of testdata/crops.txt are computed by the test, too."""
    words = numpy.arange(3 * width * height, dtype=numpy.uint64)
    words = (words * numpy.uint64(2654435761) + numpy.uint64(12345)) & numpy.uint64(0xFFFFFFFF)
    words = (words ^ (words >> numpy.uint64(15))) * numpy.uint64(2246822519) & numpy.uint64(0xFFFFFFFF)
    return ((words ^ (words >> numpy.uint64(13))) & numpy.uint64(255)).astype(numpy.uint8).reshape(height, width, 3)


def transforms(resize, crop):
    """Of torchvision's weights for ImageNet, but for their sizes."""
    return torchvision.transforms._presets.ImageClassification(crop_size=crop, resize_size=resize)


def names():
    model = torchvision.models.resnet18(weights=None)
    trained = dict(model.named_parameters())
    for name, tensor in model.state_dict().items():
        print(name, "trained" if name in trained else "buffer", *tensor.shape)


def crops():
    for width, height, resize, crop in CROPS:
        image = Image.fromarray(picture(width, height))
        image = torchvision.transforms.functional.resize(image, resize)
        image = torchvision.transforms.functional.center_crop(image, crop)
        print(width, height, resize, crop, zlib.crc32(numpy.asarray(image).tobytes()))


def inputs(seed, side=SIDE):
    """Smooth random pictures, about as normalised photographs are."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(BATCH, 3, 15, 15, generator=generator)
    return torch.nn.functional.interpolate(coarse, (side, side), mode="bicubic", align_corners=False)


def trained(state, kind):
    model = torchvision.models.resnet18(weights=None)
    model.load_state_dict(state)
    return model.to(kind).train()


def small_inputs(state):
    """Pictures for which no ReLU has an input near 0: there its gradient jumps, and rounding decides."""
    for seed in range(FIRST, FIRST + 100):
        images, nearest = inputs(seed, SMALL), []
        model = trained(state, torch.float64)
        for module in model.modules():
            if isinstance(module, torch.nn.ReLU):
                module.register_forward_pre_hook(lambda _, x: nearest.append(x[0].detach().abs().min().item()))
        with torch.no_grad():
            model(images.double())
        if min(nearest) > MARGIN:
            return images
    raise SystemExit("no pictures of 100 keep their distance from 0")


def gradients(state, images, labels, kind):
    """The logits, and the gradients by name, in training."""
    model = trained(state, kind)
    logits = model(images.to(kind))
    torch.nn.functional.cross_entropy(logits, labels).backward()
    return logits.detach(), {name: p.grad for name, p in model.named_parameters()}


def pictures(folder):
    """Writes picture files; what the network gets of them."""
    tensors = {}
    for number, (name, width, height) in enumerate(PICTURES):
        image = Image.fromarray(picture(width // 9 + 1, height // 9 + 1)).resize((width, height), Image.BICUBIC)
        image.save(folder + "/" + name)
        tensors["x%d" % number] = transforms(256, 224)(Image.open(folder + "/" + name).convert("RGB"))
    return tensors


def make(folder):
    torch.manual_seed(3)
    model = torchvision.models.resnet18(weights=None).train()
    with torch.no_grad():  # running statistics that are neither 0 nor 1, and norms that are not the identity
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
        for seed in range(3):
            model(inputs(seed))
    model.eval()
    state = model.state_dict()
    torch.save(state, folder + "/zip.pth")
    torch.save({"state_dict": {"module." + name: value for name, value in state.items()}, "epoch": 90},
               folder + "/old.pth", _use_new_zipfile_serialization=False)
    torch.save({name: value.half() if value.is_floating_point() else value for name, value in state.items()},
               folder + "/half.pth")
    torch.save(model.layer1[0], folder + "/whole.pth")  # a module, not its state dict
    images, labels = inputs(100), torch.tensor([281, 7])
    tensors = {"input": images, "evaluated": model(images).detach()}
    for size, images in (("", images), ("small.", small_inputs(state))):
        logits, exact = gradients(state, images, labels, torch.float64)
        # what float32 loses says how far ours may be off; of large pictures the test looks at norms alone
        rounded = gradients(state, images, labels, torch.float32)[1] if size else exact
        tensors.update({size + "input": images, size + "logits": logits.float()})
        for name, value in exact.items():
            tensors[size + "grad." + name] = value.float()
            tensors[size + "error." + name] = (rounded[name] - value).abs().max().float().reshape(1)
    tensors.update(pictures(folder))
    write(folder + "/golden.safetensors", tensors, {"made_by": "tools/golden/resnet18_golden.py make"})


def load(path, folder):
    model = torchvision.models.resnet18(weights=None)
    model.load_state_dict(read(path)[0], strict=True)
    write(folder + "/logits.safetensors", {"logits": model.eval()(inputs(FIRST, SMALL)).detach()}, {})


if __name__ == "__main__":
    modes = {"names": names, "crops": crops, "make": make, "load": load}
    if len(sys.argv) < 2 or sys.argv[1] not in modes:
        sys.exit(__doc__)
    modes[sys.argv[1]](*sys.argv[2:])
