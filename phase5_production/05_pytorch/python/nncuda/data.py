"""Data sets as tensors: IDX files (Fashion-MNIST, MNIST), folders of pictures (Tiny-ImageNet, ImageFolder), and a
generator that writes a small folder of pictures in Tiny-ImageNet's layout, so that the scripts run without a download.

Pixels are scaled to 0..1 and normalised with the training set's mean and standard deviation.
"""
import gzip
import os
import struct
import zlib

import torch

_IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
DEBIAN = "/usr/share/datasets/fashion-mnist"  # the package dataset-fashion-mnist


class DataError(ValueError):
    """A file that is missing or not what it should be; the message names it."""


def read_idx(path):
    """A uint8 tensor from an IDX file, packed by gzip or not. The format: 00 00 08 RANK, RANK sizes of 4 bytes,
    bytes."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            content = bytearray(file.read())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError("%s: cannot be read: %s" % (path, error)) from None
    if len(content) < 4 or content[:3] != b"\0\0\x08" or not 1 <= content[3] <= 4:
        raise DataError("%s: starts with %s; expected 00 00 08 and the rank, an IDX file of bytes"
                        % (path, content[:4].hex(" ")))
    begin = 4 + 4 * content[3]
    if len(content) < begin:
        raise DataError("%s: has %d bytes; the header alone needs %d: the file is truncated"
                        % (path, len(content), begin))
    shape = struct.unpack(">%dI" % content[3], content[4:begin])
    count = 1
    for size in shape:
        count *= size
    if len(content) - begin != count:
        raise DataError("%s: holds %d bytes of data; expected %d for shape %s"
                        % (path, len(content) - begin, count, shape))
    if not count:
        raise DataError("%s: is empty (shape %s)" % (path, shape))
    return torch.frombuffer(content, dtype=torch.uint8, offset=begin).reshape(shape)


def _idx_path(directory, name):
    for candidate in (name, name + ".gz"):
        path = os.path.join(directory, candidate)
        if os.path.exists(path):
            return path
    raise DataError("%s: no such file, nor with .gz; expected the four files of Fashion-MNIST in this directory "
                    "(apt install dataset-fashion-mnist puts them into %s)" % (os.path.join(directory, name), DEBIAN))


def channel_statistics(images):
    """Mean and standard deviation of each channel of uint8 images (N,C,H,W), scaled to 0..1; a part at a time."""
    total, squares = torch.zeros(2, images.shape[1], dtype=torch.float64)
    for part in images.split(1024):
        pixels = part.double().div_(255)
        total += pixels.sum((0, 2, 3))
        squares += pixels.square_().sum((0, 2, 3))
    count = images.numel() / images.shape[1]
    mean = total / count
    return mean.tolist(), (squares / count - mean * mean).clamp_min(1e-12).sqrt().tolist()


class Images:
    """Images (N,C,H,W) as bytes and labels (N) as int64, in memory. A batch is scaled to 0..1 and normalised with mean
    and std, one of each per channel, where the images lie: on the GPU after to("cuda")."""

    def __init__(self, images, labels, classes, mean, std):
        if len(images) != len(labels):
            raise DataError("%d images, but %d labels; expected one label for each image" % (len(images), len(labels)))
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise DataError("a label is %d; expected 0 to %d" % (
                int(labels.min()) if int(labels.min()) < 0 else int(labels.max()), classes - 1))
        self.images, self.labels, self.classes, self.mean, self.std = images, labels, classes, mean, std

    def __len__(self):
        return len(self.labels)

    def to(self, device):
        return Images(self.images.to(device), self.labels.to(device), self.classes, self.mean, self.std)

    def first(self, count):
        """The first `count`; all of them where count is None or larger."""
        if count is not None and count < 1:
            raise ValueError("%d images are wanted; expected at least 1" % count)
        if count is None or count >= len(self):
            return self
        return Images(self.images[:count], self.labels[:count], self.classes, self.mean, self.std)

    def batches(self, size, generator=None):
        """(images, labels), `size` of each, the last batch smaller; in an order of the generator, or as they stand."""
        device = self.images.device
        mean, std = (torch.tensor(value, device=device).mul_(255).view(-1, 1, 1) for value in (self.mean, self.std))
        order = None if generator is None else torch.randperm(len(self), generator=generator).to(device)
        for begin in range(0, len(self), size):
            chosen = slice(begin, begin + size) if order is None else order[begin:begin + size]
            yield self.images[chosen].float().sub_(mean).div_(std), self.labels[chosen]


def fashion_mnist(data_dir=None):
    """The training and the test set. data_dir: a directory with the four IDX files, packed or not; by default
    NN_FASHION_MNIST_DIR, then Debian's package."""
    directory = data_dir or os.environ.get("NN_FASHION_MNIST_DIR") or DEBIAN
    if not os.path.isdir(directory):
        raise DataError("%s: no such directory; expected one with Fashion-MNIST's four IDX files: apt install "
                        "dataset-fashion-mnist, or give data_dir=" % directory)
    parts = [read_idx(_idx_path(directory, name)) for name in _IDX]
    for name, part, rank in zip(_IDX, parts, (3, 1, 3, 1)):
        if part.dim() != rank:
            raise DataError("%s: has %d dimensions; expected %d" % (os.path.join(directory, name), part.dim(), rank))
    mean, std = channel_statistics(parts[0].unsqueeze(1))
    return tuple(Images(images.unsqueeze(1), labels.long(), 10, mean, std) for images, labels in (parts[:2], parts[2:]))


# ---------------------------------------------------------------------------------------------------------------------
# Folders of pictures

