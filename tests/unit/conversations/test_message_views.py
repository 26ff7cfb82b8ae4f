"""Messages, pages and images of a conversation as clients see them."""

import json
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import create_conversation
from fermata.conversations.history.repair import INTERRUPTED_CALL_ERROR
from fermata.conversations.message_views import MessagePage, read_message_image, read_message_page
from fermata.domain.blocks import ImageBlock
from fermata.domain.conversation import Conversation
from fermata.domain.errors import NotFound
from fermata.domain.messages import UsageSoFar
from tests.images import make_jpeg_header, make_png_header, to_base64
from tests.unit.conversations.message_builders import (
    ThreadBuilder,
    make_call,
    make_image,
    make_reasoning,
    store_messages,
)
from tests.unit.conversations.test_conversation_store import ADA

LONG = "x" * 40_000


@pytest.fixture
def conversation(resources: Resources) -> Conversation:
    return create_conversation(resources, ADA, "site", None, None, "model-1")


def read_lines(
    resources: Resources, conversation: Conversation, thread: ThreadBuilder, dialect: Any = "fermata"
) -> list[dict[str, Any]]:
    store_messages(resources, ADA.tenant, conversation.id, thread.messages)
    return list(read_message_page(resources, conversation, dialect).lines)


def count_lambda_response_bytes(page: MessagePage) -> int:
    """Return the bytes of the response with a page as Lambda counts them: JSON within JSON."""
    return len(json.dumps({"body": json.dumps({"conversation": {"messages": page.lines}})}))


def test_each_call_is_a_line_of_its_own_and_reasoning_is_not_shown(
    resources: Resources, conversation: Conversation
) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_reasoning(), "I look.", make_call("a", "read", path="/"), make_call("b"), "Then I write.")
    thread.position += 3
    thread.add_result("a", "read", data={"secret": 1})
    thread.add_result("b", ok=False, error="no")
    lines = read_lines(resources, conversation, thread)
    assert [(line["position"], line["role"], line["toolCallId"], line["toolName"]) for line in lines] == [
        (0, "user", None, None),
        (1, "assistant", None, None),
        (2, "assistant", "a", "read"),
        (3, "assistant", "b", "insertHtml"),
        (4, "assistant", None, None),
        (5, "tool", "a", "read"),
        (6, "tool", "b", "insertHtml"),
    ]
    assert [line["content"] for line in lines][1:] == [
        [{"kind": "text", "text": "I look."}],
        [{"kind": "toolCall", "toolCallId": "a", "toolName": "read", "input": {"path": "/"}}],
        [{"kind": "toolCall", "toolCallId": "b", "toolName": "insertHtml", "input": {}}],
        [{"kind": "text", "text": "Then I write."}],
        [{"kind": "toolResult", "ok": True}],
        [{"kind": "toolResult", "ok": False, "error": "no"}],
    ]
    assert len({line["id"] for line in lines}) == len(lines)
    assert lines == read_lines(resources, conversation, thread)


def list_closed_calls(page: MessagePage) -> list[tuple[str, int]]:
    failed = [{"kind": "toolResult", "ok": False, "error": INTERRUPTED_CALL_ERROR}]
    return [(line["toolCallId"], line["position"]) for line in page.lines if line["content"] == failed]


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
def test_a_call_closed_by_the_end_of_its_turn_is_shown_as_the_stream_showed_it(
    resources: Resources, conversation: Conversation, dialect: Any
) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply("I look.", make_call("a", "read"), make_call("b", "read", path=LONG))
    thread.position += 2
    thread.add_result("a", "read")
    thread.add_prompt("And now?")
    lines = read_lines(resources, conversation, thread, dialect)
    assert [(line["position"], line["role"], line["toolCallId"], line["toolName"]) for line in lines] == [
        (0, "user", None, None),
        (1, "assistant", None, None),
        (2, "assistant", "a", "read"),
        (3, "assistant", "b", "read"),
        (3, "tool", "b", "read"),
        (4, "tool", "a", "read"),
        (5, "user", None, None),
    ]
    assert lines[4]["content"] == [{"kind": "toolResult", "ok": False, "error": INTERRUPTED_CALL_ERROR}]
    assert len({line["id"] for line in lines}) == len(lines)
    with pytest.raises(NotFound):
        read_message_image(resources, conversation, lines[4]["id"], "0")


