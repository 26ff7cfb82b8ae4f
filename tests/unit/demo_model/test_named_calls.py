"""The demo model calls the tools that a prompt names, so that tools of one's own can be tried without a real model."""

from typing import Any

import pytest

from local.demo_model.rules.named_call import NamedCall, parse_named_calls
from local.demo_model.rules.next_answer import decide_answer

TOOLS = [{"name": "pim_getProduct", "input_schema": {"type": "object"}}]


def ask(prompt: str, *later: dict[str, Any], **members: Any) -> Any:
    messages = [{"role": "user", "content": [{"type": "text", "text": prompt}]}, *later]
    return decide_answer({"messages": messages, "tools": TOOLS, **members})


@pytest.mark.parametrize("name", ["pim.getProduct", "pim_getproduct", "`pim.getProduct`"])
def test_a_tool_is_called_as_the_prompt_says(name: str) -> None:
    answer = ask(f'Call {name} with {{"sku": "SKU-123"}}')
    assert [(call.name, call.input) for call in answer.tool_calls] == [("pim_getProduct", {"sku": "SKU-123"})]


def test_several_lines_are_several_calls_and_arguments_may_be_left_out() -> None:
    calls = parse_named_calls('call a with {"x": {"y": 1}}\nCall b\n')
    assert calls == [NamedCall("a", {"x": {"y": 1}}), NamedCall("b", {})]


@pytest.mark.parametrize("prompt", ["Call me tomorrow", "Call a with {x}", "Please call a with {}", "What is a call?"])
def test_other_prompts_name_no_call(prompt: str) -> None:
    assert parse_named_calls(prompt) == []


def test_a_tool_that_is_not_offered_is_answered_with_those_that_are() -> None:
    assert "I was not given dam.search. My tools are: pim_getProduct." in ask("Call dam.search").text
    assert ask("Call pim.getProduct", tool_choice={"type": "none"}).tool_calls == ()


def test_the_result_is_said() -> None:
    call = {"type": "tool_use", "id": "t", "name": "pim_getProduct", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": '{"title": "Bread"}'}
    later = ({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})
    answer = ask("Call pim.getProduct", *later)
    assert 'pim_getProduct: {"title": "Bread"}' in answer.text
    assert answer.tool_calls == ()
