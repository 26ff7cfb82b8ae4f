"""Messages as rows, and what lies in the bucket."""

import base64
import json
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.conversations import rows
from fermata.words.blocks import BlobBlock, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.messages import Message
from tests.pictures import base64_of, jpeg, png
from tests.unit.conversations.messages import Thread, call, picture, store, thought

PLACE = ("bakery", "c1")
LONG = "x" * 40_000


def stored(desk: Desk) -> list[Message]:
    """As the rows have it, in order."""
    return rows.newest(desk, *PLACE, limit=1000)[::-1]


def test_what_was_stored_comes_back_whole(desk: Desk) -> None:
    thread = Thread()
    thread.user(LONG, "short")
    thread.model(thought(LONG), "I look.", call("a", "read", path=LONG), call("b"))
    thread.result("a", "read", data={"html": LONG})
    thread.result("b", ok=False, error=LONG)
    store(desk, *PLACE, thread.messages)
    assert rows.load(desk, *PLACE) == thread.messages


def test_a_large_block_is_stood_for_by_what_pairing_and_showing_need(desk: Desk) -> None:
    thread = Thread()
    thread.model(thought(LONG), call("a", "read", path=LONG))
    thread.result("a", "read", ok=False, error=LONG)
    store(desk, *PLACE, thread.messages)
    (reasoning, asked), (result,) = (message.content for message in stored(desk))
    assert isinstance(reasoning, BlobBlock)
    assert (reasoning.of, reasoning.provider, reasoning.model) == ("reasoning", "anthropic", "claude-sonnet-4-5")
    assert isinstance(asked, BlobBlock)
    assert (asked.of, asked.tool_call_id, asked.tool_name) == ("toolCall", "a", "read")
    assert asked.size > 40_000
    assert isinstance(result, BlobBlock)
    assert (result.of, result.ok, result.error) == ("toolResult", False, LONG[: rows.SHOWN_ERROR])


def test_many_blocks_that_are_large_together_leave_a_row_that_fits(desk: Desk) -> None:
    thread = Thread()
    thread.model(*(call(f"c{number}", text="y" * 20_000) for number in range(60)))
    store(desk, *PLACE, thread.messages)
    item = desk.tables.get("conversations", rows.partition(*PLACE), rows.key(0))
    assert item is not None
    assert len(item["content"]) < rows.MAX_ROW + 20_000
    assert rows.load(desk, *PLACE) == thread.messages


class TestPictures:
    def test_they_lie_in_the_bucket_as_the_bytes_they_are(self, desk: Desk) -> None:
        thread = Thread()
        thread.user("Look", picture(70, 80))
        store(desk, *PLACE, thread.messages)
        (message,) = stored(desk)
        image = message.content[1]
        assert isinstance(image, ImageBlock)
        raw = jpeg(70, 80)
        assert (image.width, image.height, image.size, image.data) == (70, 80, len(raw), None)
        assert image.blob is not None
        assert image.blob.startswith("conversations/bakery/c1/")
        assert desk.blobs.get_bytes(image.blob) == raw

    def test_they_come_back_as_base64(self, desk: Desk) -> None:
        thread = Thread()
        thread.model(call("a", "look"))
        thread.result("a", "look", data=1, images=(picture(70, 80), picture()))
        store(desk, *PLACE, thread.messages)
        (result,) = rows.load(desk, *PLACE)[1].content
        assert isinstance(result, ToolResultBlock)
        assert [image.data for image in result.images or ()] == [base64_of(jpeg(70, 80)), base64_of(jpeg())]

    def test_those_of_a_large_result_lie_beside_it(self, desk: Desk) -> None:
        thread = Thread()
        thread.model(call("a", "look"))
        thread.result("a", "look", data=LONG, images=(picture(70, 80),))
        store(desk, *PLACE, thread.messages)
        (stand_in,) = stored(desk)[1].content
        assert isinstance(stand_in, BlobBlock)
        assert [image.width for image in stand_in.images or ()] == [70]
        assert "images" not in desk.blobs.get(stand_in.blob)
        (result,) = rows.load(desk, *PLACE)[1].content
        assert isinstance(result, ToolResultBlock)
        assert (result.data, [image.data for image in result.images or ()]) == (LONG, [base64_of(jpeg(70, 80))])

    @pytest.mark.parametrize("data", ["%%%", "QUJD", base64.b64encode(b"<svg/>").decode()])
    def test_what_is_no_picture_is_not_kept(self, desk: Desk, data: str) -> None:
        thread = Thread()
        thread.user("Look", ImageBlock(mime_type="image/png", data=data))
        thread.model(call("a", "look"))
        thread.result("a", "look", data=1, images=(ImageBlock(mime_type="image/png", data=data),))
        store(desk, *PLACE, thread.messages)
        found = stored(desk)
        assert found[0].content == (TextBlock(text="Look"),)
        assert found[2].content == (ToolResultBlock(ok=True, data=1),)

    def test_a_wrong_name_of_their_kind_is_put_right(self, desk: Desk) -> None:
        thread = Thread()
        thread.user(ImageBlock(mime_type="image/jpeg", data=base64_of(png())))
        store(desk, *PLACE, thread.messages)
        (image,) = stored(desk)[0].content
        assert isinstance(image, ImageBlock)
        assert image.mime_type == "image/png"


