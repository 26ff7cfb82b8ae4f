"""Rules that decide nothing as long as others hold: each is dropped together with those that cover it.

With the cover gone, the rule alone keeps its promise. With the rule gone too, the judge says what is broken (decision
0403).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionCheck
from tests.chaos.mutants import HOLDS, LOG, REQUEST, forget_supersession
from tests.chaos.mutations import Mutation, change, drop_condition, replace


@dataclass(frozen=True)
class CoveredRule:
    """A rule that other rules cover.

    Attributes:
        drop_cover: Drops the rules that cover it, or makes what they prevent happen.
        drop: Drops the rule itself.
        broken_promise: What the judge says then, and not without.
        seed: A seed that shows it.
        kind: The kind of simulation; empty for a usual one.
    """

    drop_cover: Mutation
    drop: Mutation
    broken_promise: str
    seed: int = 0
    kind: str = ""


def _find_key_late(start: Callable[..., Any]) -> Callable[..., Any]:
    """Let the first look at the key of a request find nothing, as if it had come before START."""

    def start_once(
        resources: Any, caller: Any, key: str, digest: str, run: Callable[[], Any], read_item: Any = None
    ) -> Any:
        return start(resources, caller, key, digest, run, read_item and (lambda _key: None))

    return start_once


def _refuse_first_response(build: Callable[..., Any]) -> Callable[..., Any]:
    """Add a write that is refused to the first response of each turn, as any new write of a round may be."""
    refused: set[str] = set()

    def build_writes(resources: Any, usages: Any) -> Any:
        turns = {usage.turn for usage in usages} - refused
        if not turns:
            return build(resources, usages)
        refused.update(turns)
        check = ConditionCheck(resources.settings.bridges_table, "nothing", "nothing", "attribute_exists(pk)")
        return [*build(resources, usages), check]

    return build_writes


def _ask_again(context: Any, _outcome: Any) -> None:
    context.reload()


def _hold_nothing(build: Callable[..., Any]) -> Callable[..., Any]:
    """Write the row of a hold as one that is settled already, without the holds of its accounts."""

    def build_writes(*given: Any) -> Any:
        put = build(*given)[0]
        put.item["settled"] = put.item["name"]
        return [put]

    return build_writes


def _charge_open_holds_only(build: Callable[..., Any]) -> Callable[..., Any]:
    return lambda resources, row, usages, *, is_settled: build(
        resources, row, usages if is_settled else (), is_settled=is_settled
    )


def _do_not_keep(_sender: Any, _state: Any) -> None:
    return None


COVERED_RULES = {
    "a repeated request does not cancel the turn that it joins": CoveredRule(
        change("fermata.turns.start.start_turn.start_once", _find_key_late),
        replace("fermata.turns.start.start_turn.ensure_not_started", lambda *_: None),
        "its turn was interrupted, and no other prompt asked for that",
        seed=4,
        kind="queued-prompts",
    ),
    "a refused response leads to no further request": CoveredRule(
        change("fermata.turns.round_commit.build_request_writes", _refuse_first_response),
        replace("fermata.turns.round.run_round._end_after_refusal", _ask_again),
        "shows a text twice",
    ),
    "a message replaces no other one": CoveredRule(
        drop_condition("conversations", "meta"),
        drop_condition("conversations", "m#"),
        "its prompt is stored 0 times",
        seed=1,
    ),
    "a row is charged though no hold is left for it": CoveredRule(
        change(f"{HOLDS}._build_hold_writes", _hold_nothing),
        change(f"{HOLDS}._build_account_writes", _charge_open_holds_only),
        "has spent 0, the ledger",
    ),
    "a request's row has the attempt with which it began": CoveredRule(
        replace(f"{LOG}._check_may_write", forget_supersession),
        replace(f"{REQUEST}._begun_state", property(lambda sender: sender._context.log.state, _do_not_keep)),
        "the provider reported []",
        seed=2652,
    ),
}