def test_a_call_of_the_running_turn_is_open(resources: Resources, conversation: Conversation) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a"))
    store_messages(resources, ADA.tenant, conversation.id, thread.messages)
    running = conversation.model_copy(update={"claim": "turn-1"})
    assert list_closed_calls(read_message_page(resources, running, "fermata")) == []
    assert list_closed_calls(read_message_page(resources, conversation, "fermata")) == [("a", 1)]


def test_a_page_that_ends_among_results_knows_the_results_behind_it(
    resources: Resources, conversation: Conversation
) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a"), make_call("b"), make_call("c"))
    thread.position += 2
    for name in "ac":
        thread.add_result(name)
    thread.add_reply("Done.")
    store_messages(resources, ADA.tenant, conversation.id, thread.messages)
    for before in (4, 5, 6, None):
        page = read_message_page(resources, conversation, "fermata", before=before)
        assert list_closed_calls(page) == [("b", 2)]


def test_large_blocks_are_shown_completely_and_results_without_data(
    resources: Resources, conversation: Conversation
) -> None:
    thread = ThreadBuilder()
    thread.add_prompt(LONG)
    thread.add_reply(make_call("a", "read", path=LONG))
    thread.add_result("a", "read", data=LONG)
    thread.add_reply(make_call("b"))
    thread.add_result("b", ok=False, error=LONG)
    contents = [line["content"][0] for line in read_lines(resources, conversation, thread)]
    assert contents[0]["text"] == LONG
    assert contents[1]["input"] == {"path": LONG}
    assert contents[2] == {"kind": "toolResult", "ok": True}
    assert contents[4]["error"] == LONG[:1000]


def test_a_partial_reply_is_marked_except_in_the_dialect_of_instatic(
    resources: Resources, conversation: Conversation
) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Hi")
    reply = thread.add_reply("Hel").model_copy(update={"partial": True})
    store_messages(resources, "bakery", conversation.id, [thread.messages[0], reply])
    prompt_line, reply_line = read_message_page(resources, conversation, "fermata").lines
    assert (reply_line["partial"], "partial" in prompt_line) == (True, False)
    instatic_lines = read_message_page(resources, conversation, "instatic").lines
    assert not any("partial" in line for line in instatic_lines)


def test_a_response_of_thinking_alone_has_no_line_and_no_usage(
    resources: Resources, conversation: Conversation
) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Hi")
    used = UsageSoFar(prompt_tokens=3, completion_tokens=5, cost_usd=Decimal("0.1"))
    thought = thread.add_reply(make_reasoning()).model_copy(update={"turn_usage": used})
    store_messages(resources, "bakery", conversation.id, [thread.messages[0], thought])
    (line,) = read_message_page(resources, conversation, "fermata").lines
    assert (line["role"], "turnUsage" in line) == ("user", False)


class TestImages:
    def test_an_image_is_a_url_that_leads_to_its_bytes(self, resources: Resources, conversation: Conversation) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Look", make_image(70, 80), make_image(90, 10))
        (line,) = read_lines(resources, conversation, thread)
        for index, raw in ((1, make_jpeg_header(70, 80)), (2, make_jpeg_header(90, 10))):
            shown = line["content"][index]
            assert shown["mimeType"] == "image/jpeg"
            folder = f"/admin/api/ai/conversations/{conversation.id}/messages"
            assert shown["url"] == f"{folder}/{line['id']}/images/{index}"
            image = read_message_image(resources, conversation, line["id"], str(index))
            assert image == (raw, "image/jpeg")

    @pytest.mark.parametrize(
        ("name", "index"),
        [
            ("turn-1-0", "0"),
            ("turn-1-0", "3"),
            ("turn-1-0", "-1"),
            ("turn-1-0", "1e0"),
            ("turn-1-0", "²"),
            ("turn-1-9", "1"),
            ("turn-2-0", "1"),
            ("", "1"),
            ("turn-1-", "1"),
            ("turn-1-99999999999999999999", "1"),
        ],
    )
    def test_what_is_no_image_is_not_found(
        self, resources: Resources, conversation: Conversation, name: str, index: str
    ) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Look", make_image(), make_image())
        read_lines(resources, conversation, thread)
        with pytest.raises(NotFound, match="Conversation image not found"):
            read_message_image(resources, conversation, name, index)

    def test_an_instatic_browser_gets_a_text_instead_of_an_image_that_is_no_jpeg(
        self, resources: Resources, conversation: Conversation
    ) -> None:
        thread = ThreadBuilder()
        thread.add_prompt(ImageBlock(mime_type="image/png", data=to_base64(make_png_header())), make_image())
        shown = read_lines(resources, conversation, thread, "instatic")[0]["content"]
        assert shown[0] == {"kind": "text", "text": "[image/png]"}
        assert shown[1]["kind"] == "image"
        assert read_lines(resources, conversation, thread)[0]["content"][0]["mimeType"] == "image/png"


