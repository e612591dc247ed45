"""Layers and optimizers against torch.nn and torch.optim: names, initial values, results, states that go back and
forth."""
import copy
import json
import os
import pickle
import struct

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

import nncuda
from nncuda import models, optim
from places import EPS, Case


def twin_of_fashion():
    """The same network in torch.nn."""
    class Twin(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 64, 3), nn.Conv2d(64, 128, 3)
            self.fc1, self.fc2 = nn.Linear(3200, 256), nn.Linear(256, 10)

        def forward(self, x):
            x = F.max_pool2d(self.conv1(x), 2).relu()
            x = F.max_pool2d(self.conv2(x), 2).relu()
            return self.fc2(self.fc1(x.flatten(1)).relu())
    return Twin()


def small():
    """One of each layer that convert() knows."""
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, bias=False), nn.LeakyReLU(),
        nn.AvgPool2d(2), nn.Sigmoid(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5), nn.LayerNorm(5),
        nn.Tanh(), nn.Dropout(0.0), nn.Softmax(dim=1))


class Layers(Case):
    def test_initial_values_and_names_are_those_of_torch(self):
        torch.manual_seed(3)
        theirs = twin_of_fashion()
        torch.manual_seed(3)
        ours = nncuda.FashionMNISTCNN()
        self.assertEqual(sum(p.numel() for p in ours.parameters()), 896522)
        self.assertEqual([(n, tuple(p.shape)) for n, p in ours.state_dict().items()],
                         [(n, tuple(p.shape)) for n, p in theirs.state_dict().items()])
        for a, b in zip(ours.parameters(), theirs.parameters()):
            self.assertTrue(torch.equal(a, b))

    def test_fashion_cnn_computes_as_its_twin(self):
        for device in self.each():
            theirs, ours = twin_of_fashion().double(), nncuda.FashionMNISTCNN()
            nncuda.load_state(ours, {name: p.float() for name, p in theirs.state_dict().items()})
            theirs.load_state_dict({name: p.double() for name, p in ours.state_dict().items()})
            ours.to(device)
            x, target = torch.randn(3, 1, 28, 28), torch.tensor([1, 9, 4])
            logits, expected = ours(x.to(device)), theirs(x.double())
            self.close(logits, expected, 1e-5)
            nncuda.CrossEntropyLoss()(logits, target.to(device)).backward()
            F.cross_entropy(expected, target).backward()
            for (name, a), b in zip(ours.named_parameters(), theirs.parameters()):
                self.close(a.grad, b.grad, 1e-5 * max(1.0, float(b.grad.abs().max())), name)

    def test_convert(self):
        for device in self.each():
            for training in (True, False):
                theirs = small().train(training)
                ours, count, left = nncuda.convert(copy.deepcopy(theirs))
                self.assertEqual((count, left), (14, []))
                self.assertIsInstance(ours[0], nncuda.Conv2d)
                self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
                ours.to(device)
                x = torch.randn(3, 2, 12, 10)
                self.close(ours(x.to(device)), theirs.double()(x.double()), 1e-5)
                for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values()):
                    self.close(a, b, 1e-5, name)  # running statistics, too

    def test_convert_leaves_what_has_no_kernel(self):
        model = nn.Sequential(nn.Conv2d(1, 1, 3, padding_mode="circular"), nn.ReLU(), nn.BatchNorm2d(1, momentum=0.3))
        _, count, left = nncuda.convert(model)
        self.assertEqual((count, left, type(model[0]), type(model[1])), (1, ["0", "2"], nn.Conv2d, nncuda.ReLU))

    def test_backward_fills_no_arrays_of_zeros(self):
        """PyTorch would make them as gradients of what has none: argmax, the statistics of a batch."""
        layer, x = nncuda.BatchNorm2d(3), torch.randn(2, 3, 8, 8, requires_grad=True)
        loss = nncuda.max_pool2d(nncuda.layer_norm(layer(x), 8), 2).sum()
        with torch.autograd.profiler.profile() as seen:
            loss.backward()
        names = [event.key for event in seen.key_averages()]
        self.assertIn("aten::empty", names)
        self.assertNotIn("aten::zeros", names)

    def test_softmax_without_dim(self):
        for shape in ((5,), (3, 4), (2, 3, 4), (2, 3, 4, 5)):
            x = torch.randn(shape)
            with self.assertWarns(UserWarning):
                expected = nn.Softmax()(x.double())
            self.close(nncuda.Softmax()(x), expected, 8 * EPS, str(shape))

    def test_a_converted_resnet18_trains_as_torchvisions(self):
        torch.manual_seed(5)
        theirs = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=7)
        ours, count, left = nncuda.convert(copy.deepcopy(theirs))
        self.assertEqual(left, [])
        theirs.double()
        x, target = torch.randn(2, 3, 48, 40), torch.tensor([3, 5])
        loss, expected = nncuda.cross_entropy(ours(x), target), F.cross_entropy(theirs(x.double()), target)
        self.close(loss, expected, 1e-4)
        loss.backward()
        expected.backward()
        for (name, a), b in zip(ours.named_parameters(), theirs.parameters()):
            # Two pictures make batch norm's statistics of the last layer from 4 values: it divides small differences.
            self.close(a.grad, b.grad, 1e-2 * float(b.grad.abs().max()) + 1e-6, name)


    def test_a_converted_resnet18_keeps_less_for_backward(self):
        """torchvision's stem keeps the norm's result and positions of 8 bytes, and a block four arrays: ours three."""
        def kept(model):
            storages = {}

            def note(x):
                storages[x.data_ptr()] = x.numel() * x.element_size()
                return x

            with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
                y = model(torch.zeros(2, 3, 64, 64))
            sizes = sum(storages.values()) - sum(p.numel() * 4 for p in model.parameters() if p.data_ptr() in storages)
            return y, sizes

        theirs = torchvision.models.resnet18(num_classes=5)
        ours = nncuda.convert(copy.deepcopy(theirs))[0]
        (y, ours_kept), (z, theirs_kept) = kept(ours), kept(theirs)
        self.assertEqual(y.shape, z.shape)
        self.assertLess(ours_kept, 0.7 * theirs_kept)
        again = pickle.loads(pickle.dumps(ours))
        self.assertIs(type(again), type(ours))
        self.assertIsInstance(again, torchvision.models.ResNet)


