"""Rows and objects of sub-agents are exported, deleted and erased with the conversation of the user who asked."""

import zlib
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.conversations import conversation_store
from fermata.conversations.purge import purge_deleted_conversations
from fermata.domain.blocks import ToolResultBlock
from fermata.drivers.protocols.shared_encoding import encode_result
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.erasure import SETTLING_SECONDS
from fermata.privacy.export import iter_export_lines
from fermata.privacy.privacy_job import create_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from tests.unit.privacy.filled_tenant import list_objects, list_rows
from tests.unit.turns.stage import reply_with_calls
from tests.unit.turns.sub_agents.sub_agent_stage import Family, ask

PRIVATE_TASK, PRIVATE_ANSWER = "private-task", "private-answer "
LARGE_ANSWER = PRIVATE_ANSWER * 4_000
"""More than a row may have: it is stored in the bucket, for the sub-agent and for the turn that has asked."""


def leave_traces(family: Family) -> None:
    """Run a turn whose sub-agents answer at length, then one that waits for a sub-agent."""
    family.start()
    family.script("site", reply_with_calls(ask("content", PRIVATE_TASK)), "Done.")
    family.script("content", reply_with_calls(ask("data", PRIVATE_TASK)), LARGE_ANSWER)
    family.script("data", PRIVATE_ANSWER)
    family.run()
    turn = family.start()
    family.script("site", reply_with_calls(ask("data", PRIVATE_TASK)))
    family.step(turn.id)


def find_private(resources: Resources) -> list[str]:
    rows = [f"{row['pk']}/{row['sk']}" for row in list_rows(resources) if "private-" in str(row)]
    objects = [key for key, body in list_objects(resources).items() if b"private-" in _unpack(body)]
    return [*rows, *objects]


def _unpack(body: bytes) -> bytes:
    return zlib.decompress(body, 31) if body.startswith(b"\x1f\x8b") else body


def test_a_large_answer_is_read_as_text_from_the_bucket(family: Family) -> None:
    leave_traces(family)
    agent, request = next(one for one in reversed(family.driver.requests) if len(one[1].messages) == 3)
    result = request.messages[-1].content[0]
    assert agent == "site"
    assert isinstance(result, ToolResultBlock)
    assert encode_result(result) == LARGE_ANSWER


@pytest.mark.parametrize("kind", ["conversation", "user"])
def test_an_erasure_ends_what_still_works_and_leaves_nothing(family: Family, kind: Any) -> None:
    resources = family.resources
    resources.blobs._client.put_bucket_versioning(
        Bucket=resources.settings.bucket, VersioningConfiguration={"Status": "Enabled"}
    )
    known = find_private(resources)  # objects of other tests of this file
    leave_traces(family)
    assert len(find_private(resources)) > len(known)
    caller = family.stage.caller
    subject_id = family.stage.conversation.id if kind == "conversation" else caller.user
    create_privacy_job(resources, "erasure", DataSubject(kind=kind, tenant=caller.tenant, id=subject_id))
    for _ in range(3):
        run_open_jobs(resources)
        family.stage.clock.advance(SETTLING_SECONDS)
    assert find_private(resources) == known
    assert not [row for row in list_rows(resources, "bridges") if row["sk"] == "turn"]


def test_an_export_holds_the_turns_and_messages_of_sub_agents(family: Family) -> None:
    leave_traces(family)
    caller = family.stage.caller
    subject = DataSubject(kind="conversation", tenant=caller.tenant, id=family.stage.conversation.id)
    lines = list(iter_export_lines(family.resources, subject))
    rows = [line["row"] for line in lines if "row" in line]
    turns = {row["pk"] for row in rows if row["sk"] == "turn"}
    assert {row["pk"] for row in list_rows(family.resources, "bridges") if row["sk"] == "turn"} == turns
    assert len(turns) == 5
    assert [row for row in rows if row["sk"].startswith("s#") and "private-task" in str(row)]


def test_a_deleted_conversation_is_purged_with_its_sub_agents(family: Family) -> None:
    leave_traces(family)
    family.stage.cancel_turn()
    resources = family.resources
    conversation_store.delete_conversation(resources, family.stage.caller, family.stage.conversation.id)
    family.stage.pass_time(60 * 86_400)
    purge_deleted_conversations(resources)
    assert list_rows(resources, "conversations") == []
    assert not [key for key in list_objects(resources) if key.startswith("conversations/") and "private" in key]