class TestReading:
    def test_the_newest_come_first_a_page_at_a_time(self, desk: Desk) -> None:
        thread = Thread()
        for number in range(25):
            thread.user(f"Prompt {number}")
        store(desk, *PLACE, thread.messages)
        assert [message.position for message in rows.newest(desk, *PLACE, limit=10)] == list(range(24, 14, -1))
        older = rows.newest(desk, *PLACE, before=3, limit=10)
        assert [message.position for message in older] == [2, 1, 0]
        assert rows.newest(desk, *PLACE, before=0, limit=10) == []

    def test_only_what_is_asked_for_is_fetched_and_only_once(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        thread = Thread()
        thread.user(LONG)
        thread.model(call("a", "read", path=LONG))
        thread.result("a", "read", data=LONG)
        store(desk, *PLACE, thread.messages)
        fetched: list[str] = []
        get = desk.blobs.get_bytes
        monkeypatch.setattr(desk.blobs, "get_bytes", lambda key: fetched.append(key) or get(key))
        found = stored(desk)
        assert fetched == []
        spoken = rows.spoken(desk, found)
        assert (len(fetched), spoken[2]) == (2, found[2])
        memory: dict[str, bytes] = {}
        assert rows.whole(desk, found, memory) == thread.messages
        assert rows.whole(desk, found, memory) == thread.messages
        assert len(fetched) == 5

    @pytest.mark.parametrize(
        ("content", "understood"),
        [
            ("not-an-array", ()),
            (
                [{"kind": "text"}, {"kind": "text", "text": "Hello"}, {"kind": "hologram"}, 7],
                (TextBlock(text="Hello"),),
            ),
            (None, ()),
        ],
    )
    def test_a_row_that_is_not_as_we_wrote_it_never_keeps_a_thread_from_opening(
        self, desk: Desk, content: Any, understood: tuple[TextBlock, ...]
    ) -> None:
        row = {"pk": rows.partition(*PLACE), "sk": rows.key(0), "role": "user", "turn": "t", "round": 0}
        row |= {"createdAt": "", "content": json.dumps(content)}
        desk.tables.write(Put("conversations", row))
        (message,) = rows.load(desk, *PLACE)
        assert message.content == understood

    def test_half_characters_are_mended_when_a_large_block_is_fetched(self, desk: Desk) -> None:
        thread = Thread()
        thread.model(call("a", "read", path=LONG + "\ud83d"), thought(LONG + "\ud83d"))
        store(desk, *PLACE, thread.messages)
        assert rows.load(desk, *PLACE)[0].content == (
            ToolCallBlock(tool_call_id="a", tool_name="read", input={"path": LONG + "\ufffd"}),
        )
