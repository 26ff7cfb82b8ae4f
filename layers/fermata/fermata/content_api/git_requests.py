"""Handle requests on the Git repository of a space. The modules that speak Git are loaded when it is asked."""

from fermata.aws import observability
from fermata.content.content_space import read_space
from fermata.content.git.git_remote import GitRemote, delete_git_remote, describe_git_remote, put_git_remote
from fermata.content_api.request_parts import count_body, locate_space, make_author
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.wire.bodies.content_requests import GitPull, GitPush, NewGitRemote
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext

DEFAULT_MESSAGE = "Update content"


def show_repository(context: RequestContext) -> Response:
    """Respond with the repository of a space."""
    space = locate_space(context)
    read_space(context.resources, space)
    return Response(200, {"repository": describe_git_remote(context.resources, space)})


def connect_repository(context: RequestContext) -> Response:
    """Store the repository of a space."""
    body, space = context.parse_body(NewGitRemote), locate_space(context)
    count_body(context)
    remote = GitRemote(url=body.url, branch=body.branch, root=body.root, username=body.username)
    put_git_remote(context.resources, space, remote, body.password)
    caller = context.caller
    observability.log_audit_event("ai.git.connected", tenant=caller.tenant, user=caller.user, space=space.name)
    return show_repository(context)


def disconnect_repository(context: RequestContext) -> Response:
    """Forget the repository of a space."""
    space, caller = locate_space(context), context.caller
    read_space(context.resources, space)
    delete_git_remote(context.resources, space)
    observability.log_audit_event("ai.git.disconnected", tenant=caller.tenant, user=caller.user, space=space.name)
    return Response(200, {"ok": True})


def show_repository_status(context: RequestContext) -> Response:
    """Respond with what a pull and a push would do."""
    from fermata.content.git.check_repository import check_repository

    return Response(200, check_repository(context.resources, locate_space(context)).to_view())


def pull_into_space(context: RequestContext) -> Response:
    """Pull the repository into the space."""
    from fermata.content.git.sync_repository import pull_repository

    body = context.parse_body(GitPull) if context.request.body.strip() else GitPull()
    count_body(context)
    summary = pull_repository(context.resources, locate_space(context), make_author(context), body.prefer)
    return Response(200, summary.to_view())


def push_from_space(context: RequestContext) -> Response:
    """Push the space to the repository."""
    from fermata.content.git.sync_repository import push_repository

    body = context.parse_body(GitPush) if context.request.body.strip() else GitPush()
    count_body(context)
    message = to_storable_json(body.message).strip() or DEFAULT_MESSAGE
    author = make_author(context)
    summary = push_repository(context.resources, locate_space(context), author, message, body.prefer)
    return Response(200, summary.to_view())
