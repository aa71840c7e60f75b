"""SOLVER: how the weights change. A step is one update of the weights, an epoch one pass over the training images.

Lengths and periods are in epochs, as in fast-reid; the key in ITER or ITERS beside one says the same in steps. The one
of the two that is given last (command line over file over base files over defaults) counts, and the other becomes None.
In a period 0 means only at the end, a negative number never.
"""

from __future__ import annotations

from ..node import CfgNode


def solver_defaults() -> CfgNode:
    node = CfgNode()
    # Length of the run, in epochs or in steps.
    node.MAX_EPOCH = 120
    node.MAX_ITER = None
    # Images in a forward pass, over all processes together.
    node.IMS_PER_BATCH = 64
    # Forward passes whose gradients are averaged for one step.
    node.ACCUMULATE_STEPS = 1
    # Between two checkpoints, in epochs or in steps.
    node.CHECKPOINT_PERIOD = 20
    node.CHECKPOINT_PERIOD_ITERS = None
    # How many periodic checkpoints are kept, the newest; 0 keeps all. The best and the final one always stay.
    node.CHECKPOINT_KEEP = 0
    # Steps between two lines of the log.
    node.LOG_PERIOD_ITERS = 20
    _add_optimizer(node)
    _add_schedule(node)
    node.AMP = CfgNode()
    # Mixed precision: "auto" is float16 with a loss scaler on CUDA and bfloat16 without one elsewhere; "float16" and
    # "bfloat16" ask for one of them.
    node.AMP.ENABLED = False
    node.AMP.DTYPE = "auto"
    node.CLIP_GRADIENTS = _clip_gradients()
    node.NONFINITE = CfgNode()
    # A loss that is NaN or infinite: "raise" stops before the weights change, "skip" leaves the step out and counts.
    node.NONFINITE.POLICY = "raise"
    # When it is noticed: "immediate" (reads each loss, so the host waits for the device), "deferred" (weights stay
    # as they were, the error comes at the next log line), "auto": immediate on the CPU, deferred on other devices.
    node.NONFINITE.MODE = "auto"
    return node


def _add_optimizer(node: CfgNode) -> None:
    # "Adam", "AdamW", "SGD", or another name in the registry of optimizers.
    node.OPT = "Adam"
    # The learning rate after warm-up.
    node.BASE_LR = 3e-4
    # Factors on it for all biases, and for the parameters of the head.
    node.BIAS_LR_FACTOR = 1.0
    node.HEADS_LR_FACTOR = 1.0
    # Momentum of SGD, and whether it is Nesterov's.
    node.MOMENTUM = 0.9
    node.NESTEROV = False
    # Weight decay of the weights, of the norm layers' scales, and of all biases. Three keys: lowering the first leaves
    # the others where they are.
    node.WEIGHT_DECAY = 0.0005
    node.WEIGHT_DECAY_NORM = 0.0005
    node.WEIGHT_DECAY_BIAS = 0.0005
    # Steps during which MODEL.FREEZE_LAYERS do not train.
    node.FREEZE_ITERS = 0


def _add_schedule(node: CfgNode) -> None:
    # After warm-up: "MultiStepLR" multiplies the rate by GAMMA at each of STEPS, "CosineAnnealingLR" lets it fall to
    # ETA_MIN_LR; or another name in the registry of schedules.
    node.SCHED = "MultiStepLR"
    node.GAMMA = 0.1
    # The milestones of MultiStepLR, in epochs or in steps.
    node.STEPS = [30, 55]
    node.STEPS_ITERS = None
    # What STEPS are counted from: "warmup_end" (fast-reid's, in all its published numbers) or the "start" of training.
    node.STEPS_FROM = "warmup_end"
    node.ETA_MIN_LR = 1e-7
    # The rate stays at its base until then, in epochs or in steps from the start; before that no schedule begins.
    node.DELAY_EPOCHS = 0
    node.DELAY_ITERS = None
    # Steps of warm-up, and the share of the base rate that it begins with.
    node.WARMUP_ITERS = 1000
    node.WARMUP_FACTOR = 0.1
    # How it grows: "linear", "exp" (by equal factors), or "constant" (a jump at the end).
    node.WARMUP_METHOD = "linear"


def _clip_gradients() -> CfgNode:
    node = CfgNode()
    # Whether gradients are clipped, after their scaling for mixed precision was undone.
    node.ENABLED = False
    # "norm": scaled down to a norm of at most CLIP_VALUE; "value": each number cut to between -CLIP_VALUE and
    # CLIP_VALUE.
    node.CLIP_TYPE = "norm"
    node.CLIP_VALUE = 5.0
    # Which norm: 2.0 is the Euclidean one.
    node.NORM_TYPE = 2.0
    # The norm of what: each "group" of parameters that share learning rate and weight decay (fast-reid's) or all
    # parameters together ("global").
    node.SCOPE = "group"
    return node
