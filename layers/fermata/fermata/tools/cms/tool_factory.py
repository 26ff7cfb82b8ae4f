"""Make the tools of the CMS: who may call them, how long they take, and that a repeated call does its work once."""

from collections.abc import Mapping
from typing import Any

from fermata.domain.caller import Capability
from fermata.tools.cms.store_handler import StoreHandler, answer_from_store
from fermata.tools.tool import Access, Approval, Execution, JsonInput, Risk, Tool

_CAN_READ = frozenset({Capability.READ_CONTENT, Capability.WRITE_CONTENT, Capability.CONTENT})
_CAN_WRITE = frozenset({Capability.WRITE_CONTENT, Capability.CONTENT})
_TIMEOUT_SECONDS = 15.0


def make_cms_read(name: str, description: str, schema: Mapping[str, Any], handler: StoreHandler, *aliases: str) -> Tool:
    """Return a tool that reads from the space of the turn.

    Args:
        name: Its name in the seed.
        description: What the model reads.
        schema: The schema of its input.
        handler: Answers a call.
        aliases: Its names in other releases.
    """
    return Tool(
        name=name,
        toolset="cms",
        description=description,
        execution=Execution.SERVER,
        access=Access.READ,
        input_model=JsonInput,
        declared_schema=schema,
        handler=answer_from_store(handler),
        aliases=aliases,
        permissions=_CAN_READ,
        timeout_seconds=_TIMEOUT_SECONDS,
        idempotent=True,
    )


def make_cms_write(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    handler: StoreHandler,
    *aliases: str,
    risk: Risk = Risk.MODERATE,
    is_confirmed: bool = False,
    is_approved: bool = False,
) -> Tool:
    """Return a tool that writes to the space of the turn.

    It may be repeated, because the store carries out a call once by its effect key (decision 0451).

    Args:
        name: Its name in the seed.
        description: What the model reads.
        schema: The schema of its input.
        handler: Answers a call. Without its flag, that of a confirmed tool says what would be done.
        aliases: Its names in other releases.
        risk: As its documents state it.
        is_confirmed: Whether the user is asked first, by the member `confirmed`.
        is_approved: Whether a person approves each call.
    """
    return Tool(
        name=name,
        toolset="cms",
        description=description,
        execution=Execution.SERVER,
        access=Access.WRITE,
        input_model=JsonInput,
        declared_schema=schema,
        handler=answer_from_store(handler),
        aliases=aliases,
        permissions=_CAN_WRITE,
        risk=risk,
        approval=Approval.ALWAYS if is_approved else Approval.NEVER,
        confirmation_flag="confirmed" if is_confirmed else None,
        describes_unconfirmed=is_confirmed,
        timeout_seconds=_TIMEOUT_SECONDS,
        idempotent=True,
    )
