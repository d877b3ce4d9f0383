from pathlib import Path

FEW = (
    "damaged",
    "odd input",
    "reduce",
    "encode",
    "two processes",
    "read-only store",
    "right values",
    "edited vectors",
    "edited texts",
    "doctor beside foreign files",
    "apply beside foreign files",
)
SMALL = """
import sys
sys.path.insert(0, root)
sys.stdout = open(told, "w")
from tests.soak.__main__ import main
sys.exit(main(["--minutes", "0.03", "--only", *few]))
"""


def test_a_small_soak_holds(forkserver, tmp_path):
    told, given = tmp_path / "told", {"root": str(Path(__file__).parents[1]), "few": FEW}
    process = forkserver.Process(target=exec, args=(SMALL, {**given, "told": str(told)}))
    process.start()
    process.join(300)
    assert process.exitcode == 0 and " 0 faults" in told.read_text(), told.read_text()
