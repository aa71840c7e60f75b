"""Who walks by: the looks that make an identity, drawn so that no two people share nearly all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Colour = tuple[int, int, int]

SKINS: tuple[Colour, ...] = ((236, 196, 168), (206, 156, 118), (150, 104, 72), (92, 62, 46))
HAIRS: tuple[Colour, ...] = ((30, 24, 22), (92, 58, 34), (188, 146, 78), (150, 148, 146))
CLOTHES: tuple[Colour, ...] = (
    (34, 34, 40),
    (226, 226, 222),
    (124, 126, 130),
    (182, 44, 48),
    (42, 72, 164),
    (48, 124, 68),
    (214, 182, 62),
    (116, 78, 50),
    (118, 62, 138),
    (112, 168, 212),
)
UPPERS = ("shirt", "coat")
UPPER_PATTERNS = ("plain", "hoops", "stripes", "checks", "dots", "halves", "band", "sash")
SLEEVES = ("long", "short", "contrast")
LOWERS = ("trousers", "shorts", "skirt", "gown")
LOWER_PATTERNS = ("plain", "halves", "hoops", "checks")
HAIR_STYLES = ("short", "long", "bun", "bald")
HATS = ("none", "cap", "beanie", "brim")
BAGS = ("none", "backpack", "handbag", "crossbody")

DYE_JITTER = 12
"""How far, in grey levels, a garment may lie from its colour in CLOTHES."""
PATTERN_CONTRAST = 50.0
"""How far apart, in grey levels of luminance, the two colours of a pattern are at least."""
FEWEST_DIFFERENCES = 6
"""In how many traits two people differ, wherever the number of people leaves room for it."""


@dataclass(frozen=True)
class Person:
    """One identity: everything about it that no camera, pose or day changes.

    Args:
        height: as a part of the tallest person, 0.86 to 1.
        girth: as a part of the mean person, 0.8 to 1.25.
        scarf: its colour; None for no scarf.
        traits: (T,) int64, what can be seen, one code each; -1 for the colour of a thing that is not worn. Two people
            are as unlike as their traits differ in number.
    """

    height: float
    girth: float
    skin: Colour
    hair: Colour
    hair_style: str
    hat: str
    hat_colour: Colour
    upper: str
    upper_pattern: str
    upper_colours: tuple[Colour, Colour]
    sleeves: str
    lower: str
    lower_pattern: str
    lower_colours: tuple[Colour, Colour]
    shoes: Colour
    bag: str
    bag_colour: Colour
    scarf: Colour | None
    traits: np.ndarray


def draw_people(count: int, seed: int) -> list[Person]:
    """``count`` people, the same for the same ``seed``; the first n are the same whatever ``count`` is."""
    people: list[Person] = []
    taken: np.ndarray | None = None  # (count, T), filled as people are drawn
    for index in range(count):
        best, most = None, -1
        for attempt in range(20):
            person = draw_person(np.random.default_rng((seed, index, attempt)))
            if taken is None:
                taken = np.empty((count, len(person.traits)), dtype=np.int64)
            differences = (taken[:index] != person.traits).sum(axis=1)
            fewest = int(differences.min(initial=len(person.traits)))
            if fewest > most:
                best, most = person, fewest
            if most >= FEWEST_DIFFERENCES:
                break
        assert best is not None and taken is not None
        people.append(best)
        taken[index] = best.traits
    return people


def draw_person(rng: np.random.Generator) -> Person:
    """A person at random."""
    upper, sleeves, lower = _one(rng, UPPERS, (2, 1)), _one(rng, SLEEVES), _one(rng, LOWERS, (4, 2, 2, 1))
    upper_pattern, lower_pattern = _one(rng, UPPER_PATTERNS), _one(rng, LOWER_PATTERNS, (3, 1, 1, 1))
    hair_style, hat, bag = _one(rng, HAIR_STYLES), _one(rng, HATS, (3, 1, 1, 1)), _one(rng, BAGS, (3, 2, 2, 2))
    upper_dyes, lower_dyes = _two_dyes(rng), _two_dyes(rng)
    skin, hair, shoes, hat_dye, bag_dye, scarf = (
        int(rng.integers(len(options))) for options in (SKINS, HAIRS, CLOTHES, CLOTHES, CLOTHES, CLOTHES)
    )
    has_scarf = bool(rng.random() < 0.3)
    traits = (
        *(upper, upper_pattern, sleeves, lower, lower_pattern, hair_style, hat, bag),
        upper_dyes[0],
        upper_dyes[1] if upper_pattern else -1,
        lower_dyes[0],
        lower_dyes[1] if lower_pattern else -1,
        hat_dye if hat else -1,
        bag_dye if bag else -1,
        scarf if has_scarf else -1,
        skin,
        hair if hair_style != HAIR_STYLES.index("bald") else -1,
    )
    return Person(
        height=float(rng.uniform(0.86, 1.0)),
        girth=float(rng.uniform(0.8, 1.25)),
        skin=SKINS[skin],
        hair=HAIRS[hair],
        hair_style=HAIR_STYLES[hair_style],
        hat=HATS[hat],
        hat_colour=_dyed(rng, hat_dye),
        upper=UPPERS[upper],
        upper_pattern=UPPER_PATTERNS[upper_pattern],
        upper_colours=(_dyed(rng, upper_dyes[0]), _dyed(rng, upper_dyes[1])),
        sleeves=SLEEVES[sleeves],
        lower=LOWERS[lower],
        lower_pattern=LOWER_PATTERNS[lower_pattern],
        lower_colours=(_dyed(rng, lower_dyes[0]), _dyed(rng, lower_dyes[1])),
        shoes=_dyed(rng, shoes),
        bag=BAGS[bag],
        bag_colour=_dyed(rng, bag_dye),
        scarf=_dyed(rng, scarf) if has_scarf else None,
        traits=np.array(traits, dtype=np.int64),
    )


def luminance(colour: Colour) -> float:
    """Grey level 0 to 255 of a colour (ITU-R BT.601)."""
    return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]


def _one(rng: np.random.Generator, options: Sequence[str], weights: Sequence[float] | None = None) -> int:
    """The index of one of ``options``; all equally likely where ``weights`` is None."""
    if weights is None:
        return int(rng.integers(len(options)))
    return int(rng.choice(len(options), p=np.array(weights) / sum(weights)))


def _two_dyes(rng: np.random.Generator) -> tuple[int, int]:
    """Two colours of CLOTHES that can be told apart under any light."""
    first = int(rng.integers(len(CLOTHES)))
    grey = [luminance(colour) for colour in CLOTHES]
    others = [index for index in range(len(CLOTHES)) if abs(grey[index] - grey[first]) > PATTERN_CONTRAST]
    return first, others[int(rng.integers(len(others)))]


def _dyed(rng: np.random.Generator, dye: int) -> Colour:
    shift = rng.integers(-DYE_JITTER, DYE_JITTER + 1, size=3)
    red, green, blue = (int(value) for value in np.clip(np.array(CLOTHES[dye]) + shift, 0, 255))
    return red, green, blue
