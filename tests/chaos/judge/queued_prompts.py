"""Judge prompts that were sent while turns ran: each runs once, as it was edited last, or not at all."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.evidence import Evidence, Row
from tests.chaos.judge.conversations import read_text
from tests.chaos.judge.find_rows import read_log
from tests.chaos.judge.turns import MAX_REQUEST_SECONDS, SUPERSEDED
from tests.chaos.queuers import SentPrompt


def judge_queued_prompts(
    evidence: Evidence, sent: Sequence[SentPrompt], interrupters: Sequence[tuple[str, float]]
) -> Iterator[str]:
    """Judge the prompts; `interrupters` are names and moments of those that asked to end the running turn."""
    messages = defaultdict[str, list[Row]](list)
    for row in evidence.conversations:
        if row["sk"].startswith("m#") and row["role"] == "user":
            name = read_text(evidence, row).removeprefix("[turn ").partition(" ")[0]
            messages[name].append(row)
    rows = {row["sk"].removeprefix("q#"): row for row in evidence.bridges if row["sk"].startswith("q#")}
    for prompt in sent:
        own = messages.get(prompt.name, [])
        yield from (f"prompt {prompt.name}: {problem}" for problem in judge_prompt(evidence, prompt, own, rows))
        others = [at for name, at in interrupters if name != prompt.name]
        yield from (f"prompt {prompt.name}: {problem}" for problem in judge_interruption(evidence, own, others))
    waiting = [row["sk"] for row in rows.values() if row["state"] == "waiting" or "open" in row]
    yield from (f"{key} still waits though nothing runs" for key in waiting)


def judge_prompt(evidence: Evidence, prompt: SentPrompt, own: list[Row], rows: dict[str, Row]) -> Iterator[str]:
    """Compare what the client was told with the queue and with the turns that the prompt has."""
    if len(own) > 1:
        yield f"it has run {len(own)} times"
    if len(prompt.prompt_ids) > 1 or len(prompt.bridges) > 1:
        yield f"the same request was answered with {prompt.prompt_ids} and {prompt.bridges}"
    if prompt.bridges - {str(row["turn"]) for row in own}:
        yield f"its turn is {prompt.bridges}, and none of its messages is in there"
    if prompt.is_dropped and own:
        yield "it was dropped, and has run"
    states = {str(rows[one]["state"]) for one in prompt.prompt_ids if one in rows}
    if prompt.prompt_ids and not states:
        yield "it was queued, and is not in the queue"
    if "started" in states and not own:
        yield "the queue says that it has started, and it has no turn"
    if prompt.prompt_ids and states <= {"waiting", "dropped"} and own:
        yield f"the queue says {states}, and it has run"
    if own and prompt.edits and read_text(evidence, own[0]) != prompt.edits[-1]:
        yield f"it has run as {read_text(evidence, own[0])!r}, and was edited to {prompt.edits[-1]!r}"


def judge_interruption(evidence: Evidence, own: list[Row], others: Sequence[float]) -> Iterator[str]:
    """A turn is interrupted by another prompt only, and not by a repetition of its own."""
    requests = [at for turn in evidence.turns if turn.dialect == "instatic" for at in turn.requested_at]
    for row in own:
        for logged in read_log(evidence, str(row["turn"]))[-1:]:
            near = [at for at in (*others, *requests) if -10 < logged.at_ms / 1000 - at < MAX_REQUEST_SECONDS]
            if logged.event["type"] == "cancelled" and logged.event.get("reason") == SUPERSEDED and not near:
                yield "its turn was interrupted, and no other prompt asked for that"
