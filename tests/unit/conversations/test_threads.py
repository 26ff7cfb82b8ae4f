"""Conversations: listed, made, changed, put into the bin."""

import base64
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Update
from fermata.conversations import rows, threads
from fermata.words.blocks import TextBlock
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.errors import Invalid, NotFound
from tests.desk import TestClock
from tests.unit.conversations.messages import picture

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat"}))
BOB = Caller(tenant="bakery", user="bob", capabilities=frozenset({"ai.chat"}))
FLORIST = Caller(tenant="florist", user="ada", capabilities=frozenset({"ai.chat"}))


def make(desk: Desk, clock: TestClock, title: str | None = None, caller: Caller = ADA, scope: str = "site") -> str:
    clock.go_on(1)
    return threads.create(desk, caller, scope, title, None, "model-1").id


def titles(page: threads.Page) -> list[str]:
    return [conversation.title for conversation in page.conversations]


class TestTheList:
    def test_the_newest_comes_first_and_only_ones_own_of_the_scope(self, desk: Desk, clock: TestClock) -> None:
        for number in range(3):
            make(desk, clock, f"Mine {number}")
        make(desk, clock, "Bob's", caller=BOB)
        make(desk, clock, "The florist's", caller=FLORIST)
        make(desk, clock, "Content", scope="content")
        page = threads.newest(desk, ADA, "site", limit=10)
        assert titles(page) == ["Mine 2", "Mine 1", "Mine 0"]
        assert page.cursor is None

    def test_pages_follow_each_other_without_a_gap(self, desk: Desk, clock: TestClock) -> None:
        for number in range(7):
            make(desk, clock, f"{number}")
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = threads.newest(desk, ADA, "site", cursor=cursor, limit=3)
            seen, cursor = seen + titles(page), page.cursor
        assert seen == ["6", "5", "4", "3", "2", "1", "0"]
        assert cursor is None

    def test_a_page_that_ends_with_the_last_one_has_no_cursor(self, desk: Desk, clock: TestClock) -> None:
        for number in range(4):
            make(desk, clock, f"{number}")
        first = threads.newest(desk, ADA, "site", limit=2)
        assert threads.newest(desk, ADA, "site", cursor=first.cursor, limit=2).cursor is None

    def test_a_page_is_one_query(self, desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(30):
            make(desk, clock, f"{number}")
        asked: list[Any] = []
        query = desk.tables._client.query
        monkeypatch.setattr(desk.tables._client, "query", lambda **request: asked.append(request) or query(**request))
        assert len(threads.newest(desk, ADA, "site", limit=20).conversations) == 20
        assert len(asked) == 1

    def test_what_was_used_last_comes_first(self, desk: Desk, clock: TestClock) -> None:
        old = make(desk, clock, "Old")
        make(desk, clock, "New")
        clock.go_on(1)
        threads.change(desk, ADA, old, title="Old, renamed")
        assert titles(threads.newest(desk, ADA, "site", limit=5)) == ["Old, renamed", "New"]

    @pytest.mark.parametrize("odd", ["x", "é", "W10", "WzEsMl0", "bnVsbA", "_", "W" * 3000, "=", "/w"])
    def test_a_cursor_that_is_none_of_ours_is_refused(self, desk: Desk, odd: str) -> None:
        with pytest.raises(Invalid, match="nextCursor"):
            threads.newest(desk, ADA, "site", cursor=odd, limit=5)

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
    def test_one_that_was_forged_is_refused(self, desk: Desk, forged: str) -> None:
        cursor = base64.urlsafe_b64encode(forged.encode()).decode().rstrip("=")
        with pytest.raises(Invalid, match="nextCursor"):
            threads.newest(desk, ADA, "site", cursor=cursor, limit=5)

    def test_one_whose_conversation_was_used_or_removed_meanwhile_still_leads_on(
        self, desk: Desk, clock: TestClock
    ) -> None:
        made = [make(desk, clock, f"{number}") for number in range(4)]
        used = threads.newest(desk, ADA, "site", limit=1).cursor
        gone = threads.newest(desk, ADA, "site", limit=2).cursor
        clock.go_on(1)
        threads.change(desk, ADA, made[3], title="3, renamed")
        threads.remove(desk, ADA, made[2])
        assert titles(threads.newest(desk, ADA, "site", cursor=used, limit=5)) == ["1", "0"]
        assert titles(threads.newest(desk, ADA, "site", cursor=gone, limit=5)) == ["1", "0"]

    def test_anothers_cursor_leads_nowhere_but_into_ones_own_list(self, desk: Desk, clock: TestClock) -> None:
        mine = make(desk, clock, "Mine")
        for number in range(3):
            make(desk, clock, f"Bob's {number}", caller=BOB)
        cursor = threads.newest(desk, BOB, "site", limit=1).cursor
        page = threads.newest(desk, ADA, "site", cursor=cursor, limit=5)
        assert [conversation.id for conversation in page.conversations] == [mine]


class TestChanging:
    def test_what_is_given_changes_and_the_rest_stays(self, desk: Desk, clock: TestClock) -> None:
        made = make(desk, clock, "Home")
        changed = threads.change(desk, ADA, made, credential_id="c2", model_id="model-2")
        assert (changed.title, changed.credential_id, changed.model_id) == ("Home", "c2", "model-2")
        assert threads.change(desk, ADA, made, title="Start").model_id == "model-2"

    def test_nothing_given_changes_nothing(self, desk: Desk, clock: TestClock) -> None:
        made = make(desk, clock)
        before = threads.find(desk, ADA, made)
        clock.go_on(5)
        assert threads.change(desk, ADA, made) == before

    @pytest.mark.parametrize("caller", [BOB, FLORIST])
    def test_anothers_is_not_found(self, desk: Desk, clock: TestClock, caller: Caller) -> None:
        made = make(desk, clock)
        for act in (threads.find, threads.change, threads.remove):
            with pytest.raises(NotFound, match="Conversation not found"):
                act(desk, caller, made)

    @pytest.mark.parametrize("odd", ["", " ", "a/b", "é", "x" * 5_000, "c#m#00000000"])
    def test_what_is_no_id_of_ours_is_not_found_and_not_looked_for(self, desk: Desk, odd: str) -> None:
        with pytest.raises(NotFound, match="Conversation not found"):
            threads.find(desk, ADA, odd)


class TestTitles:
    def auto_titled(self, desk: Desk, conversation: str, title: str) -> Conversation:
        """As a prompt does it."""
        pk = rows.partition("bakery", conversation)
        named = "SET auto_title = if_not_exists(auto_title, :title)"
        desk.tables.write(Update("conversations", pk, "meta", named, {":title": title}))
        return threads.find(desk, ADA, conversation)

    def test_without_a_name_it_is_called_after_its_first_prompt(self, desk: Desk, clock: TestClock) -> None:
        made = make(desk, clock)
        assert threads.find(desk, ADA, made).title == threads.UNTITLED
        assert self.auto_titled(desk, made, "First").title == "First"
        assert self.auto_titled(desk, made, "Second").title == "First"

    def test_a_name_that_somebody_gave_wins_whenever_it_came(self, desk: Desk, clock: TestClock) -> None:
        for when in ("before", "after"):
            made = make(desk, clock)
            if when == "before":
                threads.change(desk, ADA, made, title="Mine")
            self.auto_titled(desk, made, "First prompt")
            threads.change(desk, ADA, made, title="Mine")
            assert threads.find(desk, ADA, made).title == "Mine"

    def test_the_placeholder_sent_as_a_title_is_none(self, desk: Desk, clock: TestClock) -> None:
        made = make(desk, clock, threads.UNTITLED)
        assert self.auto_titled(desk, made, "First").title == "First"

    @pytest.mark.parametrize(
        ("content", "title"),
        [
            ([TextBlock(text="  Add a\n footer ")], "Add a footer"),
            ([TextBlock(text="x" * 60)], "x" * 60),
            ([TextBlock(text="x" * 61)], "x" * 60 + "…"),
            ([TextBlock(text="Look"), picture()], "Look"),
            ([picture()], "Image"),
            ([picture(), picture()], "Images"),
        ],
    )
    def test_a_prompt_as_a_title(self, content: list[Any], title: str) -> None:
        assert threads.title_of(content) == title


class TestTheBin:
    def test_what_was_removed_is_gone_from_everywhere_and_removing_it_again_is_fine(
        self, desk: Desk, clock: TestClock
    ) -> None:
        made = make(desk, clock, "Home")
        for _ in range(2):
            assert threads.remove(desk, ADA, made).id == made
        assert titles(threads.newest(desk, ADA, "site", limit=5)) == []
        for act in (threads.find, threads.change):
            with pytest.raises(NotFound):
                act(desk, ADA, made)

    def test_a_removed_one_keeps_its_messages_for_the_operator(self, desk: Desk, clock: TestClock) -> None:
        made = make(desk, clock, "Home")
        threads.remove(desk, ADA, made)
        row = desk.tables.get("conversations", rows.partition("bakery", made), "meta")
        assert row is not None
        assert (row["deleted_at"], row["gpk"]) == (clock.instant(), threads.bin_of(made))


def test_its_view_has_the_contracts_members_and_no_other(desk: Desk, clock: TestClock) -> None:
    view = threads.view(threads.find(desk, ADA, make(desk, clock)))
    numbers = {
        "promptTokensTotal", "completionTokensTotal", "cacheReadTokensTotal", "cacheCreationTokensTotal",
        "costUsdTotal", "contextTokens",
    }  # fmt: skip
    texts = {"id", "scope", "title", "modelId", "createdAt", "updatedAt"}
    assert set(view) == numbers | texts | {"credentialId"}
    assert all(type(view[name]) in (int, float) for name in numbers)
    assert all(isinstance(view[name], str) for name in texts)
