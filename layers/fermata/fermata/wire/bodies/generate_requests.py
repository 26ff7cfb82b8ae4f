"""Define the body of a request to a model without a conversation."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from fermata.domain.errors import InvalidRequest
from fermata.domain.messages import Role
from fermata.domain.model_decisions import DecisionQuestion
from fermata.domain.model_io import SamplingSettings
from fermata.domain.one_shot_generation import DEFAULT_GENERATE_RETRIES, GenerateRequest
from fermata.domain.run_settings import OutputFormat
from fermata.wire.bodies.fields import ResourceId, StrictBody

MAX_GENERATE_CHARS = 400_000
MAX_GENERATE_MESSAGES = 200
MAX_GENERATE_QUESTIONS = 50
_GenerateText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_GENERATE_CHARS)]
_Share = Annotated[float, Field(strict=False, ge=0, le=1, allow_inf_nan=False)]
_Penalty = Annotated[float, Field(strict=False, ge=-1, le=1, allow_inf_nan=False)]


class GenerateMessage(StrictBody):
    """A message of a request. A system message is refused unless the request allows it."""

    role: Literal["user", "assistant", "system"]
    content: _GenerateText


class GenerateBody(StrictBody):
    """A prompt or messages for a text; with `schema` for an object; or `state` and `questions` for decisions.

    `backend` says where the confidence of decisions comes from: the model's own estimate (`structured-output`, as
    without it), or the probabilities of its next token (`evaluation`, of OpenAI's protocol and Gemini).
    """

    credential_id: ResourceId | None = None
    model_id: ResourceId | None = None
    prompt: _GenerateText | None = None
    messages: Annotated[list[GenerateMessage], Field(min_length=1, max_length=MAX_GENERATE_MESSAGES)] | None = None
    system: Annotated[str, StringConstraints(max_length=MAX_GENERATE_CHARS)] | None = None
    allow_system_in_messages: bool = False
    output_schema: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    schema_name: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    schema_description: Annotated[str, StringConstraints(max_length=2000)] | None = None
    state: Annotated[str, StringConstraints(max_length=MAX_GENERATE_CHARS)] | dict[str, Any] | list[Any] | None = None
    questions: Annotated[dict[str, dict[str, Any]], Field(min_length=1, max_length=MAX_GENERATE_QUESTIONS)] | None = (
        None
    )
    backend: Literal["structured-output", "evaluation"] | None = None
    temperature: Annotated[float, Field(strict=False, ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: _Share | None = None
    top_k: Annotated[int, Field(ge=1, le=100_000)] | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    stop_sequences: Annotated[list[_GenerateText], Field(max_length=16)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=200_000)] | None = None
    max_retries: Annotated[int, Field(ge=0, le=5)] = DEFAULT_GENERATE_RETRIES

    def to_generate_request(self) -> GenerateRequest:
        """Return what is asked. System messages follow the text of `system`.

        Raises:
            InvalidRequest: Members contradict each other, or a question is not as described.
        """
        self._check_kind()
        listed = self.messages or ()
        system = [self.system or "", *(message.content for message in listed if message.role == "system")]
        said: list[tuple[Role, str]] = [
            ("assistant" if message.role == "assistant" else "user", message.content)
            for message in listed
            if message.role != "system"
        ]
        sampling = {name: getattr(self, name) for name in SamplingSettings.model_fields}
        return GenerateRequest(
            messages=[("user", self.prompt)] if self.prompt else said,
            system="\n\n".join(part for part in system if part),
            credential=self.credential_id or "",
            model=self.model_id or "",
            output=self._build_output(),
            state=self.state,
            questions={name: _parse_question(name, question) for name, question in (self.questions or {}).items()},
            sampling=SamplingSettings(**(sampling | {"stop_sequences": tuple(self.stop_sequences or ())})),
            is_evaluated=self.backend == "evaluation",
            max_output_tokens=self.max_output_tokens,
            max_retries=self.max_retries,
        )

    def _check_kind(self) -> None:
        kinds = [kind for kind in (self.prompt, self.messages, self.questions) if kind is not None]
        if len(kinds) != 1:
            raise InvalidRequest("Send exactly one of prompt, messages and questions.")
        if self.prompt is not None and not _is_said(self.prompt):
            raise InvalidRequest("'prompt' is empty.")
        if (self.questions is None) != (self.state is None):
            raise InvalidRequest("Questions are about a state, and a state needs questions.")
        if self.questions is None and self.backend is not None:
            raise InvalidRequest("A backend is for questions: leave it out.")
        if self.questions is not None and self.output_schema is not None:
            raise InvalidRequest("Questions have a schema of their own: leave out schema.")
        listed = self.messages or ()
        if not self.allow_system_in_messages and any(message.role == "system" for message in listed):
            raise InvalidRequest("System messages are refused: use system, or set allowSystemInMessages.")
        if self.messages is not None and not any(_is_said(one.content) and one.role == "user" for one in listed):
            raise InvalidRequest("Send a message of a user.")

    def _build_output(self) -> OutputFormat | None:
        if self.output_schema is None:
            return None
        return OutputFormat(
            name=self.schema_name or "answer",
            description=self.schema_description or "",
            json_schema=self.output_schema,
        )


def _is_said(text: str) -> bool:
    return bool(text.strip())


def _parse_question(name: str, question: dict[str, Any]) -> DecisionQuestion:
    try:
        return DecisionQuestion.from_wire(question)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(map(str, (name, *detail["loc"])))[:200]
        problem = str(detail["msg"]).removeprefix("Value error, ").rstrip(".")
        raise InvalidRequest(f"The question {path} is not as described: {problem}.") from None
