"""The tables in which the parts of a model are looked up by name, and what each entry has to offer.

Importing this file imports no torch. A project outside the package registers by decorator::

    from fastreid_lite.modeling import LOSS_REGISTRY

    @LOSS_REGISTRY.register()
    class CenterLoss: ...
"""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.registry import Registry

# An entry is a function `cfg -> nn.Module` whose forward takes (B, 3, H, W) float images, normalised already, and
# returns a map (B, C, h, w), and whose integer attribute `feat_dim` is C. A network of tokens returns (B, C, 1, 1).
BACKBONE_REGISTRY = Registry("backbone", "MODEL.BACKBONE.NAME")

# An entry is an nn.Module class with a classmethod `from_config(cfg, feat_dim) -> dict` of its keyword arguments. Its
# forward takes (features (B, C, h, w), targets (B,) int64 or None): in training it returns a dict with some of
# "cls_outputs" (B, classes; with margin and scale, for the loss), "pred_class_logits" (B, classes; without margin) and
# "features" (B, D; for losses between images), in evaluation the features (B, D).
HEADS_REGISTRY = Registry("head", "MODEL.HEADS.NAME")

# An entry is a class with a classmethod `from_config(cfg) -> dict` of its keyword arguments. An instance is called with
# (outputs of the head in training, targets (B,) int64) and returns a dict of scalar tensors by name ("loss_..."), the
# factor of the loss applied. One that has parameters is an nn.Module, and they train with the model.
LOSS_REGISTRY = Registry("loss", "MODEL.LOSSES.NAME")

# An entry is an nn.Module class with a classmethod `from_config(cfg) -> dict` of its keyword arguments. It is called
# with a batch (a dict with "images" and, in training, "targets") and returns a dict of scalar losses in training, and
# features (B, D) float32 in evaluation, where an image tensor is taken too.
META_ARCH_REGISTRY = Registry("meta architecture", "MODEL.META_ARCHITECTURE")

# An entry is an nn.Module class that can be made without arguments: (B, C, h, w) -> (B, C, 1, 1).
POOLING_REGISTRY = Registry("pooling layer", "MODEL.HEADS.POOL_LAYER")

# An entry is a subclass of `layers.classifiers.Classifier`.
CLASSIFIER_REGISTRY = Registry("classifier layer", "MODEL.HEADS.CLS_LAYER")


def construct(registry: Registry, name: str, *context: Any) -> Any:
    """The class registered as ``name``, made from ``from_config(*context)``.

    Args:
        registry: where ``name`` is looked up.
        context: what the entry's ``from_config`` takes: the config, and for a head the number of features too.

    Raises:
        KeyError: no such name.
        TypeError: the entry has no ``from_config``.
    """
    entry = registry.get(name)
    if not hasattr(entry, "from_config"):
        raise TypeError(
            f"the {registry.kind} {name!r} ({registry.config_key}) has no classmethod from_config, which turns a "
            "config into its keyword arguments; add one"
        )
    return entry(**entry.from_config(*context))
