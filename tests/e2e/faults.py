"""Rules for the seam in fermata/aws/faults.py: what befalls the next AWS call of some kind."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from tests.local.lab import until


class Faults:
    """A rule fires once, in whichever process makes the call; its file is gone from then on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)

    def add(self, call: str, do: str, *, when: str = "before", contains: str = "", skip: int = 0) -> Path:
        rule = {"call": call, "do": do, "when": when, "contains": contains, "skip": skip}
        path = self.folder / f"{next(self._numbers):04d}.json"
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(rule))
        beside.rename(path)  # whole from the first moment, for functions look at this folder all the time
        return path

    @contextlib.contextmanager
    def once(self, call: str, do: str, *, when: str = "before", contains: str = "", skip: int = 0) -> Iterator[Path]:
        """Fails when nothing has fired the rule by the end of the block."""
        path = self.add(call, do, when=when, contains=contains, skip=skip)
        try:
            yield path
            until(lambda: not path.exists(), f"somebody makes the call {call} with {contains!r}", seconds=5)
        finally:
            path.unlink(missing_ok=True)

    def fired(self, path: Path, seconds: float = 15) -> None:
        until(lambda: not path.exists(), f"the rule {path.name} fires", seconds)
