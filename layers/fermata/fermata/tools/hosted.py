"""Asks the tenant's content system for a tool, and reads what it says.

Every answer is read through a model that takes what it knows and passes over the rest; where a known member is wrong,
the model is told its path. Where a tenant has no content system, tools answer from the editor's snapshot as far as
it reaches.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fermata.hosts.failures import HostFailure
from fermata.tools.misread import misread
from fermata.tools.site.snapshot import Lenient, Part
from fermata.tools.site.tables import DataTable
from fermata.tools.tool import ToolContext, ToolFailure, TransientFailure

if TYPE_CHECKING:
    from fermata.hosts.host import Host


class Absent(ToolFailure):
    """The content system has nothing of that name."""


class Tables(Lenient):
    tables: tuple[DataTable, ...]


class Carried(Lenient):
    """Data tables inside a snapshot, in the form a content system gives them."""

    data_tables: tuple[DataTable, ...] = ()


def ask(context: ToolContext, what: str, question: "Callable[[Host], Any]", part: type[Part]) -> Part:
    """What the content system says; `what` is named where there is none to ask."""
    host = context.host()
    if host is None:
        raise no_host(context, what)
    return hear(lambda: question(host), part)


def hear(question: Callable[[], Any], part: type[Part]) -> Part:
    try:
        return part.read(question())
    except HostFailure as failure:
        raise _in_our_words(failure) from failure
    except ValidationError as refused:
        sentence = f"The content system's answer cannot be understood: {misread(refused)[0]}."
        raise ToolFailure(f"{sentence} Its administrator has to mend that.") from None


def tables(context: ToolContext) -> tuple[DataTable, ...]:
    """All data tables of the tenant: the content system's, or those the snapshot carries."""
    host = context.host()
    if host is not None:
        return hear(host.tables, Tables).tables
    carried = carried_tables(context.snapshot)
    if not carried:
        raise no_host(context, "The data tables")
    return carried


def carried_tables(snapshot: Any) -> tuple[DataTable, ...]:
    try:
        return Carried.read(snapshot).data_tables
    except ValidationError:
        return ()


def no_host(context: ToolContext, what: str) -> ToolFailure:
    return ToolFailure(
        f"{what} can only be read from the site's own content system, and none is set up for it. An administrator "
        f"does that with: fermata tenant host {context.tenant} --url https://…"
    )


def _in_our_words(failure: HostFailure) -> ToolFailure:
    if failure.is_passing:
        return TransientFailure(str(failure))
    return Absent(str(failure)) if failure.status == 404 else ToolFailure(str(failure))
