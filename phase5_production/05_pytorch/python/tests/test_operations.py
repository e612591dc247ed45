"""Every operation and its gradients against PyTorch in double, at each place; gradcheck; threads; memory layouts.

Inputs are random and asymmetric, sizes ragged: 1, 3, 31, 33, 127, primes. The bounds are those of
places.Case.same_as()."""
import threading
import unittest

import torch
from torch.nn import functional as F

import nncuda
from places import EPS, Case, at, needs, places

ROWS = [(1, 1), (3, 33), (31, 127), (2, 1031), (5, 3, 7)]


class Rows(Case):
    def test_softmax(self):
        for device in self.each(small=True):
            for shape in ROWS:
                self.same_as(nncuda.softmax, lambda x: torch.softmax(x, -1), [4 * torch.randn(shape)], 8, device)
            for dim in (0, 1, -3):
                self.same_as(lambda x: nncuda.softmax(x, dim), lambda x: torch.softmax(x, dim), [torch.randn(5, 3, 7)],
                             8, device)

    def test_softmax_of_large_and_masked_values(self):
        for device in self.each():
            x = torch.tensor([[1e4, 1e4 - 1, -1e4], [float("-inf"), 0.0, 1.0]])
            self.close(nncuda.softmax(x.to(device)), torch.softmax(x.double(), -1), 8 * EPS)

    def test_nothing_in_nothing_out(self):
        for device in self.each():
            self.assertEqual(nncuda.softmax(torch.zeros(0, 5, device=device)).shape, (0, 5))
            self.assertEqual(nncuda.relu(torch.zeros(0, device=device)).shape, (0,))

    def test_cross_entropy(self):
        for device in self.each(small=True):
            for rows, classes in ((1, 2), (7, 33), (33, 127), (3, 1031)):
                for reduction, smoothing in (("mean", 0.0), ("sum", 0.1), ("mean", 1.0)):
                    target = torch.randint(0, classes, (rows,))
                    if rows > 1:
                        target[1] = -100
                    def ours(x):
                        return nncuda.cross_entropy(x, target.to(device), reduction=reduction,
                                                    label_smoothing=smoothing)
                    def theirs(x):
                        return F.cross_entropy(x, target, reduction=reduction, label_smoothing=smoothing)
                    self.same_as(ours, theirs, [3 * torch.randn(rows, classes)], classes, device)

    def test_cross_entropy_twice_backward_and_scaled(self):
        for device in self.each():
            x, target = torch.randn(6, 11), torch.randint(0, 11, (6,))
            mine = x.to(device).requires_grad_()
            loss = nncuda.cross_entropy(mine, target.to(device))
            first = torch.autograd.grad(loss, mine, torch.tensor(3.0, device=device), retain_graph=True)[0]
            second = torch.autograd.grad(loss, mine, torch.tensor(-0.5, device=device))[0]
            reference = x.double().requires_grad_()
            expected = torch.autograd.grad(F.cross_entropy(reference, target), reference)[0]
            self.close(first, 3 * expected, 16 * EPS)
            self.close(second, -0.5 * expected, 16 * EPS)
            with self.assertRaisesRegex(RuntimeError, "second time"):  # PyTorch's own sentence
                loss.backward()

    def test_layer_norm(self):
        for device in self.each(small=True):
            for shape, normalized in (((3, 33), (33,)), ((31, 127), (127,)), ((2, 5, 12), (5, 12))):
                inputs = [torch.randn(shape) + 0.5, torch.randn(normalized), torch.randn(normalized)]
                self.same_as(lambda x, w, b: nncuda.layer_norm(x, normalized, w, b), lambda x, w,
                             b: F.layer_norm(x, normalized, w, b),
                             inputs, 127, device)


