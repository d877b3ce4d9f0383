"""Evaluation: functions of arrays that return plain numbers."""

from repro.evaluation.classify import linear_probe, nested_cv_accuracy
from repro.evaluation.sts import sts_spearman

__all__ = ["linear_probe", "nested_cv_accuracy", "sts_spearman"]
