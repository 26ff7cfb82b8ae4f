"""Conversations: list, create, update, title and delete them."""

import base64
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.conversations.conversation_rows import (
    UNTITLED_CONVERSATION,
    bin_partition_of_conversation,
    to_conversation_view,
)
from fermata.conversations.conversation_store import (
    ConversationPage,
    create_conversation,
    delete_conversation,
    get_conversation,
    list_conversations,
    title_from_prompt,
    update_conversation,
)
from fermata.conversations.message_store import conversation_partition
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound
from tests.resources import TestClock
from tests.unit.conversations.message_builders import make_image

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat"}))
BOB = Caller(tenant="bakery", user="bob", capabilities=frozenset({"ai.chat"}))
FLORIST = Caller(tenant="florist", user="ada", capabilities=frozenset({"ai.chat"}))


def create_titled(
    resources: Resources, clock: TestClock, title: str | None = None, caller: Caller = ADA, scope: str = "site"
) -> str:
    clock.advance(1)
    return create_conversation(resources, caller, scope, title, None, "model-1").id


def list_titles(page: ConversationPage) -> list[str]:
    return [conversation.title for conversation in page.conversations]


class TestList:
    def test_it_has_the_users_own_conversations_of_the_scope_the_newest_first(
        self, resources: Resources, clock: TestClock
    ) -> None:
        for number in range(3):
            create_titled(resources, clock, f"Mine {number}")
        create_titled(resources, clock, "Bob's", caller=BOB)
        create_titled(resources, clock, "The florist's", caller=FLORIST)
        create_titled(resources, clock, "Content", scope="content")
        page = list_conversations(resources, ADA, "site", limit=10)
        assert list_titles(page) == ["Mine 2", "Mine 1", "Mine 0"]
        assert page.next_cursor is None

    def test_pages_follow_each_other_without_a_gap(self, resources: Resources, clock: TestClock) -> None:
        for number in range(7):
            create_titled(resources, clock, f"{number}")
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = list_conversations(resources, ADA, "site", cursor=cursor, limit=3)
            seen += list_titles(page)
            cursor = page.next_cursor
        assert seen == ["6", "5", "4", "3", "2", "1", "0"]
        assert cursor is None

    def test_the_last_page_has_no_cursor(self, resources: Resources, clock: TestClock) -> None:
        for number in range(4):
            create_titled(resources, clock, f"{number}")
        first = list_conversations(resources, ADA, "site", limit=2)
        assert list_conversations(resources, ADA, "site", cursor=first.next_cursor, limit=2).next_cursor is None

    def test_a_page_is_one_query(self, resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(30):
            create_titled(resources, clock, f"{number}")
        requests: list[Any] = []
        query = resources.tables._client.query
        monkeypatch.setattr(
            resources.tables._client, "query", lambda **request: requests.append(request) or query(**request)
        )
        assert len(list_conversations(resources, ADA, "site", limit=20).conversations) == 20
        assert len(requests) == 1

    def test_the_conversation_that_was_used_last_comes_first(self, resources: Resources, clock: TestClock) -> None:
        old = create_titled(resources, clock, "Old")
        create_titled(resources, clock, "New")
        clock.advance(1)
        update_conversation(resources, ADA, old, title="Old, renamed")
        assert list_titles(list_conversations(resources, ADA, "site", limit=5)) == [
            "Old, renamed",
            "New",
        ]

    @pytest.mark.parametrize("cursor", ["x", "é", "W10", "WzEsMl0", "bnVsbA", "_", "W" * 3000, "=", "/w"])
    def test_a_malformed_cursor_is_refused(self, resources: Resources, cursor: str) -> None:
        with pytest.raises(InvalidRequest, match="nextCursor"):
            list_conversations(resources, ADA, "site", cursor=cursor, limit=5)

    @pytest.mark.parametrize(
        "forged",
        [
            "[" * 5000,
            "2026-11-01T00:00:00.000Z",
            "2026-11-01T00:00:00.000Z ",
            "2026-11-01T00:00:00.000Z a#/b",
            "2026-11-01T00:00:00.000Z " + "a" * 65,
            "2026-11-01T00:00:00.000Z abc\n",
            "٢٠٢٦-11-01T00:00:00.000Z abc",
            "yesterday abc",
        ],
    )
    def test_a_forged_cursor_is_refused(self, resources: Resources, forged: str) -> None:
        cursor = base64.urlsafe_b64encode(forged.encode()).decode().rstrip("=")
        with pytest.raises(InvalidRequest, match="nextCursor"):
            list_conversations(resources, ADA, "site", cursor=cursor, limit=5)

    def test_a_cursor_still_works_when_its_conversation_was_used_or_deleted(
        self, resources: Resources, clock: TestClock
    ) -> None:
        conversation_ids = [create_titled(resources, clock, f"{number}") for number in range(4)]
        used = list_conversations(resources, ADA, "site", limit=1).next_cursor
        gone = list_conversations(resources, ADA, "site", limit=2).next_cursor
        clock.advance(1)
        update_conversation(resources, ADA, conversation_ids[3], title="3, renamed")
        delete_conversation(resources, ADA, conversation_ids[2])
        assert list_titles(list_conversations(resources, ADA, "site", cursor=used, limit=5)) == [
            "1",
            "0",
        ]
        assert list_titles(list_conversations(resources, ADA, "site", cursor=gone, limit=5)) == [
            "1",
            "0",
        ]

    def test_a_cursor_of_another_user_leads_into_the_callers_own_list(
        self, resources: Resources, clock: TestClock
    ) -> None:
        mine = create_titled(resources, clock, "Mine")
        for number in range(3):
            create_titled(resources, clock, f"Bob's {number}", caller=BOB)
        cursor = list_conversations(resources, BOB, "site", limit=1).next_cursor
        page = list_conversations(resources, ADA, "site", cursor=cursor, limit=5)
        assert [conversation.id for conversation in page.conversations] == [mine]


class TestUpdate:
    def test_it_changes_what_is_given_and_nothing_else(self, resources: Resources, clock: TestClock) -> None:
        conversation_id = create_titled(resources, clock, "Home")
        changed = update_conversation(resources, ADA, conversation_id, credential_id="c2", model_id="model-2")
        assert (changed.title, changed.credential_id, changed.model_id) == ("Home", "c2", "model-2")
        assert update_conversation(resources, ADA, conversation_id, title="Start").model_id == "model-2"

    def test_without_changes_nothing_is_written(self, resources: Resources, clock: TestClock) -> None:
        conversation_id = create_titled(resources, clock)
        before = get_conversation(resources, ADA, conversation_id)
        clock.advance(5)
        assert update_conversation(resources, ADA, conversation_id) == before

    @pytest.mark.parametrize("caller", [BOB, FLORIST])
    def test_a_conversation_of_another_user_is_not_found(
        self, resources: Resources, clock: TestClock, caller: Caller
    ) -> None:
        conversation_id = create_titled(resources, clock)
        for function in (
            get_conversation,
            update_conversation,
            delete_conversation,
        ):
            with pytest.raises(NotFound, match="Conversation not found"):
                function(resources, caller, conversation_id)

    @pytest.mark.parametrize("conversation_id", ["", " ", "a/b", "é", "x" * 5_000, "c#m#00000000"])
    def test_a_malformed_id_is_not_found(self, resources: Resources, conversation_id: str) -> None:
        with pytest.raises(NotFound, match="Conversation not found"):
            get_conversation(resources, ADA, conversation_id)


class TestTitles:
    def set_automatic_title(self, resources: Resources, conversation: str, title: str) -> Conversation:
        """Set the title as the start of a turn does."""
        pk = conversation_partition("bakery", conversation)
        expression = "SET auto_title = if_not_exists(auto_title, :title)"
        resources.tables.write_items(Update("conversations", pk, "meta", expression, {":title": title}))
        return get_conversation(resources, ADA, conversation)

    def test_without_a_title_the_first_prompt_becomes_the_title(self, resources: Resources, clock: TestClock) -> None:
        conversation_id = create_titled(resources, clock)
        assert get_conversation(resources, ADA, conversation_id).title == UNTITLED_CONVERSATION
        assert self.set_automatic_title(resources, conversation_id, "First").title == "First"
        assert self.set_automatic_title(resources, conversation_id, "Second").title == "First"

    def test_a_title_that_the_user_gave_precedes_that_of_the_first_prompt(
        self, resources: Resources, clock: TestClock
    ) -> None:
        for when in ("before", "after"):
            conversation_id = create_titled(resources, clock)
            if when == "before":
                update_conversation(resources, ADA, conversation_id, title="Mine")
            self.set_automatic_title(resources, conversation_id, "First prompt")
            update_conversation(resources, ADA, conversation_id, title="Mine")
            assert get_conversation(resources, ADA, conversation_id).title == "Mine"

    def test_the_placeholder_is_no_title(self, resources: Resources, clock: TestClock) -> None:
        conversation_id = create_titled(resources, clock, UNTITLED_CONVERSATION)
        assert self.set_automatic_title(resources, conversation_id, "First").title == "First"

    @pytest.mark.parametrize(
        ("content", "title"),
        [
            ([TextBlock(text="  Add a\n footer ")], "Add a footer"),
            ([TextBlock(text="x" * 60)], "x" * 60),
            ([TextBlock(text="x" * 61)], "x" * 60 + "…"),
            ([TextBlock(text="Look"), make_image()], "Look"),
            ([make_image()], "Image"),
            ([make_image(), make_image()], "Images"),
        ],
    )
    def test_the_title_from_a_prompt(self, content: list[Any], title: str) -> None:
        assert title_from_prompt(content) == title


class TestBin:
    def test_a_deleted_conversation_is_not_found_and_can_be_deleted_again(
        self, resources: Resources, clock: TestClock
    ) -> None:
        conversation_id = create_titled(resources, clock, "Home")
        for _ in range(2):
            assert delete_conversation(resources, ADA, conversation_id).id == conversation_id
        assert list_titles(list_conversations(resources, ADA, "site", limit=5)) == []
        for function in (get_conversation, update_conversation):
            with pytest.raises(NotFound):
                function(resources, ADA, conversation_id)

    def test_a_deleted_conversation_stays_in_the_bin_for_the_operator(
        self, resources: Resources, clock: TestClock
    ) -> None:
        conversation_id = create_titled(resources, clock, "Home")
        delete_conversation(resources, ADA, conversation_id)
        row = resources.tables.get_item("conversations", conversation_partition("bakery", conversation_id), "meta")
        assert row is not None
        assert (row["deleted_at"], row["gpk"]) == (clock.now_iso(), bin_partition_of_conversation(conversation_id))


def test_the_view_has_the_members_of_instatics_server_and_no_other(resources: Resources, clock: TestClock) -> None:
    view = to_conversation_view(get_conversation(resources, ADA, create_titled(resources, clock)))
    numbers = {
        "promptTokensTotal", "completionTokensTotal", "cacheReadTokensTotal", "cacheCreationTokensTotal",
        "costUsdTotal", "contextTokens",
    }  # fmt: skip
    texts = {"id", "scope", "title", "modelId", "createdAt", "updatedAt"}
    assert set(view) == numbers | texts | {"credentialId"}
    assert all(type(view[name]) in (int, float) for name in numbers)
    assert all(isinstance(view[name], str) for name in texts)
