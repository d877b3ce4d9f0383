# A sweep on a laptop, Slurm or Kubernetes, from Snakemake's own environment:
#   snakemake --cores 2                               # here
#   snakemake --executor slurm --jobs 20              # there
#   snakemake --cores 2 --config notebooks='[zhang_figure3_trec]' encoders='[../my-encoder]' seeds='[0]' profile=embedded
# Any page, over `backbones` or `encoders`; without them, over what the profile has: under `paper` the printed networks and
# seeds. `repro sweep --plan` names the cells, and a rule calls `python -m repro`, so Snakemake's dependencies never meet
# ours. A cell is idempotent: what it trained is in the store, so an interrupted sweep goes on where it stopped.
# Files of texts and of vectors, shard by shard: `shards.smk`.
import json
import os
import shlex
import subprocess

PYTHON = os.environ.get("REPRO_PYTHON", ".venv/bin/python")
PROFILE = config.get("profile", "gpu")
NOTEBOOKS = config.get("notebooks", ["wang_figure2_dimensions", "wang_table1_two_step_simcse"])


def commands():
    """By the output of each cell, the arguments of `repro` that make it."""
    asked = [PYTHON, "-m", "repro", "sweep", *NOTEBOOKS, "--profile", PROFILE, "--plan"]
    for option in ("backbones", "encoders", "seeds", "dims"):
        if option in config:
            asked += [f"--{option}", *map(str, config[option])]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    cells = [json.loads(line) for line in told.splitlines()]
    return {cell["output"]: shlex.join(cell["command"]) for cell in cells}


COMMANDS = commands()


wildcard_constraints:
    notebook="[^/]+",


rule all:
    input:
        list(COMMANDS),


# All dims of one network and seed share their encoded texts, so a cell is a whole row of dims.
rule cell:
    input:
        "notebooks/{notebook}.md",
    output:
        "runs/{notebook}/{cell}.ipynb",
    params:
        python=PYTHON,
        command=lambda wildcards: COMMANDS[f"runs/{wildcards.notebook}/{wildcards.cell}.ipynb"],
    resources:
        gpu=1 if PROFILE != "embedded" else 0,
        runtime=120,
    shell:
        "{params.python} -m repro {params.command}"


include: "shards.smk"
