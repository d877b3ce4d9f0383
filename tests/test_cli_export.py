import numpy as np
import pytest

from repro.models import SentenceEncoder

TEXTS = ["a dog sleeps on the mat", "the cook thanked the driver"]
sentence_transformers = pytest.importorskip("sentence_transformers")


def test_what_was_advised_can_be_exported_and_loaded(repro, tiny, tmp_path):
    code, text, errors = repro(
        "advise",
        "--encoder",
        tiny,
        "--texts",
        "stsb",
        "--source",
        "microworld",
        "--split",
        "dev",
        "--retain",
        "0.9",
        "--reducers",
        "pca",
        "--dims",
        "32",
        "16",
        "8",
        "--output",
        tmp_path / "advice",
    )
    assert code == 0, errors
    if "Keep all" in text:
        pytest.fail("the random network's answer should be a smaller size")
    code, text, errors = repro(
        "export", "--encoder", tiny, "--reducer", tmp_path / "advice", "--output", tmp_path / "model", "--normalize"
    )
    assert code == 0 and "loads it" in text, errors
    X = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    assert X.shape[1] < SentenceEncoder.load(tiny).hidden_dim


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--encoder", "./nosuch", "--output", "out"], "no backbone folder"),
        (["--encoder", "TINY", "--output", "."], "nothing is overwritten"),
        (["--encoder", "TINY", "--output", "out", "--layer", "9"], "layer 9"),
        (
            ["--encoder", "TINY", "--output", "out", "--reducer", "nosuch"],
            "expected a folder that `repro advise` wrote",
        ),
    ],
)
def test_a_mistake_ends_with_2_and_one_line(repro, tiny, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("")
    code, _, errors = repro("export", *[tiny if a == "TINY" else a for a in arguments])
    assert code == 2 and words in errors and "Traceback" not in errors
    assert not (tmp_path / "out").exists()
