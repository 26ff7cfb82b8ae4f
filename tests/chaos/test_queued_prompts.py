"""Prompts while a turn runs, under faults: queued or started twice at once, repeated, edited and dropped."""

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fermata.turns.prompt_queue import enqueue_prompt, start_queued_prompt
from fermata.turns.prompt_queue.queued_prompt import QueuedPrompt
from tests.chaos.simulation_kinds import run_simulation
from tests.quick_suite_samples import sample_for_quick_suite

SEEDS = range(2_000, 2_028)


run = partial(run_simulation, "queued-prompts")


@pytest.mark.parametrize("seed", sample_for_quick_suite(list(SEEDS), every=30))
def test_under_faults_every_prompt_runs_once_as_it_was_edited_last(seed: int) -> None:
    problems, _ = run(seed, faults=12)
    assert problems == []


@pytest.mark.exhaustive
def test_on_good_days_prompts_wait_start_and_interrupt() -> None:
    reports = [run(seed, faults=0) for seed in range(2_100, 2_106)]
    assert [problem for problems, _ in reports for problem in problems] == []
    prompts = [prompt for _, world in reports for prompt in world.queuers.sent]
    kinds = Counter((prompt.when_busy, bool(prompt.prompt_ids), bool(prompt.bridges)) for prompt in prompts)
    assert kinds["enqueue", True, False], "one was queued"
    assert kinds["enqueue", False, True], "one found the conversation free"
    assert kinds["interrupt", False, True]


def _forget_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    build = start_queued_prompt.build_turn_prompt
    monkeypatch.setattr(
        start_queued_prompt,
        "build_turn_prompt",
        lambda resources, queued: replace(build(resources, queued), idempotency_key="", sent_digest=""),
    )
    monkeypatch.setattr(enqueue_prompt, "_find_known_prompt", lambda *_: None)
    monkeypatch.setattr(enqueue_prompt, "replace", lambda prompt, **_: prompt)  # START does not look for the row


def _order_rows_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    key = property(lambda queued: f"q#{queued.created_at}#{queued.id}")
    monkeypatch.setattr(QueuedPrompt, "sort_key", key)


def _change_always(monkeypatch: pytest.MonkeyPatch) -> None:
    build = start_queued_prompt.build_change

    def build_unconditionally(*given: Any) -> Any:
        return replace(build(*given), condition="")

    monkeypatch.setattr(start_queued_prompt, "build_change", build_unconditionally)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("mutate", "first_seed"), [(_forget_the_key, 2_000), (_order_rows_by_time, 2_000), (_change_always, 2_029)]
)
def test_the_judge_notices_that_a_rule_is_missing(
    mutate: Any, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed that once showed it comes first; another one may do it after the product has changed."""
    mutate(monkeypatch)
    assert any(run(seed, faults=12)[0] for seed in (first_seed, *SEEDS))
