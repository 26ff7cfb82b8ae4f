"""A conversation's messages as its clients see them."""

import json
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.conversations import threads, views
from fermata.conversations.healing import INTERRUPTED
from fermata.words.blocks import ImageBlock
from fermata.words.conversation import Conversation
from fermata.words.errors import NotFound
from tests.pictures import base64_of, jpeg, png
from tests.unit.conversations.messages import Thread, call, picture, store, thought
from tests.unit.conversations.test_threads import ADA

LONG = "x" * 40_000


@pytest.fixture
def conversation(desk: Desk) -> Conversation:
    return threads.create(desk, ADA, "site", None, None, "model-1")


def lines(desk: Desk, conversation: Conversation, thread: Thread, dialect: Any = "fermata") -> list[dict[str, Any]]:
    store(desk, ADA.tenant, conversation.id, thread.messages)
    return list(views.page(desk, conversation, dialect).lines)


def as_lambda_answers(page: views.Page) -> int:
    """Bytes of the answer around a page, as Lambda counts them: a JSON text inside of JSON."""
    return len(json.dumps({"body": json.dumps({"conversation": {"messages": page.lines}})}))


def test_every_call_is_a_line_of_its_own_and_thinking_is_nobodys_business(
    desk: Desk, conversation: Conversation
) -> None:
    thread = Thread()
    thread.user("Go")
    thread.model(thought(), "I look.", call("a", "read", path="/"), call("b"), "Then I write.")
    thread.position += 3
    thread.result("a", "read", data={"secret": 1})
    thread.result("b", ok=False, error="no")
    found = lines(desk, conversation, thread)
    assert [(line["position"], line["role"], line["toolCallId"], line["toolName"]) for line in found] == [
        (0, "user", None, None),
        (1, "assistant", None, None),
        (2, "assistant", "a", "read"),
        (3, "assistant", "b", "insertHtml"),
        (4, "assistant", None, None),
        (5, "tool", "a", "read"),
        (6, "tool", "b", "insertHtml"),
    ]
    assert [line["content"] for line in found][1:] == [
        [{"kind": "text", "text": "I look."}],
        [{"kind": "toolCall", "toolCallId": "a", "toolName": "read", "input": {"path": "/"}}],
        [{"kind": "toolCall", "toolCallId": "b", "toolName": "insertHtml", "input": {}}],
        [{"kind": "text", "text": "Then I write."}],
        [{"kind": "toolResult", "ok": True}],
        [{"kind": "toolResult", "ok": False, "error": "no"}],
    ]
    assert len({line["id"] for line in found}) == len(found)
    assert found == lines(desk, conversation, thread)


def closed_calls(page: views.Page) -> list[tuple[str, int]]:
    failed = [{"kind": "toolResult", "ok": False, "error": INTERRUPTED}]
    return [(line["toolCallId"], line["position"]) for line in page.lines if line["content"] == failed]


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
def test_a_call_that_its_turns_end_closed_is_shown_as_the_stream_showed_it(
    desk: Desk, conversation: Conversation, dialect: Any
) -> None:
    thread = Thread()
    thread.user("Go")
    thread.model("I look.", call("a", "read"), call("b", "read", path=LONG))
    thread.position += 2
    thread.result("a", "read")
    thread.user("And now?")
    found = lines(desk, conversation, thread, dialect)
    assert [(line["position"], line["role"], line["toolCallId"], line["toolName"]) for line in found] == [
        (0, "user", None, None),
        (1, "assistant", None, None),
        (2, "assistant", "a", "read"),
        (3, "assistant", "b", "read"),
        (3, "tool", "b", "read"),
        (4, "tool", "a", "read"),
        (5, "user", None, None),
    ]
    assert found[4]["content"] == [{"kind": "toolResult", "ok": False, "error": INTERRUPTED}]
    assert len({line["id"] for line in found}) == len(found)
    with pytest.raises(NotFound):
        views.image(desk, conversation, found[4]["id"], "0")


