"""Find the space that a caller names, if the caller may read content, and the one that is meant if none is named."""

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey, list_spaces, parse_space_name, read_space
from fermata.content.space_members import require_membership
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Forbidden

CONTENT_READERS = (Capability.READ_CONTENT, Capability.WRITE_CONTENT, Capability.CONTENT)


def may_read_content(caller: Caller) -> bool:
    """Return whether a caller may read content."""
    return any(caller.has_capability(capability) for capability in CONTENT_READERS)


def find_space_for_caller(resources: Resources, caller: Caller, name: str) -> tuple[SpaceKey, ContentSpace]:
    """Return the space of the caller's tenant that a text names.

    Args:
        resources: Of the process.
        caller: Who names it.
        name: `site/environment`, or `site`.

    Raises:
        InvalidRequest: It is no such name.
        Forbidden: The caller may not read content, or is not a member of the space.
        NotFound: The tenant has no such space.
    """
    space = parse_space_name(caller.tenant, name)
    if not may_read_content(caller):
        raise Forbidden(f"Forbidden: a content space needs {Capability.READ_CONTENT}.")
    if not _is_for_space(caller, space):
        raise Forbidden(f"Forbidden: this key is not for {space.name}.")
    record = read_space(resources, space)
    require_membership(resources, space, caller)
    return space, record


def list_spaces_for_caller(resources: Resources, caller: Caller) -> list[tuple[SpaceKey, ContentSpace]]:
    """Return the spaces that a caller may read: all of the tenant, that of its key, or none."""
    found = list_spaces(resources, caller.tenant) if may_read_content(caller) else []
    return [(space, record) for space, record in found if _is_for_space(caller, space)]


def is_reviewed(caller: Caller) -> bool:
    """Return whether changes of a caller wait for a review where the workflow of a space says so.

    They do not if the caller may manage content, as in the studio.
    """
    return not caller.has_capability(Capability.CONTENT)


def _is_for_space(caller: Caller, space: SpaceKey) -> bool:
    return caller.space in ("", space.name)
