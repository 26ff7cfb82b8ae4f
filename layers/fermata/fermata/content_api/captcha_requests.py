"""Handle requests on the captcha of a space."""

from fermata.aws import observability
from fermata.content.content_space import read_space
from fermata.content.forms.captcha_keys import CaptchaService, delete_captcha, put_captcha, read_captcha
from fermata.content_api.request_parts import locate_space
from fermata.wire.bodies.content_requests import NewCaptcha
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext


def show_captcha(context: RequestContext) -> Response:
    """Respond with the captcha of a space, without its secret."""
    space = locate_space(context)
    read_space(context.resources, space)
    keys = read_captcha(context.resources, space)
    return Response(200, {"captcha": keys.to_view() if keys else None})


def store_captcha(context: RequestContext) -> Response:
    """Store the captcha of a space."""
    body, space, caller = context.parse_body(NewCaptcha), locate_space(context), context.caller
    keys = put_captcha(context.resources, space, CaptchaService(body.service), body.site_key, body.secret)
    observability.log_audit_event("ai.captcha.stored", tenant=caller.tenant, user=caller.user, space=space.name)
    return Response(200, {"captcha": keys.to_view()})


def remove_captcha(context: RequestContext) -> Response:
    """Forget the captcha of a space."""
    space, caller = locate_space(context), context.caller
    read_space(context.resources, space)
    delete_captcha(context.resources, space)
    observability.log_audit_event("ai.captcha.removed", tenant=caller.tenant, user=caller.user, space=space.name)
    return Response(200, {"ok": True})
