"""The advice in words, tables and figures: one HTML file that opens anywhere, and the same numbers
as JSON.
"""

import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Any

import pandas as pd

from dimadvise.coding import Deployment
from dimadvise.figures import (
    STEPS,
    draw_options,
    draw_shares,
    option_table,
    share_table,
    worth_a_choice,
)
from dimadvise.findings import Findings, answer_of, consequences, headline, other_answer_of
from dimadvise.indices import faiss_factory
from repro.manifests import sealed, sha256
from repro.report.figures import Drawing
from repro.writing import writable_text, write_text

PLAIN = ("source", "target", "rows", "kind", "similarity", "notes", "measured", "predicted")
"""What JSON says of findings as they have it."""
PAGE = (files("dimadvise") / "report.html").read_text(encoding="utf-8")


def page(findings: Findings, usage: str = "") -> str:
    """The report as HTML, figures inside, for a browser, light or dark, wide or narrow.

    Args:
        findings: what it says.
        usage: code that puts the advice to use; left out where there is none.
    """
    criterion, amount = findings.target
    sections = [
        f'<p class="answer">{escape(headline(findings))}</p>',
        *_paragraphs(consequences(findings)),
    ]
    sections.append(
        _figure(
            draw_options(findings),
            "Share of the ten nearest full-size neighbours that are found, against "
            "the bytes of a vector; bands are "
            "95\N{NO-BREAK SPACE}% intervals over queries. Each point is the best "
            "method of its level at this size. "
            f"{'The ring is the recommendation. ' if findings.answer is not None else ''}"
            f"{'The dotted line is the target.' if criterion != 'retain' else ''}",
        )
    )
    front = option_table(worth_a_choice(findings.options))
    steps = ", ".join(f"{step:g}" for step in STEPS)
    caption = f"The fewest bytes for a recall@10 that is surely {steps}; ▶ is the recommendation"
    sections.append(_table(front, caption))
    if findings.shares is not None:
        about = (
            f"Share of the {findings.score} at full size that is kept, "
            "against the bytes of a vector, by the ways that no other beats; shaded down to its "
            "lower bound. "
        )
        dotted = "The dotted line is the target." if criterion == "retain" else ""
        drawing = draw_shares(findings.shares, amount if criterion == "retain" else None)
        sections.append(_figure(drawing, about + dotted))
        sections.append(_folded(share_table(findings.shares), "Score kept at every size"))
    if findings.predicted:
        sections.append("<h2>What a task's score is expected to keep</h2>")
        sections += _paragraphs(findings.predicted)
    if findings.notes:
        listed = "".join(f"<li>{escape(note)}</li>" for note in findings.notes)
        sections += ["<h2>Before you rely on it</h2>", f"<ul>{listed}</ul>"]
    if findings.measured:
        sections += ["<h2>How it was measured</h2>", *_paragraphs(findings.measured)]
    if usage:
        sections.append(f"<h2>Use it</h2><pre>{escape(usage)}</pre>")
    caption = f"All {len(findings.options)} ways to store that were tried"
    sections.append(_folded(option_table(findings.options), caption))
    similarities = {"cosine": "cosine", "ip": "inner product", "l2": "Euclidean distance"}
    about = (
        f"{findings.rows:,} vectors of {findings.full_dim} × {findings.kind}, compared by "
        f"{similarities[findings.similarity]}"
    )
    title = escape(f"How to store {findings.source}")
    return PAGE.format(title=title, body="\n".join(sections), footer=escape(about))


def write(path: Path, findings: Findings, usage: str = "") -> None:
    """Write the report, and beside it the same numbers as JSON, under the same name."""
    record = {
        "answer": answer_of(findings, findings.answer),
        "other_answer": other_answer_of(findings),
        **{name: getattr(findings, name) for name in PLAIN},
        "rows_total": findings.total or findings.rows,
        "dim": findings.full_dim,
        "options": _records(findings.options),
        "shares": _records(findings.shares),
    }
    text = writable_text(page(findings, usage))
    digest = hashlib.sha256(text.encode()).hexdigest()
    before = [sha256(path)] if path.is_file() else []

    def note(pages: list[str]) -> None:
        sealed_note = sealed({**record, "page": pages})
        write_text(path.with_suffix(".json"), json.dumps(sealed_note, ensure_ascii=False, indent=1))

    # By the note a folder that a kill left is known: until the new page is there, with the old one.
    note([digest, *before])
    write_text(path, text)
    note([digest])


def _records(table: pd.DataFrame | None) -> list[Any]:
    return [] if table is None else json.loads(table.to_json(orient="records"))


def summary(findings: Findings) -> str:
    """The recommendation, what follows from it, and the ways that are worth a choice, as HTML for a
    notebook.
    """
    paragraphs = _paragraphs([headline(findings), *consequences(findings)])
    table = option_table(worth_a_choice(findings.options))
    return "".join(paragraphs) + _table(table, "The fewest bytes for each recall@10")


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [f"<p>{escape(line)}</p>" for line in lines]


def _figure(drawing: Drawing, caption: str) -> str:
    return f"<figure>{drawing.img()}<figcaption>{escape(caption.strip())}</figcaption></figure>"


def _table(table: pd.DataFrame, caption: str) -> str:
    """A table whose rows become blocks of named values where it would not fit."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table)
    rows = (
        "".join(
            f'<td data-label="{escape(str(n))}">{escape(str(v))}</td>'
            for n, v in zip(table, row, strict=True)
        )
        for row in table.itertuples(index=False)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _folded(table: pd.DataFrame, caption: str) -> str:
    return f"<details><summary>{escape(caption)}</summary>{_table(table, caption)}</details>"


def usage(folder: Path, deployment: Deployment) -> str:
    """Code that puts the files in a folder to use, to be copied."""
    where, width = str(folder), len(deployment.transform.matrix)
    metric = "L2" if deployment.similarity == "l2" else "INNER_PRODUCT"
    words = faiss_factory(deployment)
    anew = ""
    if words:
        anew = f"""
# the same kind of index, trained anew by faiss on your vectors
faiss.index_factory({width}, {words!r}, faiss.METRIC_{metric})
"""
    return f"""from dimadvise.deploy import SavedReducer, faiss_index, read

# an index of faiss: takes vectors of full size, shortens and codes them by itself
index = faiss_index({where!r})
index.add(X)  # float32, (n, {width})
scores, rows = index.search(Q, 10)

# numbers or codes for any other store
advice = read({where!r})
advice.vectors(X)  # (n, {deployment.transform.dim}) float32
advice.codes(X)  # {deployment.bytes} bytes a row

# a step of a pipeline of scikit-learn
make_pipeline(SavedReducer({where!r}), LogisticRegression())
{anew}
# a file of any size, in shards in the folder vectors; goes on where it was stopped
$ dimadvise apply vectors.npy --advice {quote(where)}
"""
