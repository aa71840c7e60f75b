"""How a person is drawn: legs, trunk, arms, head, and what is worn on them, from four sides and in mid-stride."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PIL import Image

from fastreid_lite.data.datasets.pedestrians.fabric import weave
from fastreid_lite.data.datasets.pedestrians.people import Colour, Person
from fastreid_lite.data.datasets.pedestrians.sketch import Point, Polygon, Sketch, box, ellipse, limb

FACINGS = ("front", "back", "left", "right")
SHOULDER, WAIST, HIP, KNEE, ANKLE = 0.165, 0.44, 0.5, 0.72, 0.94
HEM = {"shirt": 0.5, "coat": 0.68}
LOWER_END = {"trousers": 0.955, "shorts": 0.69, "skirt": 0.7, "gown": 0.93}
LOWER_TOP = 0.45
SHADE = 0.78
"""Brightness of what lies in the body's own shadow: sleeves and the far leg."""


@dataclass(frozen=True)
class Pose:
    """How a person walks by.

    Args:
        facing: one of FACINGS.
        phase: of the walk, in radians.
        stride: swing of the legs in radians, 0 for standing.
    """

    facing: str
    phase: float
    stride: float

    @property
    def sideways(self) -> bool:
        """Whether the body is seen from a side."""
        return self.facing in ("left", "right")

    @property
    def ahead(self) -> float:
        """Where the nose points in the image: -1 left, 1 right, 0 to or from the viewer."""
        return {"left": -1.0, "right": 1.0}.get(self.facing, 0.0)


@dataclass(frozen=True)
class Wardrobe:
    """The cloth of a person's clothes at one size, lit and in shadow."""

    upper: Image.Image
    upper_shaded: Image.Image
    lower: Image.Image
    lower_shaded: Image.Image

    @staticmethod
    def of(person: Person, height: float) -> Wardrobe:
        """Woven for a ``person`` who is ``height`` pixels tall."""
        length = HEM[person.upper] - SHOULDER
        upper = weave(person.upper_pattern, person.upper_colours, length=length, height=height)
        length = LOWER_END[person.lower] - LOWER_TOP
        lower = weave(person.lower_pattern, person.lower_colours, length=length, height=height)
        return Wardrobe(upper, upper.point(_dim), lower, lower.point(_dim))


def draw_figure(sketch: Sketch, person: Person, wardrobe: Wardrobe, pose: Pose) -> None:
    """Draw ``person`` in ``pose``, back to front."""
    arms = _arms(person, pose)
    if pose.sideways:
        _draw_arm(sketch, person, wardrobe, arms[1])
    _draw_legs(sketch, person, wardrobe, pose)
    if pose.facing == "front" and person.bag == "backpack":
        sketch.fill([box(-0.09, 0.18, 0.09, 0.3)], person.bag_colour)
    _draw_trunk(sketch, person, wardrobe, pose)
    _draw_bag(sketch, person, pose, arms[0][2])
    for arm in arms[:1] if pose.sideways else arms:
        _draw_arm(sketch, person, wardrobe, arm)
    _draw_head(sketch, person, pose)


def _draw_legs(sketch: Sketch, person: Person, wardrobe: Wardrobe, pose: Pose) -> None:
    for side in (1, 0):  # the far leg first
        hip, knee, ankle = _leg(person, pose, side)
        dim = side == 1 and pose.sideways
        width = 0.085 * person.girth
        toe = (ankle[0] + 0.03 * pose.ahead, ankle[1] + 0.022)
        thigh, shin = limb(hip, knee, width, 0.8 * width), limb(knee, ankle, 0.8 * width, 0.55 * width)
        skin = _dim_colour(person.skin) if dim else person.skin
        cloth = wardrobe.lower_shaded if dim else wardrobe.lower
        if person.lower == "trousers":
            sketch.clothe(thigh + shin, cloth, top=LOWER_TOP)
        else:
            sketch.fill(limb(knee, ankle, 0.6 * width, 0.45 * width) + thigh, skin)
        if person.lower == "shorts":
            sketch.clothe(limb(hip, knee, 1.1 * width, 1.1 * width)[:2], cloth, top=LOWER_TOP)
        sketch.fill([ellipse(toe, 0.045 if pose.sideways else 0.03, 0.02)], person.shoes)
    if person.lower in ("skirt", "gown"):
        waist, end = 0.07 * person.girth, LOWER_END[person.lower]
        hem = (0.125 if person.lower == "skirt" else 0.15) * person.girth
        sway = 0.02 * math.sin(pose.phase)
        bell = [(-waist, LOWER_TOP), (waist, LOWER_TOP), (hem + sway, end), (-hem + sway, end)]
        sketch.clothe([bell], wardrobe.lower, top=LOWER_TOP)