def test_a_call_of_the_turn_that_still_runs_is_open(desk: Desk, conversation: Conversation) -> None:
    thread = Thread()
    thread.user("Go")
    thread.model(call("a"))
    store(desk, ADA.tenant, conversation.id, thread.messages)
    running = conversation.model_copy(update={"claim": "turn-1"})
    assert closed_calls(views.page(desk, running, "fermata")) == []
    assert closed_calls(views.page(desk, conversation, "fermata")) == [("a", 1)]


def test_a_page_that_ends_among_results_knows_those_behind_it(desk: Desk, conversation: Conversation) -> None:
    thread = Thread()
    thread.user("Go")
    thread.model(call("a"), call("b"), call("c"))
    thread.position += 2
    for name in "ac":
        thread.result(name)
    thread.model("Done.")
    store(desk, ADA.tenant, conversation.id, thread.messages)
    for before in (4, 5, 6, None):
        assert closed_calls(views.page(desk, conversation, "fermata", before=before)) == [("b", 2)]


def test_what_is_large_is_shown_whole_but_for_results_which_show_no_data(
    desk: Desk, conversation: Conversation
) -> None:
    thread = Thread()
    thread.user(LONG)
    thread.model(call("a", "read", path=LONG))
    thread.result("a", "read", data=LONG)
    thread.model(call("b"))
    thread.result("b", ok=False, error=LONG)
    contents = [line["content"][0] for line in lines(desk, conversation, thread)]
    assert contents[0]["text"] == LONG
    assert contents[1]["input"] == {"path": LONG}
    assert contents[2] == {"kind": "toolResult", "ok": True}
    assert contents[4]["error"] == LONG[:1000]


def test_what_was_cut_off_says_so_except_to_those_who_know_no_such_member(
    desk: Desk, conversation: Conversation
) -> None:
    thread = Thread()
    thread.user("Hi")
    store(desk, "bakery", conversation.id, [*thread.messages, thread.model("Hel").model_copy(update={"partial": True})])
    prompt, said = views.page(desk, conversation, "fermata").lines
    assert (said["partial"], "partial" in prompt) == (True, False)
    assert not any("partial" in line for line in views.page(desk, conversation, "instatic").lines)


class TestPictures:
    def test_a_picture_is_an_address_that_leads_to_its_bytes(self, desk: Desk, conversation: Conversation) -> None:
        thread = Thread()
        thread.user("Look", picture(70, 80), picture(90, 10))
        (line,) = lines(desk, conversation, thread)
        for index, raw in ((1, jpeg(70, 80)), (2, jpeg(90, 10))):
            shown = line["content"][index]
            assert shown["mimeType"] == "image/jpeg"
            base, name = f"/admin/api/ai/conversations/{conversation.id}/messages", line["id"]
            assert shown["url"] == f"{base}/{name}/images/{index}"
            assert views.image(desk, conversation, name, str(index)) == (raw, "image/jpeg")

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
    def test_whatever_is_no_picture_is_not_found(
        self, desk: Desk, conversation: Conversation, name: str, index: str
    ) -> None:
        thread = Thread()
        thread.user("Look", picture(), picture())
        lines(desk, conversation, thread)
        with pytest.raises(NotFound, match="Conversation image not found"):
            views.image(desk, conversation, name, index)

    def test_an_instatic_browser_is_spared_the_kinds_it_does_not_know(
        self, desk: Desk, conversation: Conversation
    ) -> None:
        thread = Thread()
        thread.user(ImageBlock(mime_type="image/png", data=base64_of(png())), picture())
        shown = lines(desk, conversation, thread, "instatic")[0]["content"]
        assert shown[0] == {"kind": "text", "text": "[image/png]"}
        assert shown[1]["kind"] == "image"
        assert lines(desk, conversation, thread)[0]["content"][0]["mimeType"] == "image/png"


