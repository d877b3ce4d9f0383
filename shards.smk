# Texts encoded, and vectors put through an advice, a file a job, so that many machines may share the work:
#   snakemake --cores 2 encoded --config texts=texts encoder=all-MiniLM-L6-v2 vectors=vectors
#   snakemake --cores 2 applied --config vectors=vectors advice=advice applied=applied
# `texts` is a folder of .txt, a text a line, `vectors` one of .npy. A job is idempotent: whatever `dimadvise apply` finds in
# the folder of its shard it compares with the digests of codes and of rows, and makes again what is not of these rows.
from pathlib import Path

TEXTS, VECTORS, ADVICE, APPLIED = (
    Path(config.get(name, name)) for name in ("texts", "vectors", "advice", "applied")
)
ENCODED = sorted(path.stem for path in TEXTS.glob("*.txt"))
SHARDS = sorted({*ENCODED, *(path.stem for path in VECTORS.glob("*.npy"))})


rule encoded:
    input:
        expand(VECTORS / "{shard}.npy", shard=ENCODED),


rule applied:
    input:
        expand(APPLIED / "{shard}" / "part-00000.npy", shard=SHARDS),


rule encode_shard:
    input:
        TEXTS / "{shard}.txt",
    output:
        VECTORS / "{shard}.npy",
    params:
        python=PYTHON,
        encoder=config.get("encoder", "repro-tiny"),
    shell:
        "{params.python} -m repro encode --encoder {params.encoder:q} --texts {input:q} --output {output:q} --quiet"


rule apply_shard:
    input:
        vectors=VECTORS / "{shard}.npy",
        map=ADVICE / "reducer.json",
    output:
        APPLIED / "{shard}" / "part-00000.npy",
    params:
        dimadvise=Path(PYTHON).with_name("dimadvise"),
        advice=ADVICE,
        folder=lambda wildcards: APPLIED / wildcards.shard,
    shell:
        "{params.dimadvise} apply {input.vectors:q} --advice {params.advice:q} --output {params.folder:q} "
        "--rows-per-shard 1000000000"
