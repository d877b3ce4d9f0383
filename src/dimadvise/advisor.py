"""The advisor from Python: the fewest bytes that keep what vectors are used for, and whether what
was promised of them still holds. Heavy libraries load when something is asked.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from threadpoolctl import threadpool_limits

from dimadvise.request import Request, as_option
from repro.locks import locked
from repro.seeding import cpu_count
from repro.types import Array, InputError, one_of
from repro.writing import writable_folder

if TYPE_CHECKING:
    import pandas as pd

    from dimadvise.coding import Deployment
    from dimadvise.files import Vectors
    from dimadvise.findings import Findings
    from dimadvise.transform import Transform
    from repro.evaluation.stats import Interval

WRITTEN = ("report.json", "report.html", "reducer.safetensors", "reducer.json", "codes.safetensors")
"""All that an advice leaves in its folder, if it has an answer."""
LOCK = ".advice.lock"  # Held in that folder while they are written
BESIDES = ("embeddings", "queries", "labels", "output", "fail_if_kept")
"""Fields of a request that are no options of functions, but arguments or of the command alone."""
CHECKED = ("pairs", "qrels", "sample", "seed", "column", "columns", "queries_column")
"""Fields of a request that a check knows."""
Source: TypeAlias = "Vectors | Array | Path | str"


@dataclass(frozen=True, eq=False)
class Advice:
    """What was found of some vectors, and how to store them. As text it is what the command says.

    `deployment` shortens and codes vectors as advised; None keeps them as they are.
    """

    findings: "Findings"
    deployment: "Deployment | None" = None
    note: Mapping[str, Any] = field(default_factory=dict)
    """What `reducer.json` says beside the map."""
    pasted: str = ""  # What to give the store; empty without one

    def __str__(self) -> str:
        from dimadvise.findings import explanation

        return "\n  ".join(explanation(self.findings))

    @property
    def answer(self) -> dict[str, Any]:
        """How to store and what is promised of it: `said` in a sentence, `keep` (as they are),
        `bytes` of a vector, and where there is something to store method, dim, level, rerank,
        recall@10 with low@10 and high@10, tail@10 (share of queries that find less than half of
        their ten) and expected@10 (where there are more rows than were searched a projection, and
        no promise), and with labels the `share` of their score.
        """
        from dimadvise.findings import answer_of

        return answer_of(self.findings, self.findings.answer)

    @property
    def other_answer(self) -> dict[str, Any]:
        """The same of what suffices if the first few are re-scored by the full vectors; without
        re-scoring if `depth` asked for it; empty where labels chose, which tell nothing of it.
        """
        from dimadvise.findings import other_answer_of

        return other_answer_of(self.findings)

    @property
    def options(self) -> "pd.DataFrame":
        """A row for each way to store that was measured, as the docstring of `Findings` has it."""
        return self.findings.options

    @property
    def transform(self) -> "Transform":
        """The map to fewer numbers."""
        return self.stored.transform

    def codes(self, X: Array) -> Array:
        """Rows X (n, D) as they are stored, in so many bytes each as `answer` says."""
        return self.stored.codes(X)

    def save(self, folder: Path | str) -> list[Path]:
        """Write the report, as HTML and JSON, and the map, for `dimadvise apply` and `check`.

        Of two that are saved in one folder at once the second waits: report and map are of one.

        Raises:
            InputError: where the folder holds files of these names that no advice wrote, or that
                were changed since.
        """
        from dimadvise import deploy, report

        output = Path(folder)
        writable_folder(output).mkdir(parents=True, exist_ok=True)
        how = ""
        if self.deployment is not None:
            how = report.usage(output, self.deployment) + self.pasted
        with locked(output / LOCK):
            refuse_foreign(output)
            report.write(output / WRITTEN[1], self.findings, how)
            deploy.remove(output)  # An earlier advice may have had an answer where this has none.
            if self.deployment is None:
                return [output / WRITTEN[1]]
            return [output / WRITTEN[1], *deploy.write(output, self.deployment, **self.note)]

    @property
    def stored(self) -> "Deployment":
        """How vectors are stored; InputError where they are to be kept as they are."""
        if self.deployment is None:
            raise InputError(f"{self.answer['said']} There is no map and there are no codes.")
        return self.deployment

    def _repr_html_(self) -> str:
        from dimadvise.report import summary

        return summary(self.findings)


@dataclass(frozen=True)
class Check:
    """What an advice keeps of other vectors, beside what it promised. As text it is a sentence."""

    what: str  # recall@10, or the share that is kept of a score
    promised: float
    measured: "Interval"
    tail: float  # Share of queries that find less than half of their ten; NaN of a score
    about: str  # Whom it was measured on, in words

    @property
    def verdict(self) -> str:
        """`holds`; `in doubt`, if chance alone may miss it by so much; or else `broken`."""
        if self.measured.value >= self.promised:
            return "holds"
        return "broken" if self.measured.high < self.promised else "in doubt"

    @property
    def broken(self) -> bool:
        """Whether it surely does not hold; what is in doubt is not."""
        return self.verdict == "broken"

    def __str__(self) -> str:
        interval = self.measured
        sentence = {
            "holds": "The promise holds",
            "in doubt": "The promise is in doubt, missed by no more than chance does: measure more",
            "broken": "The promise is broken: advise anew on vectors as they are now",
        }[self.verdict]
        tail = ""
        if not math.isnan(self.tail):
            tail = f" {100 * self.tail:.1f} % of queries find less than half of their ten."
        return (
            f"{sentence}. {self.what} {interval.value:.3f} [{interval.low:.3f}, "
            f"{interval.high:.3f}], promised {self.promised:.3f}; {self.about}.{tail}"
        )


def advise(
    vectors: "Request | Source",
    queries: "Source | None" = None,
    labels: Path | Sequence[str] | None = None,
    **options: Any,
) -> Advice:
    """The fewest bytes a vector that keep what vectors are used for; nothing is written.

    It measures which of the full-size neighbours are still found, by queries that no map has seen;
    with graded pairs, labels or relevant documents also the share of their score that is kept, with
    a lower bound.

    Args:
        vectors: one row per text (n, D), as an array or the file or folder that holds them; or a
            whole request.
        queries: vectors of queries as they will be asked (m, D), where the others are the
            documents; by default some of these stand in for them.
        labels: one for each row, or the file that holds them.
        options: fields of `Request` by name, such as recall=0.95, retain=0.99, bytes=96,
            store="pgvector" or pairs="pairs.tsv".

    Raises:
        InputError: for values that cannot be, options beside a whole request, vectors that nothing
            can be told of, and files of them that were written to meanwhile.
    """
    from dimadvise.answer import answered
    from dimadvise.files import memory_explained
    from dimadvise.inputs import case_of
    from dimadvise.vectors import files_of
    from repro.stamps import unchanged

    started = time.perf_counter()
    if isinstance(vectors, Request):
        request = vectors
        beside = {"queries": queries, "labels": labels, **options}
        twice = [name for name, value in beside.items() if value is not None]
        if twice:
            raise InputError(f"{' and '.join(twice)} beside a whole request: set it in the request")
        request.check()
        inputs: tuple[Any, Any, Any] = (request.embeddings, request.queries, request.labels)
    else:
        names = [option.name for option in fields(Request) if option.name not in BESIDES]
        request = _requested(options, names)
        inputs = vectors, queries, labels
    fewer = "or search fewer rows by --sample"
    with unchanged(*inputs[:2], files=files_of):
        with unchanged(inputs[2], *_tables_of(request)):
            case = case_of(request, *inputs)
        with threadpool_limits(cpu_count()), memory_explained(f"advise on {case.source}", fewer):
            return answered(case, started)


def check(
    advice: Advice | Path | str,
    vectors: "Source",
    queries: "Source | None" = None,
    labels: Path | Sequence[str] | None = None,
    **options: Any,
) -> Check:
    """Whether what an advice promised still holds of other vectors: of today, or of new texts.

    The map is used as it was written, and nothing is fitted. With labels, pairs or qrels it is the
    share of their score that is measured, as an advice by labels promised it; else recall@10.

    Args:
        advice: what `advise` gave, or the folder where it was saved.
        vectors: rows (n, D) of full size, as an array or the file or folder that holds them.
        queries: (m, D), as they are asked; by default some of the rows.
        labels: one for each row, or the file that holds them.
        options: of `Request` pairs, qrels, sample, seed, column, columns and queries_column.

    Raises:
        InputError: for other options, vectors of another width, a folder without an advice or of
            one that keeps vectors as they are, and labels where no share of their score was
            promised.
    """
    from dimadvise.again import checked
    from dimadvise.deploy import read, read_note
    from dimadvise.inputs import case_of
    from dimadvise.vectors import files_of
    from repro.stamps import unchanged

    request = _requested(options, CHECKED)
    if isinstance(advice, Advice):
        deployment, note = advice.stored, advice.note
    else:
        deployment, note = read(Path(advice)), read_note(Path(advice))
    with threadpool_limits(cpu_count()), unchanged(vectors, queries, files=files_of):
        with unchanged(labels, *_tables_of(request)):
            case = case_of(request, vectors, queries, labels)
        return checked(deployment, note.get("promised", {}), case)


def _tables_of(request: Request) -> tuple[Path | str | None, ...]:
    """What a request reads whole beside vectors, while it is opened."""
    return request.pairs, request.qrels, request.texts


def _requested(options: Mapping[str, Any], names: Sequence[str]) -> Request:
    """A request with some options, none of which would be dropped."""
    settings = {}
    for name, value in options.items():
        one_of(name, names, "option")
        settings[name] = as_option(name, value)
    request = Request(**settings)
    request.check()
    return request


def refuse_foreign(output: Path) -> None:
    """Refuse to write over files of these names that no earlier advice wrote, or that were changed
    since.
    """
    from dimadvise.deploy import check_ours, read_sealed
    from repro.manifests import sha256

    existing = [name for name in WRITTEN if (output / name).exists()]
    if not existing:
        return
    pages: list[str] = []
    with suppress(OSError, InputError, KeyError, TypeError):
        pages = list(read_sealed(output / WRITTEN[0])["page"])
    if not pages:
        raise InputError(
            f"{output / existing[0]} was written by no advice, or has changed since: move it away "
            "or give another --output, nothing is overwritten"
        )
    page = output / WRITTEN[1]
    if page.exists() and sha256(page) not in pages:
        raise InputError(
            f"{page} has changed since it was written: move it away or give another --output, "
            "nothing is overwritten"
        )
    check_ours(output)
