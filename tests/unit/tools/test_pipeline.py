"""A call is admitted or refused, dispatched, and its result is shaped for the model."""

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
    admit_call,
    apply_result_policy,
    build_effect_key,
    get_answer_capability,
    get_timeout_seconds,
    needs_started_mark,
    parse_tool_output,
)
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Access, Execution, ResultPolicy, Tool, ToolInput
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

INSERT_ARGUMENTS = {"parentId": "r1", "html": "<p>Hi</p>"}


def get_error(outcome: AdmittedCall | ToolOutput) -> str:
    assert isinstance(outcome, ToolOutput)
    assert not outcome.ok
    assert outcome.error
    return outcome.error


def get_admitted(outcome: AdmittedCall | ToolOutput) -> AdmittedCall:
    assert isinstance(outcome, AdmittedCall), outcome
    return outcome


def test_an_admitted_call_has_its_input_as_a_model_and_as_json() -> None:
    outcome = get_admitted(
        admit_call(
            SITE_TOOLSET, make_call("insertHtml", {**INSERT_ARGUMENTS, "index": "2", "extra": 1}), make_context()
        )
    )
    assert outcome.tool is get_site_tool("insertHtml")
    assert outcome.arguments == {**INSERT_ARGUMENTS, "index": 2}
    assert outcome.tool_input == outcome.tool.input_model.from_wire(outcome.arguments)


def test_a_prefixed_name_is_admitted_as_its_tool() -> None:
    assert get_admitted(
        admit_call(SITE_TOOLSET, make_call("site_insert_html", INSERT_ARGUMENTS), make_context())
    ).tool is get_site_tool("insertHtml")


def test_an_unknown_tool_is_refused() -> None:
    ((_, case_input, expected),) = [case for case in contract_cases("toolLoop") if case[0] == "C095"]
    name = case_input["call"].split("'")[1]
    assert admit_call(SITE_TOOLSET, make_call(name), make_context()) == ToolOutput.from_wire(expected["toolResult"])


@pytest.mark.parametrize("changes", [{"enabled": False}, {"scopes": frozenset({"content"})}, {"tenant": "tenant-2"}])
def test_a_tool_that_is_not_available_in_the_turn_is_unknown(changes: dict[str, Any]) -> None:
    assert (
        get_error(admit_call(make_toolset(make_tool(**changes)), make_call(), make_context())) == "Unknown tool: echo"
    )


@pytest.mark.parametrize(
    "missing", [frozenset({"ai.tools.write"}), frozenset({"site.structure.edit"}), ALL_CAPABILITIES - {"ai.chat"}]
)
def test_a_call_of_a_tool_that_was_not_offered_is_refused(missing: frozenset[str]) -> None:
    outcome = admit_call(
        SITE_TOOLSET,
        make_call("site_insert_html", INSERT_ARGUMENTS),
        make_context(capabilities=ALL_CAPABILITIES - missing),
    )
    assert get_error(outcome) == "Tool site_insert_html is not permitted for this user."


def test_a_caller_without_a_role_of_the_tool_is_refused() -> None:
    tools = make_toolset(make_tool(roles=frozenset({"admin"})))
    assert (
        get_error(admit_call(tools, make_call(), make_context(role="viewer")))
        == "Tool echo is not permitted for this user."
    )
    assert get_error(admit_call(tools, make_call(), make_context())) == "Tool echo is not permitted for this user."
    assert get_admitted(admit_call(tools, make_call(), make_context(role="admin")))


def test_a_call_in_the_wrong_phase_is_refused_with_the_right_one() -> None:
    tools = make_toolset(make_tool(phases=frozenset({"uninitialized"})))
    message = get_error(admit_call(tools, make_call(), make_context(phase="active")))
    assert message == "Tool echo works only in phase uninitialized; now it is active."


def test_permission_is_checked_before_the_arguments_are_read() -> None:
    outcome = admit_call(
        SITE_TOOLSET, make_call("insertHtml", malformed=True), make_context(capabilities=frozenset({"ai.chat"}))
    )
    assert "not permitted" in get_error(outcome)


def test_malformed_arguments_are_refused_with_the_advice_to_send_less() -> None:
    message = get_error(
        admit_call(SITE_TOOLSET, make_call("insertHtml", INSERT_ARGUMENTS, malformed=True), make_context())
    )
    assert "not valid JSON or were cut off" in message
    assert "smaller" in message


def test_malformed_arguments_are_refused_with_the_place_and_the_text() -> None:
    problem = "Expecting value at line 1. They were: {oops"
    call = make_call("insertHtml", {}, malformed=True).model_copy(update={"problem": problem})
    assert get_error(admit_call(SITE_TOOLSET, call, make_context())).endswith("They were: {oops")


@pytest.mark.parametrize("name", ["insertHtmls", "functions.insert_htm"])
def test_the_error_of_an_unknown_tool_names_the_nearest(name: str) -> None:
    outcome = admit_call(SITE_TOOLSET, make_call(name), make_context(), lambda _name: "site_insert_html")
    assert get_error(outcome) == f"Unknown tool: {name}. The nearest are: site_insert_html."


def test_invalid_input_is_refused_with_member_and_reason() -> None:
    message = get_error(admit_call(SITE_TOOLSET, make_call("insertHtml", {"parentId": "r1"}), make_context()))
    assert message == "Invalid input for insertHtml: html: Expected required property."


def test_an_error_of_a_models_own_validator_is_reported_like_one_of_the_schema() -> None:
    class Even(ToolInput):
        number: int

        @field_validator("number")
        @classmethod
        def _is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("must be even")
            return number

    message = get_error(
        admit_call(make_toolset(make_tool(input_model=Even)), make_call(arguments={"number": 3}), make_context())
    )
    assert message == "Invalid input for echo: number: must be even."


