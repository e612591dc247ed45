"""Data files good and bad, training on small data, and the scripts as a user runs them."""
import contextlib
import gzip
import io
import json
import os
import runpy
import shutil
import struct
import sys
import unittest
import unittest.mock

import torch

import nncuda
from nncuda import data, training
from places import Case, needs

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(array):
    return b"\0\0\x08" + bytes([array.dim()]) + struct.pack(">%dI" % array.dim(),
                                                            *array.shape) + array.numpy().tobytes()


def fashion_folder(name, train=300, test=60):
    """Pictures in Fashion-MNIST's format, whose class is where their bright square is; the first file is packed."""
    folder = os.path.join(os.environ["NNCUDA_TEST_FOLDER"], name)
    os.makedirs(folder)
    generator = torch.Generator().manual_seed(5)
    for part, count in (("train", train), ("t10k", test)):
        labels = torch.randint(0, 10, (count,), generator=generator)
        images = torch.randint(0, 100, (count, 28, 28), generator=generator, dtype=torch.uint8)
        for image, label in zip(images, labels.tolist()):
            row, column = 2 + 12 * (label % 2), 1 + 5 * (label // 2)
            image[row:row + 8, column:column + 5] = 250
        for kind, array in (("images-idx3", images), ("labels-idx1", labels.byte())):
            path, content = os.path.join(folder, "%s-%s-ubyte" % (part, kind)), idx(array)
            if part == "train" and kind == "images-idx3":
                with gzip.open(path + ".gz", "wb") as file:
                    file.write(content)
            else:
                with open(path, "wb") as file:
                    file.write(content)
    return folder


def script(name, *options):
    """Exit status, standard output and error output of a script, run in this process: importing PyTorch takes
    seconds."""
    out, error = io.StringIO(), io.StringIO()
    status = 0
    with unittest.mock.patch.object(sys, "argv",
                                    [name,
                                     *options]), contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            runpy.run_path(os.path.join(FOLDER, name), run_name="__main__")
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            if isinstance(end.code, str):
                error.write(end.code)
    return status, out.getvalue(), error.getvalue()


class Files(Case):
    def test_idx_files_that_are_wrong(self):
        folder = fashion_folder("wrong", 5, 5)
        path = os.path.join(folder, NAMES[1])
        good = open(path, "rb").read()
        for content, sentence in ((good[:-1], "holds 4 bytes of data; expected 5"), (good[:6], "the file is truncated"),
                                  (b"", "starts with"),
                                  (b"\0\0\x0d" + good[3:], "starts with 00 00 0d 01"),
                                  (b"\0\0\x08\x01\0\0\0\0", "is empty"),
                                  (good[:8] + b"\x0a" + good[9:], "a label is 10; expected 0 to 9"),
                                  (b"\0\0\x08\x01\0\0\0\4" + good[8:12], "5 images, but 4 labels"),
                                  (b"\0\0\x08\x02\0\0\0\5\0\0\0\1" + good[8:], "has 2 dimensions; expected 1"),
                                  (b"\0\0\x08\x01\xff\xff\xff\xff" + good[8:], "expected 4294967295")):
            with open(path, "wb") as file:
                file.write(content)
            with self.assertRaisesRegex(data.DataError, sentence):
                data.fashion_mnist(folder)
        with open(path, "wb") as file:
            file.write(good)
        with open(os.path.join(folder, NAMES[0] + ".gz"), "wb") as file:
            file.write(b"\x1f\x8b\x08\0 no gzip")
        with self.assertRaisesRegex(data.DataError, "cannot be read"):
            data.fashion_mnist(folder)
        os.remove(path)
        os.remove(os.path.join(folder, NAMES[0] + ".gz"))
        with self.assertRaisesRegex(data.DataError, "no such file, nor with .gz; expected the four files"):
            data.fashion_mnist(folder)
        with self.assertRaisesRegex(data.DataError, "no such directory"):
            data.fashion_mnist(folder + "/nowhere")

    def test_pixels_are_normalised(self):
        train, _ = data.fashion_mnist(fashion_folder("normal", 200, 10))
        images = torch.cat([x for x, _ in train.batches(64)])
        self.assertEqual(images.shape, (200, 1, 28, 28))
        self.close(images.mean(), torch.tensor(0.0), 1e-5)
        self.close(images.square().mean(), torch.tensor(1.0), 1e-5)
        shuffled = torch.cat([y for _, y in train.batches(64, torch.Generator().manual_seed(1))])
        self.assertFalse(torch.equal(shuffled, train.labels))
        self.assertTrue(torch.equal(shuffled.sort().values, train.labels.sort().values))

    @needs(os.path.isdir(data.DEBIAN), "dataset-fashion-mnist is not installed")
    def test_debians_fashion_mnist(self):
        train, test = data.fashion_mnist(data.DEBIAN)
        self.assertEqual((len(train), len(test), train.classes), (60000, 10000, 10))
        self.assertAlmostEqual(train.mean[0], 0.2860, 4)
        self.assertAlmostEqual(train.std[0], 0.3530, 4)

    def test_folders_of_pictures(self):
        folder = data.generate_image_folder(os.path.join(os.environ["NNCUDA_TEST_FOLDER"], "pictures"), 3, 4, 2, 16)
        train, val = data.image_folder(folder, 16)
        self.assertEqual((tuple(train.images.shape), tuple(val.images.shape), train.classes),
                         ((12, 3, 16, 16), (6, 3, 16, 16), 3))
        self.assertEqual(val.labels.tolist(), [0, 1, 2, 0, 1, 2])
        self.assertEqual(len(data.image_folder(folder, 8, limit=2)[0]), 6)
        with self.assertRaisesRegex(data.DataError, "exists already"):
            data.generate_image_folder(folder)
        # As an ImageFolder of torchvision: train/CLASS/*, val/CLASS/*.
        plain = folder + "-plain"
        for part, count in (("train", 3), ("val", 1)):
            for name in os.listdir(os.path.join(folder, "train")):
                os.makedirs(os.path.join(plain, part, name))
                for i in range(count):
                    shutil.copy(os.path.join(folder, "train", name, "images", "%s_%d.JPEG" % (name, i)),
                                os.path.join(plain, part, name))
        self.assertEqual([len(part) for part in data.image_folder(plain, 16)], [9, 3])
        victim = os.path.join(folder, "train", sorted(os.listdir(os.path.join(folder, "train")))[0], "images")
        path = os.path.join(victim, sorted(os.listdir(victim))[0])
        with open(path, "wb") as file:
            file.write(b"no picture")
        with self.assertRaisesRegex(data.DataError, "is not a picture that can be read"):
            data.image_folder(folder, 16)
        with open(path, "wb") as file:  # 100000 x 100000 pixels, which would want 30 GB of memory
            file.write(b"P6 100000 100000 255 ")
        with self.assertRaisesRegex(data.DataError, "is not a picture that can be read"):
            data.image_folder(folder, 16)
        with self.assertRaisesRegex(ValueError, "limit is 0; expected at least 1"):
            data.image_folder(folder, 16, limit=0)
        shutil.rmtree(victim)
        with self.assertRaisesRegex(data.DataError, "no pictures of class"):
            data.image_folder(folder, 16)
        with open(os.path.join(plain, "val", "val_annotations.txt"), "w", encoding="utf-8") as file:
            file.write("val_0.JPEG\tn9\t0\t0\t1\t1\n")
        with self.assertRaisesRegex(data.DataError, "val_annotations.txt:1: .*expected a picture and one of the 3 "
                                    "classes"):
            data.image_folder(plain, 16)
        with self.assertRaisesRegex(data.DataError, "train: no such directory"):
            data.image_folder(folder + "-nowhere")


class Training(Case):
    def test_fashion_cnn_learns_and_is_reproducible(self):
        folder = fashion_folder("learn")
        checkpoint = os.path.join(folder, "model.pth")
        model, history = nncuda.train_fashion_mnist_cuda(epochs=2, batch_size=32, data_dir=folder, device="cpu",
                                                         optimizer="adam", verbose=False, checkpoint=checkpoint)
        self.assertEqual([len(values) for values in history.values()], [2] * 6)
        self.assertGreater(history["test_accuracy"][-1], 0.9)
        test = data.fashion_mnist(folder)[1]
        self.assertEqual(nncuda.evaluate_accuracy(model, test), history["test_accuracy"][-1])
        loaded = nncuda.load_checkpoint(nncuda.FashionMNISTCNN(), checkpoint)
        loader = torch.utils.data.DataLoader(list(zip(torch.cat([x for x, _ in test.batches(7)]), test.labels)),
                                             batch_size=25)
        self.assertEqual(nncuda.evaluate_accuracy(loaded, loader), history["test_accuracy"][-1])

    def test_the_same_steps_as_with_torch(self):
        """Three steps of SGD with momentum from the same weights, with torch.nn and torch.optim in double."""
        from test_modules import twin_of_fashion
        ours, theirs = nncuda.FashionMNISTCNN(), twin_of_fashion().double()
        theirs.load_state_dict({name: value.double() for name, value in ours.state_dict().items()})
        a = nncuda.optim.SGD(ours.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
        b = torch.optim.SGD(theirs.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
        for _ in range(3):
            x, target = torch.randn(4, 1, 28, 28), torch.randint(0, 10, (4,))
            for model, optimizer, loss, images in ((ours, a, nncuda.cross_entropy, x),
                                                   (theirs, b, torch.nn.functional.cross_entropy, x.double())):
                optimizer.zero_grad()
                loss(model(images), target).backward()
                optimizer.step()
        for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
            self.close(p, q, 2e-6, name)

    def test_what_is_refused(self):
        folder = fashion_folder("refused", 20, 5)
        common = dict(data_dir=folder, verbose=False, device="cpu")
        for options, kind, sentence in (
                (dict(optimizer="rmsprop"), ValueError, "optimizer is 'rmsprop'; expected 'sgd', 'adam' or 'adamw'"),
                (dict(train_images=-5), ValueError, "-5 images are wanted; expected at least 1"),
                (dict(epochs=0), ValueError, "epochs is 0"), (dict(batch_size=0), ValueError, "batch_size is 0"),
                (dict(lr=1e30, optimizer="sgd", epochs=2, batch_size=5), RuntimeError,
                 "the weights are of no use any more: try a smaller lr"),
                (dict(device="tpu"), ValueError, "device is 'tpu'; expected"),
                (dict(device="meta"), ValueError, "device is meta; expected")):
            with self.assertRaisesRegex(kind, sentence):
                nncuda.train_fashion_mnist_cuda(**{**common, **options})
        if not torch.cuda.is_available():
            with self.assertRaisesRegex(RuntimeError, "this PyTorch sees no GPU; expected 'cpu'"):
                training.pick_device("cuda")
        with self.assertRaisesRegex(ValueError, "the data has no images"):
            nncuda.evaluate_accuracy(nncuda.FashionMNISTCNN(), [])


class Scripts(unittest.TestCase):
    def test_compare_outputs(self):
        common = ("--device=cpu", "--batch-size=1", "--side=32", "--json")
        status, out, error = script("compare_outputs.py", "--tolerance=1e-5", *common)
        self.assertEqual(status, 0, out + error)
        result = json.loads(out.splitlines()[-1])
        self.assertTrue(result["ok"])
        self.assertEqual([row["fuse"] for row in result["rows"]],
                         [["add_relu"], ["add_relu", "conv_relu"], ["add_relu", "conv_relu", "conv_bn"]])
        self.assertGreater(result["rows"][2]["error"], 0)
        status, out, error = script("compare_outputs.py", "--tolerance=1e-9", *common)
        self.assertEqual((status, "FAILED" in out), (1, True), out + error)

    def test_resnet_profile(self):
        status, out, error = script("resnet_profile.py", "--device=cpu", "--batch-size=1", "--side=32", "--repeats=1",
                                    "--json")
        self.assertEqual(status, 0, out + error)
        rows = json.loads(out.splitlines()[-1])["rows"]
        self.assertEqual([row["column"] for row in rows], ["standard", "+ add-ReLU", "+ conv-ReLU", "+ conv-bn"])
        self.assertTrue(all(row["cpu_us"] > 0 and row["inference_us"] > 0 for row in rows))
        status, out, error = script("resnet_profile.py", "--device=cpu", "--weights=nowhere.pth")
        self.assertEqual((status, "nowhere.pth" in error, "Traceback" in error), (1, True, False), error)
        status, out, error = script("resnet_profile.py", "--batch-size=0")
        self.assertEqual((status, "--batch-size is 0; expected at least 1" in error), (2, True), error)

    def test_tiny_imagenet(self):
        folder = os.path.join(os.environ["NNCUDA_TEST_FOLDER"], "waves")
        status, out, error = script("tiny_imagenet.py", "--generate=" + folder, "--images=40", "--epochs=3",
                                    "--side=32", "--width=8", "--batch-size=16",
                                    "--device=cpu", "--json")
        self.assertEqual(status, 0, out + error)
        self.assertGreater(json.loads(out.splitlines()[-1])["test_accuracy"], 0.6)  # chance is 0.25
        status, out, error = script("tiny_imagenet.py", "--data-dir=" + folder + "-nowhere")
        self.assertEqual((status, "no such directory" in error, "Traceback" in error), (1, True, False), error)

    def test_fashion_mnist(self):
        folder = fashion_folder("script", 60, 20)
        status, out, error = script("fashion_mnist.py", "--data-dir=" + folder, "--epochs=1", "--device=cpu", "--json",
                                    "--checkpoint=%s/a.pth" % folder)
        self.assertEqual(status, 0, out + error)
        accuracy = json.loads(out.splitlines()[-1])["test_accuracy"]
        status, out, error = script("fashion_mnist.py", "--data-dir=" + folder, "--evaluate=%s/a.pth" % folder,
                                    "--json", "--device=cpu")
        self.assertEqual((status, json.loads(out.splitlines()[-1])["test_accuracy"]), (0, accuracy), error)
