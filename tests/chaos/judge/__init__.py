"""Judge a run by its evidence: raw rows, HTTP answers, what providers were sent. No code is shared with the product.

problems = judge(evidence)        # the broken promises as sentences; empty when all were kept
"""

from collections.abc import Iterator

from tests.chaos.evidence import Evidence
from tests.chaos.judge.billing_rules import judge_billing_rules, judge_holds
from tests.chaos.judge.conversations import judge_conversations
from tests.chaos.judge.ledger_accounts_audits import judge_accounts, judge_audits, judge_ledger
from tests.chaos.judge.page_and_journal import judge_journal
from tests.chaos.judge.progress import judge_progress
from tests.chaos.judge.results_snapshots_titles import judge_results_snapshots_titles
from tests.chaos.judge.turns import judge_turns
from tests.chaos.judge.undo_reports import judge_undo_reports
from tests.chaos.judge.use_limits import judge_use_limits
from tests.chaos.judge.write_conditions import judge_landed_writes


def judge(evidence: Evidence) -> list[str]:
    return [
        *judge_turns(evidence),
        *judge_conversations(evidence),
        *judge_ledger(evidence),
        *judge_accounts(evidence),
        *judge_audits(evidence),
        *judge_billing_rules(evidence),
        *judge_holds(evidence),
        *judge_results_snapshots_titles(evidence),
        *judge_undo_reports(evidence),
        *judge_journal(evidence),
        *judge_landed_writes(evidence),
        *judge_progress(evidence),
        *judge_leftovers(evidence),
        *judge_use_limits(evidence),
        *(f"a provider would refuse: {refusal}" for refusal in evidence.refusals),
        *(f"a function failed: {error}" for error in evidence.errors),
        *evidence.complaints,
    ]


def judge_after_expiry(evidence: Evidence) -> list[str]:
    """Judge turns that began when the ones before, and deleted conversations, had expired."""
    return [
        *judge_turns(evidence),
        *judge_leftovers(evidence),
        *judge_purge(evidence),
        *(f"a function failed: {error}" for error in evidence.errors),
        *evidence.complaints,
    ]


def judge_purge(evidence: Evidence) -> Iterator[str]:
    """Nothing is left of a deleted conversation."""
    for conversation in sorted(evidence.deleted_conversations):
        rows = [row["sk"] for row in evidence.conversations if row["pk"].endswith(f"#c#{conversation}")]
        blobs = [key for key in evidence.blobs if key.startswith("conversations/") and conversation in key]
        if rows or blobs:
            yield f"conversation {conversation} was deleted, and {[*rows, *blobs]} are left"


def judge_leftovers(evidence: Evidence) -> Iterator[str]:
    """Nothing runs, is open or is claimed any more, and it did not take long."""
    live = (row for row in evidence.bridges if "open" in row and row.get("ttl", evidence.ended_at) >= evidence.ended_at)
    yield from (f"{row['pk']} is still open" for row in live)
    for row in evidence.conversations:
        if row["sk"] == "meta" and row.get("claim"):
            yield f"{row['pk']} is still claimed by {row['claim']}"
    yield from (f"execution {name} still runs" for name, status in evidence.executions.items() if status == "RUNNING")
    if evidence.seconds_to_quiet > evidence.seconds_allowed:
        yield f"it took {evidence.seconds_to_quiet:.0f} s after the last fault until nothing ran"
