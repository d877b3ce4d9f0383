import pytest

from repro.training.mlm import make_bert, train_wordpiece


@pytest.fixture(scope="session")
def deep(sentences, tmp_path_factory):
    """A random BERT like `tiny`, of the fewest layers that SBERT-WK reads."""
    folder = tmp_path_factory.mktemp("backbone") / "deep"
    make_bert(train_wordpiece(sentences, 400), layers=3, hidden_dim=32, heads=2, max_length=48).save(folder)
    return str(folder)
