"""What the editor shows, posted with every answer, and stored when it has changed."""

from typing import Any

from tests.unit.turns.stage import OK, Stage, call, calls

BEFORE: dict[str, Any] = {"site": {"pages": []}, "page": {"id": "before"}}
AFTER: dict[str, Any] = {"site": {"pages": []}, "page": {"id": "after"}}


def stored(stage: Stage) -> list[str]:
    listed = stage.desk.blobs._client.list_objects_v2(Bucket=stage.desk.settings.bucket)
    return [str(entry["Key"]) for entry in listed.get("Contents", [])]


def paused(stage: Stage) -> str:
    """A turn that waits for its editor; the key of the snapshot it was started with."""
    stage.start("Look at the page", snapshot=BEFORE)
    stage.says(calls(call("getNodeHtml", nodeId="a")), "I see.")
    assert stage.run() == "waiting"
    return stage.entries()[-1].standing.snapshot


def test_a_snapshot_that_did_not_change_is_not_stored_again(stage: Stage) -> None:
    key = paused(stage)
    stage.desk.blobs._client.delete_object(Bucket=stage.desk.settings.bucket, Key=key)
    stage.answer(OK, snapshot=BEFORE)
    assert stage.entries()[-1].standing.snapshot == key
    assert key not in stored(stage)


def test_a_changed_snapshot_is_the_one_the_next_tool_sees(stage: Stage) -> None:
    key = paused(stage)
    stage.answer(OK, snapshot=AFTER)
    newest = stage.entries()[-1].standing.snapshot
    assert newest != key
    assert stage.desk.blobs.get(newest) == AFTER
