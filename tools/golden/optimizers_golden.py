#!/usr/bin/env python3
"""Makes common/nn/testdata/optimizers_golden.safetensors: hundred steps of each optimizer as PyTorch computes them in
float64, for common/nn/optimizer_test.

    python3 tools/golden/optimizers_golden.py common/nn/testdata/optimizers_golden.safetensors    (needs python3-torch)

A tensor per optimizer, (steps, parameters): the parameters after each step; its settings are in the metadata. The
parameters at the beginning and the gradients of every step come from a formula that both sides compute (Philox by a
name), so the file has none of them. The gradients of the parameters differ in size by a factor of 1000; those of the
last parameter are 0. The first DECAYED parameters have the weight decay, the others none.

PyTorch 1.13 has no Muon. Its reference is written here, and in another way than the kernels compute it: the singular
value decomposition instead of Newton-Schulz, whose polynomial is applied to the singular values.
tools/peers/optimizers_torch.py compares with torch.optim.Muon where there is a PyTorch that has it.
"""
import math
import sys

import numpy
import torch

from lenet_golden import write_safetensors
from network_golden import uniform

STEPS, PARAMETERS, DECAYED = 100, 7, 4
SHAPES = [(5, 3), (4, 6)]  # of Muon's matrices: higher than wide, wider than high

# Of torch.optim; "rmsprop"'s beta2 is PyTorch's alpha. Names and values are those of OptimizerSettings.
RUNS = {
    "sgd_plain": ("sgd", dict(lr=0.1, weight_decay=0.05)),
    "sgd_momentum": ("sgd", dict(lr=0.1, momentum=0.9, weight_decay=0.05)),
    "sgd_dampening": ("sgd", dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05)),
    "sgd_nesterov": ("sgd", dict(lr=0.1, momentum=0.9, nesterov=1, weight_decay=0.05)),
    "adam": ("adam", dict(lr=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8)),
    "adam_decay": ("adam", dict(lr=0.01, beta1=0.8, beta2=0.99, epsilon=1e-3, weight_decay=0.05)),
    "adamw": ("adamw", dict(lr=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.3)),
    "rmsprop": ("rmsprop", dict(lr=0.01, beta2=0.99, epsilon=1e-8)),
    "rmsprop_decay": ("rmsprop", dict(lr=0.01, beta2=0.9, epsilon=1e-3, weight_decay=0.05)),
    "rmsprop_centered": ("rmsprop", dict(lr=0.01, beta2=0.99, epsilon=1e-8, centered=1)),
    "rmsprop_momentum": ("rmsprop", dict(lr=0.01, beta2=0.99, epsilon=1e-8, momentum=0.9, weight_decay=0.05)),
    "rmsprop_all": ("rmsprop", dict(lr=0.01, beta2=0.99, epsilon=1e-8, momentum=0.5, centered=1, weight_decay=0.05)),
}
MUON = dict(lr=0.02, momentum=0.95, weight_decay=0.1)


def numbers(name, count):
    """As optimizer_test has them: float32 values."""
    return torch.from_numpy(uniform(name, count).astype(numpy.float32)).double()


def gradients():
    """(steps, parameters), of the sizes 0.01, 0.1, 1, 10, 0.01, 0.1, 0."""
    scale = torch.tensor([0.0 if i == PARAMETERS - 1 else float(numpy.float32(10.0 ** (i % 4 - 2)))
                          for i in range(PARAMETERS)], dtype=torch.float64)
    drawn = numbers("gradients", STEPS * PARAMETERS).reshape(STEPS, PARAMETERS)
    return ((drawn + 0.25) * scale).float().double()


def optimizer_of(kind, s, groups):
    lr, decay = s["lr"], s.get("weight_decay", 0)
    groups[0]["weight_decay"], groups[1]["weight_decay"] = decay, 0
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=lr, momentum=s.get("momentum", 0), dampening=s.get("dampening", 0),
                               nesterov=bool(s.get("nesterov", 0)))
    if kind == "rmsprop":
        return torch.optim.RMSprop(groups, lr=lr, alpha=s["beta2"], eps=s["epsilon"], momentum=s.get("momentum", 0),
                                   centered=bool(s.get("centered", 0)))
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](groups, lr=lr, betas=(s["beta1"], s["beta2"]),
                                                                        eps=s["epsilon"])


def run(kind, settings):
    start = numbers("parameters", PARAMETERS)
    decayed, others = torch.nn.Parameter(start[:DECAYED].clone()), torch.nn.Parameter(start[DECAYED:].clone())
    optimizer = optimizer_of(kind, settings, [{"params": [decayed]}, {"params": [others]}])
    path = []
    for gradient in gradients():
        decayed.grad, others.grad = gradient[:DECAYED].clone(), gradient[DECAYED:].clone()
        optimizer.step()
        path.append(torch.cat([decayed.detach(), others.detach()]))
    return torch.stack(path)


def muon(shape, name):
    """By the singular values: s -> 3.4445 s - 4.7750 s^3 + 2.0315 s^5, five times."""
    w = numbers(name, math.prod(shape)).reshape(shape).numpy().copy()
    momentum, path = numpy.zeros(shape), []
    drawn = numbers(name + " gradients", STEPS * math.prod(shape)).reshape(STEPS, *shape).numpy()
    lr, mu, decay = MUON["lr"], MUON["momentum"], MUON["weight_decay"]
    for gradient in drawn:
        momentum = mu * momentum + (1 - mu) * gradient
        u, s, v = numpy.linalg.svd(mu * momentum + (1 - mu) * gradient, full_matrices=False)
        s = s / numpy.sqrt((s * s).sum())
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        w = w - lr * decay * w - lr * 0.2 * math.sqrt(max(shape)) * (u @ numpy.diag(s) @ v)
        path.append(torch.from_numpy(w.reshape(-1).copy()))
    return torch.stack(path)


def main(path):
    tensors = {name: run(kind, settings) for name, (kind, settings) in RUNS.items()}
    metadata = {"made_by": "tools/golden/optimizers_golden.py", "torch": torch.__version__}
    metadata.update({name: " ".join([kind] + ["%s=%r" % item for item in settings.items()])
                     for name, (kind, settings) in RUNS.items()})
    for shape in SHAPES:
        name = "muon_%dx%d" % shape
        tensors[name] = muon(shape, name)
        metadata[name] = " ".join(["muon"] + ["%s=%r" % item for item in MUON.items()])
    write_safetensors(path, tensors, metadata)
    for name, tensor in tensors.items():
        print("%-18s" % name, " ".join("%.6f" % value for value in tensor[-1]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
