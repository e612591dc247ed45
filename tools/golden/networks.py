"""The networks of phase3_cnn's lessons 12, 13 and 15, and of phase5_production's lesson 3, in PyTorch, with the names
that ours have."""
from torch import nn
from torch.nn import functional


class Fashion(nn.Module):
    """phase3_cnn/13_fashion_mnist/fashion_cnn.cuh"""
    image, classes = (1, 28, 28), 10

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 3)
        self.conv2 = nn.Conv2d(64, 128, 3)
        self.fc1 = nn.Linear(3200, 256)
        self.fc2 = nn.Linear(256, 10)

    def forward(self, x):
        x = functional.max_pool2d(self.conv1(x), 2).relu()
        x = functional.max_pool2d(self.conv2(x), 2).relu()
        return self.fc2(self.fc1(x.flatten(1)).relu())


class LeNet(nn.Module):
    """LeNet-5 of phase3_cnn/15_cifar10/cifar_cnn.cuh."""
    image, classes = (3, 32, 32), 10

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, self.classes)

    def forward(self, x):
        x = functional.max_pool2d(self.conv1(x).relu(), 2)
        x = functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


class LeNetMnist(LeNet):
    """phase3_cnn/12_lenet_mnist/lenet.cuh"""
    image = (1, 28, 28)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.downsample = nn.Identity()
        if stride > 1 or channels != filters:
            self.downsample = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        h = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(h)) + self.downsample(x)).relu()


class ResNet(nn.Module):
    """The residual network of phase3_cnn/15_cifar10/cifar_cnn.cuh."""
    image, classes = (3, 32, 32), 100

    def __init__(self, classes=None):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2))
        self.layer3 = nn.Sequential(Block(32, 64, 2))
        self.fc1 = nn.Linear(64, classes or self.classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.bn1(self.conv1(x)).relu())))
        return self.fc1(x.mean((2, 3)))


class ResNet18Thin(nn.Module):
    """phase5_production/03_resnet18/resnet18.cuh with 8 channels where torchvision has 64, so that a test is quick."""
    image, classes = (3, 64, 64), 10

    def __init__(self, width=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        for stage in range(4):
            channels, filters = width << max(stage - 1, 0), width << stage
            blocks = nn.Sequential(Block(channels, filters, 1 if stage == 0 else 2), Block(filters, filters, 1))
            setattr(self, "layer%d" % (stage + 1), blocks)
        self.fc = nn.Linear(width << 3, self.classes)

    def forward(self, x):
        x = functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


NETWORKS = {"fashion": Fashion, "lenet": LeNet, "lenet_mnist": LeNetMnist, "resnet": ResNet, "resnet18": ResNet18Thin}
