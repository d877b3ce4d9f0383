"""Who may judge what: every condition, met and failed, and the scope of the papers' own networks."""

import pytest

from repro.report import networks
from repro.report.verdict import Measurement
from repro.rows import make_rows


@pytest.fixture(autouse=True)
def floor(monkeypatch):
    monkeypatch.setattr(networks, "full_size_scores", lambda: {networks.BASELINES["tfidf"]: 54.5})


def rows(backbone, score=0.8, **shared):
    made = [{"metric": "spearman", "dataset": "stsb", "dim": dim, "value": v} for dim, v in ((384, score), (8, 0.9))]
    made.append({"metric": "spearman", "dataset": "stsb", "dim": 384, "value": 0.9, "method": "RAW-LP"})
    return make_rows(
        [{"method": "RAW", **line} for line in made], **{"backbone": backbone, "data_source": "local", **shared}
    )


def judged(claim, of, what="gain", network=""):
    (m,) = networks.placed([Measurement(claim, "effect", 2.0, 1.0, 3.0, what=what, network=network)], of)
    return m


@pytest.mark.parametrize(
    ("claim", "backbone", "score", "what", "unmet"),
    [
        ("ESE-F3-1", "all-MiniLM-L6-v2", 0.8, "gain", ""),
        ("ESE-F3-1", "repro-tiny", 0.8, "gain", "at least 4 blocks: repro-tiny has 2 blocks"),
        ("ESE-F7-1", "repro-tiny", 0.4, "gain", ""),
        ("WANG-T1-1", "repro-tiny", 0.55, "gain", ""),
        ("WANG-T1-1", "repro-tiny", 0.24, "gain", "above counted words' 54.5: repro-tiny has 24.0"),
        ("WANG-F2-1", "repro-tiny", 0.24, "trec: largest change", ""),
        ("WANG-F2-1", "repro-tiny", 0.24, "stsb: largest change", "above counted words'"),
        ("WANG-S53-1", "repro-tiny", 0.24, "classification: lead", ""),
        (
            "ZHANG-S42-1",
            "repro-tiny + SimCSE",
            0.24,
            "STS-B, repro-tiny + SimCSE: loss",
            "repro-tiny + SimCSE has 24.0",
        ),
        ("ZHANG-S42-9", "repro-tiny", 0.24, "STS-B: largest difference", ""),
    ],
)
def test_conditions(claim, backbone, score, what, unmet):
    """The score is that of the largest size, and of nothing that was mended after training."""
    m = judged(claim, rows(backbone, score), what)
    assert unmet in m.unmet and bool(unmet) == bool(m.unmet)
    assert m.verdict == ("does not apply" if unmet else "holds here")


def test_who_speaks_where_and_on_what():
    assert judged("ESE-T1-1", rows("bge-base-en-v1.5")).verdict == "reproduced"
    assert judged("WANG-T1-1", rows("bge-base-en-v1.5")).verdict == "holds here", "own network of another paper"
    assert judged("WANG-T1-1", rows("repro-tiny", 0.2, data_source="microworld")).verdict == "up"
    both = make_rows([{"backbone": name} for name in ("repro-tiny", "repro-tiny + SimCSE")], data_source="local")
    assert judged("PROP-T-2", both, "repro-tiny + SimCSE: slope").network == "repro-tiny + SimCSE"
    assert judged("PROP-T-2", both).network == "repro-tiny, repro-tiny + SimCSE"


def test_networks_have_an_order():
    ranks = [networks.rank("ESE-T1-1", name) for name in ("bge-base-en-v1.5", "all-MiniLM-L6-v2", "repro-tiny", "new")]
    assert ranks == sorted(set(ranks))
    assert networks.rank("ESE-T1-1", "repro-tiny, all-MiniLM-L6-v2") == ranks[2], "the farthest of several"
