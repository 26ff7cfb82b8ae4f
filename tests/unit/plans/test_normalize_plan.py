"""The normaliser understands more than the table of cases, and leaves the rest to the schema."""

from contextlib import suppress
from typing import Any

import pytest

from fermata.plans.edit_plan import MAX_OPERATIONS, InvalidPlan, parse_edit_plan
from fermata.plans.json_repair_ladder import read_broken_json
from fermata.plans.normalization.normalize_plan import NormalizedPlan, normalize_plan
from fermata.plans.normalization.operation_names import find_operation_name
from fermata.plans.normalization.plan_context import PlanContext
from fermata.plans.operations import OPERATION_CLASSES
from tests.unit.plans.page_samples import NOW, SITE


def normalize(*operations: Any, message: str = "", slug: str = "/faq") -> NormalizedPlan:
    return normalize_plan({"ops": list(operations)}, PlanContext(slug, SITE.pages, message, now=NOW))


def normalize_one(operation: Any, message: str = "", slug: str = "/faq") -> dict[str, Any]:
    operations = normalize(operation, message=message, slug=slug).candidate["ops"]
    assert len(operations) == 1
    one: dict[str, Any] = operations[0]
    return one


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("Delete", "remove_block"),
        ("delete-section", "remove_block"),
        ("editBlock", "update_props"),
        ("EDIT_PROPS", "update_props"),
        ("insert item", "add_item"),
        ("clone_page", "duplicate_page"),
        ("reorder_page", "move_page"),
        ("updatePageMeta", "update_page_meta"),
        ("change slug", "rename_page"),
        ("paint", None),
        (7, None),
    ],
)
def test_operations_are_known_by_many_names(name: Any, operation: str | None) -> None:
    assert find_operation_name(name) == operation


def test_every_operation_is_known_by_its_own_name() -> None:
    assert {find_operation_name(name) for name in OPERATION_CLASSES} == set(OPERATION_CLASSES)


def test_an_operation_is_taken_out_of_an_object_with_its_name() -> None:
    assert normalize_one({"removeBlock": {"block_id": "b_text"}}) == {
        "op": "remove_block",
        "pageSlug": "/faq",
        "blockId": "b_text",
    }


def test_a_plan_that_is_itself_an_operation_has_that_operation() -> None:
    plan = normalize_plan({"action": "delete_page", "slug": "pricing"}, PlanContext("/", SITE.pages))
    assert plan.candidate["ops"] == [{"op": "remove_page", "pageSlug": "/pricing"}]
    assert plan.candidate["summary_for_user"]


@pytest.mark.parametrize(
    ("operation", "message", "expected"),
    [
        ({"op": "remove_item", "itemPath": "items[1].q"}, "", {"blockId": "b_faq", "listKey": "items", "index": 1}),
        ({"op": "update_props", "changes": {"body": "B"}}, "", {"blockId": "b_text", "patch": {"body": "B"}}),
        ({"op": "remove_block", "type": "rich text"}, "", {"blockId": "b_text"}),
        ({"op": "remove_block"}, "remove the faq", {"blockId": "b_faq"}),
        ({"op": "add_item", "blockId": "b_faq", "item": {"label": "L"}}, "", {"listKey": "items", "item": {"q": "L"}}),
        ({"op": "move_block", "blockId": "b_text", "beforeBlockId": "b_faq"}, "", {"blockId": "b_text"}),
        ({"op": "update_item", "blockId": "b_faq", "index": 0.0, "q": "Q"}, "", {"index": 0, "patch": {"q": "Q"}}),
    ],
)
def test_what_is_missing_is_found_where_it_has_one_meaning(
    operation: dict[str, Any], message: str, expected: dict[str, Any]
) -> None:
    one = normalize_one(operation, message)
    assert {name: one.get(name) for name in expected} == expected


def test_words_about_an_item_turn_the_removal_of_its_block_into_the_removal_of_the_item() -> None:
    removal = {"op": "remove_block", "pageSlug": "/faq", "blockId": "b_faq"}
    for message, index in (("remove the second question", 1), ("delete the last item", 1), ("delete question 1", 0)):
        assert normalize_one(removal, message)["op"] == "remove_item"
        assert normalize_one(removal, message)["index"] == index
    assert normalize_one(removal, "remove the questions") == removal
    assert normalize_one(removal, "remove the faq. The second question is how") == removal


def test_a_second_faq_becomes_an_item_only_if_the_user_speaks_of_one() -> None:
    block = {"type": "FAQAccordion", "props": {"items": [{"q": "q3", "a": "a3"}]}}
    added = {"op": "add_block", "block": block}
    assert normalize_one(added, "add a question about prices")["op"] == "add_item"
    assert normalize_one(added, "add another faq section")["op"] == "add_block"


