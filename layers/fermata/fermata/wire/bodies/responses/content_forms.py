"""Define the response bodies of forms and their submissions."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel

_Status = Literal["pending", "approved", "rejected", "spam"]


class CaptchaView(ResponseModel):
    """The captcha that a visitor has to solve, with the public key of its service."""

    service: Literal["turnstile", "hcaptcha", "recaptcha"]
    site_key: str


class FormView(ResponseModel):
    """A form. `honeypot` is the name of a field that people must not see; empty for none."""

    model: str
    fields: dict[str, Any]
    honeypot: str
    locales: list[str]
    captcha: CaptchaView | None


class CaptchaResponse(ResponseModel):
    """The captcha of a site without its secret; null for none."""

    captcha: CaptchaView | None


class FormResponse(ResponseModel):
    form: FormView


class SubmittedFormResponse(ResponseModel):
    """What to tell the visitor."""

    ok: Literal[True]
    message: str


class SubmissionSenderView(ResponseModel):
    address: str | None = None
    agent: str | None = None
    referrer: str | None = None


class SubmissionView(ResponseModel):
    """A submission. `fields` names what is filled in; `data`, `sender` and `decidedBy` are there for moderators."""

    id: str
    model: str
    status: _Status
    locale: str | None = None
    created_at: InstantField
    decided_at: InstantField | None = None
    entry_id: str | None = None
    version: CountField
    expires_at: InstantField | None = None
    fields: list[str]
    data: dict[str, Any] | None = None
    sender: SubmissionSenderView | None = None
    decided_by: str | None = None


class SubmissionResponse(ResponseModel):
    submission: SubmissionView


class SubmissionListResponse(ResponseModel):
    """A page. `total` counts all of this status, up to 1,000."""

    submissions: list[SubmissionView]
    total: CountField
    next_cursor: str | None = None


class SubmissionResultView(ResponseModel):
    """What became of a submission: the status that a request about it alone would have had."""

    id: str
    status: int
    error: str | None = None


class SubmissionResultsResponse(ResponseModel):
    results: list[SubmissionResultView]
