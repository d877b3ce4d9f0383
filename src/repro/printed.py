"""What `-p profile paper` runs on each page of the five documents, and what that takes: the records
of `assets/printed_runs.toml`.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from repro.data.menu import DATASETS
from repro.objectives import ANGLE_RECIPES, RECIPES
from repro.paths import ASSETS
from repro.types import InputError

PROFILE = "paper"
NETWORKS = ("backbone", "backbones", "encoder", "encoders")
"""Parameters of pages that take the networks a page is run over."""
OF_SYSTEMS = ("system", "systems", "mapped", "also", "baselines")
"""Parameters of pages that name systems, some of which stand on published networks."""
OF_FILES = ("vectors", "lexicon")
"""Parameters that no hub can fill, but the local files can."""
BYTES_TRAINED = 16  # Of a parameter in single precision: itself, its gradient, Adam's two averages
BYTES = 4
TOKENS = 64  # Of a text that is encoded, at most but for a few
TEXTS_EACH = {"pairs": 2, "labelled_pairs": 2, "retrieval": 11}
"""Texts of a row of a set, by its kind: a question brings ten paragraphs."""


@dataclass(frozen=True)
class PrintedRun:
    """One printed table or figure: the page that runs it, and under which parameters."""

    prints: str  # What is printed, for readers
    page: str
    values: Mapping[str, Any]  # Of the page's parameters, as on a command line
    differs: str  # What is known not to be as printed
    over: str = ""  # The parameter that takes the networks; empty where the values name them
    networks: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2)
    learns: str = ""  # What a training reads; empty where nothing is trained
    each: str = ""  # The list that has an entry for each training of one network and seed
    trainings: int = 0  # Their number, where no list says it
    reads: tuple[str, ...] = ()  # Sets that are encoded, where no parameter names them
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Parameters that no hub can fill, to what is missing without them."""
    behind: tuple[str, ...] = ()  # Published networks that systems of the page stand on

    @property
    def parameters(self) -> dict[str, Any]:
        """Values with the networks: all of them where the page takes a list, else the first."""
        if not self.over:
            return dict(self.values)
        networks = list(self.networks) if self.over.endswith("s") else self.networks[0]
        return {self.over: networks, **self.values}

    @property
    def command(self) -> str:
        """What runs it over all its networks and seeds."""
        line = f"repro sweep {self.page} --profile {PROFILE}"
        if self == printed_run(self.page):
            return line
        return f"{line} --{self.over.removesuffix('s')}s {' '.join(self.networks)}"


@cache
def _records() -> dict[str, Any]:
    return tomllib.loads((ASSETS / "printed_runs.toml").read_text(encoding="utf-8"))


@cache
def printed_runs() -> tuple[PrintedRun, ...]:
    """All records, in the order of the documents; a page's further ones have the first one's values
    where they name no other.
    """
    runs: list[PrintedRun] = []
    first: dict[str, Mapping[str, Any]] = {}
    for record in _records()["run"]:
        values = {**first.get(record["page"], {}), **record["values"]}
        first.setdefault(record["page"], values)
        named: dict[str, Any] = {**record, "values": values}
        for name, value in record.items():
            if isinstance(value, list):
                named[name] = tuple(value)
        runs.append(PrintedRun(**named))
    return tuple(runs)


def printed_run(page: str, networks: Sequence[str] = ()) -> PrintedRun | None:
    """The record of a page that is of these networks, else its first; None where nothing is
    printed.
    """
    runs = [run for run in printed_runs() if run.page == page]
    of_networks = [run for run in runs if networks and set(networks) <= set(run.networks)]
    return next(iter([*of_networks, *runs]), None)


