"""Listen to the emulator's feed of appended logs (decision 0167)."""

import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import Protocol
from urllib.parse import urlsplit

from local.request_signature import get_run_credentials, sign_run_request

FEED_PATH = "/_fermata/appends"
RECONNECT_SECONDS = 0.5


class AppendHearer(Protocol):
    """What is told of appends: the poller of all readers."""

    def poll_now(self, pk: str) -> None: ...

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
                while line := response.readline():
                    if partition_key := line.decode().strip():
                        hearer.poll_now(partition_key)
                    else:
                        hearer.set_hearing(True)
        except (OSError, HTTPException):
            pass
        finally:
            hearer.set_hearing(False)
            connection.close()
        time.sleep(RECONNECT_SECONDS)
