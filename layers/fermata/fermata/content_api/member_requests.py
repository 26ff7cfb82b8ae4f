"""Handle requests on the members of a space."""

from fermata.aws import observability
from fermata.content.content_space import read_space
from fermata.content.space_members import (
    SpaceMember,
    delete_member_list,
    list_members,
    put_member,
    remove_member,
)
from fermata.content_api.request_parts import locate_space
from fermata.wire.bodies.content_requests import MemberRights
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext


def list_space_members(context: RequestContext) -> Response:
    """Respond with the members of a space."""
    space = locate_space(context)
    read_space(context.resources, space)
    members = list_members(context.resources, space)
    views = [member.to_view() for member in members or ()]
    return Response(200, {"isListed": members is not None, "members": views})


def put_space_member(context: RequestContext) -> Response:
    """Add or change a member."""
    body, space, user = context.parse_body(MemberRights), locate_space(context), context.path_parameters["member"]
    models, locales = (None if found is None else frozenset(found) for found in (body.models, body.locales))
    member = put_member(context.resources, space, SpaceMember(user, body.role, models, locales))
    _log(context, "set", space.name, member=user, role=body.role)
    return Response(200, {"member": member.to_view()})


def remove_space_member(context: RequestContext) -> Response:
    """Remove a member."""
    space, user = locate_space(context), context.path_parameters["member"]
    remove_member(context.resources, space, user)
    _log(context, "removed", space.name, member=user)
    return Response(200, {"ok": True})


def delete_space_members(context: RequestContext) -> Response:
    """Delete the list of members."""
    space = locate_space(context)
    read_space(context.resources, space)
    delete_member_list(context.resources, space)
    _log(context, "list_deleted", space.name)
    return Response(200, {"ok": True})


def _log(context: RequestContext, what: str, space: str, **facts: str) -> None:
    caller = context.caller
    observability.log_audit_event(f"ai.member.{what}", tenant=caller.tenant, user=caller.user, space=space, **facts)
