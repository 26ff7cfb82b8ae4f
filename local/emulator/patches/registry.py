"""The seam to MiniStack. Everything we change goes through here, and is refused when it is not what we changed last.

The corrections reach into private functions of one pinned release. A new release must not be corrected blindly: each
correction names what it stands on with a digest of its source, and the emulator does not start when that differs.
"""

import functools
import hashlib
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

MINISTACK_VERSION = "1.5.33"
Function = Callable[..., Any]


@dataclass(frozen=True)
class Patch:
    """One function of MiniStack, the digest of the source we know, and what happens to it."""

    module: types.ModuleType
    name: str
    digest: str
    install: Callable[[], None] = field(default=lambda: None)

    def find_problem(self) -> str | None:
        target = getattr(self.module, self.name, None)
        if target is None:
            return f"{self.module.__name__}.{self.name} is gone"
        found = hashlib.sha256(inspect.getsource(target).encode()).hexdigest()[:12]
        if found != self.digest:
            return f"{self.module.__name__}.{self.name} has changed (digest {found}, expected {self.digest})"
        return None


_corrections: list[Patch] = []


def patch_function(module: types.ModuleType, name: str, digest: str) -> Callable[[Function], Function]:
    """Decorates what stands in for `module.name`. It is called with the stock function before its arguments."""

    def register(correction: Function) -> Function:
        def install() -> None:
            setattr(module, name, functools.partial(correction, getattr(module, name)))

        _corrections.append(Patch(module, name, digest, install))
        return correction

    return register


def patch_line(module: types.ModuleType, name: str, digest: str, old: str, new: str, **used: Function) -> None:
    """Change one line of a function whose other lines are right; `used` are functions of ours the new line calls."""

    def install() -> None:
        vars(module).update(used)
        source = inspect.getsource(getattr(module, name))
        if source.count(old) != 1:
            raise SystemExit(f"{module.__name__}.{name} holds {source.count(old)} times {old!r}, expected once.")
        code = compile(source.replace(old, new), f"<corrected {module.__name__}.{name}>", "exec")
        exec(code, vars(module))  # noqa: S102  a function of the pinned package with a constant of ours

    _corrections.append(Patch(module, name, digest, install))


def pin_functions(module: types.ModuleType, **digests: str) -> None:
    """Private functions that corrections call as they are."""
    _corrections.extend(Patch(module, name, digest) for name, digest in digests.items())


def apply_patches() -> None:
    """Install every correction, or none: ends the process with a list of what is not as expected."""
    found = metadata.version("ministack")
    problems = [problem for correction in _corrections if (problem := correction.find_problem())]
    if found != MINISTACK_VERSION:
        problems.insert(0, f"MiniStack {found} is installed, the corrections were written for {MINISTACK_VERSION}")
    if problems:
        raise SystemExit(
            "The emulator does not start, because local/emulator corrects other code than it finds:\n- "
            + "\n- ".join(problems)
            + "\nInstall requirements/emulator.txt, or review these corrections and update their digests."
        )
    for correction in _corrections:
        correction.install()
