"""Keep the steps of a request that is too large for one plan: one chain of a session, for an hour (decision 0391)."""

import json
from dataclasses import dataclass
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.errors import Conflict
from fermata.plans.drafts.draft_rows import DraftLocation

CHAIN_SECONDS = 3600
CHAIN_KEY = "d#chain"
FIRST_STEP = 1
MAX_CHAIN_STEPS = 10
MAX_STEP_CHARACTERS = 300
NO_CHAIN = "There is no chain of plans to go on with. It may have expired, or be done."
PLANNED_STEP = "This step was planned by another request. Go on with the chain to plan the next one."
OTHER_CHAIN = "Another chain of plans is under way. Look at it first."


class PlanChain(DomainModel):
    """The steps that are left of a request.

    Attributes:
        id: Of the plan that has begun it.
        step: The number of the step whose plan was accepted last, from 1 on.
        remaining: What the steps after it are to do, in the words of the model.
    """

    id: str
    step: int
    remaining: tuple[str, ...]

    def to_continuation(self) -> dict[str, Any]:
        """Return how far the chain is, as clients are told."""
        return {
            "chainId": self.id,
            "currentStep": self.step,
            "totalSteps": self.step + len(self.remaining),
            "nextStepLabel": self.remaining[0],
        }

    def give_up(self) -> "PlanChain":
        """Return the chain without what is left of it."""
        return self.model_copy(update={"remaining": ()})


@dataclass(frozen=True)
class StepPlace:
    """Where a plan stands in a chain.

    Attributes:
        next_steps: What plans after this one are to do, if the request is too large for one. A step has none.
        chain_id: Of the chain whose step the plan is; empty for none.
        step: The number of that step.
    """

    next_steps: tuple[str, ...] = ()
    chain_id: str = ""
    step: int = 0


def read_steps(value: Any) -> tuple[str, ...]:
    """Return the steps that a model names: at most ten, without what is no text."""
    texts = (
        [one.strip()[:MAX_STEP_CHARACTERS] for one in value if isinstance(one, str)] if isinstance(value, list) else []
    )
    return tuple(text for text in texts if text)[:MAX_CHAIN_STEPS]


def load_chain(resources: Resources, location: DraftLocation) -> PlanChain | None:
    """Return the chain of a session; None if there is none, if nothing is left of it, or if its hour is over."""
    return _read_open_chain(resources, _load_row(resources, location))


def require_chain(resources: Resources, location: DraftLocation, chain_id: str) -> PlanChain:
    """Return the chain of a session.

    Args:
        resources: Of the process.
        location: The draft.
        chain_id: The chain that the user means; empty for whichever there is.

    Raises:
        Conflict: There is none, or another one.
    """
    chain = load_chain(resources, location)
    if chain is None:
        raise Conflict(NO_CHAIN)
    if chain_id and chain_id != chain.id:
        raise Conflict(OTHER_CHAIN)
    return chain


def build_chain_writes(
    resources: Resources, location: DraftLocation, plan_id: str, place: StepPlace
) -> tuple[Put, ...]:
    """Return the write by which a chain begins, or goes on, with a plan. It belongs to what accepts the plan.

    Args:
        resources: Of the process.
        location: The draft.
        plan_id: Of the plan, the same for every repetition of its call.
        place: Where the plan stands in its chain.

    Raises:
        Conflict: Another plan of the step was accepted.
    """
    if not place.chain_id and not place.next_steps:
        return ()
    row = _load_row(resources, location)
    if not place.chain_id:
        chain = PlanChain(id=plan_id, step=FIRST_STEP, remaining=place.next_steps)
        return (_build_put(resources, location, row, chain),)
    if row is None or row["id"] != place.chain_id:
        return ()  # another one has taken its place
    require_unplanned_step(row, place.step)
    stored = _read_open_chain(resources, row)
    chain = PlanChain(id=place.chain_id, step=place.step, remaining=stored.remaining[1:] if stored else ())
    return (_build_put(resources, location, row, chain),)


def require_unplanned_step(row: Item, step: int) -> None:
    """Refuse another plan of a step whose plan was accepted.

    Args:
        row: Of the chain.
        step: The number of the step.

    Raises:
        Conflict: The step is planned.
    """
    if row["step"] >= step:
        raise Conflict(PLANNED_STEP)


def find_chain_after(resources: Resources, location: DraftLocation, plan_id: str, place: StepPlace) -> PlanChain | None:
    """Return what is left of a chain after a plan that was accepted; None if nothing is, or if it has gone on since."""
    chain = load_chain(resources, location) if place.chain_id or place.next_steps else None
    expected = (place.chain_id, place.step) if place.chain_id else (plan_id, FIRST_STEP)
    return chain if chain is not None and (chain.id, chain.step) == expected else None


def drop_chain(resources: Resources, location: DraftLocation) -> None:
    """Give up the chain of a session, if there is one."""
    try:
        for write in build_chain_drop(resources, location):
            resources.tables.write_items(write)
    except ConditionFailed:
        return  # it was given up already, or goes on with the plan that another request has accepted


def build_chain_drop(resources: Resources, location: DraftLocation) -> tuple[Put, ...]:
    """Return the write that gives up the chain of a session; none if there is no chain."""
    row = _load_row(resources, location)
    stored = _read_open_chain(resources, row)
    return (_build_put(resources, location, row, stored.give_up()),) if stored else ()


def _load_row(resources: Resources, location: DraftLocation) -> Item | None:
    return resources.tables.get_item(resources.settings.conversations_table, location.pk, CHAIN_KEY)


def _read_open_chain(resources: Resources, row: Item | None) -> PlanChain | None:
    if row is None or row["ttl"] <= resources.clock.time():
        return None
    chain = PlanChain.from_wire(json.loads(row["chain"]))
    return chain if chain.remaining else None


def _build_put(resources: Resources, location: DraftLocation, row: Item | None, chain: PlanChain) -> Put:
    """Build the write that stores a chain in place of the row that was read.

    The row stays when nothing is left, for an hour. A copy of a write that lands late therefore finds another row, and
    cannot bring back a chain that is done.
    """
    table, item = resources.settings.conversations_table, _to_item(resources, location, chain)
    if row is None:
        return Put(table, item, if_absent=True)
    values: Item = {":id": row["id"], ":step": row["step"], ":chain": row["chain"]}
    condition = "id = :id AND #step = :step AND chain = :chain"
    return Put(table, item, condition=condition, values=values, names={"#step": "step"})


def _to_item(resources: Resources, location: DraftLocation, chain: PlanChain) -> Item:
    return {
        "pk": location.pk,
        "sk": CHAIN_KEY,
        "v": 1,
        "id": chain.id,
        "step": chain.step,
        "chain": json.dumps(chain.to_wire(), ensure_ascii=False),
        "ttl": int(resources.clock.time()) + CHAIN_SECONDS,
    }
