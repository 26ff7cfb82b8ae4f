"""A confirmation flag counts only if the user has written a message after the same call was refused."""

from typing import Any

import pytest

from fermata.tools.tool import Access, Approval, Execution, Risk, Tool, ToolContext, ToolInput
from fermata.turns.approvals.confirmations import is_refusal
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block


class DeletePageInput(ToolInput):
    slug: str
    confirmed: bool | None = None


class Site:
    """A stage with pages that can be deleted."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.deleted: list[str] = []
        stage.add_tools(
            Tool(
                name="cms_deletePage",
                toolset="site",
                description="Deletes a page.",
                execution=Execution.SERVER,
                access=Access.WRITE,
                input_model=DeletePageInput,
                handler=self._delete,
                risk=Risk.HIGH,
                approval=Approval.NEVER,
                confirmation_flag="confirmed",
            )
        )

    def _delete(self, tool_input: DeletePageInput, _context: ToolContext) -> dict[str, Any]:
        self.deleted.append(tool_input.slug)
        return {"success": True, "deleted": tool_input.slug}

    def prompt(self, text: str, *calls: dict[str, Any]) -> list[Any]:
        """Run a turn whose model makes each of these calls in a round of its own; returns what it read of them."""
        self.stage.start_turn(text)
        rounds = [reply_with_calls(tool_call_block("cms_deletePage", **call)) for call in calls]
        self.stage.script_replies(*rounds, "Done.")
        assert self.stage.run_workflow() == "finished"
        return self.stage.results_sent_to_model()[-len(calls) :]


@pytest.fixture
def site(stage: Stage) -> Site:
    return Site(stage)


def test_a_delete_without_confirmation_changes_nothing_and_asks(site: Site) -> None:
    [result] = site.prompt("Delete the page about", {"slug": "about"})
    assert (result.ok, result.data["requiresConfirmation"]) == (False, True)
    assert "call it again with the same input and confirmed: true" in result.error
    assert site.deleted == []


def test_the_model_alone_cannot_confirm(site: Site) -> None:
    results = site.prompt(
        "Delete the page about",
        {"slug": "about", "confirmed": True},
        {"slug": "about"},
        {"slug": "about", "confirmed": True},
    )
    assert [result.data["requiresConfirmation"] for result in results] == [True, True, True]
    assert site.deleted == []


def test_a_message_of_the_user_after_the_refusal_confirms_it_once(site: Site) -> None:
    site.prompt("Delete the page about", {"slug": "about"})
    [result] = site.prompt("yes", {"slug": "about", "confirmed": True})
    assert result.data == {"success": True, "deleted": "about"}
    [result] = site.prompt("And again", {"slug": "about", "confirmed": True})
    assert result.data["requiresConfirmation"]
    assert site.deleted == ["about"]


def test_a_confirmation_is_for_the_same_input_only(site: Site) -> None:
    site.prompt("Delete the page about", {"slug": "about"})
    [result] = site.prompt("yes", {"slug": "contact", "confirmed": True})
    assert result.data["requiresConfirmation"]
    assert site.deleted == []


def test_a_confirmation_is_for_the_same_conversation_only(site: Site) -> None:
    site.prompt("Delete the page about", {"slug": "about"})
    site.stage.new_conversation()
    [result] = site.prompt("yes", {"slug": "about", "confirmed": True})
    assert result.data["requiresConfirmation"]


def test_a_late_answer_confirms_nothing(site: Site) -> None:
    site.prompt("Delete the page about", {"slug": "about"})
    site.stage.pass_time(2 * 86_400)
    [result] = site.prompt("yes", {"slug": "about", "confirmed": True})
    assert result.data["requiresConfirmation"]


def test_a_no_is_no_confirmation_whatever_the_model_says(site: Site) -> None:
    site.prompt("Delete the page about", {"slug": "about"})
    [result] = site.prompt("No!", {"slug": "about", "confirmed": True})
    assert "the user has declined it" in result.error
    assert site.deleted == []


@pytest.mark.parametrize(
    ("text", "is_no"),
    [
        ("no", True),
        ("N", True),
        ("No, don’t.", True),
        ("cancle", True),
        ("please stop", True),
        ("aborrt it", True),
        ("yes", False),
        ("y", False),
        ("go ahead", False),
        ("do it", False),
        ("proceed", False),
        ("all", False),
        ("ok", False),
        ("Delete it, and then say no more than one sentence about it", False),
        ("", False),
    ],
)
def test_short_messages_that_say_no_are_understood(text: str, *, is_no: bool) -> None:
    assert is_refusal(text) is is_no
