"""Evaluation: functions of arrays that return plain numbers."""

from repro.evaluation.answers import answer_in_context, exact_match
from repro.evaluation.classify import linear_probe, nested_cv_accuracy
from repro.evaluation.clusters import cluster_scores
from repro.evaluation.knn import knn_accuracy
from repro.evaluation.retrieve import retrieval_scores
from repro.evaluation.sts import sts_spearman
