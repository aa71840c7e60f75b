"""INPUT: what happens to an image before the model sees it, in this order. Probabilities are from 0 to 1."""

from __future__ import annotations

from ..node import CfgNode


def input_defaults() -> CfgNode:
    node = CfgNode()
    # Size in pixels (height, width) to which images are resized in training and in evaluation.
    node.SIZE_TRAIN = [256, 128]
    node.SIZE_TEST = [256, 128]

    # AutoAugment with this probability.
    node.AUTOAUG = CfgNode({"ENABLED": False, "PROB": 0.0})

    node.CROP = CfgNode()
    # A random part of the image, resized to SIZE (height, width); in evaluation the centre.
    node.CROP.ENABLED = False
    node.CROP.SIZE = [224, 224]
    # Smallest and largest part, as a share of the area, and ratio of width to height.
    node.CROP.SCALE = [0.16, 1]
    node.CROP.RATIO = [3.0 / 4.0, 4.0 / 3.0]

    node.PADDING = CfgNode()
    # SIZE pixels are added on each side, then a random window of the old size is cut out. What is added is, by MODE,
    # "constant" (black), "edge", "reflect" or "symmetric".
    node.PADDING.ENABLED = False
    node.PADDING.MODE = "constant"
    node.PADDING.SIZE = 10

    # Mirrored left to right with this probability.
    node.FLIP = CfgNode({"ENABLED": False, "PROB": 0.5})

    # Colour jitter with this probability; each strength is the largest change, as a share (of the colour circle for
    # the hue).
    node.CJ = CfgNode(
        {"ENABLED": False, "PROB": 0.5, "BRIGHTNESS": 0.15, "CONTRAST": 0.15, "SATURATION": 0.1, "HUE": 0.1}
    )

    # A random rotation, scale and shear.
    node.AFFINE = CfgNode({"ENABLED": False})

    # AugMix with this probability.
    node.AUGMIX = CfgNode({"ENABLED": False, "PROB": 0.0})

    # Random erasing with this probability: a rectangle is filled with VALUE (R, G, B; 0 to 255).
    node.REA = CfgNode({"ENABLED": False, "PROB": 0.5, "VALUE": [0.485 * 255, 0.456 * 255, 0.406 * 255]})

    # A patch of an earlier image is pasted in with this probability; refused, since an image would depend on others.
    node.RPT = CfgNode({"ENABLED": False, "PROB": 0.5})
    return node
