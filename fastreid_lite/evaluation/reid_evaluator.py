"""Collects features batch by batch, from every process, and says how good they are."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fastreid_lite.evaluation.distance import check_metric
from fastreid_lite.evaluation.protocol import MARKET, LabelledImages, Protocol
from fastreid_lite.evaluation.ranking import Ranking, rank_matches
from fastreid_lite.utils import comm

logger = logging.getLogger(__name__)

_SHOWN_RANKS = (1, 5, 10)

#: Switches of fast-reid's configuration that change the numbers and are not available.
_NOT_AVAILABLE = {"RERANK": "re-ranking", "AQE": "query expansion", "ROC": "the ROC curve"}


class ReidEvaluator:
    """CMC, mAP and mINP of features. The model sees one list of images: the query, then the gallery.

    Each process gives the features of its own batches; queries are shared, the gallery stays where it is, and every
    process gets the same answer, whatever their number. A process may be given nothing at all.

    Args:
        query: Q images.
        gallery: G images.
        metric: "cosine" or "euclidean" (TEST.METRIC).
        protocol: what is ranked against what; Market-1501's by default.
        max_rank: length of the CMC in ``curve``, and the largest rank asked of it.

    Attributes:
        rankings: of the last :meth:`evaluate`: one, or one for each trial of the protocol.
        curve: (max_rank,) float64 CMC of the last :meth:`evaluate`, the mean over trials; None before.

    Raises:
        ValueError: query or gallery is empty, ``metric`` is not known, or ``max_rank`` is below 10.
    """

    def __init__(
        self,
        query: LabelledImages,
        gallery: LabelledImages,
        *,
        metric: str = "cosine",
        protocol: Protocol = MARKET,
        max_rank: int = 50,
    ) -> None:
        for name, images in (("query", query), ("gallery", gallery)):
            if len(images.paths) == 0:
                raise ValueError(f"the {name} is empty, expected at least one image to evaluate with")
        if max_rank < max(_SHOWN_RANKS):
            raise ValueError(f"max_rank is {max_rank}, expected at least {max(_SHOWN_RANKS)}, the last rank shown")
        self.query = query
        self.gallery = gallery
        self.metric = check_metric(metric)
        self.protocol = protocol
        self.max_rank = max_rank
        self.rankings: list[Ranking] = []
        self.curve: np.ndarray | None = None
        self.reset()

    @classmethod
    def from_config(cls, cfg: Any, query: LabelledImages, gallery: LabelledImages) -> ReidEvaluator:
        """The evaluator that TEST.METRIC and TEST.EXCLUDE_SAME describe.

        Raises:
            ValueError: a value is not known, or TEST.RERANK, TEST.AQE or TEST.ROC is enabled.
        """
        for section, meaning in _NOT_AVAILABLE.items():
            if cfg.TEST[section].ENABLED:
                raise ValueError(
                    f"TEST.{section}.ENABLED is True, but {meaning} is not available; set TEST.{section}.ENABLED False"
                )
        columns = cfg.TEST.EXCLUDE_SAME
        exclude_same = tuple(columns) if isinstance(columns, (list, tuple)) else columns
        return cls(query, gallery, metric=cfg.TEST.METRIC, protocol=Protocol(exclude_same=exclude_same))

    def reset(self) -> None:
        """Forget all features."""
        self._features: deque[torch.Tensor] = deque()
        self._indices: list[torch.Tensor] = []

    def process(self, batch: Mapping[str, Any], outputs: torch.Tensor) -> None:
        """Take the features of a batch.

        Args:
            batch: ``"indices"`` (B,) int64, positions in query and gallery, one after the other.
            outputs: (B, D) floats; kept as float32 on the CPU.

        Raises:
            ValueError: shapes disagree.
        """
        indices = torch.as_tensor(batch["indices"]).detach().cpu().long().reshape(-1)
        if outputs.ndim != 2 or len(outputs) != len(indices):
            raise ValueError(
                f"the model gave features of shape {tuple(outputs.shape)} for {len(indices)} images, expected "
                f"({len(indices)}, D)"
            )
        if self._features and outputs.shape[1] != self._features[0].shape[1]:
            raise ValueError(
                f"the model gave features with {outputs.shape[1]} columns after {self._features[0].shape[1]} before"
            )
        # A copy: a loop may write the next batch into the same memory.
        self._features.append(outputs.detach().to("cpu", torch.float32, copy=True))
        self._indices.append(indices)

    def evaluate(self) -> dict[str, float]:
        """``Rank-1``, ``Rank-5``, ``Rank-10``, ``mAP``, ``mINP`` and ``metric`` (mean of mAP and Rank-1), in percent.

        All are NaN, with a warning that says why, where no query has a match left.

        Raises:
            ValueError: an image is missing or came twice, or features are not finite.
        """
        features, indices = self._gathered_in_order()
        queries = len(self.query.paths)
        here = int(np.searchsorted(indices, queries))
        query_rows = comm.all_gather_rows(torch.from_numpy(indices[:here]))
        query_features = comm.all_gather_rows(features[:here])
        if comm.is_distributed():
            query_features = query_features[torch.argsort(query_rows)]
        trials: list[int | None] = [*range(self.protocol.trials)] or [None]
        self.rankings = [
            rank_matches(
                query_features,
                features[here:],
                self.query,
                self.gallery,
                metric=self.metric,
                protocol=self.protocol,
                gallery_rows=indices[here:] - queries,
                trial=trial,
            )
            for trial in trials
        ]
        self._report(self.rankings[0])
        scored = [ranking for ranking in self.rankings if len(ranking.valid_queries)]
        if not scored:
            self.curve = np.full(self.max_rank, math.nan)
            return dict.fromkeys((*(f"Rank-{rank}" for rank in _SHOWN_RANKS), "mAP", "mINP", "metric"), math.nan)
        self.curve = np.mean([ranking.cmc(self.max_rank) for ranking in scored], axis=0)
        results = {f"Rank-{rank}": 100.0 * float(self.curve[rank - 1]) for rank in _SHOWN_RANKS}
        results["mAP"] = 100.0 * float(np.mean([ranking.ap.mean() for ranking in scored]))
        results["mINP"] = 100.0 * float(np.mean([ranking.inp.mean() for ranking in scored]))
        results["metric"] = (results["mAP"] + results["Rank-1"]) / 2.0
        return results

    def _gathered_in_order(self) -> tuple[torch.Tensor, np.ndarray]:
        """This process's features and indices in ascending order, after a check over all processes."""
        indices = torch.cat(self._indices) if self._indices else torch.zeros(0, dtype=torch.int64)
        self._check_complete(comm.all_gather_rows(indices).numpy())
        widths = comm.all_gather_object(self._features[0].shape[1] if self._features else None)
        known = {width for width in widths if width is not None}
        if len(known) > 1:
            raise ValueError(f"the processes gave features with {sorted(known)} columns, expected one number")
        order = torch.argsort(indices)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        features = torch.empty(len(order), known.pop())
        start = 0
        # Batch by batch, each given free as it is copied: the features are never in memory twice.
        while self._features:
            part = self._features.popleft()
            features[place[start : start + len(part)]] = part
            start += len(part)
        indices = indices[order]
        self._features, self._indices = deque([features] if len(features) else []), [indices]
        return features, indices.numpy()

    def _check_complete(self, indices: np.ndarray) -> None:
        total = len(self.query.paths) + len(self.gallery.paths)
        outside = indices[(indices < 0) | (indices >= total)]
        if len(outside):
            raise ValueError(
                f"the evaluator got the index {int(outside[0])}, expected positions below {total}: "
                f"{len(self.query.paths)} queries, then {len(self.gallery.paths)} gallery images"
            )
        counts = np.bincount(indices, minlength=total)
        missing, repeated = np.flatnonzero(counts == 0), np.flatnonzero(counts > 1)
        if len(missing) or len(repeated):
            first = int((missing if len(missing) else repeated)[0])
            raise ValueError(
                f"of {total} images {len(missing)} gave no features and {len(repeated)} gave them more than once, the "
                f"first is {self._path(first)!r}: the loader must give every image to exactly one process, once"
            )

    def _path(self, index: int) -> str:
        queries = len(self.query.paths)
        return self.query.paths[index] if index < queries else self.gallery.paths[index - queries]

    def _report(self, ranking: Ranking) -> None:
        """Say which queries do not count, and why."""
        if not comm.is_main_process() or len(ranking.valid_queries) == ranking.asked > 0:
            return
        counts = (
            f"{ranking.without_identity} have no image of their identity in the gallery, of {ranking.filtered} every "
            f"match was taken out by the filter ({self._filter()})"
        )
        if len(ranking.valid_queries):
            logger.info("%d of %d queries count: %s", len(ranking.valid_queries), ranking.asked, counts)
        elif ranking.filtered:
            logger.warning(
                "the filter removed all matches, so there are no metrics: of %d queries, %s. Where all images share "
                "one camera, turn the filter off with TEST.EXCLUDE_SAME ()",
                ranking.asked,
                counts,
            )
        else:
            logger.warning(
                "no query has a match, so there are no metrics: of %d queries in the protocol, %s",
                ranking.asked,
                counts,
            )

    def _filter(self) -> str:
        if not self.protocol.exclude_same:
            return "a query's own image"
        return f"same pid and same {', '.join(self.protocol.exclude_same)}, or a query's own image"
