"""What every test stands on: a store of its own, one thread, and a tiny random BERT in place of a
trained one.
"""

import gc
import gzip
import json
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
# No pool for trainings of a second: its workers would each import torch first
os.environ["REPRO_THREADS"] = "1"


def pytest_collection_finish() -> None:
    """Leave what the imports made out of every later search for garbage: a million objects that
    stay until the end.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def repro_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that no other test and no user shares."""
    home = tmp_path / "home"
    monkeypatch.setenv("REPRO_HOME", str(home))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return home


@pytest.fixture
def repro(capsys: pytest.CaptureFixture[str]) -> Callable:
    """Run the command, whose first argument may hold several words; its output and complaints.

    It ends with 0, or as is said; what ends with 2 is a mistake, told in one message.
    """
    from repro.cli import main

    def run(line: str = "", *more: object, ends: int = 0):
        with pytest.raises(SystemExit) as stopped:
            main([*line.split(), *map(str, more)])
        said = capsys.readouterr()
        assert stopped.value.code == ends, said.err
        assert ends != 2 or (said.err.count("error:") == 1 and "Traceback" not in said.err), (
            said.err
        )
        return said

    return run


@pytest.fixture(scope="session")
def sentences() -> tuple[str, ...]:
    """Six hundred sentences of the microworld."""
    from repro import data

    return data.load("wiki", source="microworld", limit=600).texts


def random_bert(layers: int, folder: Path, sentences: tuple[str, ...]) -> str:
    """Write a random BERT of hidden size 32, with a WordPiece vocabulary of 400 trained on the
    microworld.
    """
    import torch

    from repro.training.mlm import PretrainConfig, make_bert
    from repro.training.wordpieces import train_wordpiece

    torch.set_num_threads(1)
    make_bert(
        train_wordpiece(sentences, 400),
        PretrainConfig(layers=layers, hidden_dim=32, max_length=48),
    ).save(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, sentences: tuple[str, ...]) -> str:
    """Folder of a random BERT of 2 layers."""
    return random_bert(2, tmp_path_factory.mktemp("backbone") / "tiny", sentences)


@pytest.fixture(scope="session")
def deep(tmp_path_factory: pytest.TempPathFactory, sentences: tuple[str, ...]) -> str:
    """Folder of a random BERT of 3 layers, the fewest that SBERT-WK reads."""
    return random_bert(3, tmp_path_factory.mktemp("backbone") / "deep", sentences)


def saved_network(model, folder: Path, tiny: str, **tokenizer: str) -> str:
    """Write a network beside the vocabulary of `tiny`."""
    model.save_pretrained(folder)
    tokens = (Path(tiny) / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokens, encoding="utf-8")
    note = {"pad_token": "[PAD]", "unk_token": "[UNK]", **tokenizer}
    (folder / "tokenizer_config.json").write_text(json.dumps(note), encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="session")
