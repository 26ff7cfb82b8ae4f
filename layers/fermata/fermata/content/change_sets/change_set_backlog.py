"""Judge how many change sets wait: many are a warning, too many keep new ones from being made."""

from collections.abc import Mapping
from typing import Any, Literal, TypeGuard

from fermata.content.change_sets.branch_names import read_branch_seconds
from fermata.domain.errors import TooManyRequests
from fermata.domain.value_dataclass import value_dataclass

HealthStatus = Literal["ok", "warning", "blocked"]
KEEP_MERGED_DAYS = 30
MAX_BRANCH_LIMIT = 1_000
"""Of branches that wait, however a project is set up: each write looks through them."""
_DAY_SECONDS = 24 * 60 * 60


@value_dataclass(frozen=True)
class HealthThresholds:
    """From how many waiting change sets a project is warned, and from how many it is blocked."""

    warning: int = 50
    blocked: int = 80

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "HealthThresholds":
        """Return what the settings of a project say in `branchWarnLimit` and `branchBlockLimit` of their `config`.

        What is no number of branches counts as missing, so that no mistake keeps a project from being changed.
        """
        config = settings.get("config")
        named = config if isinstance(config, dict) else {}
        warning, blocked = named.get("branchWarnLimit"), named.get("branchBlockLimit")
        return cls(
            warning if _is_limit(warning) else cls.warning,
            blocked if _is_limit(blocked) else cls.blocked,
        )


def _is_limit(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_BRANCH_LIMIT


def judge_change_set_health(unmerged: int, thresholds: HealthThresholds | None = None) -> HealthStatus:
    """Return the health of a project with this many change sets that wait."""
    limits = thresholds or HealthThresholds()
    if unmerged >= limits.blocked:
        return "blocked"
    return "warning" if unmerged >= limits.warning else "ok"


def describe_change_set_health(unmerged: int, thresholds: HealthThresholds | None = None) -> str:
    """Return what a writer is told, or an empty text when all is well."""
    limits = thresholds or HealthThresholds()
    if judge_change_set_health(unmerged, limits) == "ok":
        return ""
    return (
        f"{unmerged} branches wait to be merged. From {limits.blocked} on, no new ones can be made: "
        "merge or reject some of them."
    )


def require_healthy(unmerged: int, thresholds: HealthThresholds | None = None) -> None:
    """Check that another change set may be made.

    Raises:
        TooManyRequests: Too many wait (429).
    """
    if judge_change_set_health(unmerged, thresholds) == "blocked":
        raise TooManyRequests(describe_change_set_health(unmerged, thresholds))


def is_due_for_deletion(name: str, now_seconds: float) -> bool:
    """Return whether a merged branch is old enough to be deleted. One whose name says no time is due at once."""
    made = read_branch_seconds(name)
    return made is None or now_seconds - made >= KEEP_MERGED_DAYS * _DAY_SECONDS
