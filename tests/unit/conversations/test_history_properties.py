"""Law 8: any history compiles. Whatever rows are stored, wherever they are cut, each provider's rules accept them."""

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermata.conversations.history.compiler import compile_history
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.message_blocks import block_images
from fermata.domain.blocks import Block, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.image_header import read_image_header
from fermata.domain.messages import Message
from fermata.drivers.registry import PROVIDER_NAMES
from fermata.drivers.transport.connection import ProviderConnection
from tests.images import make_jpeg_header, make_png_header, to_base64
from tests.strict.server import StrictServer
from tests.unit.drivers.conftest import line
from tests.unit.drivers.history_strategies import MODELS, reasoning_blocks, turn_with_rounds
from tests.unit.drivers.test_switching_providers import OTHER_MODELS, answered, servers

__all__ = ["line", "servers"]

CALL_IDS = st.sampled_from(["a", "b", "call 0", "functions.read:0", "c" * 90, "", "é"])
NAMES = st.sampled_from(["insertHtml", "read_document", "a tool, named oddly", ""])
TEXTS = st.sampled_from(["", " ", "\n", "Hello", "half \ud83d", "🦀", "x" * 3_000])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
PICTURES = st.builds(
    ImageBlock,
    mime_type=st.sampled_from(["image/jpeg", "image/png", "image/svg+xml"]),
    data=st.sampled_from(
        [
            to_base64(make_jpeg_header()),
            to_base64(make_png_header(9_000, 10)),
            to_base64(make_png_header(2_001, 10)),
            "%%%",
            "QUJD",
            None,
        ]
    ),
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, text=TEXTS),
    PICTURES,
    st.builds(
        ToolCallBlock, tool_call_id=CALL_IDS, tool_name=NAMES, input=JSON, malformed=st.sampled_from([None, True])
    ),
    st.builds(
        ToolResultBlock,
        ok=st.booleans(),
        error=st.none() | TEXTS,
        data=JSON,
        images=st.none() | st.lists(PICTURES, max_size=2).map(tuple),
    ),
    st.sampled_from(
        [block for provider in MODELS for number in range(3) for block in reasoning_blocks(provider, number)]
    ),
)
MESSAGES = st.builds(
    Message,
    position=st.integers(0, 40),
    role=st.sampled_from(["user", "assistant", "tool"]),
    content=st.lists(BLOCKS, max_size=4).map(tuple),
    turn=st.sampled_from(["t1", "t2", "t3"]),
    round=st.integers(0, 3),
    tool_call_id=st.none() | CALL_IDS,
    tool_name=st.none() | NAMES,
)


def number_messages(messages: Sequence[Message]) -> list[Message]:
    """As a conversation stores them: each behind the one before, the rounds of a turn counted."""
    counts: dict[str, int] = {}
    placed = []
    for position, message in enumerate(messages):
        counts[message.turn] = counts.get(message.turn, 0) + (message.role == "assistant")
        placed.append(message.model_copy(update={"position": position, "round": counts[message.turn]}))
    return placed


@st.composite
def damaged_histories(draw: st.DrawFn) -> list[Message]:
    """Good turns of any providers, cut anywhere, with rows missing, doubled and in disorder."""
    makers = draw(st.lists(st.sampled_from(PROVIDER_NAMES), min_size=1, max_size=4))
    whole = number_messages(
        [row for turn, maker in enumerate(makers) for row in turn_with_rounds(maker, f"turn{turn}")]
    )
    begin = draw(st.integers(0, len(whole)))
    kept = whole[begin : draw(st.integers(begin, len(whole)))]
    lost = draw(st.sets(st.integers(0, 40), max_size=6))
    left = [row for index, row in enumerate(kept) if index not in lost]
    return draw(st.permutations(left + left[: draw(st.integers(0, 3))]))


ROWS = (
    damaged_histories()
    | st.lists(MESSAGES, max_size=12)
    | st.builds(lambda a, b: [*a, *b], damaged_histories(), st.lists(MESSAGES, max_size=4))
)
BUDGETS = st.sampled_from([0, 60, 300, 2_000, 100_000])


def make_profile(provider: str, model: str, tokens: int, sees: bool) -> ModelProfile:
    return ModelProfile(provider, model, tokens, reads_images=sees, is_heavy_tool=lambda name: name == "read_document")


@pytest.mark.parametrize("provider", PROVIDER_NAMES)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=ROWS, tokens=BUDGETS, sees=st.booleans(), other=st.booleans())
def test_any_rows_however_cut_are_accepted_by_every_provider(
    provider: str,
    rows: list[Message],
    tokens: int,
    sees: bool,
    other: bool,
    servers: dict[str, StrictServer],
    line: ProviderConnection,
) -> None:
    model = OTHER_MODELS[provider] if other else MODELS[provider]
    history = compile_history(rows, make_profile(provider, model, tokens, sees))
    answered(provider, model, history, servers, line)


@settings(max_examples=150)
@given(rows=ROWS, tokens=BUDGETS, sees=st.booleans(), is_whole=st.booleans())
def test_whatever_comes_out_is_a_conversation(rows: list[Message], tokens: int, sees: bool, is_whole: bool) -> None:
    history = compile_history(rows, make_profile("anthropic", MODELS["anthropic"], tokens, sees), is_complete=is_whole)
    check_pairs(history)
    check_contents(history, sees)
    again = compile_history(rows, make_profile("anthropic", MODELS["anthropic"], tokens, sees), is_complete=is_whole)
    assert again == history, "the same rows came out differently"


def check_pairs(history: Sequence[Message]) -> None:
    """Every call has one result, right behind its reply and in its order; ids are plain and unique."""
    seen: set[str] = set()
    expected: list[str] = []
    for message in history:
        if message.role == "tool":
            assert expected, "a result that answers nothing"
            assert message.tool_call_id == expected.pop(0)
            continue
        assert not expected, "a call without its result"
        expected = [block.tool_call_id for block in message.content if block.kind == "toolCall"]
        assert not seen.intersection(expected)
        assert len(set(expected)) == len(expected)
        seen.update(expected)
    assert not expected, "a call without its result"


def check_contents(history: Sequence[Message], sees: bool) -> None:
    pictures = [image for message in history for block in message.content for image in block_images(block)]
    assert len(pictures) <= (20 if sees else 0)
    for image in pictures:
        found = read_image_header(base64.b64decode(image.data or ""))
        assert found is not None
        assert found.mime_type == image.mime_type
        assert found.longest_edge <= 8_000
    for message in history:
        assert message.content, "an empty message"
        message.model_dump_json().encode()
        for block in message.content:
            assert block.kind != "reasoning" or (block.provider, block.model) == ("anthropic", MODELS["anthropic"])
            assert block.kind != "text" or block.text.strip()
