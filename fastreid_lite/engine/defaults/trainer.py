"""A trainer made from a config."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fastreid_lite.checkpoint import Checkpointer, atomic_write_text
from fastreid_lite.config.errors import ConfigValueError
from fastreid_lite.data.build import build_test_loader, build_train_loader
from fastreid_lite.engine import hooks
from fastreid_lite.engine.defaults.from_config import (
    build_clipper,
    fill_in_classes,
    never_evaluates,
    period,
    processes,
    with_value,
    without_pretrained,
    wrap_for_processes,
)
from fastreid_lite.engine.defaults.optimizer_state import regroup
from fastreid_lite.engine.defaults.output_dir import has_checkpoint
from fastreid_lite.engine.defaults.results import notes_on, say_results, say_where, with_nan, write_results
from fastreid_lite.engine.defaults.resuming import (
    RESULTS_NAME,
    choose_state,
    finished_results,
    load_initial_weights,
    refuse_foreign,
    report_changes,
)
from fastreid_lite.engine.defaults.testing import (
    TestSets,
    best_key,
    evaluate_all,
    validation_name,
    wanted_sets,
)
from fastreid_lite.engine.evaluator import Evaluator
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.hooks.lr_scheduler import LearningRate
from fastreid_lite.engine.signals import stop_on_signals
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from fastreid_lite.evaluation import ReidEvaluator
from fastreid_lite.modeling import build_model
from fastreid_lite.runtime import get_runtime
from fastreid_lite.solver import build_lr_schedule, build_optimizer
from fastreid_lite.storage.writers import (
    CommonMetricPrinter,
    EventWriter,
    JSONWriter,
    ProgressBarWriter,
    TensorboardXWriter,
)
from fastreid_lite.utils import comm
from fastreid_lite.utils.env import seed_everything

logger = logging.getLogger(__name__)


class DefaultTrainer(SimpleTrainer):
    """Builds everything from a config; a subclass overrides any ``build_*`` and keeps the rest.

    >>> trainer = DefaultTrainer(cfg)                # doctest: +SKIP
    >>> trainer.resume_or_load(resume=False)         # doctest: +SKIP
    >>> results = trainer.train()                    # doctest: +SKIP

    Args:
        cfg: as :func:`default_setup` returns it: SEED is drawn.

    Attributes:
        cfg: the config in force, frozen; MODEL.HEADS.NUM_CLASSES is filled in.
        results: dataset to metric to value, percent, of the last evaluation.
    """

    def __init__(self, cfg: Any) -> None:
        runtime = get_runtime(cfg.MODEL.DEVICE)
        loader = self.build_train_loader(cfg)
        self.cfg = fill_in_classes(cfg, loader.num_classes)
        self.folder = Path(self.cfg.OUTPUT_DIR).expanduser()
        # Built now, so that what is wrong with a test set is said before the training and not after it.
        self._test_sets: TestSets = {} if never_evaluates(self.cfg) else self.build_test_sets(self.cfg)
        overwritten = self.cfg.MODEL.WEIGHTS or has_checkpoint(self.folder)
        model = self.build_model(without_pretrained(self.cfg) if overwritten else self.cfg)
        model = runtime.move_module(model)
        optimizer = self.build_optimizer(self.cfg, model)
        # From here on the processes draw different numbers, for dropout; until here they had to draw the same.
        seed_everything(self.cfg.SEED, comm.get_rank())
        solver = self.cfg.SOLVER
        super().__init__(
            wrap_for_processes(model, runtime),
            loader,
            optimizer,
            solver.AMP.ENABLED,
            amp_dtype=solver.AMP.DTYPE,
            accumulate_steps=solver.ACCUMULATE_STEPS,
            clipper=build_clipper(self.cfg),
            nonfinite_policy=solver.NONFINITE.POLICY,
            nonfinite_mode=solver.NONFINITE.MODE,
            runtime=runtime,
        )
        if self.epoch_length is None:
            raise TypeError("the loader of build_train_loader has no length: MAX_EPOCH and schedules need len(loader)")
        self.max_iter = solver.MAX_ITER if solver.MAX_ITER is not None else solver.MAX_EPOCH * self.epoch_length
        if self.max_iter < 1:
            raise ConfigValueError(f"SOLVER.MAX_EPOCH and MAX_ITER give {self.max_iter} steps: at least one is needed")
        self.checkpointer = Checkpointer(self.folder, keep=solver.CHECKPOINT_KEEP)
        self.results: Mapping[str, Mapping[str, float]] = {}
        self._finished: Mapping[str, Any] | None = None
        self.register_hooks(self.build_hooks())

    @classmethod
    def build_train_loader(cls, cfg: Any) -> Any:
        """The training batches: with a length, ``num_classes`` and ``notes``."""
        loader = build_train_loader(cfg, seed=cfg.SEED, **processes(cfg))
        for note in loader.notes:
            logger.info(note)
        return loader

    @classmethod
    def build_test_loader(cls, cfg: Any, name: str, *, validation: bool = False) -> Any:
        """Of one test set: the batches over query and gallery (with ``notes``), the query, the gallery."""
        return build_test_loader(cfg, name, validation=validation, **processes(cfg))

    @classmethod
    def build_evaluator(cls, cfg: Any, name: str, query: Any, gallery: Any) -> Evaluator:
        """What makes numbers of the features of the test set ``name``."""
        return ReidEvaluator.from_config(cfg, query, gallery)

    @classmethod
    def build_test_sets(cls, cfg: Any) -> TestSets:
        """Everything to evaluate: the held-out identities, where there are any, and each of DATASETS.TESTS."""
        sets: TestSets = {}
        for shown, name, validation in wanted_sets(cfg):
            loader, query, gallery = cls.build_test_loader(cfg, name, validation=validation)
            for note in loader.notes:
                logger.info(note)
            sets[shown] = (loader, cls.build_evaluator(cfg, name, query, gallery))
        return sets

    @classmethod
    def build_model(cls, cfg: Any) -> nn.Module:
        """The model, on the host."""
        model = build_model(cfg)
        millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
        logger.info(f"model: {cfg.MODEL.META_ARCHITECTURE} on {cfg.MODEL.BACKBONE.NAME}, {millions:.2f} M parameters")
        return model

    @classmethod
    def build_optimizer(cls, cfg: Any, model: nn.Module) -> torch.optim.Optimizer:
        """The optimizer over ``model``, which is on its device."""
        return build_optimizer(cfg, model)

    def build_lr_schedule(self) -> LearningRate:
        """The learning rate as a function of the step."""
        return build_lr_schedule(self.cfg, iters_per_epoch=self.epoch_length or 1, max_iter=self.max_iter)

    def build_hooks(self) -> list[HookBase | None]:
        """The hooks of the run, on every process."""
        solver, test = self.cfg.SOLVER, self.cfg.TEST
        images = solver.IMS_PER_BATCH * solver.ACCUMULATE_STEPS
        self._evaluation = hooks.EvalHook(period(test, "EVAL_PERIOD"), self.evaluate)
        self._checkpoints = hooks.PeriodicCheckpointer(self.checkpointer, period(solver, "CHECKPOINT_PERIOD"))
        self._best = hooks.BestCheckpointer(self.checkpointer, best_key(self.cfg)) if self._test_sets else None
        self._writer = hooks.PeriodicWriter(
            self.build_writers() if comm.is_main_process() else [], solver.LOG_PERIOD_ITERS
        )
        return [
            hooks.IterationTimer(images),
            hooks.LRScheduler(self.optimizer, self.build_lr_schedule()),
            self._evaluation,
            self._checkpoints,
            self._best,
            self._writer,
        ]

    def build_writers(self) -> list[EventWriter]:
        """Where numbers go, on rank 0. TensorBoard joins in where it is installed."""
        writers: list[EventWriter] = [JSONWriter(self.folder / "metrics.json"), CommonMetricPrinter(self.max_iter)]
        try:
            writers.append(TensorboardXWriter(self.folder / "tensorboard"))
        except ImportError as error:
            logger.info(f"no TensorBoard log: {error}")
        return [*writers, ProgressBarWriter(self.max_iter)]

    def evaluate(self) -> Mapping[str, Mapping[str, float]]:
        """Evaluate the model as it is now on everything that the config names."""
        self._test_sets = self._test_sets or self.build_test_sets(self.cfg)
        self.results = evaluate_all(self.model, self._test_sets, self.runtime)
        return self.results

    @classmethod
    def test(cls, cfg: Any, model: nn.Module) -> dict[str, dict[str, float]]:
        """Evaluate ``model`` on everything that ``cfg`` names: dataset to metric to value, percent."""
        return evaluate_all(model, cls.build_test_sets(cfg), get_runtime(cfg.MODEL.DEVICE))

    def resume_or_load(self, resume: bool | str = True) -> None:
        """Take over the state of a run, or MODEL.WEIGHTS. Collective.

        Args:
            resume: True for the newest good checkpoint in OUTPUT_DIR; a path for exactly that one; False for
                MODEL.WEIGHTS alone, where it is given.

        Raises:
            CheckpointError: the checkpoint, or MODEL.WEIGHTS, cannot be used.
            ConfigValueError: the run is beyond its end.
        """
        choice = choose_state(self.checkpointer, resume) if resume else None
        weights = self.cfg.MODEL.WEIGHTS
        if choice is None:
            if resume:
                logger.info(f"no checkpoint was ever published in {self.folder}: starting anew")
            self._writer.start_anew()
            if weights:
                load_initial_weights(self.model, weights, evaluating=False)
            return
        if choice.iteration + 1 > self.max_iter:
            raise ConfigValueError(
                f"{choice.path} has {choice.iteration + 1} iterations done, beyond the {self.max_iter} that this run "
                f"is to have (SOLVER.MAX_EPOCH, SOLVER.MAX_ITER): give it more, or start anew in another OUTPUT_DIR"
            )
        refuse_foreign(choice)
        if weights:
            logger.info(f"MODEL.WEIGHTS {weights} is not used: the run goes on from {choice.path}")
        self._finished = finished_results(self.folder, choice, self.max_iter)
        report_changes(choice.state.get("config"), self.cfg)
        self.load_state_dict(choice.state)
        logger.info(f"resuming from {choice.path}: {choice.iteration + 1} of {self.max_iter} iterations are done")

    def train(self, start_iter: int | None = None, max_iter: int | None = None) -> Mapping[str, Any]:
        """Train to the end, from the start or from where :meth:`resume_or_load` found the run.

        Returns:
            Dataset to metric to value, percent.
        """
        if self._finished is not None and max_iter in (None, self.max_iter):
            logger.info(f"already at {self.iter} of {self.max_iter} iterations: nothing is left to train")
            self.results = {name: with_nan(values) for name, values in self._finished["results"].items()}
            say_results(self.results, self._finished["notes"])
            return self.results
        if comm.is_main_process():
            atomic_write_text(self.folder / "config.yaml", self.cfg.dump())
        # Inside: a signal that comes while a finished run writes its results finds them whole.
        with stop_on_signals(self):
            super().train(
                self.iter if start_iter is None else start_iter, self.max_iter if max_iter is None else max_iter
            )
            if self.outcome == "finished":
                # Of a run that was resumed after its last evaluation, the checkpoint has the numbers.
                self.results = self.results or self._evaluation.results or {}
                self._write_results()
        return self.results

    def _write_results(self) -> None:
        """``results.json`` and the rest, once the ending is complete: a resume then knows that nothing is owed."""
        notes = self._notes()
        say_results(self.results, notes)
        if not comm.is_main_process():
            return
        best, checkpoint = self._best, self._checkpoints.final_file(self.iter - 1)
        content = {
            "outcome": self.outcome,
            "iteration": self.iter - 1,
            "max_iter": self.max_iter,
            "checkpoint": checkpoint,
            "stop_reason": self.stop_reason,
            "seed": self.cfg.SEED,
            "results": self.results,
            "best": best and {"key": best.trigger.key, "value": best.trigger.best, "iteration": best.iteration},
            "notes": notes,
        }
        write_results(self.folder / RESULTS_NAME, content)
        say_where(self.folder, checkpoint, best=best is not None and best.iteration is not None)

    def _notes(self) -> list[str]:
        skipped = len(getattr(self.data_loader, "skipped_paths", ()))
        chosen = self._best is not None and self._best.trigger.best is not None
        return notes_on(skipped, best_key(self.cfg) if chosen and validation_name(self.cfg) is None else None)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "seed": self.cfg.SEED, "config": self.cfg.dump()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # The config says what rates and decays are, not the checkpoint; what has changed was reported.
        super().load_state_dict({**state, "optimizer": regroup(state["optimizer"], self.optimizer)})
        saved = state.get("seed", self.cfg.SEED)
        if saved != self.cfg.SEED:
            logger.info(f"SEED {saved} of the run that is resumed is in force, not {self.cfg.SEED}")
            self.cfg = with_value(self.cfg, "SEED", saved)
            loader = self.build_train_loader(self.cfg)
            self.set_loader(loader, accumulate_steps=self.cfg.SOLVER.ACCUMULATE_STEPS)
