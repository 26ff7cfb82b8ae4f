"""Snapshots: stored when they have changed, read only when a tool needs them (decision 0113)."""

from contextlib import suppress
from typing import Any

import pytest

from fermata.aws.blob_store import CompressedJson, compress_json
from fermata.aws.clock import new_id
from fermata.aws.lazy_snapshot import LazySnapshot, SnapshotContent
from fermata.domain.errors import Conflict, Gone
from fermata.turns.answer.submit_tool_result import ToolRequestGone, submit_tool_result
from tests.unit.turns.stage import OK, Stage, as_posted_snapshot, reply_with_calls, tool_call_block

BEFORE: dict[str, Any] = {"site": {"pages": []}, "page": {"id": "before"}}
AFTER: dict[str, Any] = {"site": {"pages": []}, "page": {"id": "after"}}


def list_blob_keys(stage: Stage) -> list[str]:
    listed = stage.resources.blobs._client.list_objects_v2(Bucket=stage.resources.settings.bucket)
    return [str(entry["Key"]) for entry in listed.get("Contents", [])]


def wait_with_snapshot(stage: Stage) -> str:
    """Run a turn until it waits for its editor, and return the key of its first snapshot."""
    stage.start_turn("Look at the page", snapshot=BEFORE)
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="a")), "I see.")
    assert stage.run_workflow() == "waiting"
    return stage.entries()[-1].state.snapshot_key


def test_an_unchanged_snapshot_is_not_stored_again(stage: Stage) -> None:
    """A process knows what it has stored. The first answer of a turn stores a snapshot in any case."""
    stage.start_turn("Look at the page", snapshot=BEFORE)
    stage.script_replies(
        reply_with_calls(tool_call_block("getNodeHtml", nodeId="a"), tool_call_block("getNodeHtml", nodeId="b"))
    )
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK, snapshot=BEFORE)
    key = stage.entries()[-1].state.snapshot_key
    stage.resources.blobs._client.delete_object(Bucket=stage.resources.settings.bucket, Key=key)
    stage.answer_request(OK, snapshot=BEFORE)
    assert stage.entries()[-1].state.snapshot_key == key
    assert key not in list_blob_keys(stage)


def test_an_answer_to_no_request_is_refused_whatever_its_snapshot(stage: Stage) -> None:
    wait_with_snapshot(stage)

    def fetch_expired() -> SnapshotContent:
        raise Gone("This upload is no longer kept.")

    with pytest.raises(ToolRequestGone):
        stage.answer_request(OK, "1.0.unknown", snapshot=LazySnapshot("digest", fetch_expired))


def test_refused_and_repeated_answers_fill_no_bucket(stage: Stage) -> None:
    """Results do not count towards the limits of stored bytes, so what they store has to be bounded."""
    wait_with_snapshot(stage)
    before = len(list_blob_keys(stage))
    stage.answer_request(OK, snapshot=AFTER)
    for number in range(10):
        with suppress(ToolRequestGone, Conflict):
            stage.answer_request({"ok": True, "data": number}, "1.0.unknown", snapshot={"page": number})
    for number in range(10):
        with pytest.raises(ToolRequestGone):
            submit_tool_result(
                stage.resources,
                stage.caller,
                bridge_id=new_id(),
                request_id="1.0.unknown",
                result=OK,
                snapshot=as_posted_snapshot({"page": number}),
            )
    assert len(list_blob_keys(stage)) <= before + 2


def test_the_next_tool_gets_the_changed_snapshot(stage: Stage) -> None:
    key = wait_with_snapshot(stage)
    stage.answer_request(OK, snapshot=AFTER)
    newest = stage.entries()[-1].state.snapshot_key
    assert newest != key
    assert stage.resources.blobs.get_json(newest) == AFTER


def titles(stage: Stage, request: int = -1) -> list[str]:
    """Return the titles in the newest result of `list_documents`."""
    (*_, newest) = stage.results_sent_to_model(request)
    return [document["title"] for document in newest.data["documents"]] if newest.ok else [str(newest.error)]


def site(*names: str, **more: Any) -> dict[str, Any]:
    pages = [{"id": name, "title": name, "slug": name, "rootNodeId": "root"} for name in names]
    return {"page": pages[0], "site": {"pages": pages, "breakpoints": [], "settings": {}} | more}


