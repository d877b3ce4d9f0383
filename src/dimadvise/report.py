"""The advice in words, tables and figures: one HTML file that opens anywhere, and the same numbers
as JSON.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.coding import MENU, Deployment
from dimadvise.indices import faiss_factory
from dimadvise.measured import read_measured
from repro.paths import write_text
from repro.report.figures import (
    GREY,
    WIDTH,
    Drawing,
    add_legend,
    dim_axis,
    looks,
    new_figure,
    series_handles,
    styled,
)
from repro.store import sealed, sha256

PAGE = (files("dimadvise") / "report.html").read_text(encoding="utf-8")
MEANS = {
    "truncate": "the first ones",
    "pca": "principal components",
    "pca-rotated": "principal components, turned at random",
    "svd": "singular directions",
    "svd-rotated": "singular directions, turned at random",
    "random": "a random projection",
    "opq": "turned for product codes",
}
"""Methods in a reader's words."""
COUNTS = (1_000_000, 1_000_000_000)  # stored vectors whose memory is told
TIED = 0.01  # recall that near ties must bring before it is told
# Of recall@10: of the front, the first to reach each surely is shown
STEPS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)


@dataclass(frozen=True)
class Findings:
    """Everything that a report says.

    Of `options` there is a row for each way to store that was tried: method, dim, level, bytes of a
    vector, rerank (how many times as many candidates as are wanted the full vectors re-rank; 0 is
    none), recall@k with its interval low@k to high@k for k = 1, 10, 100, tail@10 (share of queries
    that find less than half of their ten), alike@10 (where near ties count too), expected@10 (where
    there are more rows than were searched a projection, and no promise), ms of a query here, front
    (no other has fewer bytes and more recall@10) and answer, True once at most. Of `shares`, where
    there are labels: method, dim, level, share of the score at full size, and its lower bound, low.
    """

    source: str  # what the vectors are, in words, such as their file
    rows: int
    full_dim: int
    kind: str  # of the numbers in the file, such as float16
    similarity: str  # cosine, ip or l2
    target: tuple[str, float]  # what was asked for: recall, retain or bytes, and how much of it
    options: pd.DataFrame
    notes: Sequence[str] = ()  # what is odd about the vectors, and what to do about it
    measured: Sequence[str] = ()  # how it was measured
    shares: pd.DataFrame | None = None
    metric: str | None = None  # of the labels' score
    # What is expected of a score where nothing measures it, with its error
    predicted: Sequence[str] = ()
    other_row: int | None = None
    """Of the option that is best with re-scoring by the full vectors, or without where the answer
    is with it; None where there is none, or labels chose.
    """
    searched: int = 0  # rows among which recall was measured
    total: int = 0  # rows to which it is projected; 0 are those that there are

    @property
    def other(self) -> Any:
        """The row of the option that is best where re-scoring is done, or not done, unlike in the
        answer.
        """
        return None if self.other_row is None else self.options.loc[self.other_row]

    @property
    def other_is_unknown(self) -> bool:
        """Whether labels chose, or what is expected of them, which tell nothing of re-scoring."""
        what, _ = self.target
        return what == "retain" or (what == "bytes" and self.metric is not None)

    @property
    def answer(self) -> Any:
        """The row of the option that is recommended; None where all is to be kept as it is."""
        chosen = self.options[self.options["answer"]]
        return None if chosen.empty else chosen.iloc[0]

    @property
    def full_bytes(self) -> int:
        """Of one vector as it is in the file."""
        return self.full_dim * number_bytes(self.kind)


def number_bytes(kind: str) -> int:
    """Of one number of a file, of shards of several kinds the largest; those that are written out
    count as float32.
    """
    return max(
        {"bfloat16": 2, "JSON numbers": 4}.get(one) or np.dtype(one).itemsize
        for one in kind.split(" and ")
    )


def headline(found: Findings) -> str:
    """The recommendation in a sentence or two."""
    return sentence(found, found.answer)


