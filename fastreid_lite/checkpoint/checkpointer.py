"""The checkpoints of a run: save, publish, then delete."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fastreid_lite.checkpoint import resume
from fastreid_lite.checkpoint.files import atomic_torch_save, atomic_write_text, remove_leftovers
from fastreid_lite.checkpoint.loading import load_checkpoint
from fastreid_lite.checkpoint.names import POINTER_NAME, SUFFIX
from fastreid_lite.checkpoint.plain import to_plain

logger = logging.getLogger(__name__)


class Checkpointer:
    """Writes the checkpoints of one run into one folder, and finds the one to go on from.

    At every moment the folder holds a whole checkpoint that the pointer file names, once one was published: a new file
    is written beside its place and renamed into it, then the pointer in the same way, and only then old files go.

    For one process: in a run of several, the first one saves.

    Args:
        save_dir: the folder, of this run alone; made at the first save.
        keep: how many periodic checkpoints stay; 0 keeps all. Files that this run did not write are never deleted.

    Raises:
        ValueError: ``keep`` is negative.
    """

    def __init__(self, save_dir: str | Path, *, keep: int = 0) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
            raise ValueError(f"keep is {keep!r}; expected how many periodic checkpoints stay, 0 for all of them")
        self.save_dir = Path(save_dir)
        self.keep = keep
        self._periodic: list[str] = []
        self._cleaned = False

    def save(self, name: str, state: dict[str, Any], *, periodic: bool = False, publish: bool = True) -> Path:
        """Write ``state`` to ``<name>.pth`` and make it the one that a resume takes.

        Args:
            name: a bare name, with or without ``.pth``; see :mod:`~fastreid_lite.checkpoint.names`.
            state: plain containers, values and tensors (:func:`~fastreid_lite.checkpoint.plain.to_plain`). To be found
                by a resume it has "iteration": the step just done, from 0.
            periodic: whether the file counts among those of which only the newest ``keep`` stay.
            publish: whether the pointer file is to name it.

        Returns:
            The path of the file.

        Raises:
            TypeError: something in ``state`` would not load again; nothing was written.
            ValueError: ``name`` is not a bare name.
            OSError: it could not be written; what was there is still there, pointer included.
        """
        file_name = self._file_name(name)
        before = list(self._periodic)
        if periodic:
            # Before the conversion: a state that has our state_dict() in it then names the file that it goes into.
            self._periodic[:] = [known for known in self._periodic if known != file_name] + [file_name]
        path = self.save_dir / file_name
        try:
            plain = to_plain(state)
            self.save_dir.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
            atomic_torch_save(plain, path)
        except BaseException:
            self._periodic[:] = before
            raise
        if publish:
            atomic_write_text(self.save_dir / POINTER_NAME, file_name)
        if periodic:
            self._delete_old()
        return path

    def load(self, path: str | Path) -> dict[str, Any]:
        """What a checkpoint holds; see :func:`~fastreid_lite.checkpoint.loading.load_checkpoint` for errors."""
        return load_checkpoint(path)

    def find_resume(self) -> resume.ResumeChoice | None:
        """The checkpoint to go on from, None for a fresh start; see :mod:`fastreid_lite.checkpoint.resume`.

        Raises:
            CheckpointError: checkpoints were published here, and none is good.
        """
        return resume.find_resume(self.save_dir)

    def resume_from(self, path: str | Path) -> resume.ResumeChoice:
        """Exactly ``path`` to go on from, without falling back to another.

        Raises:
            CheckpointError: it cannot be read, or is no checkpoint of a run.
        """
        return resume.choose_file(Path(path))

    def state_dict(self) -> dict[str, Any]:
        """The periodic files that this run wrote and has not deleted, oldest first.

        The list is the live one: put into the state that :meth:`save` gets, it names the file that is being saved too.
        """
        return {"periodic": self._periodic}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the list of a part of the run that ended; files that are no longer there are dropped from it."""
        names = [str(name) for name in state.get("periodic", [])]
        bare = [name for name in names if Path(name).name == name]
        self._periodic[:] = [name for name in bare if (self.save_dir / name).is_file()]

    def _file_name(self, name: str) -> str:
        if not name or name.startswith(".") or Path(name).name != name or "\\" in name or name == POINTER_NAME:
            raise ValueError(f"a checkpoint cannot be called {name!r}; expected a bare file name, as 'model_0003'")
        return name if name.endswith(SUFFIX) else f"{name}{SUFFIX}"

    def _remove_leftovers(self) -> None:
        """Remove, once, what a killed part of this run was writing."""
        if self._cleaned:
            return
        self._cleaned = True
        for path in remove_leftovers(self.save_dir):
            logger.info("removed %s, left behind by a process that was stopped while writing", path)

    def _delete_old(self) -> None:
        """Delete all but the newest ``keep`` periodic files; never the one that the pointer names."""
        if self.keep == 0:
            return
        published = resume.read_pointer(self.save_dir)
        for name in self._periodic[: -self.keep]:
            if name == published:
                continue
            try:
                (self.save_dir / name).unlink(missing_ok=True)
            except OSError as error:
                logger.warning("could not delete the old checkpoint %s: %s", self.save_dir / name, error.strerror)
                continue
            self._periodic.remove(name)
