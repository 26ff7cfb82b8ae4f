"""A submitted plan is applied, held, answered or refused, each of them once."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict
from fermata.plans.apply_operations import apply_operations
from fermata.plans.apply_plan import apply_pending_plan, apply_submitted_operations
from fermata.plans.draft_session import DraftSession
from fermata.plans.drafts.draft_history import import_pages, list_history
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.drafts.pending_plan import (
    PENDING_PLAN_SECONDS,
    discard_pending_plan,
    load_pending_plan,
    require_pending_plan,
)
from fermata.plans.plan_outcome import PlanOutcome
from fermata.plans.plan_submission import PlanSubmission
from fermata.plans.submit_plan import submit_plan
from tests.resources import TestClock
from tests.unit.plans.page_samples import SITE
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
HERE = DraftLocation("acme", "c1")
HEADING = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": "New"}}
REMOVAL = {"op": "delete_page", "slug": "/faq"}


@pytest.fixture
def site(resources: Resources) -> Resources:
    import_pages(resources, HERE, SITE.pages, overwrite=False)
    return resources


def submit(site: Resources, *operations: Any, key: str = "t/1/0", **members: Any) -> PlanOutcome:
    candidate = {"summary_for_user": "Done.", "ops": list(operations)}
    given = {"default_slug": "/", "message": "", "turn": "t", **members}
    return submit_plan(site, HERE, PlanSubmission(candidate=candidate, effect_key=key, **given))


def hold(site: Resources, *operations: Any, key: str = "t/1/0") -> str:
    outcome = submit(site, *operations, key=key)
    assert outcome.status == "plan_ready"
    assert outcome.pending_plan_id
    return outcome.pending_plan_id


def test_a_plan_is_applied_at_once_and_its_repetition_has_the_same_outcome(site: Resources) -> None:
    first, again = submit(site, HEADING), submit(site, HEADING)
    assert first == again
    assert (first.status, first.preview_version) == ("applied", 2)
    assert [entry.turn for entry in list_history(site, HERE, 1)] == ["t"]


def test_a_destructive_plan_waits_with_its_reasons_and_final_operations(site: Resources) -> None:
    outcome = submit(site, REMOVAL)
    assert outcome.status == "plan_ready"
    assert [reason.kind for reason in outcome.destructive_reasons] == ["remove_page"]
    assert outcome.ops == ({"op": "remove_page", "pageSlug": "/faq"},)
    assert [one.submitted for one in outcome.normalized_from] == [REMOVAL]
    assert load_draft(site, HERE).version == 1
    assert submit(site, REMOVAL) == outcome


@pytest.mark.parametrize(
    "members", [{"is_only_planned": True}, {"message": "Plan first, then change the heading"}], ids=["mode", "words"]
)
def test_a_plan_waits_if_its_user_wants_to_see_it_first(site: Resources, members: dict[str, Any]) -> None:
    outcome = submit(site, HEADING, **members)
    assert (outcome.status, outcome.destructive_reasons) == ("plan_ready", ())


def test_a_plan_that_waits_is_applied_once_however_often_it_is_asked_for(site: Resources) -> None:
    plan = hold(site, REMOVAL)
    outcomes = [apply_pending_plan(site, HERE, plan) for _ in range(3)]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0].status == "applied"
    assert load_draft(site, HERE).version == 2
    assert load_pending_plan(site, HERE) is None


def test_of_two_requests_at_once_that_apply_a_plan_one_does(site: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, write = hold(site, REMOVAL), site.tables.write_items
    raced: list[Any] = []

    def write_later(*writes: Any) -> None:
        if not raced:
            raced.append(True)
            raced.append(apply_pending_plan(site, HERE, plan))
        write(*writes)

    monkeypatch.setattr(site.tables, "write_items", write_later)
    assert apply_pending_plan(site, HERE, plan) == raced[1]
    assert load_draft(site, HERE).version == 2


def test_a_request_that_finds_no_plan_any_more_is_answered_by_the_one_that_has_applied_it(
    site: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = hold(site, REMOVAL)
    raced: list[PlanOutcome] = []

    def require_late(*place: Any) -> Any:
        monkeypatch.undo()
        raced.append(apply_pending_plan(site, HERE, plan))
        return require_pending_plan(*place)

    monkeypatch.setattr("fermata.plans.apply_plan.require_pending_plan", require_late)
    assert apply_pending_plan(site, HERE, plan) == raced[0]
    with pytest.raises(Conflict, match="applied already"):
        discard_pending_plan(site, HERE, plan)


def test_of_equal_requests_at_once_the_later_one_is_not_told_that_there_is_nothing_to_do(
    site: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    removal = [{"op": "remove_page", "pageSlug": "/faq"}]
    raced: list[PlanOutcome] = []

    def apply_late(*given: Any) -> Any:
        monkeypatch.undo()
        raced.append(apply_submitted_operations(site, HERE, removal, "key/k"))
        return apply_operations(load_draft(site, HERE).draft, *given[1:])

    monkeypatch.setattr("fermata.plans.apply_plan.apply_operations", apply_late)
    assert apply_submitted_operations(site, HERE, removal, "key/k") == raced[0]


def test_a_plan_that_is_dropped_while_it_is_applied_is_either_applied_or_dropped(
    site: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, write = hold(site, REMOVAL), site.tables.write_items
    raced: list[Any] = []

    def write_later(*writes: Any) -> None:
        if not raced:
            raced.append(True)
            discard_pending_plan(site, HERE, plan)
        write(*writes)

    monkeypatch.setattr(site.tables, "write_items", write_later)
    with pytest.raises(Conflict, match="no plan that waits"):
        apply_pending_plan(site, HERE, plan)
    assert load_draft(site, HERE).version == 1


def test_a_plan_waits_for_an_hour(site: Resources, clock: TestClock) -> None:
    plan = hold(site, REMOVAL)
    clock.advance(PENDING_PLAN_SECONDS - 1)
    assert load_pending_plan(site, HERE) is not None
    clock.advance(1)
    with pytest.raises(Conflict, match="no plan that waits"):
        apply_pending_plan(site, HERE, plan)
    assert load_draft(site, HERE).version == 1


def test_a_newer_plan_takes_the_place_of_an_older_one_also_if_the_older_one_lands_later(
    site: Resources, clock: TestClock
) -> None:
    old = hold(site, REMOVAL)
    table = site.settings.conversations_table
    late_copy = site.tables.get_item(table, HERE.pk, "d#plan")
    assert late_copy is not None
    clock.advance(5)
    new = hold(site, {"op": "remove_page", "pageSlug": "/pricing"}, key="t2/1/0")
    site.tables.put_newest(table, late_copy, "at")
    with pytest.raises(Conflict, match="Another plan"):
        apply_pending_plan(site, HERE, old)
    with pytest.raises(Conflict, match="Another plan"):
        discard_pending_plan(site, HERE, old)
    assert apply_pending_plan(site, HERE, new).status == "applied"


def test_a_plan_is_not_applied_to_something_else_than_its_user_was_shown(site: Resources) -> None:
    plan = hold(site, REMOVAL)
    other = {"op": "update_props", "pageSlug": "/faq", "blockId": "b_text", "patch": {"body": "Important"}}
    apply_submitted_operations(site, HERE, [other], "o1")
    with pytest.raises(Conflict, match="has been changed since"):
        apply_pending_plan(site, HERE, plan)


def test_a_plan_is_applied_beside_changes_of_what_it_does_not_touch(site: Resources) -> None:
    plan = hold(site, REMOVAL)
    apply_submitted_operations(site, HERE, [HEADING], "o1")
    assert apply_pending_plan(site, HERE, plan).preview_version == 3


def test_dropping_a_plan_twice_is_dropping_it_once(site: Resources) -> None:
    plan = hold(site, REMOVAL)
    assert discard_pending_plan(site, HERE, plan) is not None
    assert discard_pending_plan(site, HERE, plan) is None


def test_a_plan_that_cannot_be_accepted_says_what_to_correct(site: Resources) -> None:
    outcome = submit(site, {"op": "update_props", "blockId": "b_none", "patch": {"a": 1}}, HEADING)
    assert (outcome.status, outcome.error_code, outcome.applied_count) == ("validation_error", "not_found", 0)
    assert outcome.feedback
    assert "b_hero (Hero)" in outcome.feedback
    assert "Keep all 2 operations" in outcome.feedback


@pytest.mark.parametrize(("intent", "status"), [("content_answer", "info"), ("needs_clarification",) * 2])
def test_a_plan_without_operations_is_an_answer_or_a_question(site: Resources, intent: str, status: str) -> None:
    candidate = {"intent": intent, "summary_for_user": "Which page?", "suggested_next_actions": "Home\nFAQ"}
    outcome = submit_plan(site, HERE, PlanSubmission(candidate, "/", "", "t/1/0"))
    assert (outcome.status, outcome.suggestions) == (status, ("Home", "FAQ"))
    assert load_draft(site, HERE).version == 1


def test_an_editor_can_switch_structural_changes_off(site: Resources) -> None:
    removal = {"op": "remove_block", "pageSlug": "/", "blockId": "b_cta"}
    with pytest.raises(Conflict, match="disabled"):
        submit(site, removal, allows_structure=False)
    assert submit(site, HEADING, allows_structure=False).status == "applied"


def submit_step(site: Resources, operation: Any, key: str, **members: Any) -> PlanOutcome:
    """Submit a plan in a session, which begins a chain of plans or goes on with one."""
    candidate = {"summary_for_user": "Done.", "ops": [operation]}
    submission = PlanSubmission(
        candidate=candidate, effect_key=key, default_slug="/", message="", turn=key[:2], **members
    )
    return DraftSession(site, HERE).submit(submission)


def test_of_two_turns_that_plan_the_same_step_of_a_chain_the_later_plan_is_refused(site: Resources) -> None:
    """Both were asked to go on before the first of their plans was accepted."""
    begun = submit_step(site, HEADING, "t1/1/0", next_steps=("Second", "Third")).continuation
    assert begun
    step = {"chain_id": begun["chainId"], "chain_step": 2}
    second = {**HEADING, "patch": {"heading": "Second"}}
    first = submit_step(site, second, "t2/1/0", **step)
    with pytest.raises(Conflict, match="planned by another request"):
        submit_step(site, second | {"patch": {"heading": "Again"}}, "t3/1/0", **step)
    assert submit_step(site, second, "t2/1/0", **step) == first
    assert load_draft(site, HERE).version == 3
