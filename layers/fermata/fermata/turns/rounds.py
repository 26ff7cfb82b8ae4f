"""One round: take it, ask the provider, and commit what it said."""

import json
from dataclasses import replace

from fermata.aws import signals
from fermata.conversations.album import count_pictures
from fermata.conversations.recipient import TOKENS_PER_PICTURE
from fermata.credentials import using
from fermata.drivers.line import Line
from fermata.turns import pause as pauses
from fermata.turns.accounting import CHARS_PER_TOKEN, charge, dead_request
from fermata.turns.asking import Asked, account_alone, ask
from fermata.turns.calls import calls_of, run_at_once
from fermata.turns.commits import Commit
from fermata.turns.ending import Last, end
from fermata.turns.log import Ended, Superseded
from fermata.turns.pause import Pause
from fermata.turns.progress import settle
from fermata.turns.standing import Standing
from fermata.turns.work import Work
from fermata.usage.booking import book
from fermata.usage.ledger import Spent
from fermata.words.blocks import Block, ToolCallBlock
from fermata.words.errors import ProviderError
from fermata.words.events import Context, Done, End, Event, RoundRetracted, RoundStarted, ToolCall, TurnError, Warned
from fermata.words.model import Reply, Stop, Tokens

MOST_TRIES = 4
"""How often a round may be begun, when each time less of the conversation is sent."""
REFUSED = "The model declined to answer this"
CUT_OFF = "The answer was cut off at its longest allowed length. Ask for the rest, or for less at once."
INTERRUPTED = TurnError(
    message="The answer was interrupted and could not be continued. Send your message again.",
    code="interrupted",
    retryable=True,
)


def begin(work: Work) -> None:
    """Take the next round, or the current one from a function that died in the middle of it."""
    seen = work.log.standing
    if seen.phase != "asking":
        take(work, seen)
    elif may_start_over(work, seen):
        take(work, seen, (dead_request(work.desk, work.turn, seen, outcome="died"),))
    else:
        end(work.desk, work.turn, work.log, INTERRUPTED, expect=lambda now: now.begun == seen.begun)


def may_start_over(work: Work, standing: Standing) -> bool:
    """A round's request may be made anew a few times, and never once text was shown that cannot be taken back."""
    is_silent = standing.chars == 0
    return standing.tries < work.desk.settings.round_attempts and (is_silent or work.turn.retractable)


def take(work: Work, seen: Standing, unpaid: tuple[Spent, ...] = ()) -> None:
    """Append roundStarted as the round's newest owner, with the ledger rows of the request it replaces."""
    estimate = seen.estimate or _estimate(work)
    work.log.append(
        lambda now: (*_retraction(now), started(work, now)),
        lambda _made, _before: book(work.desk, unpaid),
        expect=lambda now: (now.phase, now.begun, now.owner) == (seen.phase, seen.begun, seen.owner),
        changes=lambda now: {**charge(now, unpaid), "estimate": estimate},
    )
    work.log.owner = work.wake.owner


def started(work: Work, standing: Standing) -> RoundStarted:
    same = standing.phase in ("asking", "calls")
    number = standing.round if same else standing.round + 1
    return RoundStarted(round=number, epoch=work.wake.epoch, owner=work.wake.owner)


def next_round(work: Work, pause: Pause) -> tuple[RoundStarted, ...]:
    """When that was the round's last call, the next round begins in the same breath."""
    if not pause.is_answered or not work.has_time_to_ask:
        return ()
    return (started(work, work.log.standing.replace(phase="ready")),)


def _retraction(standing: Standing) -> tuple[Event, ...]:
    return (RoundRetracted(round=standing.round),) if standing.phase == "asking" and standing.shown else ()


def _estimate(work: Work) -> int:
    """Prompt tokens of the first request, by what the conversation says; used when nobody reports the real number."""
    said = sum(_chars(block) for message in work.messages() for block in message.content)
    pictures = sum(map(count_pictures, work.messages()))
    return (said + len(work.turn.situation)) // CHARS_PER_TOKEN + pictures * TOKENS_PER_PICTURE


def _chars(block: Block) -> int:
    """Without pictures, whose characters are not what a provider counts."""
    if block.kind == "image":
        return 0
    without = block.model_copy(update={"images": None}) if block.kind == "toolResult" and block.images else block
    return len(json.dumps(without.wire()))


def run(work: Work, line: Line) -> None:
    """Ask, and commit the reply as ROUND or END; a request that failed is made anew or ends the turn."""
    asked = Asked()
    try:
        ask(work, line, asked)
        _take_in(work, asked)
    except (Ended, Superseded):
        account_alone(work, asked)
        raise


