"""The operators of torch.library: schemas, shapes without data, results and gradients; torch.compile where PyTorch has
it."""
import os

import torch
from torch.nn import functional as F

import nncuda
from nncuda import operators
from places import EPS, Case, needs

operators.register()

CONV = ((2, 1), (1, 0), (1, 1), 1)
POOL = ((3, 2), (2, 1), (1, 0))


def examples(device="cpu"):
    """name -> arguments, one of each operator."""
    torch.manual_seed(8)
    image, other = torch.randn(2, 3, 9, 8, device=device), torch.randn(2, 3, 9, 8, device=device)
    rows, matrix, weight = (torch.randn(shape, device=device) for shape in ((5, 7), (7, 4), (4, 7)))
    filters, three = torch.randn(4, 3, 3, 3, device=device), torch.rand(3, device=device) + 0.5
    label = torch.tensor([0, 6, 2, 3, 1], device=device)
    q = torch.randn(2, 2, 5, 8, device=device)
    ops = nncuda.backend.ops
    y = ops.conv2d(image, filters, None, None, False, *CONV)
    pooled, argmax = ops.max_pool2d(image, *POOL, (1, 1), True, False)
    normed, mean, inv_std, passed = ops.batch_norm(image, other, three, three, None, None, 2, 0.1, 1e-5)
    out, lse = ops.attention(q, q, q, True)
    seven = torch.rand(7, device=device)
    return {
        "softmax": (rows,), "softmax_backward": (rows, torch.softmax(rows, 1)),
        "cross_entropy": (rows, label, 0, -100, 0.1, True),
        "activation": (rows, 0), "activation_backward": (rows, rows, 0), "add_relu": (image, other),
        "add_relu_backward": (image, other),
        "matmul": (rows, weight, False, True), "linear": (rows, weight, None, True),
        "linear_backward": (rows @ matrix, rows @ matrix, rows, weight, True, True, False, True),
        "stem_pool2d": (torch.randn(2, 3, 21, 18, device=device), torch.randn(8, 3, 7, 7, device=device).half(),
                        torch.rand(8, device=device), True, (2, 2), (3, 3), (3, 3), (2, 2), (1, 1)),
        "conv2d_nhwc": (image.half(), filters.half(), None, None, True, *CONV),
        "conv2d": (image, filters, None, None, False, *CONV), "conv2d_backward_input": (y, filters, image.shape, *CONV),
        "conv2d_backward_weight": (y, image, filters.shape, True, *CONV),
        "max_pool2d": (image, *POOL, (1, 1), True, False),
        "max_pool2d_backward": (pooled, argmax, image.shape, *POOL, (1, 1), True),
        "avg_pool2d": (image, *POOL, False, True),
        "avg_pool2d_backward": (ops.avg_pool2d(image, *POOL, False, True), image.shape, *POOL, False, True),
        "global_avg_pool2d": (image,), "global_avg_pool2d_backward": (image[:, :, :1, :1].contiguous(), image.shape),
        "layer_norm": (rows, seven, seven, 1e-5),
        "layer_norm_backward": (rows, rows, seven, ops.layer_norm(rows, seven, seven, 1e-5)[1], True, False),
        "batch_norm": (image, other, three, three, None, None, 2, 0.1, 1e-5),
        "batch_norm_evaluate": (image, None, three, three, three, three, 1, 1e-5),
        "batch_norm_backward": (image, image, three, three, mean, inv_std, passed, 2, True),
        "attention": (q, q, q, True), "attention_backward": (q, q, q, q, out, lse, True),
    }


def tensors(output):
    return output if isinstance(output, (tuple, list)) else (output,)


