import hashlib

import numpy as np
import pytest

from repro import data
from repro.types import InputError
from rivals.skipgram import fit_doc2vec, fit_word2vec


@pytest.fixture(scope="module")
def texts():
    return list(data.texts_of(data.load("wiki", source="microworld", limit=600)))


def test_word2vec_knows_the_words_that_it_has_seen(texts):
    X, known = fit_word2vec(texts, dim=24, epochs=2).lookup(["not", "the", "a", "nosuchword"])
    assert X.shape == (4, 24) and list(known) == [True, True, True, False]
    assert np.isfinite(X).all() and X[:3].any(axis=1).all()
    with pytest.raises(InputError, match="no word of the 2 texts occurs 2 times"):
        fit_word2vec(["a b", "c d"])


def test_a_text_is_closest_to_itself_with_a_word_changed(texts):
    encoder = fit_doc2vec(texts, dim=24, epochs=40)
    some = [t for t in texts if len(t.split()) > 8][:40]
    changed = [" ".join(t.split()[1:]) for t in some]
    A, B = encoder.encode(some, normalize=True), encoder.encode(changed, normalize=True)
    assert (np.argmax(A @ B.T, axis=1) == np.arange(len(some))).mean() > 0.5  # chance: 0.025
    np.testing.assert_array_equal(encoder.encode(some[:5])[3], encoder.encode([some[3]])[0])  # whatever the company
    assert not encoder.encode(["zzz qqq"]).any()


def test_bytes_do_not_depend_on_the_process(python):
    code = (
        "import hashlib; from repro import data; from rivals.skipgram import fit_doc2vec, fit_word2vec\n"
        "t = list(data.texts_of(data.load('wiki', source='microworld', limit=150)))\n"
        "x, w = fit_doc2vec(t, dim=8, epochs=2).encode(t[:9]), fit_word2vec(t, dim=8, epochs=2).vectors\n"
        "found = hashlib.sha256(x.tobytes() + w.tobytes()).hexdigest()\n"
    )
    here: dict = {"hashlib": hashlib}
    exec(code, here)
    ran = python(code + "print(found)", PYTHONHASHSEED="2")
    assert ran.stdout.strip() == here["found"], ran.stderr
