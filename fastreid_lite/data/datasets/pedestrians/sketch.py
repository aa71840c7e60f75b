"""A pencil that draws bodies: polygons, limbs and cloth in heights of a person instead of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image, ImageDraw

from fastreid_lite.data.datasets.pedestrians.people import Colour

Point = tuple[float, float]
Polygon = list[Point]

_CIRCLE = [(math.cos(2 * math.pi * step / 14), math.sin(2 * math.pi * step / 14)) for step in range(14)]


def ellipse(centre: Point, radius_x: float, radius_y: float) -> Polygon:
    """A filled ellipse as a polygon."""
    return [(centre[0] + radius_x * cosine, centre[1] + radius_y * sine) for cosine, sine in _CIRCLE]


def box(left: float, top: float, right: float, bottom: float) -> Polygon:
    """A rectangle as a polygon."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def limb(start: Point, end: Point, width_start: float, width_end: float) -> list[Polygon]:
    """A tapered bar between two joints, round at both."""
    along = math.atan2(end[1] - start[1], end[0] - start[0])
    across = (-math.sin(along) / 2, math.cos(along) / 2)
    bar = [
        (start[0] + across[0] * width_start, start[1] + across[1] * width_start),
        (end[0] + across[0] * width_end, end[1] + across[1] * width_end),
        (end[0] - across[0] * width_end, end[1] - across[1] * width_end),
        (start[0] - across[0] * width_start, start[1] - across[1] * width_start),
    ]
    return [bar, ellipse(start, width_start / 2, width_start / 2), ellipse(end, width_end / 2, width_end / 2)]


class Sketch:
    """Draws on ``image`` in a person's own units: x from the body's middle, y from the top of the head down to 1.

    Args:
        image: RGB, drawn on in place.
        left, top: pixel where the body's middle and the top of the head are.
        height: pixels of a person's height.
    """

    def __init__(self, image: Image.Image, *, left: float, top: float, height: float) -> None:
        self._image = image
        self._pen = ImageDraw.Draw(image)
        self._left, self._top, self._height = left, top, height

    def fill(self, polygons: Sequence[Polygon], colour: Colour) -> None:
        """Fill the polygons with one colour."""
        for polygon in polygons:
            self._pen.polygon(self._pixels(polygon), fill=colour)

    def clothe(self, polygons: Sequence[Polygon], cloth: Image.Image, *, top: float) -> None:
        """Cut the polygons out of ``cloth``, whose top middle lies at (0, ``top``)."""
        corner = round(self._left - cloth.width / 2), round(self._top + top * self._height)
        mask = Image.new("L", cloth.size)
        pen = ImageDraw.Draw(mask)
        for polygon in polygons:
            pen.polygon([(x - corner[0], y - corner[1]) for x, y in self._pixels(polygon)], fill=255)
        self._image.paste(cloth, corner, mask)

    def _pixels(self, polygon: Polygon) -> list[Point]:
        return [(self._left + x * self._height, self._top + y * self._height) for x, y in polygon]
