"""Training loops: Fashion-MNIST, and what they share with tiny_imagenet.py."""
import sys
import time

import torch

from . import data, functional, optim
from .models import FashionMNISTCNN

_OPTIMIZERS = {
    "sgd": lambda parameters, lr: optim.SGD(parameters, lr=lr, momentum=0.9, weight_decay=5e-4),
    "adam": lambda parameters, lr: optim.Adam(parameters, lr=lr),
    "adamw": lambda parameters, lr: optim.AdamW(parameters, lr=lr),
}
RATES = {"sgd": 0.05, "adam": 1e-3, "adamw": 1e-3}


def pick_device(device=None):
    """A torch.device; None: the GPU where there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(device)
    except RuntimeError:
        raise ValueError("device is %r; expected 'cpu', 'cuda' or 'cuda:N'" % (device,)) from None
    if device.type not in ("cpu", "cuda"):
        raise ValueError("device is %s; expected 'cpu', 'cuda' or 'cuda:N'" % device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("device is %s, but this PyTorch sees no GPU; expected 'cpu'" % device)
    return device


def _batches(source, batch_size):
    """(images, labels) of data.Images, or of anything that gives such pairs: a DataLoader."""
    return source.batches(batch_size) if isinstance(source, data.Images) else source


@torch.no_grad()
def evaluate(model, source, batch_size=1000, device=None):
    """(loss, accuracy) over data.Images or a DataLoader; the model is in evaluation mode meanwhile."""
    device = next(model.parameters()).device if device is None else pick_device(device)
    was_training = model.training
    model.eval()
    loss, right, count = 0.0, torch.zeros((), dtype=torch.int64, device=device), 0
    losses = []
    try:
        for images, labels in _batches(source, batch_size):
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            losses.append(functional.cross_entropy(logits, labels, reduction="sum"))
            right += (logits.argmax(1) == labels).sum()
            count += len(labels)
    finally:
        model.train(was_training)
    if not count:
        raise ValueError("evaluate: the data has no images; expected at least one")
    loss = float(torch.stack(losses).double().sum())
    return loss / count, int(right) / count


def evaluate_accuracy(model, test_data=None, batch_size=1000, device=None, data_dir=None):
    """The share of right answers, 0 to 1. test_data: data.Images or a DataLoader; None: Fashion-MNIST's test set."""
    if test_data is None:
        test_data = data.fashion_mnist(data_dir)[1]
    return evaluate(model, test_data, batch_size, device)[1]


def train(model, optimizer, training, test, epochs, batch_size, seed=1, device=None, log=None):
    """Trains with cross-entropy; gives the history, lists of one value for each epoch. The loss stays on the device
    until the epoch's end: reading it after each step would make Python wait for the GPU. log: a file for a line per
    epoch, or None."""
    if batch_size < 1 or epochs < 1:
        raise ValueError("train: epochs is %r, batch_size is %r; expected at least 1" % (epochs, batch_size))
    device = pick_device(device)
    training, test = training.to(device), test.to(device)
    order = torch.Generator().manual_seed(seed)
    history = {name: [] for name in ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "images_per_second",
                                     "seconds")}
    for epoch in range(epochs):
        model.train()
        begin = time.perf_counter()
        loss_sum = torch.zeros((), device=device)
        right = torch.zeros((), dtype=torch.int64, device=device)
        for images, labels in training.batches(batch_size, order):
            optimizer.zero_grad(set_to_none=True)
            logits = model(images)
            loss = functional.cross_entropy(logits, labels)
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach() * len(labels)
            right += (logits.detach().argmax(1) == labels).sum()
        train_loss, train_accuracy = float(loss_sum) / len(training), int(right) / len(training)  # waits for the device
        seconds = time.perf_counter() - begin
        if not train_loss < float("inf"):
            raise RuntimeError("train: the loss of epoch %d is %r; the weights are of no use any more: try a smaller lr"
                               % (epoch + 1, train_loss))
        test_loss, test_accuracy = evaluate(model, test, device=device)
        for name, value in zip(history, (train_loss, train_accuracy, test_loss, test_accuracy, len(training) / seconds,
                                         seconds)):
            history[name].append(value)
        if log:
            print("epoch %2d  train loss %.4f  train accuracy %5.2f %%  test loss %.4f  test accuracy %5.2f %%  %.0f "
                  "images/s"
                  % (epoch + 1, train_loss, 100 * train_accuracy, test_loss, 100 * test_accuracy,
                     len(training) / seconds), file=log, flush=True)
    return history


def train_fashion_mnist_cuda(epochs=5, batch_size=64, lr=None, data_dir=None, device=None, seed=1, optimizer="sgd",
                             model=None, train_images=None, test_images=None, checkpoint=None, verbose=True):
    """Trains FashionMNISTCNN on Fashion-MNIST with our kernels; gives (model, history).

    lr           the learning rate; None: 0.05 with SGD (momentum 0.9, weight decay 0.0005), 0.001 with Adam and AdamW
    data_dir     a directory with the four IDX files; None: NN_FASHION_MNIST_DIR, then Debian's dataset-fashion-mnist
    device       "cuda", "cuda:1", "cpu" (the C functions); None: a GPU where there is one
    optimizer    "sgd", "adam", "adamw"
    model        one to train further
    train_images, test_images   only so many, for a quick try
    checkpoint   a file for torch.save(model.state_dict()) after training
    """
    if optimizer not in _OPTIMIZERS:
        raise ValueError("train_fashion_mnist_cuda: optimizer is %r; expected 'sgd', 'adam' or 'adamw'" % (optimizer,))
    device = pick_device(device)
    training, test = data.fashion_mnist(data_dir)
    training, test = training.first(train_images), test.first(test_images)
    if model is None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = FashionMNISTCNN()
    model = model.to(device)
    rate = RATES[optimizer] if lr is None else lr
    history = train(model, _OPTIMIZERS[optimizer](model.parameters(), rate), training, test, epochs, batch_size, seed,
                    device, sys.stderr if verbose else None)
    if checkpoint:
        torch.save(model.state_dict(), checkpoint)
    return model, history
