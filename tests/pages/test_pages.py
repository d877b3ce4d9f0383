"""The check of all pages asks each for what it has, and fails where a page does."""

import os
from collections import defaultdict

import pytest
from tests.pages import __main__ as check
from tests.pages import variants

from repro.book import kernel, notebook

CELL = "```{{code-cell}} ipython3\n:tags: [parameters]\n\n{}\n```\n\n```{{code-cell}} ipython3\n{}\n```\n"


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


def test_a_page_that_fails_is_named_and_fails_the_check(tmp_path, monkeypatch, capsys):
    for name in ("OMP_NUM_THREADS", "REPRO_THREADS", "TOKENIZERS_PARALLELISM", "REPRO_HUB"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(check.networks, "make", lambda folder, texts: defaultdict(str))
    monkeypatch.setattr(check, "make_hub", lambda folder: folder)
    monkeypatch.setattr(kernel, "manager", lambda *, forked: kernel.OwnKernel)
    pages = {"good": "dims", "bad": "1 / (len(dims) - 1)", "fixed": "x"}
    for name, code in pages.items():
        declared = "x: int = 1" if name == "fixed" else "dims: list[int] | None = None  # sizes"
        (tmp_path / f"{name}.md").write_text(CELL.format(declared, code), encoding="utf-8")
    monkeypatch.setattr(check, "PAGES", [tmp_path / f"{name}.md" for name in pages])
    assert check.main(["--variants", "one dim"]) == 1
    said = capsys.readouterr().out
    assert "| ok\nbad " in said and "FAILED" in said and "ZeroDivisionError" in said
    assert "nothing of the kind to change" in said and "3 runs, 1 failed" in said
