"""Serve S3 Vectors on a real socket: requests are checked against botocore's service model, and vectors are kept.

What the model does not say is from the pages of AWS about limits, filters and queries: pages of results, sizes of
metadata, vectors without direction. A query here misses no vector. The real one may.
"""

import contextlib
import functools
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from operator import mul
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.model import ListShape, Shape, StructureShape
from botocore.validate import ParamValidator

from fermata.aws.resources import CLIENT_CONFIG, Resources
from fermata.aws.vector_bucket import VectorBucket
from tests.threaded_server import ThreadedServer, serve_in_thread

REGION = "eu-central-1"
BUCKET_ARN = f"arn:aws:s3vectors:{REGION}:123456789012:bucket/fermata-vectors"
INDEX_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
MAX_TOP_K, MAX_FILTERABLE_BYTES, PAGE_SIZE = 100, 2048, 3
Json = dict[str, Any]


class Refusal(Exception):
    """An error of the service, by its name in the service model."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name, self.message = name, message


@dataclass
class VectorIndex:
    """An index and its vectors, by their keys."""

    name: str
    dimension: int
    vectors: dict[str, Json] = field(default_factory=dict)


class S3VectorsServer(ThreadedServer):
    """A service with one empty bucket. Pages of its answers are short, so that clients have to go on."""

    def __init__(self) -> None:
        self.indexes: dict[str, VectorIndex] = {}
        self.calls: list[tuple[str, Json]] = []
        self.failing: dict[str, str] = {}
        """Errors that operations answer with, by the names of both."""
        super().__init__(("127.0.0.1", 0), _Handler)

    def reset(self) -> None:
        self.indexes.clear()
        self.calls.clear()
        self.failing.clear()

    def connect(self, resources: Resources) -> Resources:
        """Let resources use this service as their vector bucket."""
        settings = resources.settings.model_copy(update={"vector_bucket_arn": BUCKET_ARN})
        connected = Resources(settings, resources.clock)
        connected.__dict__.update(vector_bucket=VectorBucket(self.make_client(), BUCKET_ARN))
        return connected

    def make_client(self) -> Any:
        config = CLIENT_CONFIG.merge(Config(retries={"total_max_attempts": 1}))
        url = f"http://127.0.0.1:{self.server_port}"
        return boto3.client("s3vectors", region_name=REGION, endpoint_url=url, config=config)

    @property
    def operations(self) -> list[str]:
        return [name for name, _ in self.calls]

    @property
    def keys(self) -> set[str]:
        return {key for index in self.indexes.values() for key in index.vectors}

    def answer(self, path: str, authorization: str, body: Json) -> Json:
        name = path.removeprefix("/")
        check_request(name, authorization, body)
        self.calls.append((name, body))
        if name in self.failing:
            raise Refusal(self.failing[name], "Not now.")
        answer: Json = getattr(self, f"_{_snake_case(name)}")(body)
        return answer

    def _create_index(self, body: Json) -> Json:
        name = body["indexName"]
        if not INDEX_NAME.fullmatch(name):
            raise Refusal("ValidationException", "The name of the index is not valid.")
        if name in self.indexes:
            raise Refusal("ConflictException", "An index with this name exists.")
        self.indexes[name] = VectorIndex(name, body["dimension"])
        return {}

    def _delete_index(self, body: Json) -> Json:
        self.indexes.pop(self._find_index(body).name)
        return {}

    def _list_indexes(self, body: Json) -> Json:
        names = sorted(name for name in self.indexes if name.startswith(body.get("prefix", "")))
        page, following = take_page(names, body)
        summary = {"vectorBucketName": "fermata-vectors", "creationTime": 0}
        listed = [summary | {"indexName": name, "indexArn": f"{BUCKET_ARN}/index/{name}"} for name in page]
        return {"indexes": listed} | following

    def _put_vectors(self, body: Json) -> Json:
        index = self._find_index(body)
        for vector in body["vectors"]:
            check_numbers(index, vector["data"]["float32"])
            check_metadata(vector["metadata"])
        index.vectors |= {vector["key"]: vector for vector in body["vectors"]}
        return {}

    def _delete_vectors(self, body: Json) -> Json:
        index = self._find_index(body)
        for key in body["keys"]:
            index.vectors.pop(key, None)
        return {}

    def _get_vectors(self, body: Json) -> Json:
        vectors = self._find_index(body).vectors
        return {"vectors": [{"key": key} for key in body["keys"] if key in vectors]}

    def _list_vectors(self, body: Json) -> Json:
        page, following = take_page(sorted(self._find_index(body).vectors), body)
        return {"vectors": [{"key": key} for key in page]} | following

    def _query_vectors(self, body: Json) -> Json:
        index, numbers = self._find_index(body), body["queryVector"]["float32"]
        check_numbers(index, numbers)
        if body["topK"] > MAX_TOP_K:
            raise Refusal("ValidationException", "topK is too large.")
        found = [
            {"key": key, "distance": 1 - sum(map(mul, numbers, vector["data"]["float32"]))}
            for key, vector in index.vectors.items()
            if is_selected(vector["metadata"], body["filter"])
        ]
        nearest = sorted(found, key=lambda one: one["distance"])[: body["topK"]]
        page, following = take_page(nearest, body)
        return {"vectors": page, "distanceMetric": "cosine"} | following

    def _find_index(self, body: Json) -> VectorIndex:
        bucket, _, name = body["indexArn"].rpartition("/index/")
        if bucket != BUCKET_ARN or name not in self.indexes:
            raise Refusal("NotFoundException", "The specified index could not be found.")
        return self.indexes[name]


@functools.cache
def _load_model() -> Any:
    return botocore.session.get_session().get_service_model("s3vectors")


def check_request(name: str, authorization: str, body: Json) -> None:
    """Refuse a request that is not signed for the service, or not as its model describes it."""
    if f"/{REGION}/s3vectors/aws4_request" not in authorization:
        raise Refusal("AccessDeniedException", "The request is not signed for S3 Vectors.")
    model = _load_model()
    if name not in model.operation_names:
        raise Refusal("ValidationException", f"There is no operation {name}.")
    shape = model.operation_model(name).input_shape
    problems = ParamValidator().validate(body, shape)
    if problems.has_errors():
        raise Refusal("ValidationException", problems.generate_report())
    check_maxima(body, shape)
    bucket = {"vectorBucketArn", "vectorBucketName"} & body.keys()
    if ("indexArn" in body) == bool(bucket) and name != "CreateIndex":
        raise Refusal("ValidationException", "Must specify either indexArn or the bucket and the index.")


def check_maxima(value: Any, shape: Shape) -> None:
    """Refuse what is longer, greater or other than a shape says. Botocore checks only minima."""
    limit, allowed = shape.metadata.get("max"), getattr(shape, "enum", [])
    size = len(value) if isinstance(value, str | list) else value if isinstance(value, int | float) else 0
    if (limit is not None and size > limit) or (allowed and value not in allowed):
        raise Refusal("ValidationException", f"A value of {shape.name} is not valid.")
    if isinstance(shape, ListShape) and shape.member.type_name != "float":
        for member in value:
            check_maxima(member, shape.member)
    elif isinstance(shape, StructureShape) and not shape.is_document_type:
        for name, member in value.items():
            check_maxima(member, shape.members[name])


def check_numbers(index: VectorIndex, numbers: Sequence[float]) -> None:
    if len(numbers) != index.dimension:
        raise Refusal("ValidationException", "The vector has another dimension than its index.")
    if not any(numbers) or not all(math.isfinite(number) for number in numbers):
        raise Refusal("ValidationException", "A vector of zeros, or with numbers that are none, has no direction.")


def check_metadata(metadata: Json) -> None:
    if len(json.dumps(metadata).encode()) > MAX_FILTERABLE_BYTES:
        raise Refusal("ValidationException", "Filterable metadata must have at most 2048 bytes.")


def is_selected(metadata: Json, condition: Json) -> bool:
    """Return whether a filter selects a vector. Operators that the service does not know are refused."""
    for name, wanted in condition.items():
        if name == "$and":
            if not wanted or not all(is_selected(metadata, one) for one in wanted):
                return False
        elif list(wanted) == ["$in"] and wanted["$in"]:
            if metadata.get(name) not in wanted["$in"]:
                return False
        else:
            raise Refusal("ValidationException", f"The filter {condition} is not valid.")
    return True


def take_page(found: Sequence[Any], body: Json) -> tuple[list[Any], Json]:
    start = int(body.get("nextToken", 0))
    end = start + min(PAGE_SIZE, body.get("maxResults", PAGE_SIZE))
    return list(found[start:end]), {"nextToken": str(end)} if end < len(found) else {}


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Handler(BaseHTTPRequestHandler):
    server: S3VectorsServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            status, answer, kind = 200, self.server.answer(self.path, self.headers["authorization"] or "", body), ""
        except Refusal as refusal:
            error = _load_model().shape_for(refusal.name).metadata["error"]
            status, answer, kind = error["httpStatusCode"], {"message": refusal.message}, refusal.name
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if kind:
            self.send_header("x-amzn-errortype", kind)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def run_s3_vectors_server() -> Iterator[S3VectorsServer]:
    with serve_in_thread(S3VectorsServer()) as server:
        yield server
