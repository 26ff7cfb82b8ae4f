"""`python -m local.run`: the service on this machine until Ctrl-C, its state kept in `.fermata/` between runs."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from local.cloud import LocalCloud
from local.deploy import DeploymentFailedError
from local.processes import ROOT, DidNotStartError

STATE = ROOT / ".fermata"
DEFAULT_PORT = 8787


def main(state: Path = STATE) -> None:
    signal.signal(signal.SIGTERM, interrupt)
    print("Starting …", flush=True)
    try:
        port = _free_port()
        with only_one(state), LocalCloud(state, keep_state=True, port=port, real_key=real_key()) as cloud:
            write_connection(cloud)
            print(greeting(cloud), flush=True)
            while not (ended := cloud.ended()):
                time.sleep(0.5)
            sys.exit(f"Stopped, because {ended} ended by itself. Its last words are in {state}.")
    except (DidNotStartError, DeploymentFailedError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("\nStopped. State is kept in .fermata/ (`make reset` forgets it).")


def real_key() -> str | None:
    """The key of a real model, when the environment holds one."""
    return os.environ.get("ANTHROPIC_API_KEY") or None


def greeting(cloud: LocalCloud) -> str:
    assert cloud.model is not None
    return f"""
  Fermata is at {cloud.url}, the model is: {cloud.model.label} ({cloud.model.id}).
  Ctrl-C stops it.

  Edit a page:      .venv/bin/fermata edit page.html "Add a pricing section"
  Talk without one: .venv/bin/fermata chat "What can you do?"
  Or with curl:

{curl(cloud)}
"""


def curl(cloud: LocalCloud) -> str:
    """Ready to paste: who you are, a conversation, and a turn in it, streamed."""
    base = f"{cloud.url}/admin/api/ai"
    call = 'curl -sS -H "Authorization: Bearer $TOKEN"'
    return (
        f"TOKEN={cloud.token}\n"
        f"""ID=$({call} -d '{{"scope":"data"}}' {base}/conversations | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')\n"""
        f"""{call} -N -d "{{\\"conversationId\\":\\"$ID\\",\\"prompt\\":\\"Hello\\"}}" {base}/chat/data"""
    )


def write_connection(cloud: LocalCloud) -> None:
    """Where the command line finds the service; the token is for nobody else."""
    file = cloud.directory / "local.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps({"url": cloud.url, "token": cloud.token, "endpoint": cloud.endpoint}))


@contextlib.contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Two services on one state would each overwrite what the other knows."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("Fermata runs already in this folder. Stop it first (Ctrl-C where it runs).")
        yield


def _free_port() -> int:
    port = int(os.environ.get("FERMATA_PORT") or DEFAULT_PORT)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"Port {port} is taken. Stop what uses it, or choose another: FERMATA_PORT={port + 1} make run")
    return port


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
