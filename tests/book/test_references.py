import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pybtex.database import Entry, parse_file

from repro.book.contents_file import pages_of
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
LINKS = {
    "doi": re.compile(r"10\.\d{4,9}/\S*[^\s.,]"),
    "eprint": re.compile(r"\d{4}\.\d{4,5}"),
    "url": re.compile(r"https://\S+"),
}
"""Where a document can be read: the form of each field that becomes a link."""
UNLINKED = {"proposal", "gale"}
"""Entries without a link: an unpublished proposal, and a chapter whose number we cannot confirm."""
DATED = re.compile(r"(?:/v1|aclanthology\.org)/(?:[A-Z]|20)(\d\d)[-.]")
"""The year, in two digits, that an identifier of the ACL Anthology begins with."""
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


@pytest.fixture(scope="module")
def entries() -> Mapping[str, Entry]:
    """The bibliography."""
    return parse_file(str(ROOT / "book" / "references.bib")).entries


def links_of(entry: Entry) -> dict[str, str]:
    """The fields of an entry that become links."""
    return {name: entry.fields[name] for name in LINKS if name in entry.fields}


def test_every_entry_of_the_bibliography_leads_to_its_document(entries):
    assert {key for key, entry in entries.items() if not links_of(entry)} == UNLINKED


def test_a_link_of_the_bibliography_has_the_form_of_its_kind_and_leads_to_one_entry(entries):
    owners = {}
    for key, entry in entries.items():
        for name, link in links_of(entry).items():
            assert LINKS[name].fullmatch(link), f"{key}: {link} is no {name}"
            assert owners.setdefault(link, key) == key, f"{key} and {owners[link]} share {link}"
        if "eprint" in entry.fields:
            assert entry.fields["archiveprefix"] == "arXiv", key


def test_an_identifier_that_names_a_year_agrees_with_its_entry(entries):
    for key, entry in entries.items():
        year = entry.fields["year"]
        for link in links_of(entry).values():
            dated = DATED.search(link)
            assert dated is None or year.endswith(dated[1]), f"{key} of {year}: {link}"
        if "eprint" in entry.fields:
            submitted = 2000 + int(entry.fields["eprint"][:2])
            assert submitted <= int(year), f"{key} of {year}: arXiv:{entry.fields['eprint']}"


def test_no_reference_leads_to_a_document_that_readers_do_not_have():
    for path, text in texts():
        found = UNPUBLISHED.search(text)
        assert found is None, f"{path} names {found[0]}"
        for sign in SECTION.finditer(text):
            before = text[: sign.start()]
            assert CITED.search(before), f"{path}: a section of what? …{before[-60:]}"
