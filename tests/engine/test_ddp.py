"""Several processes: one error for all, equal weights, no collective that is not needed."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fastreid_lite.engine import hooks
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.finite import NonFiniteError
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from fastreid_lite.utils import comm
from tests.engine.test_amp import Multiply
from tests.processes import run_processes

NAN = math.nan


class Net(nn.Module):
    """Losses of a small network; on ``rank`` at ``step`` something goes wrong, as ``how`` says."""

    def __init__(self, how: str = "", *, rank: int = 1, step: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
        self.how, self.at = how, (rank, step)
        self.calls = 0

    def forward(self, batch: Any) -> dict[str, torch.Tensor]:
        out = self.layers(batch["images"])
        bad = (comm.get_rank(), self.calls) == self.at
        self.calls += 1
        losses = {"a": out.square().mean(), "b": out.abs().mean()}
        if self.how == "loss":
            losses["b"] = losses["b"] * (NAN if bad else 1.0)
        elif self.how == "constant":
            losses["c"] = torch.tensor(NAN if bad else 1.0)
        elif self.how == "hidden":
            # Where it goes wrong, autograd gives zeros: nothing flows back through a ReLU that is off.
            off = torch.relu(out - 1e6).mean()
            losses = {"a": off if bad else losses["a"], "c": torch.tensor(NAN if bad else 1.0)}
        elif self.how == "gradient":
            losses["b"] = Multiply.apply(losses["b"], NAN if bad else 1.0)
        return losses


def make(net: Net, *, steps: int = 1, momentum: float = 0.9, fused: bool = False, **options: Any) -> SimpleTrainer:
    generator = torch.Generator().manual_seed(10 + comm.get_rank())
    batches = [
        {"images": torch.randn(3, 4, generator=generator), "img_paths": [f"rank{comm.get_rank()}_{number}.jpg"]}
        for number in range(12)
    ]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=momentum, fused=fused)
    return SimpleTrainer(DistributedDataParallel(net), batches, optimizer, accumulate_steps=steps, **options)


def weights(trainer: SimpleTrainer) -> list[float]:
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()]).tolist()


class Collectives:
    """Counts what passes through ``comm``."""

    def __init__(self) -> None:
        self.names: list[str] = []
        for name in ("all_reduce", "all_gather_object", "broadcast_object_list", "barrier", "all_gather", "broadcast"):
            self._wrap(name)

    def _wrap(self, name: str) -> None:
        original = getattr(torch.distributed, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.names.append(name)
            return original(*args, **kwargs)

        setattr(torch.distributed, name, counted)


def goes_wrong(how: str, options: dict[str, Any], steps: int, period: int) -> dict[str, Any]:
    """One run to step 6, in this process."""
    if options.pop("clip", False):
        options["clipper"] = GradientClipper("norm", 1.0)
    trainer = make(Net(how), steps=steps, **options)
    trainer.register_hooks([hooks.PeriodicWriter([], period)])
    collectives = Collectives()
    last: list[int] = []
    trainer.register_hooks([hooks.CallbackHook(after_backward=lambda t: last.append(len(collectives.names)))])
    error = None
    try:
        trainer.train(0, 6)
    except NonFiniteError as caught:
        error = str(caught)
    return {
        "error": error,
        "weights": weights(trainer),
        "iter": trainer.iter,
        "skipped": trainer.guard.skipped,
        "on the way": collectives.names[last[-1] :],
        "scale": None if trainer.scaler is None else trainer.scaler.get_scale(),
    }


def good(how: str, steps_done: int, options: dict[str, Any], steps: int) -> list[float]:
    """Weights after ``steps_done`` steps in which nothing went wrong."""
    options = {key: value for key, value in options.items() if not key.startswith("nonfinite") and key != "clip"}
    trainer = make(Net(how, step=-1), steps=steps, **options)
    if steps_done:
        trainer.train(0, steps_done)
    return weights(trainer)


CASES: list[Any] = [
    ("loss", {"nonfinite_mode": "immediate"}, 1),
    ("constant", {"nonfinite_mode": "immediate"}, 1),
    ("hidden", {"nonfinite_mode": "immediate"}, 1),
    ("gradient", {"nonfinite_mode": "immediate"}, 1),
    ("loss", {"nonfinite_mode": "immediate", "clip": True}, 1),
    ("loss", {"nonfinite_mode": "deferred"}, 1),
    ("loss", {"nonfinite_mode": "deferred", "fused": True}, 1),
    ("constant", {"nonfinite_mode": "deferred", "fused": True}, 1),
    ("gradient", {"nonfinite_mode": "deferred", "fused": True}, 1),
    ("loss", {"nonfinite_mode": "immediate"}, 2),
    ("constant", {"nonfinite_mode": "deferred", "fused": True}, 2),
]


def in_turn(cases: list[tuple[str, dict[str, Any], int]]) -> list[Any]:
    originals = dict(vars(torch.distributed))
    found = []
    for how, options, steps in cases:
        found.append((goes_wrong(how, dict(options), steps, 5), good(how, 3 if steps == 1 else 1, options, steps)))
        for name, value in originals.items():
            setattr(torch.distributed, name, value)
    return found


def everything(cases: list[Any]) -> dict[str, Any]:
    return {"cases": in_turn(cases), "averages": averages(), "heads": train_heads()}


@pytest.fixture(scope="module")
def by_rank() -> list[dict[str, Any]]:
    """What each rank found in all cases of this file: starting processes is what takes time."""
    return run_processes(everything, 2, [*CASES, *WITH_SCALER, *SKIPPED_BY_SCALER, *SKIPPED], timeout=150)


@pytest.fixture(scope="module")
def runs(by_rank: list[dict[str, Any]]) -> list[tuple[Any, Any, Any]]:
    """(case, what rank 0 found, what rank 1 found)."""
    cases = [*CASES, *WITH_SCALER, *SKIPPED_BY_SCALER, *SKIPPED]
    return list(zip(cases, *(found["cases"] for found in by_rank)))


def of(runs: list[tuple[Any, Any, Any]], cases: list[Any]) -> list[tuple[Any, Any, Any]]:
    return [run for run in runs if any(run[0] is case for case in cases)]


def test_every_rank_raises_the_same_error_for_the_same_step_with_equal_finite_weights(runs: Any) -> None:
    for (how, options, steps), first, second in of(runs, CASES):
        case = f"{how} {options} {steps}"
        (first, reference), (second, _) = first, second
        assert first["error"] is not None and first["error"] == second["error"], case
        # Batch 3 is the second one of step 1 where two make a step.
        step = 3 if steps == 1 else 1
        assert f"at iteration={step}!" in first["error"], case
        assert first["weights"] == second["weights"] and all(map(math.isfinite, first["weights"])), case
        if not options.get("clip"):
            assert first["weights"] == reference, case
        if how == "gradient":
            assert first["error"].startswith("Gradient became") and "rank0_3.jpg" in first["error"], case
        else:
            assert first["error"].startswith("Loss became") and "rank 1: losses: a = " in first["error"], case
            assert "rank1_3.jpg" in first["error"] and "rank0" not in first["error"], case
            assert f"{'b' if how == 'loss' else 'c'} = nan" in first["error"], case
        if options["nonfinite_mode"] == "immediate":
            assert first["iter"] == step, case
            # After the backward pass of the bad step: one to name the term to all, and none before the error.
            assert first["on the way"] == second["on the way"] == ["all_gather_object"], case


SCALED = {"amp_enabled": True, "amp_dtype": "float16"}
WITH_SCALER: list[Any] = [
    ("loss", {"nonfinite_mode": mode, "fused": fused, **SCALED}, 1)
    for mode, fused in (("immediate", False), ("deferred", True))
] + [("hidden", {"nonfinite_mode": "immediate", **SCALED}, 1)]
SKIPPED_BY_SCALER: list[Any] = [(how, {"nonfinite_mode": "immediate", **SCALED}, 1) for how in ("gradient", "")]
SKIPPED: list[Any] = [
    ("loss", {"nonfinite_mode": mode, "nonfinite_policy": "skip", "fused": mode == "deferred"}, 1)
    for mode in ("immediate", "deferred")
]


def test_with_a_scaler_the_poison_stays_until_all_know(runs: Any) -> None:
    for (how, options, _), first, second in of(runs, WITH_SCALER):
        case = f"{how} {options}"
        (first, reference), (second, _) = first, second
        assert first["error"] is not None and first["error"] == second["error"], case
        assert "Loss became infinite or NaN at iteration=3! rank 1: losses: " in first["error"], case
        assert first["weights"] == second["weights"] == reference, case


def test_with_a_scaler_a_bad_gradient_on_one_rank_is_skipped_by_all(runs: Any) -> None:
    (_, bad, other), (_, fine, _) = of(runs, SKIPPED_BY_SCALER)
    (first, reference), (second, _) = bad, other
    assert first["error"] is second["error"] is None
    assert first["weights"] == second["weights"] != reference and all(map(math.isfinite, first["weights"]))
    assert first["scale"] == second["scale"] == fine[0]["scale"] / 2


def test_under_skip_all_leave_the_step_out_and_go_on(runs: Any) -> None:
    for (_, options, _), (first, _), (second, _) in of(runs, SKIPPED):
        assert first["error"] is second["error"] is None and first["iter"] == 6
        assert first["weights"] == second["weights"] and all(map(math.isfinite, first["weights"]))
        assert first["skipped"] == second["skipped"] == 1, options


def averages() -> Any:
    """Reductions of gradients in each step, and the gradients of the step."""
    net = Net()
    trainer = make(net, steps=4)
    reductions: list[int] = []

    def count(state: Any, bucket: Any) -> Any:
        reductions.append(trainer.iter)
        flat = bucket.buffer() / comm.get_world_size()
        work = torch.distributed.all_reduce(flat, async_op=True)
        assert work is not None
        return work.get_future().then(lambda future: future.value()[0])

    # Which torch checks, and which are strings in this file.
    count.__annotations__ = {"bucket": torch.distributed.GradBucket, "return": torch.futures.Future[torch.Tensor]}
    trainer.model.register_comm_hook(None, count)
    seen: list[list[float]] = []

    def keep(trainer: Any) -> None:
        seen.append(torch.cat([p.grad.flatten() for p in trainer.model.parameters()]).tolist())

    trainer.register_hooks([hooks.CallbackHook(after_backward=keep)])
    initial = weights(trainer)
    trainer.train(0, 1)
    return reductions, seen, initial, [batch["images"] for batch in trainer.data_loader]


def test_gradients_are_reduced_once_a_window_and_are_the_mean_over_batches_and_ranks(by_rank: Any) -> None:
    found = [rank["averages"] for rank in by_rank]
    total: list[float] | None = None
    for reductions, seen, initial, _ in found:
        assert reductions == [0] and seen == found[0][1] and initial == found[0][2]
    for _, _, _, images in found:
        for batch in images[:4]:
            net = Net()
            sum(net({"images": batch}).values()).backward()  # type: ignore[union-attr]
            one = torch.cat([p.grad.flatten() for p in net.parameters()]).tolist()  # type: ignore[union-attr]
            total = one if total is None else [a + b for a, b in zip(total, one)]
    assert total is not None and found[0][1][0] == pytest.approx([value / 8 for value in total], abs=1e-6)


class Heads(nn.Linear):
    def forward(self, batch: Any) -> dict[str, torch.Tensor]:
        return {"outputs": super().forward(batch["images"])}

    def losses(self, outs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"loss_cls": outs["outputs"].square().mean()}


def train_heads() -> tuple[list[float], list[str]]:
    torch.manual_seed(0)
    trainer = make(Heads(4, 2))  # type: ignore[arg-type]
    trainer.train(0, 3)
    return weights(trainer), list(trainer.state_dict()["model"])


def test_a_wrapped_model_of_heads_trains_and_its_checkpoint_has_the_bare_names(by_rank: Any) -> None:
    first, second = (rank["heads"] for rank in by_rank)
    assert first == second and first[1] == ["weight", "bias"]
