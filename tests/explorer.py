"""The book's explorer beside its table: every sentence, number and point, in every state.

A reader is played in the browser who goes to every row of the table, types numbers of vectors, and
from every row tries every other choice. What the page then offers and says is compared with what
follows from the table by the definitions of the book's page, computed here without its script.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import product
from math import isclose, log2
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from repro.papers import answer
from repro.report.interactive import widget
from repro.report.tables import Shown
from repro.results import recorded_rows
from shown_code import on_page

WALKING = Path(__file__).with_suffix(".js")
NAMES = ("encoder", "use", "reducer", "code")
TITLES = ["Encoder", "Use", "Reducer", "Numbers stored as", "Dimensions"]
TITLES += ["Million vectors", "Index, bytes a vector", "Budget, GB", "Price of a GB"]
HEADINGS = ["way", "bytes", "GB", "kept", "for sure", "neighbours"]
NEIGHBOURS = "ten neighbours kept"
CUT = "first columns"
KEEP = (0.98, 0.57, 0.95)
MILLIONS = ("1", "0.001", "12345.6", "", "-3")
GRAPHS = ("0", "40", "128")
BUDGETS = ("0.3", "0.05", "", "1000")
NEAR = 0.06
"""Units of the drawing: its curves are written with one digit behind the point."""

Way = dict[str, Any]
Step = list[tuple[str, str]]
Shows = dict[str, Any]


# ------------------------------------------------------------------------------------------ tables


def made_ways() -> list[Way]:
    """A table in no order: sizes that differ by line, bounds on a target, rounding on the half."""
    rng = random.Random(0)
    sizes = {
        "small": ((6, 12, 24, 48), (6, 24), (12, 48)),
        "large": ((3, 24, 96, 384), (24, 384), (384,)),
    }
    uses = [("large", "search"), *product(sizes, (NEIGHBOURS, "similarity"))]
    stored = [*product(("PCA", CUT), ("float32", "int8")), ("PCA", "binary")]
    ways = []
    for (encoder, use), (reducer, code) in product(uses, stored):
        if (encoder, use, reducer) == ("small", NEIGHBOURS, CUT):
            continue
        for dim in rng.choice(sizes[encoder]):
            share = rng.choice((1.0, 0.99, 0.9995, 0.9125, 0.98765, 0.6875, 0.0004))
            low = rng.choice((*KEEP, share, share - 0.0125, share - 0.2))
            size = {"float32": 4 * dim, "int8": dim, "binary": -(-dim // 8)}[code]
            way = {"encoder": encoder, "use": use, "reducer": reducer, "code": code}
            ways.append({**way, "dim": dim, "bytes": size, "share": share, "low": min(low, share)})
    rng.shuffle(ways)
    return ways


def recorded_ways() -> list[Way]:
    """The table of the book's page."""
    ways_to_store = on_page("../book/explorer", "ways_to_store")["ways_to_store"]
    table = ways_to_store(answer.reduced_rows(), recorded_rows("beyond_quantisation"))
    table = table.rename(columns={"value": "share", "ci_low": "low"})
    return table.drop(columns="ci_high").to_dict("records")


# ----------------------------------------------------------------------------- what must be shown


