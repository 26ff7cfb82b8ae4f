"""Handle what visitors of a site send to the forms of its models (decision 0482). Nobody is signed in here."""

import hashlib
import json
from typing import Any
from urllib.parse import parse_qs

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.content.content_model import MODEL_ID, ContentModel
from fermata.content.content_space import SPACE_NAME, ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor
from fermata.content.documents.read_document import read_write_basis
from fermata.content.forms.approve_submission import approve_submission
from fermata.content.forms.captcha_keys import CaptchaKeys, read_captcha
from fermata.content.forms.check_captcha import RESPONSE_FIELDS, check_captcha
from fermata.content.forms.check_submission import check_submission
from fermata.content.forms.form_definition import FormDefinition, find_form
from fermata.content.forms.submission import (
    Submission,
    SubmissionSender,
    build_submission_puts,
    make_submission_id,
)
from fermata.domain.errors import (
    ApiError,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PaymentRequired,
    ServiceUnavailable,
    TooManyRequests,
)
from fermata.domain.plan_refusals import PlanLimitReached
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import PlanFeature, PlanMeter, Subscription
from fermata.limits.count_visitor import count_visitor
from fermata.limits.metered_uses import MeteredUse, is_use_reserved, reserve_metered_use
from fermata.wire.auth.tenant_store import find_tenant
from fermata.wire.bodies.content_requests import NewSubmission
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import HttpRequest, Response

MAX_FORM_BYTES = 64 * 1024
_MAX_FORM_VALUES = 200
_MAX_KEY_CHARS = 200
_FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
_NO_FORM = "There is no such form."


@value_dataclass(frozen=True)
class _OpenedForm:
    """A form that visitors may send."""

    space: SpaceKey
    record: ContentSpace
    model: ContentModel
    form: FormDefinition
    subscription: Subscription
    captcha: CaptchaKeys | None

    @property
    def name(self) -> str:
        """The form as counts and logs name it."""
        return f"{self.space.name}/{self.model.id}"


def show_form(resources: Resources, request: HttpRequest) -> Response:
    """Respond with the fields of a form, so that a page can draw it."""
    opened = _open_form(resources, request)
    fields = {name: field.to_wire() for name, field in opened.form.list_fields(opened.model).items()}
    form = opened.form
    view = {
        "model": opened.model.id,
        "fields": fields,
        "honeypot": form.honeypot,
        "locales": opened.record.locales,
        "captcha": opened.captcha.to_view() if opened.captcha else None,
    }
    return Response(200, {"form": view}, {"Cache-Control": "public, max-age=60"})


def submit_form(resources: Resources, request: HttpRequest) -> Response:
    """Store what a visitor has sent. A program that fills in the honeypot is told the same, and nothing is stored."""
    if len(request.body) > MAX_FORM_BYTES:
        raise PayloadTooLarge(f"A form may have at most {MAX_FORM_BYTES // 1024} KB. Shorten the texts.")
    opened = _open_form(resources, request)
    count_visitor(resources, opened.space.tenant, request.source, opened.name, opened.form.limits.per_minute)
    if opened.form.captcha and opened.captcha is None:
        observability.log_warning("form.captcha_missing", form=opened.name, tenant=opened.space.tenant)
        raise ServiceUnavailable("This form is not ready: its captcha is not set up. Write to the owner of the site.")
    values, locale, is_form_encoded = _read_values(request, opened)
    response = Response(201, {"ok": True, "message": opened.form.success_message})
    if opened.form.honeypot and values.pop(opened.form.honeypot, None):
        observability.log_warning("form.honeypot_filled", form=opened.name, tenant=opened.space.tenant)
        return response
    solution = values.pop(RESPONSE_FIELDS[opened.captcha.service], "") if opened.captcha else ""
    data = check_submission(values, opened.form.list_fields(opened.model), is_form_encoded=is_form_encoded)
    submission = _make_submission(resources, request, opened, data, locale)
    use = _make_use(request, opened, submission)
    _require_solved_captcha(resources, request, opened, use, solution)
    _store(resources, opened, submission, use)
    return response


def _require_solved_captcha(
    resources: Resources, request: HttpRequest, opened: _OpenedForm, use: MeteredUse, solution: Any
) -> None:
    """Return if the form has no captcha, or it is solved. A repeated request has used its solution up before.

    Raises:
        InvalidRequest: It is not solved.
        ServiceUnavailable: It cannot be checked.
    """
    if opened.captcha and not is_use_reserved(resources, opened.space.tenant, opened.subscription, use):
        check_captcha(resources, opened.space, opened.captcha, solution, request.source)


