"""`python -m local.emulator`: MiniStack with the corrections, on 127.0.0.1 only.

Settings come from the environment: `GATEWAY_PORT` (default: any free port), `FUNCTION_PYTHON` (the interpreter that
runs the functions), `FUNCTION_CLIENTS` (AWS services they call, to be ready for them), `STATE_DIR` (keep state there),
`WORK_DIR` (emptied first; functions are unpacked there), `SCHEDULE_MINUTE_SECONDS` (default 60). The first line on
standard output is the endpoint. The emulator ends, and saves its state, when its standard input does: so it never
outlives whoever started it.
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
from typing import Any


def main() -> None:
    listener = open_listener(int(os.environ.get("GATEWAY_PORT", "0")))
    with work_directory() as directory:
        configure_ministack(listener.getsockname()[1], directory)
        sys.setswitchinterval(0.0005)  # a request must not wait 5 ms for a thread that evaluates an expression
        run_event_loop(serve_app(listener))


def configure_ministack(port: int, directory: str) -> None:
    """MiniStack reads its settings while it is imported, so they come first."""
    os.environ |= {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "DOCKER_HOST": "unix:///nonexistent",
        "TMPDIR": directory,
    }
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ.setdefault("FUNCTION_PYTHON", sys.executable)
    os.environ.pop("PYTHONPATH", None)
    tempfile.tempdir = None
    if "STATE_DIR" in os.environ:
        os.environ |= {
            "PERSIST_STATE": "1",
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(Path(os.environ["STATE_DIR"]) / "s3"),
        }
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard) if soft < hard else (soft, hard))


async def serve_app(listener: socket.socket) -> None:
    """MiniStack's own server costs more per request than all of its DynamoDB; this one a third of that."""
    import uvicorn

    from local.emulator.app import open_app

    class Server(uvicorn.Server):
        """Leaves the signals to us: uvicorn would raise them again, before the work directory is removed."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    async with open_app() as app:
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
        server, loop = Server(config), asyncio.get_running_loop()
        stop = functools.partial(setattr, server, "should_exit", True)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        threading.Thread(target=_at_end_of_input, args=(loop, stop), daemon=True).start()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        await server.serve([listener])


def open_listener(port: int) -> socket.socket:
    """Named as TCP: asyncio sends small packets at once only on a socket that says so, else 40 ms late."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener


def run_event_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """On the faster event loop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)


def _at_end_of_input(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(stop)


@contextlib.contextmanager
def work_directory() -> Iterator[str]:
    """Where functions are unpacked; what a killed emulator left there goes first."""
    parent = os.environ.get("WORK_DIR")
    if parent:
        shutil.rmtree(parent, ignore_errors=True)
        Path(parent).mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="fermata-emulator-", dir=parent, ignore_cleanup_errors=True) as directory:
        yield directory


if __name__ == "__main__":
    main()
