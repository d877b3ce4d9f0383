"""The advice in words, tables, figures and one HTML page; and what it saves."""

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from time import thread_time

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dimadvise.advice import Advice
from dimadvise.measured import read_measured
from repro.report.figures import GREY, WIDTH, Drawing, add_legend, dim_axis, look, new_figure, series_handles, styled
from repro.types import check_dim

PAGE = (files("dimadvise") / "report.html").read_text(encoding="utf-8")
MEASURES = {
    "participation ratio": "Directions that share the variance evenly",
    "TwoNN": "dimensions of the surface that neighbours lie on, however it is curved",
}
"""what two numbers measure that need not be near one another"""
MEANS = {"truncate": "the first ones, as they are", "pca": "principal components", "svd": "singular directions"}
SEARCHED, REPEATS = 20_000, 25
"""stored vectors that are searched to time a query, and how often; the fastest counts, others had company"""
COUNTS = (1_000_000, 1_000_000_000)  # stored vectors for which savings are told


def headline(advice: Advice) -> str:
    """The answer in one sentence."""
    chosen, kept = advice.answer, f"{100 * advice.retain:g} %"
    if chosen is None:
        could = "is expected" if advice.metric is None else "could be shown"
        return f"Keep all {advice.full_dim} dimensions: no smaller size {could} to keep {kept}."
    layer = "" if chosen.layer is None else f", layer {chosen.layer}"
    how = f"{chosen.dim} of {advice.full_dim} dimensions ({MEANS.get(chosen.method, 'random projection')}{layer})"
    if advice.metric is None:
        return f"{how} are expected to keep {kept} of a score; without labels this is a prediction."
    return (
        f"{how} keep {100 * chosen.share:.2f} % of the score measured here, and with 95 % confidence at least {kept}."
    )


def explanation(advice: Advice) -> list[str]:
    """What stands behind the answer, sentence by sentence."""
    if advice.metric is None:
        lines = [
            "Predicted: Spearman correlation of similarities before and after, if embeddings were Gaussian, from their "
            "covariance. Measured here (live): neighbours kept. Expected share of a score: from these, by the "
            "rule that was nearest to what labels say of other embeddings."
        ]
        reducers = [advice.answer.method] if advice.answer else [c.method for c in advice.candidates]
        lines += read_measured().statement(list(dict.fromkeys(reducers)), advice.retain)
    else:
        score = f"{advice.metric} at full size is {100 * advice.reference:.2f} on {advice.items:,} items"
        lines = [f"Measured here (live): {score}."]
        each = f"{100 * advice.confidence:.4g} %"
        lines.append(f"Bounds hold with {each} each: all ways together err with 5 % at most.")
    if advice.answer is not None:
        lines.append(f"Of ten nearest neighbours {10 * advice.answer.neighbours:.1f} stay among the ten nearest.")
    known = "" if advice.metric is None else "; those that judge, on rows that are not judged"
    lines.append(f"Maps were fitted on {advice.rows:,} embeddings{known}.")
    sizes = "; ".join(f"{MEASURES[name]} ({name}): {value:.1f}" for name, value in advice.intrinsic.items())
    return [*lines, f"{sizes}.", *(note[0].upper() + note[1:] + "." for note in advice.notes)]


def candidate_table(advice: Advice) -> pd.DataFrame:
    """One row per candidate; shares are fractions, and a bound that does not hold is missing."""
    frame = pd.DataFrame([vars(candidate) for candidate in advice.candidates])
    frame["line"] = [c.method if c.layer is None else f"{c.method}, layer {c.layer}" for c in advice.candidates]
    frame["layer"] = frame["layer"].astype("Int64")
    return frame[["line", "layer", "method", "dim", "score", "share", "low", "expected", "predicted", "neighbours"]]


def report_table(advice: Advice) -> pd.DataFrame:
    """The candidates as the report shows them: what the answer rests on, and which one it is."""
    hidden = ["score", "share", "low"] if advice.metric is None else ["expected", "predicted"]
    frame = candidate_table(advice).drop(columns=["line", *hidden]).dropna(axis="columns", how="all").round(4)
    frame.insert(0, "answer", ["▶" if candidate == advice.answer else "" for candidate in advice.candidates])
    said = {"share": "share kept", "low": "lower bound", "expected": "share expected"}
    return frame.rename(columns={**said, "predicted": "similarity predicted", "neighbours": "neighbours kept"})


