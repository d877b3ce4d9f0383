"""The book without a network: formulas without a script, folds and styles as they are there."""

from types import SimpleNamespace

from docutils import nodes

from repro.paths import project_root


def test_a_formula_that_cannot_be_converted_is_shown_as_typed_and_is_no_markup(monkeypatch):
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import offline

    assert "<math" in offline._mathml(nodes.math("", "a < b"), block=False)
    assert (
        offline._mathml(nodes.math("", r"a <b> \unknown"), block=False)
        == r"<code>a &lt;b&gt; \unknown</code>"
    )


def test_folds_are_called_what_stands_on_them_and_no_style_is_asked_for_that_is_not_there(
    monkeypatch,
):
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import offline

    names = ("_static/sphinx-thebe.css", "_static/custom.css")
    styles = [SimpleNamespace(filename=name) for name in names]
    fold = '<summary aria-label="Toggle hidden content"><span>Show code</span></summary>'
    context = {"body": fold, "css_files": styles}
    offline.mend_page(None, "page", "page.html", context, None)
    assert context["body"] == "<summary><span>Show code</span></summary>"
    assert [style.filename for style in context["css_files"]] == ["_static/custom.css"]
