"""Judge what counts against limits: exactly the turns that run, in each of the ways in which a row tells them."""

from collections.abc import Iterator

from tests.chaos.evidence import TERMINAL_TYPES, Evidence
from tests.chaos.judge.find_rows import read_log, turn_of

LEASE = "x#"
LEASES_ATTRIBUTE = "leases"


def judge_use_limits(evidence: Evidence) -> Iterator[str]:
    """No turn that has ended counts for its user or its tenant, and no more turns count than may run at once."""
    for owner, limit in evidence.turn_limits.items():
        most = max((taken.count for taken in evidence.turns_at_once if taken.owner == owner), default=0)
        if most > limit:
            yield f"{most} turns of a {owner} counted at once, and the limit is {limit}"
    turns = {turn_of(row) for row in evidence.bridges if row["sk"] == "turn"}
    ended = {turn for turn in turns if (log := read_log(evidence, turn)) and log[-1].event["type"] in TERMINAL_TYPES}
    for row in evidence.bridges:
        if "#limits#" in row["pk"] and row["sk"] == "counts":
            leases = {name.removeprefix(LEASE) for name in row if name.startswith(LEASE)}
            for turn in sorted(ended & (leases | set(row.get(LEASES_ATTRIBUTE, ())))):
                yield f"turn {turn} has ended, and counts in {row['pk']}"
            if lost := set(row.get(LEASES_ATTRIBUTE, ())) - leases:
                yield f"{row['pk']} counts {lost}, of which it does not know when they expire"
