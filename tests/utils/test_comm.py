from __future__ import annotations

from typing import Any

import pytest
import torch

from fastreid_lite.utils import comm
from tests.processes import run_processes


def test_one_process_is_alone_and_nothing_travels() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    assert (comm.get_rank(), comm.get_world_size()) == (0, 1)
    assert comm.is_main_process() and not comm.is_distributed()
    comm.synchronize()
    comm.broadcast_tensors([tensor])
    assert comm.all_reduce_sum(tensor) is tensor
    assert comm.all_gather_rows(tensor) is tensor
    assert comm.all_gather_object("x") == ["x"]
    assert comm.broadcast_object("x") == "x"


def test_the_local_rank_is_the_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert comm.get_local_rank() == 0
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert comm.get_local_rank() == 3


def speak() -> dict[str, Any]:
    rank = comm.get_rank()
    mine = torch.full((2, 3), 1.0 + rank)[:, ::2]
    summed = comm.all_reduce_sum(mine)
    comm.synchronize()
    return {
        "who": (rank, comm.get_world_size(), comm.is_main_process(), comm.is_distributed(), comm.get_local_rank()),
        "sum": summed.tolist(),
        "mine": mine.tolist(),
        "objects": comm.all_gather_object({"rank": rank}),
        "from 1": comm.broadcast_object(f"rank {rank}", source=1),
        "whole numbers": comm.all_reduce_sum(torch.tensor(2**40)).item(),
    }


def test_three_processes_hear_each_other() -> None:
    for rank, heard in enumerate(run_processes(speak, 3)):
        assert heard == {
            "who": (rank, 3, rank == 0, True, rank),
            "sum": [[6.0, 6.0]] * 2,
            "mine": [[1.0 + rank] * 2] * 2,
            "objects": [{"rank": 0}, {"rank": 1}, {"rank": 2}],
            "from 1": "rank 1",
            "whole numbers": 3 * 2**40,
        }


def gather(counts: list[int], dtype: torch.dtype) -> torch.Tensor:
    rank = comm.get_rank()
    mine = torch.full((counts[rank], 2), rank).to(dtype)
    return comm.all_gather_rows(mine)


@pytest.mark.parametrize("counts", [[1, 3, 2], [0, 2, 0], [0, 0, 0]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_rows_of_any_number_come_together_in_order_of_rank(counts: list[int], dtype: torch.dtype) -> None:
    expected = torch.cat([torch.full((count, 2), rank).to(dtype) for rank, count in enumerate(counts)])
    for gathered in run_processes(gather, 3, counts, dtype):
        assert gathered.dtype == dtype
        assert torch.equal(gathered, expected)


def broadcast() -> list[Any]:
    """Rank 1's tensors to all, in memory formats that differ between the processes."""
    rank = comm.get_rank()
    image = torch.arange(24.0).reshape(1, 2, 3, 4) + 100 * rank
    if rank == 0:
        image = image.contiguous(memory_format=torch.channels_last)
    strided = (torch.arange(8) + 100 * rank)[::2]
    parameter = torch.nn.Parameter(torch.tensor([float(rank)]))
    comm.broadcast_tensors([image, strided, parameter], source=1)
    return [image.tolist(), strided.tolist(), parameter.tolist()]


def test_tensors_are_overwritten_in_place_whatever_their_memory_format() -> None:
    image = (torch.arange(24.0).reshape(1, 2, 3, 4) + 100).tolist()
    assert run_processes(broadcast, 2) == [[image, [100, 102, 104, 106], [1.0]]] * 2
