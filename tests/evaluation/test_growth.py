"""The law of a growing collection, on measurements that follow a law which is known."""

import numpy as np
import pytest
from scipy.special import expit

from repro.evaluation.growth import fit_law, share_needed, slowing
from repro.types import InputError
from shown_code import on_page

PAGE = on_page("beyond_collection_size", "straight", "bent")
FORMS = {"slowing": slowing, **{name: PAGE[name] for name in ("straight", "bent")}}

SHARES, SIZES = np.meshgrid([1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8], [1e3, 1e4, 1e5])
TRUTH = {
    "straight": [6.0, 1.5, -0.2, 0.1],
    "bent": [1.2, 0.5, -0.02, -0.1, 0.08, 0.01],
    "slowing": [0.7, 0.4, -0.02, -0.5, 0.3, 0.01],
}


def made(form, share, size, candidates=10):
    share, size = np.broadcast_arrays(share, size)
    terms = FORMS[form](share, np.log10(size / candidates))
    return expit(sum(weight * term for weight, term in zip(TRUTH[form], terms, strict=True)))


@pytest.mark.parametrize("form", list(FORMS))
def test_a_law_of_its_own_form_tells_a_size_that_it_has_not_seen(form):
    law = fit_law(
        SHARES.ravel(), SIZES.ravel(), made(form, SHARES, SIZES).ravel(), terms=FORMS[form]
    )
    new = np.array([0.1, 0.4, 0.8])
    np.testing.assert_allclose(law(new, 1e6), made(form, new, 1e6), atol=0.01)


def test_the_share_that_is_needed_keeps_the_target_and_the_next_smaller_does_not():
    kept = made("slowing", SHARES, SIZES, candidates=40)
    law = fit_law(SHARES.ravel(), SIZES.ravel(), kept.ravel(), candidates=40)
    needed = share_needed(law, 0.7, 1e6)
    assert law(needed, 1e6) >= 0.7 > law(needed - 0.002, 1e6)
    assert np.isnan(share_needed(law, 0.9999, 1e6))


def test_where_everything_is_kept_the_law_says_so():
    law = fit_law(SHARES.ravel(), SIZES.ravel(), np.ones(SHARES.size))
    assert law(0.5, 1e7) > 0.99 and share_needed(law, 0.9, 1e6) < 0.1


@pytest.mark.parametrize(
    ("share", "size", "match"),
    [(1.0, 1e3, "between 0 and 1"), (0.5, 12, "one and a half times the 10"), (0.5, 1e3, "1 meas")],
)
def test_what_no_law_can_be_fitted_to_is_refused(share, size, match):
    with pytest.raises(InputError, match=match):
        fit_law(np.array([share]), np.array([size]), np.array([0.5]))
