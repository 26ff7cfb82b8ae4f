"""Keep vectors in an S3 vector bucket, in an index for each tenant and number of dimensions (decision 0520)."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from fermata.domain.errors import FermataError

MAX_DELETED_VECTORS = 500
"""Vectors that S3 deletes with one request."""
MAX_PUT_VECTORS = 100
"""Vectors that are stored with one request. S3 takes 500 and 20 MiB; these have 8 MB with 4,096 numbers each."""
MAX_NEAREST = 100
"""Vectors that are found with one query."""
_LISTED_AT_ONCE = 1000
_COLLECTED_KEYS = 20_000
"""How many keys are held at once."""
_NOT_FOUND, _CONFLICT = "NotFoundException", "ConflictException"


class KeyedVector(NamedTuple):
    """A vector of length 1 under its key, with the attributes by which a query selects."""

    key: str
    numbers: Sequence[float]
    attributes: Mapping[str, str]


class NearVector(NamedTuple):
    """The key of a vector that was found, and the cosine of its angle to that of the query."""

    key: str
    cosine: float


class VectorIndexGone(FermataError):
    """Vectors are looked for in an index that is not there: somebody has deleted it, with all that it had."""


class VectorBucket:
    """One vector bucket. What S3 has acknowledged is found by the next query."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client, self._arn = client, arn

    def put_vectors(self, tenant: str, vectors: Sequence[KeyedVector]) -> None:
        """Store vectors of one number of dimensions. One that has the key of another takes its place.

        Args:
            tenant: Whose index they go to. It is created with its first vectors.
            vectors: The vectors.
        """
        for start in range(0, len(vectors), MAX_PUT_VECTORS):
            self._put_part(tenant, vectors[start : start + MAX_PUT_VECTORS])

    def find_nearest(
        self, tenant: str, numbers: Sequence[float], selection: Mapping[str, Sequence[str]], limit: int = MAX_NEAREST
    ) -> list[NearVector]:
        """Return the vectors that are nearest to another one, the nearest first. S3 may miss some of them.

        Args:
            tenant: Whose vectors are looked at.
            numbers: The vector of the query.
            selection: The values that each attribute of a vector may have.
            limit: The greatest number of vectors, at most MAX_NEAREST.

        Raises:
            VectorIndexGone: The tenant has no vectors of so many numbers.
        """
        query: dict[str, Any] = {
            "indexArn": self._index_arn(tenant, len(numbers)),
            "topK": min(limit, MAX_NEAREST),
            "queryVector": {"float32": list(numbers)},
            "filter": {"$and": [{name: {"$in": list(values)}} for name, values in selection.items()]},
            "returnDistance": True,
        }
        try:
            return [
                NearVector(found["key"], min(1.0, max(0.0, 1.0 - found["distance"])))
                for page in _iter_pages(self._client.query_vectors, query)
                for found in page["vectors"]
            ]
        except ClientError as error:
            if _read_code(error) != _NOT_FOUND:
                raise
            raise VectorIndexGone(f"There is no vector index of {len(numbers)} dimensions.") from error

    def find_stored_keys(self, tenant: str, dimensions: int, keys: Sequence[str]) -> set[str]:
        """Return which of some keys have a vector, with one request.

        Args:
            tenant: Whose they are.
            dimensions: How many numbers each of them has. The tenant has such vectors.
            keys: At most 100 of them.
        """
        found = self._client.get_vectors(indexArn=self._index_arn(tenant, dimensions), keys=list(keys))
        return {one["key"] for one in found["vectors"]}

    def delete_vectors(self, tenant: str, dimensions: int, keys: Sequence[str]) -> None:
        """Delete vectors. One that is gone already stays gone, and so do all if their index is gone.

        Args:
            tenant: Whose they are.
            dimensions: How many numbers each of them has.
            keys: Their keys.
        """
        self._delete(self._index_arn(tenant, dimensions), keys)

    def delete_keys_under(self, tenant: str, prefix: str) -> Iterator[int]:
        """Delete the vectors whose keys have a beginning, and yield from time to time how many there were.

        Nothing is deleted amid a list, which might then leave out others.

        Args:
            tenant: Whose vectors are looked at, all of them: S3 lists keys in no order.
            prefix: How the keys begin.
        """
        for index_arn in self._list_index_arns(tenant):
            while keys := self._list_keys(index_arn, prefix):
                self._delete(index_arn, keys)
                yield len(keys)

    def _list_keys(self, index_arn: str, prefix: str) -> list[str]:
        """Return the first keys of an index with a beginning, a page more than _COLLECTED_KEYS at most."""
        keys: list[str] = []
        for page in _iter_pages(self._client.list_vectors, {"indexArn": index_arn, "maxResults": _LISTED_AT_ONCE}):
            keys += [one["key"] for one in page["vectors"] if one["key"].startswith(prefix)]
            if len(keys) >= _COLLECTED_KEYS:
                break
        return keys

    def delete_tenant(self, tenant: str) -> int:
        """Delete the indexes of a tenant with all their vectors, and return how many there were."""
        index_arns = self._list_index_arns(tenant)
        for index_arn in index_arns:
            try:
                self._client.delete_index(indexArn=index_arn)
            except ClientError as error:
                if _read_code(error) != _NOT_FOUND:  # another run has deleted it
                    raise
        return len(index_arns)

    def _put_part(self, tenant: str, vectors: Sequence[KeyedVector]) -> None:
        dimensions = len(vectors[0].numbers)
        entries = [
            {"key": one.key, "data": {"float32": list(one.numbers)}, "metadata": dict(one.attributes)}
            for one in vectors
        ]
        index_arn = self._index_arn(tenant, dimensions)
        try:
            self._client.put_vectors(indexArn=index_arn, vectors=entries)
        except ClientError as error:
            if _read_code(error) != _NOT_FOUND:
                raise
            self._create_index(tenant, dimensions)
            self._client.put_vectors(indexArn=index_arn, vectors=entries)

    def _delete(self, index_arn: str, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), MAX_DELETED_VECTORS):
            try:
                self._client.delete_vectors(indexArn=index_arn, keys=list(keys[start : start + MAX_DELETED_VECTORS]))
            except ClientError as error:
                if _read_code(error) != _NOT_FOUND:  # somebody has deleted the index with all that it had
                    raise

    def _create_index(self, tenant: str, dimensions: int) -> None:
        try:
            self._client.create_index(
                vectorBucketArn=self._arn,
                indexName=name_vector_index(tenant, dimensions),
                dataType="float32",
                dimension=dimensions,
                distanceMetric="cosine",
            )
        except ClientError as error:
            if _read_code(error) != _CONFLICT:  # somebody else has created it meanwhile
                raise

    def _list_index_arns(self, tenant: str) -> list[str]:
        request = {"vectorBucketArn": self._arn, "prefix": _name_tenant(tenant)}
        pages = _iter_pages(self._client.list_indexes, request)
        return [one["indexArn"] for page in pages for one in page["indexes"]]

    def _index_arn(self, tenant: str, dimensions: int) -> str:
        return f"{self._arn}/index/{name_vector_index(tenant, dimensions)}"


def name_vector_index(tenant: str, dimensions: int) -> str:
    """Return the name of an index. Names of tenants have letters that S3 does not take, so it has a hash of them."""
    return f"{_name_tenant(tenant)}{dimensions}"


def _name_tenant(tenant: str) -> str:
    return f"{hashlib.sha256(tenant.encode()).hexdigest()[:40]}-"


def _iter_pages(send: Any, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    token = ""
    while True:
        page = send(**request, **({"nextToken": token} if token else {}))
        yield page
        token = page.get("nextToken", "")
        if not token:
            return


def _read_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