def test_what_was_changed_is_recorded_with_what_was_submitted() -> None:
    removal = {"op": "delete", "blockId": "b_faq"}
    plan = normalize(
        removal, {"op": "remove_block", "pageSlug": "/faq", "blockId": "b_text"}, message="delete the first item"
    )
    (changed,) = plan.normalized_from
    assert changed.index == 1
    assert changed.submitted == removal
    assert "turn_into_remove_item" in changed.rules
    assert [operation["op"] for operation in changed.became] == ["remove_item"]


def test_an_update_of_the_page_without_a_block_is_a_question_to_the_user() -> None:
    plan = normalize_plan({"ops": [{"op": "update_props", "patch": {"layout": "x"}}]}, PlanContext("/", SITE.pages))
    assert plan.candidate["intent"] == "needs_clarification"
    assert plan.candidate["ops"] == []
    titled = normalize_one({"op": "update_props", "patch": {"title": "T"}}, slug="/pricing")
    assert titled == {"op": "update_page_meta", "pageSlug": "/pricing", "patch": {"title": "T"}}


def test_a_page_that_is_there_gets_blocks_instead_of_being_created() -> None:
    blocks = [{"type": "hero"}, {"type": "cta"}]
    operations = normalize({"op": "create_page", "blocks": blocks}, slug="/faq").candidate["ops"]
    assert [operation["op"] for operation in operations] == ["add_block", "add_block"]
    assert operations[1]["afterBlockId"] == operations[0]["block"]["id"]


def test_a_first_block_on_a_wanted_page_creates_it() -> None:
    added = {"op": "add_block", "pageSlug": "/team", "block": {"type": "CTA"}}
    plan = normalize(added, added, message="create a page /team").candidate
    assert [operation["op"] for operation in plan["ops"]] == ["create_page", "add_block"]
    ids = {plan["ops"][0]["page"]["blocks"][0]["id"], plan["ops"][1]["block"]["id"]}
    assert len(ids) == 2
    parse_edit_plan(plan)


@pytest.mark.parametrize("candidate", [None, [], "text", 7, {}, {"ops": "x"}, {"ops": [None, 7, "add_block", []]}])
def test_a_candidate_of_any_shape_is_normalized(candidate: Any) -> None:
    plan = normalize_plan(candidate, PlanContext("/", SITE.pages))
    assert isinstance(plan.candidate, dict)
    with suppress(InvalidPlan):
        parse_edit_plan(plan.candidate)


def test_members_of_any_type_are_refused_by_the_schema_and_by_nothing_before_it() -> None:
    odd: list[Any] = [None, 7, "x", [], {}, [1], {"a": 1}, True, 1.5]
    members = ("pageSlug", "blockId", "patch", "block", "page", "item", "index", "listKey", "path", "afterBlockId")
    for name in OPERATION_CLASSES:
        for member in members:
            for value in odd:
                plan = normalize({"op": name, member: value}, message="delete page /faq to /x")
                with suppress(InvalidPlan):
                    parse_edit_plan(plan.candidate)


def test_the_feedback_names_each_place_and_the_number_of_operations() -> None:
    plan = normalize({"op": "move_block"}, {"op": "remove_page"}, {"op": "add_item", "blockId": "b_text"})
    with pytest.raises(InvalidPlan) as invalid:
        parse_edit_plan(plan.candidate)
    feedback = invalid.value.build_feedback(plan.operation_count)
    assert "ops[0].blockId: Field required" in feedback
    assert "ops[2].listKey: Field required" in feedback
    assert "Keep all 3 operations" in feedback


def test_a_plan_with_too_many_operations_is_refused_as_a_whole() -> None:
    plan = normalize(*[{"op": "remove_page", "pageSlug": f"/{n}"} for n in range(MAX_OPERATIONS + 50)])
    with pytest.raises(InvalidPlan, match="at most"):
        parse_edit_plan(plan.candidate)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no object at all", None),
        ("", None),
        ('{"a": -, "b": [1, -]}', {"a": None, "b": [1, None]}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": "b\\', {"a": "b"}),
        ('{"a": "- kept", "b": ["x", {"c": "- y"', {"a": "- kept", "b": ["x", {"c": "- y"}]}),
        ('Here it is: {"a": 1, "b": {"c": tru', {"a": 1}),
        ('{"a": 1}}}', {"a": 1}),
    ],
)
def test_broken_json_is_read_or_given_up(text: str, value: Any) -> None:
    repaired = read_broken_json(text)
    assert (repaired.value if repaired else None) == value
