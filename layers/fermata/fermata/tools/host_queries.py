"""Asks the tenant's content system for a tool, and reads what it says.

Every answer is read through a model that takes what it knows and passes over the rest; where a known member is wrong,
the model is told its path. Where a tenant has no content system, tools answer from the editor's snapshot as far as
it reaches.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fermata.hosts.errors import HostError
from fermata.tools.schema.pydantic_errors import describe_pydantic_errors
from fermata.tools.site.data_tables import DataTable
from fermata.tools.site.snapshot import LenientModel, ModelT
from fermata.tools.tool import ToolContext, ToolFailure, TransientToolFailure

if TYPE_CHECKING:
    from fermata.hosts.client import HostClient


class HostItemNotFound(ToolFailure):
    """The content system has nothing of that name."""


class HostTables(LenientModel):
    tables: tuple[DataTable, ...]


class SnapshotTables(LenientModel):
    """Data tables inside a snapshot, in the form a content system gives them."""

    data_tables: tuple[DataTable, ...] = ()


def query_host(
    context: ToolContext, subject: str, query: "Callable[[HostClient], Any]", answer_model: type[ModelT]
) -> ModelT:
    """What the content system says; `what` is named where there is none to ask."""
    host = context.host()
    if host is None:
        raise missing_host_failure(context, subject)
    return read_host_answer(lambda: query(host), answer_model)


def read_host_answer(query: Callable[[], Any], answer_model: type[ModelT]) -> ModelT:
    try:
        return answer_model.from_wire(query())
    except HostError as failure:
        raise _in_our_words(failure) from failure
    except ValidationError as refused:
        sentence = f"The content system's answer cannot be understood: {describe_pydantic_errors(refused)[0]}."
        raise ToolFailure(f"{sentence} Its administrator has to mend that.") from None


def load_data_tables(context: ToolContext) -> tuple[DataTable, ...]:
    """All data tables of the tenant: the content system's, or those the snapshot carries."""
    host = context.host()
    if host is not None:
        return read_host_answer(host.list_tables, HostTables).tables
    carried = read_snapshot_tables(context.snapshot)
    if not carried:
        raise missing_host_failure(context, "The data tables")
    return carried


def read_snapshot_tables(snapshot: Any) -> tuple[DataTable, ...]:
    try:
        return SnapshotTables.from_wire(snapshot).data_tables
    except ValidationError:
        return ()


def missing_host_failure(context: ToolContext, subject: str) -> ToolFailure:
    return ToolFailure(
        f"{subject} can only be read from the site's own content system, and none is set up for it. An administrator "
        f"does that with: fermata tenant host {context.tenant} --url https://…"
    )


def _in_our_words(failure: HostError) -> ToolFailure:
    if failure.is_transient:
        return TransientToolFailure(str(failure))
    return HostItemNotFound(str(failure)) if failure.status == 404 else ToolFailure(str(failure))
