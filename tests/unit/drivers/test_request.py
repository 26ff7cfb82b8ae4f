"""How a conversation is said to the Messages API. Every body here is checked as the real API checks it."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.anthropic.request import body_of
from fermata.words.blocks import BlobBlock, ImageBlock, ReasoningBlock
from fermata.words.messages import Message
from fermata.words.model import Ask
from local.demo_model.strict import BINDING_BETA, Refused, check
from local.demo_model.wire import bare, merged, sign
from tests.unit.drivers.asks import MODEL, SCHEMA, TOOLS, ask, call, model, picture, result, thought, user

MARK = {"type": "ephemeral"}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "anthropic-beta": BINDING_BETA}


def accepted(asked: Ask) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(body_of(asked)))
    check(HEADERS, body)
    return body


def said(asked: Ask) -> list[tuple[str, list[dict[str, Any]]]]:
    """Roles and blocks on the wire, without cache marks."""
    return [(one["role"], [bare(block) for block in one["content"]]) for one in accepted(asked)["messages"]]


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_a_whole_request() -> None:
    history = [
        user("Add prices", picture()),
        model("Let me look.", call("toolu_1"), call("toolu_2", "insertHtml", input={"html": "<p>"})),
        result("toolu_1", {"html": "<main>"}),
        result("toolu_2", ok=False, error="No such node"),
    ]
    assert accepted(ask(*history, volatile="Page: Home", max_tokens=900)) == {
        "model": MODEL,
        "max_tokens": 900,
        "stream": True,
        "system": [words("You edit pages.") | {"cache_control": MARK}],
        "tools": [
            {"name": "read_document", "description": "Reads the page.", "input_schema": SCHEMA},
            {"name": "insertHtml", "description": "Inserts HTML.", "input_schema": SCHEMA},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    words("Add prices"),
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                        "cache_control": MARK,
                    },
                    words("<context>\nPage: Home\n</context>"),
                ],
            },
            {
                "role": "assistant",
                "content": [
                    words("Let me look."),
                    {"type": "tool_use", "id": "toolu_1", "name": "read_document", "input": {}},
                    {"type": "tool_use", "id": "toolu_2", "name": "insertHtml", "input": {"html": "<p>"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"html":"<main>"}'},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": "No such node",
                        "is_error": True,
                        "cache_control": MARK,
                    },
                ],
            },
        ],
    }


def test_neighbouring_rows_of_one_side_become_one_message() -> None:
    rows = [user("a"), user("b"), model("c"), model(call("t1")), result("t1"), user("d")]
    assert [role for role, _ in said(ask(*rows))] == ["user", "assistant", "user"]


def test_tool_results_come_first_and_together_whatever_was_said_in_between() -> None:
    rows = [user("a"), model(call("t1"), call("t2")), result("t1", 1), user("stop!"), result("t2", 2)]
    _, blocks = said(ask(*rows))[-1]
    assert [block.get("tool_use_id", "text") for block in blocks] == ["t1", "t2", "text"]


def test_a_success_without_data_says_so_and_an_empty_error_says_something() -> None:
    rows = [user("a"), model(call("t1"), call("t2")), result("t1"), result("t2", ok=False, error=" ")]
    _, (fine, failed) = said(ask(*rows))[-1]
    assert fine["content"] == '{"ok":true}'
    assert (failed["content"], failed["is_error"]) == ("The tool failed.", True)


def test_pictures_of_a_result_are_native_and_a_failed_result_has_none() -> None:
    pictures = (picture(),)
    rows = [user("a"), model(call("t1"), call("t2")), result("t1", {"n": 1}, images=pictures)]
    rows.append(result("t2", ok=False, error="Too late", images=pictures))
    _, (seen, failed) = said(ask(*rows))[-1]
    assert [part["type"] for part in seen["content"]] == ["text", "image"]
    assert seen["content"][0]["text"] == '{"n":1}'
    assert failed["content"] == "Too late"


def test_blank_text_and_empty_messages_are_left_out() -> None:
    rows = [user("a"), model("", " \n"), user("b"), model("", call("t1")), result("t1")]
    assert [role for role, _ in said(ask(*rows))] == ["user", "assistant", "user"]


def test_r8_after_a_refusal_the_next_prompt_joins_the_results_before_it() -> None:
    rows = [user("a"), model(call("t1")), result("t1"), model(), user("and now?", turn="t2")]
    last = said(ask(*rows))[-1]
    assert last == ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": '{"ok":true}'}, words("and now?")])


@pytest.mark.parametrize("value", [[1], "text", None, 7])
def test_an_input_that_is_no_object_goes_back_as_an_empty_one(value: Any) -> None:
    rows = [user("a"), model(call("t1", input=value)), result("t1", ok=False, error="Expected object")]
    assert said(ask(*rows))[1][1][0]["input"] == {}


def test_a_malformed_call_goes_back_with_an_empty_input() -> None:
    rows = [user("a"), model(call("t1", input={"x": 1}, malformed=True)), result("t1", ok=False, error="cut off")]
    assert said(ask(*rows))[1][1][0]["input"] == {}


def test_r9_thinking_goes_back_to_its_own_model_to_the_byte() -> None:
    redacted = ReasoningBlock(
        provider="anthropic", model=MODEL, payload={"type": "redacted_thinking", "data": "EmwKAhg+/=="}
    )
    rows = [user("a"), model(thought("Look.", "EqQB+/=="), redacted, "Reading.", call("t1")), result("t1")]
    blocks = said(ask(*rows))[1][1]
    assert blocks[:2] == [{"type": "thinking", "thinking": "Look.", "signature": "EqQB+/=="}, redacted.payload]


@pytest.mark.parametrize(
    "foreign", [thought("x", of="claude-sonnet-5"), thought("x", provider="openai"), thought("x", signature="")]
)
def test_r9_thinking_of_another_model_or_without_signature_is_dropped_whole(foreign: ReasoningBlock) -> None:
    rows = [user("a"), model(foreign, call("t1")), result("t1")]
    assert [block["type"] for block in said(ask(*rows))[1][1]] == ["tool_use"]


def test_ids_other_providers_gave_are_made_plain_and_unique_with_their_results() -> None:
    rows = [
        user("a"),
        model(call("call:0|fc")),
        result("call:0|fc", 1),
        model(call("call:0|fc")),
        result("call:0|fc", 2),
    ]
    wire = said(ask(*rows))
    assert [wire[at][1][0]["id"] for at in (1, 3)] == ["call_0_fc", "call_0_fc_2"]
    assert [wire[at][1][0]["tool_use_id"] for at in (2, 4)] == ["call_0_fc", "call_0_fc_2"]


def test_a_request_begins_and_ends_with_a_person() -> None:
    assert said(ask(model("Hello")))[0] == ("user", [words("Continue.")])
    assert said(ask(user("a"), model("half an ans")))[-1] == ("user", [words("Continue.")])
    assert said(ask()) == [("user", [words("Continue.")])]


def test_work_that_the_providers_own_tools_paused_on_stands_last() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    paused = ReasoningBlock(provider="anthropic", model=MODEL, payload=found)
    assert body_of(ask(user("a"), model(paused)))["messages"][-1]["role"] == "assistant"


@pytest.mark.parametrize("block", [BlobBlock(blob="k", of="text", size=1), ImageBlock(mime_type="image/png", blob="k")])
def test_what_still_lies_in_the_bucket_is_our_own_mistake(block: Any) -> None:
    with pytest.raises(ValueError, match="must be fetched"):
        body_of(ask(user(block)))


def test_without_tools_and_system_there_is_only_the_conversation() -> None:
    body = accepted(ask(user("a"), system=" ", tools=()))
    assert body.keys() == {"model", "max_tokens", "stream", "messages"}


def test_without_a_system_text_the_last_tool_carries_the_mark() -> None:
    assert [tool.get("cache_control") for tool in accepted(ask(user("a"), system=""))["tools"]] == [None, MARK]


def test_on_the_last_round_the_tools_stay_but_may_not_be_called() -> None:
    body = accepted(ask(user("a"), call_tools=False))
    assert body["tool_choice"] == {"type": "none"}
    assert body["tools"] == accepted(ask(user("a")))["tools"]


# Thinking


ADAPTIVE = {"type": "adaptive", "display": "summarized"}


def budget(tokens: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens}


@pytest.mark.parametrize(
    ("name", "tokens", "setting", "limit"),
    [
        ("claude-3-5-haiku-20241022", 2000, None, 8192),
        ("claude-sonnet-4-5-20250929", 0, None, 8192),
        ("claude-sonnet-4-5-20250929", 2000, budget(2000), 10_192),
        ("claude-3-7-sonnet-20250219", 9000, budget(9000), 17_192),
        ("claude-opus-4-20250514", 100, budget(1024), 9216),
        ("claude-opus-4-20250514", 90_000, budget(32_000 - 8192), 32_000),
        ("claude-opus-4-8", 0, None, 8192),
        ("claude-opus-4-8", 2000, ADAPTIVE, 10_192),
        ("some-other-model", 2000, ADAPTIVE, 10_192),
        ("claude-opus-5", 0, ADAPTIVE, 8192 + 16_384),
    ],
)
def test_each_model_is_told_to_think_in_the_way_it_accepts_and_has_room_for_it(
    name: str, tokens: int, setting: Any, limit: int
) -> None:
    body = accepted(ask(user("a"), model=name, thinking_tokens=tokens))
    assert (body.get("thinking"), body["max_tokens"]) == (setting, limit)


@pytest.mark.parametrize("tokens", [0, 2000, 90_000])
@pytest.mark.parametrize("version", ["3-5-sonnet-20241022", "3-7-sonnet-20250219", "opus-4-1", "haiku-4-5", "opus-5"])
def test_no_model_is_asked_for_more_than_it_may_answer(version: str, tokens: int) -> None:
    accepted(ask(user("a"), model=f"claude-{version}", thinking_tokens=tokens))


def test_an_answer_that_may_be_longer_than_usual_may_be_so() -> None:
    assert accepted(ask(user("a"), model="claude-opus-5", max_tokens=100_000))["max_tokens"] == 100_000


def test_the_newest_models_forget_thinking_on_a_changed_history_instead_of_refusing() -> None:
    thinking = accepted(ask(user("a"), model="claude-opus-5-5"))["thinking"]
    assert thinking["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


def test_a_budget_is_left_out_where_it_does_not_fit() -> None:
    old = "claude-sonnet-4-5"
    assert "thinking" not in accepted(ask(user("a"), model=old, thinking_tokens=2000, max_tokens=64_000))
    lost = [user("a"), model("x", call("t1")), result("t1")]
    assert "thinking" not in accepted(ask(*lost, model=old, thinking_tokens=2000))


# Caching


def turns(count: int, rounds: int) -> list[tuple[Ask, str]]:
    """The asks of several turns, each with its own volatile text and a context that changes."""
    rows: list[Message] = []
    asks = []
    for turn in range(count):
        name = f"turn {turn}"
        rows.append(user(f"Prompt {turn}", turn=name))
        asks.append((ask(*rows, volatile=f"It is {turn} o'clock"), name))
        for round_ in range(rounds):
            ids = [f"t{turn}_{round_}_{number}" for number in range(3)]
            rows.append(model(f"Round {round_}", *(call(one) for one in ids), turn=name))
            rows += [result(one, {"n": one}, turn=name) for one in ids]
            asks.append((ask(*rows, volatile=f"It is {turn} o'clock"), name))
        rows.append(model("Done", turn=name))
    return asks


def prefix(body: dict[str, Any], upto: int | None = None) -> list[str]:
    """Everything in the order it is cached, block by block, marks aside."""
    blocks = [*body["tools"], *body["system"], *(one for turn in merged(body["messages"]) for one in turn.blocks)]
    return [json.dumps(bare(block)) for block in blocks][:upto]


def marked(body: dict[str, Any]) -> list[int]:
    blocks = [*body["tools"], *body["system"], *(one for turn in merged(body["messages"]) for one in turn.blocks)]
    return [at for at, block in enumerate(blocks) if "cache_control" in block]


def test_there_are_never_more_than_four_marks() -> None:
    assert {len(marked(accepted(one))) for one, _ in turns(4, 4)} <= {2, 3, 4}


def test_within_a_turn_each_request_begins_with_the_last_one_to_the_byte() -> None:
    asks = turns(3, 4)
    for (before, turn), (after, next_turn) in itertools.pairwise(asks):
        if turn == next_turn:
            said_before = prefix(accepted(before))
            assert prefix(accepted(after), len(said_before)) == said_before


def test_each_request_finds_the_cache_of_an_earlier_one_at_one_of_its_own_marks() -> None:
    written: set[tuple[str, ...]] = set()
    for number, (one, _) in enumerate(turns(3, 4)):
        body = accepted(one)
        found = [at for at in marked(body) if tuple(prefix(body, at + 1)) in written]
        assert number == 0 or found
        written |= {tuple(prefix(body, at + 1)) for at in marked(body)}


def test_a_new_turn_finds_everything_up_to_the_last_turns_prompt() -> None:
    asks = turns(3, 2)
    last_prompt_of_first_turn = asks[0][0]
    second_turn = next(one for one, turn in asks if turn == "turn 1")
    cached = prefix(accepted(last_prompt_of_first_turn), marked(accepted(last_prompt_of_first_turn))[-1] + 1)
    assert len(cached) - 1 in marked(accepted(second_turn))
    assert prefix(accepted(second_turn), len(cached)) == cached


def test_volatile_text_stands_behind_the_mark_of_its_prompt_and_nowhere_else() -> None:
    for one, turn in turns(2, 2):
        body = accepted(one)
        told = [text for text in prefix(body) if "o'clock" in text]
        assert len(told) == 1
        at = prefix(body).index(told[0])
        assert at - 1 in marked(body)
        assert f"Prompt {turn[-1]}" in prefix(body)[at - 1]


def test_thinking_of_the_newest_models_stays_valid_through_all_rounds_of_a_turn() -> None:
    name = "claude-opus-5-5"
    rows = [user("Prompt")]
    for round_ in range(4):
        body = accepted(ask(*rows, model=name, volatile="Now"))
        check(
            HEADERS, body | {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}
        )
        signature = sign(body, merged(body["messages"]), "Hm.")
        rows += [model(thought("Hm.", signature, of=name), call(f"t{round_}")), result(f"t{round_}", round_)]


# Any history


def _rows(draw: st.DrawFn) -> list[Message]:
    """Rows as the history compiler hands them over: every call has its result before the model speaks again."""
    rows: list[Message] = []
    counter = iter(range(1000))
    texts = st.text(max_size=8)
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            rows.append(user(*draw(st.lists(texts, max_size=2))))
            continue
        ids = [draw(st.sampled_from(["call 0", f"t{next(counter)}"])) for _ in range(draw(st.integers(0, 3)))]
        ids = list(dict.fromkeys(ids))
        thinking = [thought("x", of=draw(st.sampled_from([MODEL, "other"])))] * draw(st.integers(0, 1))
        fresh = not rows or rows[-1].role != "assistant"
        rows.append(
            model(*(thinking if fresh else []), *draw(st.lists(texts, max_size=2)), *(call(one) for one in ids))
        )
        rows += [result(one, draw(texts), ok=draw(st.booleans()), error=draw(texts)) for one in ids]
    return rows


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    return _rows(draw)


@given(
    histories(), st.text(max_size=5), st.booleans(), st.sampled_from([MODEL, "claude-sonnet-4-5", "claude-opus-5-5"])
)
def test_any_healed_history_is_accepted(rows: list[Message], volatile: str, tools: bool, name: str) -> None:
    asked = ask(*rows, volatile=volatile, tools=TOOLS if tools else (), model=name, thinking_tokens=1500)
    raw = json.dumps(body_of(asked), ensure_ascii=False).encode("utf-8", "replace")
    check(HEADERS, json.loads(raw))


def test_the_strict_check_itself_refuses_what_it_should() -> None:
    """The bodies above prove something only if this one can fail."""
    body = accepted(ask(user("a"), model(call("t1")), result("t1")))
    body["messages"][1]["content"].append({"type": "tool_use", "id": "t2", "name": "x", "input": {}})
    with pytest.raises(Refused, match="without `tool_result` blocks immediately after: t2"):
        check(HEADERS, body)