def savings(full: int, dim: int) -> pd.DataFrame:
    """Bytes in float32 and seconds of one core for one exact query, at `full` and at `dim` dimensions; a row per count.

    The seconds are processor time: those spent waiting for a busy machine do not count. They are measured over
    `SEARCHED` vectors, times what is missing.
    """
    check_dim(dim, limit=check_dim(full, what="full"))
    rng = np.random.default_rng(0)
    stores = {size: rng.standard_normal((SEARCHED, size), dtype=np.float32) for size in {full, dim}}
    taken: dict[int, list[float]] = {size: [] for size in stores}
    with threadpool_limits(1, user_api="blas"):
        for _ in range(REPEATS):
            for size, store in stores.items():
                begun = thread_time()
                int((store @ store[0]).argmax())
                taken[size].append(thread_time() - begun)
    each = {size: min(times) / SEARCHED for size, times in taken.items()}
    rows = [(n, 4 * n * full, 4 * n * dim, n * each[full], n * each[dim]) for n in COUNTS]
    return pd.DataFrame(rows, columns=["vectors", "memory now", "then", "a query now", "a query then"])


def saving_table(found: pd.DataFrame) -> pd.DataFrame:
    """Memory and time as a reader says them."""
    words = ("{:,}".format, size, size, duration, duration)
    return pd.DataFrame({name: found[name].map(word) for name, word in zip(found.columns, words, strict=True)})


def size(count: float) -> str:
    """Bytes as a reader says them."""
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    power = min(max(int(np.log10(max(count, 1)) // 3), 0), len(units) - 1)
    return f"{count / 1000**power:.3g} {units[power]}"


def duration(seconds: float) -> str:
    """Seconds as a reader says them."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


@styled()
def draw_advice(frame: pd.DataFrame, *, retain: float, labelled: bool) -> Drawing:
    """Share of the score kept against size, with lower bounds; without labels the share that is expected."""
    names = list(dict.fromkeys(frame["line"]))
    figure, axes = new_figure(1, 2, height=3.7)
    left, right = axes
    for position, name in enumerate(names):
        part, style = frame[frame["line"] == name].sort_values("dim"), look(position)
        left.plot(part["dim"], 100 * part["share" if labelled else "expected"], **style)
        if labelled:
            low, share = 100 * part["low"], 100 * part["share"]
            left.fill_between(part["dim"], low, share, color=style["color"], alpha=0.2, linewidth=0)
        right.plot(part["dim"], 100 * part["neighbours"], **style)
    left.set_ylim(bottom=max(left.get_ylim()[0], 0))  # a share below nothing is as bad as nothing
    left.axhline(100 * retain, color=GREY, linestyle=":", linewidth=1.2)
    left.set_title("score kept, %" if labelled else "score kept, expected, %", loc="left")
    right.set_title("neighbours kept, %", loc="left")
    for panel in axes:
        dim_axis(panel, sorted(set(frame["dim"])), room=WIDTH / 2 - 0.7)
    add_legend(figure, series_handles(names))
    kept = "share of the score kept, with its lower bound," if labelled else "share of a score expected to be kept"
    figure.alt = f"{kept} and share of nearest neighbours kept, against dimensions, for {', '.join(names)}"
    return figure


def advice_page(title: str, advice: Advice, tables: Mapping[str, pd.DataFrame], footer: str) -> str:
    """The report as one HTML file, tables by caption and the figure inside, for a browser, light or dark."""
    figure = draw_advice(candidate_table(advice), retain=advice.retain, labelled=advice.metric is not None)
    parts = [
        f'<p class="answer">{escape(headline(advice))}</p>',
        *(f"<p>{escape(text)}</p>" for text in explanation(advice)),
        f'<div class="scroll">{figure.img()}</div>',
    ]
    for caption, table in tables.items():
        html = table.to_html(index=False, border=0, escape=True, na_rep="–")
        parts.append(f'<h2>{escape(caption)}</h2><div class="scroll">{html}</div>')
    return PAGE.format(title=escape(title), body="\n".join(parts), footer=escape(footer))
