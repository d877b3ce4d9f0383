import re
from collections.abc import Iterator
from pathlib import Path

from repro.book.site import pages_of
from repro.paths import project_root

ROOT = project_root()
FOLDERS = ("src", "tests", "bench", "notebooks", "book")
TEXTS = (".py", ".md", ".toml", ".yml")
LABEL = re.compile(r"^\((method-[a-z0-9-]+)\)=$", re.MULTILINE)
METHOD = re.compile(r"(?<![\w-])method-[a-z0-9-]*[a-z0-9]")
ENTRY = re.compile(r"^\* - ([A-Z]\d+)$", re.MULTILINE)
AUDITED = re.compile(r"\baudit\s+([A-Z]\d+)")
SECTION = re.compile("\N{SECTION SIGN}")
CITED = re.compile(r"\d{4}\)?,\s+$")
"""What stands before a section of a paper: its year."""
UNPUBLISHED = re.compile(f"(PROTOCOLS|DESIGN)([.]md|\\s+{SECTION.pattern})")


def texts() -> Iterator[tuple[Path, str]]:
    """Every text of ours, and the files beside the folders."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([*paths, *ROOT.glob("*")]):
        if path.suffix in TEXTS and path.is_file():
            yield path, path.read_text(encoding="utf-8")


def labels() -> list[str]:
    """The methods that pages of the book describe."""
    pages = pages_of(ROOT).values()
    return [label for path in pages for label in LABEL.findall(path.read_text(encoding="utf-8"))]


def test_a_method_that_code_or_a_page_names_is_described_in_the_book():
    known = labels()
    assert len(known) == len(set(known)) > 40
    for path, text in texts():
        for named in METHOD.findall(text):
            assert named in known, f"{path} names {named}"


def test_an_entry_of_the_audit_that_code_or_a_page_names_is_there():
    known = ENTRY.findall((ROOT / "book" / "audit.md").read_text(encoding="utf-8"))
    for path, text in texts():
        for named in AUDITED.findall(text):
            assert named in known, f"{path} names audit {named}"


def test_no_reference_leads_to_a_document_that_readers_do_not_have():
    for path, text in texts():
        found = UNPUBLISHED.search(text)
        assert found is None, f"{path} names {found[0]}"
        for sign in SECTION.finditer(text):
            before = text[: sign.start()]
            assert CITED.search(before), f"{path}: a section of what? …{before[-60:]}"
