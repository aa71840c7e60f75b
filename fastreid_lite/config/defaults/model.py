"""MODEL: where it computes, the backbone, the head and the losses."""

from __future__ import annotations

from ..node import CfgNode


def model_defaults() -> CfgNode:
    node = CfgNode()
    # Where it computes: "auto" (the best there is), "cpu", "cuda" or "cuda:1", "mps", "xpu", or a device of your own
    # that is registered with the runtime. A device that is not there gives a warning and the CPU.
    node.DEVICE = "auto"
    # The whole model: its name in the registry of meta-architectures.
    node.META_ARCHITECTURE = "Baseline"
    # Parts of the model, by name from the top ("backbone"), that do not train in the first SOLVER.FREEZE_ITERS steps.
    node.FREEZE_LAYERS = []
    # Features kept in the memory queue of MoCo; known for fast-reid's files, used by nothing in this release.
    node.QUEUE_SIZE = 8192
    # A checkpoint to start from or, with --eval-only, to evaluate; "" starts from PRETRAIN or from random weights.
    node.WEIGHTS = ""
    # Mean and standard deviation of the R, G and B values (0 to 255), by which the model normalises its input.
    node.PIXEL_MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
    node.PIXEL_STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
    node.BACKBONE = _backbone()
    node.HEADS = _heads()
    node.LOSSES = _losses()
    return node


def _backbone() -> CfgNode:
    node = CfgNode()
    # "build_resnet_backbone", "build_osnet_backbone", or "timm/NAME" with the name of any timm model.
    node.NAME = "build_resnet_backbone"
    # The size of the network: "18x", "34x", "50x", "101x" for ResNet; "x0_25", "x0_5", "x0_75", "x1_0" for OSNet.
    node.DEPTH = "50x"
    # Stride of the last stage of a ResNet: 1 doubles the height and width of the last feature map, 2 is the usual net.
    node.LAST_STRIDE = 1
    # Channels of the feature map that the head gets. The backbone knows them; read only where POOL_LAYER is "Flatten".
    node.FEAT_DIM = 2048
    # Norm layers: "BN", "syncBN", "FrozenBN" or "GN".
    node.NORM = "BN"
    # Instance norm on half of the channels in the early stages (IBN-Net).
    node.WITH_IBN = False
    # Squeeze-and-excitation blocks.
    node.WITH_SE = False
    # Non-local blocks after the last blocks of stages 2 and 3.
    node.WITH_NL = False
    # Width of a non-local block: "one" channel (fast-reid's, in all its published AGW and SBS numbers) or "half" of
    # the channels (as in the paper).
    node.NL_CHANNELS = "one"
    # The pooling after the first convolution: "ceil" (no padding, sizes rounded up: fast-reid's, so that its
    # checkpoints give what they gave) or "pad" (padding 1: torchvision's and timm's). Same size, other windows.
    node.STEM_POOL = "ceil"
    # Weight of the camera embedding of a vision transformer.
    node.SIE_COE = 3.0
    # Step between patches of a vision transformer, in pixels (height, width); smaller than a patch lets them overlap.
    node.STRIDE_SIZE = (16, 16)
    # Probabilities (0 to 1) of dropping a residual branch, a token's value, and an attention weight.
    node.DROP_PATH_RATIO = 0.1
    node.DROP_RATIO = 0.0
    node.ATT_DROP_RATE = 0.0
    # Whether to start from pretrained weights.
    node.PRETRAIN = False
    # The file with the pretrained weights; "" takes those in timm's cache.
    node.PRETRAIN_PATH = ""
    return node


def _heads() -> CfgNode:
    node = CfgNode()
    # The head, by its name in the registry: "EmbeddingHead" or "OSNetHead".
    node.NAME = "EmbeddingHead"
    # Norm layers of the head, as MODEL.BACKBONE.NORM.
    node.NORM = "BN"
    # Identities to classify; 0 takes the number in the training set.
    node.NUM_CLASSES = 0
    # Dimensions of the embedding, reached by a 1x1 convolution; 0 leaves the backbone's.
    node.EMBEDDING_DIM = 0
    # Batch norm without a trainable bias between the embedding and the classifier (BNNeck).
    node.WITH_BNNECK = False
    # The feature that metric losses see: "before" or "after" the BNNeck. Evaluation takes the one after it.
    node.NECK_FEAT = "before"
    # Pooling of the feature map: "GlobalAvgPool", "GlobalMaxPool", "GeneralizedMeanPooling" (p = 3),
    # "GeneralizedMeanPoolingP" (p is learned), ..., "Identity".
    node.POOL_LAYER = "GlobalAvgPool"
    # The classifier: "Linear", "CosSoftmax", "ArcSoftmax", "CircleSoftmax".
    node.CLS_LAYER = "Linear"
    # Margin and scale of the cosine classifiers; "Linear" has no margin.
    node.MARGIN = 0.0
    node.SCALE = 1
    return node


def _losses() -> CfgNode:
    node = CfgNode()
    # The losses that are summed, by their names in the registry. SCALE below is the weight of each.
    node.NAME = ("CrossEntropyLoss",)

    # Cross entropy. EPSILON is the probability that label smoothing gives to the other classes together; a negative
    # one adapts it to each sample, ALPHA times the probability predicted for its class.
    node.CE = CfgNode({"EPSILON": 0.0, "ALPHA": 0.2, "SCALE": 1.0})

    # Focal loss: weight of the positive class, and exponent. Known for fast-reid's files; not in this release.
    node.FL = CfgNode({"ALPHA": 0.25, "GAMMA": 2, "SCALE": 1.0})

    node.TRI = CfgNode()
    # Triplet loss: distance by which negatives should be farther than positives; 0 is the soft margin.
    node.TRI.MARGIN = 0.3
    # Whether features are scaled to length 1 first.
    node.TRI.NORM_FEAT = False
    # Farthest positive and nearest negative in the batch (True), or all, weighted by their distance (False).
    node.TRI.HARD_MINING = False
    node.TRI.SCALE = 1.0

    # Pairwise circle loss: relaxation, and scale of the similarities.
    node.CIRCLE = CfgNode({"MARGIN": 0.25, "GAMMA": 128, "SCALE": 1.0})

    # Pairwise cosface loss: margin, and scale of the similarities.
    node.COSFACE = CfgNode({"MARGIN": 0.25, "GAMMA": 128, "SCALE": 1.0})
    return node
