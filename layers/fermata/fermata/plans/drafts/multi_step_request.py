"""Keep the steps of a request that is too large for one plan: one chain of a session, for an hour (decision 0391)."""

import json
from collections.abc import Sequence
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.errors import Conflict
from fermata.plans.drafts.draft_rows import DraftLocation

CHAIN_SECONDS = 3600
CHAIN_KEY = "d#chain"
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


def require_unplanned_step(resources: Resources, location: DraftLocation, chain_id: str, step: int) -> None:
    """Refuse a plan of a step for which another one was accepted since its turn has started.

    Args:
        resources: Of the process.
        location: The draft.
        chain_id: The chain whose step the plan is; empty for none.
        step: The number of the step.

    Raises:
        Conflict: The step is planned.
    """
    row = _load_row(resources, location) if chain_id else None
    if row is not None and row["id"] == chain_id and row["step"] >= step:
        raise Conflict(PLANNED_STEP)


def begin_chain(resources: Resources, location: DraftLocation, plan_id: str, steps: Sequence[str]) -> PlanChain | None:
    """Store that steps follow the plan which was accepted now. An older chain is given up.

    Args:
        resources: Of the process.
        location: The draft.
        plan_id: Of the plan, the same for every repetition of its call.
        steps: At least one.

    Returns:
        The chain; None if it was given up in the meantime.
    """
    chain = PlanChain(id=plan_id, step=1, remaining=tuple(steps))
    row = _load_row(resources, location)
    if row is not None and row["id"] == plan_id:
        return _read_open_chain(resources, row)  # the call is repeated
    return chain if _replace_chain(resources, location, row, chain) else None


def advance_chain(resources: Resources, location: DraftLocation, chain_id: str, step: int) -> PlanChain | None:
    """Store that the plan of a step was accepted. Doing it again changes nothing.

    Args:
        resources: Of the process.
        location: The draft.
        chain_id: The chain.
        step: The number of the step.

    Returns:
        The chain with what is left; None if nothing is, or if it was given up.
    """
    row = _load_row(resources, location)
    stored = _read_open_chain(resources, row)
    if stored is None or stored.id != chain_id or stored.step > step:
        return None
    if stored.step == step:
        return stored
    after = PlanChain(id=chain_id, step=step, remaining=stored.remaining[1:])
    return after if _replace_chain(resources, location, row, after) and after.remaining else None


def drop_chain(resources: Resources, location: DraftLocation) -> None:
    """Give up the chain of a session, if there is one."""
    row = _load_row(resources, location)
    if (stored := _read_open_chain(resources, row)) is not None:
        _replace_chain(resources, location, row, stored.model_copy(update={"remaining": ()}))


def _load_row(resources: Resources, location: DraftLocation) -> Item | None:
    return resources.tables.get_item(resources.settings.conversations_table, location.pk, CHAIN_KEY)


def _read_open_chain(resources: Resources, row: Item | None) -> PlanChain | None:
    if row is None or row["ttl"] <= resources.clock.time():
        return None
    chain = PlanChain.from_wire(json.loads(row["chain"]))
    return chain if chain.remaining else None


def _replace_chain(resources: Resources, location: DraftLocation, row: Item | None, chain: PlanChain) -> bool:
    """Store a chain in place of the row that was read. The row stays when nothing is left, for an hour.

    A copy of a write that lands late therefore finds another row, and cannot bring back a chain that is done.

    Returns:
        Whether it is stored. If not, the row has changed in the meantime.
    """
    table, item = resources.settings.conversations_table, _to_item(resources, location, chain)
    if row is None:
        put = Put(table, item, if_absent=True)
    else:
        values: Item = {":id": row["id"], ":step": row["step"], ":chain": row["chain"]}
        condition = "id = :id AND #step = :step AND chain = :chain"
        put = Put(table, item, condition=condition, values=values, names={"#step": "step"})
    try:
        resources.tables.write_items(put)
    except ConditionFailed as error:
        return error.item is not None and error.item["chain"] == item["chain"]
    return True


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
