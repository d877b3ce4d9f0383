"""Sphinx extension: the directive `api` shows what a package hands on, read from its source.

Nothing is imported: no page waits for torch, no type becomes a link that leads nowhere, and a
docstring is read as the Markdown that it is.
"""

import ast
import re
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEAD = re.compile(r"^(Args|Raises|Returns|References):$", re.MULTILINE)
ENTRY = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
METHOD = re.compile(r"\bmethod-[a-z0-9-]+")
DEFINITION = ast.FunctionDef | ast.ClassDef


def names_of(node: ast.stmt, package: str) -> list[str]:
    """What a statement defines, or imports from the package's own modules."""
    if isinstance(node, DEFINITION):
        return [node.name]
    if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith(f"{package}."):
        return [alias.name for alias in node.names]
    left = [getattr(node, "target", None), *getattr(node, "targets", [])]
    return [target.id for target in left if isinstance(target, ast.Name)]


def code_of(node: ast.stmt, lines: list[str]) -> nodes.literal_block:
    """A signature as it is written, of a class its fields too; all of any other statement."""
    shown = lines[node.lineno - 1 : node.end_lineno]
    if isinstance(node, DEFINITION):
        first = min(part.lineno for part in (*node.decorator_list, node))
        shown = lines[first - 1 : node.body[0].lineno - 1]
    for before, field in pairwise(node.body if isinstance(node, ast.ClassDef) else []):
        if isinstance(field, ast.AnnAssign | ast.Expr):
            shown += lines[before.end_lineno : field.end_lineno]
    text = dedent("\n".join(filter(str.strip, shown))).removesuffix(":")
    return nodes.literal_block(text, text, language="python")


class Api(SphinxDirective):
    """A package's docstring and names; each line below, `module: name name`, has further ones."""

    required_arguments, has_content = 1, True

    def run(self) -> list[nodes.Node]:
        """A section for each name."""
        package = self.arguments[0]
        module, _ = self.read(package)
        wanted = [(package, name) for node in module.body for name in names_of(node, package)]
        for line in self.content:
            place, _, names = line.partition(":")
            wanted += [(place, name) for name in names.split()]
        shown = [self.section(*each) for each in wanted if each[1][0] != "_"]
        return [*self.markdown(module), *shown]

    def read(self, module: str) -> tuple[ast.Module, list[str]]:
        """A module and its lines; the page is read again when it changes."""
        path = Path(self.env.srcdir, "src", *module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.env.note_dependency(str(path))
        text = path.read_text(encoding="utf-8")
        return ast.parse(text), text.splitlines()

    def markdown(self, node: ast.Module | DEFINITION) -> list[nodes.Node]:
        """A docstring whose arguments and errors are lists, and whose methods are links."""
        text, *sections = HEAD.split(ast.get_docstring(node) or "")
        for head, entries in zip(sections[::2], sections[1::2], strict=True):
            text += f"**{head}**\n" + dedent(ENTRY.sub(r"    - `\1`: \2", entries))
        return self.parse_text_to_nodes(METHOD.sub(r"{ref}`\g<0>`", text))

    def section(self, module: str, name: str) -> nodes.section:
        """A name with its code and docstring, wherever the module has it from."""
        label = f"{module}.{name}".lower()
        if label in self.state.document.nametypes:  # another name that differs by case alone
            label += "-type"
        section = nodes.section("", ids=[nodes.make_id(label)], names=[label])
        self.state.document.note_explicit_target(section)
        section += nodes.title(name, name)
        while True:
            tree, lines = self.read(module)
            node = next(n for n in tree.body if name in names_of(n, module.partition(".")[0]))
            if not isinstance(node, ast.ImportFrom):
                break
            module = f"{node.module}"
        after = ast.Module(
            tree.body[tree.body.index(node) + 1 :][:1], []
        )  # says what a constant is
        section += self.described(node if isinstance(node, DEFINITION) else after, node, lines)
        return section

    def described(
        self, said: ast.Module | DEFINITION, node: ast.stmt, lines: list[str]
    ) -> list[nodes.Node]:
        """Code and docstring of a statement; of a class, those of its public methods too."""
        shown = [code_of(node, lines), *self.markdown(said)]
        for part in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(part, ast.FunctionDef) and (
                part.name == "__init__" or part.name[0] != "_"
            ):
                shown.append(
                    nodes.container("", *self.described(part, part, lines), classes=["api-method"])
                )
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    """Let pages have the directive."""
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
