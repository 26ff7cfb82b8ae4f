"""From a call to the moment somebody acts, and from what they answer to what the model reads."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import field_validator

from fermata.domain.caller import Capability
from fermata.domain.tools import ToolImage, ToolOutput
from fermata.tools.calls.pipeline import (
    AdmittedCall,
    Dispatch,
    admit_call,
    apply_result_policy,
    build_effect_key,
    choose_dispatch,
    get_answer_capability,
    get_timeout_seconds,
    needs_started_mark,
    parse_tool_output,
)
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Access, Approval, Execution, ResultPolicy, Tool, ToolInput
from tests.unit.tools.builders import (
    ALL_CAPABILITIES,
    EchoInput,
    contract_cases,
    get_site_tool,
    make_call,
    make_context,
    make_tool,
    make_toolset,
)

INSERT = {"parentId": "r1", "html": "<p>Hi</p>"}


def refused(outcome: AdmittedCall | ToolOutput) -> str:
    assert isinstance(outcome, ToolOutput)
    assert not outcome.ok
    assert outcome.error
    return outcome.error


def admitted(outcome: AdmittedCall | ToolOutput) -> AdmittedCall:
    assert isinstance(outcome, AdmittedCall), outcome
    return outcome


def test_an_admitted_call_carries_its_input_for_us_and_for_the_browser() -> None:
    outcome = admitted(
        admit_call(SITE_TOOLSET, make_call("insertHtml", {**INSERT, "index": "2", "extra": 1}), make_context())
    )
    assert outcome.tool is get_site_tool("insertHtml")
    assert outcome.arguments == {**INSERT, "index": 2}
    assert outcome.tool_input == outcome.tool.input_model.from_wire(outcome.arguments)


def test_a_prefixed_name_is_admitted_as_the_tool_it_means() -> None:
    assert admitted(
        admit_call(SITE_TOOLSET, make_call("site_insert_html", INSERT), make_context())
    ).tool is get_site_tool("insertHtml")


def test_an_unknown_tool_is_called_unknown() -> None:
    ((_, given, expected),) = [case for case in contract_cases("toolLoop") if case[0] == "C095"]
    name = given["call"].split("'")[1]
    assert admit_call(SITE_TOOLSET, make_call(name), make_context()) == ToolOutput.from_wire(expected["toolResult"])


@pytest.mark.parametrize("changes", [{"enabled": False}, {"scopes": frozenset({"content"})}, {"tenant": "tenant-2"}])
def test_a_tool_that_is_not_there_for_this_turn_is_unknown(changes: dict[str, Any]) -> None:
    assert refused(admit_call(make_toolset(make_tool(**changes)), make_call(), make_context())) == "Unknown tool: echo"


@pytest.mark.parametrize(
    "missing", [frozenset({"ai.tools.write"}), frozenset({"site.structure.edit"}), ALL_CAPABILITIES - {"ai.chat"}]
)
def test_a_call_without_the_permissions_is_refused_although_nobody_offered_it(missing: frozenset[str]) -> None:
    outcome = admit_call(
        SITE_TOOLSET, make_call("site_insert_html", INSERT), make_context(capabilities=ALL_CAPABILITIES - missing)
    )
    assert refused(outcome) == "Tool site_insert_html is not permitted for this user."


def test_a_role_the_tool_does_not_know_is_refused() -> None:
    tools = make_toolset(make_tool(roles=frozenset({"admin"})))
    assert (
        refused(admit_call(tools, make_call(), make_context(role="viewer")))
        == "Tool echo is not permitted for this user."
    )
    assert refused(admit_call(tools, make_call(), make_context())) == "Tool echo is not permitted for this user."
    assert admitted(admit_call(tools, make_call(), make_context(role="admin")))


def test_a_call_in_the_wrong_phase_is_told_the_right_one() -> None:
    tools = make_toolset(make_tool(phases=frozenset({"uninitialized"})))
    told = refused(admit_call(tools, make_call(), make_context(phase="active")))
    assert told == "Tool echo works only in phase uninitialized; now it is active."


def test_permission_is_checked_before_the_arguments_are_read() -> None:
    outcome = admit_call(
        SITE_TOOLSET, make_call("insertHtml", malformed=True), make_context(capabilities=frozenset({"ai.chat"}))
    )
    assert "not permitted" in refused(outcome)


def test_arguments_that_were_cut_off_are_never_run_and_the_model_is_told_to_send_less() -> None:
    told = refused(admit_call(SITE_TOOLSET, make_call("insertHtml", INSERT, malformed=True), make_context()))
    assert "not valid JSON or were cut off" in told
    assert "smaller" in told


def test_input_that_does_not_fit_is_refused_with_member_and_reason() -> None:
    told = refused(admit_call(SITE_TOOLSET, make_call("insertHtml", {"parentId": "r1"}), make_context()))
    assert told == "Invalid input for insertHtml: html: Expected required property."


def test_a_models_own_rule_is_told_like_the_schemas() -> None:
    class Even(ToolInput):
        number: int

        @field_validator("number")
        @classmethod
        def _is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("must be even")
            return number

    told = refused(
        admit_call(make_toolset(make_tool(input_model=Even)), make_call(arguments={"number": 3}), make_context())
    )
    assert told == "Invalid input for echo: number: must be even."


def test_what_needs_a_person_first_is_marked() -> None:
    assert not admitted(admit_call(make_toolset(make_tool()), make_call(), make_context())).needs_approval
    assert admitted(
        admit_call(make_toolset(make_tool(approval=Approval.ALWAYS)), make_call(), make_context())
    ).needs_approval


def test_a_confirmation_flag_counts_only_when_it_is_true() -> None:
    class Delete(ToolInput):
        confirmed: bool | None = None

    tools = make_toolset(make_tool(input_model=Delete, confirmation="confirmed"))
    assert admitted(admit_call(tools, make_call(), make_context())).needs_confirmation
    assert admitted(admit_call(tools, make_call(arguments={"confirmed": False}), make_context())).needs_confirmation
    assert not admitted(
        admit_call(tools, make_call(arguments={"confirmed": "true"}), make_context())
    ).needs_confirmation


def browser(**changes: Any) -> Tool:
    return make_tool(**{"execution": Execution.BROWSER, "handler": None, **changes})


@pytest.mark.parametrize(
    ("tool", "wait"),
    [
        (make_tool(), Dispatch.RUN),
        (make_tool(execution=Execution.REMOTE, timeout_seconds=600), Dispatch.RUN),
        (browser(), Dispatch.BROWSER),
        (browser(timeout_seconds=5), Dispatch.BROWSER),
        (browser(timeout_seconds=3600), Dispatch.HOLD),
        (browser(approval=Approval.ALWAYS), Dispatch.HOLD),
        (make_tool(approval=Approval.ALWAYS), Dispatch.HOLD),
    ],
)
def test_the_record_says_who_the_turn_waits_for(tool: Tool, wait: Dispatch) -> None:
    assert (
        choose_dispatch(admitted(admit_call(make_toolset(tool), make_call(), make_context())), browser_seconds=90)
        is wait
    )


def test_a_tools_own_patience_goes_before_the_settings() -> None:
    assert get_timeout_seconds(browser(), 90) == 90
    assert get_timeout_seconds(browser(timeout_seconds=5), 90) == 5


def test_the_effect_key_names_turn_round_and_call() -> None:
    assert build_effect_key("t1", 3, "toolu_7") == "t1/3/toolu_7"


def test_only_a_tool_that_may_run_twice_starts_without_a_mark() -> None:
    assert needs_started_mark(get_site_tool("deleteNode"))
    assert not needs_started_mark(get_site_tool("read_document"))


def test_a_write_is_answered_by_somebody_who_may_write() -> None:
    assert get_answer_capability(get_site_tool("applyCss")) == Capability.WRITE
    assert get_answer_capability(get_site_tool("getNodeHtml")) == Capability.CHAT
    assert get_answer_capability(make_tool(capability=Access.WRITE)) == Capability.WRITE


EXPECTED_ANSWERS = {
    "C105": ToolOutput.failure("boom"),
    "C106": ToolOutput.failure("Tool call failed."),
    "C107": ToolOutput.success({"ok": 3}),
    "C108": ToolOutput.success("hello"),
    "C110": ToolOutput.success(None),
}


@pytest.mark.parametrize(("case", "given", "expected"), contract_cases("normaliseToolOutput"))
def test_whatever_was_answered_becomes_an_output(case: str, given: Any, expected: Any) -> None:
    answer = parse_tool_output(given)
    assert answer == EXPECTED_ANSWERS[case]
    if isinstance(expected, dict):
        assert answer.model_dump(include={"ok", "data"}) == expected


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ({"ok": True}, ToolOutput.success()),
        ({"ok": True, "data": {"nodeIds": ["n1"]}, "latency": 3}, ToolOutput.success({"nodeIds": ["n1"]})),
        ({"ok": True, "error": None}, ToolOutput.success()),
        ({"ok": False, "error": None}, ToolOutput.failure("Tool call failed.")),
        ({"ok": False, "error": "  "}, ToolOutput.failure("Tool call failed.")),
        ({"ok": False, "error": {"code": 5}}, ToolOutput.failure("Tool call failed.")),
        ({"ok": False, "error": "boom", "images": "none"}, ToolOutput.failure("boom")),
        ({"ok": True, "images": "none"}, ToolOutput.success({"ok": True, "images": "none"})),
        ({"ok": "true"}, ToolOutput.success({"ok": "true"})),
        ([1, 2], ToolOutput.success([1, 2])),
        (False, ToolOutput.success(False)),
        (ToolOutput(ok=False), ToolOutput.failure("Tool call failed.")),
    ],
)
def test_an_answer_that_says_it_failed_is_never_taken_for_a_success(answer: Any, output: ToolOutput) -> None:
    assert parse_tool_output(answer) == output


def test_images_of_an_answer_are_read() -> None:
    answer = parse_tool_output({"ok": True, "images": [{"mimeType": "image/png", "data": "QUJD"}]})
    assert answer.images == (ToolImage(mime_type="image/png", data="QUJD"),)


def limited(max_chars: int) -> Tool:
    return make_tool(result_policy=ResultPolicy(max_chars=max_chars))


def test_a_small_result_reaches_the_model_as_it_is() -> None:
    output = ToolOutput(ok=True, data={"html": "<p>Hi</p>"}, images=(ToolImage(mime_type="image/png", data="QUJD"),))
    assert apply_result_policy(limited(100), output) == output


def test_a_large_result_is_cut_at_the_borders_of_its_values_and_says_how_much_is_missing() -> None:
    rows = [{"id": i, "title": "A title"} for i in range(1000)]
    data = apply_result_policy(limited(1000), ToolOutput.success({"total": 1000, "rows": rows})).data
    assert data["truncated"] is True
    assert "characters" in data["note"]
    kept = data["data"]["rows"]
    assert data["data"]["total"] == 1000
    assert kept[:-1] == rows[: len(kept) - 1]
    assert kept[-1] == f"… [{1000 - len(kept) + 1:,} more items]"


def test_a_long_text_inside_a_result_is_cut_with_its_neighbours_kept() -> None:
    data = apply_result_policy(limited(500), ToolOutput.success({"title": "Home", "html": "x" * 10_000})).data["data"]
    assert data["title"] == "Home"
    assert data["html"].startswith("xxx")
    assert data["html"].endswith(" more characters]")


def test_a_result_nested_without_end_is_cut_without_going_down_all_the_way() -> None:
    nested: Any = "x" * 60_000
    for _ in range(400):
        nested = [nested]
    shaped = json.dumps(apply_result_policy(limited(50_000), ToolOutput.success(nested)).data)
    assert shaped.count("[") < 100
    assert "characters left out" in shaped


def test_a_long_error_is_cut_too() -> None:
    error = apply_result_policy(limited(100), ToolOutput.failure("e" * 300)).error
    assert error == "e" * 100 + "… [200 more characters]"


def test_images_are_dropped_where_the_record_says_so() -> None:
    output = ToolOutput(ok=True, images=(ToolImage(mime_type="image/png", data="QUJD"),))
    assert apply_result_policy(make_tool(result_policy=ResultPolicy(images=False)), output) == ToolOutput(ok=True)


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=40,
)


@given(data=json_data, limit=st.integers(min_value=60, max_value=400))
def test_what_the_model_reads_stays_within_the_limit_and_its_note(data: Any, limit: int) -> None:
    shaped = apply_result_policy(limited(limit), ToolOutput.success(data)).data
    size = len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    if size <= limit:
        assert shaped == data
    else:
        assert len(json.dumps(shaped["data"], ensure_ascii=False, separators=(",", ":"))) <= limit
        assert len(shaped["note"]) < 150


def test_the_input_model_is_what_the_tool_declares() -> None:
    assert isinstance(
        admitted(admit_call(make_toolset(make_tool()), make_call(arguments={"text": "a"}), make_context())).tool_input,
        EchoInput,
    )
