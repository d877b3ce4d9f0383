from pathlib import Path

SMALL = """
import sys
sys.path.insert(0, root)
sys.stdout = open(told, "w")
from tests.soak.__main__ import main
sys.exit(main(["--minutes", "0.03", "--only", "damaged", "odd input", "reduce", "encode", "two processes", "read-only store"]))
"""


def test_a_small_soak_holds(forkserver, tmp_path):
    told, root = tmp_path / "told", Path(__file__).parents[1]
    process = forkserver.Process(target=exec, args=(SMALL, {"root": str(root), "told": str(told)}))
    process.start()
    process.join(300)
    assert process.exitcode == 0, told.read_text()
    assert " 0 faults" in told.read_text()
