"""Sign the requests of httpx to the local servers' own pages, in a file of its own: httpx takes 4 MB of a process."""

from collections.abc import Generator

import httpx

from local.request_signature import get_run_credentials, sign_run_request


class RunSignature(httpx.Auth):
    """Signs the requests of an httpx client to the local servers' own pages: `httpx.get(url, auth=RunSignature())`."""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        target, host = request.url.raw_path.decode("ascii"), request.headers["host"]
        request.headers.update(sign_run_request(get_run_credentials(), request.method, host, target))
        yield request
