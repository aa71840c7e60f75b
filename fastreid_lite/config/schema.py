"""What the defaults alone do not say of the keys: closed choices, types, and keys that are two ways to say one thing.

Everything is by full name. Names that are looked up in a registry (losses, samplers, optimizers, backbones, ...) have
no list here: a project may add to them, so the registry refuses what it does not know.
"""

from __future__ import annotations

from .kinds import Kind

# Keys with a closed list of values; any other is refused when it is merged.
OPTIONS: dict[str, tuple[str, ...]] = {
    "MODEL.BACKBONE.STEM_POOL": ("ceil", "pad"),
    "MODEL.BACKBONE.NL_CHANNELS": ("one", "half"),
    "MODEL.HEADS.NECK_FEAT": ("before", "after"),
    "INPUT.PADDING.MODE": ("constant", "edge", "reflect", "symmetric"),
    "DATALOADER.ON_BROKEN_IMAGE": ("error", "skip"),
    "SOLVER.AMP.DTYPE": ("auto", "float16", "bfloat16"),
    "SOLVER.WARMUP_METHOD": ("linear", "constant", "exp"),
    "SOLVER.STEPS_FROM": ("warmup_end", "start"),
    "SOLVER.CLIP_GRADIENTS.CLIP_TYPE": ("norm", "value"),
    "SOLVER.CLIP_GRADIENTS.SCOPE": ("group", "global"),
    "SOLVER.NONFINITE.POLICY": ("raise", "skip"),
    "SOLVER.NONFINITE.MODE": ("auto", "immediate", "deferred"),
    "TEST.METRIC": ("cosine", "euclidean"),
}

# (in epochs, in iterations): the one given last counts, and the other becomes None. Giving both in one file or on one
# command line is an error; None is no giving, so that a dumped config can be read again.
TWINS: tuple[tuple[str, str], ...] = (
    ("SOLVER.MAX_EPOCH", "SOLVER.MAX_ITER"),
    ("SOLVER.STEPS", "SOLVER.STEPS_ITERS"),
    ("SOLVER.DELAY_EPOCHS", "SOLVER.DELAY_ITERS"),
    ("SOLVER.CHECKPOINT_PERIOD", "SOLVER.CHECKPOINT_PERIOD_ITERS"),
    ("TEST.EVAL_PERIOD", "TEST.EVAL_PERIOD_ITERS"),
)

_INT_OR_NONE = Kind("int", optional=True)
_INTS_OR_NONE = Kind("list", element=Kind("int"), optional=True)
_NUMBER = Kind("number")
_TEXTS = Kind("list", element=Kind("str"))

# Types that the default does not show: it is None or empty, or is an int where any number makes sense.
KINDS: dict[str, Kind] = {
    **{key: _INT_OR_NONE for pair in TWINS for key in pair},
    "SOLVER.STEPS": _INTS_OR_NONE,
    "SOLVER.STEPS_ITERS": _INTS_OR_NONE,
    "MODEL.HEADS.SCALE": _NUMBER,
    "MODEL.LOSSES.FL.GAMMA": _NUMBER,
    "MODEL.LOSSES.CIRCLE.GAMMA": _NUMBER,
    "MODEL.LOSSES.COSFACE.GAMMA": _NUMBER,
    "MODEL.FREEZE_LAYERS": _TEXTS,
    "KD.MODEL_CONFIG": _TEXTS,
    "KD.MODEL_WEIGHTS": _TEXTS,
    "DATALOADER.SET_WEIGHT": Kind("list", element=Kind("int")),
    "PROJECT.IMPORTS": Kind("tuple", element=Kind("str")),
}

# The other twin of each twin, by the last part of the name: they always stand in one section.
TWIN_NAMES: dict[str, str] = {
    one.rpartition(".")[2]: other.rpartition(".")[2] for pair in TWINS for one, other in (pair, pair[::-1])
}
