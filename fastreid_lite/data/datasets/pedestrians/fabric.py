"""What clothes are made of: patterns of two colours that survive a colour cast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image

from fastreid_lite.data.datasets.pedestrians.people import Colour

PERIOD = 0.066
"""Length of a pattern's period, in heights of a person: about 8 pixels of an image 128 high."""

# Each takes x (from the body's middle, 0) and y (down from the garment's top, 0), both in heights of a person, and the
# garment's length; True where the second colour shows.
_PATTERNS: dict[str, Callable[[np.ndarray, np.ndarray, float], np.ndarray]] = {
    "plain": lambda x, y, length: np.zeros(np.broadcast(x, y).shape, dtype=bool),
    "hoops": lambda x, y, length: (y % PERIOD < PERIOD / 2) & (x == x),
    "stripes": lambda x, y, length: ((x + PERIOD / 4) % PERIOD < PERIOD / 2) & (y == y),
    "checks": lambda x, y, length: (x % PERIOD < PERIOD / 2) ^ (y % PERIOD < PERIOD / 2),
    "dots": lambda x, y, length: (
        ((x + PERIOD / 2) % PERIOD - PERIOD / 2) ** 2 + (y % PERIOD - PERIOD / 2) ** 2 < (0.3 * PERIOD) ** 2
    ),
    "halves": lambda x, y, length: (y > 0.5 * length) & (x == x),
    "band": lambda x, y, length: (np.abs(y - 0.38 * length) < 0.14 * length) & (x == x),
    "sash": lambda x, y, length: np.abs(x + 0.12 - 0.24 * y / length) < 0.035,
}


def weave(pattern: str, colours: tuple[Colour, Colour], *, length: float, height: float) -> Image.Image:
    """A piece of cloth to cut a garment from.

    Args:
        pattern: a name of UPPER_PATTERNS or LOWER_PATTERNS.
        colours: ground and figure.
        length: of the garment, in heights of a person; the cloth is somewhat longer.
        height: of a person in pixels.

    Returns:
        An RGB image whose top middle is the garment's.
    """
    rows, columns = round(1.15 * length * height), round(0.6 * height)
    y = np.arange(rows)[:, None] / height
    x = (np.arange(columns)[None, :] - columns / 2) / height
    figure = _PATTERNS[pattern](x, y, length)
    return Image.fromarray(np.array(colours, dtype=np.uint8)[figure.astype(np.intp)])