class Elementwise(Case):
    def test_activations(self):
        pairs = ((nncuda.relu, torch.relu), (nncuda.leaky_relu, F.leaky_relu), (nncuda.sigmoid, torch.sigmoid),
                 (nncuda.tanh, torch.tanh))
        for device in self.each(small=True):
            for ours, theirs in pairs:
                self.same_as(ours, theirs, [torch.randn(3, 331)], 8, device)

    def test_add_relu(self):
        for device in self.each(small=True):
            self.same_as(nncuda.add_relu, lambda a, b: torch.relu(a + b), [torch.randn(7, 127), torch.randn(7, 127)], 4,
                         device)

    def test_dropout(self):
        for device in self.each(small=True):
            x = torch.rand(100, 100, device=device) + 0.5
            x.requires_grad_()
            y = nncuda.dropout(x, 0.3, seed=5)
            kept = y != 0
            self.close(y, torch.where(kept, x / 0.7, torch.zeros_like(x)), 4 * EPS)
            self.assertLess(abs(float(kept.float().mean()) - 0.7),
                            5 * (0.21 / 10000) ** 0.5)  # five standard deviations
            y.backward(torch.ones_like(y))
            self.close(x.grad, kept.float() / 0.7, 4 * EPS)
            self.assertTrue(torch.equal(y, nncuda.dropout(x, 0.3, seed=5)))
            self.assertFalse(torch.equal(y, nncuda.dropout(x, 0.3, seed=6)))
            self.assertTrue(nncuda.dropout(x, 0.3, training=False) is x)
            self.assertEqual(float(nncuda.dropout(x, 1.0).abs().max()), 0.0)

    def test_dropout_follows_the_generator(self):
        x = torch.ones(1000)
        torch.manual_seed(3)
        first, second = nncuda.dropout(x), nncuda.dropout(x)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(first, nncuda.dropout(x)))
        self.assertFalse(torch.equal(first, second))


class Products(Case):
    def test_matmul(self):
        for device in self.each(small=True):
            for ta in (False, True):
                for tb in (False, True):
                    a, b = torch.randn((31, 17) if ta else (17, 31)), torch.randn((7, 31) if tb else (31, 7))
                    def product(a, b, multiply):
                        return multiply(a.t() if ta else a, b.t() if tb else b)
                    self.same_as(lambda a, b: product(a, b, nncuda.matmul), lambda a, b: product(a, b, torch.matmul),
                                 [a, b], 31, device)

    def test_linear(self):
        for device in self.each(small=True):
            for shape, outs in (((1, 3), 1), ((5, 33), 7), ((2, 3, 17), 10)):
                for bias in (True, False):
                    inputs = [torch.randn(shape), torch.randn(outs, shape[-1])] + ([torch.randn(outs)] if bias else [])
                    self.same_as(nncuda.linear, F.linear, inputs, shape[-1] + 10, device)
                    self.same_as(lambda *t: nncuda.linear(*(t + (None,))[:3], relu=True),
                                 lambda *t: F.linear(*t).relu(), inputs, shape[-1] + 10, device)


CONVOLUTIONS = [  # x, filters, kernel, options
    ((1, 1, 5, 7), 1, (1, 1), {}),
    ((2, 3, 9, 8), 5, (3, 3), dict(padding=1)),
    ((3, 4, 11, 10), 6, (3, 3), dict(stride=2, padding=1)),
    ((1, 3, 13, 17), 4, (7, 7), dict(stride=2, padding=3)),
    ((2, 5, 8, 6), 3, (1, 1), dict(stride=2)),
]


