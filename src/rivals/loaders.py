"""The menu, `systems.tsv`: every system by name; how each kind is loaded, one function per kind.

The column `loader` names the functions: `flow published mean` is a flow fitted to the states,
averaged, of published weights. All take the same first three arguments.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from repro.digests import digest
from repro.manifests import sha256
from repro.models import SentenceEncoder
from repro.models.layerless import Encoder, Transformed, load_modules
from repro.models.sources import MINILM, READ
from repro.models.use import USE, UniversalSentenceEncoder, use_identity
from repro.runs.encoders import Named, as_it_is, encode_once, states_identity
from repro.seeding import threads
from repro.store import Store
from repro.types import Array, InputError, one_of
from rivals.flow import Flow, FlowConfig, fit_flow, fit_whitening, whitened
from rivals.sbert_wk import SbertWK
from rivals.static import StaticEncoder, fit_sif
from rivals.system import (
    Loaded,
    Missing,
    System,
    SystemConfig,
    fit_texts,
    published_folder,
    words_of,
)
from rivals.trained import arrays_of, infersent, sbert, with_arrays

Loader: TypeAlias = Callable[[System, SystemConfig, Store], Named]
STATIC_CODE = ("rivals.static", "rivals.skipgram", "repro.data.vectors")
# One pass over the entailment corpora is BERT-flow's own
FLOW: dict[str, FlowConfig] = {"embedded": FlowConfig(epochs=5), "paper": FlowConfig(epochs=1)}


def static(system: System, config: SystemConfig, store: Store) -> Named:
    """Mean of the vectors of a text's lower-cased words."""
    table, content = words_of(config)
    return Named(
        system.name,
        lambda: StaticEncoder(table()),
        digest({"vectors": content}, code=STATIC_CODE),
        "",
        None,
    )


def fasttext(system: System, config: SystemConfig, store: Store) -> Named:
    """The same with fastText's vectors, from a file of the user's own."""
    if config.fasttext is None:
        raise Missing(
            "fastText's vectors are not at hand: "
            "https://dl.fbaipublicfiles.com/fasttext/vectors-english/ has "
            "wiki-news-300d-1M.vec.zip and crawl-300d-2M-subword.zip; unpack one and give its path "
            "as `fasttext`"
        )
    return static(system, replace(config, vectors=config.fasttext), store)


def sif(system: System, config: SystemConfig, store: Store) -> Named:
    """Smooth inverse frequency on word vectors."""
    (table, content), texts = words_of(config), fit_texts(config)
    identity = digest({"sif": content, "texts": digest(texts)}, code=STATIC_CODE)
    return Named(system.name, lambda: fit_sif(table(), texts), identity, "", len(texts))


def states(system: System, config: SystemConfig, store: Store, *, pooling: str) -> Named:
    """States of a network as it is; its embeddings are shared with every page that reads the same
    network.
    """
    load = partial(SentenceEncoder.load, config.backbone, pooling=pooling, prompt="")
    make = as_it_is(config.backbone, load)
    return Named(
        system.name,
        make,
        states_identity(config.backbone, pooling),
        config.backbone,
        None,
    )


def minilm(system: System, config: SystemConfig, store: Store) -> Named:
    """A well-trained encoder that is at hand without a hub: its authors had a billion pairs, NLI
    among them.
    """
    return states(system, replace(config, backbone=MINILM), store, pooling="mean")


def use3(system: System, config: SystemConfig, store: Store) -> Named:
    """The Universal Sentence Encoder in a package of its own, where it is installed."""
    try:
        return Named(system.name, UniversalSentenceEncoder, use_identity(), USE, None)
    except InputError as error:
        raise Missing(str(error)) from error


def published(
    system: System,
    config: SystemConfig,
    store: Store,
    *,
    pooling: str | None = None,
) -> Named:
    """A published model by hub id: its own modules, or plain pooling of the network's states."""
    folder = published_folder(system, config)
    files = sorted(set(chain.from_iterable(map(folder.glob, READ))))
    sums = {str(path.relative_to(folder)): sha256(path) for path in files}
    identity = digest({"files": sums, "pooling": pooling}, code=("repro.models.layerless",))
    make: Callable[[], Encoder] = partial(load_modules, folder)
    if pooling is not None:
        make = partial(SentenceEncoder.load, str(folder), pooling=pooling, prompt="")
    return Named(system.name, make, identity, system.hub.rpartition("/")[2], None)