class States(Case):
    def test_missing_and_surplus_names(self):
        model = nncuda.FashionMNISTCNN()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        state = {name: value + 1 for name, value in before.items()}
        missing = dict(state)
        del missing["fc1.bias"]
        surplus = {**state, "fc3.weight": torch.zeros(1)}
        shape = {**state, "conv1.weight": torch.zeros(64, 1, 5, 5)}
        other = {**state, "conv1.weight": [1.0]}
        for wrong, kind, sentence in (
                (missing, RuntimeError, "it lacks fc1.bias; expected the 8 names"),
                (surplus, RuntimeError, "it has fc3.weight, which the model has not"),
                (shape, RuntimeError, "conv1.weight has shape \\(64, 1, 5, 5\\); the model expects \\(64, 1, 3, 3\\)"),
                (other, TypeError, "conv1.weight is a list; expected a torch.Tensor"),
                ([1], TypeError, "state is a list; expected a dict")):
            with self.assertRaisesRegex(kind, sentence):
                nncuda.load_state(model, wrong)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]))
        with self.assertRaisesRegex(RuntimeError, "(?s)Missing key.*fc1.bias"):
            model.load_state_dict(missing)  # torch.nn's own
        nncuda.load_state(model, state)
        self.assertTrue(torch.equal(model.fc2.bias, before["fc2.bias"] + 1))

    def test_pth_and_safetensors(self):
        folder = os.environ["NNCUDA_TEST_FOLDER"]
        source, model = nncuda.FashionMNISTCNN(), nncuda.FashionMNISTCNN()
        torch.save(source.state_dict(), folder + "/a.pth")
        nncuda.load_checkpoint(model, folder + "/a.pth")
        self.assertTrue(torch.equal(model.fc1.weight, source.fc1.weight))

        with open(folder + "/a.pth", "rb") as file:
            good = file.read()
        # Which exception PyTorch raises differs between its versions. Ours is the same one for all.
        for content in (b"", good[:1000], b"no checkpoint", b"cposix\nsystem\n(S'false'\ntR."):
            with open(folder + "/wrong.pth", "wb") as file:
                file.write(content)
            with self.subTest(content=content[:20]):
                with self.assertRaisesRegex(ValueError, "wrong.pth: cannot be read \\(.*Error.*expected a file of "
                                                        "torch.save") as seen:
                    nncuda.load_checkpoint(model, folder + "/wrong.pth")
                self.assertNotIn("weights_only", str(seen.exception))
        with self.assertRaisesRegex(RuntimeError, "it has 3, which the model has not"):
            nncuda.load_state(model, {**source.state_dict(), 3: torch.zeros(1)})

        header, data = {"__metadata__": {"epoch": "3"}}, b""
        slots = {"momentum_buffer." + name: value for name, value in source.state_dict().items()}
        for name, value in {**source.state_dict(), **slots}.items():
            content = value.numpy().tobytes()
            header[name] = {"dtype": "F32", "shape": list(value.shape),
                            "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(header).encode()
        good = struct.pack("<Q", len(text)) + text + data
        path = folder + "/b.safetensors"

        def load(content):
            with open(path, "wb") as file:
                file.write(content)
            return nncuda.load_checkpoint(nncuda.FashionMNISTCNN(), path)

        self.assertTrue(torch.equal(load(good).conv2.weight, source.conv2.weight))
        for content, sentence in ((good[:-1], "lies at"), (b"\1", "has 1 bytes"),
                                  (struct.pack("<Q", 1 << 60) + text, "says that its header has"),
                                  (struct.pack("<Q", 5) + b"hello", "not JSON"),
                                  (struct.pack("<Q", 2) + b"[]", "not an object"),
                                  (struct.pack("<Q", 99999) + b"[" * 99999, "not JSON"),
                                  (struct.pack("<Q", 76) + b'{"a":{"dtype":"F32","shape":[0,%d],"data_offsets":[0,0]}}'
                                   % 10 ** 20, "lies at"),
                                  (struct.pack("<Q", 8) + b'{"a":{}}', "tensor a has no dtype")):
            with self.assertRaisesRegex(ValueError, sentence):
                load(content)

    def test_tiny_imagenet_cnn(self):
        model = models.TinyImageNetCNN(classes=5, side=16, width=4)
        x = torch.randn(3, 3, 16, 16)
        self.close(model(x, probabilities=True).sum(1), torch.ones(3), 8 * EPS)
        model.eval()
        with torch.no_grad():
            h = x.double()
            state = {name: value.double() for name, value in model.state_dict().items()}
            for i in "123":
                h = F.conv2d(h, state["conv%s.weight" % i], padding=1)
                h = F.batch_norm(h, *(state["bn%s.%s" % (i, n)]
                                      for n in ("running_mean", "running_var", "weight", "bias")))
                h = F.max_pool2d(h.relu(), 2)
            h = F.linear(h.flatten(1), state["fc1.weight"], state["fc1.bias"]).relu()
            self.close(model(x), F.linear(h, state["fc2.weight"], state["fc2.bias"]), 1e-5)
        with self.assertRaisesRegex(ValueError, "side is 20; expected a multiple of 8"):
            models.TinyImageNetCNN(side=20)


OPTIMIZERS = [
    (optim.SGD, torch.optim.SGD, dict(lr=0.1)),
    (optim.SGD, torch.optim.SGD, dict(lr=0.05, momentum=0.9, weight_decay=0.01)),
    (optim.SGD, torch.optim.SGD, dict(lr=0.05, momentum=0.9, dampening=0.1)),
    (optim.SGD, torch.optim.SGD, dict(lr=0.05, momentum=0.9, nesterov=True)),
    (optim.Adam, torch.optim.Adam, dict(lr=0.01, weight_decay=0.1)),
    (optim.AdamW, torch.optim.AdamW, dict(lr=0.01, betas=(0.8, 0.99), weight_decay=0.1)),
]
SHAPES = [(3, 5), (127,), (1,), (31, 33), (0,)]


class Optimizers(Case):
    def parameters(self, dtype, device):
        generator = torch.Generator().manual_seed(2)
        return [nn.Parameter(torch.randn(shape, generator=generator).to(device, dtype)) for shape in SHAPES]

    def step(self, optimizer, parameters, number):
        """With gradients that every optimizer of this test gets."""
        generator = torch.Generator().manual_seed(100 + number)
        for i, p in enumerate(parameters):
            g = torch.randn(p.shape, generator=generator)
            p.grad = None if i == 1 and number == 0 else g.to(p.device, p.dtype)  # one joins later
        optimizer.step()

    def test_six_steps(self):
        for device in self.each(small=True):
            for ours, theirs, options in OPTIMIZERS:
                mine, reference = self.parameters(torch.float32, device), self.parameters(torch.float64, "cpu")
                a, b = ours(mine, **options), theirs(reference, **options)
                for number in range(6):
                    self.step(a, mine, number)
                    self.step(b, reference, number)
                for p, q in zip(mine, reference):
                    self.close(p, q, 6 * 8 * EPS * 4, "%s %r" % (ours.__name__, options))

    def test_states_go_back_and_forth(self):
        for ours, theirs, options in OPTIMIZERS:
            mine, reference = self.parameters(torch.float32, "cpu"), self.parameters(torch.float32, "cpu")
            a, b = ours(mine, **options), theirs(reference, **options)
            for number in (1, 2):
                self.step(a, mine, number)
                self.step(b, reference, number)
            for first, second, parameters in ((a, theirs, reference), (b, ours, mine)):
                with torch.no_grad():
                    for p, q in zip(parameters, first.param_groups[0]["params"]):
                        p.copy_(q)
                second = second(parameters, **options)
                second.load_state_dict(first.state_dict())
                third = copy.deepcopy(first)
                for number in (3, 4):
                    self.step(second, parameters, number)
                    self.step(third, third.param_groups[0]["params"], number)
                for p, q in zip(parameters, third.param_groups[0]["params"]):
                    self.close(p, q, 4 * 8 * EPS * 4, theirs.__name__)

    def test_a_state_that_does_not_fit(self):
        for ours, name in ((optim.SGD, "momentum_buffer"), (optim.AdamW, "exp_avg_sq")):
            p = nn.Parameter(torch.ones(3, 4))
            optimizer = ours([p], **(dict(momentum=0.9) if ours is optim.SGD else {}))
            p.grad = torch.ones(3, 4)
            optimizer.step()
            before = optimizer.state[p][name].clone()
            for wrong, sentence in ((torch.zeros(1), "is \\(1,\\), torch.float32; expected \\(3, 4\\)"),
                                    ([1.0], "is a list; expected \\(3, 4\\)")):
                state = copy.deepcopy(optimizer.state_dict())
                state["state"][0][name] = wrong
                with self.assertRaisesRegex(ValueError, name + " of a parameter of shape \\(3, 4\\) " + sentence):
                    optimizer.load_state_dict(state)
                self.assertTrue(torch.equal(optimizer.state[p][name], before))
            expected = torch.arange(12.0).view(3, 4)
            state = copy.deepcopy(optimizer.state_dict())
            state["state"][0][name] = expected.t().contiguous().t()  # of a parameter that was not contiguous
            optimizer.load_state_dict(state)
            optimizer.step()
            self.close(optimizer.state[p][name], 0.9 * expected + 1 if ours is optim.SGD else 0.999 * expected + 0.001,
                       1e-5)

    def test_options_without_a_kernel(self):
        for ours, theirs, option in ((optim.SGD, torch.optim.SGD, "maximize"),
                                     (optim.Adam, torch.optim.Adam, "amsgrad")):
            p = nn.Parameter(torch.ones(3))
            optimizer = ours([p], lr=0.25)
            with self.assertRaisesRegex(NotImplementedError, "%s is True; expected False" % option):
                optimizer.load_state_dict(theirs([p], lr=0.1, **{option: True}).state_dict())
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.25)

    def test_a_step_is_a_change_that_autograd_sees(self):
        for device in self.each():
            for ours in (optim.SGD, optim.AdamW):
                p = nn.Parameter(torch.ones(3, 3, device=device))
                optimizer, x = ours([p], lr=0.1), torch.ones(2, 3, device=device, requires_grad=True)
                loss = (x @ p).square().sum()
                loss.backward(retain_graph=True)
                optimizer.step()
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    loss.backward()

    def test_closure(self):
        p = nn.Parameter(torch.ones(3))
        optimizer = optim.SGD([p], lr=0.5)

        def closure():
            optimizer.zero_grad()
            loss = p.square().sum()
            loss.backward()
            return loss

        self.assertEqual(float(optimizer.step(closure)), 3.0)
        self.close(p, torch.zeros(3), EPS)