def test_a_tool_gets_the_prompts_snapshot_and_then_the_answers(stage: Stage) -> None:
    stage.start_turn("List", snapshot=site("Home"))
    stage.script_replies(
        reply_with_calls(
            tool_call_block("list_documents"),
            tool_call_block("getNodeHtml", nodeId="a"),
            tool_call_block("list_documents"),
        ),
        reply_with_calls(tool_call_block("list_documents")),
        "Done.",
    )
    stage.run_workflow()
    stage.answer_request(OK, snapshot=site("Home", "Shop"))
    assert stage.run_workflow() == "finished"
    before, _, after = stage.results_sent_to_model(1)
    assert [document["title"] for document in before.data["documents"]] == ["Home"]
    assert [document["title"] for document in after.data["documents"]] == ["Home", "Shop"]
    assert titles(stage) == ["Home", "Shop"]


@pytest.mark.parametrize("snapshot", [None, {"page": "not-a-page", "site": 42}, {}, [], "x", 7])
def test_without_a_readable_snapshot_the_prompt_has_a_placeholder_and_tools_say_why(
    stage: Stage, snapshot: Any
) -> None:
    stage.start_turn("List", snapshot=snapshot)
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "I cannot see it.")
    assert stage.run_workflow() == "finished"
    assert "Untitled" in stage.driver.requests[0].volatile
    assert "snapshot" in titles(stage)[0]
    assert stage.terminal_events()[0].type == "done"


def test_an_invalid_part_does_not_affect_tools_of_other_parts(stage: Stage) -> None:
    """Tools read the valid parts; only the prompt has a placeholder for the invalid ones."""
    stage.start_turn("List", snapshot=site("Home") | {"activeBreakpointId": {"not": "a string"}})
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "One page.")
    stage.run_workflow()
    assert "Untitled" in stage.driver.requests[0].volatile
    assert titles(stage) == ["Home"]


def test_a_snapshot_is_stored_once_compressed_and_never_in_the_workflow(stage: Stage) -> None:
    snapshot = site("Home", files=[{"blob": "data:image/png;base64," + "A" * 500_000}] * 4)
    stage.start_turn("List", snapshot=snapshot)
    key = stage.entries()[-1].state.snapshot_key
    head = stage.resources.blobs._client.head_object(Bucket=stage.resources.settings.bucket, Key=key)
    assert (head["ContentEncoding"], head["ContentLength"] < 50_000) == ("gzip", True)
    assert stage.resources.blobs.get_json(key) == snapshot
    stage.script_replies("Hello.")
    invocation = stage.make_invocation()
    stage.advance_turn(invocation)
    assert len(str(stage.workflow.outputs[invocation.token])) < 500


def test_a_compressed_snapshot_is_stored_unchanged_and_read_normally(stage: Stage) -> None:
    raw = b'{"page": {"id": "p", "title": "Home"}, "site": {"pages": [{"id": "p", "title": "Home"}]}}'
    stage.start_turn("List", snapshot=compress_json(raw))
    stage.script_replies(
        reply_with_calls(
            tool_call_block("list_documents"),
            tool_call_block("getNodeHtml", nodeId="a"),
            tool_call_block("list_documents"),
        ),
        "Done.",
    )
    stage.run_workflow()
    stage.answer_request(OK, snapshot=compress_json(raw.replace(b"Home", b"Shop")))
    stage.run_workflow()
    first, _, last = stage.results_sent_to_model()
    assert [document["title"] for document in first.data["documents"]] == ["Home"]
    assert [document["title"] for document in last.data["documents"]] == ["Shop"]


def test_a_turn_without_server_tools_never_reads_the_snapshot(stage: Stage) -> None:
    stage.start_turn("Hi", snapshot=BEFORE)
    stage.resources.blobs._client.delete_object(
        Bucket=stage.resources.settings.bucket, Key=stage.entries()[-1].state.snapshot_key
    )
    stage.script_replies("Hello.")
    assert stage.run_workflow() == "finished"


def test_the_same_prompt_with_the_same_upload_joins_its_turn(stage: Stage) -> None:
    def again(packed: CompressedJson) -> str:
        return stage.start_turn("Hi", snapshot=packed, idempotency_key="once").id

    assert again(compress_json(b'{"a": 1}')) == again(compress_json(b'{"a": 1}'))
    with pytest.raises(Exception, match="used for another request"):
        again(compress_json(b'{"a": 2}'))
