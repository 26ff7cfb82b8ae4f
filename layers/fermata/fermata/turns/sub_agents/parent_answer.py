"""Answer the call of the turn that has asked a sub-agent, in the transaction that ends the sub-agent's turn."""

from collections.abc import Sequence
from dataclasses import replace

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import Update, Write
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.domain.tools import ToolOutput
from fermata.turns.call_transitions import apply_outputs
from fermata.turns.pause import Pause, load_pause
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import CommitResult, RoundCommit, prepare_round_commit
from fermata.turns.turn import Turn, TurnParent, load_turn
from fermata.turns.turn_log import TurnEnded, TurnLog
from fermata.turns.turn_state_from_log import TurnState


class ParentAnswer:
    """The part of END that concerns the turn which has asked. `load` it again when its writes were refused."""

    def __init__(self, resources: Resources, turn: Turn, parent: TurnParent) -> None:
        self._resources = resources
        self._turn = turn
        self._parent = parent
        self._pause: Pause | None = None
        self._log: TurnLog | None = None
        self._prepared: CommitResult | None = None
        self._is_conversation_gone = False

    def load(self) -> None:
        """Read the pause that waits for the answer, and the end of its turn's log."""
        parent_turn = load_turn(self._resources, self._turn.tenant, self._parent.turn)
        self._pause = load_pause(self._resources, parent_turn, self._parent.round) if parent_turn else None
        self._log = None
        if self._find_call() is None or self._pause is None:
            return
        pause = self._pause
        log = TurnLog(self._resources, pause.partition, pause.last_entry_number, pause.next_number, pause.turn_state)
        try:
            log.read_new_entries()
        except TurnEnded:
            return
        self._log = log

    def reload(self) -> bool:
        """Read everything again after a refusal. Returns whether the turn that has asked has moved on."""
        seen = self._describe_place()
        self.load()
        return self._describe_place() != seen

    def leave_conversation(self) -> bool:
        """Write no usage to the conversation, because it is gone. Returns False if that was so before."""
        was_there = not self._is_conversation_gone
        self._is_conversation_gone = True
        return was_there

    def _describe_place(self) -> tuple[int, int]:
        return (self._pause.version if self._pause else 0, self._log.next_number if self._log else 0)

    def _find_call(self) -> RoundCall | None:
        """Return the call if it still waits for this turn."""
        calls = self._pause.calls if self._pause else ()
        return next((call for call in calls if call.child_turn == self._turn.id and call.has_running_child), None)

    def build_writes(self, output: ToolOutput, state: TurnState) -> Sequence[Write]:
        """Return the writes that answer the call, and add the turn's usage to that of the turn which has asked.

        Where nobody waits any more, the usage is added to the conversation, so that it counts once in any case.

        Args:
            output: The output of the call.
            state: Of the sub-agent's turn, with all its usage.
        """
        call = self._find_call()
        if self._log is None or self._pause is None or call is None:
            return () if self._is_conversation_gone else (self._build_totals_update(state),)
        pause = self._pause
        outputs = {call.effect_key: (output, "")}
        transition = apply_outputs(pause, outputs, now=self._resources.clock.time(), nonce=new_id(12))
        unused = self._parent.allowance - state.sub_agent_count
        commit = RoundCommit.for_pause(
            pause, transition, update_state=lambda parent_state: _add_child(parent_state, state, unused)
        )
        self._prepared, writes = prepare_round_commit(self._resources, self._log, commit)
        return writes

    def confirm(self) -> Pause | None:
        """Accept that the writes are stored. Returns the pause as it is stored now, if the call was answered."""
        if self._prepared is None or self._log is None:
            return None
        self._log.confirm_append(self._prepared.entry)
        return self._prepared.pause

    def _build_totals_update(self, state: TurnState) -> Update:
        turn = self._turn
        return Update(
            self._resources.settings.conversations_table,
            message_store.conversation_partition(turn.tenant, turn.root_conversation),
            message_store.build_meta_sort_key(turn.root_conversation),
            "ADD prompt_tokens_total :prompt, completion_tokens_total :completion, "
            "cache_read_tokens_total :read, cache_creation_tokens_total :creation, cost_usd_total :cost",
            {
                ":prompt": state.prompt_tokens,
                ":completion": state.completion_tokens,
                ":read": state.cache_read_tokens,
                ":creation": state.cache_creation_tokens,
                ":cost": state.cost_usd,
            },
            condition="attribute_exists(pk)",
        )


def _add_child(parent_state: TurnState, child: TurnState, unused: int) -> TurnState:
    """Return the state of the turn that has asked, with what the sub-agent's turn used and did not use."""
    return replace(
        parent_state,
        prompt_tokens=parent_state.prompt_tokens + child.prompt_tokens,
        completion_tokens=parent_state.completion_tokens + child.completion_tokens,
        cache_read_tokens=parent_state.cache_read_tokens + child.cache_read_tokens,
        cache_creation_tokens=parent_state.cache_creation_tokens + child.cache_creation_tokens,
        cost=str(parent_state.cost_usd + child.cost_usd),
        sub_agent_count=max(0, parent_state.sub_agent_count - unused),
    )
