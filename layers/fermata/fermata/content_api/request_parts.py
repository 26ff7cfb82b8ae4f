"""Read from a request which space it is about, who writes, what was seen; and respond with the version as an ETag."""

import re
from functools import partial
from typing import Any

from fermata.aws.clock import new_id
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import SpaceKey, check_space_names
from fermata.content.documents.change_document import ChangeOptions
from fermata.content.documents.document import ContentAuthor, DocumentKey
from fermata.content.documents.review_workflow import PROJECT_MODEL_ID
from fermata.content.space_access import is_reviewed, may_read_content
from fermata.content.space_members import MemberRole, SpaceMember, require_membership
from fermata.domain.caller import Capability
from fermata.domain.errors import Forbidden, InvalidRequest, VersionMismatch
from fermata.limits.count_use import count_single_use
from fermata.limits.usage_counters import Use
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext

_ETAG = re.compile(r'(?:W/)?"(?P<version>[0-9]{1,9})"')
_UNCACHED = {"Cache-Control": "private, no-cache"}
MAX_KEY_CHARS = 200


def locate_space(context: RequestContext, *writer_roles: MemberRole) -> SpaceKey:
    """Return the space of the path, in the tenant of the caller, who may do there what the request is about.

    Args:
        context: The request.
        writer_roles: The roles of which a member needs one for a request that changes something: `editor` without any.

    Raises:
        InvalidRequest: A name is none.
        Forbidden: The space has a list of members, and the caller is not on it, or may do less.
    """
    site, environment = context.path_parameters["site"], context.path_parameters["environment"]
    check_space_names(site, environment)
    space = SpaceKey(context.caller.tenant, site, environment)
    member = require_membership(context.resources, space, context.caller)
    if member is not None:
        _check_member(context, space, member, writer_roles or ("editor",))
    return space


def _check_member(
    context: RequestContext, space: SpaceKey, member: SpaceMember, writer_roles: tuple[MemberRole, ...]
) -> None:
    if context.request.method != "GET" and member.role not in writer_roles:
        needed = " or ".join(writer_roles)
        raise Forbidden(f"Forbidden: this needs the role {needed} in {space.name}, and yours is {member.role}.")
    model = context.path_parameters.get("model")
    if member.locales is not None or (member.models is not None and model not in member.models):
        raise Forbidden(
            f"Forbidden: you may work on a part of {space.name} only. The studio's agent shows you that part."
        )


def may_review(context: RequestContext, space: SpaceKey) -> bool:
    """Return whether the caller decides about changes and submissions of others, and so may see what strangers say.

    Args:
        context: The request.
        space: The space. A row of its list of members narrows rights, and is none (decision 0628).
    """
    caller = context.caller
    if caller.has_capability(Capability.CONTENT):
        return True
    if not may_read_content(caller) or not caller.has_capability(Capability.REVIEW_CONTENT):
        return False
    member = require_membership(context.resources, space, caller)
    return member is None or member.role == "reviewer"


def locate_document(context: RequestContext) -> DocumentKey:
    """Return the document of the path.

    Raises:
        InvalidRequest: A name is none.
    """
    key = DocumentKey(context.path_parameters["model"], context.path_parameters["document"])
    key.check()
    return key


def make_author(context: RequestContext) -> ContentAuthor:
    """Return the caller as the author of what is written."""
    return ContentAuthor(context.caller.user)


def read_options(context: RequestContext) -> ChangeOptions:
    """Return what a change depends on, by the headers `If-Match` and `Idempotency-Key`.

    Raises:
        InvalidRequest: A header is not as described.
    """
    headers = context.request.headers
    match, key = headers.get("if-match", ""), headers.get("idempotency-key", "")
    if len(key) > MAX_KEY_CHARS:
        raise InvalidRequest(f"'Idempotency-Key' may have at most {MAX_KEY_CHARS} characters.")
    effect = f"http/{context.caller.user}/{context.request.method} {context.request.path}/{key}" if key else ""
    expected = _parse_etag(match) if match not in ("", "*") else None
    count_bytes = partial(count_content_bytes, context)
    return ChangeOptions(expected, effect, count_bytes=count_bytes, is_reviewed=is_reviewed(context.caller))


MANAGED_MODELS = frozenset({META_MODEL, PROJECT_MODEL_ID})
"""Of documents that only who manages content changes: the models, and the settings of a project."""


def require_right_to_model(context: RequestContext, model: str) -> None:
    """Check that the caller may change documents of a model.

    Args:
        context: The request.
        model: Its id.

    Raises:
        Forbidden: It may not.
    """
    if model in MANAGED_MODELS and not context.caller.has_capability(Capability.CONTENT):
        raise Forbidden(f"Forbidden: models and the settings of a project need {Capability.CONTENT}.")


def _parse_etag(text: str) -> int:
    parsed = _ETAG.fullmatch(text.strip())
    if parsed is None:
        raise InvalidRequest("'If-Match' must be the ETag of a document.")
    if int(parsed["version"]) == 0:
        raise VersionMismatch("No document has this version.", version=0)
    return int(parsed["version"])


def is_current(context: RequestContext, version: int) -> bool:
    """Return whether the caller has this version already, by the header `If-None-Match`."""
    known = context.request.headers.get("if-none-match", "")
    return any(one.strip().removeprefix("W/") == f'"{version}"' for one in known.split(","))


def respond_with_version(status: int, version: int, body: Any) -> Response:
    """Respond with a version of something, which the header `ETag` names.

    Args:
        status: The status.
        version: The version.
        body: The body; None for none.
    """
    return Response(status, body, {"ETag": f'"{version}"', **_UNCACHED})


def count_body(context: RequestContext) -> None:
    """Count the body of a request as bytes that its caller stores.

    Raises:
        TooManyRequests: The user or the tenant has stored as many as may be stored in a day.
    """
    count_content_bytes(context, len(context.request.body))


def count_content_bytes(context: RequestContext, size: int) -> None:
    """Count what the caller of a request stores.

    Args:
        context: The request.
        size: In bytes.

    Raises:
        TooManyRequests: The user or the tenant has stored as many as may be stored in a day.
    """
    use = Use(stored_bytes=size)
    count_single_use(context.resources, context.caller, context.caller_limits, new_id(), use)
