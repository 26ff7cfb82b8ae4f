"""Any rows, wherever they are cut, compile into a history that the strict server of each provider accepts."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermata.conversations.block_predicates import block_images
from fermata.conversations.history.compiler import compile_history
from fermata.conversations.history.model_profile import ModelProfile
from fermata.domain.blocks import Block, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.image_header import read_image_header
from fermata.domain.messages import Message
from fermata.drivers.adjustments import HISTORY_REPAIRS
from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from fermata.drivers.transport.http_connection import HttpConnection
from tests.images import make_jpeg_header, make_png_header, to_base64
from tests.strict.server import StrictServer
from tests.unit.drivers.conftest import connection
from tests.unit.drivers.conversation_builders import model_request
from tests.unit.drivers.history_strategies import MODELS, reasoning_blocks, turn_with_rounds
from tests.unit.drivers.test_switching_providers import OTHER_MODELS, answered, servers

pytestmark = pytest.mark.exhaustive

__all__ = ["connection", "servers"]

PROVIDERS = tuple(PROVIDER_MODULES)
HEADERS = {"authorization": "Bearer sk-key", "x-api-key": "sk-key", "anthropic-version": "2023-06-01"}

CALL_IDS = st.sampled_from(["a", "b", "call 0", "functions.read:0", "c" * 90, "", "é"])
NAMES = st.sampled_from(["insertHtml", "read_document", "a tool, named oddly", ""])
TEXTS = st.sampled_from(["", " ", "\n", "Hello", "half \ud83d", "🦀", "x" * 3_000])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
IMAGES = st.builds(
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
    IMAGES,
    st.builds(
        ToolCallBlock, tool_call_id=CALL_IDS, tool_name=NAMES, input=JSON, malformed=st.sampled_from([None, True])
    ),
    st.builds(
        ToolResultBlock,
        ok=st.booleans(),
        error=st.none() | TEXTS,
        data=JSON,
        images=st.none() | st.lists(IMAGES, max_size=2).map(tuple),
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
    """Number positions and rounds as a conversation does."""
    counts: dict[str, int] = {}
    numbered = []
    for position, message in enumerate(messages):
        counts[message.turn] = counts.get(message.turn, 0) + (message.role == "assistant")
        numbered.append(message.model_copy(update={"position": position, "round": counts[message.turn]}))
    return numbered


@st.composite
def damaged_histories(draw: st.DrawFn) -> list[Message]:
    """Draw valid turns of any providers, cut anywhere, with rows missing, repeated and out of order."""
    providers = draw(st.lists(st.sampled_from(PROVIDERS), min_size=1, max_size=4))
    messages = number_messages(
        [message for turn, provider in enumerate(providers) for message in turn_with_rounds(provider, f"turn{turn}")]
    )
    begin = draw(st.integers(0, len(messages)))
    end = draw(st.integers(begin, len(messages)))
    lost = draw(st.sets(st.integers(0, 40), max_size=6))
    remaining = [message for index, message in enumerate(messages[begin:end]) if index not in lost]
    return draw(st.permutations(remaining + remaining[: draw(st.integers(0, 3))]))


ROWS = (
    damaged_histories()
    | st.lists(MESSAGES, max_size=12)
    | st.builds(lambda a, b: [*a, *b], damaged_histories(), st.lists(MESSAGES, max_size=4))
)
TOKEN_LIMITS = st.sampled_from([0, 60, 300, 2_000, 100_000])


def make_profile(provider: str, model: str, max_tokens: int, reads_images: bool) -> ModelProfile:
    return ModelProfile(
        provider, model, max_tokens, reads_images=reads_images, is_heavy_tool=lambda name: name == "read_document"
    )


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=ROWS, max_tokens=TOKEN_LIMITS, reads_images=st.booleans(), is_other_model=st.booleans())
def test_a_history_of_any_rows_is_accepted_by_every_provider(
    provider: str,
    rows: list[Message],
    max_tokens: int,
    reads_images: bool,
    is_other_model: bool,
    servers: dict[str, StrictServer],
    connection: HttpConnection,
) -> None:
    model = OTHER_MODELS[provider] if is_other_model else MODELS[provider]
    history = compile_history(rows, make_profile(provider, model, max_tokens, reads_images))
    answered(provider, model, history, servers, connection)


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=ROWS, max_tokens=TOKEN_LIMITS, data=st.data())
def test_a_history_is_accepted_in_each_form_that_servers_ask_for(
    provider: str, rows: list[Message], max_tokens: int, data: st.DataObject, servers: dict[str, StrictServer]
) -> None:
    """Servers ask for plain text, for one call in a message, for no system message and so on, and for several of it."""
    driver = get_provider(provider)
    forms = [adjustment.name for adjustment in (*driver.adjustments, *HISTORY_REPAIRS) if adjustment.drops is None]
    applied = data.draw(st.frozensets(st.sampled_from(forms), max_size=3))
    history = compile_history(rows, make_profile(provider, MODELS[provider], max_tokens, True))
    request = model_request(*history, model=MODELS[provider], volatile="Page: Home", thinking_tokens=2000)
    server = servers[provider]
    server.record_stream(b"")
    server.check_request(HEADERS, json.loads(driver._encode_body(request, applied)))


@settings(max_examples=150)
@given(rows=ROWS, max_tokens=TOKEN_LIMITS, reads_images=st.booleans(), is_complete=st.booleans())
def test_any_rows_become_a_valid_conversation_that_is_always_the_same(
    rows: list[Message], max_tokens: int, reads_images: bool, is_complete: bool
) -> None:
    profile = make_profile("anthropic", MODELS["anthropic"], max_tokens, reads_images)
    history = compile_history(rows, profile, is_complete=is_complete)
    check_pairs(history)
    check_contents(history, reads_images)
    assert compile_history(rows, profile, is_complete=is_complete) == history, "the same rows compiled differently"


def check_pairs(history: Sequence[Message]) -> None:
    """Check that each call has one result, right behind its reply and in its order, and that ids are unique."""
    seen_ids: set[str] = set()
    expected: list[str] = []
    for message in history:
        if message.role == "tool":
            assert expected, "a result without a call"
            assert message.tool_call_id == expected.pop(0)
            continue
        assert not expected, "a call without its result"
        expected = [block.tool_call_id for block in message.content if block.kind == "toolCall"]
        assert not seen_ids.intersection(expected)
        assert len(set(expected)) == len(expected)
        seen_ids.update(expected)
    assert not expected, "a call without its result"


def check_contents(history: Sequence[Message], reads_images: bool) -> None:
    images = [image for message in history for block in message.content for image in block_images(block)]
    assert len(images) <= (20 if reads_images else 0)
    for image in images:
        header = read_image_header(base64.b64decode(image.data or ""))
        assert header is not None
        assert header.mime_type == image.mime_type
        assert header.longest_edge <= 8_000
    for message in history:
        assert message.content, "an empty message"
        message.model_dump_json().encode()
        for block in message.content:
            assert block.kind != "reasoning" or (block.provider, block.model) == ("anthropic", MODELS["anthropic"])
            assert block.kind != "text" or block.text.strip()
