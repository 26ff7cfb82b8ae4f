"""The sockets of the local cloud's servers."""

import asyncio
import contextlib
import socket

from local.listening_sockets import open_listener


def test_small_responses_are_sent_at_once() -> None:
    """With Nagle's algorithm at work, every response would come 40 ms late."""

    async def is_sent_at_once() -> bool:
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def look(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(
                bool(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            )
            writer.close()

        with contextlib.closing(open_listener(0)) as listener:
            async with await asyncio.start_server(look, sock=listener):
                _, client = await asyncio.open_connection(*listener.getsockname())
                result = await accepted
                client.close()
                return result

    assert asyncio.run(is_sent_at_once())
