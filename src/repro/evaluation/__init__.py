"""Evaluation: functions of arrays that return plain numbers."""

from repro.evaluation.classify import cluster_scores, knn_accuracy, linear_probe, nested_cv_accuracy
from repro.evaluation.retrieve import answer_in_context, exact_match, retrieval_scores
from repro.evaluation.sts import sts_spearman

__all__ = [
    "answer_in_context",
    "cluster_scores",
    "exact_match",
    "knn_accuracy",
    "linear_probe",
    "nested_cv_accuracy",
    "retrieval_scores",
    "sts_spearman",
]
