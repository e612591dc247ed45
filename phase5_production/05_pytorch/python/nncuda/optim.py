"""Optimizers: one launch for all tensors of a model (csrc: nncuda_sgd_step, nncuda_adam_step).

Arguments, the names of what is kept for each parameter, and the results are those of torch.optim's SGD, Adam and AdamW:
a state_dict() of one is loaded by the other.
"""
import torch

from . import backend
from ._checks import kind, shape_text


def _number(op, name, value, low, high=float("inf"), open_end=False):
    if isinstance(value, torch.Tensor):
        raise TypeError("%s: %s is a torch.Tensor; expected a number" % (op, name))
    if not low <= value <= high or open_end and value == high:
        raise ValueError("%s: %s is %r; expected %s" % (op, name, value,
                                                        "%g to %g" % (low, high) if high < float("inf")
                                                        else "at least %g" % low))
    return value


def _changed_in_place(weights):
    """Autograd counts the changes of a tensor: a backward pass that needs the weights as they were before the step then
    raises an exception, and does not compute with the new ones. It does not see what a library writes."""
    increment = getattr(torch.autograd.graph, "increment_version", None)  # PyTorch 2
    for p in weights:
        increment(p) if increment else p.view(-1)[:0].zero_()


class _Fused(torch.optim.Optimizer):
    """What they have in common: which parameters take part in a step, by device."""

    kept = ()  # names of what the state has for a parameter, of its shape

    def load_state_dict(self, state_dict):
        """Of this class or of its twin in torch.optim. One that does not fit raises, and leaves all as it was."""
        before = {"state": self.state, "param_groups": self.param_groups}
        super().load_state_dict(state_dict)
        try:
            self._check_loaded()
        except (ValueError, NotImplementedError):
            self.__setstate__(before)
            raise

    def _check_loaded(self):
        """torch.optim checks no shapes, and the kernel would write behind the end of a tensor that is too small."""
        op = type(self).__name__
        for group in self.param_groups:
            for name in ("maximize", "amsgrad"):
                if group.get(name):
                    raise NotImplementedError("%s: %s is %r; expected False: there is no kernel for it; use "
                                              "torch.optim.%s" % (op, name, group[name], op))
        for p, state in self.state.items():
            for name in self.kept:
                x = state.get(name)
                if x is None and "momentum_buffer" in self.kept:  # before its first step
                    continue
                if not isinstance(x, torch.Tensor) or x.shape != p.shape or x.dtype is not p.dtype:
                    seen = "%s, %s" % (shape_text(x.shape), x.dtype) if isinstance(x, torch.Tensor) else kind(x)
                    raise ValueError("%s: %s of a parameter of shape %s is %s; expected %s, %s: is the state of "
                                     "another model?" % (op, name, shape_text(p.shape), seen, shape_text(p.shape),
                                                         p.dtype))
                state[name] = x.contiguous()

    def _tensors(self, group):
        """device -> (parameters, gradients), those that have a gradient."""
        op, devices = type(self).__name__, {}
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            if p.dtype is not torch.float32 or g.dtype is not torch.float32:
                raise TypeError("%s: a parameter of shape %s has dtype %s, its gradient %s; expected torch.float32"
                                % (op, shape_text(p.shape), p.dtype, g.dtype))
            if g.is_sparse:
                raise TypeError("%s: the gradient of a parameter of shape %s is sparse; expected a dense one"
                                % (op, shape_text(p.shape)))
            if not p.is_contiguous():
                raise ValueError("%s: a parameter of shape %s is not contiguous (strides %s); expected a contiguous "
                                 "one, because it is written into: model.to(memory_format=torch.contiguous_format)"
                                 % (op, shape_text(p.shape), p.stride()))
            if p.numel():
                weights, gradients = devices.setdefault(p.device, ([], []))
                weights.append(p)
                gradients.append(g if g.is_contiguous() else g.contiguous())
        return devices

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weights, gradients in self._tensors(group).values():
                self._step(group, weights, gradients)
                _changed_in_place(weights)
        return loss


class SGD(_Fused):
    kept = ("momentum_buffer",)

    def __init__(self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            _number("SGD", name, value, 0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("SGD: nesterov with momentum %r and dampening %r; expected a momentum above 0 and no "
                             "dampening" % (momentum, dampening))
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov))

    def _step(self, group, weights, gradients):
        arguments = [float(group[name]) for name in ("lr", "momentum", "dampening")] + [bool(group["nesterov"]),
                                                                                        float(group["weight_decay"])]
        if not group["momentum"]:
            backend.ops.sgd_step(weights, gradients, [], *arguments, True)
            return
        # A parameter that joins later has no buffer yet: its first step is another one than that of the rest.
        for first in (False, True):
            chosen = [i for i, p in enumerate(weights) if (self.state[p].get("momentum_buffer") is None) == first]
            if not chosen:
                continue
            if first:
                for i in chosen:
                    self.state[weights[i]]["momentum_buffer"] = torch.zeros_like(weights[i])
            part = [weights[i] for i in chosen]
            backend.ops.sgd_step(part, [gradients[i] for i in chosen], [self.state[p]["momentum_buffer"] for p in part],
                                 *arguments, first)


class Adam(_Fused):
    """weight_decay is added to the gradient (L2)."""
    decoupled = False
    kept = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        op = type(self).__name__
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            _number(op, name, value, 0)
        for i in (0, 1):
            _number(op, "betas[%d]" % i, betas[i], 0, 1, open_end=True)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def _step(self, group, weights, gradients):
        by_step = {}
        for p, g in zip(weights, gradients):
            state = self.state[p]
            if not state:
                # As torch.optim keeps it, so that it can load what this one has saved.
                state["step"] = torch.tensor(0.0)
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
            state["step"] += 1
            by_step.setdefault(int(state["step"]), []).append((p, g, state["exp_avg"], state["exp_avg_sq"]))
        for step, entries in by_step.items():
            backend.ops.adam_step(*map(list, zip(*entries)), float(group["lr"]), *map(float, group["betas"]),
                                  float(group["eps"]), float(group["weight_decay"]), self.decoupled, step)


class AdamW(Adam):
    """weight_decay shrinks the weights, apart from the gradient."""
    decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, lr, betas, eps, weight_decay)
