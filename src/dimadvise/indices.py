"""Indices of faiss that hold vectors as they are advised to be stored."""

from typing import Any

import numpy as np

from dimadvise.coding import PRODUCT, Deployment
from dimadvise.files import Block
from repro.evaluation.quantise import BITS
from repro.types import optional

FACTORY_WORDS = {"pca": "PCA{dim}", "pca-rotated": "PCAR{dim}", "opq": "OPQ{bytes}_{dim}"}
"""What `faiss.index_factory` calls a method."""
LEVEL_WORDS = {"float32": "Flat", "float16": "SQfp16", "int8": "SQ8", "int4": "SQ4"}
"""What it calls a level."""


def faiss_factory(deployment: Deployment) -> str:
    """What `faiss.index_factory` makes an index of this kind from, to be trained anew;
    `faiss_index` needs no training.

    Nothing where faiss has no word for the map, as for singular directions and random projections,
    or for the level, as for one bit a number.
    """
    transform, level = deployment.transform, deployment.level
    code = f"PQ{deployment.bytes}" if level.startswith(PRODUCT) else LEVEL_WORDS.get(level)
    word = FACTORY_WORDS.get(transform.method)
    is_whole = transform.method == "truncate" and transform.dim == len(transform.matrix)
    if code is None or not (word or is_whole):
        return ""
    reduced = (word or "").format(dim=transform.dim, bytes=deployment.bytes)
    length = "L2norm" if deployment.similarity == "cosine" else ""
    refined = "RFlat" if deployment.rerank else ""
    steps = ["L2norm" if transform.unit else "", reduced, length, code, refined]
    return ",".join(step for step in steps if step)


def index_of(deployment: Deployment) -> Any:
    """An empty index, as `deploy.faiss_index` tells of it."""
    faiss = optional("faiss", "eval")
    metric = faiss.METRIC_L2 if deployment.similarity == "l2" else faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexPreTransform(_codes_index(faiss, deployment, metric))
    for step in reversed(_steps(faiss, deployment)):
        index.prepend_transform(step)
    if not deployment.rerank:
        return index
    full = len(deployment.transform.matrix)
    exact = faiss.IndexFlat(full, metric)
    if deployment.similarity == "cosine":
        exact = faiss.IndexPreTransform(faiss.NormalizationTransform(full), exact)
    refined = faiss.IndexRefine(index, exact)
    refined.k_factor = float(deployment.rerank)
    return refined


def _steps(faiss: Any, deployment: Deployment) -> list[Any]:
    """What happens to a row before it is coded."""
    transform = deployment.transform
    steps = [faiss.NormalizationTransform(len(transform.matrix))] if transform.unit else []
    steps.append(_linear(faiss, transform.matrix, transform.bias))
    if deployment.similarity == "cosine":
        steps.append(faiss.NormalizationTransform(transform.dim))
    if deployment.level == "binary":  # Whole bytes: numbers that are always 0 fill the last one up
        assert deployment.codebook is not None
        matrix = np.eye(transform.dim, 8 * deployment.bytes, dtype=np.float32)
        steps.append(_linear(faiss, matrix, -deployment.codebook.offset @ matrix))
    return steps


def _linear(faiss: Any, matrix: Block, bias: Block) -> Any:
    step = faiss.LinearTransform(*matrix.shape, True)
    faiss.copy_array_to_vector(np.ascontiguousarray(matrix.T).ravel(), step.A)
    faiss.copy_array_to_vector(np.ascontiguousarray(bias, np.float32), step.b)
    step.is_trained = True
    return step


def _codes_index(faiss: Any, deployment: Deployment, metric: int) -> Any:
    """An index of our codes: faiss cuts ranges into the same steps, and signs are product codes of
    known centroids.
    """
    dim, level, book, centroids = (
        deployment.transform.dim,
        deployment.level,
        deployment.codebook,
        deployment.centroids,
    )
    if level == "float32":
        return faiss.IndexFlat(dim, metric)
    kinds = {"float16": "QT_fp16", "int8": "QT_8bit", "int4": "QT_4bit"}
    if level in kinds:
        index = faiss.IndexScalarQuantizer(
            dim,
            getattr(faiss.ScalarQuantizer, kinds[level]),
            metric,
        )
        # Faiss rounds down and reads the middle of a step, we round and read its end
        if book is not None:
            ranges = [book.offset - book.step / 2, book.step * np.float32(2 ** BITS[level] - 1)]
            faiss.copy_array_to_vector(np.concatenate(ranges).astype(np.float32), index.sq.trained)
    else:
        if centroids is None:
            signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * np.float32(
                2
            ) - np.float32(1)
            centroids = np.broadcast_to(signs, (deployment.bytes, *signs.shape))
        count, values, width = centroids.shape
        index = faiss.IndexPQ(count * width, count, int(np.log2(values)), metric)
        faiss.copy_array_to_vector(
            np.ascontiguousarray(centroids, np.float32).ravel(),
            index.pq.centroids,
        )
    index.is_trained = True
    return index
