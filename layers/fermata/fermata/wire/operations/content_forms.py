"""Operations on forms: what visitors send without a token, and what moderators do with it."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.content_requests import NewCaptcha, NewSubmission, SubmissionDecision, SubmissionDecisions
from fermata.wire.operations.common import (
    API_PREFIX,
    CAN_MANAGE_CONTENT,
    CAN_READ_CONTENT,
    OK_RESPONSES,
    make_integer_parameter,
)
from fermata.wire.operations.content import CONTENT_PATH
from fermata.wire.operations.operation import Operation, PublicOperation, RequestParameter, SuccessResponse

_FORM_PATH = "/delivery/forms/{workspace}/{site}/{environment}/{model}"
_SUBMISSIONS_PATH = f"{CONTENT_PATH}/{{site}}/{{environment}}/submissions"
_SUBMISSION_PATH = f"{_SUBMISSIONS_PATH}/{{submission}}"
_CAN_MODERATE = (Capability.REVIEW_CONTENT, Capability.CONTENT)
_CAN_SEE = (*CAN_READ_CONTENT, Capability.REVIEW_CONTENT)
_NO_FORM = {404: "There is no form that visitors may send."}
_NO_SPACE = {400: "A name or a parameter is not as described.", 404: "There is no such site or environment."}
_NO_SUBMISSION = {400: "A name is not as described.", 404: "There is no such site, environment or submission."}
_SUBMISSION = RequestParameter(
    "submission", "The id of the submission.", {"type": "string"}, required=True, location="path"
)
_WORKSPACE = RequestParameter(
    "workspace", "The name of the workspace.", {"type": "string"}, required=True, location="path"
)
_KEY = RequestParameter(
    "Idempotency-Key",
    "The same visitor's form with the same key and values is stored once.",
    {"type": "string", "maxLength": 200},
    location="header",
)
_LOCALE = RequestParameter("locale", "The visitor's language.", {"type": "string", "maxLength": 40})
_ONE_SUBMISSION = (SuccessResponse("The submission.", "SubmissionResponse"),)
_UNDECIDED = {
    400: "The body is not as described, or `problems` says which rules of the model it breaks now.",
    409: "It has become an entry, a unique value is another entry's, or somebody else decides at the same moment.",
    413: "The entry is too large.",
    503: "Others keep changing the entry. Try again.",
}

SHOW_FORM = PublicOperation(
    name="showForm", function="api", method="GET", path=_FORM_PATH,
    summary="Show the fields of a form",
    parameters=(_WORKSPACE,),
    responses=(SuccessResponse("The form.", "FormResponse"),),
    errors=_NO_FORM,
    is_open_to_pages=True,
)  # fmt: skip
SUBMIT_FORM = PublicOperation(
    name="submitForm", function="api", method="POST", path=_FORM_PATH,
    summary="Send a form",
    description="As JSON, or as an HTML form sends it without a script (`application/x-www-form-urlencoded`). At most "
    "64 KB, and ten a minute from one address. A form whose honeypot is filled in is answered as any other, and is not "
    "stored.",
    parameters=(_WORKSPACE, _LOCALE, _KEY),
    body=NewSubmission,
    responses=(SuccessResponse("It was sent.", "SubmittedFormResponse", 201),),
    errors=_NO_FORM
    | {
        400: "The body is not as described, the captcha is not solved, or `problems` says which field is wrong.",
        402: "The workspace takes no submissions now.",
        413: "The form is too large.",
        429: "The visitor sends too many, or the form takes no more in this month.",
        503: "The captcha cannot be checked now.",
    },
    is_open_to_pages=True,
)  # fmt: skip
LIST_SUBMISSIONS = Operation(
    name="listSubmissions", function="api", method="GET", path=_SUBMISSIONS_PATH, capabilities=_CAN_SEE,
    summary="List the submissions of a form",
    description="What was sent, and by whom, is there for moderators: who has `ai.content.manage`, or "
    "`ai.content.review` and, in a space with members, the role of a reviewer. Others see which fields are filled in.",
    parameters=(
        RequestParameter("model", "The model.", {"type": "string", "maxLength": 40}, required=True),
        RequestParameter(
            "status", "pending without it.", {"type": "string", "enum": ["pending", "approved", "rejected", "spam"]}
        ),
        make_integer_parameter("limit", "The greatest number of submissions; 20 without it.", 1, 100),
        RequestParameter("cursor", "`nextCursor` of the page before.", {"type": "string", "maxLength": 40}),
    ),
    responses=(SuccessResponse("The newest first.", "SubmissionListResponse"),),
    errors=_NO_SPACE,
)  # fmt: skip
SHOW_SUBMISSION = Operation(
    name="showSubmission", function="api", method="GET", path=_SUBMISSION_PATH, capabilities=_CAN_SEE,
    summary="Show a submission",
    parameters=(_SUBMISSION,),
    responses=_ONE_SUBMISSION,
    errors=_NO_SUBMISSION,
)  # fmt: skip
DECIDE_SUBMISSION = Operation(
    name="decideSubmission", function="api", method="PATCH", path=_SUBMISSION_PATH, capabilities=_CAN_MODERATE,
    summary="Approve a submission, reject it, or call it spam",
    description="An approved one becomes an entry of its model, a draft, in the language of its visitor.",
    parameters=(_SUBMISSION,),
    body=SubmissionDecision,
    responses=_ONE_SUBMISSION,
    errors=_NO_SUBMISSION | _UNDECIDED,
)  # fmt: skip
DECIDE_SUBMISSIONS = Operation(
    name="decideSubmissions", function="api", method="POST", path=_SUBMISSIONS_PATH, capabilities=_CAN_MODERATE,
    summary="Decide about up to 50 submissions, or delete them",
    body=SubmissionDecisions,
    responses=(SuccessResponse("What became of each.", "SubmissionResultsResponse"),),
    errors=_NO_SPACE,
)  # fmt: skip
DELETE_SUBMISSION = Operation(
    name="deleteSubmission", function="api", method="DELETE", path=_SUBMISSION_PATH, capabilities=_CAN_MODERATE,
    summary="Delete a submission with all that is known of who has sent it",
    description="An entry that was made of it stays.",
    parameters=(_SUBMISSION,),
    responses=OK_RESPONSES,
    errors=_NO_SUBMISSION | {409: "Somebody else decides at the same moment."},
)  # fmt: skip
_CAPTCHA_PATH = f"{API_PREFIX}/content-git/{{site}}/{{environment}}/captcha"
_BAD_CAPTCHA = {400: "A name or the body is not as described, or there is no secret.", 404: "There is no such site."}
_CHANGED = {409: "Somebody else has changed it at the same moment."}
SHOW_CAPTCHA = Operation(
    name="showCaptcha", function="credentials", method="GET", path=_CAPTCHA_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Show the captcha of a site's forms",
    responses=(SuccessResponse("Its service and public key.", "CaptchaResponse"),),
    errors=_BAD_CAPTCHA,
)  # fmt: skip
STORE_CAPTCHA = Operation(
    name="storeCaptcha", function="credentials", method="PUT", path=_CAPTCHA_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Say which captcha the forms of a site have",
    description="The secret is sealed and never shown. Without one, that of the same service and public key stays.",
    body=NewCaptcha,
    responses=(SuccessResponse("Its service and public key.", "CaptchaResponse"),),
    errors=_BAD_CAPTCHA | _CHANGED,
)  # fmt: skip
REMOVE_CAPTCHA = Operation(
    name="removeCaptcha", function="credentials", method="DELETE", path=_CAPTCHA_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Forget the captcha of a site's forms",
    description="Forms that ask for one take nothing from then on.",
    responses=OK_RESPONSES,
    errors=_BAD_CAPTCHA | _CHANGED,
)  # fmt: skip
CAPTCHA_HANDLERS = (
    (SHOW_CAPTCHA, "captcha_requests:show_captcha"),
    (STORE_CAPTCHA, "captcha_requests:store_captcha"),
    (REMOVE_CAPTCHA, "captcha_requests:remove_captcha"),
)
SUBMISSION_HANDLERS = (
    (LIST_SUBMISSIONS, "submission_requests:list_space_submissions"),
    (SHOW_SUBMISSION, "submission_requests:show_submission"),
    (DECIDE_SUBMISSION, "submission_requests:decide_about_submission"),
    (DECIDE_SUBMISSIONS, "submission_requests:decide_about_submissions"),
    (DELETE_SUBMISSION, "submission_requests:remove_submission"),
)
PUBLIC_FORM_HANDLERS = ((SHOW_FORM, "form_requests:show_form"), (SUBMIT_FORM, "form_requests:submit_form"))
