"""Make moto's DynamoDB lean: it answers as before, with less work (decision 0261).

with pytest.MonkeyPatch.context() as patch, mock_aws():
    make_moto_lean(patch)
"""

import base64
import copy
import functools
import json
import re
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from moto.core.base_backend import BaseBackend
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.exceptions import HTTPException
from moto.core.request import normalize_request
from moto.core.responses import ActionResult
from moto.core.utils import method_names_from_class
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.models.utilities import bytesize
from moto.dynamodb.parsing.ast_nodes import Node
from moto.dynamodb.parsing.validators import ActionCountValidator, DepthFirstTraverser, OverlappingPathsValidator
from moto.dynamodb.responses import DynamoHandler
from moto.kms.responses import KmsResponse
from moto.kms.utils import KeySpec, generate_private_key

DATA_OPERATIONS = {
    "GetItem",
    "BatchGetItem",
    "Query",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "TransactWriteItems",
}
DIRECT_HANDLERS: dict[str, Any] = {"https://dynamodb": DynamoHandler, "https://kms": KmsResponse}
"""By the beginning of their URLs."""
MAX_ITEM_BYTES = 405_000
"""Moto's own limit."""
_is_node = functools.cache(lambda cls: issubclass(cls, Node))


def make_moto_lean(patch: pytest.MonkeyPatch) -> None:
    share_items_in_transactions(patch)
    return_json_as_it_is(patch)
    route_requests_directly(patch)
    visit_expressions_once(patch)
    add_up_sizes_of_items(patch)
    create_keys_that_only_encrypt(patch)


def share_items_in_transactions(patch: pytest.MonkeyPatch) -> None:
    """Before every transaction moto copies whole tables; here it shares their items, and an update replaces its own."""
    update = DynamoDBBackend.update_item

    def update_copy(backend: Any, table_name: str, key: Any, *args: Any, **kwargs: Any) -> Any:
        table = backend.tables[table_name]
        pk, sk = DynamoType(key[table.hash_key_attr]), DynamoType(key[table.range_key_attr])
        item = table.get_item(pk, sk)
        if item is not None:
            table.items[pk][sk] = copy.deepcopy(item)
        return update(backend, table_name, key, *args, **kwargs)

    patch.setattr(DynamoDBBackend, "update_item", update_copy)
    patch.setattr(Table, "__deepcopy__", _copy_with_same_items, raising=False)


def _copy_with_same_items(table: Any, _memo: Any) -> Any:
    twin = copy.copy(table)
    twin.items = defaultdict(dict, {pk: dict(rows) for pk, rows in table.items.items()})
    return twin


def return_json_as_it_is(patch: pytest.MonkeyPatch) -> None:
    """What DynamoDB returns is JSON already; moto compares every member of it with the service's model.

    It also lists the methods of a class of responses at every call.
    """
    execute = ActionResult.execute_result

    def dump_result(action: Any, context: Any) -> Any:
        if context.operation_model.name not in DATA_OPERATIONS or not isinstance(action.result, dict):
            return execute(action, context)
        return 200, {}, json.dumps(action.result, default=lambda data: base64.b64encode(data).decode())

    patch.setattr(ActionResult, "execute_result", dump_result)
    patch.setattr("moto.core.responses.method_names_from_class", functools.cache(method_names_from_class))


def route_requests_directly(patch: pytest.MonkeyPatch) -> None:
    """Moto compares a URL with those of all services, and reads every body as a form too. It ignores signatures.

    It also loads the list of S3's URLs anew for each request, because the address of S3 may change.
    """
    process, sign = BotocoreStubber.process_request, SigV4Auth.add_auth

    def process_directly(stubber: Any, request: Any) -> Any:
        handler = DIRECT_HANDLERS.get(request.url.partition(".")[0])
        if handler is None or ".amazonaws.com" not in request.url:
            return process(stubber, request)
        normalized = normalize_request(request)
        try:
            return handler.dispatch(normalized, normalized.raw_url, normalized.headers)
        except HTTPException as error:
            return error.code, error.get_headers(), error.get_body()

    def sign_for_others(auth: Any, request: Any) -> None:
        if auth._service_name not in ("dynamodb", "kms"):
            sign(auth, request)

    patch.setattr(BotocoreStubber, "process_request", process_directly)
    patch.setattr(SigV4Auth, "add_auth", sign_for_others)
    patch.setattr(DynamoHandler, "use_raw_body", True)
    patch.setattr(BaseBackend, "urls", property(functools.cache(BaseBackend.urls.fget)))  # type: ignore[attr-defined]


def visit_expressions_once(patch: pytest.MonkeyPatch) -> None:
    """Moto looks up at every node what to do with it, and counts the clauses of every part of an expression anew."""
    patch.setattr(DepthFirstTraverser, "traverse", _traverse)
    patch.setattr("moto.dynamodb.comparisons.re", SimpleNamespace(compile=functools.cache(re.compile)))
    for validator in (ActionCountValidator, OverlappingPathsValidator):  # the whole expression has all clauses
        patch.setattr(validator, "traverse", lambda self, root: next(iter(self._processing_map().values()))(root))


def _traverse(traverser: Any, root: Any) -> Any:
    types = traverser.nodes_to_be_processed()
    is_processed = functools.cache(lambda cls: issubclass(cls, types))

    def visit(node: Any, child_id: int) -> Any:
        parent = node.parent
        for index, child in enumerate(node.children or ()):
            traverser.pre_processing_of_child(node, index)
            if _is_node(type(child)):
                visit(child, index)
        if is_processed(type(node)):
            node = traverser.process(node)
            node.parent = parent
            if parent:
                parent.children[child_id] = node
        return node

    return visit(root, -1)


def add_up_sizes_of_items(patch: pytest.MonkeyPatch) -> None:
    """Moto measures all attributes of an item again for each one that is set."""

    def set_attribute(attributes: Any, name: str, value: Any) -> None:
        total = getattr(attributes, "total", None)
        if total is None:
            total = sum(bytesize(key) + _measure(old) for key, old in attributes.items())
        total += bytesize(name) + _measure(value)
        if total > MAX_ITEM_BYTES:
            raise ItemSizeTooLarge
        if name in attributes:
            total -= bytesize(name) + _measure(attributes[name])
        attributes.total = total
        dict.__setitem__(attributes, name, value)

    patch.setattr(LimitedSizeDict, "__setitem__", set_attribute)


def create_keys_that_only_encrypt(patch: pytest.MonkeyPatch) -> None:
    """Moto generates an RSA key for every key of KMS, also for a symmetric one, which cannot sign."""

    def generate(key_spec: str) -> Any:
        return None if key_spec == KeySpec.SYMMETRIC_DEFAULT else generate_private_key(key_spec)

    patch.setattr("moto.kms.models.generate_private_key", generate)


def _measure(value: Any) -> int:
    return value.size() if type(value) is DynamoType else bytesize(str(value))
