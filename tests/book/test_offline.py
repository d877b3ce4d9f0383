"""The book without a network: formulas without a script, folds and styles as they are there."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from repro.paths import project_root


def test_a_formula_that_cannot_be_converted_is_shown_as_typed_and_is_no_markup(monkeypatch):
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import offline

    node = nodes.math()
    assert "<math" in offline._mathml("a < b", node, block=False)
    assert (
        offline._mathml(r"a <b> \unknown", node, block=False)
        == r"<code>a &lt;b&gt; \unknown</code>"
    )


def test_a_function_stands_apart_from_what_it_is_applied_to_unless_a_bracket_does(monkeypatch):
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import offline

    apart, bracketed = (
        offline._mathml(source, nodes.math(), block=False) for source in (r"2\ln n", r"\ln(n)")
    )
    assert '<mo rspace="0.17em">&ApplyFunction;</mo>' in apart and "rspace" not in bracketed


def test_formulas_beside_each_other_may_stand_below_each_other(monkeypatch):
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import offline

    def written(source):
        page = SimpleNamespace(body=[], starttag=lambda *args, **options: "<div>")
        with pytest.raises(nodes.SkipNode):
            offline.visit_block(page, nodes.math_block("", source))
        return "".join(page.body)

    two = written(r"a = b, \qquad c = d")
    assert two.startswith('<div><div class="formulas"><math') and two.count("<math") == 2
    assert two.count("<div") == two.count("</div>")
    for one in ("a = b", r"\begin{aligned}a &= b, \qquad c\end{aligned}", r"a \qquad b \\ c"):
        assert written(one).count("<math") == 1 and "formulas" not in written(one)


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
