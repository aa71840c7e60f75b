"""The variants of a ResNet that other backbones have not."""

from __future__ import annotations

from typing import Any


def refuse_variants(settings: Any, backbone: str) -> None:
    """Refuse instance norm, squeeze-and-excitation and non-local blocks, which only a ResNet has.

    Args:
        settings: MODEL.BACKBONE.
        backbone: its name, for the message.

    Raises:
        ValueError: WITH_IBN, WITH_SE or WITH_NL is set.
    """
    for key in ("WITH_IBN", "WITH_SE", "WITH_NL"):
        if getattr(settings, key):
            raise ValueError(
                f"MODEL.BACKBONE.{key} is True, but {backbone} has no such variant; set it to False, or use "
                f"build_resnet_backbone"
            )
