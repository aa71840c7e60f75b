"""Processes: torchrun's, or so many on this machine, or this one alone."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from fastreid_lite.engine.agreement import STOP_SIGNALS
from fastreid_lite.runtime import get_runtime
from fastreid_lite.utils import comm

DEFAULT_TIMEOUT = timedelta(minutes=30)
# How long workers may take to end by themselves: all of them when a signal was passed on, the others when one failed.
_GRACE_SECONDS = 20.0
_GRACE_AFTER_FAILURE = 5.0


class LaunchError(ValueError):
    """The numbers of processes and machines do not go together."""


class WorkerError(RuntimeError):
    """A process of the run ended before its time; the others were ended too."""


def launch(
    function: Callable[..., Any],
    num_processes: int = 1,
    *,
    args: tuple[Any, ...] = (),
    num_machines: int = 1,
    machine_rank: int = 0,
    dist_url: str = "auto",
    device: str = "auto",
    timeout: timedelta = DEFAULT_TIMEOUT,
) -> None:
    """Call ``function(*args)`` in every process of the run.

    Under torchrun (``WORLD_SIZE`` is set) this process is one of them already. Otherwise ``num_processes`` are started
    on this machine; with one process on one machine nothing is started.

    Args:
        function: importable by name, since processes are spawned.
        num_processes: processes on this machine, >= 1.
        num_machines: machines that run this command, each with its ``machine_rank`` in [0, num_machines).
        dist_url: where they meet: "tcp://HOST:PORT" of machine 0; "auto" needs one machine, and takes no port.
        device: MODEL.DEVICE, which decides what the processes speak with each other.
        timeout: how long a collective waits for a process that does not come.

    Raises:
        LaunchError: numbers that do not go together. WorkerError: a process failed; its own error stands above.
    """
    if "WORLD_SIZE" in os.environ and "RANK" in os.environ:
        _under_torchrun(function, args, device, timeout, num_processes)
        return
    if num_processes < 1 or num_machines < 1 or not 0 <= machine_rank < num_machines:
        raise LaunchError(
            f"num_processes is {num_processes}, num_machines {num_machines}, machine_rank {machine_rank}: expected "
            f"counts >= 1 and 0 <= machine_rank < num_machines"
        )
    world_size = num_processes * num_machines
    if world_size == 1:
        function(*args)
        return
    if dist_url == "auto" and num_machines > 1:
        raise LaunchError("several machines need --dist-url tcp://HOST:PORT of machine 0, the same on all of them")
    # On one machine they meet at a file, so that no two runs can want the same port.
    folder = tempfile.mkdtemp(prefix="fastreid_lite_meet_") if dist_url == "auto" else None
    url = Path(folder, "store").as_uri() if folder else dist_url
    try:
        context = mp.get_context("spawn")
        workers = []
        for local_rank in range(num_processes):
            rank = machine_rank * num_processes + local_rank
            job = (function, args, rank, local_rank, world_size, url, device, timeout)
            workers.append(context.Process(target=_worker, args=job, name=f"rank {rank}"))
        _run_all(workers)
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _under_torchrun(
    function: Callable[..., Any], args: tuple[Any, ...], device: str, timeout: timedelta, num_processes: int
) -> None:
    if num_processes > 1:
        raise LaunchError(
            f"--num-processes {num_processes} under torchrun, which has started the processes already: leave it out, "
            f"or call python without torchrun"
        )
    if int(os.environ["WORLD_SIZE"]) == 1:
        function(*args)
        return
    _in_group(function, args, device, init_method="env://", timeout=timeout)


def _worker(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    rank: int,
    local_rank: int,
    world_size: int,
    url: str,
    device: str,
    timeout: timedelta,
) -> None:
    # A group of its own: what a terminal sends to all processes comes to it once, passed on by the one that started it.
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(local_rank), WORLD_SIZE=str(world_size))
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max((os.cpu_count() or 1) // max(world_size, 1), 1))
    with quiet_interrupt():
        _in_group(function, args, device, init_method=url, timeout=timeout, rank=rank, world_size=world_size)


@contextmanager
def quiet_interrupt() -> Iterator[None]:
    """Where Ctrl-C ends the block, let this process die of the signal, as shells expect it, without a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        logging.shutdown()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _die_with_parent() -> None:
    """End this process where the one that started it is gone, killed: nobody is left who could end it."""
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_group(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    device: str,
    *,
    init_method: str,
    timeout: timedelta,
    **who: int,
) -> None:
    runtime = get_runtime(device)
    runtime.prepare()
    dist.init_process_group(runtime.backend, init_method=init_method, timeout=timeout, **who)  # type: ignore[arg-type]
    try:
        comm.synchronize()
        function(*args)
    finally:
        dist.destroy_process_group()


def _run_all(workers: list[Any]) -> None:
    """Start ``workers`` and wait. The first that ends otherwise than well ends the others; signals are passed on."""
    passed: list[int] = []
    failed: list[Any] = []

    def pass_on(number: int, frame: Any) -> None:
        passed.append(number)
        for worker in workers:
            if worker.is_alive():
                os.kill(worker.pid, number)

    # Only the main thread may have handlers. A worker starts with none of ours, since it is spawned.
    listens = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, pass_on) for number in (STOP_SIGNALS if listens else ())}
    try:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            failed = [worker for worker in workers if worker.exitcode not in (None, 0)]
            if failed:
                break
            time.sleep(0.05)
    finally:
        _end_all([worker for worker in workers if worker.pid is not None], patient=bool(passed))
        for number, handler in before.items():
            signal.signal(number, handler)
    if passed:
        os.kill(os.getpid(), passed[0])
    # Who failed first is to blame: the others were ended, or lost their connection. One that a signal killed lost none.
    bad = failed or [worker for worker in workers if worker.exitcode != 0]
    if bad:
        first = next((worker for worker in bad if worker.exitcode < 0), bad[0])
        how = f"exit code {first.exitcode}" if first.exitcode > 0 else signal.Signals(-first.exitcode).name
        raise WorkerError(f"the process of {first.name} ended with {how}; the other processes were ended")


def _end_all(workers: list[Any], *, patient: bool) -> None:
    """Wait a little for workers that are ending by themselves, as those that raise the same error do; end the rest."""
    deadline = time.monotonic() + (_GRACE_SECONDS if patient else _GRACE_AFTER_FAILURE)
    for worker in workers:
        worker.join(max(deadline - time.monotonic(), 0.0))
    for worker in workers:
        if worker.is_alive():
            print(f"ending the process of {worker.name}", file=sys.stderr)
            worker.kill()
            worker.join()