class Convolution(Case):
    def test_conv2d(self):
        for device in self.each(small=True):
            for x, filters, kernel, options in CONVOLUTIONS:
                inputs = [torch.randn(x), torch.randn(filters, x[1], *kernel), torch.randn(filters)]
                self.same_as(lambda *t: nncuda.conv2d(*t, **options), lambda *t: F.conv2d(*t, **options), inputs,
                             x[0] * x[2] * x[3], device)

    def test_conv2d_with_residual_and_relu(self):
        for device in self.each(small=True):
            x, w, b = torch.randn(2, 3, 9, 8), torch.randn(5, 3, 3, 3), torch.randn(5)
            residual = torch.randn(2, 5, 9, 8)
            self.same_as(lambda x, w, b, r: nncuda.conv2d(x, w, b, padding=1, residual=r, relu=True),
                         lambda x, w, b, r: torch.relu(F.conv2d(x, w, b, padding=1) + r), [x, w, b, residual], 144,
                         device)
            self.same_as(lambda x, w: nncuda.conv2d(x, w, padding=1, relu=True), lambda x,
                         w: torch.relu(F.conv2d(x, w, padding=1)), [x, w], 144, device)

    def test_conv2d_nhwc(self):
        """Factors are exact in each type, so that only sums are rounded, and results to the type."""
        for device in self.each(small=True):
            for dtype, bits in ((torch.float32, 2.0 ** -11), (torch.float16, 2.0 ** -11), (torch.bfloat16, 2.0 ** -8)):
                for (n, c, h), k, size, stride, padding in (((2, 3, 9), 8, 7, 2, 3), ((1, 16, 6), 24, 3, 1, 1)):
                    x, w, bias = torch.randn(n, c, h, h + 1), torch.randn(k, c, size, size), torch.randn(k)
                    x, w = x.bfloat16().float(), w.bfloat16().float()
                    arguments = dict(stride=stride, padding=padding)
                    plain = F.conv2d(x.double(), w.double(), bias.double(), **arguments)
                    z = torch.randn(plain.shape).bfloat16().float()
                    mine = [t.to(device, dtype) for t in (x, w)] + [bias.to(device)]
                    magnitude = F.conv2d(x.abs().double(), w.abs().double(), **arguments)
                    bound = float(bits * plain.abs().max() + c * size * size * EPS * magnitude.max()) + bits * 4
                    y = nncuda.conv2d_nhwc(*mine, **arguments)
                    self.assertEqual((y.dtype, y.is_contiguous(memory_format=torch.channels_last)), (dtype, True))
                    self.close(y, plain, bound, dtype)
                    y = nncuda.conv2d_nhwc(*mine, **arguments, residual=z.to(device, dtype), relu=True)
                    self.close(y, (plain + z).relu(), bound, dtype)
        with self.assertRaisesRegex(NotImplementedError, "an input requires a gradient"):
            nncuda.conv2d_nhwc(torch.zeros(1, 3, 8, 8, requires_grad=True), torch.zeros(4, 3, 3, 3))

    def test_stem_pool2d(self):
        """Factors are exact in each type, as above. In float32 every shape is taken."""
        for device in self.each(small=True):
            x, w, bias = torch.randn(2, 3, 21, 18), torch.randn(16, 3, 7, 7), torch.randn(16)
            x, w = x.bfloat16().float(), w.bfloat16().float()
            plain = F.max_pool2d(F.conv2d(x.double(), w.double(), bias.double(), 2, 3).relu(), 3, 2, 1)
            rounding = 147 * EPS * float(F.conv2d(x.abs(), w.abs(), None, 2, 3).max())
            for dtype, cores, bits in ((torch.float32, False, EPS), (torch.float32, True, 2.0 ** -11),
                                       (torch.float16, True, 2.0 ** -11), (torch.bfloat16, True, 2.0 ** -8)):
                y = nncuda.stem_pool2d(x.to(device), w.to(device, dtype), bias.to(device), tensor_cores=cores)
                self.assertEqual(y.dtype, dtype)
                self.assertTrue(y.is_contiguous(
                    memory_format=torch.channels_last if cores else torch.contiguous_format))
                self.close(y, plain, bits * float(plain.max()) + rounding, (dtype, cores))
            x, w = torch.randn(3, 2, 9, 11), torch.randn(5, 2, 3, 2)
            y = nncuda.stem_pool2d(x.to(device), w.to(device), bias[:5].to(device), (2, 1), (1, 0), 2, (1, 2), 0)
            self.close(y, F.max_pool2d(F.conv2d(x, w, bias[:5], (2, 1), (1, 0)).relu(), 2, (1, 2)), 1e-5)
        with self.assertRaisesRegex(NotImplementedError, "conv has 2 channels and 5 filters of 3 x 2; tensor cores"):
            nncuda.stem_pool2d(x, w, bias[:5], tensor_cores=True)
        with self.assertRaisesRegex(NotImplementedError, "an input requires a gradient"):
            nncuda.stem_pool2d(x, w.requires_grad_(), bias[:5])
        with self.assertRaisesRegex(ValueError, "bias has shape \\(4,\\); expected \\(5,\\)"):
            nncuda.stem_pool2d(x, w.detach(), bias[:4])

    def test_only_the_gradients_that_are_wanted(self):
        for device in self.each():
            x, w = torch.randn(2, 3, 9, 8, device=device), torch.randn(5, 3, 3, 3, device=device, requires_grad=True)
            nncuda.conv2d(x, w).sum().backward()
            self.assertIsNone(x.grad)
            self.assertIsNotNone(w.grad)

    def test_fold_batch_norm(self):
        for device in self.each(small=True):
            w, x = torch.randn(5, 3, 3, 3), torch.randn(2, 3, 7, 9)
            bias, gamma, beta, mean, var = (torch.randn(5), torch.rand(5) + 0.5, torch.randn(5), torch.randn(5),
                                            torch.rand(5) + 0.1)
            folded = nncuda.backend.ops.fold_batch_norm(*(t.to(device) for t in (w, bias, gamma, beta, mean, var)),
                                                        1e-5)
            apart = F.batch_norm(F.conv2d(x.double(), w.double(), bias.double()), mean.double(), var.double(),
                                 gamma.double(), beta.double())
            self.close(F.conv2d(x.double(), *(t.cpu().double() for t in folded)), apart,
                       64 * EPS * float(apart.abs().max()))


