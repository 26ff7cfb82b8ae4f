"""Keep the steps of a request that is too large for one plan: one chain of a session, for an hour (decision 0391)."""

import json
from collections.abc import Sequence
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.errors import Conflict
from fermata.plans.drafts.draft_rows import DraftLocation

CHAIN_SECONDS = 3600
CHAIN_KEY = "d#chain"
MAX_CHAIN_STEPS = 10
MAX_STEP_CHARACTERS = 300
NO_CHAIN = "There is no chain of plans to go on with. It may have expired, or be done."
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
    """Return the chain of a session; None if there is none or its hour is over."""
    item = resources.tables.get_item(resources.settings.conversations_table, location.pk, CHAIN_KEY)
    if item is None or item["ttl"] <= resources.clock.time():
        return None
    return PlanChain.from_wire(json.loads(item["chain"]))


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


def begin_chain(resources: Resources, location: DraftLocation, plan_id: str, steps: Sequence[str]) -> PlanChain:
    """Store that steps follow the plan which was accepted now. An older chain is given up.

    Args:
        resources: Of the process.
        location: The draft.
        plan_id: Of the plan, the same for every repetition of its call.
        steps: At least one.
    """
    chain = PlanChain(id=plan_id, step=1, remaining=tuple(steps))
    stored = load_chain(resources, location)
    if stored is not None and stored.id == plan_id:
        return stored  # the call is repeated
    resources.tables.write_items(Put(resources.settings.conversations_table, _to_item(resources, location, chain)))
    return chain


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
    stored = load_chain(resources, location)
    if stored is None or stored.id != chain_id or stored.step > step:
        return None
    if stored.step == step:
        return stored
    table = resources.settings.conversations_table
    after = PlanChain(id=chain_id, step=step, remaining=stored.remaining[1:])
    condition, names = "id = :id AND #step = :step", {"#step": "step"}
    values: Item = {":id": chain_id, ":step": stored.step}
    put = Put(table, _to_item(resources, location, after), condition=condition, values=values, names=names)
    delete = Delete(table, location.pk, CHAIN_KEY, condition=condition, values=values, names=names)
    try:
        resources.tables.write_items(put if after.remaining else delete)
    except ConditionFailed:
        return None
    return after if after.remaining else None


def drop_chain(resources: Resources, location: DraftLocation) -> None:
    """Give up the chain of a session, if there is one."""
    resources.tables.write_items(Delete(resources.settings.conversations_table, location.pk, CHAIN_KEY))


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