def sentence(found: Findings, chosen: Any) -> str:
    """An option that is recommended, in a sentence or two; None keeps all as it is."""
    what, wanted = found.target
    if chosen is None:
        asked = {
            "recall": f"is sure to have a recall@10 of {wanted:g}",
            "retain": f"is sure to keep {100 * wanted:g} % of the score",
            "bytes": f"fits into {wanted:,.0f} bytes a vector",
        }[what]
        return f"Keep the vectors as they are: nothing smaller that was tried {asked}."
    before = f"{chosen['bytes']:,} bytes a vector instead of {found.full_bytes:,}"
    said = f"Store {in_words(chosen, found.full_dim)}: {before}. "
    share = _share_of(found, chosen)
    if what != "recall" and share is not None:
        # of its own bound, for which it was picked, less can be said than of what was asked for
        bound = ""
        if what == "retain" and not np.isnan(share["low"]):
            bound = f", with 95 % confidence at least {100 * wanted:g} %"
        return f"{said}This keeps {100 * share['share']:.1f} % of the {found.metric}{bound}."
    ranked = (
        f", the first {10 * chosen['rerank']} re-ranked by the full vectors"
        if chosen["rerank"]
        else ""
    )
    near = f"{10 * chosen['recall@10']:.2g} of the ten nearest neighbours are found"
    return f"{said}{near} (recall@10 {_interval(chosen)}){ranked}."


def in_words(option: Any, full_dim: int) -> str:
    """One way to store, such as: 96 of 384 dimensions (principal components) as int8."""
    dim, method = option["dim"], option["method"]
    which = f"all {full_dim} dimensions" if dim == full_dim else f"{dim} of {full_dim} dimensions"
    if (dim, method) != (full_dim, "truncate"):
        which += f" ({MEANS.get(method, method)})"
    return f"{which} as {_family(option['level'])}"


def explanation(found: Findings) -> list[str]:
    """The recommendation, and sentence by sentence what stands behind it: what it saves, what is
    odd, how it was measured.
    """
    return [headline(found), *_consequences(found), *found.predicted, *found.notes, *found.measured]


def _consequences(found: Findings) -> list[str]:
    return [*_of_answer(found), *two_answers(found), *_projection(found)]


def two_answers(found: Findings) -> list[str]:
    """What lies in memory alone, and what suffices where the first few are re-scored, in a
    paragraph; none where one of the two is unknown or saves nothing.
    """
    alone, rescored, full = found.answer, found.other, found.full_bytes
    if alone is not None and alone["rerank"]:
        alone, rescored = rescored, alone
    if found.other_row is None or rescored is None:
        return []
    in_memory = f"the vectors as they are, {full:,} bytes each"
    if alone is not None:
        if found.target[0] == "recall" and alone["bytes"] <= rescored["bytes"]:
            return []
        in_memory = _briefly(alone, found.full_dim)
    depth = int(rescored["rerank"])
    hint = (
        f" `--depth {depth}` writes the second."
        if found.answer is None or not found.answer["rerank"]
        else ""
    )
    return [
        f"In memory alone: {in_memory}. Re-scored: {_briefly(rescored, found.full_dim)}, if the "
        f"full vectors, {full:,} bytes each, are read from a disk for the first {10 * depth} found "
        f"and put them in order.{hint}"
    ]


def _briefly(option: Any, full_dim: int) -> str:
    return (
        f"{option['bytes']:,} bytes ({in_words(option, full_dim)}), recall@10 {_interval(option)}"
    )


def _projection(found: Findings) -> list[str]:
    """What the recall of the answer is expected to be among more rows than were searched."""
    chosen, rows = found.answer, found.total or found.rows
    if chosen is None or rows <= found.searched or not found.searched:
        return []
    if np.isnan(chosen["expected@10"]):
        return [unprojected(rows, found.searched)]
    tenfolds = np.log10(rows / found.searched)
    error = read_measured().growth.statement
    if tenfolds > 1:
        error += " Further than a tenfold its error is not known."
    return [
        f"Among {rows:,} vectors recall@10 is projected to be {chosen['expected@10']:.3f}: no "
        f"measurement, but the law by which it fell up to {found.searched:,}, carried on over "
        f"{tenfolds:.1f} tenfolds. {error}"
    ]


def unprojected(rows: int, searched: int) -> str:
    """That recall among so few rows does not tell how it falls."""
    return f"To {rows:,} vectors recall@10 cannot be projected: {searched:,} are too few."