class Pooling(Case):
    OPTIONS = [dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=(2, 3), stride=(1, 2))]

    def test_max_pool2d(self):
        for device in self.each(small=True):
            for options in self.OPTIONS + [dict(kernel_size=3, stride=2, ceil_mode=True)]:
                self.same_as(lambda x: nncuda.max_pool2d(x, **options), lambda x: F.max_pool2d(x, **options),
                             [torch.randn(2, 3, 9, 11)], 9, device)
                self.same_as(lambda x: nncuda.max_pool2d(x, **options, relu=True),
                             lambda x: F.max_pool2d(x, **options).relu(),
                             [torch.randn(2, 3, 9, 11)], 9, device)

    def test_avg_pool2d(self):
        for device in self.each(small=True):
            for options in self.OPTIONS + [dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)]:
                self.same_as(lambda x: nncuda.avg_pool2d(x, **options), lambda x: F.avg_pool2d(x, **options),
                             [torch.randn(2, 3, 9, 11)], 9, device)

    def test_global_avg_pool2d(self):
        for device in self.each(small=True):
            self.same_as(nncuda.global_avg_pool2d, lambda x: F.adaptive_avg_pool2d(x, 1), [torch.randn(3, 5, 7, 9)], 63,
                         device)


class BatchNorm(Case):
    def run_training(self, device, relu, residual):
        x, z = torch.randn(3, 5, 7, 9) + 0.5, torch.randn(3, 5, 7, 9)
        inputs = [x, torch.rand(5) + 0.5, torch.randn(5)] + ([z] if residual else [])
        statistics = [[torch.full((5,), 0.25), torch.full((5,), 2.0)] for _ in range(2)]
        mean, var = (t.to(device) for t in statistics[0])

        def ours(x, w, b, z=None):
            return nncuda.batch_norm(x, mean, var, w, b, training=True, relu=relu, residual=z)

        def theirs(x, w, b, z=None):
            y = F.batch_norm(x, *(t.double() for t in statistics[1]), w, b, training=True)
            y = y if z is None else y + z
            return y.relu() if relu else y

        self.same_as(ours, theirs, inputs, 189, device)
        reference = [t.double() for t in statistics[1]]
        F.batch_norm(x.double(), *reference, training=True)
        self.close(mean, reference[0], 189 * EPS, "running_mean")
        self.close(var, reference[1], 189 * 4 * EPS, "running_var")

    def test_training(self):
        for device in self.each(small=True):
            for relu, residual in ((False, False), (True, False), (True, True)):
                self.run_training(device, relu, residual)

    def test_evaluation(self):
        for device in self.each(small=True):
            x, z, w, b, mean = torch.randn(3, 5, 7, 9), torch.randn(3, 5, 7,
                                                                    9), torch.randn(5), torch.randn(5), torch.randn(5)
            var = torch.rand(5) + 0.1
            mine = [t.to(device) for t in (mean, var, w, b)]
            plain = F.batch_norm(x.double(), *(t.double() for t in (mean, var, w, b)))
            bound = 32 * EPS * float(plain.abs().max())
            self.close(nncuda.batch_norm(x.to(device), *mine), plain, bound)
            self.close(nncuda.batch_norm(x.to(device), *mine, relu=True), plain.relu(), bound)
            self.close(nncuda.batch_norm(x.to(device), *mine, relu=True, residual=z.to(device)), (plain + z).relu(),
                       bound)

    def test_gradients_with_frozen_statistics(self):
        for device in self.each():
            mean, var = torch.randn(5), torch.rand(5) + 0.1
            self.same_as(lambda x, w, b: nncuda.batch_norm(x, mean.to(device), var.to(device), w, b),
                         lambda x, w, b: F.batch_norm(x, mean.double(), var.double(), w, b),
                         [torch.randn(2, 5, 3, 4), torch.randn(5), torch.randn(5)], 64, device)