class TestPages:
    def test_a_thread_of_two_thousand_messages_has_two_pages(
        self, resources: Resources, conversation: Conversation
    ) -> None:
        thread = ThreadBuilder()
        for _ in range(1000):
            thread.add_prompt("Hello")
            thread.add_reply("Good morning")
        store_messages(resources, ADA.tenant, conversation.id, thread.messages)
        seen: list[int] = []
        before: int | None = None
        for _ in range(2):
            page = read_message_page(resources, conversation, "fermata", before=before)
            seen = [line["position"] for line in page.lines] + seen
            before = page.before
        assert seen == list(range(2000))
        assert before is None

    def test_a_small_page_of_a_long_thread_reads_few_rows(
        self, resources: Resources, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        thread = ThreadBuilder()
        for _ in range(300):
            thread.add_prompt("Hello")
        store_messages(resources, ADA.tenant, conversation.id, thread.messages)
        row_counts: list[int] = []
        query = resources.tables.query_items

        def count_rows(*args: Any, **kwargs: Any) -> Any:
            rows = query(*args, **kwargs)
            row_counts.append(len(rows))
            return rows

        monkeypatch.setattr(resources.tables, "query_items", count_rows)
        page = read_message_page(resources, conversation, "fermata", limit=5)
        assert ([line["position"] for line in page.lines], page.before) == ([295, 296, 297, 298, 299], 295)
        assert row_counts == [6]

    @pytest.mark.exhaustive  # the next test has the same limit, smaller
    def test_pages_of_a_thread_of_ten_megabytes_stay_within_the_limit_of_lambda(
        self, resources: Resources, conversation: Conversation
    ) -> None:
        sizes = self.read_page_sizes(resources, conversation, "y" * 45_000, 10_000_000)
        assert len(sizes) > 2
        assert max(sizes) < 6 * 1024 * 1024

    @pytest.mark.parametrize("text", ["x" * 3_000, '"' * 3_000, "\\n\u6f22" * 1_000, "🦀\n"])
    def test_the_size_of_a_page_counts_the_escapes_of_json_within_json(
        self, resources: Resources, conversation: Conversation, text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fermata.conversations.message_views.MAX_PAGE_BYTES", 100_000)
        sizes = self.read_page_sizes(resources, conversation, text, 120_000)
        assert len(sizes) > 1
        assert 40_000 < max(sizes) < 110_000

    def read_page_sizes(self, resources: Resources, conversation: Conversation, text: str, total: int) -> list[int]:
        """Return the sizes of all pages of a thread that repeats this text."""
        thread = ThreadBuilder()
        for _ in range(total // (2 * len(text)) if len(text) > 100 else 300):
            thread.add_prompt(text)
            thread.add_reply(make_call(f"c{thread.turn}", html=text))
        store_messages(resources, ADA.tenant, conversation.id, thread.messages)
        sizes: list[int] = []
        line_count = 0
        before: int | None = None
        while before is not None or not sizes:
            page = read_message_page(resources, conversation, "fermata", before=before)
            sizes.append(count_lambda_response_bytes(page))
            line_count += len(page.lines) - len(list_closed_calls(page))
            before = page.before
        assert line_count == len(thread.messages)
        return sizes

    def test_a_page_has_at_most_the_requested_lines_and_only_whole_messages(
        self, resources: Resources, conversation: Conversation
    ) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Go")
        thread.add_reply("Two", make_call("a"))
        thread.position += 1
        thread.add_result("a")
        thread.add_reply("Done")
        store_messages(resources, ADA.tenant, conversation.id, thread.messages)
        page = read_message_page(resources, conversation, "fermata", limit=3)
        assert [line["position"] for line in page.lines] == [3, 4]
        older = read_message_page(resources, conversation, "fermata", before=page.before, limit=1)
        assert [line["position"] for line in older.lines] == [1, 2]
        oldest = read_message_page(resources, conversation, "fermata", before=older.before, limit=1)
        assert [line["position"] for line in oldest.lines] == [0]
        assert oldest.before is None

    def test_an_empty_thread_has_one_empty_page(self, resources: Resources, conversation: Conversation) -> None:
        assert read_message_page(resources, conversation, "fermata") == MessagePage([], None)
