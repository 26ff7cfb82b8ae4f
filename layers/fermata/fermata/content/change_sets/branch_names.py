"""Name change sets as the studio names its branches: `cr/<scope>/<target>[/<locale>]/<unix seconds>-<4 hex digits>`."""

import re
import secrets
from typing import Literal

PERMANENT_BRANCH = "contentrain"
"""The branch that holds the content itself. It is neither merged nor rejected."""
INIT_BRANCHES = "cr/new/init/"

BranchScope = Literal["content", "model", "new"]
_NAME = re.compile(r"cr/(?P<scope>content|model|new)/(?P<target>.+)/(?P<seconds>[0-9]{1,12})-[0-9a-f]{1,8}")


def build_branch_name(scope: BranchScope, target: str, seconds: int, locale: str = "") -> str:
    """Return a new name.

    Args:
        scope: What is changed: `content`, a `model`, or what is `new`.
        target: The model, or `init`.
        seconds: The time of the change set, in seconds since 1970.
        locale: The locale of the content; empty for none.
    """
    parts = ["cr", scope, target, *([locale] if locale else []), f"{seconds}-{secrets.token_hex(2)}"]
    return "/".join(parts)


def read_branch_seconds(name: str) -> int | None:
    """Return when a branch was made, in seconds since 1970, or None if its name does not say it."""
    match = _NAME.fullmatch(name)
    return int(match["seconds"]) if match else None


def read_branch_locale(name: str) -> str:
    """Return the locale of the content that a branch changes; empty if its name does not say one."""
    match = _NAME.fullmatch(name)
    return match["target"].partition("/")[2] if match else ""


def read_branch_model(name: str) -> str:
    """Return the model that a branch is about; empty if its name does not say one."""
    match = _NAME.fullmatch(name)
    return match["target"].partition("/")[0] if match else ""


def is_change_set(name: str) -> bool:
    """Return whether a branch holds changes that can be merged or rejected."""
    return name.startswith("cr/")