def decoders(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of a Qwen2 (two heads share keys) and a Llama with a language-model head: 3 and 2
    layers, hidden 32.
    """
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

    sizes = {
        "vocab_size": 400,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
    }
    sizes |= {
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
    }
    qwen2, made = Qwen2Config(**sizes, num_key_value_heads=2, num_hidden_layers=3), {}
    for config in (qwen2, LlamaConfig(**sizes, num_hidden_layers=2)):
        torch.manual_seed(0)
        model, name = AutoModelForCausalLM.from_config(config), config.model_type
        with torch.no_grad():  # A fresh norm is all ones: not to be told from none at all
            model.model.norm.weight.uniform_(0.5, 2.0)
        made[name] = saved_network(
            model,
            tmp_path_factory.mktemp("decoder") / name,
            tiny,
            eos_token="[SEP]",
        )
    return made


@pytest.fixture(scope="session")
def translators(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of a random Marian and a random T5, with the vocabulary of `tiny`; what they write
    means nothing.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM, MarianConfig, T5Config

    ends = {
        "vocab_size": 400,
        "d_model": 32,
        "pad_token_id": 0,
        "eos_token_id": 3,
        "decoder_start_token_id": 0,
    }
    marian = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
    }
    marian |= {
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "max_position_embeddings": 64,
    }
    # As wide as that, a random network minds what it reads
    marian |= {"init_std": 0.5, "forced_eos_token_id": 3}
    t5, made = {"d_kv": 8, "d_ff": 48, "num_layers": 1, "num_heads": 4}, {}
    for config in (MarianConfig(**marian, **ends), T5Config(**t5, **ends)):
        torch.manual_seed(1)
        model, folder = (
            AutoModelForSeq2SeqLM.from_config(config),
            tmp_path_factory.mktemp("translator") / "network",
        )
        made[config.model_type] = saved_network(
            model,
            folder,
            tiny,
            tokenizer_class="PreTrainedTokenizerFast",
        )
    return made


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run a script in a Python of its own; it sees the same REPRO_HOME and runs on one thread."""

    def run(code: str, **environment: str) -> subprocess.CompletedProcess:
        script, own = tmp_path / "script.py", {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        script.write_text(code, encoding="utf-8")
        return subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            env=own,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def forkserver() -> multiprocessing.context.ForkServerContext:
    """Starts processes as forks of one that has imported torch and its like, once, and done nothing
    else; texts have other hashes there than here.
    """
    from multiprocessing.forkserver import ensure_running

    from repro.book.kernel import IMPORTED
    from repro.seeding import environment

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    # Where hashes are the same everywhere by the user's will, here they are not
    with environment({"PYTHONHASHSEED": "2"}):
        ensure_running()
    return context


@pytest.fixture
def two_processes(forkserver: multiprocessing.context.ForkServerContext) -> Callable[..., list]:
    """Run a script as rank 0 and rank 1, with `rank` and more names given; what each sends by
    `tells`.
    """

    def run(code: str, **given: object) -> list:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        meeting = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
        }
        meeting |= {"ACCELERATE_USE_CPU": "true", "CUDA_VISIBLE_DEVICES": ""}
        ends = [forkserver.Pipe(duplex=False) for _ in range(2)]
        for rank, (_, tells) in enumerate(ends):
            own = meeting | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            named = (
                f"import os\nos.environ.update({own})\n{code}",
                {"rank": rank, "tells": tells, **given},
            )
            forkserver.Process(target=exec, args=named, daemon=True).start()
            tells.close()
        assert all(hears.poll(120) for hears, _ in ends), "waited in vain"
        return [hears.recv() for hears, _ in ends]

    return run


@pytest.fixture(scope="session")
def hub_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Toy copies of every hub repository in use; REPRO_HUB names such a folder."""
    from hub_copy import make_hub

    return make_hub(tmp_path_factory.mktemp("hub"))


@pytest.fixture
def hub(hub_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """source='hub' reads the toy copies, here and in every process that is started."""
    monkeypatch.setenv("REPRO_HUB", str(hub_folder))
    return hub_folder


@pytest.fixture(scope="session")
def cell_config(tiny):
    """A training of a second: 6 steps on the microworld."""
    from repro.config import TrainConfig

    schedule = {
        "batch_size": 16,
        "sentences": 96,
        "learning_rate": 1e-3,
        "check_every": 2,
        "save_every": 2,
    }
    return TrainConfig(backbone=tiny, dim=8, source="microworld", validation="sickr", **schedule)


@pytest.fixture(scope="session")
def sweep_config(cell_config):
    return replace(cell_config, sentences=64)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory):
    """Where tests find what others trained and encoded."""
    from repro.store import Store

    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def bytes_of():
    """The weights of a module."""
    return lambda module: b"".join(
        value.detach().numpy().tobytes() for value in module.state_dict().values()
    )


@pytest.fixture
def weights_of():
    """Bytes of everything a trained encoder needs, by file name."""
    return lambda folder: {
        path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))
    }


@pytest.fixture(scope="session")
def untrained_lines(tiny) -> list:
    """Lines of ESE's comparison without any training: one network under three poolings stands for
    three methods.
    """
    from repro.config import TrainConfig
    from repro.methods import ESE, MRL, RAW
    from repro.papers.ese.lines import raw_line

    base = TrainConfig(backbone=tiny, source="microworld")
    poolings = {RAW: "cls", MRL: "mean", ESE: "last"}
    return [
        replace(raw_line(replace(base, pooling=p)), name=m, backbone="tiny")
        for m, p in poolings.items()
    ]


@pytest.fixture
def verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder where pages leave their verdicts, as while the book is built."""
    monkeypatch.setattr("repro.report.verdict_frames.verdicts_folder", lambda: tmp_path)
    monkeypatch.setenv("REPRO_BOOK", "1")
    return tmp_path


@pytest.fixture
def half_written(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A file or folder half written by a process of some number, on this machine or on another."""
    from repro import writing

    here = writing._machine()

    def write(
        path: Path,
        pid: int,
        ending: str = ".partial",
        machine: str = here,
        *,
        folder: bool = False,
    ) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: pid)
            patched.setattr(writing, "_machine", lambda: machine)
            partial = writing.partial_of(path, ending, folder=folder)
        if folder:
            partial.mkdir()
        (partial / "file" if folder else partial).write_bytes(b"half")
        return partial

    return write


@pytest.fixture
def pipe() -> Iterator[Callable[[Path], Path]]:
    """Make a pipe that nobody writes to; whoever waits for it is told so after ten seconds."""

    def waited(number: int, frame: object) -> None:
        raise AssertionError("a pipe was waited for")

    def make(path: Path) -> Path:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        signal.alarm(10)
        return path

    before = signal.signal(signal.SIGALRM, waited)
    yield make
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def no_flock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have every lock refused with an error of some number, as file systems without locks do."""

    def refuse(number: int) -> None:
        fcntl = pytest.importorskip("fcntl")

        def flock(file: object, operation: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", flock)
        monkeypatch.setattr("repro.locks._LOCKS", {})

    return refuse


@pytest.fixture
def real_data() -> Path:
    from repro.paths import data_folder

    folder = data_folder()
    if folder is None:
        pytest.skip("REPRO_DATA is not set")
    return folder


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_DATA", raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of the given lines; gzipped if its name says so."""

    def _write(name: str, *lines: str, encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(f"{line}\n" for line in lines).encode(encoding)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return _write


@pytest.fixture
def no_room_above() -> Callable[[int], AbstractContextManager[None]]:
    """Let no file grow beyond so many bytes, as on a disk that is full then, within a `with`: the
    output of the tests is a file, too.
    """

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited
