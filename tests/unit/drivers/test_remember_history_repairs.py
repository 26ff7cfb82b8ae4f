"""A history that a provider refuses is sent again in another form, once, and not again as it was (decision 0198)."""

import json
from itertools import pairwise
from typing import Any

import pytest

from fermata.domain.blocks import ReasoningBlock
from fermata.domain.errors import ProviderError
from fermata.domain.message_prefix_cache import MessagePrefixCache
from fermata.domain.messages import Message
from fermata.domain.model_io import FinishReason, ModelResponse, TextDelta, TokenUsage
from fermata.drivers.protocols.remember_history_repairs import RepairMark, mark_response, take_mark
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict import anthropic
from tests.strict.anthropic import StrictAnthropic
from tests.strict.server import StrictServer
from tests.unit.drivers.conversation_builders import (
    image_block,
    message_from_response,
    model_message,
    model_request,
    thinking_block,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.strict_providers import (
    STRICT_PROVIDERS,
    StartServer,
    StrictProvider,
    build_request,
    collect_parts,
)

ANTHROPIC = StrictProvider("anthropic", StrictAnthropic, "/v1/messages", anthropic.text_response, b"", b"")
PROVIDERS = (ANTHROPIC, *STRICT_PROVIDERS)
each_provider = pytest.mark.parametrize("peer", PROVIDERS, ids=[peer.provider for peer in PROVIDERS])
EARLIER_TURN = (
    user_message("Make it red", turn="t1"),
    model_message("I look.", tool_call("call_long_identifier_1", input={"nodeId": "n1"}), turn="t1"),
    tool_result("call_long_identifier_1", {"colour": "blue"}, turn="t1"),
    model_message("It is red.", turn="t1"),
)
NEXT_PROMPT = user_message("And now?", turn="t2")
CURRENT_ROUND = (model_message(tool_call("call_long_identifier_2"), turn="t2"), tool_result("call_long_identifier_2"))

EMPTY_RESPONSE = ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage())


def ask(peer: StrictProvider, server: StrictServer, connection: HttpConnection, *rows: Any) -> Message:
    """Return the answer as a message of the conversation."""
    server.script_chunks(peer.text_response("Fine."))
    parts = collect_parts(peer, build_request(peer, *rows), connection, server)
    assert TextDelta(text="Fine.") in parts
    assert isinstance(parts[-1], ModelResponse)
    return message_from_response(parts[-1], turn="t2")