def _leg(person: Person, pose: Pose, side: int) -> tuple[Point, Point, Point]:
    """Hip, knee and ankle of the near (0) or far (1) leg; of the left or right one seen from front or back."""
    phase = pose.phase + math.pi * side
    if pose.sideways:
        thigh = pose.stride * math.sin(phase)
        shin = thigh - 1.1 * pose.stride * max(0.0, math.cos(phase))
        hip = (0.0, HIP)
        knee = (pose.ahead * 0.22 * math.sin(thigh), HIP + 0.22 * math.cos(thigh))
        ankle = (knee[0] + pose.ahead * 0.22 * math.sin(shin), knee[1] + 0.22 * math.cos(shin))
        return hip, knee, ankle
    outward = (1 - 2 * side) * 0.048 * person.girth
    lift = 0.05 * pose.stride * max(0.0, math.sin(phase))
    return (outward, HIP), (1.1 * outward, KNEE - lift), (1.05 * outward, ANKLE - 1.6 * lift)


def _draw_trunk(sketch: Sketch, person: Person, wardrobe: Wardrobe, pose: Pose) -> None:
    shoulder = (0.075 if pose.sideways else 0.115) * person.girth
    hip = (0.07 if pose.sideways else 0.09) * person.girth
    hem = HEM[person.upper]
    flare = 1.45 if person.upper == "coat" else 1.05
    trunk: Polygon = [
        (-0.4 * shoulder, SHOULDER - 0.02),
        (0.4 * shoulder, SHOULDER - 0.02),
        (shoulder, SHOULDER + 0.015),
        (0.95 * hip, WAIST),
        (flare * hip, hem),
        (-flare * hip, hem),
        (-0.95 * hip, WAIST),
        (-shoulder, SHOULDER + 0.015),
    ]
    sketch.fill([box(-0.03, 0.1, 0.03, 0.17)], _dim_colour(person.skin))
    sketch.clothe([trunk], wardrobe.upper, top=SHOULDER)


def _arms(person: Person, pose: Pose) -> list[tuple[Point, Point, Point]]:
    """Shoulder, elbow and hand of both arms, the near one first."""
    arms = []
    for side in (0, 1):
        swing = 0.8 * pose.stride * math.sin(pose.phase + math.pi * (1 - side))
        if pose.sideways:
            shoulder = (0.0, SHOULDER + 0.03)
            elbow = (pose.ahead * 0.15 * math.sin(swing), shoulder[1] + 0.15 * math.cos(swing))
            bent = swing + 0.3
            hand = (elbow[0] + pose.ahead * 0.15 * math.sin(bent), elbow[1] + 0.15 * math.cos(bent))
        else:
            outward = 1 - 2 * side
            shoulder = (outward * 0.112 * person.girth, SHOULDER + 0.03)
            elbow = (shoulder[0] + outward * 0.025, shoulder[1] + 0.15)
            hand = (elbow[0] + outward * 0.01, elbow[1] + 0.15 - 0.04 * abs(swing))
        arms.append((shoulder, elbow, hand))
    return arms


def _draw_arm(sketch: Sketch, person: Person, wardrobe: Wardrobe, arm: tuple[Point, Point, Point]) -> None:
    shoulder, elbow, hand = arm
    width = 0.058 * person.girth
    upper_arm, forearm = limb(shoulder, elbow, width, 0.85 * width), limb(elbow, hand, 0.8 * width, 0.65 * width)
    sketch.fill([ellipse(hand, 0.02, 0.026)], person.skin)
    if person.sleeves == "short":
        sketch.fill(forearm, person.skin)
        sketch.clothe(upper_arm[:2], wardrobe.upper_shaded, top=SHOULDER)
    elif person.sleeves == "contrast":
        sketch.fill(upper_arm + forearm, person.upper_colours[1])
    else:
        sketch.clothe(upper_arm + forearm, wardrobe.upper_shaded, top=SHOULDER)


