"""Exact CMC, mAP and mINP against the bare matrix product of the same features, interleaved in one process.

``python benchmarks/evaluation.py --queries 3368 --gallery 15913 --dimension 2048`` is Market-1501's size.
"""

from __future__ import annotations

import argparse
import resource
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastreid_lite.data.samples import Samples
from fastreid_lite.evaluation.ranking import rank_matches


def make_features(arguments: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor, Samples, Samples]:
    """Normal noise around a centre for each identity; ``signal`` 0 is pure noise, the hardest for float32."""
    generator = np.random.default_rng(arguments.seed)
    torch_generator = torch.Generator().manual_seed(arguments.seed)
    centres = torch.randn(arguments.identities, arguments.dimension, generator=torch_generator)
    parts: list[Any] = []
    for name, count in (("query", arguments.queries), ("gallery", arguments.gallery)):
        pids = generator.integers(0, arguments.identities, count)
        camids = generator.integers(0, arguments.cameras, count)
        features = torch.randn(count, arguments.dimension, generator=torch_generator)
        if arguments.signal:
            features.add_(centres[torch.from_numpy(pids)], alpha=arguments.signal)
        samples = Samples(tuple(f"{name}/{row}.jpg" for row in range(count)), {"pid": pids, "camid": camids})
        parts.append((features, samples))
    return parts[0][0], parts[1][0], parts[0][1], parts[1][1]


def bare_product(query: torch.Tensor, gallery: torch.Tensor, out: torch.Tensor) -> None:
    """The product in blocks of queries, thrown away: the least that any exact evaluation does."""
    for start in range(0, len(query), len(out)):
        part = query[start : start + len(out)]
        torch.mm(part, gallery.T, out=out[: len(part)])


def resident_mib() -> float:
    """Memory of this process now, MiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def peak_over_start(work: Callable[[], object]) -> float:
    """Largest resident memory while ``work`` runs, less that before it, in MiB, looked at every 2 ms."""
    start = peak = resident_mib()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(peak, resident_mib()) - start


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of ``work``; the second is the fairer one on a busy machine."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=800)
    parser.add_argument("--gallery", type=int, default=4000)
    parser.add_argument("--dimension", type=int, default=2048)
    parser.add_argument("--identities", type=int, default=751)
    parser.add_argument("--cameras", type=int, default=6)
    parser.add_argument("--signal", type=float, default=0.0, help="length of an identity's centre, in noise lengths")
    parser.add_argument("--metric", default="cosine", choices=["cosine", "euclidean"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    query_features, gallery_features, query, gallery = make_features(arguments)

    def work() -> None:
        rank_matches(query_features, gallery_features, query, gallery, metric=arguments.metric)

    memory = peak_over_start(work)
    out = torch.empty(min(arguments.queries, 1024), arguments.gallery)
    bare, ours = [], []
    for _ in range(arguments.rounds):
        bare.append(seconds(lambda: bare_product(query_features, gallery_features, out)))
        ours.append(seconds(work))
    size = f"{arguments.queries:,} x {arguments.gallery:,} x {arguments.dimension:,}"
    print(f"{size} float32, {arguments.metric}, {torch.get_num_threads()} threads, best of {arguments.rounds}")
    for number, clock in enumerate(("wall", "CPU")):
        least = [min(times[number] for times in side) for side in (bare, ours)]
        print(
            f"{clock:4} bare product {least[0]:7.3f} s, exact ranks {least[1]:7.3f} s, ratio {least[1] / least[0]:.2f}"
        )
    print(f"peak memory over the features {memory:.0f} MiB")


if __name__ == "__main__":
    main()
