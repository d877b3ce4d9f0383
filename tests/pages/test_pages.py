"""The check of all pages asks each for what it has."""

import pytest
from tests.pages import __main__ as check
from tests.pages import variants

from repro.book import notebook


@pytest.mark.parametrize("page", check.PAGES, ids=lambda page: page.stem)
def test_every_variant_of_every_page_is_made_of_its_own_parameters(page):
    declared = notebook.parameters_of(page)
    networks = ["/a/bert", "/a/mpnet", "/a/qwen"]
    found = {variant: variants.values(declared, variant, networks) for variant in variants.VARIANTS}
    assert found[variants.BACKBONE] and set(found[variants.BACKBONE]) <= set(declared)
    if "dims" in declared:
        assert len(found[variants.ONE_DIM]["dims"]) == 1 and len(found[variants.TWO_DIMS]["dims"]) == 2
    if "datasets" in declared:
        assert len(found[variants.ONE_DATASET]["datasets"]) == 1
    if "profile" in declared:
        assert found[variants.PAPER]["profile"] == "paper"
        assert not {"trained", "roberta-base"} & set(found[variants.PAPER].get("encoders", []))
