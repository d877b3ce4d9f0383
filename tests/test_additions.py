"""What ARCHITECTURE.md says of "Where do I add …" is true to the file: each is added to a copy of
the package, in no more files than it says, and works; no encoder is trained again for it.
"""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from repro.paths import project_root

REDUCER = '''"""The last columns."""

from repro.reducers.linear import Truncate
from repro.types import Array


class Tail(Truncate):
    """The last `n_components` columns."""

    def _reduce(self, X: Array) -> Array:
        return super()._reduce(X[:, ::-1])
'''
OBJECTIVE = '''"""Both views of a sentence come together, and nothing else."""

from repro.models.encoder import SentenceEncoder
from repro.settings import TrainConfig
from repro.training.end_to_end import LossAt, batches, two_views


def pull(config: TrainConfig, encoder: SentenceEncoder, examples) -> tuple[SentenceEncoder, LossAt]:
    ids, _ = encoder.backbone.tokenize(examples, config.max_length)
    batch = batches(config, len(examples))

    def loss_at(step):
        rows = [ids[i] for i in batch(step)]
        one, other = two_views(encoder, rows, rows)
        return (one - other).square().mean()

    return encoder, loss_at
'''
DATASET = """

[answers]
kind = "pairs"
title = "Answers"
sizes = { test = 4 }
licence = "ours"
file = "sts/answers.tsv"
"""
PAIRS = "split\tscore\tsentence1\tsentence2\n" + "".join(
    f"test\t{score}\tthe cook saw {thing}\tthe cook saw the {other}\n"
    for score, thing, other in [
        (5, "rain", "rain"),
        (1, "rain", "sea"),
        (0, "a", "b"),
        (4, "c", "c"),
    ]
)
KEYS = """
from repro.config import profile
from repro.runs.cell import cell_key
names = ("simcse", "nli", "angle", "matryoshka", "ese")
profiles = [profile("embedded", source="microworld", objective=name) for name in names]
keys = [cell_key(chosen.train) for chosen in profiles]
"""
END = "--- end of a command ---\n"
VERBS = f"""
import sys
from repro.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as stop:
        if stop.code:
            raise
    print({END!r}, end="")
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, with what Python compiled of it, and what works on it."""
    shutil.copytree(project_root() / "src", tmp_path / "src")
    return Copy(tmp_path)


class Copy:
    def __init__(self, root):
        self.root = root
        self.touched = set()

    def write(self, name, text):
        (self.root / "src" / "repro" / name).write_text(text, encoding="utf-8")
        self.touched.add(name)

    def change(self, name, before, after):
        text = (self.root / "src" / "repro" / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{before!r} in {name}"
        self.write(name, text.replace(before, after))

    def run(self, *words):
        """Output of Python in the copy."""
        given = {"PYTHONPATH": str(self.root / "src"), "REPRO_HOME": str(self.root / "home")}
        given |= {"REPRO_DATA": str(self.root / "data"), "PATH": os.environ["PATH"]}
        given["OMP_NUM_THREADS"] = "1"
        done = subprocess.run(
            [sys.executable, *words], env=given, capture_output=True, text=True, cwd=self.root
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_a_reducer_an_objective_and_a_dataset_are_added_as_architecture_says(copy, tiny):
    (copy.root / "data" / "sts").mkdir(parents=True)
    (copy.root / "data" / "sts" / "answers.tsv").write_text(PAIRS, encoding="utf-8")
    (copy.root / "data" / "wiki.txt").write_text("one line\n", encoding="utf-8")
    before: dict = {}
    exec(KEYS, before)

    menu = "reducers/__init__.py"
    copy.write("reducers/tail.py", REDUCER)
    copy.change(
        menu,
        "from repro.store import Store",
        "from repro.reducers.tail import Tail\nfrom repro.store import Store",
    )
    copy.change(menu, "    Centred,\n    Isomap,", "    Centred,\n    Tail,\n    Isomap,")
    assert len(copy.touched) == 2
    np.save(copy.root / "X.npy", np.eye(5, dtype="f4"))

    copy.touched.clear()
    copy.write("training/pull.py", OBJECTIVE)
    record = '    "pull": Objective(label="Pull {dim}", material=training_sentences, recipes={}),\n'
    copy.change("objectives.py", '    "nli": Objective(', f'{record}    "nli": Objective(')
    copy.change(
        "runs/cell.py",
        '    "simcse": contrastive,',
        '    "simcse": contrastive,\n    "pull": pull,',
    )
    where = "from repro.training.simcse import contrastive"
    copy.change("runs/cell.py", where, f"from repro.training.pull import pull\n{where}")
    assert len(copy.touched) == 3

    copy.touched.clear()
    menu = copy.root / "src" / "repro" / "assets" / "datasets.toml"
    copy.write("assets/datasets.toml", menu.read_text(encoding="utf-8") + DATASET)
    assert len(copy.touched) == 1

    lines = (
        "reduce --method tail --dim 2 --input X.npy --output Y.npy",
        f"train --backbone {tiny} --objective pull --dims 4 --sentences 64 --batch-size 16 "
        "--workers 1 --source microworld",
        f"evaluate --encoder {tiny} --data answers --source local",
    )
    code = f"{VERBS}{KEYS}\nimport json\nprint(json.dumps(keys))"
    reduced, trained, evaluated, after = copy.run("-c", code, *lines).split(END)
    assert "tail of 5 rows, 5 -> 2 dims" in reduced
    assert "Pull 4: trained in" in trained
    assert "spearman" in evaluated
    assert json.loads(after) == before["keys"], "no encoder is trained again for any of it"


CLAIM = """
[claims.ZHANG-ADDED]
statement = "Truncated SVD and PCA give about the same similarity."
place = "nowhere"

[[claims.ZHANG-ADDED.parts]]
on = ["figure2"]
what = "{task}, {encoder}: mean absolute difference of SVD and PCA"
rows = "method == 'SVD' and metric == 'distance_from_pca' and {either}"
each = "encoders"
over = ["setting"]
cell = "average"
test = "sameness"
"""
JUDGED = """
from repro.papers.recorded import recorded_verdicts
from repro.report.scorecard import scorecard
card = scorecard(recorded_verdicts("zhang_figure2")).set_index("claim_id")
print(card.loc["ZHANG-ADDED", ["statement", "recorded"]].to_list())
"""
PAGE = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# An added page

```{code-cell} ipython3
:tags: [parameters]

dim: int = 3  # size
```

```{code-cell} ipython3
print(f"{dim} dims")
```
"""


def test_a_claim_is_one_record_and_a_page_one_file_and_two_lines(copy):
    root = project_root()
    shutil.copytree(root / "results", copy.root / "results")
    (copy.root / "notebooks").mkdir()
    contents = (root / "_toc.yml").read_text(encoding="utf-8")
    page = "  - file: notebooks/playground"
    assert contents.count(page) == 1
    added = contents.replace(page, f"  - file: notebooks/added\n{page}")
    (copy.root / "_toc.yml").write_text(added, encoding="utf-8")

    table = copy.root / "src" / "repro" / "papers" / "zhang.toml"
    copy.write("papers/zhang.toml", table.read_text(encoding="utf-8") + CLAIM)
    assert len(copy.touched) == 1
    told = copy.run("-c", JUDGED)
    assert "Truncated SVD and PCA give about the same similarity." in told

    (copy.root / "notebooks" / "added.md").write_text(PAGE, encoding="utf-8")
    copy.run(*["-m", "repro", "run", "added", "-p", "dim", "5", "--output", "added.ipynb"])
    assert "5 dims" in (copy.root / "added.ipynb").read_text(encoding="utf-8")