def completed(page: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A page's given parameters, under the profile `paper` with the printed values of all
    others.
    """
    run = _run_of(page, given)
    return dict(given) if run is None else {**run.parameters, **given}


def _run_of(page: str, given: Mapping[str, Any]) -> PrintedRun | None:
    if given.get("profile") != PROFILE:
        return None
    named = next((given[name] for name in NETWORKS if given.get(name)), ())
    return printed_run(page, [named] if isinstance(named, str) else named)


def told_before(page: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """What a reader should know before anything is trained under the profile `paper`, a sentence
    each: where the run is not the printed one, and what no hub has.

    Raises:
        InputError: for networks that cannot be had, all of them in one message.
    """
    run = _run_of(page, parameters)
    if run is None:
        return
    changed = [name for name in run.parameters if not _as_printed(run, name, parameters.get(name))]
    if changed:
        yield f"not as printed ({run.prints}), for other values were given: {', '.join(changed)}"
    in_files = OF_FILES if parameters.get("source") == "local" else ()
    for name, what in run.lacks.items():
        if parameters.get(name) is None and name not in in_files:
            yield f"{what}: no hub that is read has it; left out without `-p {name} …`"
    own_systems = set(changed) & set(OF_SYSTEMS) or parameters.get("weights") is not None
    check_networks(parameters, () if own_systems else run.behind)


def _as_printed(run: PrintedRun, name: str, value: Any) -> bool:
    printed = run.parameters[name]
    if name == run.over:
        return set([value] if isinstance(value, str) else value or ()) <= set(run.networks)
    return bool(value == printed or str(value) == printed)


def check_networks(parameters: Mapping[str, Any], behind: Sequence[str] = ()) -> None:
    """Refuse parameters whose networks on the hub, or those `behind` their systems, are not at hand
    and cannot be fetched.
    """
    from repro.models.sources import COMMITS, notes_of  # Brings torch

    ways = dict.fromkeys(behind, "-p weights with a folder that holds it")
    for name in (*NETWORKS, "generator"):
        given = parameters.get(name) or ()
        for network in [given] if isinstance(given, str) else given:
            ways.setdefault(network, f"-p {name} with another name or a folder")
    missing = []
    for network, way in ways.items():
        if network not in COMMITS:
            continue
        try:
            notes_of(network)
        except InputError as error:
            ask = f"; its owners ask you to accept a licence at https://huggingface.co/{network}"
            missing.append(f"{error}{ask if network in gated() else ''} ({way})")
    if missing:
        raise InputError(f"nothing was trained, for this cannot be had: {'; '.join(missing)}")


def gated() -> list[str]:
    """Networks whose weights are given to those alone who accept a licence on the hub."""
    return list(_records()["gated"])


def small_run(page: str) -> str:
    """How a page runs on what every copy of the project has, in a sentence in Markdown; with what
    that takes, where it was measured.
    """
    seconds = _records()["small"].get(page)
    takes = f", {seconds} seconds of one core" if seconds else ""
    return f"Small, on generated sentences, two cores and no network: `repro run {page}`{takes}."


# What it takes


@dataclass(frozen=True)
class Cost:
    """What all networks and seeds of a printed table or figure take together."""

    gpu_hours: float
    memory: float  # Of an accelerator, GB
    disk: float  # Of the store, GB


def seconds_of(network: str, tokens: float, passes: float) -> float:
    """Seconds of the measured accelerator for so many tokens: a forward pass is two floating point
    operations a weight, forward and backward are six.
    """
    measured = _records()["measured"]
    of_measured = _weights(measured["network"]["layers"], measured["network"]["hidden"])
    rate = 6 * of_measured * measured["tokens"] / measured["seconds"]
    layers, hidden, _ = _shape(network)
    return 2 * passes * _weights(layers, hidden) * tokens / rate


def _weights(layers: int, hidden: int) -> int:
    """Weights of the blocks, in which all but a fraction of the time is spent."""
    return 12 * layers * hidden**2


def _shape(network: str) -> tuple[int, int, float]:
    layers, hidden, millions = _records()["shapes"][network]
    return layers, hidden, 1e6 * millions


def memory_of(network: str, sequences: int, length: int, *, trained: bool) -> float:
    """GB of an accelerator: weights, what Adam keeps of them, and the activations of a batch
    (Korthikanti et al., 2022: 34 + 5 heads × length / hidden bytes a token, layer and dimension).
    """
    layers, hidden, parameters = _shape(network)
    adapted = "lora" in ANGLE_RECIPES.get((network, None), {})
    weights = parameters * (BYTES_TRAINED if trained and not adapted else BYTES)
    kept_layers = layers if trained else 1
    heads = hidden / 64
    activations = sequences * length * kept_layers * hidden * (34 + 5 * heads * length / hidden)
    return (weights + activations) / 1e9


def cost_of(run: PrintedRun) -> Cost:
    """What a run takes, from the shapes of its networks and the rate of the measured one."""
    values = run.values
    sets = [DATASETS[name] for name in dict.fromkeys([*values.get("datasets", []), *run.reads])]
    texts = sum(sum(spec.sizes.values()) * TEXTS_EACH.get(spec.kind, 1) for spec in sets)
    hours, disk, memory = 0.0, 0.0, 0.0
    for network in run.networks:
        layers, hidden, parameters = _shape(network)
        times = len(run.seeds)
        if run.learns:  # The full size is trained along with all others
            times *= run.trainings or len({*values[run.each], hidden})
        seconds = seconds_of(network, texts * TOKENS, 1) * times
        read_layers = layers + 1 if run.learns == "triples" else 1
        disk += BYTES * texts * hidden * read_layers * times / 1e9
        if run.learns:
            examples, texts_each = _records()["examples"][run.learns]
            length = values.get("max_length", 32)
            seconds += seconds_of(network, examples * texts_each * length, 3) * times
            disk += BYTES * parameters * times / 1e9
            batch = values.get("batch_size") or RECIPES[network, None]["batch_size"]
            memory = max(memory, memory_of(network, batch * texts_each, length, trained=True))
        else:
            memory = max(memory, memory_of(network, 128, TOKENS, trained=False))
        hours += seconds / 3600
    if generator := values.get("generator"):
        memory = max(memory, memory_of(generator, 128, 4 * TOKENS, trained=False))
    return Cost(hours, memory, disk)


def cost_table() -> str:
    """All printed tables and figures as a table in Markdown: command, seeds, what it takes, gated
    weights, known differences.
    """
    lines = [
        "| printed | command | seeds | GPU hours | memory, GB | disk, GB | gated | differs |",
        "|---|---|---:|---:|---:|---:|---|---|",
    ]
    for run in printed_runs():
        cost = cost_of(run)
        needed = {*run.networks, str(run.values.get("generator"))}
        by_request = [network for network in gated() if network in needed]
        hours = f"{cost.gpu_hours:.1f}" if cost.gpu_hours >= 0.05 else "< 0.1"
        cells = [run.prints, f"`{run.command}`", str(len(run.seeds)), hours]
        cells += [f"{max(cost.memory, 1):.0f}", f"{max(cost.disk, 1):.0f}"]
        cells += [", ".join(by_request) or "–", run.differs.replace("|", r"\|")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
