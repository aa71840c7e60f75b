"""First values of weights."""

from __future__ import annotations

from torch import nn


def init_kaiming(module: nn.Module) -> None:
    """Convolutions normal with variance 2 / (outputs x kernel area), linear layers normal(0, 0.01), biases 0.

    He et al., Delving deep into rectifiers, ICCV 2015, equation 14. Norm layers keep scale 1 and bias 0.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.01)
        else:
            continue
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
