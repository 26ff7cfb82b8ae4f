"""Bytes of a Messages request that the API finds in its cache, and the places of the breakpoints."""

import itertools
import json
from typing import Any

from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from local.demo_model.merged_messages import merge_messages, sign_thinking, without_cache_control
from local.demo_model.request_checks.anthropic_messages import check_request
from tests.unit.drivers.accepted_anthropic_body import HEADERS, build_accepted_body
from tests.unit.drivers.conversation_builders import (
    model_message,
    model_request,
    thinking_block,
    tool_call,
    tool_result,
    user_message,
)


def turns(count: int, rounds: int) -> list[tuple[ModelRequest, str]]:
    """Build the requests of several turns, each with its own volatile text."""
    rows: list[Message] = []
    asks = []
    for turn in range(count):
        name = f"turn {turn}"
        rows.append(user_message(f"Prompt {turn}", turn=name))
        asks.append((model_request(*rows, volatile=f"It is {turn} o'clock"), name))
        for round_ in range(rounds):
            ids = [f"t{turn}_{round_}_{number}" for number in range(3)]
            rows.append(model_message(f"Round {round_}", *(tool_call(call_id) for call_id in ids), turn=name))
            rows += [tool_result(call_id, {"n": call_id}, turn=name) for call_id in ids]
            asks.append((model_request(*rows, volatile=f"It is {turn} o'clock"), name))
        rows.append(model_message("Done", turn=name))
    return asks


def prefix(body: dict[str, Any], upto: int | None = None) -> list[str]:
    """Return the blocks in the order in which they are cached, without breakpoints."""
    blocks = [
        *body["tools"],
        *body["system"],
        *(block for turn in merge_messages(body["messages"]) for block in turn.blocks),
    ]
    return [json.dumps(without_cache_control(block)) for block in blocks][:upto]


def marked(body: dict[str, Any]) -> list[int]:
    blocks = [
        *body["tools"],
        *body["system"],
        *(block for turn in merge_messages(body["messages"]) for block in turn.blocks),
    ]
    return [at for at, block in enumerate(blocks) if "cache_control" in block]


def test_there_are_at_most_four_breakpoints() -> None:
    assert {len(marked(build_accepted_body(request))) for request, _ in turns(4, 4)} <= {2, 3, 4}


def test_within_a_turn_each_request_begins_with_the_last_one_to_the_byte() -> None:
    asks = turns(3, 4)
    for (before, turn), (after, next_turn) in itertools.pairwise(asks):
        if turn == next_turn:
            said_before = prefix(build_accepted_body(before))
            assert prefix(build_accepted_body(after), len(said_before)) == said_before


def test_each_request_finds_an_earlier_ones_cache_at_one_of_its_breakpoints() -> None:
    written: set[tuple[str, ...]] = set()
    for number, (request, _) in enumerate(turns(3, 4)):
        body = build_accepted_body(request)
        hits = [at for at in marked(body) if tuple(prefix(body, at + 1)) in written]
        assert number == 0 or hits
        written |= {tuple(prefix(body, at + 1)) for at in marked(body)}


def test_a_new_turn_finds_the_cache_up_to_the_last_turns_prompt() -> None:
    asks = turns(3, 2)
    last_prompt_of_first_turn = asks[0][0]
    second_turn = next(request for request, turn in asks if turn == "turn 1")
    cached = prefix(
        build_accepted_body(last_prompt_of_first_turn), marked(build_accepted_body(last_prompt_of_first_turn))[-1] + 1
    )
    assert len(cached) - 1 in marked(build_accepted_body(second_turn))
    assert prefix(build_accepted_body(second_turn), len(cached)) == cached


def test_volatile_text_follows_the_breakpoint_of_its_prompt_only() -> None:
    for request, turn in turns(2, 2):
        body = build_accepted_body(request)
        clocks = [text for text in prefix(body) if "o'clock" in text]
        assert len(clocks) == 1
        at = prefix(body).index(clocks[0])
        assert at - 1 in marked(body)
        assert f"Prompt {turn[-1]}" in prefix(body)[at - 1]


def test_thinking_of_the_newest_models_stays_valid_through_all_rounds_of_a_turn() -> None:
    name = "claude-opus-5-5"
    rows = [user_message("Prompt")]
    for round_ in range(4):
        body = build_accepted_body(model_request(*rows, model=name, volatile="Now"))
        check_request(
            HEADERS, body | {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}
        )
        signature = sign_thinking(body, merge_messages(body["messages"]), "Hm.")
        rows += [
            model_message(thinking_block("Hm.", signature, of=name), tool_call(f"t{round_}")),
            tool_result(f"t{round_}", round_),
        ]
