"""What a camera does to all that it sees: light, colour cast, sharpness, scale, and the place it looks at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from fastreid_lite.data.datasets.pedestrians.people import CLOTHES, Colour

CAST = 0.2
"""Strength of a camera's colour cast: the logarithm of the largest factor on a channel."""


@dataclass(frozen=True)
class Camera:
    """A camera; every setting lies apart from those of the other cameras.

    Args:
        gains: (3,) factors on red, green, blue.
        gamma: exponent on intensities in 0..1; above 1 darkens.
        saturation: factor on the distance from grey.
        blur: radius in pixels of an image 128 high.
        noise: standard deviation in grey levels.
        scale: height of the tallest person as a part of the image.
        slope: how much brighter than the mean the right edge is, as a factor.
        place: RGB, wider than an image; what stands behind the people, at the scale people are drawn at.
    """

    gains: np.ndarray
    gamma: float
    saturation: float
    blur: float
    noise: float
    scale: float
    slope: float
    place: Image.Image


def build_cameras(count: int, seed: int, *, width: int, height: int) -> list[Camera]:
    """``count`` cameras looking at places ``4 * width`` x ``height`` pixels large."""
    rng = np.random.default_rng((seed, 1, count))

    def spread(low: float, high: float) -> np.ndarray:
        """(count,) values that fill the range evenly, in random order."""
        return low + (high - low) * (rng.permutation(count) + rng.random(count)) / count

    hues = spread(0.0, 2.0 * np.pi)
    exposures, gammas, saturations = spread(-0.2, 0.2), spread(0.8, 1.2), spread(0.7, 1.1)
    blurs, noises, scales, slopes = spread(0.0, 0.7), spread(1.0, 5.0), spread(0.86, 0.98), spread(-0.2, 0.2)
    return [
        Camera(
            gains=np.exp(exposures[index] + CAST * np.cos(hues[index] - 2.0 * np.pi * np.arange(3) / 3.0)),
            gamma=float(gammas[index]),
            saturation=float(saturations[index]),
            blur=float(blurs[index]),
            noise=float(noises[index]),
            scale=float(scales[index]),
            slope=float(slopes[index]),
            place=_build_place(np.random.default_rng((seed, 2, index)), 4 * width, height),
        )
        for index in range(count)
    ]


def _build_place(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    """A wall or hedge over a pavement, with things of the colours of clothes standing about."""
    horizon = int(height * rng.uniform(0.45, 0.75))
    wall, ground = _muted(rng), _muted(rng)
    image = Image.new("RGB", (width, height), wall)
    pen = ImageDraw.Draw(image)
    brick_width, brick_height = (int(height * value) for value in rng.uniform((0.06, 0.03), (0.3, 0.16)))
    if rng.random() < 0.5:
        for row, top in enumerate(range(0, horizon, brick_height)):
            for left in range(-brick_width * (row % 2) // 2, width, brick_width):
                shade = _shift(wall, int(rng.integers(-28, 28)))
                pen.rectangle((left, top, left + brick_width - 2, top + brick_height - 2), fill=shade)
    else:
        for _ in range(int(8 * width / height) * 12):
            x, y, radius = rng.uniform(0, width), rng.uniform(0, horizon), height * rng.uniform(0.02, 0.07)
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_shift(wall, int(rng.integers(-40, 40))))
    pen.rectangle((0, horizon, width, height), fill=ground)
    for left in range(0, width, max(8, brick_width)):
        pen.line((left, horizon, left + int(rng.integers(-40, 40)), height), fill=_shift(ground, -22), width=2)
    for _ in range(int(3 * width / height) + 6):
        _place_thing(rng, pen, width, horizon, height)
    return image.filter(ImageFilter.GaussianBlur(height / 200))


def _place_thing(rng: np.random.Generator, pen: ImageDraw.ImageDraw, width: int, horizon: int, height: int) -> None:
    """A door, post, bin, sign or car of one colour, somewhere along the wall."""
    colour = _shift(CLOTHES[int(rng.integers(len(CLOTHES)))], int(rng.integers(-20, 20)))
    left, foot = rng.uniform(0, width), horizon + rng.uniform(-0.05, 0.3) * (height - horizon)
    kind = int(rng.integers(4))
    across, tall = ((0.14, 0.4), (0.025, 0.7), (0.1, 0.14), (0.45, 0.2))[kind]
    across, tall = height * across * rng.uniform(0.7, 1.4), height * tall * rng.uniform(0.7, 1.3)
    pen.rectangle((left, foot - tall, left + across, foot), fill=colour)
    if kind == 3:
        for wheel in (left + 0.2 * across, left + 0.8 * across):
            pen.ellipse(
                (wheel - 0.2 * tall, foot - 0.2 * tall, wheel + 0.2 * tall, foot + 0.2 * tall), fill=(26, 26, 28)
            )
    elif kind != 1:
        inset = 0.2 * across
        pen.rectangle(
            (left + inset, foot - tall + inset, left + across - inset, foot - 0.5 * tall), fill=_shift(colour, 34)
        )


def _muted(rng: np.random.Generator) -> Colour:
    """A colour of stone or leaves, near grey."""
    grey = rng.uniform(70, 190)
    red, green, blue = (int(value) for value in np.clip(grey + rng.uniform(-32, 32, size=3), 0, 255))
    return red, green, blue


def _shift(colour: Colour, by: int) -> Colour:
    return _clip(colour[0] + by), _clip(colour[1] + by), _clip(colour[2] + by)


def _clip(value: int) -> int:
    return min(255, max(0, value))