def test_a_confirmation_flag_counts_only_when_it_is_true() -> None:
    class Delete(ToolInput):
        confirmed: bool | None = None

    tools = make_toolset(make_tool(input_model=Delete, confirmation_flag="confirmed"))
    assert get_admitted(admit_call(tools, make_call(), make_context())).needs_confirmation
    assert get_admitted(admit_call(tools, make_call(arguments={"confirmed": False}), make_context())).needs_confirmation
    assert not get_admitted(
        admit_call(tools, make_call(arguments={"confirmed": "true"}), make_context())
    ).needs_confirmation


def make_browser_tool(**changes: Any) -> Tool:
    return make_tool(**{"execution": Execution.BROWSER, "handler": None, **changes})


def test_the_timeout_of_a_tool_overrides_the_settings() -> None:
    assert get_timeout_seconds(make_browser_tool(), 90) == 90
    assert get_timeout_seconds(make_browser_tool(timeout_seconds=5), 90) == 5


def test_the_effect_key_names_turn_round_and_call() -> None:
    assert build_effect_key("t1", 3, "toolu_7") == "t1/3/toolu_7"


def test_only_an_idempotent_tool_starts_without_a_mark() -> None:
    assert needs_started_mark(get_site_tool("deleteNode"))
    assert not needs_started_mark(get_site_tool("read_document"))


def test_answering_a_write_requires_the_write_capability() -> None:
    assert get_answer_capability(get_site_tool("applyCss")) == Capability.WRITE
    assert get_answer_capability(get_site_tool("getNodeHtml")) == Capability.CHAT
    assert get_answer_capability(make_tool(access=Access.WRITE)) == Capability.WRITE


EXPECTED_ANSWERS = {
    "C105": ToolOutput.failure("boom"),
    "C106": ToolOutput.failure("Tool call failed."),
    "C107": ToolOutput.success({"ok": 3}),
    "C108": ToolOutput.success("hello"),
    "C110": ToolOutput.success(None),
}


@pytest.mark.parametrize(("case", "case_input", "expected"), contract_cases("normaliseToolOutput"))
def test_any_answer_becomes_a_tool_output(case: str, case_input: Any, expected: Any) -> None:
    answer = parse_tool_output(case_input)
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
def test_a_failed_answer_never_counts_as_a_success(answer: Any, output: ToolOutput) -> None:
    assert parse_tool_output(answer) == output


def test_images_of_an_answer_are_read() -> None:
    answer = parse_tool_output({"ok": True, "images": [{"mimeType": "image/png", "data": "QUJD"}]})
    assert answer.images == (ToolImage(mime_type="image/png", data="QUJD"),)


def make_limited_tool(max_chars: int) -> Tool:
    return make_tool(result_policy=ResultPolicy(max_chars=max_chars))


def test_a_small_result_is_not_changed() -> None:
    output = ToolOutput(ok=True, data={"html": "<p>Hi</p>"}, images=(ToolImage(mime_type="image/png", data="QUJD"),))
    assert apply_result_policy(make_limited_tool(100), output) == output


def test_a_large_result_is_cut_between_values_with_a_count_of_the_rest() -> None:
    rows = [{"id": i, "title": "A title"} for i in range(1000)]
    data = apply_result_policy(make_limited_tool(1000), ToolOutput.success({"total": 1000, "rows": rows})).data
    assert data["truncated"] is True
    assert "characters" in data["note"]
    rows_left = data["data"]["rows"]
    assert data["data"]["total"] == 1000
    assert rows_left[:-1] == rows[: len(rows_left) - 1]
    assert rows_left[-1] == f"… [{1000 - len(rows_left) + 1:,} more items]"


def test_a_long_text_is_cut_without_losing_the_other_members() -> None:
    data = apply_result_policy(
        make_limited_tool(500), ToolOutput.success({"title": "Home", "html": "x" * 10_000})
    ).data["data"]
    assert data["title"] == "Home"
    assert data["html"].startswith("xxx")
    assert data["html"].endswith(" more characters]")


def test_a_deeply_nested_result_is_cut_at_a_maximum_depth() -> None:
    nested: Any = "x" * 60_000
    for _ in range(400):
        nested = [nested]
    shaped = json.dumps(apply_result_policy(make_limited_tool(50_000), ToolOutput.success(nested)).data)
    assert shaped.count("[") < 100
    assert "characters left out" in shaped


def test_a_long_error_is_cut_too() -> None:
    error = apply_result_policy(make_limited_tool(100), ToolOutput.failure("e" * 300)).error
    assert error == "e" * 100 + "… [200 more characters]"


def test_images_are_dropped_if_the_result_policy_says_so() -> None:
    output = ToolOutput(ok=True, images=(ToolImage(mime_type="image/png", data="QUJD"),))
    assert apply_result_policy(make_tool(result_policy=ResultPolicy(images=False)), output) == ToolOutput(ok=True)


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=40,
)


@given(data=json_data, limit=st.integers(min_value=60, max_value=400))
def test_shortened_data_stays_within_the_limit(data: Any, limit: int) -> None:
    shaped = apply_result_policy(make_limited_tool(limit), ToolOutput.success(data)).data
    size = len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    if size <= limit:
        assert shaped == data
    else:
        assert len(json.dumps(shaped["data"], ensure_ascii=False, separators=(",", ":"))) <= limit
        assert len(shaped["note"]) < 150


def test_the_handler_input_is_an_instance_of_the_tools_input_model() -> None:
    assert isinstance(
        get_admitted(
            admit_call(make_toolset(make_tool()), make_call(arguments={"text": "a"}), make_context())
        ).tool_input,
        EchoInput,
    )
