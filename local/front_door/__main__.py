"""Serve the front door: `python -m local.front_door`.

Settings come from the environment:

- `FERMATA_LISTENER`: descriptor of a listening socket to serve; without it, `FERMATA_PORT` (0: any free port)
- `FERMATA_RUN_CREDENTIALS`: the access key that the emulator obeys, as `id:secret`
- `FERMATA_HOSTS`: names under which it is asked besides those of this machine, separated by commas
- `FERMATA_UPLOAD_ORIGINS`: origins whose pages may upload, separated by commas; `*` (the default): all
- `FERMATA_ENDPOINT`: URL of the emulator
- `FERMATA_API`: id and stage of the deployed API, as `id/stage`
- `FERMATA_STREAM_VARIABLES`: the environment variables of the deployed streaming function, as JSON
- `FERMATA_LISTENS`: whether readers poll when the emulator says that a log has grown, and seldom otherwise
- `FERMATA_CONSOLE`: the state directory, in which the console's sessions are; without it nobody is signed in to it
- `FERMATA_CONSOLE_TOKEN`: the token of the person who signs in to the console
- `FERMATA_TEMPLATE`: path of the template (default: the project's)
"""

import importlib
import json
import os
import socket
import sys
from pathlib import Path

import boto3
import uvicorn

from local import template
from local.aws_clients import credentials_environment, get_session
from local.console_sign_in import ConsoleSecrets
from local.emulator.runtime.direct_connection import send_directly
from local.front_door.api_gateway_routing import INTEGRATION_TIMEOUT_SECONDS, ApiGateway
from local.front_door.app import FrontDoor
from local.front_door.append_listener import listen_for_appends
from local.front_door.asgi import App
from local.front_door.console import Console
from local.front_door.console_files import ConsoleFiles
from local.front_door.host_check import HostCheck, parse_own_names
from local.front_door.s3_uploads import ANY_ORIGIN, S3Uploads
from local.front_door.upstream_client import UpstreamClient
from local.garbage_collection import collect_garbage_seldom
from local.listening_sockets import open_listener
from local.parent_watch import announce_ready
from local.request_signature import REGION, get_run_credentials

DEFAULT_PORT = "8787"


def main() -> None:
    endpoint = os.environ["FERMATA_ENDPOINT"]
    gateway, folder = read_template(Path(os.environ.get("FERMATA_TEMPLATE", template.TEMPLATE_PATH)))
    streaming_app = load_streaming_app(endpoint, json.loads(os.environ["FERMATA_STREAM_VARIABLES"]), folder)
    upstream = UpstreamClient(endpoint, os.environ["FERMATA_API"], INTEGRATION_TIMEOUT_SECONDS, get_run_credentials())
    origins = frozenset(os.environ.get("FERMATA_UPLOAD_ORIGINS", ANY_ORIGIN).split(","))
    uploads = S3Uploads(endpoint, get_run_credentials(), origins)
    front_door = FrontDoor(gateway, streaming_app, upstream, uploads)
    config = uvicorn.Config(
        HostCheck(make_console(front_door), parse_own_names(os.environ.get("FERMATA_HOSTS", ""))),
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    listener = get_listener()
    collect_garbage_seldom()
    announce_ready(f"http://127.0.0.1:{listener.getsockname()[1]}")
    uvicorn.Server(config).run([listener])


def read_template(path: Path) -> tuple[ApiGateway, Path]:
    """Return the routes, and the folder of the streaming function. What was read (5 MB) ends with this call."""
    document = template.load_template(path)
    gateway = ApiGateway(document)
    (logical_id,) = gateway.streaming_functions()
    return gateway, path.parent / document["Resources"][logical_id]["Properties"]["CodeUri"]


def make_console(app: App) -> Console:
    directory = os.environ.get("FERMATA_CONSOLE")
    secrets = ConsoleSecrets(Path(directory)) if directory else None
    return Console(app, ConsoleFiles(), secrets, os.environ.pop("FERMATA_CONSOLE_TOKEN", ""))


def get_listener() -> socket.socket:
    descriptor = os.environ.get("FERMATA_LISTENER")
    if descriptor is not None:
        return socket.socket(fileno=int(descriptor))
    return open_listener(int(os.environ.get("FERMATA_PORT", DEFAULT_PORT)))


def load_streaming_app(endpoint: str, variables: dict[str, str], folder: Path) -> App:
    """Import the streaming function's ASGI app into this process, with the variables it was deployed with."""
    os.environ.update(variables)
    os.environ.update(credentials_environment(), AWS_ENDPOINT_URL=endpoint, AWS_REGION=REGION)
    if boto3.DEFAULT_SESSION is None:  # it is there in a copy of the process that functions share (decision 0609)
        boto3.DEFAULT_SESSION = get_session()  # which has read what all clients need (8 MB)
        send_directly(boto3.DEFAULT_SESSION)
    sys.path.insert(0, str(folder))
    module = importlib.import_module("app")
    if os.environ.get("FERMATA_LISTENS"):
        listen_for_appends(endpoint, module.get_log_poller(module.get_resources()))
    app: App = module.app
    return app


if __name__ == "__main__":
    main()
