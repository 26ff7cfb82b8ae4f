"""Ask the provider: one request (and its silent retries), its text flowing into the log as it comes."""

import contextlib
from dataclasses import dataclass, field

from fermata.aws.dynamo import ConditionFailed
from fermata.credentials import opening
from fermata.drivers.driver import Endpoint, driver_for
from fermata.drivers.line import Line
from fermata.drivers.retry import with_retries
from fermata.turns.accounting import CHARS_PER_TOKEN, hold, spent
from fermata.turns.vigil import Vigil
from fermata.turns.work import Work
from fermata.usage.ledger import Spent, row
from fermata.words.errors import PaymentRequired, ProviderError, Refusal
from fermata.words.events import Reasoning, Text
from fermata.words.model import Ask, Reply, TextDelta, Tokens

WITHOUT_REPLY = "The provider ended its answer without a last word."


@dataclass
class Asked:
    """How far it came: a reply or an error, text not yet in the log, and what each request used."""

    reply: Reply | None = None
    error: ProviderError | None = None
    left_over: tuple[Text | Reasoning, ...] = ()
    failed: list[Spent] = field(default_factory=list)
    """Requests that failed in silence and were repeated."""
    last: Spent | None = None
    first_text: float | None = None
    """Seconds until the first text was in the log."""

    @property
    def spent(self) -> tuple[Spent, ...]:
        return (*self.failed, self.last) if self.last else tuple(self.failed)


def ask(work: Work, line: Line, asked: Asked) -> None:
    """Raises LostRace as soon as the turn has ended or somebody newer works on the round."""
    turn, standing = work.turn, work.log.standing
    try:
        hold(work.desk, turn, standing.round, standing.tries, standing.expected_prompt)
    except Refusal as refusal:
        is_spent = isinstance(refusal, PaymentRequired)
        asked.error = ProviderError("budget_exhausted" if is_spent else "busy", refusal.error, retryable=not is_spent)
        return
    try:
        endpoint = opening.endpoint(work.desk, turn.tenant, turn.credential, turn.credential_version)
    except Refusal as refusal:
        asked.error = ProviderError("provider_auth", refusal.error, retryable=False)
        return
    _listen(work, line, endpoint, asked)
    if asked.reply is not None:
        asked.last = _spent(work, asked, asked.reply.tokens, "ok", known=asked.reply.tokens_known)
    else:
        asked.error = asked.error or ProviderError("provider_error", WITHOUT_REPLY, retryable=True)
        asked.last = _failed(work, asked, asked.error)


def account_alone(work: Work, asked: Asked) -> None:
    """Whoever won the race accounts for the request under way, but knows of none that failed before it."""
    for told in asked.failed:
        with contextlib.suppress(ConditionFailed):
            work.desk.tables.write(row(work.desk, told))


def _listen(work: Work, line: Line, endpoint: Endpoint, asked: Asked) -> None:
    def on_failed(_number: int, error: ProviderError) -> None:
        asked.failed.append(_failed(work, asked, error))

    driver, request, begun = driver_for(work.turn.provider), _request(work), work.desk.clock.monotonic()
    tries = work.desk.settings.provider_tries
    with line.call(), Vigil(work.desk, work.log, work.pulse, line.hang_up) as vigil:
        try:
            for piece in with_retries(driver, request, line, endpoint, on_failed, tries=tries):
                if isinstance(piece, Reply):
                    asked.reply = piece
                else:
                    vigil.write(Text(text=piece.text) if isinstance(piece, TextDelta) else Reasoning(text=piece.text))
        except ProviderError as error:
            asked.error = error
        asked.left_over = vigil.left_over()
    if vigil.first is not None:
        asked.first_text = vigil.first - begun


def _request(work: Work) -> Ask:
    """On the last round the tools may no longer be called, so that the turn ends with an answer."""
    turn = work.turn
    return Ask(
        model=turn.model,
        system=work.system,
        volatile=turn.situation,
        messages=work.messages(),
        tools=work.tools,
        max_tokens=work.desk.settings.longest_answer,
        thinking_tokens=turn.thinking_tokens,
        call_tools=work.log.standing.round < turn.max_rounds,
        scope=turn.scope,
        window_tokens=work.desk.settings.ollama_window,
    )


def _failed(work: Work, asked: Asked, error: ProviderError) -> Spent:
    """What the provider had told until it broke off, and at least what was shown; a silent failure used nothing."""
    shown = work.log.standing.shown + sum(len(event.text) for event in asked.left_over)
    completion = -(-shown // CHARS_PER_TOKEN)
    used = error.tokens or Tokens(prompt=work.log.standing.expected_prompt if shown else 0)
    used = used.model_copy(update={"completion": max(used.completion, completion)})
    return _spent(work, asked, used, error.code, known=not (used.context or used.completion))


def _spent(work: Work, asked: Asked, tokens: Tokens, outcome: str, *, known: bool = True) -> Spent:
    standing = work.log.standing
    return spent(
        work.desk,
        work.turn,
        tokens,
        round_=standing.round,
        attempt=standing.tries,
        tried=len(asked.failed) + 1,
        outcome=outcome,
        billable=outcome == "ok",
        estimated=not known,
    )
