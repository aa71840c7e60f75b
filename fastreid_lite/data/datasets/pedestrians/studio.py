"""A picture of a person by a camera: pose, clutter, occlusion, a loose crop, and the camera's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from fastreid_lite.data.datasets.pedestrians.cameras import Camera, build_cameras
from fastreid_lite.data.datasets.pedestrians.figure import FACINGS, Pose, Wardrobe, draw_figure
from fastreid_lite.data.datasets.pedestrians.people import CLOTHES, Person
from fastreid_lite.data.datasets.pedestrians.sketch import Sketch

OVERSAMPLING = 2
"""People are drawn this many times larger than the image, then reduced: smooth edges without a slow pencil."""
OCCLUDED = 0.15
"""Part of the images in which something stands before the person."""
BADLY_CROPPED = 0.08
"""Part of the images whose box misses feet or head, as a detector's does."""


class Studio:
    """Takes pictures of people.

    Args:
        people: whom, by index.
        cameras: number of cameras.
        size: height and width of a picture in pixels.
        seed: of the cameras and of all that is chosen at a shot.
    """

    def __init__(self, people: Sequence[Person], *, cameras: int, size: tuple[int, int], seed: int) -> None:
        self._people = people
        self._seed = seed
        self._height, self._width = size
        self._canvas = (round(1.5 * OVERSAMPLING * self._width), round(1.15 * OVERSAMPLING * self._height))
        self._cameras = build_cameras(cameras, seed, width=self._canvas[0], height=self._canvas[1])
        self._wardrobe = lru_cache(maxsize=4 * cameras)(self._dress)

    def shoot(self, person: int, camera: int, shot: int, *, loose: bool = False) -> Image.Image:
        """The ``shot``-th picture of ``person`` by ``camera``, RGB; the same whatever was taken before.

        Args:
            loose: whether the box shows half of the person only, as a detector's false alarm does.
        """
        rng = np.random.default_rng((self._seed, 3, person, camera, shot))
        eye, who = self._cameras[camera], self._people[person]
        left = int(rng.integers(0, eye.place.width - self._canvas[0]))
        canvas = eye.place.crop((left, 0, left + self._canvas[0], self._canvas[1]))
        self._clutter(canvas, rng)
        tall = OVERSAMPLING * self._height * eye.scale * who.height
        top, middle = 0.5 * (self._canvas[1] - tall), 0.5 * self._canvas[0]
        pose = Pose(FACINGS[int(rng.integers(4))], float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.15, 0.55)))
        draw_figure(Sketch(canvas, left=middle, top=top, height=tall), who, self._wardrobe(person, camera), pose)
        if rng.random() < OCCLUDED:
            self._occlude(canvas, rng)
        return self._expose(
            canvas.resize((self._width, self._height), Image.Resampling.BOX, self._crop(rng, loose)), eye, rng
        )

    def _dress(self, person: int, camera: int) -> Wardrobe:
        who = self._people[person]
        return Wardrobe.of(who, OVERSAMPLING * self._height * self._cameras[camera].scale * who.height)

    def _clutter(self, canvas: Image.Image, rng: np.random.Generator) -> None:
        """A few things behind the person, of the colours of clothes."""
        pen = ImageDraw.Draw(canvas)
        for _ in range(int(rng.integers(0, 3))):
            x, y = rng.uniform(-0.1, 0.9) * canvas.width, rng.uniform(0.1, 0.8) * canvas.height
            across, tall = canvas.width * rng.uniform(0.1, 0.3), canvas.height * rng.uniform(0.1, 0.4)
            pen.rectangle((x, y, x + across, y + tall), fill=CLOTHES[int(rng.integers(len(CLOTHES)))])

    def _occlude(self, canvas: Image.Image, rng: np.random.Generator) -> None:
        """Something before the person: a post, a bin before the legs, or the edge of a wall."""
        pen = ImageDraw.Draw(canvas)
        wide, high = canvas.size
        colour = CLOTHES[int(rng.integers(len(CLOTHES)))]
        kind = int(rng.integers(3))
        if kind == 0:
            x = rng.uniform(0.3, 0.7) * wide
            pen.rectangle((x, 0, x + 0.05 * wide, high), fill=colour)
        elif kind == 1:
            pen.rectangle((rng.uniform(0.1, 0.5) * wide, rng.uniform(0.66, 0.8) * high, 0.9 * wide, high), fill=colour)
        elif rng.random() < 0.5:
            pen.rectangle((0, 0, rng.uniform(0.3, 0.42) * wide, high), fill=colour)
        else:
            pen.rectangle((rng.uniform(0.58, 0.7) * wide, 0, wide, high), fill=colour)

    def _crop(self, rng: np.random.Generator, loose: bool) -> tuple[float, float, float, float]:
        """Left, top, right, bottom on the canvas of what the image shows."""
        scale = OVERSAMPLING * rng.uniform(0.94, 1.06)
        x, y = rng.normal(0, (0.05 * self._width, 0.02 * self._height)) * OVERSAMPLING
        if rng.random() < BADLY_CROPPED:
            scale *= rng.uniform(0.84, 0.92)
            y += rng.choice((-1, 1)) * 0.08 * OVERSAMPLING * self._height
        if loose:
            scale *= rng.uniform(0.5, 0.7)
            x += rng.choice((-1, 1)) * 0.4 * OVERSAMPLING * self._width
            y += rng.uniform(-0.2, 0.2) * OVERSAMPLING * self._height
        wide, high = scale * self._width, scale * self._height
        left = float(np.clip(0.5 * (self._canvas[0] - wide) + x, 0, self._canvas[0] - wide))
        top = float(np.clip(0.5 * (self._canvas[1] - high) + y, 0, self._canvas[1] - high))
        return left, top, left + wide, top + high

    def _expose(self, image: Image.Image, eye: Camera, rng: np.random.Generator) -> Image.Image:
        """The scene as the camera records it."""
        if eye.blur > 0.05:
            image = image.filter(ImageFilter.GaussianBlur(eye.blur * self._height / 128))
        keep, mix = eye.saturation, 1 - eye.saturation
        red, green, blue = 0.299 * mix, 0.587 * mix, 0.114 * mix
        image = image.convert(
            "RGB", (red + keep, green, blue, 0, red, green + keep, blue, 0, red, green, blue + keep, 0)
        )
        gains = eye.gains * np.exp(rng.normal(0, 0.1) + rng.normal(0, 0.03, size=3))
        curve = np.linspace(0, 1, 256) ** eye.gamma * 255
        image = image.point(np.clip(gains[:, None] * curve, 0, 255).astype(np.uint8).ravel().tolist())
        slope = 1 + eye.slope * np.linspace(-1, 1, self._width, dtype=np.float32)[:, None]
        noise = eye.noise * rng.standard_normal((self._height, self._width, 1), dtype=np.float32)
        return Image.fromarray(np.clip(np.asarray(image) * slope + noise, 0, 255).astype(np.uint8))