def attention_reference(q, k, v, causal):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


class Attention(Case):
    def test_attention(self):
        for device in self.each(small=True):
            for shape in ((1, 1, 1, 4), (2, 3, 33, 16), (1, 2, 17, 64)):
                for causal in (False, True):
                    self.same_as(lambda q, k, v: nncuda.scaled_dot_product_attention(q, k, v, is_causal=causal),
                                 lambda q, k, v: attention_reference(q, k, v, causal),
                                 [torch.randn(shape) for _ in range(3)], shape[2] * 4, device)


class Gradcheck(Case):
    """torch.autograd.gradcheck wants double, and our kernels are float32: the function between rounds what comes in and
    returns double. A central difference with step h then has the error  (EPS |y| + EPS |x| |y'|) / h  of rounding, and
    h^2 |y'''| / 6 of the step; all values here are below 4, so that h = 2^-7 and a bound of 3e-3 hold, and a wrong
    factor in a gradient of order 1 does not pass."""
    STEP, BOUND = 2.0 ** -7, 3e-3

    def check(self, function, *inputs, device):
        inputs = [x.to(device).double().requires_grad_() for x in inputs]
        self.assertTrue(torch.autograd.gradcheck(lambda *t: function(*(x.float() for x in t)).double(), inputs,
                                                 eps=self.STEP, atol=self.BOUND,
                                                 rtol=self.BOUND, check_undefined_grad=False, nondet_tol=1e-5))

    def test_gradcheck(self):
        for device in self.each():
            x = torch.linspace(-1, 1, 24).reshape(2, 3, 4) + 0.02  # away from 0, where ReLU has no gradient
            self.check(nncuda.softmax, x, device=device)
            self.check(nncuda.sigmoid, x, device=device)
            self.check(nncuda.relu, x, device=device)
            self.check(lambda x: nncuda.dropout(x, 0.4, seed=9), x, device=device)
            self.check(lambda a, b: nncuda.add_relu(a, b), x, 0.3 * x.flip(2), device=device)
            target = torch.tensor([2, 0, 1, -100], device=device)
            self.check(lambda x: nncuda.cross_entropy(x, target, label_smoothing=0.1), torch.randn(4, 3), device=device)
            self.check(nncuda.linear, torch.randn(3, 4), torch.randn(2, 4), torch.randn(2), device=device)
            self.check(nncuda.matmul, torch.randn(3, 4), torch.randn(4, 2), device=device)
            self.check(lambda x, w, b: nncuda.layer_norm(x, 5, w, b), torch.randn(3, 5), torch.randn(5), torch.randn(5),
                       device=device)
            image = (torch.randperm(72).float() / 36 - 1).reshape(2, 2, 3, 6)  # no two values closer than two steps
            self.check(lambda x: nncuda.max_pool2d(x, 2), image, device=device)
            self.check(lambda x: nncuda.avg_pool2d(x, 3, 2, 1), image, device=device)
            self.check(nncuda.global_avg_pool2d, image, device=device)
            self.check(lambda x, w, b: nncuda.conv2d(x, w, b, padding=1), image, torch.randn(2, 2, 3, 3),
                       torch.randn(2), device=device)
            self.check(lambda x, w, b: nncuda.batch_norm(x, None, None, w, b, training=True), image,
                       torch.rand(2) + 0.5, torch.randn(2), device=device)
            self.check(nncuda.scaled_dot_product_attention, *(torch.randn(1, 2, 3, 4) for _ in range(3)), device=device)


class Layouts(Case):
    def test_tensors_that_are_not_contiguous_are_copied(self):
        for device in self.each():
            x = torch.randn(2, 8, 7, 6)
            self.same_as(lambda x: nncuda.softmax(x.transpose(1, 3)[:, ::2]),
                         lambda x: torch.softmax(x.transpose(1, 3)[:, ::2], -1), [x], 8, device)
            w, options = torch.randn(4, 8, 3, 3), dict(padding=1)
            last = torch.channels_last
            y = self.same_as(lambda x, w: nncuda.conv2d(x.to(memory_format=last), w.to(memory_format=last), **options),
                             lambda x, w: F.conv2d(x, w, **options), [x, w], 100, device)
            self.assertTrue(y.is_contiguous())
            self.same_as(lambda x: nncuda.max_pool2d(x.to(memory_format=last), 2), lambda x: F.max_pool2d(x, 2), [x], 4,
                         device)
            self.same_as(lambda x: nncuda.relu(x.permute(0, 2, 3, 1)), lambda x: torch.relu(x.permute(0, 2, 3, 1)), [x],
                         1, device)

    def test_a_gradient_that_is_expanded(self):
        for device in self.each():
            x = torch.randn(3, 5, device=device, requires_grad=True)
            nncuda.softmax(x).sum().backward()  # dy has strides 0
            self.close(x.grad, torch.zeros(3, 5), 8 * EPS)