def _of_answer(found: Findings) -> list[str]:
    chosen = found.answer
    if chosen is None:
        return []
    memory = [
        f"{n:,} vectors take {size(n * chosen['bytes'])} instead of {size(n * found.full_bytes)}"
        for n in COUNTS
    ]
    one, hundred, tail = (100 * chosen[name] for name in ("recall@1", "recall@100", "tail@10"))
    disk = ""
    if chosen["rerank"]:
        disk = " The full vectors are kept too, for re-ranking; they may lie on a disk."
    near = (
        f"The nearest neighbour is found for {one:.1f} % of queries, and {hundred:.1f} % of the "
        f"hundred nearest; {tail:.1f} % of queries find less than half of their ten."
    )
    if chosen["alike@10"] - chosen["recall@10"] > TIED:
        near += (
            f" Many are about as near as the tenth: counting those too, recall@10 is "
            f"{chosen['alike@10']:.3f}."
        )
    return [
        near,
        f"{'; '.join(memory)}.{disk}",
    ]


def _share_of(found: Findings, chosen: Any) -> Any:
    """The share of the score that the recommended way keeps, where it was measured."""
    if found.shares is None:
        return None
    kinds = ["method", "dim", "level"]
    own = found.shares[(found.shares[kinds] == chosen[kinds]).all(axis=1)]
    return None if own.empty else own.iloc[0]


