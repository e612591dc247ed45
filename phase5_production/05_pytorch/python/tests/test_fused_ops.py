"""optimize_resnet18: results, what is replaced, that the original stays, what is refused."""
import copy

import torch
import torchvision
from torch import nn

import nncuda
from nncuda.ops import fused_ops
from nncuda.ops.fused_ops import optimize_resnet18
from places import Case

COMBINATIONS = [(), ("add_relu",), ("conv_relu",), ("conv_bn",), ("add_relu", "conv_relu"), ("conv_relu", "conv_bn"),
                ("add_relu", "conv_bn"),
                ("add_relu", "conv_relu", "conv_bn")]


def with_statistics(model):
    """As after training: no running statistic is 0 or 1, no gamma 1."""
    torch.manual_seed(4)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -0.2, 0.2)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
            nn.init.uniform_(layer.weight, 0.5, 1.2)
            nn.init.uniform_(layer.bias, -0.2, 0.2)
    return model.eval()


def narrow(blocks=(1, 1, 1, 1)):
    """A ResNet of the same kind as resnet18, with fewer blocks."""
    torch.manual_seed(6)
    return with_statistics(torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, list(blocks),
                                                     num_classes=11))


class Fusion(Case):
    def near(self, fast, model, x):
        """Relative to the largest logit, in double by the original."""
        expected = copy.deepcopy(model).double()(x.cpu().double())
        self.close(fast(x), expected, 2e-5 * float(expected.abs().max()))

    def test_each_combination_computes_the_same(self):
        model, x = narrow(), torch.randn(2, 3, 40, 48)
        for device in self.each():
            for fuse in COMBINATIONS:
                fast = optimize_resnet18(copy.deepcopy(model).to(device), fuse=fuse, precision="float32")
                self.near(fast, model, x.to(device))

    def test_a_converted_model(self):
        """convert() gives the blocks a forward that calls batch norm with ReLU: what takes its place has none."""
        model, x = narrow(), torch.randn(2, 3, 40, 48)
        converted = nncuda.convert(copy.deepcopy(model))[0]
        for fuse in (("add_relu",), ("conv_relu",), fused_ops.FUSIONS):
            self.near(optimize_resnet18(converted, fuse=fuse, precision="float32"), model, x)

    def test_the_gradient_of_a_picture(self):
        model, x = narrow(), torch.randn(2, 3, 40, 48, requires_grad=True)
        wanted = torch.autograd.grad(model(x).square().sum(), x)[0]
        got = torch.autograd.grad(optimize_resnet18(model, precision="float32")(x).square().sum(), x)[0]
        self.close(got, wanted, 1e-4 * float(wanted.abs().max()))

    def test_resnet18_and_what_is_left(self):
        model, x = with_statistics(torchvision.models.resnet18()), torch.randn(1, 3, 64, 64)
        self.assertEqual(sum(p.numel() for p in model.parameters()), 11689512)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        fast = optimize_resnet18(model)
        self.near(fast, model, x)
        kinds = [type(layer) for layer in fast.modules()]
        self.assertEqual([sum(kind is of for kind in kinds) for of in (fused_ops.FusedConv2d, fused_ops.FusedStem)],
                         [19, 1])
        self.assertFalse(nn.BatchNorm2d in kinds or nn.Conv2d in kinds or nn.ReLU in kinds)
        # The original is untouched, and still PyTorch's.
        self.assertEqual(type(model.layer1[0]), torchvision.models.resnet.BasicBlock)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertFalse(any(a.data_ptr() == b.data_ptr() for a in model.parameters() for b in fast.parameters()))

    def test_tensor_cores(self):
        """A factor is rounded to 11 bits in tf32 and float16 and to 8 in bfloat16; through 9 layers the errors add up
        like a random walk, and relative to the largest logit stay within 16 times that."""
        model, x = narrow(), torch.randn(2, 3, 40, 48)
        expected = copy.deepcopy(model).double()(x.double())
        for device in self.each():
            for precision, bits in (("tf32", 2.0 ** -11), ("bfloat16", 2.0 ** -8), ("float16", 2.0 ** -11)):
                fast = optimize_resnet18(copy.deepcopy(model).to(device), precision=precision)
                y = fast(x.to(device))
                self.assertEqual(y.dtype, torch.float32)
                self.close(y, expected, 16 * bits * float(expected.abs().max()), precision)
                self.assertIn(precision, repr(fast))
                if precision == "tf32":  # wgmma would cut off what is not rounded
                    weight = fast.conv1.weight
                    exact, _ = nncuda.backend.ops.fold_batch_norm(
                        model.conv1.weight, None, model.bn1.weight, model.bn1.bias, model.bn1.running_mean,
                        model.bn1.running_var, 1e-5)
                    self.assertEqual(int((weight.contiguous().view(torch.int32) & 0x1FFF).abs().max()), 0)
                    self.assertLessEqual(float(((weight.cpu() - exact).abs() / exact.abs()).max()), bits)
        self.assertNotIn("tf32", repr(optimize_resnet18(model)))
        with self.assertRaisesRegex(ValueError, "precision is 'int8'; expected None or one of float32, tf32, float16"):
            optimize_resnet18(model, precision="int8")
        with self.assertRaisesRegex(ValueError, "precision is 'tf32' with fuse=.*expected all of add_relu"):
            optimize_resnet18(model, fuse="add_relu", precision="tf32")

    def test_inplace(self):
        model = narrow()
        x, reference = torch.randn(1, 3, 32, 32), copy.deepcopy(model)
        self.assertIs(optimize_resnet18(model, inplace=True), model)
        self.near(model, reference, x)
        with self.assertRaisesRegex(ValueError, "has been optimized already"):
            optimize_resnet18(model)

    def test_resnet34_has_the_same_blocks(self):
        fast = optimize_resnet18(torchvision.models.resnet34().eval())
        self.assertEqual(sum(isinstance(layer, fused_ops.FusedConv2d) for layer in fast.modules()), 36)

    def test_a_stride_and_a_shortcut_that_are_not_square(self):
        self.near(optimize_resnet18(narrow((2, 1, 1, 1))), narrow((2, 1, 1, 1)), torch.randn(3, 3, 33, 47))

    def test_what_is_refused(self):
        resnet18 = torchvision.models.resnet18
        for model, kind, sentence in (
                (resnet18(), ValueError, "model is in training mode.*call model.eval\\(\\) first"),
                (torchvision.models.resnet50().eval(), NotImplementedError,
                 "layer1.0 is a Bottleneck; expected a BasicBlock"),
                (nn.Linear(2, 3).eval(), TypeError, "model is a Linear; expected a torchvision.models.resnet.ResNet"),
                (None, TypeError, "model is None"),
                (narrow().double(), TypeError, "conv1.weight has dtype torch.float64"),
                (resnet18(norm_layer=lambda c: nn.BatchNorm2d(c, eps=1e-3)).eval(), NotImplementedError,
                 "bn1 has affine=True and eps=0.001; expected True and 1e-05"),
                (resnet18(norm_layer=lambda c: nn.GroupNorm(1, c)).eval(), NotImplementedError,
                 "bn1 is a GroupNorm; expected a BatchNorm2d")):
            with self.assertRaisesRegex(kind, sentence):
                optimize_resnet18(model)
        with self.assertRaisesRegex(ValueError, "fuse has 'relu'; expected some of add_relu, conv_relu, conv_bn"):
            optimize_resnet18(narrow(), fuse="relu")

    def test_the_last_batch_may_be_smaller(self):
        fast, x = optimize_resnet18(narrow()), torch.randn(5, 3, 32, 32)
        self.close(fast(x[:2]), fast(x)[:2], 1e-4)
        self.assertFalse(fast(x).requires_grad)
