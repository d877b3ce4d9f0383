"""Vectors and ways to store them that are small enough to check by hand."""

from dataclasses import replace

import numpy as np

from dimadvise.advice import advise
from dimadvise.coding import Deployment
from dimadvise.measure import survey
from dimadvise.request import Request
from dimadvise.transform import fit_transform_of, moments_of
from dimadvise.ways import normal_centroids
from repro.evaluation.quantise import BITS, fit_codebook

D, DIM, BYTES = 40, 21, 7


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.random.default_rng(9).normal(size=(D, D)) * (np.arange(D) + 2.0) ** -0.8
    return (rng.normal(size=(n, D)) @ turn + 0.5).astype(np.float32)


def deployed(method="pca", level="float32", similarity="cosine", rerank=0):
    X, unit = rows(1200), similarity == "cosine"
    plain = Deployment(
        fit_transform_of(method, moments_of([X], unit=unit), DIM, unit=unit),
        similarity,
    )
    Y = plain.vectors(X)
    if level in BITS:
        return replace(plain, level=level, codebook=fit_codebook(Y, level), rerank=rerank)
    if level.startswith("lloyd"):
        return replace(plain, level=level, centroids=normal_centroids(Y, level), rerank=rerank)
    parts = Y[:256].reshape(256, BYTES, -1).transpose(1, 0, 2)
    return replace(plain, level=level, centroids=np.ascontiguousarray(parts), rerank=rerank)


def advised(versions, evidence=None, unit=None, **options):
    """What is advised by the options of a request."""
    return advise(versions, evidence, Request(**options), unit=unit)


def surveyed(vectors, queries=None, aim=None, also=(), unit=None, **options):
    """What is found by the options of a request."""
    return survey(vectors, queries, Request(**options), aim=aim, also=also, unit=unit)
