"""Wang et al. (2023), "On the Dimensionality of Sentence Embeddings": every figure and table, from shared sweeps."""

from repro.methods import END_TO_END, STAGES, STEP_1, STEP_2, UNTRAINED
from repro.papers.wang.ablations import (
    activation_rows,
    candidate_rows,
    cost_rows,
    encode_cost_rows,
    joint_rows,
    start_rows,
)
from repro.papers.wang.decomposition import Network, decomposition_rows, parse_network, plan_networks, train_networks
from repro.papers.wang.dims import dims_rows
from repro.papers.wang.grid import encode_counts, grid_rows, pair_scores, selection_rows
from repro.papers.wang.paired import line_of, mcnemar_table, scale_table
from repro.papers.wang.step_two import step_two
from repro.papers.wang.subspace import subspace_rows
from repro.papers.wang.suite import SUITES, Contender, contenders, suite_rows, wiki_states
from repro.papers.wang.two_step import TwoStep, before_after_rows, train_two_step, two_step_rows
from repro.runs.score import score_task
from repro.runs.sweep import Sweep, hidden_dim_of, load_tasks, sets_of, spearman_of, train_sweep

__all__ = [
    "END_TO_END",
    "STAGES",
    "STEP_1",
    "STEP_2",
    "SUITES",
    "UNTRAINED",
    "Contender",
    "Network",
    "Sweep",
    "TwoStep",
    "activation_rows",
    "before_after_rows",
    "candidate_rows",
    "contenders",
    "cost_rows",
    "decomposition_rows",
    "dims_rows",
    "encode_cost_rows",
    "encode_counts",
    "grid_rows",
    "hidden_dim_of",
    "joint_rows",
    "line_of",
    "load_tasks",
    "mcnemar_table",
    "pair_scores",
    "parse_network",
    "plan_networks",
    "scale_table",
    "score_task",
    "selection_rows",
    "sets_of",
    "spearman_of",
    "start_rows",
    "step_two",
    "subspace_rows",
    "suite_rows",
    "train_networks",
    "train_sweep",
    "train_two_step",
    "two_step_rows",
    "wiki_states",
]
