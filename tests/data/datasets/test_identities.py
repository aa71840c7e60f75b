from __future__ import annotations

import pytest

from fastreid_lite.data.datasets.identities import draw_identities, number_identities


def test_digits_are_the_pids() -> None:
    assert number_identities("toy", [["0002", "10"], ["2"]]) == {"0002": 2, "10": 10, "2": 2}


def test_one_word_makes_all_of_them_words() -> None:
    assert number_identities("toy", [["2", "10"], ["b"]]) == {"10": 0, "2": 1, "b": 2}


def test_numbers_too_long_for_an_integer_are_words() -> None:
    assert number_identities("toy", [["9" * 30, "1"]]) == {"1": 0, "9" * 30: 1}


def test_digits_of_other_scripts_are_words() -> None:
    assert number_identities("toy", [["٣", "1"]]) == {"1": 0, "٣": 1}


def test_two_spellings_of_one_number_in_one_part_are_refused() -> None:
    with pytest.raises(
        ValueError, match="dataset 'toy': the identities '007' and '7' in one part are the same number 7"
    ):
        number_identities("toy", [["7", "007"]])


def test_a_draw_depends_on_the_set_of_pids_alone() -> None:
    assert draw_identities([5, 1, 9, 1, 5], 2, 3) == draw_identities([9, 5, 1], 2, 3)
    assert len(draw_identities(range(10), 4, 0)) == 4
