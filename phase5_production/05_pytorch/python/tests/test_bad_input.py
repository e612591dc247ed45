"""What is wrong is refused by an exception that names the argument, the value seen and what was expected, the same
through ctypes and through the extension; nothing crashes."""
import os

import torch

import nncuda
from nncuda import optim
from places import Case, needs

X = torch.zeros(2, 3, 8, 8)
W = torch.zeros(4, 3, 3, 3)

WRONG = [  # call, exception, parts of the sentence
    # Not a tensor, or the wrong dtype.
    (lambda: nncuda.softmax([1.0, 2.0]), TypeError, "softmax: x is a list; expected a torch.Tensor"),
    (lambda: nncuda.softmax(None), TypeError, "softmax: x is None"),
    (lambda: nncuda.softmax(torch.zeros(2, 3).double()), TypeError,
     "softmax: x has dtype torch.float64; expected torch.float32: convert it with x.float()"),
    (lambda: nncuda.softmax(torch.zeros(2, 3, dtype=torch.long)), TypeError, "has dtype torch.int64"),
    (lambda: nncuda.softmax(torch.eye(3).to_sparse()), TypeError,
     "softmax: x has layout torch.sparse_coo; expected a dense tensor"),
    (lambda: nncuda.conv2d(X, W.half()), TypeError, "conv2d: weight has dtype torch.float16"),
    (lambda: nncuda.linear(torch.zeros(2, 3), torch.zeros(4, 3), 1.0), TypeError, "linear: bias is a float"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.zeros(2)), TypeError,
     "target has dtype torch.float32; expected torch.int64: probabilities"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.zeros(2, dtype=torch.int32)), TypeError,
     "convert it with target.long()"),
    (lambda: nncuda.batch_norm([1.0], None, None), TypeError, "batch_norm: x is a list; expected a torch.Tensor"),
    (lambda: nncuda.layer_norm(3.0, 1), TypeError, "layer_norm: x is a float; expected a torch.Tensor"),
    (lambda: nncuda.conv2d(X, W, groups="1"), TypeError, "conv2d: groups is '1'; expected an int"),
    # The wrong shape.
    (lambda: nncuda.BatchNorm2d(3).eval()(torch.zeros(5, 3)), ValueError, "batch_norm: x has shape (5, 3); expected 4"),
    (lambda: nncuda.linear(torch.zeros(2, 0), torch.zeros(4, 0)), ValueError, "expected 1 to"),
    (lambda: nncuda.backend.ops.fold_batch_norm(torch.zeros(0, 1, 1, 1), None, *[torch.zeros(0)] * 4, 1e-5), ValueError,
     "filters is 0; expected 1 to"),
    (lambda: nncuda.softmax(torch.tensor(1.0)), ValueError, "softmax: "),
    (lambda: nncuda.softmax(torch.zeros(2, 3), 2), ValueError, "softmax: dim is 2; expected -2 to 1 for shape (2, 3)"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3, 4), torch.zeros(2, dtype=torch.long)), ValueError,
     "input has shape (2, 3, 4); expected 2 dimensions"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.zeros(3, dtype=torch.long)), ValueError,
     "target has shape (3,); expected (2,)"),
    (lambda: nncuda.linear(torch.zeros(2, 5), torch.zeros(4, 3)), ValueError,
     "x has shape (2, 5); expected (..., 3), because weight is (4, 3)"),
    (lambda: nncuda.linear(torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(3)), ValueError,
     "bias has shape (3,); expected (4,)"),
    (lambda: nncuda.matmul(torch.zeros(2, 3), torch.zeros(2, 3)), ValueError, "the inner sizes 3 and 2 differ"),
    (lambda: nncuda.conv2d(X[0], W), ValueError, "x has shape (3, 8, 8); expected 4 dimensions (N, C, H, W)"),
    (lambda: nncuda.conv2d(X, torch.zeros(4, 2, 3, 3)), ValueError, "groups is 1; expected 2 channels in x"),
    (lambda: nncuda.conv2d(X, W, residual=X), ValueError, "residual has shape (2, 3, 8, 8); expected (2, 4, 6, 6)"),
    (lambda: nncuda.conv2d(X, torch.zeros(4, 3, 11, 11)), ValueError, ""),  # larger than the picture
    (lambda: nncuda.add_relu(X, X[:1]), ValueError, "b has shape (1, 3, 8, 8); expected (2, 3, 8, 8)"),
    (lambda: nncuda.layer_norm(torch.zeros(2, 3), 4), ValueError, "weight has shape (4,), x (2, 3)"),
    (lambda: nncuda.batch_norm(X, torch.zeros(3), torch.ones(4)), ValueError,
     "running_var has shape (4,); expected (3,)"),
    (lambda: nncuda.scaled_dot_product_attention(*[torch.zeros(1, 2, 3, 4)] * 2, torch.zeros(1, 2, 5, 4)), ValueError,
     "value has shape (1, 2, 5, 4)"),
    # The wrong value.
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3])), ValueError,
     "target[1] is 3; expected 0 to 2, or ignore_index=-100"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.tensor([-1, 0])), ValueError, "target[0] is -1"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.tensor([1, 0]), reduction="none"), ValueError,
     "reduction is 'none'; expected 'mean' or 'sum'"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.tensor([1, 0]), label_smoothing=1.5), ValueError,
     "label_smoothing is 1.5"),
    (lambda: nncuda.dropout(X, 1.5), ValueError, "dropout: p is 1.5; expected 0.0 to 1.0"),
    (lambda: nncuda.dropout(X, float("nan")), ValueError, "dropout: p is nan"),
    (lambda: nncuda.dropout(X, seed=-1), ValueError, "seed is -1"),
    (lambda: nncuda.conv2d(X, W, groups=0), ValueError, "conv2d: groups is 0; expected at least 1"),
    (lambda: nncuda.conv2d(X, W, stride=0), ValueError, "stride is 0; expected at least 1"),
    (lambda: nncuda.conv2d(X, W, padding="same"), TypeError, "padding is 'same'; expected an int or a pair of ints"),
    (lambda: nncuda.max_pool2d(X, 2, padding=(1, 2, 3)), TypeError, "padding is (1, 2, 3)"),
    (lambda: nncuda.max_pool2d(X, 9), ValueError, ""),
    (lambda: nncuda.batch_norm(X, torch.zeros(3), torch.ones(3), residual=X), ValueError,
     "residual is given without relu"),
    (lambda: nncuda.scaled_dot_product_attention(*[torch.zeros(1, 2, 3, 4)] * 3, dropout_p=0.1), NotImplementedError,
     "dropout_p is given"),
    (lambda: nncuda.scaled_dot_product_attention(*[torch.zeros(1, 2, 3, 4)] * 3, scale=2.0), NotImplementedError,
     "scale is 2.0"),
    (lambda: nncuda.scaled_dot_product_attention(*[torch.zeros(1, 2, 3, 400)] * 3), (NotImplementedError, ValueError),
     "depth"),
    # Written into, so a copy will not do.
    (lambda: nncuda.batch_norm(X, torch.zeros(6)[::2], torch.ones(3), training=True), ValueError,
     "running_mean is written into, and is not contiguous"),
    # Another device.
    (lambda: nncuda.softmax(torch.zeros(2, 3, device="meta")), ValueError,
     "softmax: x is on device meta; expected a CUDA device or the CPU"),
    (lambda: nncuda.linear(torch.zeros(2, 3), torch.zeros(4, 3, device="meta")), ValueError,
     "weight is on meta, but x is on cpu; expected one device"),
    (lambda: nncuda.cross_entropy(torch.zeros(2, 3), torch.zeros(2, dtype=torch.long, device="meta")), ValueError,
     "target is on meta"),
    # Layers and optimizers.
    (lambda: nncuda.Conv2d(3, 4, 3, padding_mode="reflect"), NotImplementedError,
     "padding_mode is 'reflect'; expected 'zeros'"),
    (lambda: nncuda.BatchNorm2d(3, momentum=0.2), NotImplementedError, "momentum is 0.2; expected 0.1"),
    (lambda: nncuda.MaxPool2d(2, return_indices=True), NotImplementedError, "return_indices is True"),
    (lambda: nncuda.AdaptiveAvgPool2d(7), NotImplementedError, "output_size is 7; expected 1"),
    (lambda: nncuda.CrossEntropyLoss(reduction="none"), NotImplementedError, "reduction is 'none'"),
    (lambda: optim.SGD([torch.zeros(1)], lr=-1.0), ValueError, "SGD: lr is -1.0; expected at least 0"),
    (lambda: optim.SGD([torch.zeros(1)], nesterov=True), ValueError, "nesterov with momentum 0.0"),
    (lambda: optim.Adam([torch.zeros(1)], betas=(0.9, 1.0)), ValueError, "Adam: betas[1] is 1.0; expected 0 to 1"),
    (lambda: nncuda.set_backend("c"), ValueError, "set_backend: 'c'; expected 'ctypes', 'extension' or 'auto'"),
]


