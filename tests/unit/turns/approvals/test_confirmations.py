"""A confirmation flag counts only if the user has written a message after the same call was refused."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from fermata.tools.tool import Access, Approval, Execution, Risk, Tool, ToolContext, ToolInput
from fermata.turns.approvals.call_input_hash import hash_call_input
from fermata.turns.approvals.confirmations import ConfirmationCheck, is_refusal
from fermata.turns.prompt_queue.change_queue import edit_queued_prompt
from fermata.turns.prompt_queue.enqueue_prompt import start_or_enqueue
from fermata.turns.prompt_queue.queued_prompt import QueuedPrompt
from fermata.turns.prompt_queue.start_queued_prompt import start_next_prompt
from fermata.turns.start.start_turn import start_turn
from fermata.turns.turn import TurnParent
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


@pytest.mark.parametrize("parent", [None, TurnParent(turn="parent", effect_key="parent/1/0", depth=1, allowance=0)])
def test_a_sub_agent_confirms_nothing(site: Site, parent: TurnParent | None) -> None:
    """Its prompt is written by the model that asks it, which would be an answer of the model to itself."""
    stage = site.stage
    site.prompt("Delete the page about", {"slug": "about"})
    stage.pass_time(5)
    turn = stage.start_turn("Yes, delete it").model_copy(update={"parent": parent})
    context: Any = SimpleNamespace(turn=turn, resources=stage.resources, history=None)
    check = ConfirmationCheck(context)
    key = check._build_key(hash_call_input("cms_deletePage", {"slug": "about"}))
    assert check._was_asked_before(key) == (parent is None)


@pytest.mark.parametrize("is_edited", [False, True], ids=["as it was sent", "edited after the question"])
def test_a_prompt_that_was_queued_before_the_question_is_no_answer(site: Site, *, is_edited: bool) -> None:
    """The user has written "and publish it" while the turn ran, and has not seen that a page is to be deleted."""
    stage = site.stage
    call = tool_call_block("cms_deletePage", slug="about")
    stage.start_turn("Delete the page about")
    queue_prompt = partial(start_or_enqueue, stage.resources, stage.caller, stage.make_prompt("And publish it"))
    queued = queue_prompt(partial(start_turn, stage.resources, stage.caller))
    assert isinstance(queued, QueuedPrompt)
    stage.pass_time(5)
    stage.script_replies(reply_with_calls(call), "Shall I?")
    assert stage.run_workflow() == "finished"
    stage.pass_time(5)
    if is_edited:
        edit_queued_prompt(stage.resources, stage.caller, stage.conversation.id, queued.id, "Yes", version=None)
    started = start_next_prompt(stage.resources, stage.caller.tenant, stage.conversation.id)
    assert started is not None
    stage._turn, stage._waiting_token = started.turn, ""
    stage.script_replies(reply_with_calls(tool_call_block("cms_deletePage", slug="about", confirmed=True)), "Done.")
    assert stage.run_workflow() == "finished"
    assert site.deleted == (["about"] if is_edited else [])


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
