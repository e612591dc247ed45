"""What the tests share: where operations run, and how results are compared with PyTorch's in double.

A place is (device of the tensors, how the CPU computes, backend). Without a GPU: the library's C functions, and, at
small sizes, the emulated kernels. With a GPU and a library for CUDA: its kernels, too. Where the extension is built,
everything goes through it, else through ctypes: run.py --extension is the second run.
"""
import contextlib
import os
import unittest

import torch

import nncuda

EPS = 2.0 ** -24  # half a unit in the last place of 1.0f: the relative error of one rounding


def extension_built():
    return nncuda.backend._extension is not None or nncuda.backend._installed() is not None


def places(small=False):
    """Where to run. small: also on the emulated GPU, which is slow."""
    backend = "extension" if extension_built() else "ctypes"
    found = [("cpu", "cpu", backend)]
    if nncuda.library().emulated:
        found += [("cpu", "emulated", backend)] * small
    elif torch.cuda.is_available():
        found.append(("cuda", "cpu", backend))
    return found


def go(place):
    """From now on in this thread."""
    _, host, backend = place
    nncuda.set_backend(backend)
    nncuda._library._thread.host = host
    nncuda._library._changed()


@contextlib.contextmanager
def at(place):
    before = (None, nncuda._library._thread.host, nncuda.backend.name)
    go(place)
    try:
        yield
    finally:
        go(before)


class Case(unittest.TestCase):
    place = None

    def each(self, small=False):
        """for device in self.each(): at each place. A failure there names it."""
        self.addCleanup(go, (None, None, nncuda.backend.name))
        for self.place in places(small):
            go(self.place)
            torch.manual_seed(7)
            yield self.place[0]

    def _formatMessage(self, message, standard):
        return super()._formatMessage(message, standard) + (" (at %s: %s, %s)" % self.place if self.place else "")

    def close(self, ours, reference, tolerance, what="result"):
        """Every element within the tolerance; NaN is not close to anything."""
        ours, reference = ours.detach().cpu().double(), reference.detach().cpu().double()
        self.assertEqual(ours.shape, reference.shape, what)
        error = (ours - reference).abs()
        worst = float(error.max()) if error.numel() else 0.0
        if not worst <= tolerance:
            i = int(torch.where(error.isnan(), torch.full_like(error, float("inf")), error).argmax())
            self.fail("%s: element %d of shape %s is %g; expected %g: the error %.3g is above %.3g"
                      % (what, i, tuple(ours.shape), ours.flatten()[i], reference.flatten()[i],
                         float(error.flatten()[i]), tolerance))

    def same_as(self, ours, theirs, inputs, terms, device, magnitude=None):
        """ours(*inputs) in float32 and theirs(*inputs) in double: results, and the gradients of sum(g * y) for a random
        g. terms: how many products an element sums up, in forward and backward; each is rounded, so the bound of the
        error is terms * EPS * (the sum of the products' absolute values), for which the largest element times
        `magnitude` stands."""
        mine = [x.to(device).requires_grad_(x.is_floating_point()) for x in (x.clone() for x in inputs)]
        reference = [x.double().requires_grad_() if x.is_floating_point() else x for x in (x.clone() for x in inputs)]
        y, z = ours(*mine), theirs(*reference)
        g = torch.randn(z.shape)
        y.backward(g.to(device))
        z.backward(g.double())
        scale = magnitude or terms ** 0.5
        self.close(y, z, 2 * terms ** 0.5 * scale * EPS * max(1.0, float(z.abs().max())), "forward")
        for i, (a, b) in enumerate(zip(mine, reference)):
            if a.requires_grad:
                self.close(a.grad, b.grad, 2 * terms ** 0.5 * scale * EPS * max(1.0, float(b.grad.abs().max())),
                           "gradient of input %d" % i)
        return y


def needs(condition, reason):
    return unittest.skipUnless(condition, reason)


def temporary_folder():
    return os.environ.get("TEST_TMPDIR") or None
