from __future__ import annotations

import pytest

from fastreid_lite.solver.warmup import Warmup


@pytest.mark.parametrize("method", ["constant", "linear", "exp"])
def test_no_factor_is_above_one_and_the_base_rate_holds_from_the_end_on(method: str) -> None:
    warmup = Warmup(iters=7, factor=0.1, method=method)
    factors = [warmup(iteration) for iteration in range(12)]
    assert factors[0] == pytest.approx(0.1, rel=1e-15)
    assert all(factor <= 1.0 for factor in factors)
    assert factors[:7] == sorted(factors[:7])
    assert factors[7:] == [1.0] * 5


@pytest.mark.parametrize("method", ["constant", "linear", "exp"])
def test_a_warmup_of_no_iterations_divides_by_nothing(method: str) -> None:
    assert Warmup(iters=0, factor=0.1, method=method)(0) == 1.0


@pytest.mark.parametrize("method", ["constant", "linear", "exp"])
def test_a_factor_of_zero_is_allowed(method: str) -> None:
    warmup = Warmup(iters=4, factor=0.0, method=method)
    assert warmup(0) == 0.0
    assert warmup(4) == 1.0


@pytest.mark.parametrize("iters", [-1, 2.5, True])
def test_a_length_that_is_no_whole_number_is_refused(iters: int) -> None:
    with pytest.raises(ValueError, match=f"SOLVER.WARMUP_ITERS is {iters}; expected a whole number"):
        Warmup(iters=iters)


@pytest.mark.parametrize("factor", [-0.1, 1.5, float("nan")])
def test_a_factor_that_would_go_over_the_base_rate_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match=r"SOLVER.WARMUP_FACTOR is .*; expected a share of the base rate in \[0, 1\]"):
        Warmup(factor=factor)


def test_an_unknown_method_names_the_nearest() -> None:
    with pytest.raises(KeyError, match="unknown warm-up method 'liner' .*did you mean 'linear'"):
        Warmup(method="liner")
