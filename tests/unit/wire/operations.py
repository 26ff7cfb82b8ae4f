"""Operations made for tests."""

from fermata.wire.operations.operation import Operation, PublicOperation, SuccessResponse


def make_operation(method: str, path: str, capabilities: tuple[str, ...] = ("ai.chat",)) -> Operation:
    return Operation(
        name=f"{method} {path}",
        function="api",
        method=method,
        path=path,
        capabilities=capabilities,
        summary="Try something",
        responses=(SuccessResponse("It worked."),),
    )


def make_public_operation(method: str, path: str) -> PublicOperation:
    return PublicOperation(
        name=f"{method} {path}",
        function="api",
        method=method,
        path=path,
        summary="Try something",
        responses=(SuccessResponse("It worked."),),
    )
