"""Message rows, and the blocks and images that are stored in S3."""

import base64
import json
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.conversations.block_store import MAX_ROW_BYTES, MAX_ROW_ERROR_CHARS, BlockFetcher
from fermata.conversations.message_store import (
    conversation_partition,
    load_messages,
    message_sort_key,
    read_newest_messages,
)
from fermata.domain.blocks import BlobBlock, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from tests.images import make_jpeg_header, make_png_header, to_base64
from tests.unit.conversations.message_builders import (
    ThreadBuilder,
    make_call,
    make_image,
    make_reasoning,
    store_messages,
)

CONVERSATION_KEY = ("bakery", "c1")
LONG = "x" * 40_000


def read_stored_messages(resources: Resources) -> list[Message]:
    """Return the messages in order, as their rows are."""
    return read_newest_messages(resources, *CONVERSATION_KEY, limit=1000)[::-1]


def test_stored_messages_are_loaded_completely(resources: Resources) -> None:
    thread = ThreadBuilder()
    thread.add_prompt(LONG, "short")
    thread.add_reply(make_reasoning(LONG), "I look.", make_call("a", "read", path=LONG), make_call("b"))
    thread.add_result("a", "read", data={"html": LONG})
    thread.add_result("b", ok=False, error=LONG)
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    assert load_messages(resources, *CONVERSATION_KEY) == thread.messages


def test_the_reference_of_a_large_block_has_what_pairing_and_views_need(resources: Resources) -> None:
    thread = ThreadBuilder()
    thread.add_reply(make_reasoning(LONG), make_call("a", "read", path=LONG))
    thread.add_result("a", "read", ok=False, error=LONG)
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    (reasoning, tool_call), (result,) = (message.content for message in read_stored_messages(resources))
    assert isinstance(reasoning, BlobBlock)
    assert (reasoning.replaced_kind, reasoning.provider, reasoning.model) == (
        "reasoning",
        "anthropic",
        "claude-sonnet-4-5",
    )
    assert isinstance(tool_call, BlobBlock)
    assert (tool_call.replaced_kind, tool_call.tool_call_id, tool_call.tool_name) == ("toolCall", "a", "read")
    assert tool_call.size > 40_000
    assert isinstance(result, BlobBlock)
    assert (result.replaced_kind, result.ok, result.error) == ("toolResult", False, LONG[:MAX_ROW_ERROR_CHARS])


def test_many_blocks_that_are_large_together_are_spilled_until_the_row_fits(resources: Resources) -> None:
    thread = ThreadBuilder()
    thread.add_reply(*(make_call(f"c{number}", text="y" * 20_000) for number in range(60)))
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    item = resources.tables.get_item("conversations", conversation_partition(*CONVERSATION_KEY), message_sort_key(0))
    assert item is not None
    assert len(item["content"]) < MAX_ROW_BYTES + 20_000
    assert load_messages(resources, *CONVERSATION_KEY) == thread.messages


class TestImages:
    def test_they_are_stored_as_bytes(self, resources: Resources) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Look", make_image(70, 80))
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        (message,) = read_stored_messages(resources)
        image = message.content[1]
        assert isinstance(image, ImageBlock)
        raw = make_jpeg_header(70, 80)
        assert (image.width, image.height, image.size, image.data) == (70, 80, len(raw), None)
        assert image.blob is not None
        assert image.blob.startswith("conversations/bakery/c1/")
        assert resources.blobs.get_bytes(image.blob) == raw

    def test_they_are_loaded_as_base64(self, resources: Resources) -> None:
        thread = ThreadBuilder()
        thread.add_reply(make_call("a", "look"))
        thread.add_result("a", "look", data=1, images=(make_image(70, 80), make_image()))
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        (result,) = load_messages(resources, *CONVERSATION_KEY)[1].content
        assert isinstance(result, ToolResultBlock)
        assert [image.data for image in result.images or ()] == [
            to_base64(make_jpeg_header(70, 80)),
            to_base64(make_jpeg_header()),
        ]

    def test_those_of_a_large_result_are_stored_beside_it(self, resources: Resources) -> None:
        thread = ThreadBuilder()
        thread.add_reply(make_call("a", "look"))
        thread.add_result("a", "look", data=LONG, images=(make_image(70, 80),))
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        (reference,) = read_stored_messages(resources)[1].content
        assert isinstance(reference, BlobBlock)
        assert [image.width for image in reference.images or ()] == [70]
        assert "images" not in resources.blobs.get_json(reference.blob)
        (result,) = load_messages(resources, *CONVERSATION_KEY)[1].content
        assert isinstance(result, ToolResultBlock)
        assert (result.data, [image.data for image in result.images or ()]) == (
            LONG,
            [to_base64(make_jpeg_header(70, 80))],
        )

    @pytest.mark.parametrize("data", ["%%%", "QUJD", base64.b64encode(b"<svg/>").decode()])
    def test_data_that_is_no_image_is_not_stored(self, resources: Resources, data: str) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Look", ImageBlock(mime_type="image/png", data=data))
        thread.add_reply(make_call("a", "look"))
        thread.add_result("a", "look", data=1, images=(ImageBlock(mime_type="image/png", data=data),))
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        messages = read_stored_messages(resources)
        assert messages[0].content == (TextBlock(text="Look"),)
        assert messages[2].content == (ToolResultBlock(ok=True, data=1),)

    def test_a_wrong_mime_type_is_corrected(self, resources: Resources) -> None:
        thread = ThreadBuilder()
        thread.add_prompt(ImageBlock(mime_type="image/jpeg", data=to_base64(make_png_header())))
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        (image,) = read_stored_messages(resources)[0].content
        assert isinstance(image, ImageBlock)
        assert image.mime_type == "image/png"


