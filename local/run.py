"""Run the service on this machine until Ctrl-C, with its state in `.fermata/`: `python -m local run`."""

import os
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType

from fermata_client.service.connection_files import (
    LOCAL_FILE_NAME,
    delete_connection_file,
    user_connection_file,
    write_connection_file,
)
from fermata_client.service.json_types import JsonObject
from local.cloud import LocalCloud
from local.console_sign_in import make_sign_in_link
from local.deploy import DeploymentFailedError
from local.lock_or_delete_state import STATE_DIRECTORY, lock_state
from local.processes import DidNotStartError
from local.request_signature import get_run_credentials

DEFAULT_PORT = 8787


def main(state_directory: Path = STATE_DIRECTORY) -> None:
    install_stop_signals()
    print("Starting …", flush=True)
    try:
        with (
            lock_state(state_directory),
            LocalCloud(state_directory, keep_state=True, port=_choose_port(), real_api_key=real_api_key()) as cloud,
        ):
            write_connection_files(cloud)
            print(greeting_text(cloud), flush=True)
            try:
                ended_process = _wait_for_ended_process(cloud)
            finally:
                delete_connection_file(user_connection_file(LOCAL_FILE_NAME), cloud.token)
            sys.exit(
                f"Stopped, because {ended_process} ended unexpectedly. The end of its output is in {state_directory}."
            )
    except (DidNotStartError, DeploymentFailedError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("\nStopped. State is kept in .fermata/ (`make reset` deletes it).")


def _wait_for_ended_process(cloud: LocalCloud) -> str:
    while not (ended_process := cloud.find_ended_process()):
        time.sleep(0.5)
    return ended_process


def real_api_key() -> str | None:
    """Get the API key of a real model from the environment, if there is one."""
    return os.environ.get("ANTHROPIC_API_KEY") or None


def greeting_text(cloud: LocalCloud) -> str:
    assert cloud.model is not None
    return f"""
  Fermata is at {cloud.url}, the model is: {cloud.model.label} ({cloud.model.id}).
  Ctrl-C stops it.

  Open the editor:  {make_sign_in_link(cloud.url, cloud.directory)}
                    (the link works once, for ten minutes; `make console` prints another)

  Edit a page:      .venv/bin/fermata edit examples/bakery/index.html "Add a pricing section" --out build/page.html
  Talk without one: .venv/bin/fermata chat "What can you do?"
  Open the studio:  make studio
  Ask the content:  .venv/bin/fermata chat --scope content "Which posts are drafts?"
  Or with curl:

{curl_commands(cloud)}
"""


def curl_commands(cloud: LocalCloud) -> str:
    """Write curl commands that create a conversation and stream a turn in it."""
    base = f"{cloud.url}/admin/api/ai"
    call = 'curl -sS -H "Authorization: Bearer $TOKEN"'
    return (
        f"TOKEN={cloud.token}\n"
        f"""ID=$({call} -d '{{"scope":"data"}}' {base}/conversations | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')\n"""
        f"""{call} -N -d "{{\\"conversationId\\":\\"$ID\\",\\"prompt\\":\\"Hello\\"}}" {base}/chat/data"""
    )


def write_connection_files(cloud: LocalCloud) -> None:
    """Write the files in which the command line finds the service: in this folder, and from every other one."""
    connection = describe_connection(cloud)
    write_connection_file(cloud.directory / "local.json", connection)
    write_connection_file(user_connection_file(LOCAL_FILE_NAME), {name: connection[name] for name in ("url", "token")})


def describe_connection(cloud: LocalCloud) -> JsonObject:
    """Describe how the service is reached, and how the emulated AWS behind it."""
    credentials = get_run_credentials()
    assert cloud.model is not None
    return {
        "model": cloud.model.id,
        "url": cloud.url,
        "token": cloud.token,
        "endpoint": cloud.endpoint,
        "accessKeyId": credentials.access_key_id,
        "secretAccessKey": credentials.secret_access_key,
    }


def _choose_port() -> int:
    setting = os.environ.get("FERMATA_PORT") or str(DEFAULT_PORT)
    if not (setting.isdecimal() and int(setting) < 65536):
        sys.exit(f"FERMATA_PORT must be a port number up to 65535, not {setting!r}.")
    port = int(setting)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"Port {port} is taken. Stop what uses it, or choose another: FERMATA_PORT={port + 1} make run")
    return port


def install_stop_signals() -> None:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM and ignore later ones.

    SIGINT is set explicitly, because a shell ignores it for its background jobs.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle_stop_signal)


def handle_stop_signal(number: int, frame: FrameType | None) -> None:
    for later_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(later_number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
