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
        of_class = isinstance(field, ast.AnnAssign) and "ClassVar" in ast.dump(field.annotation)
        if isinstance(field, ast.AnnAssign | ast.Expr) and not of_class:
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

    def markdown(self, node: ast.AST) -> list[nodes.Node]:
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
        title = f"{module}.{name}".removeprefix(f"{self.arguments[0]}.")
        section += nodes.title(title, title)
        section += self.described(*self.found(module, name))
        return section

    def found(self, module: str, name: str) -> tuple[ast.stmt, ast.AST, list[str]]:
        """The statement that defines a name, what holds its docstring, and the module's lines."""
        tree, lines = self.read(module)
        for place, node in enumerate(tree.body):
            if name not in names_of(node, module.partition(".")[0]):
                continue
            if isinstance(node, ast.ImportFrom):
                return self.found(f"{node.module}", name)
            below = ast.Module(tree.body[place + 1 : place + 2], [])  # a constant's docstring
            return node, node if isinstance(node, DEFINITION) else below, lines
        raise self.error(f"{module} has no {name}")

    def described(self, node: ast.stmt, holder: ast.AST, lines: list[str]) -> list[nodes.Node]:
        """Code and docstring of a statement; of a class, those of its public methods too."""
        shown = [code_of(node, lines), *self.markdown(holder)]
        for part in node.body if isinstance(node, ast.ClassDef) else []:
            name = part.name if isinstance(part, ast.FunctionDef) else "_"
            if name == "__init__" or name[0] != "_":
                method = self.described(part, part, lines)
                shown.append(nodes.container("", *method, classes=["api-method"]))
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    """Let pages have the directive."""
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
