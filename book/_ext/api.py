"""Sphinx extension: the directive `api` shows what a package hands on, read from its source.

Nothing is imported: no page waits for torch, no type becomes a link that leads nowhere, and a
docstring is read as the Markdown that it is.
"""

import ast
import re
from pathlib import Path
from textwrap import dedent

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEAD = re.compile(r"^(Args|Raises|Returns|References):$", re.MULTILINE)
ENTRY = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
METHOD = re.compile(r"\bmethod-[a-z0-9-]+")
DEFINITION = ast.FunctionDef | ast.ClassDef


def names_of(statement: ast.stmt, package: str) -> list[str]:
    """What a statement defines, or imports from the package's own modules."""
    if isinstance(statement, DEFINITION):
        return [statement.name]
    if isinstance(statement, ast.ImportFrom) and f"{statement.module}".startswith(f"{package}."):
        return [alias.name for alias in statement.names]
    left = [getattr(statement, "target", None), *getattr(statement, "targets", [])]
    return [target.id for target in left if isinstance(target, ast.Name)]


def code_of(node: ast.stmt, lines: list[str]) -> nodes.literal_block:
    """A signature as it is written, of a class its fields too; all of any other statement."""
    if not isinstance(node, DEFINITION):
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        return nodes.literal_block(text, text, language="python")
    first = min(part.lineno for part in (*node.decorator_list, node))
    shown = lines[first - 1 : node.body[0].lineno - 1]
    inside = node.body if isinstance(node, ast.ClassDef) else []
    for before, field in zip(inside, inside[1:], strict=False):
        if isinstance(field, ast.AnnAssign | ast.Expr):
            shown += lines[before.end_lineno : field.end_lineno]
    text = dedent("\n".join(shown)).removesuffix(":")
    return nodes.literal_block(text, text, language="python")


def markdown(docstring: str | None) -> str:
    """A docstring whose arguments and errors are lists, and whose methods are links."""
    before, *sections = HEAD.split(docstring or "")
    for head, text in zip(sections[::2], sections[1::2], strict=True):
        before += f"**{head}**\n" + dedent(ENTRY.sub(r"    - `\1`: \2", text))
    return METHOD.sub(r"{ref}`\g<0>`", before)


class Api(SphinxDirective):
    """A package's docstring and names; each line below, `module: name name`, has further ones."""

    required_arguments, has_content = 1, True

    def run(self) -> list[nodes.Node]:
        """A section for each name."""
        package = self.arguments[0]
        module = self.read(package)[0]
        wanted = [(package, name) for node in module.body for name in names_of(node, package)]
        for line in self.content:
            place, _, names = line.partition(":")
            wanted += [(place, name) for name in names.split()]
        shown = self.parse_text_to_nodes(markdown(ast.get_docstring(module)))
        return shown + [self.section(*each) for each in wanted if each[1][0] != "_"]

    def read(self, module: str) -> tuple[ast.Module, list[str]]:
        """A module and its lines; the page is read again when it changes."""
        path = Path(self.env.srcdir, "src", *module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.env.note_dependency(str(path))
        text = path.read_text(encoding="utf-8")
        return ast.parse(text), text.splitlines()

    def section(self, module: str, name: str) -> nodes.section:
        """A name with its code and docstring, and those of its methods."""
        label = f"{module}.{name}".lower()
        if label in self.state.document.nametypes:  # another name that differs by case alone
            label += "-type"
        section = nodes.section("", ids=[nodes.make_id(label)], names=[label])
        self.state.document.note_explicit_target(section)
        section += nodes.title("", "", nodes.literal("", name))
        section += self.described(module, name)
        return section

    def described(self, module: str, name: str) -> list[nodes.Node]:
        """Code and docstring of a name, wherever the module has it from."""
        tree, lines = self.read(module)
        node = next(n for n in tree.body if name in names_of(n, module.partition(".")[0]))
        if isinstance(node, ast.ImportFrom):
            return self.described(f"{node.module}", name)
        docstrings = tree.body[tree.body.index(node) + 1 :][:1]  # what follows a constant
        if isinstance(node, DEFINITION):
            return self.definition(node, lines)
        text = ast.get_docstring(ast.Module(docstrings, []))
        return [code_of(node, lines), *self.parse_text_to_nodes(markdown(text))]

    def definition(
        self, node: ast.FunctionDef | ast.ClassDef, lines: list[str]
    ) -> list[nodes.Node]:
        """A function, or a class with its public methods."""
        shown = [code_of(node, lines), *self.parse_text_to_nodes(markdown(ast.get_docstring(node)))]
        for part in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(part, ast.FunctionDef) and (
                part.name == "__init__" or part.name[0] != "_"
            ):
                shown.append(nodes.container("", *self.definition(part, lines), classes=["method"]))
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    """Let pages say ```{api} package```."""
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
