"""The playground beside arithmetic of its own: what stays, what is new, means, bytes, and links."""

from base64 import b64encode
from itertools import product

import numpy as np
import pytest

import browser
from repro.report.interactive import widget
from repro.report.tables import Shown

SENTENCES = [f"sentence {i} <b>" for i in range(14)]
DIMS = [8, 6, 4, 2]
WAYS = ("turned", "first")
BITS = ("8 bits", "4 bits", "1 bit")
NEIGHBOURS = 4
STATES = [
    {"sentence": sentence, "dims": dim, "way": way, "bits": bits}
    for (sentence, dim), way, bits in product(zip((3, 0, 13, 5), DIMS, strict=True), WAYS, BITS)
]
LOOK = """
const box = document.querySelector(".playground"), seen = [];
window.addEventListener("error", event => seen.push({error: event.message}));
const act = (control, value) => {
  control.value = value;
  control.dispatchEvent(new Event("input", {bubbles: true}));
};
function look() {
  const lists = [...box.querySelectorAll(".playground-lists > div")];
  const lines = list => [...list.querySelectorAll("li")];
  seen.push({
    said: box.querySelector(".playground-said").textContent,
    titles: lists.map(list => list.firstChild.textContent),
    items: lists.map(list => lines(list).map(item => [item.className, item.textContent])),
    curves: [...box.querySelectorAll("svg path")].length,
    link: box.querySelector(".playground-foot a").getAttribute("href"),
    chosen: box.querySelector("[name=sentence]:checked").value,
  });
}
look();
for (const state of STATES) {
  const radio = box.querySelector(`[name=sentence][value="${state.sentence}"]`);
  radio.checked = true;
  radio.dispatchEvent(new Event("input", {bubbles: true}));
  act(box.querySelector("[name=dims]"), DIMS.length - 1 - DIMS.indexOf(state.dims));
  act(box.querySelector("[name=way]"), state.way);
  act(box.querySelector("[name=bits]"), state.bits);
  look();
}
act(box.querySelector("[name=guess]"), 3);
box.querySelector(".playground-guess button").click();
look();
window.addEventListener("hashchange", () => {
  look();
  const answer = {id: "found", textContent: JSON.stringify(seen)};
  document.body.append(Object.assign(document.createElement("pre"), answer));
});
location.hash = "sentence=99&dims=5&way=toString&bits=1+bit&guess=2.5";
"""


def embeddings():
    """Bytes of made sentences, for each way."""
    rng = np.random.default_rng(0)
    return {way: rng.integers(-127, 128, (len(SENTENCES), DIMS[0])).astype(np.int8) for way in WAYS}


def coded(numbers, bits):
    """What is left of whole numbers from −127 to 127."""
    numbers = numbers.astype(np.int64)
    if bits == "4 bits":
        return 16 * (numbers // 16) + 8
    return np.where(numbers < 0, -1, 1) if bits == "1 bit" else numbers


def nearest(numbers, dim, bits):
    """The most similar others of each row, by the cosine of the first numbers."""
    rows = coded(numbers, bits)[:, :dim].astype(float)
    cosines = rows @ rows.T / np.sqrt(np.outer((rows**2).sum(1), (rows**2).sum(1)))
    np.fill_diagonal(cosines, -np.inf)
    return np.argsort(-cosines.round(12), axis=1, kind="stable")[:, :NEIGHBOURS]


@pytest.fixture(scope="module")
def seen():
    """What the page shows at first, in every state, after a guess, and at an address that lies."""
    ways = [(way, b64encode(numbers.tobytes()).decode()) for way, numbers in embeddings().items()]
    data = {"sentences": SENTENCES, "dims": DIMS, "ways": ways}
    data |= {"neighbours": NEIGHBOURS, "guess_at": 4}
    page = widget("playground", data, Shown("", ""))
    given = f"const STATES = {STATES}, DIMS = {DIMS};"
    return browser.answer_of(f"{page.html}<script>{given}{LOOK}</script>")


needs_browser = pytest.mark.skipif(browser.browser() is None, reason="no browser is installed")


@needs_browser
def test_the_playground_shows_in_every_state_what_follows_from_its_numbers(seen):
    numbers = embeddings()
    whole = nearest(numbers["turned"], DIMS[0], "8 bits")
    assert len(seen) == len(STATES) + 3
    for state, shown in zip(STATES, seen[1:], strict=False):
        dim, bits = state["dims"], state["bits"]
        now = nearest(numbers[state["way"]], dim, bits)
        stay = [len(set(a) & set(b)) for a, b in zip(whole, now, strict=True)]
        before, after = whole[state["sentence"]], now[state["sentence"]]
        size = -(-dim * int(bits.split()[0]) // 8)
        itself = (dim, bits) == (DIMS[0], "8 bits")
        reference = ", what all others are compared with" if itself else ""
        assert shown["said"] == (
            f"{stay[state['sentence']]} of its 4 neighbours stay at {dim} dimensions, {bits} "
            f"each{reference}: {size} bytes instead of 32. "
            f"Over all 14 sentences {np.mean(stay):.1f} stay."
        )
        assert shown["titles"] == ["At 8 dimensions", f"At {dim}, {bits}"]
        left = [
            ["stays", SENTENCES[i]] if i in after else ["lost", f"{SENTENCES[i]} lost"]
            for i in before
        ]
        right = [
            ["stays", SENTENCES[i]] if i in before else ["comes", f"{SENTENCES[i]} new"]
            for i in after
        ]
        assert shown["items"] == [left, right]
        assert not shown["curves"], "no curve before a guess"


@needs_browser
def test_a_guess_shows_the_curve_and_a_state_is_a_link(seen):
    *_, last, guessed, misled = seen
    assert guessed["curves"] == 3 and guessed["said"].endswith("; your guess for 4 was 3.")
    assert "bits=1+bit" in last["link"] and "guess" not in last["link"]
    assert guessed["link"] == "#sentence=5&dims=4&way=first&bits=1+bit&guess=3"
    assert misled == guessed, "what cannot be chosen is not taken from an address"
