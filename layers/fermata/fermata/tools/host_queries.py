"""Query the tenant's content system on behalf of a tool, and read its answer.

Answers are read with lenient models: unknown members are ignored, and the model receives the path of a known member
that has the wrong type. For a tenant without a content system, tools answer from the editor's snapshot as far as
possible.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fermata.hosts.errors import HostError
from fermata.tools.data_table_models import DataTable
from fermata.tools.lenient_models import LenientModel, ModelT
from fermata.tools.schema.pydantic_errors import describe_pydantic_errors
from fermata.tools.tool import ToolContext, ToolFailure, TransientToolFailure

if TYPE_CHECKING:
    from fermata.hosts.content_host import ContentHost


class HostItemNotFound(ToolFailure):
    """The content system has no item of that id."""


class HostTables(LenientModel):
    """All data tables of a content system."""

    tables: tuple[DataTable, ...]


class SnapshotTables(LenientModel):
    """Data tables inside a snapshot, in the form in which a content system answers them."""

    data_tables: tuple[DataTable, ...] = ()


def query_host(
    context: ToolContext, subject: str, query: "Callable[[ContentHost], Any]", answer_model: type[ModelT]
) -> ModelT:
    """Send a query to the tenant's content system and read the answer.

    Args:
        context: The context of the tool call.
        subject: What is queried, as the subject of the sentence that says that there is no content system.
        query: Calls one method of the client.
        answer_model: The model of the answer.

    Raises:
        HostItemNotFound: The content system answered 404.
        TransientToolFailure: The same query may succeed a moment later.
        ToolFailure: There is no content system, it refused the query, or its answer does not fit the model.
    """
    host = context.open_host()
    if host is None:
        raise missing_host_failure(context, subject)
    return read_host_answer(lambda: query(host), answer_model)


def read_host_answer(query: Callable[[], Any], answer_model: type[ModelT]) -> ModelT:
    """Run a query and read its answer; raises like `query_host`."""
    try:
        return answer_model.from_wire(query())
    except HostError as error:
        raise _failure_from_host_error(error) from error
    except ValidationError as error:
        sentence = f"The content system's answer cannot be understood: {describe_pydantic_errors(error)[0]}."
        raise ToolFailure(f"{sentence} Its administrator has to correct that.") from None


def load_data_tables(context: ToolContext) -> tuple[DataTable, ...]:
    """Load all data tables of the tenant from its content system or, if it has none, from the snapshot.

    Raises:
        ToolFailure: Neither has tables, or the content system failed.
    """
    host = context.open_host()
    if host is not None:
        return read_host_answer(host.list_tables, HostTables).tables
    snapshot_tables = read_snapshot_tables(context.snapshot)
    if not snapshot_tables:
        raise missing_host_failure(context, "The data tables")
    return snapshot_tables


def read_snapshot_tables(snapshot: Any) -> tuple[DataTable, ...]:
    """Read the data tables that a snapshot carries; none if it cannot be read."""
    try:
        return SnapshotTables.from_wire(snapshot).data_tables
    except ValidationError:
        return ()


def missing_host_failure(context: ToolContext, subject: str) -> ToolFailure:
    """Say that `subject` needs a content system, and how an administrator registers one."""
    return ToolFailure(
        f"{subject} can only be read from the site's own content system, and none is set up for it. An administrator "
        f"does that with: fermata tenant host {context.tenant} --url https://… or content:site/environment"
    )


def _failure_from_host_error(error: HostError) -> ToolFailure:
    if error.is_transient:
        return TransientToolFailure(str(error))
    return HostItemNotFound(str(error)) if error.status == 404 else ToolFailure(str(error))
