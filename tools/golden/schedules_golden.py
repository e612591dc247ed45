#!/usr/bin/env python3
"""Makes common/nn/testdata/schedules_golden.h: the learning rates of PyTorch's schedulers, for schedule_test.

    python3 tools/golden/schedules_golden.py > common/nn/testdata/schedules_golden.h && tools/format      (needs python3-torch)

The highest rate is 1, so that a rate is a factor.
"""
import warnings

import torch
from torch.optim import lr_scheduler

from arrays import head

STEPS = 40


def optimizer(lr=1.0):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def rate(opt):
    return opt.param_groups[0]["lr"]


def by_steps(scheduler_of, steps=STEPS):
    opt = optimizer()
    scheduler = scheduler_of(opt)
    rates = []
    for i in range(steps):
        if i > 0:
            scheduler.step()
        rates.append(rate(opt))
    return rates


def in_the_middle_of_steps(scheduler_of, steps):
    opt = optimizer()
    scheduler = scheduler_of(opt)
    rates = []
    for i in range(steps):
        scheduler.step(i + 0.5)
        rates.append(rate(opt))
    return rates


def plateau(losses):
    opt = optimizer()
    scheduler = lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=2, threshold=0.05, cooldown=1, min_lr=0.05)
    rates = []
    for loss in losses:
        scheduler.step(loss)
        rates.append(rate(opt))
    return rates


def print_array(name, values):
    print("__attribute__((unused)) static const double golden_%s[] = {%s};" % (name, ", ".join("%.17g" % v for v in values)))


def main():
    warnings.simplefilter("ignore")  # there are no steps of the optimizer
    torch.manual_seed(2026)
    print(head())
    print_array("step", by_steps(lambda opt: lr_scheduler.StepLR(opt, step_size=8, gamma=0.5)))
    print_array("exponential", by_steps(lambda opt: lr_scheduler.ExponentialLR(opt, gamma=0.9)))
    print_array("restarts", in_the_middle_of_steps(
        lambda opt: lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=5, T_mult=2, eta_min=0.01), 35))
    print_array("onecycle", by_steps(lambda opt: lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=STEPS)))
    # falls, rests, falls, rests for long, rises
    losses = [2.3, 1.9, 1.5, 1.45, 1.5, 1.44, 1.6, 1.2, 1.19, 1.21, 1.18, 1.17, 0.9, 0.91, 0.9, 0.89]
    losses += (0.88 + 0.02 * torch.rand(20).double()).tolist() + [0.5, 0.6, 0.7, 0.8]
    print_array("losses", losses)
    print_array("plateau", plateau(losses))


if __name__ == "__main__":
    main()