def _open_form(resources: Resources, request: HttpRequest) -> _OpenedForm:
    """Return the form of the path.

    Raises:
        NotFound: There is none for visitors. Nothing says why.
    """
    path = request.path_parameters
    names = (path["site"], path["environment"])
    if not all(map(SPACE_NAME.fullmatch, names)) or not MODEL_ID.fullmatch(path["model"]):
        raise NotFound(_NO_FORM)
    tenant = find_tenant(resources, path["workspace"])
    if tenant is None:
        raise NotFound(_NO_FORM)
    space = SpaceKey(tenant.name, *names)
    try:
        basis = read_write_basis(resources, space, [path["model"]])
        model = basis.require_model(path["model"])
    except NotFound:
        raise NotFound(_NO_FORM) from None
    form = find_form(model)
    if form is None:
        raise NotFound(_NO_FORM)
    captcha = read_captcha(resources, space) if form.captcha else None
    return _OpenedForm(space, basis.space, model, form, tenant.subscription, captcha)


def _read_values(request: HttpRequest, opened: _OpenedForm) -> tuple[dict[str, Any], str, bool]:
    """Return the values that were sent, the visitor's language, and whether an HTML form has sent them.

    Raises:
        InvalidRequest: The body is none of both forms, or the site has no such language.
    """
    is_form_encoded = request.headers.get("content-type", "").split(";")[0].strip().lower() == _FORM_MEDIA_TYPE
    if is_form_encoded:
        values, locale = _parse_form(request.body), request.query.get("locale", "")
    else:
        body = parse_body(request, NewSubmission)
        values, locale = to_storable_json(body.data), body.locale or request.query.get("locale", "")
    if locale and locale not in opened.record.locales:
        raise InvalidRequest(f"'locale' must be one of {', '.join(opened.record.locales)}.")
    return values, locale or opened.record.default_locale, is_form_encoded


def _parse_form(body: bytes) -> dict[str, Any]:
    try:
        parsed = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FORM_VALUES, errors="strict")
    except ValueError:
        raise InvalidRequest(f"The form cannot be read. It has UTF-8 and at most {_MAX_FORM_VALUES} values.") from None
    return {name: values[0] if len(values) == 1 else values for name, values in parsed.items()}


def _make_use(request: HttpRequest, opened: _OpenedForm, submission: Submission) -> MeteredUse:
    return MeteredUse(
        PlanMeter.FORM_SUBMISSIONS,
        _make_use_id(request, opened, submission),
        user=f"form\n{opened.name}",
        own_limit=opened.form.limits.per_month,
    )


def _store(resources: Resources, opened: _OpenedForm, submission: Submission, use: MeteredUse) -> None:
    """Store a submission together with what it counts as."""
    form = opened.form
    puts = build_submission_puts(resources.settings.content_table, opened.space, submission)
    try:
        reserved = reserve_metered_use(resources, opened.space.tenant, opened.subscription, use, puts)
    except PlanLimitReached as refused:
        text = "This form takes no more submissions this month. Write to the owner of the site instead."
        raise TooManyRequests(text, retry_after=refused.retry_after, reason="form_month") from None
    except PaymentRequired as refused:
        text = "This form takes no submissions now. Write to the owner of the site instead."
        raise PaymentRequired(text, reason=refused.reason) from None
    if (
        form.auto_approve
        and not reserved.is_repeated
        and opened.subscription.has_feature(PlanFeature.FORM_AUTO_APPROVE)
    ):
        _approve_at_once(resources, opened, submission)


def _make_submission(
    resources: Resources, request: HttpRequest, opened: _OpenedForm, data: dict[str, Any], locale: str
) -> Submission:
    now, days = resources.clock.time(), opened.form.keep_days
    headers = request.headers
    sender = SubmissionSender(
        address=request.source[:64],
        agent=to_storable_json(headers.get("user-agent", "")[:300]),
        referrer=to_storable_json(headers.get("referer", "")[:500]),
    )
    return Submission(
        id=make_submission_id(now),
        model=opened.model.id,
        data=data,
        locale=locale,
        sender=sender,
        created_at=resources.clock.now_iso(),
        expires=int(now) + days * 86_400 if days else 0,
    )


def _make_use_id(request: HttpRequest, opened: _OpenedForm, submission: Submission) -> str:
    """Return the same id for the same request with the same key; otherwise a new one.

    Raises:
        InvalidRequest: The key is too long.
    """
    key = request.headers.get("idempotency-key", "")
    if len(key) > _MAX_KEY_CHARS:
        raise InvalidRequest(f"'Idempotency-Key' may have at most {_MAX_KEY_CHARS} characters.")
    if not key:
        return f"{opened.name} {submission.id}"
    said = json.dumps([opened.name, key, request.source, submission.locale, submission.data], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _approve_at_once(resources: Resources, opened: _OpenedForm, submission: Submission) -> None:
    """Make a submission an entry. One that is refused waits for a moderator."""
    try:
        approve_submission(resources, opened.space, submission, ContentAuthor(f"form:{opened.model.id}", "import"))
    except ApiError as refused:
        # Not its words, which may have what the visitor has sent.
        reason = refused.code or type(refused).__name__
        facts = {"form": opened.name, "tenant": opened.space.tenant, "reason": reason}
        observability.log_warning("form.not_approved", **facts)