class BadInput(Case):
    def test_each_is_refused(self):
        for _ in self.each():
            for i, (call, kind, part) in enumerate(WRONG):
                if os.environ.get("NNCUDA_TEST_TRACE"):  # where a call crashes, its number is the last line
                    print("%s: %d, %r" % (self.place, i, part), flush=True)
                with self.subTest(number=i, expected=part):
                    with self.assertRaises(kind) as seen:
                        call()
                    self.assertIn(part, str(seen.exception))

    def test_labels_in_the_library(self):
        """The library looks at labels, too: what the Python check lets through because it cannot know."""
        for device in self.each():
            if device == "cpu":
                with self.assertRaises(ValueError) as seen:
                    nncuda.backend.ops.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3]), 0, -100, 0.0, True)
                self.assertIn("label", str(seen.exception))

    def test_optimizers_refuse_what_they_cannot_write(self):
        p = torch.nn.Parameter(torch.zeros(4, 3).t())
        p.grad = torch.ones(3, 4)
        with self.assertRaisesRegex(ValueError, "SGD: a parameter of shape \\(3, 4\\) is not contiguous"):
            optim.SGD([p]).step()
        q = torch.nn.Parameter(torch.zeros(3).double())
        q.grad = torch.ones(3).double()
        with self.assertRaisesRegex(TypeError, "AdamW: a parameter of shape \\(3,\\) has dtype torch.float64"):
            optim.AdamW([q]).step()

    def test_inputs_stay_as_they_are(self):
        x = torch.randn(5, 7)
        before = x.clone()
        for _ in self.each():
            for operation in (nncuda.softmax, nncuda.relu, nncuda.dropout, lambda x: nncuda.add_relu(x, x)):
                operation(x)
                self.assertTrue(torch.equal(x, before))

    @needs(torch.cuda.is_available(), "no GPU")
    def test_tensors_on_two_devices(self):
        for device in self.each():
            if device == "cuda":
                with self.assertRaisesRegex(ValueError, "weight is on cpu, but x is on cuda:0; expected one device: "
                                            "move it with weight.to"):
                    nncuda.conv2d(X.cuda(), W)
