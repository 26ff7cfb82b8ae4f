"""Listen to the emulator's feed of appended log entries (decisions 0167 and 0656)."""

import json
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Protocol
from urllib.parse import urlsplit

from local.request_signature import get_run_credentials, sign_run_request

FEED_PATH = "/_fermata/appends"
RECONNECT_SECONDS = 0.5


class AppendHearer(Protocol):
    """What is told of appends: the poller of all readers."""

    def hear_append(self, row: Mapping[str, Any]) -> None: ...

    def set_hearing(self, hears_appends: bool) -> None: ...


def listen_for_appends(endpoint: str, hearer: AppendHearer) -> None:
    """Tell the poller in a thread of each entry by which a log grows, as long as this process runs.

    While the emulator cannot be reached, it is told that it hears nothing, and polls at the usual intervals.
    """
    threading.Thread(target=_listen, args=(endpoint, hearer), daemon=True, name="append-listener").start()


def _listen(endpoint: str, hearer: AppendHearer) -> None:
    address = urlsplit(endpoint).netloc
    while True:
        connection = HTTPConnection(address)
        try:
            headers = sign_run_request(get_run_credentials(), "GET", address, FEED_PATH)
            connection.request("GET", FEED_PATH, headers=headers)
            with connection.getresponse() as response:
                while (line := response.readline()).endswith(b"\n"):
                    if row := line.strip():
                        hearer.hear_append(json.loads(row))
                    else:
                        hearer.set_hearing(True)
        except (OSError, HTTPException, ValueError):  # ValueError: a line that is no JSON
            pass
        finally:
            hearer.set_hearing(False)
            connection.close()
        time.sleep(RECONNECT_SECONDS)