@each_provider
def test_ids_of_nine_characters_are_learnt_by_every_driver(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    words = "Tool call id was call_long_identifier_1 but must be a-z, A-Z, 0-9, with a length of 9."
    server.rules.append(lambda body: words if "call_long_identifier" in json.dumps(body) else None)
    for _ in range(2):
        ask(peer, server, connection, *EARLIER_TURN, NEXT_PROMPT)
    assert server.refusals == [words]


@each_provider
def test_a_refused_history_is_repaired_and_the_refused_form_is_not_sent_again(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    words = "messages.1: something about `tool_use` that nobody has documented"
    server.rules.append(lambda body: words if "call_long_identifier_1" in json.dumps(body) else None)
    answer = ask(peer, server, connection, *EARLIER_TURN, NEXT_PROMPT)
    rows = (*EARLIER_TURN, NEXT_PROMPT, answer, user_message("More", turn="t3"), *CURRENT_ROUND)
    answer = ask(peer, server, connection, *rows)
    ask(peer, server, connection, *rows, answer)
    assert server.refusals == [words]
    assert "fermata" not in json.dumps(server.bodies)
    sent = json.dumps(server.bodies[-1])
    assert "[Called read_document with" in sent
    assert "blue" in sent
    assert "call_long_identifier_2" in sent, "the current turn keeps its calls"


@each_provider
def test_a_refused_current_turn_is_flattened_as_well(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    words = "input[4]: this tool result is not acceptable"
    server.rules.append(lambda body: words if "call_long_identifier" in json.dumps(body) else None)
    rows = (*EARLIER_TURN, NEXT_PROMPT, *CURRENT_ROUND)
    answer = ask(peer, server, connection, *rows)
    ask(peer, server, connection, *rows, answer)
    assert server.refusals == [words, words]
    assert len(server.bodies) == 4


@each_provider
def test_a_refusal_that_no_repair_helps_is_asked_at_most_twice_more_and_nothing_is_learnt(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    server.rules.append(lambda _body: "messages.0: no")
    for _ in range(2):
        with pytest.raises(ProviderError, match=r"messages\.0: no") as caught:
            collect_parts(peer, build_request(peer, *EARLIER_TURN, NEXT_PROMPT, *CURRENT_ROUND), connection, server)
        assert "messages.0: no. The conversation is saved" in caught.value.message
        assert "Begin a new conversation" in caught.value.message
    assert len(server.bodies) == 6
    assert json.dumps(server.bodies[3]) == json.dumps(server.bodies[0])


@each_provider
def test_the_mark_of_a_repair_changes_nothing_for_another_model(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)

    def refuse(body: dict[str, Any]) -> str | None:
        is_refused = body["model"] == peer.model and "call_long_identifier_1" in json.dumps(body)
        return "messages.1: no" if is_refused else None

    server.rules.append(refuse)
    answer = ask(peer, server, connection, *EARLIER_TURN, NEXT_PROMPT)
    server.script_chunks(peer.text_response("Fine."))
    rows = (*EARLIER_TURN, NEXT_PROMPT, answer, user_message("More", turn="t3"))
    collect_parts(peer, build_request(peer, *rows, model=f"{peer.model}-x"), connection, server)
    assert "call_long_identifier_1" in json.dumps(server.bodies[-1])
    assert "fermata.repair" not in json.dumps(server.bodies)


@each_provider
def test_another_conversation_is_sent_as_it_is(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    server.rules.append(lambda body: "messages.1: no" if "call_long_identifier_1" in json.dumps(body) else None)
    ask(peer, server, connection, *EARLIER_TURN, NEXT_PROMPT)
    server.script_chunks(peer.text_response("Fine."))
    rows = (user_message("Hi"), *CURRENT_ROUND)
    collect_parts(peer, build_request(peer, *rows), connection, server)
    assert "call_long_identifier_2" in json.dumps(server.bodies[-1])


def test_a_chat_template_that_refuses_with_500_is_understood(running: StartServer, connection: HttpConnection) -> None:
    """Mistral's templates want words of the model between results and the next prompt."""
    peer = next(peer for peer in STRICT_PROVIDERS if peer.provider == "openai-compatible")
    server = running(peer)
    words = "Jinja Exception: After the optional system message, conversation roles must alternate user and assistant"

    def refuse(body: dict[str, Any]) -> str | None:
        roles = [message["role"] for message in body["messages"]]
        return words if ("tool", "user") in pairwise(roles) else None

    server.rules.append(refuse)
    server.refusal_status = 500
    for _ in range(2):
        ask(peer, server, connection, *EARLIER_TURN[:3], NEXT_PROMPT)
    assert server.refusals == [words]
    assert "tool_calls" in json.dumps(server.bodies[-1])


def test_an_unreadable_call_that_groq_refuses_may_be_asked_again(
    running: StartServer, connection: HttpConnection
) -> None:
    peer = next(peer for peer in STRICT_PROVIDERS if peer.provider == "openai-compatible")
    server = running(peer)
    body = {"error": {"message": "Failed to call a function.", "type": "x", "code": "tool_use_failed"}}
    server.script_json(400, body)
    with pytest.raises(ProviderError) as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_empty", True)


@pytest.mark.parametrize("behind", [(), (" ",), ("\n\n", "")])
@pytest.mark.parametrize("before", [(), ("Let me see.",)])
def test_a_thread_that_only_thinking_ends_in_goes_on(
    before: tuple[str, ...], behind: tuple[str, ...], running: StartServer, connection: HttpConnection
) -> None:
    server = running(ANTHROPIC)
    assert isinstance(server, StrictAnthropic)
    thought = thinking_block("Hm.")
    server._sent_thinking.append(thought.payload)
    rows = (user_message("Hi"), model_message(*before, thought, *behind), user_message("Again", turn="t2"))
    for messages in (rows, rows[:2]):
        server.script_chunks(ANTHROPIC.text_response("Fine."))
        request = build_request(ANTHROPIC, *messages, thinking_tokens=2000)
        assert collect_parts(ANTHROPIC, request, connection, server)
    assert server.refusals == []


def number_rows(*rows: Message) -> list[Message]:
    return [row.model_copy(update={"position": position}) for position, row in enumerate(rows)]


def test_thinking_of_another_account_is_left_out_and_that_of_the_present_one_is_sent(
    running: StartServer, connection: HttpConnection
) -> None:
    """After a change of the key, signatures of before are invalid. Those of later answers are not."""
    server = running(ANTHROPIC)
    assert isinstance(server, StrictAnthropic)
    old, new = thinking_block("Old.", "b2xk"), thinking_block("New.", "bmV3")
    server._sent_thinking += [old.payload, new.payload]
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    server.rules.append(lambda body: words if "b2xk" in json.dumps(body) else None)
    rows = number_rows(
        user_message("Hi", turn="t1"), model_message(old, "Hello.", turn="t1"), user_message("More", turn="t2")
    )
    answer = ask(ANTHROPIC, server, connection, *rows)
    calling = model_message(*answer.content[:1], new, tool_call("call_2"), turn="t2")
    later = number_rows(*rows, calling, tool_result("call_2", {"n": 1}, turn="t2"))
    answer = ask(ANTHROPIC, server, connection, *later)
    ask(ANTHROPIC, server, connection, *number_rows(*later, answer, user_message("On", turn="t3")))
    assert server.refusals == [words]
    assert ["b2xk" in json.dumps(body) for body in server.bodies[1:]] == [False] * 3
    assert ["bmV3" in json.dumps(body) for body in server.bodies[1:]] == [False, True, True]


def test_a_server_that_refuses_all_thinking_is_sent_none_from_the_second_refusal_on(
    running: StartServer, connection: HttpConnection
) -> None:
    server = running(ANTHROPIC)
    assert isinstance(server, StrictAnthropic)
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    server.rules.append(lambda body: words if '"thinking", "thinking"' in json.dumps(body) else None)
    rows = [user_message("Hi", turn="t0")]
    for number in range(4):
        thought = thinking_block(f"Thought {number}", f"c2ln{number}")
        server._sent_thinking.append(thought.payload)
        rows = number_rows(*rows, model_message(thought, "Hm.", turn=f"t{number}"), user_message("So?"))
        answer = ask(ANTHROPIC, server, connection, *rows)
        rows = number_rows(*rows, answer, user_message("Go on"))
    assert server.refusals == [words, words]


@each_provider
def test_calls_after_a_repair_are_sent_as_calls(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    words = "messages.1: this tool result is not acceptable"
    server.rules.append(lambda body: words if "call_long_identifier_1" in json.dumps(body) else None)
    answer = ask(peer, server, connection, *number_rows(*EARLIER_TURN[:3]))
    rows = number_rows(*EARLIER_TURN[:3], answer, NEXT_PROMPT, *CURRENT_ROUND)
    ask(peer, server, connection, *rows)
    assert len(server.refusals) <= 2
    sent = json.dumps(server.bodies[-1])
    assert "[Called read_document with" in sent
    assert "call_long_identifier_2" in sent


@each_provider
def test_a_repaired_history_keeps_its_beginning_to_the_byte(
    peer: StrictProvider, running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    words = "messages.1: no tool result"
    server.rules.append(lambda body: words if "call_long_identifier_1" in json.dumps(body) else None)
    answer = ask(peer, server, connection, *number_rows(*EARLIER_TURN, NEXT_PROMPT))
    rows = number_rows(*EARLIER_TURN, NEXT_PROMPT, answer, user_message("More", turn="t3"))
    answer = ask(peer, server, connection, *rows)
    ask(peer, server, connection, *number_rows(*rows, answer, user_message("Still more", turn="t4")))
    sent = [body.get("messages") or body.get("input") or body["contents"] for body in server.bodies[1:]]
    assert len(server.refusals) == 1
    without_breakpoints = [
        json.dumps(items[:3]).replace(', "cache_control": {"type": "ephemeral"}', "") for items in sent
    ]
    assert len(set(without_breakpoints)) == 1


def test_a_flattened_result_keeps_its_images(running: StartServer, connection: HttpConnection) -> None:
    """The model has asked for the screenshot, and would ask for it again."""
    server = running(ANTHROPIC)
    server.rules.append(lambda body: "messages.2: no tool results" if "tool_result" in json.dumps(body) else None)
    screenshot = tool_result("call_2", {"n": 1}, turn="t2", images=(image_block(),))
    ask(ANTHROPIC, server, connection, *number_rows(NEXT_PROMPT, model_message(tool_call("call_2")), screenshot))
    *_, prompt = server.bodies[-1]["messages"]
    assert [block["type"] for block in prompt["content"]] == ["text", "image", "text"]
    assert "omitted" not in json.dumps(prompt)


def test_a_mark_without_a_position_is_about_all_messages(running: StartServer, connection: HttpConnection) -> None:
    """Marks that were stored before they had a position."""
    server = running(ANTHROPIC)
    payload = {"type": "fermata.repair", "names": ["flatten the history"]}
    mark = ReasoningBlock(provider="anthropic", model=ANTHROPIC.model, payload=payload)
    ask(ANTHROPIC, server, connection, *number_rows(NEXT_PROMPT, model_message(mark, "Hm."), *CURRENT_ROUND))
    assert "tool_use" not in json.dumps(server.bodies[-1]["messages"])


def test_marks_are_looked_for_in_what_is_new_and_forgotten_with_their_message() -> None:
    mark = mark_response(EMPTY_RESPONSE, model_request(), "anthropic", RepairMark(frozenset({"flatten"})))
    marked = model_message(*mark.blocks, "Hm.")
    cache = MessagePrefixCache()

    def read(*rows: Message) -> RepairMark:
        return take_mark(model_request(*rows, message_prefix_cache=cache), "anthropic")[1]

    assert read(NEXT_PROMPT).names == frozenset()
    assert read(NEXT_PROMPT, marked).names == read(NEXT_PROMPT, marked, *CURRENT_ROUND).names == {"flatten"}
    assert read(NEXT_PROMPT, *CURRENT_ROUND).names == frozenset()