def wk(system: System, config: SystemConfig, store: Store, *, of: Loader) -> Named:
    """SBERT-WK on the network of another system; too few layers count as missing, so that a page
    goes on without it.
    """
    base = of(system, config, store)
    network = base.make()
    assert isinstance(network, SentenceEncoder)
    try:
        encoder = SbertWK(network)
    except InputError as error:
        raise Missing(f"{base.backbone}: {error}") from error
    identity = digest({"sbert_wk": base.identity}, code=("rivals.sbert_wk",))
    return replace(base, make=lambda: encoder, identity=identity)


def after(system: System, config: SystemConfig, store: Store, *, of: Loader, fit: str) -> Named:
    """A flow or whitening after another system, fitted to the `encoder` readout of some distinct
    texts.
    """
    base, texts = of(system, config, store), fit_texts(config)
    settings = replace(FLOW.get(config.profile, FlowConfig()), seed=config.seed)
    named = {
        "base": base.identity,
        "texts": digest(texts),
        "config": asdict(settings) if fit == "flow" else None,
    }
    code = ("rivals.flow",)

    @threads(1)
    def fitted() -> dict[str, Array]:
        X = encode_once(base.make, base.identity, texts, store).X
        return fit_whitening(X) if fit == "whitening" else arrays_of(fit_flow(X, settings)[0])

    arrays = store.remember(f"{fit}s", named, fitted, code=code)

    def make() -> Encoder:
        if fit == "whitening":
            return Transformed(base.make(), partial(whitened, **arrays), arrays["matrix"].shape[1])
        dim = len(arrays["steps.0.shift"])
        return Transformed(base.make(), with_arrays(Flow(dim, settings), arrays).transform, dim)

    return Named(system.name, make, digest(named, code=code), base.backbone, len(texts))


LOADERS: dict[str, Callable[..., Named]] = {
    loader.__name__: loader
    for loader in (static, fasttext, sif, infersent, states, minilm, use3, sbert, published)
}


def _loader(how: str) -> Loader:
    name, _, rest = how.partition(" ")
    if name == "wk":
        return partial(wk, of=_loader(rest))
    if name in ("flow", "whitening"):
        return partial(after, of=_loader(rest), fit=name)
    return partial(LOADERS[name], pooling=rest) if rest else LOADERS[name]


_ROWS = (files("rivals") / "systems.tsv").read_text(encoding="utf-8").splitlines()[1:]
_MENU = [System(*("" if cell == "-" else cell for cell in row.split("\t"))) for row in _ROWS]
SYSTEMS = {system.name: system for system in _MENU}
"""By name: this book's in the paper's order, then the paper's own, which need weights from the hub.
"""


def load_system(name: str, config: SystemConfig, store: Store) -> Loaded:
    """Load one of `SYSTEMS`, training or fitting it first where the store lacks it; `Missing` if it
    cannot be.

    A name that is a folder is a network of the caller's own, read by the mean of its states; with
    `-flow` behind it, a flow on these.
    """
    folder = name if Path(name).is_dir() else name.removesuffix("-flow")
    if name not in SYSTEMS and Path(folder).is_dir():
        line, loaders = "{backbone}, mean of states", "states mean"
        if folder != name:
            line, loaders = f"{line}, flow fitted on {{n}} sentences", f"flow {loaders}"
        system, config = System(name, "", line, "", loaders), replace(config, backbone=folder)
    else:
        system = SYSTEMS[one_of(name, list(SYSTEMS), "system")]
    loaded = _loader(system.how)(system, config, store)
    count = "" if loaded.n_train is None else f"{loaded.n_train:,}"
    network = Path(loaded.backbone).name  # Of a folder, and of a hub id, the last part
    line = system.line.format(backbone=network, n=count, vectors=config.vectors_name)
    return Loaded(**vars(loaded), row=system.row, line=line)


def system_named(name: str, *, source: str) -> Loaded | None:
    """The system that a command line names in place of a network; None where it names a folder or
    no system.
    """
    if name not in SYSTEMS or Path(name).is_dir():
        return None
    return load_system(name, SystemConfig(source=source), Store())
