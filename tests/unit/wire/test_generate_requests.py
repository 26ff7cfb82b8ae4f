"""Bodies of requests to a model without a conversation."""

from typing import Any

import pytest

from fermata.domain.errors import InvalidRequest
from fermata.wire.bodies.generate_requests import GenerateBody


def parse(body: dict[str, Any]) -> Any:
    return GenerateBody.model_validate(body).to_generate_request()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": "x", "messages": [{"role": "user", "content": "x"}]},
        {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "x"}]},
        {"allowSystemInMessages": True, "messages": [{"role": "system", "content": "x"}]},
        {"prompt": " "},
        {"messages": [{"role": "assistant", "content": "x"}, {"role": "user", "content": "\n"}]},
        {"questions": {"a": {"yesno": "?"}}},
        {"prompt": "x", "state": "y"},
        {"state": "y", "questions": {"a": {"yesno": "?"}}, "schema": {}},
        {"state": "y", "questions": {"a": {"choice": "?", "options": None}}},
    ],
)
def test_members_that_contradict_each_other_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        parse(body)


def test_system_messages_follow_the_system_text_where_they_are_allowed() -> None:
    messages = [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "Hello"}]
    asked = parse({"system": "Be short.", "messages": messages, "allowSystemInMessages": True, "temperature": 0})
    assert (asked.system, asked.messages) == ("Be short.\n\nRhyme.", [("user", "Hello")])
    assert asked.sampling.temperature == 0


def test_a_schema_makes_it_a_request_for_an_object() -> None:
    asked = parse({"prompt": "x", "schema": {"type": "object"}, "schemaName": "city"})
    assert (asked.output.name, asked.output.json_schema) == ("city", {"type": "object"})