def _draw_bag(sketch: Sketch, person: Person, pose: Pose, hand: Point) -> None:
    colour, dim = person.bag_colour, _dim_colour(person.bag_colour)
    if person.bag == "backpack":
        if pose.sideways:
            back = -pose.ahead * 0.07 * person.girth
            far = back - pose.ahead * 0.085
            sketch.fill([box(min(back, far), 0.18, max(back, far), 0.4)], colour)
        elif pose.facing == "back":
            sketch.fill([box(-0.085, 0.17, 0.085, 0.41)], colour)
            sketch.fill([box(-0.06, 0.3, 0.06, 0.38)], dim)
        else:
            for strap in (-1, 1):
                sketch.fill(limb((strap * 0.06, 0.16), (strap * 0.075, 0.34), 0.03, 0.03), colour)
    elif person.bag == "handbag":
        sketch.fill([box(hand[0] - 0.06, hand[1] + 0.03, hand[0] + 0.06, hand[1] + 0.14)], colour)
        sketch.fill(limb((hand[0] - 0.03, hand[1] + 0.04), hand, 0.012, 0.012), dim)
    elif person.bag == "crossbody":
        side = {"front": 1.0, "back": -1.0}.get(pose.facing, 0.3 * pose.ahead)
        sketch.fill(limb((-side * 0.07, 0.16), (side * 0.1, 0.44), 0.024, 0.024), colour)
        sketch.fill([box(side * 0.11 - 0.055, 0.42, side * 0.11 + 0.055, 0.53)], colour)


def _draw_head(sketch: Sketch, person: Person, pose: Pose) -> None:
    nose = pose.ahead
    if person.scarf is not None:
        sketch.fill([ellipse((0.0, 0.15), 0.065, 0.026), box(-0.03, 0.15, 0.03, 0.26)], person.scarf)
    if person.hair_style == "long" and pose.facing != "back":
        sketch.fill([ellipse((-0.02 * nose, 0.09), 0.058, 0.09)], person.hair)
    sketch.fill([ellipse((0.01 * nose, 0.075), 0.044, 0.06)], person.skin)
    if person.hair_style != "bald":
        crown = [(x, min(y, 0.055)) for x, y in ellipse((-0.008 * nose, 0.065), 0.05, 0.06)]
        sketch.fill([crown], person.hair)
        if nose:
            sketch.fill([ellipse((-0.026 * nose, 0.07), 0.026, 0.045)], person.hair)
        if pose.facing == "back":
            long = person.hair_style == "long"
            sketch.fill(
                [ellipse((0.0, 0.1 if long else 0.068), 0.055 if long else 0.048, 0.1 if long else 0.06)], person.hair
            )
        if person.hair_style == "bun":
            sketch.fill([ellipse((-0.05 * nose, 0.0 if not nose else 0.04), 0.03, 0.03)], person.hair)
    if pose.facing == "front":
        sketch.fill([box(-0.024, 0.07, -0.012, 0.08), box(0.012, 0.07, 0.024, 0.08)], (30, 26, 26))
    _draw_hat(sketch, person, nose, pose.facing)


def _draw_hat(sketch: Sketch, person: Person, nose: float, facing: str) -> None:
    if person.hat == "none":
        return
    colour = person.hat_colour
    dome = [(x, min(y, 0.045)) for x, y in ellipse((0.0, 0.045), 0.056, 0.062)]
    sketch.fill([dome], colour)
    if person.hat == "cap" and nose:
        sketch.fill([box(min(0.0, 0.1 * nose), 0.03, max(0.0, 0.1 * nose), 0.046)], _dim_colour(colour))
    elif person.hat == "cap" and facing == "front":
        sketch.fill([ellipse((0.0, 0.046), 0.055, 0.014)], _dim_colour(colour))
    elif person.hat == "beanie":
        sketch.fill([ellipse((0.0, -0.015), 0.022, 0.022), box(-0.056, 0.03, 0.056, 0.05)], _dim_colour(colour))
    elif person.hat == "brim":
        sketch.fill([ellipse((0.0, 0.042), 0.105, 0.016)], colour)


def _dim(value: int) -> int:
    return int(SHADE * value)


def _dim_colour(colour: Colour) -> Colour:
    return _dim(colour[0]), _dim(colour[1]), _dim(colour[2])
