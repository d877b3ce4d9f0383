"""The commands `dimadvise advise`, `apply` and `check`: how few bytes do these vectors need, make
it so, and does it still hold?
"""

from pathlib import Path
from shlex import quote

import tyro
from threadpoolctl import threadpool_limits

from dimadvise import advisor
from dimadvise.advisor import refuse_foreign
from dimadvise.request import Recheck, Request, refuse_itself
from repro.seeding import cpu_count
from repro.terminal import announce, say
from repro.writing import writable_folder

KEPT = 3  # How a job ends that was to fail if vectors are kept as they are


def advise(request: Request) -> int:
    """The fewest bytes a vector that keep what your embeddings are used for, with a report and the
    fitted map.

    It measures which full-size neighbours are still found, by queries that no map has seen.

    Begin with: dimadvise advise vectors.parquet --store pgvector (minutes for 200,000 vectors)

    With graded pairs, labels or relevant documents, also the share of their score that is kept,
    with a lower bound.
    """
    output = request.output
    refuse_foreign(writable_folder(output))
    refuse_itself(output, request.embeddings)
    announce("measuring, which may take minutes")
    advice = advisor.advise(request)
    replaced = (output / "reducer.json").exists()
    report, *written = advice.save(output)
    say(str(advice))
    if written:
        say(f"the map: {', '.join(map(str, written))}")
    if "encoder" in advice.note:
        where = quote(str(output))
        say(f"encoder and map as one: repro export --reducer {where} --output NEW_FOLDER")
    if replaced:
        say(f"replaced: the map of an earlier advice in {output}; shards made by it have a copy")
    say(f"report: {report}")
    if advice.pasted:
        from dimadvise.stores import filled_by

        filled = filled_by(str(request.store), str(output), str(request.embeddings or "VECTORS"))
        say(f"{request.store}: {filled}:\n{advice.pasted}")
    return KEPT if request.fail_if_kept and advice.deployment is None else 0


def apply(
    vectors: tyro.conf.Positional[Path],
    advice: Path = Path("advice"),
    output: Path = Path("vectors"),
    level: str = "",
    rows_per_shard: int = 250_000,
    column: str = "",
) -> int:
    """Put vectors through an advice, as many as there are; stopped, the same command goes on where
    it was.

    Given again after the vectors have changed, it makes again what was made from other rows, and
    goes on where they have grown. Where a column or array names the rows, their ids are written
    too.

    Args:
        vectors: file or folder of vectors, as wide as those that were advised on.
        advice: folder that `dimadvise advise` wrote.
        output: folder for the shards, one .npy file each, and beside it one .ids.parquet.
        level: what is written: codes as advised, or numbers; by default as advised.
        rows_per_shard: rows of each file.
        column: field of the file that holds the vectors; by default the only one.
    """
    from dimadvise.apply import apply as put_through
    from dimadvise.files import memory_explained

    with threadpool_limits(cpu_count()), memory_explained(f"put {vectors} through {advice}"):
        put_through(
            vectors,
            advice,
            output,
            level=level,
            rows_per_shard=rows_per_shard,
            column=column,
        )
    return 0


def check(request: Recheck) -> int:
    """Whether what an advice promised still holds of vectors as they are now; 1 where it surely
    does not.

    The map is used as it was written. With what judged it, a share of the score is measured again;
    else recall@10.
    """
    options = {name: getattr(request, name) for name in advisor.CHECKED}
    arguments = request.advice, request.vectors, request.queries, request.labels
    outcome = advisor.check(*arguments, **options)
    say(str(outcome))
    return 1 if outcome.broken else 0