class TestPages:
    def test_a_thread_of_two_thousand_messages_opens_page_by_page(self, desk: Desk, conversation: Conversation) -> None:
        thread = Thread()
        for _ in range(1000):
            thread.user("Hello")
            thread.model("Good morning")
        store(desk, ADA.tenant, conversation.id, thread.messages)
        seen: list[int] = []
        before: int | None = None
        for _ in range(2):
            page = views.page(desk, conversation, "fermata", before=before)
            seen, before = [line["position"] for line in page.lines] + seen, page.before
        assert seen == list(range(2000))
        assert before is None

    def test_a_small_page_of_a_long_thread_reads_little_of_it(
        self, desk: Desk, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        thread = Thread()
        for _ in range(300):
            thread.user("Hello")
        store(desk, ADA.tenant, conversation.id, thread.messages)
        read: list[int] = []
        query = desk.tables.query

        def counted(*args: Any, **how: Any) -> Any:
            read.append(len(found := query(*args, **how)))
            return found

        monkeypatch.setattr(desk.tables, "query", counted)
        page = views.page(desk, conversation, "fermata", limit=5)
        assert ([line["position"] for line in page.lines], page.before) == ([295, 296, 297, 298, 299], 295)
        assert read == [6]

    def test_a_thread_of_ten_megabytes_never_passes_what_lambda_may_answer(
        self, desk: Desk, conversation: Conversation
    ) -> None:
        sizes = self.sizes(desk, conversation, "y" * 45_000, 10_000_000)
        assert len(sizes) > 2
        assert max(sizes) < 6 * 1024 * 1024

    @pytest.mark.parametrize("text", ["x" * 3_000, '"' * 3_000, "\\n\u6f22" * 1_000, "🦀\n"])
    def test_what_json_within_json_makes_of_a_text_is_reckoned_with(
        self, desk: Desk, conversation: Conversation, text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(views, "MOST_BYTES", 100_000)
        sizes = self.sizes(desk, conversation, text, 120_000)
        assert len(sizes) > 1
        assert 40_000 < max(sizes) < 110_000

    def sizes(self, desk: Desk, conversation: Conversation, text: str, total: int) -> list[int]:
        """Of all pages of a thread that says this text again and again."""
        thread = Thread()
        for _ in range(total // (2 * len(text)) if len(text) > 100 else 300):
            thread.user(text)
            thread.model(call(f"c{thread.turn}", html=text))
        store(desk, ADA.tenant, conversation.id, thread.messages)
        sizes, seen = [], 0
        before: int | None = None
        while before is not None or not sizes:
            page = views.page(desk, conversation, "fermata", before=before)
            sizes.append(as_lambda_answers(page))
            seen, before = seen + len(page.lines) - len(closed_calls(page)), page.before
        assert seen == len(thread.messages)
        return sizes

    def test_a_page_has_as_many_lines_as_asked_for_and_never_half_a_message(
        self, desk: Desk, conversation: Conversation
    ) -> None:
        thread = Thread()
        thread.user("Go")
        thread.model("Two", call("a"))
        thread.position += 1
        thread.result("a")
        thread.model("Done")
        store(desk, ADA.tenant, conversation.id, thread.messages)
        page = views.page(desk, conversation, "fermata", limit=3)
        assert [line["position"] for line in page.lines] == [3, 4]
        older = views.page(desk, conversation, "fermata", before=page.before, limit=1)
        assert [line["position"] for line in older.lines] == [1, 2]
        oldest = views.page(desk, conversation, "fermata", before=older.before, limit=1)
        assert [line["position"] for line in oldest.lines] == [0]
        assert oldest.before is None

    def test_an_empty_thread_is_one_empty_page(self, desk: Desk, conversation: Conversation) -> None:
        assert views.page(desk, conversation, "fermata") == views.Page([], None)
