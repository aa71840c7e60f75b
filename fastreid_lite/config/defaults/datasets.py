"""DATASETS: which images, from where, and how they are split."""

from __future__ import annotations

from ..node import CfgNode


def datasets_defaults() -> CfgNode:
    node = CfgNode()
    # The sets to train on, together. Each is a name in the registry, or "ImageFolderReID:PATH" or "CsvReID:PATH" with a
    # path that is absolute or below ROOT. `python tools/list_datasets.py` lists the names.
    node.NAMES = ("Market1501",)
    # The sets to evaluate on, one after the other; the first one decides which model is the best.
    node.TESTS = ("Market1501",)
    # Whether the test parts of NAMES are trained on too.
    node.COMBINEALL = False
    # The folder that holds the sets; "" is $FASTREID_LITE_DATASETS where that is set, else "datasets".
    node.ROOT = ""
    # Share of the identities (0 to 1, both excluded) held back for testing where a folder does not say which are.
    node.TEST_FRACTION = 0.5
    # Share of the training identities (0 to 1, 1 excluded) set aside to choose the best model on; 0 sets none aside,
    # and the best is then chosen on the test set. Who can be drawn depends on TEST.EXCLUDE_SAME.
    node.VAL_FRACTION = 0.0
    # Draws both splits. Not SEED: another seed for training keeps the same identities apart.
    node.SPLIT_SEED = 0
    node.SYNTHETIC = _synthetic()
    return node


def _synthetic() -> CfgNode:
    node = CfgNode()
    # Where SyntheticReID is rendered to, once, and read from; "" is "synthetic_reid" below DATASETS.ROOT.
    node.FOLDER = ""
    # Identities to train on, and others to test on.
    node.TRAIN_IDS = 128
    node.TEST_IDS = 32
    # Cameras, each with its own light, colours, blur, scale and background.
    node.CAMERAS = 4
    # Images of each identity under each camera.
    node.IMAGES_PER_CAMERA = 4
    # Further gallery images of people that no query shows (pid 0), and boxes that are half a person at most (pid -1).
    node.DISTRACTORS = 32
    node.JUNK = 8
    # Size of an image in pixels: height, width.
    node.SIZE = [128, 64]
    # Draws the people and the cameras; the same numbers give the same images.
    node.SEED = 0
    return node
