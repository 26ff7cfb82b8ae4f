"""A page that is read in parts stays in view, part by part, whatever the model's window."""

from typing import Any

from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import reply_with_calls, tool_call_block


def test_the_parts_of_a_page_that_fit_are_all_sent_and_the_newest_is_never_replaced_by_a_note(
    staged: MakeStage,
) -> None:
    for window, seen_parts in ((128_000, (1, 2, 3)), (32_768, (3,))):
        stage = staged(default_window_tokens=window)
        stage.start_turn()
        parts: list[dict[str, Any]] = [{"part": part} if part > 1 else {} for part in (1, 2, 3)]
        reads = [tool_call_block("read_document", document={"type": "page", "id": "index"}, **part) for part in parts]
        stage.script_replies(*(reply_with_calls(read) for read in reads), "I have read it.")
        for part in (1, 2, 3):
            assert stage.run_workflow() == "waiting"
            stage.answer_request({"ok": True, "data": {"html": f"part {part} " + "x" * 30_000}})
        assert stage.run_workflow() == "finished"
        sent = stage.driver.requests[3].model_dump_json()
        assert all(f'"part {part} xxx' in sent for part in seen_parts)
        assert "output removed" not in sent