def _take_in(work: Work, asked: Asked) -> None:
    if asked.reply is not None:
        _conclude(work, asked, asked.reply)
        _count(asked, asked.reply)
        using.touch(work.desk, work.turn.tenant, work.turn.credential)
    elif asked.error is not None:
        _fail(work, asked, asked.error)


def _conclude(work: Work, asked: Asked, reply: Reply) -> None:
    calls = [block for block in reply.blocks if isinstance(block, ToolCallBlock)]
    is_last = work.log.standing.round >= work.turn.max_rounds
    if reply.stop is Stop.REFUSAL:
        _end(work, asked, reply, _refused(reply.refusal))
    elif calls and not is_last:
        _commit_calls(work, asked, reply, calls)
    elif reply.stop is Stop.PAUSE and not is_last:
        work.commit(replace(_commit(work, asked, reply), ready=True))
    else:
        _end(work, asked, reply, Done())


def _refused(reason: str | None) -> TurnError:
    said = f"{REFUSED}: {reason.rstrip('.')}." if reason else f"{REFUSED}."
    return TurnError(message=said, code="refused", retryable=False)


def _count(asked: Asked, reply: Reply) -> None:
    """Once the reply is told, so that nobody waits for it."""
    told = {"Rounds": 1.0, "PromptTokens": reply.tokens.context, "CompletionTokens": reply.tokens.completion}
    if asked.first_text is not None:
        told["TimeToFirstText"] = asked.first_text * 1000
    signals.count(told)


def _commit_calls(work: Work, asked: Asked, reply: Reply, blocks: list[ToolCallBlock]) -> None:
    """Each call is told. In the same breath come the results of instant tools, the browser's first request, and,
    when nothing is left to be waited for, the next round.
    """
    calls, standing = calls_of(work, blocks, is_truncated=reply.stop is Stop.MAX_TOKENS), work.log.standing
    pause = pauses.fresh(work.turn, standing.round, calls, planned=standing.revision)
    pause = pause.waited_for(work.wake.token, work.wake.epoch)
    progress = settle(pause, run_at_once(work, pause), now=work.desk.clock.time(), nonce=work.nonce())
    told = tuple(
        ToolCall(tool_call_id=call.tool_call_id, tool_name=work.on_the_wire(call.tool_name), input=call.input)
        for call in blocks
    )
    made = _commit(work, asked, reply)
    events = (*asked.left_over, *told, *_noted(reply))
    work.commit(replace(made, events=events, progress=progress, then=next_round(work, progress.pause)))


def _commit(work: Work, asked: Asked, reply: Reply) -> Commit:
    return Commit(
        tenant=work.turn.tenant,
        conversation=work.turn.conversation,
        turn=work.turn.id,
        round=work.log.standing.round,
        events=(*asked.left_over, *_noted(reply)),
        reply=reply.blocks,
        spent=asked.spent,
    )


def _end(work: Work, asked: Asked, reply: Reply, terminal: End) -> None:
    """A call that nobody will run any more is not kept."""
    content: tuple[Block, ...] = tuple(block for block in reply.blocks if not isinstance(block, ToolCallBlock))
    last = Last((*asked.left_over, *_noted(reply)), content, asked.spent, accounted=True)
    end(work.desk, work.turn, work.log, terminal, last)


def _fail(work: Work, asked: Asked, error: ProviderError) -> None:
    standing = work.log.standing
    signals.warn("provider.failed", turn=work.turn.id, round=standing.round, code=error.code, status=error.status)
    was_seen = standing.shown or asked.left_over  # what failed in silence was repeated in place (drivers/retry.py)
    if error.retryable and was_seen and may_start_over(work, standing):
        take(work, standing, asked.spent)
        return
    relief = {"provider_overflow": work.send_less, "provider_images": work.show_less}.get(error.code)
    if relief and not was_seen and standing.tries < MOST_TRIES and relief():
        take(work, standing, asked.spent)
        return
    terminal = TurnError(message=error.message, code=error.code, retryable=error.retryable)
    last = Last(asked.left_over, (), asked.spent, accounted=True)
    end(work.desk, work.turn, work.log, terminal, last)


def _noted(reply: Reply) -> tuple[Event, ...]:
    """How full the window is, as far as it is known; what the driver warns of; an answer that was cut off unasked."""
    calls_nothing = not any(block.kind == "toolCall" for block in reply.blocks)
    cut = CUT_OFF if reply.stop is Stop.MAX_TOKENS and calls_nothing else None
    context = (_context(reply.tokens),) if reply.tokens.context else ()
    return (*context, *(Warned(message=said) for said in (reply.warning, cut) if said))


def _context(tokens: Tokens) -> Context:
    return Context(
        prompt_tokens=tokens.prompt,
        context_tokens=tokens.context,
        cache_read_tokens=tokens.cache_read,
        cache_creation_tokens=tokens.cache_creation,
    )