class Threads(Case):
    def test_two_threads_at_once(self):
        """Each with its own inputs, and on a GPU its own stream; the results are those of one thread."""
        for place in places():
            device = place[0]
            torch.manual_seed(11)
            inputs = [(torch.randn(2, 4, 20, 20), torch.randn(6, 4, 3, 3)) for _ in range(2)]
            results, errors = [[], []], []

            def work(index):
                try:
                    x, w = (t.clone().to(device).requires_grad_() for t in inputs[index])
                    stream = torch.cuda.Stream() if device == "cuda" else None
                    if stream:
                        stream.wait_stream(torch.cuda.default_stream())
                    with nncuda.host(place[1]), torch.cuda.stream(stream):
                        for _ in range(10):
                            x.grad = w.grad = None
                            y = nncuda.softmax(nncuda.conv2d(x, w, padding=1, relu=True).flatten(1))
                            y.square().sum().backward()
                            results[index].append((y.detach().cpu(), x.grad.cpu(), w.grad.cpu()))
                except Exception as error:  # a thread's exception would be lost
                    errors.append(error)

            with self.subTest(place=place), at(place):
                threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(errors, [])
                for index in range(2):
                    reference = [t.double().requires_grad_() for t in inputs[index]]
                    y = torch.softmax(F.conv2d(*reference, padding=1).relu().flatten(1), -1)
                    y.square().sum().backward()
                    for result in results[index]:
                        for mine, theirs in zip(result, (y, reference[0].grad, reference[1].grad)):
                            self.close(mine, theirs, 800 * EPS * max(1.0, float(theirs.abs().max())))
                self.assertEqual([len(r) for r in results], [10, 10])

    def test_errors_stay_in_their_thread(self):
        """The library keeps the last error of each thread: 200 wrong calls in two threads, each with its own
        sentence."""
        wrong = []

        def work(cols):
            for _ in range(100):
                try:
                    nncuda.max_pool2d(torch.zeros(1, 1, 3, 3), cols)
                except ValueError as error:
                    if str(cols) not in str(error):
                        wrong.append(str(error))
                else:
                    wrong.append("no error")

        threads = [threading.Thread(target=work, args=(size,)) for size in (41, 77)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


@needs(torch.cuda.is_available(), "no GPU")
class Streams(Case):
    def test_work_goes_to_the_current_stream(self):
        for device in self.each():
            if device != "cuda":
                continue
            side = torch.cuda.Stream()
            x = torch.randn(4096, 4096, device="cuda")
            with nncuda.stream(side):
                torch.cuda._sleep(100_000_000)
                y = nncuda.softmax(x)
                early = side.query()
            self.assertFalse(early)  # the softmax waits behind the sleep
            side.synchronize()
            self.close(y, torch.softmax(x, -1), 16 * EPS)

    def test_a_captured_graph_replays(self):
        for device in self.each():
            if device != "cuda":
                continue
            x = torch.randn(64, 1000, device="cuda")
            nncuda.softmax(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = nncuda.softmax(x)
            x.copy_(torch.randn(64, 1000))
            graph.replay()
            self.close(y, torch.softmax(x.double(), -1), 16 * EPS)

    @needs(torch.cuda.device_count() > 1, "one GPU")
    def test_a_stream_of_another_device_is_refused(self):
        for device in self.each():
            if device == "cuda":
                with nncuda.stream(torch.cuda.Stream(device="cuda:1")), self.assertRaisesRegex(ValueError,
                                                                                               "belongs to cuda:1"):
                    nncuda.softmax(torch.zeros(2, 3, device="cuda:0"))
                self.assertEqual(nncuda.softmax(torch.zeros(2, 3, device="cuda:1")).device.index, 1)


if __name__ == "__main__":
    unittest.main()