class Reader:
    """What a reader has chosen of a table, and what the page must then show."""

    def __init__(self, ways: Sequence[Way], keep: Sequence[float]) -> None:
        self.ways, self.keep = ways, keep
        start = self.recommended()
        self.chosen: dict[str, str] = {name: start[name] for name in NAMES}
        self.wished = start["dim"]
        self.typed = {"millions": "10", "graph": "128", "budget": "4", "price": ""}
        self.settle()

    @property
    def millions(self) -> str:
        """How many vectors, as typed."""
        return self.typed["millions"]

    def recommended(self) -> Way:
        """Of the first encoder and use the way of fewest bytes that is sure to keep the least."""
        first = self.ways[0]
        own = [
            way
            for way in self.ways
            if (way["encoder"], way["use"]) == (first["encoder"], first["use"])
        ]
        sure = [way for way in own if way["low"] >= min(self.keep)]
        return min(sure, key=lambda way: (way["bytes"], -way["low"]), default=first)

    def act(self, name: str, value: str) -> None:
        """Use one control."""
        if name == "dim":
            self.wished = self.line[int(value)]["dim"]
        elif name in self.typed:
            self.typed[name] = value
        elif name == "open":
            state = dict(parse_qsl(value.removeprefix("#")))
            self.chosen = {name: state[name] for name in NAMES}
            self.wished = int(state["dim"])
            self.typed = {name: state.get(name, "") for name in self.typed}
        elif name == "best":
            if fitting := self.fitting():
                way = fitting[min(int(value), len(fitting) - 1)]
                self.chosen = {name: way[name] for name in NAMES}
                self.wished = way["dim"]
        else:
            self.chosen[name] = value
        self.settle()

    def settle(self) -> None:
        """Keep of the choices what is recorded beside those before; of others take the first."""
        left = list(self.ways)
        self.offered: dict[str, list[str]] = {}
        for name in NAMES:
            self.offered[name] = list(dict.fromkeys(way[name] for way in left))
            if self.chosen.get(name) not in self.offered[name]:
                self.chosen[name] = self.offered[name][0]
            left = [way for way in left if way[name] == self.chosen[name]]
        self.line = sorted(left, key=lambda way: way["dim"])

    def shown(self) -> Shows:
        """Everything the page shows."""
        way = min(self.line, key=lambda way: ratio(way["dim"], self.wished))
        full = self.full_size(way)
        place = self.line.index(way)
        return {
            "offered": dict(self.offered),
            "chosen": dict(self.chosen),
            "titles": TITLES,
            "slider": [0, len(self.line) - 1, place],
            "dimensions": [str(way["dim"]), f"{way['dim']} dimensions"],
            "said": self.sentences(way, full),
            "best": self.list(),
            "link": self.link(way),
            **self.drawing(place, full),
        }

    def sentences(self, way: Way, full: int) -> list[list[str]]:
        """The answers; where neighbours are the score they are told once."""
        kept = f"{percent(way['share'])} of the full size, for sure {percent(way['low'])}"
        said = [["Score kept", kept]] if way["use"] != NEIGHBOURS else []
        largest = self.line[-1]["dim"]
        return [
            *said,
            ["Neighbours kept", self.neighbours_of(way)],
            ["Memory", self.memory(way, full)],
            [
                f"First size that is sure to keep, up to {largest}",
                "; ".join(map(self.first_sure, self.keep)),
            ],
        ]

    def memory(self, way: Way, full: int) -> str:
        """Of all vectors, of their index, and of both; and what full vectors take."""
        if positive(self.millions) == 0:
            return "give a number of vectors above 0"
        stored = (
            f"{gigabytes(way['bytes'], self.millions)} of vectors ({way['bytes']:,} bytes each)"
        )
        if self.graph:
            index = gigabytes(self.graph, self.millions)
            stored += f" and {index} of index: {gigabytes(self.held(way), self.millions)}"
        return f"{stored}; float32 × {full}: {gigabytes(4 * full + self.graph, self.millions)}"

    @property
    def graph(self) -> int:
        """Bytes of a vector's place in the index."""
        return int(positive(self.typed["graph"]))

    def held(self, way: Way) -> int:
        """Bytes in memory for each vector."""
        return int(way["bytes"]) + self.graph

    def full_size(self, way: Way) -> int:
        """The most dims recorded of a way's encoder."""
        return max(other["dim"] for other in self.ways if other["encoder"] == way["encoder"])

    def neighbours_of(self, way: Way) -> str:
        """What the same vectors keep of the nearest neighbours."""
        if other := self.same_for_neighbours(way):
            return f"{percent(other['share'])} of ten, for sure {percent(other['low'])}"
        return "not recorded"

    def same_for_neighbours(self, way: Way) -> Way | None:
        """The row of the same vectors, judged by their nearest neighbours."""
        same = {**way, "use": NEIGHBOURS}
        for other in self.ways:
            if all(other[name] == same[name] for name in (*NAMES, "dim")):
                return other
        return None

    def own(self) -> list[Way]:
        """All ways of the chosen encoder and use."""
        use = (self.chosen["encoder"], self.chosen["use"])
        return [way for way in self.ways if (way["encoder"], way["use"]) == use]

    def fitting(self) -> list[Way]:
        """The five best ways that fit into the budget."""
        if not (positive(self.millions) and positive(self.typed["budget"])):
            return []
        fits = []
        for way in self.own():
            if self.held(way) * positive(self.millions) / 1000 <= positive(self.typed["budget"]):
                fits.append(way)
        return sorted(fits, key=lambda way: (-way["low"], -way["share"], way["bytes"]))[:5]

    def list(self) -> list[Any]:
        """What stands below the chart: the five best ways, or why there are none."""
        if not (positive(self.millions) and positive(self.typed["budget"])):
            told = "Give a number of vectors and a budget above 0: the five best ways are listed."
            return [told]
        if not self.fitting():
            least = min(map(self.held, self.own()))
            told = gigabytes(least, self.millions)
            return [f"Nothing recorded fits: the smallest way takes {told}."]
        budget = gigabytes(1000, self.typed["budget"])
        price = Decimal(self.typed["price"] or 0)
        headings = [*HEADINGS[:3], *["price"][: bool(price)], *HEADINGS[3:]]
        if self.chosen["use"] == NEIGHBOURS:  # Which are what is kept, then
            headings.remove("neighbours")
        lines: list[Any] = [f"The best ways within {budget}, by what they keep for sure", headings]
        for way in self.fitting():
            other = self.same_for_neighbours(way)
            whole = way["reducer"] == CUT and way["dim"] == self.full_size(way)
            cells = [
                f"{way['code']} × {way['dim']}, {'as they are' if whole else way['reducer']}",
                f"{way['bytes']:,}",
                gigabytes(self.held(way), self.millions).removesuffix(" GB"),
                percent(way["share"]),
                percent(way["low"]),
                percent(other["share"]) if other else "–",
            ]
            if price:
                total = Decimal(self.millions) * self.held(way) / 1000
                cells.insert(3, three_digits(total * price))
            lines.append(cells[: len(headings)])
        return lines

    def link(self, way: Way) -> str:
        """The address of what is chosen and typed."""
        state = {name: str(way[name]) for name in (*NAMES, "dim")}
        state |= {name: value for name, value in self.typed.items() if value}
        return "#" + urlencode(state, safe="*")

    def first_sure(self, target: float) -> str:
        """The smallest size that keeps a share for sure, as all larger ones of its line do."""
        unsure = [place for place, way in enumerate(self.line) if way["low"] < target]
        first = max(unsure) + 1 if unsure else 0
        dims = [way["dim"] for way in self.line]
        size = str(dims[first]) if first < len(dims) else "none"
        return f"{plain(Decimal(str(target)) * 100)} %: {size}"

    def drawing(self, place: int, full: int) -> Shows:
        """The curves, their words, and the point of the choice."""
        smallest = self.line[0]["dim"]
        target = min(self.keep)
        least = min(target, *(way["low"] for way in self.line)) - 0.02

        def x(dim: int) -> float:
            return 30 + (
                250 * log2(dim / smallest) / log2(full / smallest) if dim > smallest else 0
            )

        def y(share: float) -> float:
            return 6 + 84 * (1.04 - share) / (1.04 - least)

        def curve(key: str) -> list[float]:
            return [number for way in self.line for number in (x(way["dim"]), y(way[key]))]

        words = [["share kept", 2, 5], ["dimensions, log scale", 285, 112]]
        words += [[str(way["dim"]), x(way["dim"]), 102] for way in self.line]
        levels = [1, target, min(way["share"] for way in self.line)]
        for i, level in enumerate(levels):
            if all(abs(y(level) - y(other)) > 7 for other in levels[:i]):
                words.append([percent(level), 2, y(level) + 2])
        shares = curve("share")
        point = shares[2 * place : 2 * place + 2]
        curves = {"curve": shares, "bound": curve("low"), "point": point}
        return {"chart": sorted(words), "goal": y(target), **curves}


