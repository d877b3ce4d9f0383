"""Sphinx extension: a link to a term of the glossary says the definition when pointed at."""

from docutils import nodes
from sphinx.application import Sphinx


def define(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Give every link to a term its definition as title."""
    links = [
        link
        for link in doctree.findall(nodes.reference)
        if link.next_node(nodes.inline, include_self=False)
    ]
    links = [link for link in links if "std-term" in link.next_node(nodes.inline)["classes"]]
    if not links:
        return
    glossary = app.env.get_doctree("book/glossary")
    said = {}
    for item in glossary.findall(nodes.definition_list_item):
        for term in item.findall(nodes.term):
            definition = item.next_node(nodes.definition)
            said |= dict.fromkeys(
                term["ids"],
                definition.astext().replace("\n", " ") if definition else "",
            )
    for link in links:
        link["reftitle"] = said.get((link.get("refid") or link["refuri"].partition("#")[2]), "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Look the terms up once their links are resolved."""
    app.connect("doctree-resolved", define)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