def _picture(path, side):
    """A picture as bytes (3,side,side)."""
    from PIL import Image  # torchvision brings it
    import numpy
    damaged = (OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, struct.error, zlib.error,
               Image.DecompressionBombError)
    try:
        with Image.open(path) as image:
            image = image.convert("RGB")
            if image.size != (side, side):
                image = image.resize((side, side), Image.BILINEAR)
            pixels = numpy.asarray(image)
    except damaged as error:
        raise DataError("%s: is not a picture that can be read: %s" % (path, error)) from None
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)


def _pictures_of(folder):
    names = sorted(os.listdir(folder))
    return [os.path.join(folder, name) for name in names if name.lower().endswith((".jpeg", ".jpg", ".png", ".ppm",
                                                                                   ".bmp"))]


def _validation_of_tiny_imagenet(folder, classes):
    """val/images/*.JPEG with val/val_annotations.txt: NAME<tab>CLASS<tab>box."""
    files = []
    annotations = os.path.join(folder, "val_annotations.txt")
    with open(annotations, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 2 or fields[1] not in classes:
                raise DataError("%s:%d: %r; expected a picture and one of the %d classes of train/" %
                                (annotations, number, line.strip()[:60], len(classes)))
            files.append((os.path.join(folder, "images", fields[0]), classes.index(fields[1])))
    if not files:
        raise DataError("%s: has no lines; expected a picture in each" % annotations)
    return files


def image_folder(directory, side=64, limit=None):
    """Training and validation set of `directory`: train/CLASS/*.JPEG or train/CLASS/images/*.JPEG, and val/ with
    val_annotations.txt (Tiny-ImageNet's layout) or val/CLASS/*.JPEG (torchvision's ImageFolder).
    limit: at most so many pictures of each class."""
    if limit is not None and limit < 1:
        raise ValueError("image_folder: limit is %r; expected at least 1" % (limit,))
    train, val = os.path.join(directory, "train"), os.path.join(directory, "val")
    for folder in (train, val):
        if not os.path.isdir(folder):
            raise DataError("%s: no such directory; expected train/ and val/ in %s, as in Tiny-ImageNet or an "
                            "ImageFolder" % (folder, directory))
    classes = sorted(name for name in os.listdir(train) if os.path.isdir(os.path.join(train, name)))
    if not classes:
        raise DataError("%s: holds no folders; expected one for each class" % train)

    def by_class(folder):
        files = []
        for label, name in enumerate(classes):
            inner = os.path.join(folder, name)
            deeper = os.path.join(inner, "images")
            inner = deeper if os.path.isdir(deeper) else inner
            pictures = _pictures_of(inner) if os.path.isdir(inner) else []
            if not pictures:
                raise DataError("%s: no pictures of class %s here; expected .JPEG, .jpg, .png, .ppm or .bmp"
                                % (inner, name))
            files += [(path, label) for path in pictures[:limit]]
        return files

    flat = os.path.exists(os.path.join(val, "val_annotations.txt"))
    sets = [by_class(train), _validation_of_tiny_imagenet(val, classes) if flat else by_class(val)]
    images = [torch.stack([_picture(path, side) for path, _ in files]) for files in sets]
    labels = [torch.tensor([label for _, label in files]) for files in sets]
    mean, std = channel_statistics(images[0])
    return tuple(Images(x, y, len(classes), mean, std) for x, y in zip(images, labels))


def generate_image_folder(directory, classes=4, train=40, val=10, side=64, seed=1):
    """Writes a folder in Tiny-ImageNet's layout: each class is a wave of its own direction and colour under noise,
    which a small network learns in a few epochs, and a linear one does not, because the phase is random."""
    from PIL import Image
    if os.path.exists(directory):
        raise DataError("%s: exists already; expected a name for a new directory: nothing was written" % directory)
    generator = torch.Generator().manual_seed(seed)
    row, column = torch.meshgrid(torch.arange(side).float(), torch.arange(side).float(), indexing="ij")

    def picture(label):
        angle = torch.tensor(3.14159265 * label / classes)
        phase = 6.2831853 * torch.rand((), generator=generator)
        wave = torch.sin((row * torch.sin(angle) + column * torch.cos(angle)) * (24 / side) + phase)
        colour = torch.tensor([0.5 + 0.5 * ((label + c) % 3 == 0) for c in range(3)])
        noise = torch.randn(3, side, side, generator=generator)
        pixels = 0.5 + 0.25 * wave * colour[:, None, None] + 0.1 * noise
        return Image.fromarray(pixels.clamp(0, 1).mul(255).byte().permute(1, 2, 0).contiguous().numpy())

    names = ["n%08d" % (1000 + label) for label in range(classes)]
    for label, name in enumerate(names):
        folder = os.path.join(directory, "train", name, "images")
        os.makedirs(folder)
        for i in range(train):
            picture(label).save(os.path.join(folder, "%s_%d.JPEG" % (name, i)), quality=90)
    folder = os.path.join(directory, "val", "images")
    os.makedirs(folder)
    with open(os.path.join(directory, "val", "val_annotations.txt"), "w", encoding="utf-8") as file:
        for i in range(val * classes):
            name = "val_%d.JPEG" % i
            picture(i % classes).save(os.path.join(folder, name), quality=90)
            file.write("%s\t%s\t0\t0\t%d\t%d\n" % (name, names[i % classes], side - 1, side - 1))
    with open(os.path.join(directory, "wnids.txt"), "w", encoding="utf-8") as file:
        file.write("".join(name + "\n" for name in names))
    return directory
