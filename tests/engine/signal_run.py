"""A run that tests send signals to: ``python signal_run.py FOLDER [PROCESSES]``. Says "step" when it is under way."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine.hooks import CallbackHook, EvalHook, PeriodicCheckpointer, PeriodicWriter
from fastreid_lite.engine.launch import launch
from fastreid_lite.engine.signals import stop_on_signals
from fastreid_lite.storage.writers import JSONWriter
from fastreid_lite.utils import comm
from tests.engine.toys import CountingTrainer, PositionedLoader


def main(folder: str, seconds: float) -> None:
    trainer = CountingTrainer(PositionedLoader(1000))

    def step(own: object) -> None:
        if trainer.iter == (5 if seconds < 1 else 0) and comm.is_main_process():
            print("step", flush=True)
        time.sleep(seconds)

    writers = [JSONWriter(Path(folder, "metrics.json"))] if comm.is_main_process() else []
    trainer.register_hooks(
        [
            CallbackHook(after_step=step, after_train=lambda t: print(f"outcome {t.outcome} {t.iter}", flush=True)),
            EvalHook(0, lambda: {"score": 1.0}),
            PeriodicCheckpointer(Checkpointer(folder), 1000),
            PeriodicWriter(writers, 1000),
        ]
    )
    with stop_on_signals(trainer):
        trainer.train(0, 100_000)


if __name__ == "__main__":
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    launch(main, processes, args=(sys.argv[1], float(sys.argv[3]) if len(sys.argv) > 3 else 0.01), device="cpu")