def size(count: float) -> str:
    """Bytes as a reader says them."""
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    power = min(max(int(np.log10(max(count, 1)) // 3), 0), len(units) - 1)
    return f"{count / 1000**power:.3g} {units[power]}"


def _interval(option: Any) -> str:
    return f"{option['recall@10']:.3f} [{option['low@10']:.3f}, {option['high@10']:.3f}]"


def option_table(options: pd.DataFrame) -> pd.DataFrame:
    """Options for a reader, fewest bytes first."""
    rows = options.sort_values(["bytes", "recall@10"], ascending=[True, False], kind="stable")
    table = pd.DataFrame(
        {
            "bytes": [f"{n:,}" for n in rows["bytes"]],
            "recall@10": [_interval(row) for _, row in rows.iterrows()],
            "stored": [f"{row.method} {row.dim} × {row.level}" for row in rows.itertuples()],
            "re-ranked": [f"first {10 * n}" if n else "–" for n in rows["rerank"]],
            "ms": ["–" if np.isnan(ms) else f"{ms:.2g}" for ms in rows["ms"]],
        }
    )
    return table.assign(
        bytes=table["bytes"].where(~rows["answer"].to_numpy(), "▶ " + table["bytes"])
    )


def worth_a_choice(options: pd.DataFrame) -> pd.DataFrame:
    """Of the front, the fewest bytes whose interval lies above each of `STEPS`, re-ranked or not;
    and the answer.
    """
    chosen = set(options.index[options["answer"]])
    for _, own in options[options["front"]].groupby("rerank"):
        passing = (own[own["low@10"] >= step] for step in STEPS)
        chosen |= {part["bytes"].idxmin() for part in passing if len(part)}
    return options.loc[sorted(chosen)]


def share_table(shares: pd.DataFrame) -> pd.DataFrame:
    """Shares of the score for a reader, largest sizes first."""
    rows = shares.sort_values(["dim", "method"], ascending=[False, True], kind="stable")
    told = [
        ["–" if np.isnan(x) else f"{100 * x:.1f} %" for x in rows[name]]
        for name in ("share", "low")
    ]
    return pd.DataFrame(
        {
            "dims": rows["dim"].astype(str),
            "method": rows["method"],
            "level": rows["level"],
            "score kept": told[0],
            "lower bound": told[1],
        }
    )


@styled()
def draw_options(found: Findings) -> Drawing:
    """Recall@10 against bytes a vector: of each level the best method at each size; without
    re-ranking, and with.
    """
    options, chosen = found.options, found.answer
    depths = sorted(set(options["rerank"]))
    with_full = int(chosen["rerank"]) if chosen is not None and chosen["rerank"] else depths[-1]
    shown = sorted({depths[0], with_full})
    there = {_family(level) for level in options["level"]}
    families = [family for family in (*MENU[:-1], "product codes") if family in there]
    low, high = np.log2(options["bytes"].min()), np.log2(options["bytes"].max())
    powers = [2**power for power in range(int(np.floor(low)), int(np.ceil(high)) + 1)]
    figure, axes = new_figure(1, len(shown), height=4.0, sharey=True)
    for panel, depth in zip(axes, shown, strict=True):
        own = options[options["rerank"] == depth]
        for family, style in looks(families).items():
            part = own[own["level"].map(_family) == family]
            best = part.loc[part.groupby("bytes")["recall@10"].idxmax()].sort_values("bytes")
            band = {"alpha": 0.2, "linewidth": 0, "color": style["color"]}
            panel.fill_between(best["bytes"], best["low@10"], best["high@10"], **band)
            panel.plot(best["bytes"], best["recall@10"], **style)
        if chosen is not None and chosen["rerank"] == depth:
            panel.plot(
                [chosen["bytes"]],
                [chosen["recall@10"]],
                "o",
                markersize=15,
                markerfacecolor="none",
                color=GREY,
            )
        if found.target[0] == "recall":
            panel.axhline(found.target[1], color=GREY, linestyle=":", linewidth=1.2)
        if found.target[0] == "bytes":
            panel.axvline(found.target[1], color=GREY, linestyle=":", linewidth=1.2)
        panel.set_title(
            f"first {10 * depth} re-ranked" if depth else "without re-ranking",
            loc="left",
        )
        dim_axis(panel, powers, room=WIDTH / len(shown) - 0.7, label=False)
        panel.set_xlabel("bytes per vector")
    axes[0].set_ylabel("recall@10")
    add_legend(figure, series_handles(families))
    figure.alt = f"recall@10 against bytes per vector for {', '.join(families)}"
    return figure


def _family(level: str) -> str:
    return level if level in MENU else "product codes"


@styled()
def draw_shares(shares: pd.DataFrame, target: float | None) -> Drawing:
    """Share of the score kept against dimensions, with lower bounds."""
    shares = shares.assign(way=shares["method"] + " × " + shares["level"])
    names = list(dict.fromkeys(shares["way"]))
    figure, (panel,) = new_figure(height=3.4)
    for name, style in looks(names).items():
        part = shares[shares["way"] == name].sort_values("dim")
        panel.plot(part["dim"], 100 * part["share"], **style)
        band = {"alpha": 0.2, "linewidth": 0, "color": style["color"]}
        panel.fill_between(part["dim"], 100 * part["low"], 100 * part["share"], **band)
    if target is not None:
        panel.axhline(100 * target, color=GREY, linestyle=":", linewidth=1.2)
    panel.set_ylim(bottom=max(panel.get_ylim()[0], 0))  # a share below nothing is as bad as nothing
    panel.set_ylabel("score kept, %")
    dim_axis(panel, sorted(set(shares["dim"])), room=WIDTH - 0.9)
    add_legend(figure, series_handles(names))
    figure.alt = f"share of the score kept against dimensions for {', '.join(names)}"
    return figure


def page(found: Findings, usage: str = "") -> str:
    """The report as HTML, figures inside, for a browser, light or dark, wide or narrow.

    Args:
        found: what it says.
        usage: code that puts the advice to use; left out where there is none.
    """
    what, wanted = found.target
    parts = [
        f'<p class="answer">{escape(headline(found))}</p>',
        *_paragraphs(_consequences(found)),
    ]
    parts.append(
        _figure(
            draw_options(found),
            "Share of the ten nearest full-size neighbours that are found, against "
            "the bytes of a vector; bands are "
            "95\N{NO-BREAK SPACE}% intervals over queries. Each point is the best "
            "method of its level at this size. "
            f"{'The ring is the recommendation. ' if found.answer is not None else ''}"
            f"{'The dotted line is the target.' if what != 'retain' else ''}",
        )
    )
    front = option_table(worth_a_choice(found.options))
    steps = ", ".join(f"{step:g}" for step in STEPS)
    parts.append(
        _table(
            front,
            f"The fewest bytes for a recall@10 that is surely {steps}; ▶ is the recommendation",
        )
    )
    if found.shares is not None:
        about = (
            f"Share of the {found.metric or 'score'} at full size that is kept; "
            "shaded down to its lower bound. "
        )
        dotted = "The dotted line is the target." if what == "retain" else ""
        parts.append(
            _figure(draw_shares(found.shares, wanted if what == "retain" else None), about + dotted)
        )
        parts.append(_folded(share_table(found.shares), "Score kept at every size"))
    if found.predicted:
        parts += ["<h2>What a task's score is expected to keep</h2>", *_paragraphs(found.predicted)]
    if found.notes:
        listed = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
        parts += ["<h2>Before you rely on it</h2>", f"<ul>{listed}</ul>"]
    if found.measured:
        parts += ["<h2>How it was measured</h2>", *_paragraphs(found.measured)]
    if usage:
        parts.append(f"<h2>Use it</h2><pre>{escape(usage)}</pre>")
    parts.append(
        _folded(
            option_table(found.options),
            f"All {len(found.options)} ways to store that were tried",
        )
    )
    told = {"cosine": "cosine", "ip": "inner product", "l2": "Euclidean distance"}[found.similarity]
    about = f"{found.rows:,} vectors of {found.full_dim} × {found.kind}, compared by {told}"
    title = f"How to store {found.source}"
    return PAGE.format(title=escape(title), body="\n".join(parts), footer=escape(about))


def write(path: Path, found: Findings, usage: str = "") -> None:
    """Write the report, and beside it the same numbers as JSON, under the same name."""
    told = {
        "answer": answer_of(found, found.answer),
        "other_answer": other_answer_of(found),
        "source": found.source,
        "target": list(found.target),
        "rows": found.rows,
        "rows_total": found.total or found.rows,
        "dim": found.full_dim,
        "kind": found.kind,
        "similarity": found.similarity,
        "notes": list(found.notes),
        "measured": list(found.measured),
        "predicted": list(found.predicted),
        "options": _records(found.options),
        "shares": _records(found.shares),
    }
    text = page(found, usage)
    digest = hashlib.sha256(text.encode()).hexdigest()
    before = [sha256(path)] if path.is_file() else []

    def note(pages: list[str]) -> None:
        sealed_note = sealed({**told, "page": pages})
        write_text(path.with_suffix(".json"), json.dumps(sealed_note, ensure_ascii=False, indent=1))

    # By the note a folder that a kill left is known: until the new page is there, with the old one.
    note([digest, *before])
    write_text(path, text)
    note([digest])


def _records(table: pd.DataFrame | None) -> list[Any]:
    return [] if table is None else json.loads(table.to_json(orient="records"))


def answer_of(found: Findings, chosen: Any) -> dict[str, Any]:
    """An option for a program: how to store, and what is promised of it; where there is none, that
    vectors are kept as they are.
    """
    if chosen is None:
        return {"said": sentence(found, None), "keep": True, "bytes": found.full_bytes}
    parts = ["method", "dim", "level", "bytes", "rerank"]
    parts += ["recall@10", "low@10", "high@10", "tail@10", "expected@10"]
    said = {"said": sentence(found, chosen), "keep": False, **json.loads(chosen[parts].to_json())}
    share = _share_of(found, chosen)
    return said if share is None else {**said, "share": float(share["share"])}


def other_answer_of(found: Findings) -> dict[str, Any]:
    """The same with re-scoring, or without where the answer has it; empty where labels chose."""
    return {} if found.other_is_unknown else answer_of(found, found.other)


def summary(found: Findings) -> str:
    """The recommendation, what follows from it, and the ways that are worth a choice, as HTML for a
    notebook.
    """
    told = _paragraphs([headline(found), *_consequences(found)])
    table = option_table(worth_a_choice(found.options))
    return "".join(told) + _table(table, "The fewest bytes for each recall@10")


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
    title = f"<caption>{escape(caption)}</caption>"
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _folded(table: pd.DataFrame, caption: str) -> str:
    return f"<details><summary>{escape(caption)}</summary>{_table(table, caption)}</details>"


def usage(folder: Path, deployment: "Deployment") -> str:
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
# a file of any size, in shards; goes on where it was stopped
$ dimadvise apply vectors.npy --advice {quote(where)} --output shards
"""
