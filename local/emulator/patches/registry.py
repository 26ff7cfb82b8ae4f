"""Register patches of MiniStack and apply them when its source is the known one (decision 0030).

The patches replace private functions of one pinned release. Each names the function it replaces or calls with a digest
of its source. The emulator does not start when a digest differs, so a new release is never patched unseen.
"""

import functools
import hashlib
import inspect
import linecache
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

MINISTACK_VERSION = "1.5.33"
Function = Callable[..., Any]


@dataclass(frozen=True)
class Patch:
    """A function of MiniStack, the digest of its known source, and how it is patched, if it is."""

    module: types.ModuleType
    name: str
    digest: str
    install: Callable[[], None] = field(default=lambda: None)

    def find_problem(self) -> str | None:
        target = getattr(self.module, self.name, None)
        if target is None:
            return f"{self.module.__name__}.{self.name} is gone"
        actual_digest = hashlib.sha256(inspect.getsource(target).encode()).hexdigest()[:12]
        if actual_digest != self.digest:
            return f"{self.module.__name__}.{self.name} has changed (digest {actual_digest}, expected {self.digest})"
        return None


_patches: list[Patch] = []


def patch_function(module: types.ModuleType, name: str, digest: str) -> Callable[[Function], Function]:
    """Make a decorator for the replacement of `module.name`.

    The replacement is called with the original function first, then with the arguments of the call.
    """

    def register(replacement: Function) -> Function:
        def install() -> None:
            setattr(module, name, functools.partial(replacement, getattr(module, name)))

        _patches.append(Patch(module, name, digest, install))
        return replacement

    return register


def patch_line(module: types.ModuleType, name: str, digest: str, old: str, new: str, **helpers: Function) -> None:
    """Replace the text `old` in a function's source by `new`. `helpers` are functions that the new text calls."""

    def install() -> None:
        vars(module).update(helpers)
        source = inspect.getsource(getattr(module, name))
        if source.count(old) != 1:
            raise SystemExit(f"{module.__name__}.{name} holds {source.count(old)} times {old!r}, expected once.")
        code = compile(source.replace(old, new), f"<patched {module.__name__}.{name}>", "exec")
        exec(code, vars(module))  # noqa: S102  source of the pinned package with our constant

    _patches.append(Patch(module, name, digest, install))


def pin_functions(module: types.ModuleType, **digests: str) -> None:
    """Register private functions that patches call unchanged."""
    _patches.extend(Patch(module, name, digest) for name, digest in digests.items())


def apply_patches() -> None:
    """Install all patches.

    Raises:
        SystemExit: with a list of all differences, when MiniStack is not the known release. Nothing is installed then.
    """
    installed_version = metadata.version("ministack")
    problems = [problem for patch in _patches if (problem := patch.find_problem())]
    if installed_version != MINISTACK_VERSION:
        problems.insert(
            0, f"MiniStack {installed_version} is installed, the patches were written for {MINISTACK_VERSION}"
        )
    if problems:
        raise SystemExit(
            "The emulator does not start, because its patches were written for other code than is installed:\n- "
            + "\n- ".join(problems)
            + "\nInstall requirements/emulator.txt, or review these patches and update their digests."
        )
    for patch in _patches:
        patch.install()
    linecache.clearcache()  # of whole modules of MiniStack, which `inspect` has read
