"""Serve patched MiniStack on 127.0.0.1: `python -m local.emulator`.

Settings come from the environment:

- `FERMATA_RUN_CREDENTIALS`: the access key with which requests are signed, as `id:secret`
- `GATEWAY_PORT`: default any free port
- `FUNCTION_PYTHON`: interpreter that runs the functions
- `FUNCTION_PACKAGES`: packages that are imported once for all functions
- `FUNCTION_PACKAGES_LEFT_OUT`: packages in them that a function imports when it needs them
- `FUNCTION_LIBRARIES_HIDDEN`: libraries that are installed here and that functions do not have on AWS
- `FUNCTION_CLIENTS`: AWS services that the functions call, whose descriptions are loaded once for all functions
- `FUNCTION_WARM_UP`: function that is called once for all functions, by its full name
- `FUNCTION_LIMITS`: limits of the processes that run functions, as JSON; `process_limits.py` names them
- `STATE_DIR`: where state is saved, by one emulator at a time; without it, no state is saved
- `WORK_DIR`: where functions are unpacked; emptied at the start
- `SCHEDULE_MINUTE_SECONDS`: default 60

The first line on standard output is the endpoint. The emulator saves its state and ends when its standard input ends,
so it never outlives its parent (decision 0034).
"""

import asyncio
import contextlib
import functools
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.emulator import state_lock
from local.emulator.object_files import finish_object_writes
from local.garbage_collection import collect_garbage_seldom
from local.listening_sockets import open_listener
from local.request_signature import CREDENTIALS_VARIABLE

if TYPE_CHECKING:
    import uvicorn


def main() -> None:
    if CREDENTIALS_VARIABLE not in os.environ:
        sys.exit(f"{CREDENTIALS_VARIABLE} is missing: the emulator obeys only who signs with a key of this run.")
    listener = open_listener(int(os.environ.get("GATEWAY_PORT", "0")))
    if "STATE_DIR" in os.environ:
        state_lock.hold_state_lock(Path(os.environ["STATE_DIR"]))
    with work_directory() as directory:
        configure_ministack(listener.getsockname()[1], directory)
        sys.setswitchinterval(0.0001)  # the default lets a request wait 5 ms for a thread that evaluates an expression
        run_event_loop(serve_app(listener))


def configure_ministack(port: int, directory: str) -> None:
    """Set MiniStack's settings, which it reads while it is imported."""
    os.environ |= {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "DOCKER_HOST": "unix:///nonexistent",
        "TMPDIR": directory,
    }
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ.setdefault("LAMBDA_ACCOUNT_CONCURRENCY", "1000")  # as on AWS; MiniStack's own limit counts memory
    os.environ.setdefault("FUNCTION_PYTHON", sys.executable)
    os.environ.pop("PYTHONPATH", None)
    tempfile.tempdir = None
    if "STATE_DIR" in os.environ:
        objects = Path(os.environ["STATE_DIR"]) / "s3"
        finish_object_writes(objects)
        os.environ |= {"PERSIST_STATE": "1", "S3_PERSIST": "1", "S3_DATA_DIR": str(objects)}
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


async def serve_app(listener: socket.socket) -> None:
    """Serve the app with uvicorn, which costs a third per request of what MiniStack's own server costs."""
    from local.emulator.app import open_app

    async with open_app() as app:
        server = _make_server(app)
        loop = asyncio.get_running_loop()
        stop = functools.partial(setattr, server, "should_exit", True)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        threading.Thread(target=_stop_at_end_of_input, args=(loop, stop), daemon=True).start()
        collect_garbage_seldom()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        await server.serve([listener])


def _make_server(app: Any) -> "uvicorn.Server":
    import uvicorn

    class Server(uvicorn.Server):
        """Leaves signals to `serve_app`: uvicorn would raise them again before the work directory is removed."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        lifespan="on",
        ws="none",
        access_log=False,
        log_level=os.environ["LOG_LEVEL"].lower(),
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
    return Server(config)


def run_event_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)


def _stop_at_end_of_input(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(stop)


@contextlib.contextmanager
def work_directory() -> Iterator[str]:
    """Make the directory where functions are unpacked. What a killed emulator has left there is removed first."""
    parent = os.environ.get("WORK_DIR")
    if parent:
        shutil.rmtree(parent, ignore_errors=True)
        Path(parent).mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="fermata-emulator-", dir=parent, ignore_cleanup_errors=True) as directory:
        yield directory


if __name__ == "__main__":
    main()
