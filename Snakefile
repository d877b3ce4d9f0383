# A sweep on a laptop, Slurm or Kubernetes, from Snakemake's own environment:
#   snakemake --cores 2                               # here
#   snakemake --executor slurm --jobs 20              # there
#   snakemake --cores 2 --config backbones='[repro-tiny, ../my-encoder]' seeds='[0]' profile=embedded
# Rules only call `python -m repro`, so Snakemake's dependencies never meet ours. A cell is idempotent: what it
# trained is in the store under the digest of its settings, so an interrupted sweep goes on where it stopped. Files of
# texts and of vectors, shard by shard: `shards.smk`.
import os
from hashlib import sha256
from pathlib import Path

PYTHON = os.environ.get("REPRO_PYTHON", ".venv/bin/python")
PROFILE = config.get("profile", "gpu")
BACKBONES = config.get("backbones", ["repro-tiny", "all-MiniLM-L6-v2"])
SEEDS = config.get("seeds", [0, 1, 2])
DIMS = config.get("dims", [768, 512, 256, 128, 64, 32, 16, 8])
NOTEBOOKS = config.get("notebooks", ["wang_figure2_dimensions", "wang_table1_two_step_simcse"])


def label_of(backbone):
    """A backbone's name in the names of files, as `repro sweep` has it: a folder's own name and a digest of its path."""
    whole = Path(backbone).resolve()
    return f"{whole.name}-{sha256(str(whole).encode()).hexdigest()[:8]}" if whole.is_dir() else backbone


BACKBONE_OF = {label_of(backbone): backbone for backbone in BACKBONES}


wildcard_constraints:
    notebook="[^/]+",
    seed="[0-9]+",


rule all:
    input:
        expand("runs/{notebook}/{backbone}-seed{seed}.ipynb", notebook=NOTEBOOKS, backbone=BACKBONE_OF, seed=SEEDS),


# All dims of one backbone and seed share their encoded texts, so a cell is a whole row of dims.
rule cell:
    input:
        "notebooks/{notebook}.md",
    output:
        "runs/{notebook}/{backbone}-seed{seed}.ipynb",
    params:
        python=PYTHON,
        backbone=lambda wildcards: BACKBONE_OF[wildcards.backbone],
        profile=PROFILE,
        dims=str(list(DIMS)),
    resources:
        gpu=1 if PROFILE != "embedded" else 0,
        runtime=120,
    shell:
        "{params.python} -m repro run {input} --output {output:q} -p profile {params.profile} "
        "-p backbone {params.backbone:q} -p dims '{params.dims}' -p seed {wildcards.seed} --record"


include: "shards.smk"