class TestReading:
    def test_the_newest_come_first_a_page_at_a_time(self, resources: Resources) -> None:
        thread = ThreadBuilder()
        for number in range(25):
            thread.add_prompt(f"Prompt {number}")
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        assert [message.position for message in read_newest_messages(resources, *CONVERSATION_KEY, limit=10)] == list(
            range(24, 14, -1)
        )
        older = read_newest_messages(resources, *CONVERSATION_KEY, before=3, limit=10)
        assert [message.position for message in older] == [2, 1, 0]
        assert read_newest_messages(resources, *CONVERSATION_KEY, before=0, limit=10) == []

    def test_only_what_is_needed_is_fetched_and_only_once(
        self, resources: Resources, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        thread = ThreadBuilder()
        thread.add_prompt(LONG)
        thread.add_reply(make_call("a", "read", path=LONG))
        thread.add_result("a", "read", data=LONG)
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        fetched: list[str] = []
        get_bytes = resources.blobs.get_bytes
        monkeypatch.setattr(resources.blobs, "get_bytes", lambda key: fetched.append(key) or get_bytes(key))
        stored = read_stored_messages(resources)
        assert fetched == []
        shown = BlockFetcher(resources.blobs).fetch_shown_blocks(stored)
        assert (len(fetched), shown[2]) == (2, stored[2])
        fetcher = BlockFetcher(resources.blobs)
        assert fetcher.fetch_all_blocks(stored) == thread.messages
        assert fetcher.fetch_all_blocks(stored) == thread.messages
        assert len(fetched) == 5

    @pytest.mark.parametrize(
        ("content", "readable"),
        [
            ("not-an-array", ()),
            (
                [{"kind": "text"}, {"kind": "text", "text": "Hello"}, {"kind": "hologram"}, 7],
                (TextBlock(text="Hello"),),
            ),
            (None, ()),
        ],
    )
    def test_a_malformed_row_does_not_keep_a_conversation_from_opening(
        self, resources: Resources, content: Any, readable: tuple[TextBlock, ...]
    ) -> None:
        row = {
            "pk": conversation_partition(*CONVERSATION_KEY),
            "sk": message_sort_key(0),
            "role": "user",
            "turn": "t",
            "round": 0,
        }
        row |= {"createdAt": "", "content": json.dumps(content)}
        resources.tables.write_items(Put("conversations", row))
        (message,) = load_messages(resources, *CONVERSATION_KEY)
        assert message.content == readable

    def test_lone_surrogates_are_replaced_when_a_large_block_is_fetched(self, resources: Resources) -> None:
        thread = ThreadBuilder()
        thread.add_reply(make_call("a", "read", path=LONG + "\ud83d"), make_reasoning(LONG + "\ud83d"))
        store_messages(resources, *CONVERSATION_KEY, thread.messages)
        assert load_messages(resources, *CONVERSATION_KEY)[0].content == (
            ToolCallBlock(tool_call_id="a", tool_name="read", input={"path": LONG + "\ufffd"}),
        )
