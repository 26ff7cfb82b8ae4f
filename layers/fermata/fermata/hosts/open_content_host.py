"""Open the content system that a tenant has chosen: a server of its own, or a space of the content store."""

from fermata.aws.resources import Resources
from fermata.hosts.auth import HostCaller
from fermata.hosts.client import connect_host, log_host_failure
from fermata.hosts.content_host import ContentHost
from fermata.hosts.registry import get_cached_host


def open_content_host(resources: Resources, caller: HostCaller) -> ContentHost | None:
    """Return the content system of the caller's tenant, or None if it has none.

    Args:
        resources: Of the process.
        caller: For whom it is asked.
    """
    record = get_cached_host(resources, caller.tenant)
    if record is None:
        return None
    if record.space is None:
        return connect_host(resources, caller, record)
    # imported here because few tenants of a process may have chosen the store
    from fermata.content.documents.document import ContentAuthor
    from fermata.content.opened_space import OpenedSpace
    from fermata.domain.caller import Caller
    from fermata.hosts.stored_content_host import StoredContentHost

    access = OpenedSpace(resources, record.space, ContentAuthor(caller.user, "agent", caller.turn))
    reader = Caller(tenant=caller.tenant, user=caller.user, capabilities=caller.capabilities)
    return StoredContentHost(access, reader, lambda request, error: log_host_failure(caller, request, error))
