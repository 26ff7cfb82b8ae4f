"""Listen to the emulator's feed of appended logs (decision 0167)."""

import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from local.request_signature import get_run_credentials, sign_run_request

FEED_PATH = "/_fermata/appends"
RECONNECT_SECONDS = 0.5


def listen_for_appends(endpoint: str, on_append: Callable[[str], None]) -> None:
    """Call `on_append` in a thread with the partition key of each log that grows, as long as this process runs.

    While the emulator cannot be reached, nothing is called, and readers poll at their own intervals.
    """
    threading.Thread(target=_listen, args=(endpoint, on_append), daemon=True, name="append-listener").start()


def _listen(endpoint: str, on_append: Callable[[str], None]) -> None:
    address = urlsplit(endpoint).netloc
    while True:
        connection = HTTPConnection(address)
        try:
            headers = sign_run_request(get_run_credentials(), "GET", address, FEED_PATH)
            connection.request("GET", FEED_PATH, headers=headers)
            with connection.getresponse() as response:
                while line := response.readline():
                    if partition_key := line.decode().strip():
                        on_append(partition_key)
        except (OSError, HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(RECONNECT_SECONDS)
