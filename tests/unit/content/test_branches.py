"""Change sets are named and judged as the studio's branches are."""

import pytest

from fermata.content.change_sets.branch_names import build_branch_name, read_branch_seconds
from fermata.content.change_sets.change_set_backlog import (
    HealthThresholds,
    describe_change_set_health,
    is_due_for_deletion,
    judge_change_set_health,
    require_healthy,
)
from fermata.domain.errors import TooManyRequests

DAY = 24 * 60 * 60


@pytest.mark.parametrize(
    ("unmerged", "status"),
    [(0, "ok"), (49, "ok"), (50, "warning"), (79, "warning"), (80, "blocked"), (200, "blocked")],
)
def test_g134_to_g139_many_branches_are_a_warning_and_too_many_a_block(unmerged: int, status: str) -> None:
    assert judge_change_set_health(unmerged) == status


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("cr/content/posts/en/1711234567-a1b2", 1_711_234_567),
        ("cr/model/authors/1711234567-c3d4", 1_711_234_567),
        ("cr/new/init/1711234567-c3d4", 1_711_234_567),
        ("cr/content/posts/en/latest", None),
        ("main", None),
        ("cr/content/posts/1711234567-", None),
    ],
)
def test_g140_a_name_says_when_its_branch_was_made(name: str, seconds: int | None) -> None:
    assert read_branch_seconds(name) == seconds


def test_a_new_name_is_one_that_can_be_read() -> None:
    name = build_branch_name("content", "posts", 1_711_234_567, "en")
    assert name.startswith("cr/content/posts/en/1711234567-")
    assert read_branch_seconds(name) == 1_711_234_567


def test_g144_a_blocked_project_refuses_new_writes_with_429() -> None:
    with pytest.raises(TooManyRequests, match="85 branches") as refusal:
        require_healthy(85)
    assert refusal.value.status == 429
    require_healthy(79)
    require_healthy(85, HealthThresholds(warning=90, blocked=100))


def test_g145_a_warned_project_is_told_how_many_wait() -> None:
    assert "55" in describe_change_set_health(55)
    assert describe_change_set_health(3) == ""


def test_merged_branches_are_deleted_after_thirty_days_and_unreadable_names_at_once() -> None:
    name = "cr/content/posts/en/1711234567-a1b2"
    assert not is_due_for_deletion(name, 1_711_234_567 + 30 * DAY - 1)
    assert is_due_for_deletion(name, 1_711_234_567 + 30 * DAY)
    assert is_due_for_deletion("cr/whatever", 0)