def ratio(dim: int, wished: int) -> Fraction:
    """How many times one is larger than the other."""
    return Fraction(max(dim, wished), min(dim, wished))


def positive(typed: str) -> float:
    """The number of a field; 0 where there is none above it."""
    return max(0.0, float(typed or 0))


def rounded(value: Decimal, step: Decimal) -> Decimal:
    """To a multiple of the step, halves upwards."""
    return (value / step).quantize(Decimal(1), ROUND_HALF_UP) * step


def percent(share: float) -> str:
    """With one digit behind the point."""
    return f"{rounded(Decimal(100 * share), Decimal('0.1')):.1f} %"


def gigabytes(size: int, millions: str) -> str:
    """Of so many vectors of `size` bytes, with three digits; none of none, or of fewer."""
    return f"{three_digits(max(Decimal(0), Decimal(millions or '0')) * size / 1000)} GB"


def three_digits(number: Decimal) -> str:
    """Rounded to as many."""
    return plain(rounded(number, Decimal(10) ** (number.adjusted() - 2)) if number else number)


def plain(number: Decimal) -> str:
    """Without zeros at the end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# ---------------------------------------------------------------------------------------- the walk


def steps(reader: Reader, millions: Sequence[str], *, thorough: bool) -> Iterator[Step]:
    """To every row of the table and numbers of vectors there; if thorough, every other choice too.

    Each step is given when it is to be done, so that the reader stands where the last one led.
    """
    for way in reader.ways:
        line = [other for other in reader.ways if all(other[name] == way[name] for name in NAMES)]
        place = sorted(other["dim"] for other in line).index(way["dim"])
        yield [*going_to(way, reader), ("dim", str(place))]
        for number in millions:
            yield [("millions", number)]
        for number in GRAPHS if millions else ():
            yield [("graph", number)]
        if millions and way is reader.ways[0]:
            yield [("millions", "3"), ("graph", "")]
            address = reader.shown()["link"]
            yield [("graph", "64"), ("millions", "20"), ("price", "2"), ("dim", "0")]
            yield [("open", address)]
            yield [("graph", "0")]
            address = reader.shown()["link"]
            yield [("graph", "128")]
            yield [("open", address)]
            yield [("graph", "128")]
        for number in BUDGETS if millions else ():
            yield [("budget", number)]
            yield [("best", "1")]
        offered = [(name, value) for name in NAMES for value in reader.offered[name]]
        for choice in offered if thorough else ():
            yield [*going_to(way, reader), choice]


def going_to(way: Way, reader: Reader) -> Step:
    """The choices that lead a reader to the line of a row."""
    actions = []
    for name in NAMES:
        if reader.chosen[name] != way[name]:
            actions.append((name, way[name]))
            reader.act(name, way[name])
    return actions


@dataclass(frozen=True)
class Walk:
    """A table, what a reader does with it, and what must be shown at first and after every step."""

    ways: Sequence[Way]
    keep: Sequence[float]
    steps: list[Step]
    wanted: list[Shows]

    def body(self) -> str:
        """A page with the explorer, which is walked through while it loads."""
        page = widget("explorer", {"ways": list(self.ways), "keep": list(self.keep)}, Shown("", ""))
        script = f"const STEPS = {json.dumps(self.steps)};\n{WALKING.read_text(encoding='utf-8')}"
        return f"{page.html}<script>{script}</script>"

    def faults(self, looks: list[Shows]) -> list[str]:
        """Where that page first showed something else than it must, a line for each part of it."""
        for look in looks:
            look.get("chart", []).sort()
        for number, (seen, must) in enumerate(zip(looks, self.wanted, strict=False)):
            where = f"after {self.steps[number - 1]}" if number else "at first"
            pairs = {key: (seen.get(key), must.get(key)) for key in {**must, **seen}}
            wrong = {key: pair for key, pair in pairs.items() if not alike(*pair)}
            if wrong:
                told = [
                    f"{key} is {is_now}, expected {expected}"
                    for key, (is_now, expected) in wrong.items()
                ]
                return [f"the explorer {where}: {line}" for line in told]
        if len(looks) != len(self.wanted):
            return [f"the explorer was seen {len(looks)} times, not {len(self.wanted)}"]
        return []


def walk(
    ways: Sequence[Way],
    keep: Sequence[float],
    millions: Sequence[str] = (),
    thorough: bool = False,
) -> Walk:
    """Through every row of a table; if thorough, from each row to every other choice too."""
    reader = Reader(ways, keep)
    done: list[Step] = []
    wanted = [reader.shown()]
    for step in steps(reader, millions, thorough=thorough):
        for action in step:
            reader.act(*action)
        done.append(step)
        wanted.append(reader.shown())
    return Walk(ways, keep, done, wanted)


def alike(seen: Any, must: Any) -> bool:
    """Whether both are the same, numbers to within what the drawing is written with."""
    if isinstance(must, dict):
        same_keys = isinstance(seen, dict) and seen.keys() == must.keys()
        return same_keys and all(alike(seen[key], must[key]) for key in must)
    if isinstance(must, list):
        return isinstance(seen, list) and len(seen) == len(must) and all(map(alike, seen, must))
    if isinstance(must, int | float):
        return isinstance(seen, int | float) and isclose(seen, must, abs_tol=NEAR)
    return bool(seen == must)
