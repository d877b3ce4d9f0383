"""Evaluation: functions of arrays that return plain numbers."""

from repro.evaluation.agreement import cosine_agreement, linear_cka
from repro.evaluation.classify import linear_probe, nested_cv_accuracy
from repro.evaluation.cluster import cluster_scores
from repro.evaluation.knn import knn_accuracy, knn_cv_accuracy
from repro.evaluation.rag import answer_in_context, exact_match
from repro.evaluation.retrieve import retrieval_scores
from repro.evaluation.sts import sts_spearman

__all__ = [
    "answer_in_context",
    "cluster_scores",
    "cosine_agreement",
    "exact_match",
    "knn_accuracy",
    "knn_cv_accuracy",
    "linear_cka",
    "linear_probe",
    "nested_cv_accuracy",
    "retrieval_scores",
    "sts_spearman",
]
