"""Let a turn go on after one of its calls was answered or decided."""

from fermata.aws.resources import Resources
from fermata.turns.pause import Pause


def resume_turn(resources: Resources, pause: Pause) -> None:
    """Send a heartbeat while the next request is open; resume the round when nothing is waited for.

    A token of Hold has no heartbeat (decision 0005). A request that is open then resumes the round, which gives it a
    timeout of its own. While the next call waits for a person, nothing has to run.

    Args:
        resources: The workflow's client.
        pause: The round's pause as it is stored now.

    Raises:
        ServiceUnavailable: The workflow could not be reached. Repeat the call.
    """
    call = pause.next_call
    if not pause.callback_token or (call is not None and call.state == "approval"):
        return
    if pause.requested_call is not None and not pause.is_held:
        resources.workflow.send_heartbeat(pause.callback_token)
    else:
        hint = pause.build_invocation_hint(resources.settings.bridges_table)
        resources.workflow.resume_execution(pause.callback_token, "round", hint=hint)
