"""The terms of SBERT-LP (2021) for what rows hold: systems, settings, sets, and dims that it calls
best.
"""

import pandas as pd

from repro.report.kinds import paper_values
from repro.report.tables import names
from repro.rows import only

SUITES = {
    "table1": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    "table2": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
}
"""The seven datasets of each table; only all seven have an average."""
SHARING = "table1"  # Whose sets share items: most pairs of STS-B are pairs of STS12 to STS16
METRICS = {"table1": "spearman", "table2": "accuracy"}
INDICATORS = ("mi", "nmi", "ari", "purity")  # Of Table 3
SIZES = ("SBERTbase", "SBERTlarge")  # The paper's two systems, as the keys of rows
USE = "Universal Sentence Encoder"
TRANSDUCTIVE, INDUCTIVE = "transductive", "inductive"
"""Fitted on the evaluated sentences, as in the paper, or on training sentences."""
CHOSEN, ORACLE = "chosen on dev", "chosen on test"  # Which scores picked neighbours and dims
HONEST = f"{TRANSDUCTIVE}, {CHOSEN}"  # Setting that claims are judged in
SETTINGS = (HONEST, f"{TRANSDUCTIVE}, {ORACLE}")  # Of the mapped lines of Tables 2 and 3
# Of those of Table 1
STS_SETTINGS = (HONEST, f"{INDUCTIVE}, {CHOSEN}", f"{TRANSDUCTIVE}, {ORACLE}")
STS = ("stsb", "sickr")  # Of the figures
RANGES = {"sts": (128, 300), "sentiment": (16, 64)}  # dims that Section 4.6.2 calls best
NEIGHBOURS, RANGE = "neighbours = ", "best in range"
"""Setting of the rows of the sweep; method of the rows on the range of dims."""
ON_DEV = "chosen on dev"  # Beginning of the method of rows that compare the number that dev picks
STATISTICS = {"residual variance": "residual variance", "Procrustes": "Procrustes statistics"}
"""Metrics that are said to pick the number of neighbours, and what they are called."""


def lp(method: str) -> str:
    """What the paper calls a system after the mapping."""
    return f"{method}-LP"


def flow(method: str) -> str:
    """What the paper calls a flow on a system's network: of SBERTbase, BERTbase-flow."""
    return f"{method[1:] if method in SIZES else method}-flow"


def network_of(rows: pd.DataFrame, method: str) -> str:
    """The network that was measured under a key, and the paper's in whose place it is."""
    name = names(only(rows, method=method)).get(method, method)
    printed_here = method != name and method in set(paper_values("sbertlp2021", "table1")["method"])
    return f"{name}; in the paper {method}" if printed_here else name


def printed_leads(table: str, method: str) -> pd.Series:
    """The printed lead of a mapped system by dataset (Table 3: by indicator), in points."""
    paper = paper_values("sbertlp2021", table)
    key = "metric" if table == "table3" else "dataset"
    scores_by_method = {
        name: only(paper, method=name).set_index(key)["value"] for name in (method, lp(method))
    }
    return 100 * (scores_by_method[lp(method)] - scores_by_method[method])
