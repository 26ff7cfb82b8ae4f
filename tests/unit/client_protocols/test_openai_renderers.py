"""The log of a turn becomes what OpenAI's clients read: chunks, events, whole objects, calls, failures."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from fermata.domain.events import (
    BridgeReadyEvent,
    CancelledEvent,
    DoneEvent,
    ErrorEvent,
    Event,
    HeldEvent,
    ReasoningEvent,
    RoundStartedEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolResultEvent,
)
from fermata.wire.renderers.openai_answer import (
    ClientCallPlace,
    OpenAIAnswer,
    TokenTotals,
    make_client_call_id,
    read_client_call_id,
)
from fermata.wire.renderers.openai_chat import ChatCompletionRenderer
from fermata.wire.renderers.openai_response import ResponseRenderer
from fermata.wire.renderers.turn_fold import TurnFold

TURN = "turn-1"
TOKENS = TokenTotals(prompt=7, completion=3, cached=2)
Entries = Sequence[Sequence[Event]]


def start_round(number: int) -> Event:
    return RoundStartedEvent(round=number, epoch="1", owner="me")


def call(call_id: str, name: str = "get_weather", **given: Any) -> Event:
    return ToolCallEvent(tool_call_id=call_id, tool_name=name, input=given)


def request(call_id: str, name: str = "get_weather", **given: Any) -> Event:
    return ToolRequestEvent(
        request_id=f"r-{call_id}", tool_call_id=call_id, tool_name=name, input=given, effect_key=call_id, deadline=""
    )


def answer(call_id: str, name: str = "get_weather") -> Event:
    return ToolResultEvent(tool_call_id=call_id, tool_name=name, ok=True, output="sun")


BEGIN: Entries = ([BridgeReadyEvent(bridge_id=TURN)], [start_round(1)])
PLAIN: Entries = (
    *BEGIN,
    [ReasoningEvent(text="Hm."), TextEvent(text="Good ")],
    [TextEvent(text="day.")],
    [call("s1", "read_document"), answer("s1", "read_document")],
    [start_round(2)],
    [TextEvent(text="Done.")],
    [DoneEvent()],
)
CALLS: Entries = (
    *BEGIN,
    [TextEvent(text="I look.")],
    [call("c1", city="Bern"), call("c2", city="Rome"), request("c1", city="Bern")],
)
RESULTS: Entries = (
    [answer("c1"), request("c2", city="Rome")],
    [answer("c2")],
    [start_round(2)],
    [TextEvent(text="Sun."), DoneEvent()],
)


def make_answer(*awaited: str) -> OpenAIAnswer:
    return OpenAIAnswer(TurnFold(lambda name: name == "get_weather"), awaited=set(awaited))


def make_chat(answer: OpenAIAnswer, *, has_usage: bool = False) -> ChatCompletionRenderer:
    return ChatCompletionRenderer(answer, completion_id="chatcmpl-1", model="site", created=1, has_usage=has_usage)


def make_response(answer: OpenAIAnswer) -> ResponseRenderer:
    return ResponseRenderer(answer, response_id="resp_1", model="site", created=1)


def read_chunks(renderer: ChatCompletionRenderer | ResponseRenderer, entries: Entries) -> list[Any]:
    """Return the data of the frames, up to where the response ends."""
    frames = b""
    for events in entries:
        frames += renderer.render_events(events)
        if renderer.is_response_over():
            break
    frames += renderer.render_end(TOKENS)
    data = [line[6:] for line in frames.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(text) if text != "[DONE]" else text for text in data]


def join_deltas(chunks: list[Any], name: str) -> str:
    choices = [choice for chunk in chunks if isinstance(chunk, dict) for choice in chunk.get("choices", ())]
    return "".join(choice["delta"].get(name) or "" for choice in choices)


def test_text_of_several_rounds_is_one_text_and_the_agents_own_calls_are_not_shown() -> None:
    chunks = read_chunks(make_chat(make_answer(), has_usage=True), PLAIN)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert join_deltas(chunks, "content") == "Good day.\n\nDone."
    assert join_deltas(chunks, "reasoning_content") == "Hm."
    assert "read_document" not in json.dumps(chunks)
    assert chunks[-3]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-2]["choices"] == []
    assert chunks[-2]["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    assert chunks[-1] == "[DONE]"
    assert {chunk["usage"] is None for chunk in chunks[:-2]} == {True}


def test_calls_of_the_clients_tools_end_the_response_with_all_of_them() -> None:
    answer = make_answer()
    chunks = read_chunks(make_chat(answer), CALLS)
    calls = [
        call for chunk in chunks[:-1] for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())
    ]
    assert [(call["index"], call["id"], call["function"]["arguments"]) for call in calls] == [
        (0, "call_turn-1_0", '{"city":"Bern"}'),
        (1, "call_turn-1_1", '{"city":"Rome"}'),
    ]
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert "usage" not in chunks[-2]
    whole = make_chat(answer).build_whole(TOKENS)
    assert whole["choices"][0]["message"]["content"] == "I look."
    assert [one["id"] for one in whole["choices"][0]["message"]["tool_calls"]] == ["call_turn-1_0", "call_turn-1_1"]


def test_the_request_with_the_results_shows_only_what_comes_after_them() -> None:
    chunks = read_chunks(make_chat(make_answer("c1", "c2")), [*CALLS, *RESULTS])
    assert join_deltas(chunks, "content") == "Sun."
    assert "tool_calls" not in json.dumps(chunks)
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (
            ErrorEvent(message="Busy.", code="provider_overloaded", retryable=True),
            {"message": "Busy.", "type": "server_error", "param": None, "code": "provider_overloaded"},
        ),
        (
            ErrorEvent(message="No.", code="provider_request", retryable=False),
            {"message": "No.", "type": "invalid_request_error", "param": None, "code": "provider_request"},
        ),
        (
            ErrorEvent(message="Slow down.", code="provider_quota", retryable=True),
            {"message": "Slow down.", "type": "rate_limit_error", "param": None, "code": "provider_quota"},
        ),
        (
            CancelledEvent(),
            {
                "message": "The answer was cancelled.",
                "type": "invalid_request_error",
                "param": None,
                "code": "cancelled",
            },
        ),
    ],
)
def test_a_failure_ends_a_stream_with_an_error(end: Event, error: Any) -> None:
    entries = [*BEGIN, [TextEvent(text="We")], [end]]
    assert read_chunks(make_chat(make_answer()), entries)[-1] == {"error": error}
    failed = read_chunks(make_response(make_answer()), entries)[-1]
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert failed["response"]["error"]["message"] == error["message"]


def test_a_turn_that_waits_for_somebody_else_says_so_and_ends() -> None:
    chunks = read_chunks(make_chat(make_answer()), [*BEGIN, [HeldEvent(until="x", retry_after=30)]])
    assert "a decision that is made elsewhere" in join_deltas(chunks, "content")
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


def test_a_response_that_reaches_its_limit_of_time_is_no_whole_answer() -> None:
    answer = make_answer()
    renderer = make_chat(answer)
    for events in (*BEGIN, [TextEvent(text="Half")]):
        renderer.render_events(events)
    answer.close()
    assert b"Send the request again" in renderer.render_end(TOKENS)


def test_events_of_a_response_are_numbered_and_open_and_close_each_item() -> None:
    events = read_chunks(make_response(make_answer()), PLAIN)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * 3,
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    done = events[-1]["response"]
    assert [item["type"] for item in done["output"]] == ["reasoning", "message"]
    assert done["output"][1]["content"][0]["text"] == "Good day.\n\nDone."
    assert done["usage"]["total_tokens"] == 10
    assert [event["output_index"] for event in events if "output_index" in event] == [0] * 6 + [1] * 8


def test_calls_are_items_of_a_response() -> None:
    events = read_chunks(make_response(make_answer()), CALLS)
    output = events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
    assert (output[1]["call_id"], output[1]["arguments"]) == ("call_turn-1_0", '{"city":"Bern"}')
    deltas = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert deltas == ['{"city":"Bern"}', '{"city":"Rome"}']


def test_the_same_log_gives_the_same_bytes_however_its_events_are_grouped() -> None:
    flat = [[event] for events in PLAIN for event in events]
    assert read_chunks(make_chat(make_answer()), flat) == read_chunks(make_chat(make_answer()), PLAIN)


@pytest.mark.parametrize("turn", ["abc", "a_b-c_1", "x" * 21])
def test_the_id_of_a_call_names_its_turn_and_its_place(turn: str) -> None:
    assert read_client_call_id(make_client_call_id(turn, 12)) == ClientCallPlace(turn, 12, is_approval=False)


@pytest.mark.parametrize("call_id", ["", "call_", "call_x", "call__1", "toolu_1", "call_a/b_1", "call_x_1234567"])
def test_other_ids_are_none_of_ours(call_id: str) -> None:
    assert read_client_call_id(call_id) is None
