"""Formulas of the book, without a script: what cannot be written as MathML is shown as it was
typed.
"""

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
