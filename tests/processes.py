"""The one way in which tests run several processes: gloo on this machine, every process ended whatever happens.

The processes are forked from a server that has imported torch once and has no threads, so the first call costs the
import and every further one a few hundredths of a second for each process.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed

_PRELOAD = ["torch", "torch.distributed", "fastreid_lite.utils.comm"]
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# When one process has failed, the others get this long to say what happened to them.
_GRACE = 1.0


def run_processes(function: Callable[..., Any], world_size: int, *args: Any, timeout: float = 60) -> list[Any]:
    """Call ``function(*args)`` in ``world_size`` processes that form one gloo group; what each returned, by rank.

    ``comm.get_rank()`` tells a process who it is. The function must be defined at the top of a module, and its
    arguments and results must be picklable.

    Raises:
        AssertionError: a process raised, died or was not done after ``timeout`` seconds; the message holds the
            traceback of each process that has one. All processes are ended by then.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    before = dict(os.environ)
    os.environ.update(_THREADS)
    processes: list[BaseProcess] = []
    pipes: list[Connection] = []
    with tempfile.TemporaryDirectory(prefix="processes_") as folder:
        try:
            for rank in range(world_size):
                ours, theirs = context.Pipe()
                job = (theirs, function, args, rank, world_size, folder, timeout, dict(os.environ))
                process = context.Process(target=_child, args=job, name=f"rank {rank}")
                process.start()
                theirs.close()
                processes.append(process)
                pipes.append(ours)
            results = _collect(processes, pipes, Path(folder), timeout)
            for pipe in pipes:
                pipe.send("all are done")
            for started in processes:
                started.join(timeout)
            return results
        finally:
            os.environ.clear()
            os.environ.update(before)
            for started in processes:
                started.kill()
                started.join()
            for pipe in pipes:
                pipe.close()


def _child(
    pipe: Connection,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    rank: int,
    world_size: int,
    folder: str,
    timeout: float,
    environment: dict[str, str],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.environ["LOCAL_RANK"] = str(rank)
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with open(Path(folder) / f"stack{rank}", "w") as stack:
        faulthandler.register(signal.SIGUSR1, file=stack)
        try:
            _join_group(rank, world_size, folder, timeout)
            answer = (True, function(*args))
        except BaseException:
            answer = (False, traceback.format_exc())
        try:
            pipe.send(answer)
        except Exception:
            pipe.send((False, f"the result cannot be sent\n{traceback.format_exc()}"))
        # A process that leaves early closes connections which slower ones still use.
        pipe.recv()
        torch.distributed.destroy_process_group()
        faulthandler.unregister(signal.SIGUSR1)


def _join_group(rank: int, world_size: int, folder: str, timeout: float) -> None:
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(str(Path(folder) / "store"), world_size)
    patience = timedelta(seconds=timeout)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=patience)


def _collect(processes: list[BaseProcess], pipes: list[Connection], folder: Path, timeout: float) -> list[Any]:
    results: dict[int, Any] = {}
    failures: dict[int, str] = {}
    deadline = time.monotonic() + timeout
    while len(results) + len(failures) < len(pipes) and (left := deadline - time.monotonic()) > 0:
        open_pipes = {pipe: rank for rank, pipe in enumerate(pipes) if rank not in results and rank not in failures}
        for pipe in wait(list(open_pipes), timeout=left):
            rank = open_pipes[pipe]  # type: ignore[index]
            try:
                fine, answer = pipes[rank].recv()
            except EOFError:
                processes[rank].join()
                fine, answer = False, f"died with exit code {processes[rank].exitcode} and said nothing"
            (results if fine else failures)[rank] = answer
            if not fine:
                deadline = min(deadline, time.monotonic() + _GRACE)
    if failures or len(results) < len(pipes):
        raise AssertionError(_report(processes, results, failures, folder, timeout))
    return [results[rank] for rank in range(len(pipes))]


def _report(
    processes: list[BaseProcess], results: dict[int, Any], failures: dict[int, str], folder: Path, timeout: float
) -> str:
    """What each process was doing: those that still run write their stacks when they are asked by a signal."""
    busy = [rank for rank in range(len(processes)) if rank not in results and rank not in failures]
    for rank in busy:
        if processes[rank].is_alive():
            os.kill(int(processes[rank].pid or 0), signal.SIGUSR1)
    time.sleep(0.2 if busy else 0)
    said = {
        **dict.fromkeys(results, "returned"),
        **{rank: f"failed:\n{text}" for rank, text in failures.items()},
        **{rank: f"was still running:\n{(folder / f'stack{rank}').read_text()}" for rank in busy},
    }
    head = f"{len(failures)} of {len(processes)} processes failed" if failures else f"not done after {timeout:g} s"
    return "\n".join([head, *(f"rank {rank} {said[rank]}" for rank in sorted(said))])
