"""Evaluation: functions of arrays that return plain numbers."""

from repro.evaluation.classify import linear_probe, nested_cv_accuracy
from repro.evaluation.cluster import cluster_scores
from repro.evaluation.knn import knn_accuracy, knn_cv_accuracy
from repro.evaluation.sts import sts_spearman

__all__ = [
    "cluster_scores",
    "knn_accuracy",
    "knn_cv_accuracy",
    "linear_probe",
    "nested_cv_accuracy",
    "sts_spearman",
]
