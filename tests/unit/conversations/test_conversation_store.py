"""Conversations: listed, made, changed, put into the bin."""

import base64
from typing import Any

import pytest

from fermata.aws.dynamodb import Update
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
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
    return conversation_store.create_conversation(resources, caller, scope, title, None, "model-1").id


def list_titles(page: conversation_store.ConversationPage) -> list[str]:
    return [conversation.title for conversation in page.conversations]


class TestTheList:
    def test_the_newest_comes_first_and_only_ones_own_of_the_scope(
        self, resources: Resources, clock: TestClock
    ) -> None:
        for number in range(3):
            create_titled(resources, clock, f"Mine {number}")
        create_titled(resources, clock, "Bob's", caller=BOB)
        create_titled(resources, clock, "The florist's", caller=FLORIST)
        create_titled(resources, clock, "Content", scope="content")
        page = conversation_store.list_conversations(resources, ADA, "site", limit=10)
        assert list_titles(page) == ["Mine 2", "Mine 1", "Mine 0"]
        assert page.next_cursor is None

    def test_pages_follow_each_other_without_a_gap(self, resources: Resources, clock: TestClock) -> None:
        for number in range(7):
            create_titled(resources, clock, f"{number}")
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = conversation_store.list_conversations(resources, ADA, "site", cursor=cursor, limit=3)
            seen, cursor = seen + list_titles(page), page.next_cursor
        assert seen == ["6", "5", "4", "3", "2", "1", "0"]
        assert cursor is None

    def test_a_page_that_ends_with_the_last_one_has_no_cursor(self, resources: Resources, clock: TestClock) -> None:
        for number in range(4):
            create_titled(resources, clock, f"{number}")
        first = conversation_store.list_conversations(resources, ADA, "site", limit=2)
        assert (
            conversation_store.list_conversations(resources, ADA, "site", cursor=first.next_cursor, limit=2).next_cursor
            is None
        )

    def test_a_page_is_one_query(self, resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(30):
            create_titled(resources, clock, f"{number}")
        asked: list[Any] = []
        query = resources.tables._client.query
        monkeypatch.setattr(
            resources.tables._client, "query", lambda **request: asked.append(request) or query(**request)
        )
        assert len(conversation_store.list_conversations(resources, ADA, "site", limit=20).conversations) == 20
        assert len(asked) == 1

    def test_what_was_used_last_comes_first(self, resources: Resources, clock: TestClock) -> None:
        old = create_titled(resources, clock, "Old")
        create_titled(resources, clock, "New")
        clock.advance(1)
        conversation_store.update_conversation(resources, ADA, old, title="Old, renamed")
        assert list_titles(conversation_store.list_conversations(resources, ADA, "site", limit=5)) == [
            "Old, renamed",
            "New",
        ]

    @pytest.mark.parametrize("odd", ["x", "é", "W10", "WzEsMl0", "bnVsbA", "_", "W" * 3000, "=", "/w"])
    def test_a_cursor_that_is_none_of_ours_is_refused(self, resources: Resources, odd: str) -> None:
        with pytest.raises(InvalidRequest, match="nextCursor"):
            conversation_store.list_conversations(resources, ADA, "site", cursor=odd, limit=5)

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
    def test_one_that_was_forged_is_refused(self, resources: Resources, forged: str) -> None:
        cursor = base64.urlsafe_b64encode(forged.encode()).decode().rstrip("=")
        with pytest.raises(InvalidRequest, match="nextCursor"):
            conversation_store.list_conversations(resources, ADA, "site", cursor=cursor, limit=5)

    def test_one_whose_conversation_was_used_or_removed_meanwhile_still_leads_on(
        self, resources: Resources, clock: TestClock
    ) -> None:
        made = [create_titled(resources, clock, f"{number}") for number in range(4)]
        used = conversation_store.list_conversations(resources, ADA, "site", limit=1).next_cursor
        gone = conversation_store.list_conversations(resources, ADA, "site", limit=2).next_cursor
        clock.advance(1)
        conversation_store.update_conversation(resources, ADA, made[3], title="3, renamed")
        conversation_store.delete_conversation(resources, ADA, made[2])
        assert list_titles(conversation_store.list_conversations(resources, ADA, "site", cursor=used, limit=5)) == [
            "1",
            "0",
        ]
        assert list_titles(conversation_store.list_conversations(resources, ADA, "site", cursor=gone, limit=5)) == [
            "1",
            "0",
        ]

    def test_anothers_cursor_leads_nowhere_but_into_ones_own_list(self, resources: Resources, clock: TestClock) -> None:
        mine = create_titled(resources, clock, "Mine")
        for number in range(3):
            create_titled(resources, clock, f"Bob's {number}", caller=BOB)
        cursor = conversation_store.list_conversations(resources, BOB, "site", limit=1).next_cursor
        page = conversation_store.list_conversations(resources, ADA, "site", cursor=cursor, limit=5)
        assert [conversation.id for conversation in page.conversations] == [mine]


class TestChanging:
    def test_what_is_given_changes_and_the_rest_stays(self, resources: Resources, clock: TestClock) -> None:
        made = create_titled(resources, clock, "Home")
        changed = conversation_store.update_conversation(resources, ADA, made, credential_id="c2", model_id="model-2")
        assert (changed.title, changed.credential_id, changed.model_id) == ("Home", "c2", "model-2")
        assert conversation_store.update_conversation(resources, ADA, made, title="Start").model_id == "model-2"

    def test_nothing_given_changes_nothing(self, resources: Resources, clock: TestClock) -> None:
        made = create_titled(resources, clock)
        before = conversation_store.get_conversation(resources, ADA, made)
        clock.advance(5)
        assert conversation_store.update_conversation(resources, ADA, made) == before

    @pytest.mark.parametrize("caller", [BOB, FLORIST])
    def test_anothers_is_not_found(self, resources: Resources, clock: TestClock, caller: Caller) -> None:
        made = create_titled(resources, clock)
        for act in (
            conversation_store.get_conversation,
            conversation_store.update_conversation,
            conversation_store.delete_conversation,
        ):
            with pytest.raises(NotFound, match="Conversation not found"):
                act(resources, caller, made)

    @pytest.mark.parametrize("odd", ["", " ", "a/b", "é", "x" * 5_000, "c#m#00000000"])
    def test_what_is_no_id_of_ours_is_not_found_and_not_looked_for(self, resources: Resources, odd: str) -> None:
        with pytest.raises(NotFound, match="Conversation not found"):
            conversation_store.get_conversation(resources, ADA, odd)


class TestTitles:
    def auto_titled(self, resources: Resources, conversation: str, title: str) -> Conversation:
        """As a prompt does it."""
        pk = message_store.conversation_partition("bakery", conversation)
        named = "SET auto_title = if_not_exists(auto_title, :title)"
        resources.tables.write_items(Update("conversations", pk, "meta", named, {":title": title}))
        return conversation_store.get_conversation(resources, ADA, conversation)

    def test_without_a_name_it_is_called_after_its_first_prompt(self, resources: Resources, clock: TestClock) -> None:
        made = create_titled(resources, clock)
        assert (
            conversation_store.get_conversation(resources, ADA, made).title == conversation_store.UNTITLED_CONVERSATION
        )
        assert self.auto_titled(resources, made, "First").title == "First"
        assert self.auto_titled(resources, made, "Second").title == "First"

    def test_a_name_that_somebody_gave_wins_whenever_it_came(self, resources: Resources, clock: TestClock) -> None:
        for when in ("before", "after"):
            made = create_titled(resources, clock)
            if when == "before":
                conversation_store.update_conversation(resources, ADA, made, title="Mine")
            self.auto_titled(resources, made, "First prompt")
            conversation_store.update_conversation(resources, ADA, made, title="Mine")
            assert conversation_store.get_conversation(resources, ADA, made).title == "Mine"

    def test_the_placeholder_sent_as_a_title_is_none(self, resources: Resources, clock: TestClock) -> None:
        made = create_titled(resources, clock, conversation_store.UNTITLED_CONVERSATION)
        assert self.auto_titled(resources, made, "First").title == "First"

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
    def test_a_prompt_as_a_title(self, content: list[Any], title: str) -> None:
        assert conversation_store.title_from_prompt(content) == title


class TestTheBin:
    def test_what_was_removed_is_gone_from_everywhere_and_removing_it_again_is_fine(
        self, resources: Resources, clock: TestClock
    ) -> None:
        made = create_titled(resources, clock, "Home")
        for _ in range(2):
            assert conversation_store.delete_conversation(resources, ADA, made).id == made
        assert list_titles(conversation_store.list_conversations(resources, ADA, "site", limit=5)) == []
        for act in (conversation_store.get_conversation, conversation_store.update_conversation):
            with pytest.raises(NotFound):
                act(resources, ADA, made)

    def test_a_removed_one_keeps_its_messages_for_the_operator(self, resources: Resources, clock: TestClock) -> None:
        made = create_titled(resources, clock, "Home")
        conversation_store.delete_conversation(resources, ADA, made)
        row = resources.tables.get_item("conversations", message_store.conversation_partition("bakery", made), "meta")
        assert row is not None
        assert (row["deleted_at"], row["gpk"]) == (clock.now_iso(), conversation_store.bin_partition(made))


def test_its_view_has_the_contracts_members_and_no_other(resources: Resources, clock: TestClock) -> None:
    view = conversation_store.to_conversation_view(
        conversation_store.get_conversation(resources, ADA, create_titled(resources, clock))
    )
    numbers = {
        "promptTokensTotal", "completionTokensTotal", "cacheReadTokensTotal", "cacheCreationTokensTotal",
        "costUsdTotal", "contextTokens",
    }  # fmt: skip
    texts = {"id", "scope", "title", "modelId", "createdAt", "updatedAt"}
    assert set(view) == numbers | texts | {"credentialId"}
    assert all(type(view[name]) in (int, float) for name in numbers)
    assert all(isinstance(view[name], str) for name in texts)