class Operators(Case):
    def test_every_operator_has_an_example(self):
        self.assertEqual(sorted(examples()), sorted(operators.SCHEMAS))

    def test_results_are_those_of_the_functions(self):
        for device in self.each():
            for name, inputs in examples(device).items():
                ours = tensors(getattr(torch.ops.nncuda, name)(*inputs))
                plain = tensors(getattr(nncuda.backend.ops, name)(*inputs))
                for a, b in zip(ours, plain):
                    if b is None:
                        self.assertEqual(a.numel(), 0)
                    else:
                        self.assertTrue(torch.equal(a, b), name)

    def test_shapes_without_data(self):
        """On the device "meta" an operator has shapes and types alone: they must be those of the real results."""
        for name, inputs in examples().items():
            real = tensors(getattr(torch.ops.nncuda, name)(*inputs))
            with torch.inference_mode():  # PyTorch 1.13 has no way past autograd for this device
                meta = tensors(getattr(torch.ops.nncuda, name)(*(x.to("meta") if isinstance(x, torch.Tensor) else x
                                                                 for x in inputs)))
            for a, b in zip(real, meta):
                self.assertEqual((tuple(a.shape), a.dtype, a.stride()), (tuple(b.shape), b.dtype, b.stride()), name)

    def test_windows_that_round_up(self):
        """The shapes of pooling, for sizes where the last window begins in the padding."""
        for size in range(2, 12):
            for kernel in (1, 2, 3):
                for stride in (1, 2, 3):
                    for padding in range(kernel // 2 + 1):
                        for ceil_mode in (False, True):
                            if size + 2 * padding < kernel:
                                continue
                            x = torch.zeros(1, 1, size, size)
                            expected = F.max_pool2d(x, kernel, stride, padding, 1, ceil_mode).shape[2]
                            self.assertEqual(operators._window(size, kernel, stride, padding, 1, ceil_mode), expected)
                            self.assertEqual(nncuda.max_pool2d(x, kernel, stride, padding, 1, ceil_mode).shape[2],
                                             expected)

    def test_gradients(self):
        for name in ("softmax", "activation", "add_relu", "matmul", "linear", "conv2d", "max_pool2d", "avg_pool2d",
                     "global_avg_pool2d",
                     "layer_norm", "batch_norm", "attention", "cross_entropy"):
            def gradients(call):
                inputs = [x.clone().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
                          for x in examples()[name]]
                output = tensors(call(inputs))[0]
                torch.manual_seed(1)
                output.backward(torch.randn(output.shape))
                return [x.grad for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
            if name == "cross_entropy":
                def function(inputs):
                    return nncuda.cross_entropy(*inputs[:2], label_smoothing=0.1)
            else:
                def function(inputs):
                    return nncuda._autograd.call(name, *inputs)
            ours, plain = gradients(lambda inputs: getattr(torch.ops.nncuda, name)(*inputs)), gradients(function)
            self.assertEqual(len(ours), len(plain))
            for a, b in zip(ours, plain):
                self.close(a, b, 4 * EPS * max(1.0, float(b.abs().max())), name)

    def test_a_wrong_type_is_refused_without_data(self):
        with self.assertRaisesRegex((TypeError, RuntimeError), "expected torch.float32"):
            torch.ops.nncuda.softmax(torch.zeros(2, 3, device="meta", dtype=torch.float64))

    def test_batch_norm_in_a_graph(self):
        x, w, b = torch.randn(4, 3, 5, 5), torch.rand(3), torch.rand(3)
        mean, var, mean2, var2 = torch.zeros(3), torch.ones(3), torch.zeros(3), torch.ones(3)
        y = operators.batch_norm_in_graph(x, None, mean, var, w, b, 1, 0.1, 1e-5)
        self.close(y, F.batch_norm(x, mean2, var2, w, b, training=True).relu(), 64 * EPS)
        self.close(mean, mean2, 8 * EPS)
        self.close(var, var2, 64 * EPS)


@needs(hasattr(torch, "compile") and hasattr(torch.library, "register_autograd"),
       "PyTorch %s has no torch.compile; 2.4 or newer has" % torch.__version__.split("+")[0])
class Compile(Case):
    def step(self, model, x, target):
        model.zero_grad()
        loss = nncuda.cross_entropy(model(x), target)
        loss.backward()
        return loss, [p.grad.clone() for p in model.parameters()]

    def test_no_graph_break_and_the_same_results(self):
        """Tracing, shapes and gradients are ours to get right: "aot_eager" does all of that, and runs the graph as it
        is."""
        self.compiled("aot_eager", ((nncuda.FashionMNISTCNN(), (4, 1, 28, 28)),
                                    (nncuda.TinyImageNetCNN(5, 16, 4, dropout=0.0), (4, 3, 16, 16))))

    @needs(os.environ.get("NNCUDA_TEST_INDUCTOR"), "run.py --inductor: it compiles kernels for minutes")
    def test_the_usual_backend(self):
        self.compiled("inductor", ((nncuda.FashionMNISTCNN(), (4, 1, 28, 28)),))

    def compiled(self, backend, models):
        for device in self.each():
            for model, shape in models:
                model = model.to(device)
                x, target = torch.randn(shape, device=device), torch.tensor([1, 0, 3, 4], device=device)
                torch._dynamo.reset()
                explained = torch._dynamo.explain(model)(x)
                self.assertEqual((explained.graph_count, explained.graph_break_count), (1, 0))
                state = {name: value.clone() for name, value in model.state_dict().items()}
                loss, gradients = self.step(model, x, target)
                model.load_state_dict(state)
                compiled = torch.compile(model, fullgraph=True, backend=backend)
                model.zero_grad()
                loss2 = nncuda.cross_entropy(compiled(x), target)
                loss2.backward()
                self.close(loss2, loss, 1e-5)
                for p, g in zip(model.parameters(), gradients):
                    self.close(p.grad, g, 1e-4 * max(1.0, float(g.abs().max())))

    def test_opcheck(self):
        for name, inputs in examples("cuda" if torch.cuda.is_available() and not nncuda.library().emulated
                                     else "cpu").items():
            torch.library.opcheck(getattr(torch.ops.nncuda, name).default, inputs,
                                  test_utils=("test_schema", "test_faketensor"))
