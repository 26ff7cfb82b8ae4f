"""Open the stores of vectors that a deployment has."""

from fermata.aws.resources import Resources
from fermata.content.search.bucket_vectors import BucketVectors
from fermata.content.search.row_vectors import RowVectors
from fermata.content.search.vector_store import VectorStore


def open_vector_stores(resources: Resources) -> list[VectorStore]:
    """Return the stores in which a search looks. The first one takes what is indexed now.

    Where a deployment was given a vector bucket later, a document is found by its rows until it is indexed again.
    """
    rows = RowVectors(resources)
    return [BucketVectors(resources), rows] if resources.settings.vector_bucket_arn else [rows]
