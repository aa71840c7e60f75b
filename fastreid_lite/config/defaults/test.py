"""TEST: evaluation, and when."""

from __future__ import annotations

from ..node import CfgNode


def test_defaults() -> CfgNode:
    node = CfgNode()
    # Between two evaluations, in epochs or in steps; the one given last counts. 0: only at the end, negative: never.
    node.EVAL_PERIOD = 20
    node.EVAL_PERIOD_ITERS = None
    # Images in a forward pass of one process.
    node.IMS_PER_BATCH = 64
    # Distance between features: "cosine" (1 - cosine) or "euclidean" (squared, without a root, as in fast-reid).
    node.METRIC = "cosine"
    # Columns that, agreeing together with the pid, take a gallery image out for a query; ("camid",) is Market-1501's
    # rule. Empty: only the query's own file is taken out.
    node.EXCLUDE_SAME = ("camid",)

    # The receiver operating characteristic, as TPR at fixed FPR.
    node.ROC = CfgNode({"ENABLED": False})

    # The mean of the features of an image and of its mirror image.
    node.FLIP = CfgNode({"ENABLED": False})

    # Query expansion: a feature becomes the mean of its QE_K nearest, weighted by their similarity to the power of
    # ALPHA, QE_TIME times over.
    node.AQE = CfgNode({"ENABLED": False, "ALPHA": 3.0, "QE_TIME": 1, "QE_K": 5})

    # k-reciprocal re-ranking: neighbours K1, neighbours K2 for the expansion, and the weight LAMBDA of the original
    # distance.
    node.RERANK = CfgNode({"ENABLED": False, "K1": 20, "K2": 6, "LAMBDA": 0.3})

    # Statistics of the norm layers, taken anew over NUM_ITER batches of DATASET before an evaluation.
    node.PRECISE_BN = CfgNode({"ENABLED": False, "DATASET": "Market1501", "NUM_ITER": 300})
    return node
