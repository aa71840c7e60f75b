"""Any network of timm as a backbone: MODEL.BACKBONE.NAME "timm/<name>"."""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fastreid_lite.config.input_size import model_input_size
from fastreid_lite.modeling.backbones.variants import refuse_variants
from fastreid_lite.modeling.backbones.weights import cached_timm_weights, load_backbone_weights

logger = logging.getLogger(__name__)


class _OutputError(Exception):
    """A network gives what is not a feature."""


class TimmBackbone(nn.Module):
    """A network of timm without its classifier: (B, 3, H, W) to (B, feat_dim, h, w).

    Maps come as they are, in channels-first order. A network of tokens gives (B, feat_dim, 1, 1): its class token, or
    the mean of its patch tokens where it has none; the pooling layer "Identity" or an average leaves that as it is, but
    GeneralizedMeanPooling* would cut what is below 0. A network that cannot be without its own pooling gives
    (B, feat_dim, 1, 1) too.

    Args:
        name: a name of ``timm.list_models()``, with or without a tag.
        image_size: (height, width) of the images.
        pretrained: take timm's weights from its cache.
        options: further keyword arguments of ``timm.create_model``.

    Raises:
        KeyError: timm has no such network.
        ValueError: the network does not take one of ``options``, or images of this size.
        FileNotFoundError: ``pretrained``, and the weights are not in the cache.
    """

    def __init__(
        self, name: str, *, image_size: tuple[int, int], pretrained: bool = False, options: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        failure: Exception | None = None
        # timm takes seconds to import, so only who builds one of its networks waits for it.
        import timm

        if not timm.is_model(name):
            near = difflib.get_close_matches(name, timm.list_models(), n=1, cutoff=0.5)
            hint = f"did you mean 'timm/{near[0]}'?" if near else "timm.list_models() has the names"
            raise KeyError(f"MODEL.BACKBONE.NAME: timm has no network {name!r}; {hint}")
        arguments: dict[str, Any] = dict(options or {})
        if takes_image_size(name):
            arguments["img_size"] = image_size
        if pretrained:
            overlay = {"file": str(cached_timm_weights(name)), "custom_load": False}
            arguments |= {"pretrained": True, "pretrained_cfg_overlay": overlay}
        # Some networks cannot be without their own pooling, so the second try leaves it in.
        for pooling in ({"global_pool": ""}, {}):
            try:
                self.network: Any = timm.create_model(name, num_classes=0, **pooling, **arguments)
                self.feat_dim = self._measure(image_size)
                return
            except TypeError as error:
                raise ValueError(
                    f"MODEL.BACKBONE.NAME 'timm/{name}' does not take the options {options}: {error}"
                ) from error
            except (AssertionError, RuntimeError, _OutputError) as error:
                failure = error
        raise ValueError(
            f"MODEL.BACKBONE.NAME 'timm/{name}' cannot be used with images of {image_size[0]}x{image_size[1]} "
            f"(INPUT.SIZE_TRAIN, or INPUT.CROP.SIZE where it is on): {str(failure) or type(failure).__name__}"
        ) from failure

    def forward(self, images: Tensor) -> Tensor:
        features = self.network(images)
        if features.dim() == 4:
            return features.permute(0, 3, 1, 2) if getattr(self.network, "output_fmt", "NCHW") == "NHWC" else features
        if features.dim() == 3:
            if getattr(self.network, "cls_token", None) is not None:
                features = features[:, 0]
            else:
                features = features[:, getattr(self.network, "num_prefix_tokens", 0) :].mean(dim=1)
        return features[:, :, None, None]

    def _measure(self, image_size: tuple[int, int]) -> int:
        """The number of channels, from one grey image, since timm's attributes disagree for some networks."""
        image = torch.zeros(1, 3, *image_size)
        self.eval()
        with torch.no_grad():
            output = self.network(image)
            if not isinstance(output, Tensor) or output.dim() not in (2, 3, 4):
                raise _OutputError("it gives neither a map (B, C, h, w) nor tokens (B, L, C) nor a vector (B, C)")
            channels = self(image).shape[1]
        self.train()
        return channels


def takes_image_size(name: str) -> bool:
    """Whether the network is made for one image size, which then has to be given to it."""
    from timm.models import get_pretrained_cfg

    config = get_pretrained_cfg(name)
    return bool(config is not None and config.fixed_input_size)


def build_timm_backbone(cfg: Any, name: str) -> TimmBackbone:
    """The network ``name`` of timm as MODEL.BACKBONE and INPUT say.

    A network made for one image size gets the size of the model's input, DROP_PATH_RATIO, and, where above 0,
    DROP_RATIO and ATT_DROP_RATE; the others keep timm's own settings. FEAT_DIM, DEPTH, LAST_STRIDE and NORM are not
    read.

    Raises:
        KeyError, ValueError, FileNotFoundError: see :class:`TimmBackbone`.
        ValueError: the network is made for one image size, and those for training and test differ; WITH_IBN, WITH_SE or
            WITH_NL is set.
    """
    settings = cfg.MODEL.BACKBONE
    refuse_variants(settings, f"timm/{name}")
    train_size, test_size = model_input_size(cfg, "SIZE_TRAIN"), model_input_size(cfg, "SIZE_TEST")
    options: dict[str, Any] = {}
    # An unknown name is reported by the class.
    if takes_image_size(name):
        if train_size != test_size:
            raise ValueError(
                f"MODEL.BACKBONE.NAME 'timm/{name}' takes images of one size, but INPUT.SIZE_TRAIN is {train_size} and "
                f"INPUT.SIZE_TEST {test_size}; make them equal"
            )
        rates = {
            "drop_path_rate": settings.DROP_PATH_RATIO,
            "proj_drop_rate": settings.DROP_RATIO,
            "attn_drop_rate": settings.ATT_DROP_RATE,
        }
        options = {key: rate for key, rate in rates.items() if rate > 0}
    from_cache = bool(settings.PRETRAIN and not settings.PRETRAIN_PATH)
    backbone = TimmBackbone(name, image_size=train_size, pretrained=from_cache, options=options)
    if settings.PRETRAIN and settings.PRETRAIN_PATH:
        # Each family of timm may have a function that fits other people's names and position embeddings to its own.
        convert = getattr(sys.modules[type(backbone.network).__module__], "checkpoint_filter_fn", None)
        load_backbone_weights(backbone.network, settings.PRETRAIN_PATH, convert=convert)
    if from_cache:
        trained_with = backbone.network.pretrained_cfg
        _warn_of_other_pixels(name, "PIXEL_MEAN", given=cfg.MODEL.PIXEL_MEAN, known=trained_with.get("mean"))
        _warn_of_other_pixels(name, "PIXEL_STD", given=cfg.MODEL.PIXEL_STD, known=trained_with.get("std"))
    return backbone


def _warn_of_other_pixels(name: str, key: str, *, given: Sequence[float], known: Sequence[float] | None) -> None:
    """Say where MODEL.``key`` (0..255) is other than what timm's weights were trained with; ``known`` is 0..1."""
    if known is None:
        return
    expected = [round(255 * value, 3) for value in known]
    if any(abs(a - b) > 2.5 for a, b in zip(given, expected, strict=False)):
        message = "the weights of timm/%s were trained with MODEL.%s %s, but it is %s"
        logger.warning(message, name, key, expected, list(given))
