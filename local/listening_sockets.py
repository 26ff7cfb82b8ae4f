"""Open listening sockets for the servers of the local cloud. Standard library only: the emulator uses it too."""

import socket

BACKLOG = 512


def open_listener(port: int) -> socket.socket:
    """Listen on 127.0.0.1. Connections are accepted by the kernel before any server runs.

    Args:
        port: 0 picks a free one.

    Raises:
        OSError: when the port is taken.
    """
    # asyncio disables Nagle's algorithm only on sockets whose protocol is given as TCP; small packets are sent about
    # 40 ms late otherwise.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    return listener
