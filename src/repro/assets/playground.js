// Neighbours of a sentence while its embedding shrinks: a guess first, then a slider for dimensions and one for bits.
(function () {
  const box = document.currentScript.closest(".playground");
  const data = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const { sentences, dims, neighbours } = data;
  const ways = data.ways.map(([name]) => name);
  const full = dims[0];
  const levels = {
    "8 bits": value => value,
    "4 bits": value => 16 * Math.floor(value / 16) + 8, // sixteen levels, none of them zero
    "1 bit": value => (value >= 0 ? 1 : -1),
  };
  const state = { sentence: 0, dims: full, way: ways[0], bits: "8 bits", guess: null };

  // ------------------------------------------------------------------ arithmetic

  function decoded(base64) { // one signed byte a number, row after row
    const text = atob(base64);
    return Int8Array.from(text, letter => letter.charCodeAt(0));
  }

  const numbers = Object.fromEntries(data.ways.map(([name, text]) => [name, decoded(text)]));
  const remembered = new Map();

  function coded(way, dim, bits) { // the first `dim` numbers of every row, whole numbers still
    return sentences.map((_, row) => {
      const own = numbers[way].subarray(row * full, row * full + dim);
      return Array.from(own, levels[bits]);
    });
  }

  function product(a, b) { // exact, so that rows which are equally similar stay so
    let sum = 0;
    for (let column = 0; column < a.length; column++) sum += a[column] * b[column];
    return sum;
  }

  function nearest(way, dim, bits) { // for each sentence the places of those most similar to it, best first
    const key = [way, dim, bits].join();
    if (remembered.has(key)) return remembered.get(key);
    const rows = coded(way, dim, bits);
    const squares = rows.map(row => product(row, row));
    const lists = rows.map((row, one) => {
      const similar = rows.map((other, place) => product(row, other) / (Math.sqrt(squares[one] * squares[place]) || 1));
      const order = rows.map((_, place) => place).filter(place => place !== one);
      order.sort((a, b) => similar[b] - similar[a] || a - b);
      return order.slice(0, neighbours);
    });
    remembered.set(key, lists);
    return lists;
  }

  const whole = nearest(state.way, full, "8 bits");

  function staying(sentence, dim) { // how many of the full-size neighbours are still neighbours
    const now = nearest(state.way, dim, state.bits)[sentence];
    return whole[sentence].filter(other => now.includes(other)).length;
  }

  function average(dim) {
    const counts = sentences.map((_, sentence) => staying(sentence, dim));
    return counts.reduce((sum, count) => sum + count, 0) / counts.length;
  }

  // ------------------------------------------------------------------ controls

  const element = (tag, fields, parent) => parent.appendChild(Object.assign(document.createElement(tag), fields));

  function labelled(title, parent) {
    const label = element("label", {}, parent);
    element("span", { textContent: title }, label);
    return label;
  }

  const picker = element("fieldset", { className: "playground-sentences" }, box);
  element("legend", { textContent: "1. Choose a sentence (click, or arrow keys)" }, picker);
  const choices = sentences.map((text, place) => {
    const label = element("label", {}, picker);
    const radio = element("input", { type: "radio", name: "sentence", value: place }, label);
    element("span", { textContent: text }, label);
    radio.addEventListener("input", () => set({ sentence: place }));
    return radio;
  });

  const guessing = element("form", { className: "explorer-form playground-guess" }, box);
  const guessTitle = `2. Guess: of ${neighbours} neighbours, how many stay at ${data.guess_at} of ${full} dimensions? `;
  const guessLabel = labelled(guessTitle, guessing);
  const guessSaid = element("output", {}, guessLabel.firstChild);
  const guess = element("input", { type: "range", name: "guess", min: 0, max: neighbours, step: 1, value: neighbours / 2 }, guessLabel);
  guess.addEventListener("input", () => { guessSaid.textContent = guess.value; });
  element("button", { type: "submit", textContent: "Show me" }, guessing);
  guessing.addEventListener("submit", event => {
    event.preventDefault();
    set({ guess: Number(guess.value), dims: data.guess_at });
  });

  const form = element("form", { className: "explorer-form" }, box);
  form.addEventListener("submit", event => event.preventDefault());
  const dimLabel = labelled("3. Dimensions ", form);
  const dimSaid = element("output", {}, dimLabel.firstChild);
  const slider = element("input", { type: "range", name: "dims", min: 0, max: dims.length - 1, step: 1 }, dimLabel);
  slider.addEventListener("input", () => set({ dims: dims[dims.length - 1 - slider.value] }));

  function select(title, name, values) {
    const control = element("select", { name }, labelled(title, form));
    control.replaceChildren(...values.map(value => new Option(value, value)));
    control.addEventListener("input", () => set({ [name]: control.value }));
    return control;
  }
  const bits = select("Bits a number", "bits", Object.keys(levels));
  const way = select("Which dimensions", "way", ways);

  const said = element("p", { className: "playground-said" }, box);
  said.setAttribute("role", "status");
  const lists = element("div", { className: "playground-lists" }, box);
  const chart = element("div", { className: "explorer-chart" }, box);
  const foot = element("p", { className: "playground-foot" }, box);
  const link = element("a", { textContent: "Link to this state" }, foot);

  // ------------------------------------------------------------------ what is shown

  function list(title, places, mark) {
    const column = element("div", {}, lists);
    element("strong", { textContent: title }, column);
    const items = element("ol", {}, column);
    for (const place of places) {
      const [className, word] = mark(place);
      const item = element("li", { className }, items);
      element("span", { textContent: sentences[place] }, item);
      if (word) element("em", { textContent: " " + word }, item);
    }
  }

  function show() {
    choices[state.sentence].checked = true;
    slider.value = dims.length - 1 - dims.indexOf(state.dims);
    slider.setAttribute("aria-valuetext", state.dims + " dimensions");
    dimSaid.textContent = state.dims;
    bits.value = state.bits;
    way.value = state.way;
    const before = whole[state.sentence];
    const now = nearest(state.way, state.dims, state.bits)[state.sentence];
    const bytes = Math.ceil(state.dims * parseInt(state.bits) / 8);
    const mean = average(state.dims).toFixed(1);
    const ofReference = state.dims === full && state.bits === "8 bits";
    const reference = ofReference ? ", what all others are compared with" : "";
    const parts = [
      `${staying(state.sentence, state.dims)} of its ${neighbours} neighbours stay at ${state.dims} dimensions, `,
      `${state.bits} each${reference}: ${bytes} bytes instead of ${4 * full}. Over all ${sentences.length} sentences ${mean} stay`,
    ];
    if (state.guess !== null) guess.value = state.guess;
    guessSaid.textContent = guess.value;
    const guessed = state.guess === null ? "." : `; your guess for ${data.guess_at} was ${state.guess}.`;
    said.textContent = parts.join("") + guessed;
    lists.replaceChildren();
    list(`At ${full} dimensions`, before, place => (now.includes(place) ? ["stays", ""] : ["lost", "lost"]));
    list(`At ${state.dims}, ${state.bits}`, now, place => (before.includes(place) ? ["stays", ""] : ["comes", "new"]));
    draw();
    link.href = "#" + written();
  }

  function draw() {
    if (state.guess === null) {
      chart.textContent = "The curve over all sizes is drawn once you have guessed.";
      return;
    }
    const sizes = [...dims].reverse();
    const wide = Math.log2(full / sizes[0]) || 1;
    const x = dim => 30 + 250 * Math.log2(dim / sizes[0]) / wide;
    const y = count => 8 + 80 * (1 - count / neighbours);
    const curve = of => sizes.map((dim, i) => (i ? "L" : "M") + x(dim).toFixed(1) + " " + y(of(dim)).toFixed(1)).join("");
    const text = (content, at, height, anchor) =>
      `<text text-anchor="${anchor}" x="${at}" y="${height}">${content}</text>`;
    const powers = sizes.filter(dim => dim === full || Number.isInteger(Math.log2(dim)) && dim < 0.8 * full);
    const ticks = powers.map(dim => text(dim, x(dim), 98, "middle")).join("");
    const marks = [0, neighbours / 2, neighbours].map(count => text(count, 24, y(count) + 2, "end")).join("");
    const titles = text("neighbours that stay", 30, 5, "start") + text("dimensions, log scale", 280, 108, "end");
    const here = `<circle cx="${x(state.dims)}" cy="${y(average(state.dims))}" r="3.5"/>`;
    const at = [x(data.guess_at), y(state.guess)];
    const guessed = `<path class="goal" d="M${at[0] - 4} ${at[1]}h8m-4 -4v8"/>` + text("your guess", at[0] + 6, at[1] + 2, "start");
    const own = `<path class="low" d="${curve(dim => staying(state.sentence, dim))}"/>`;
    const label = "Thick: all sentences on average; thin: the chosen one; cross: your guess.";
    chart.innerHTML = `<svg viewBox="0 0 300 112" role="img" aria-label="${label}">${ticks}${marks}${titles}` +
      `<path d="${curve(average)}"/>${own}${guessed}${here}</svg><p class="playground-foot">${label}</p>`;
  }

  // ------------------------------------------------------------------ a state is a link

  function written() {
    const known = Object.entries(state).filter(([, value]) => value !== null);
    return new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString();
  }

  function read() { // only what can be chosen here is taken from an address
    const given = new URLSearchParams(location.hash.slice(1));
    const whole_number = (name, below) => {
      const value = Number(given.get(name));
      return given.get(name) && Number.isInteger(value) && value >= 0 && value < below ? value : null;
    };
    const change = {};
    if (whole_number("sentence", sentences.length) !== null) change.sentence = whole_number("sentence", sentences.length);
    if (dims.includes(Number(given.get("dims")))) change.dims = Number(given.get("dims"));
    if (ways.includes(given.get("way"))) change.way = given.get("way");
    if (Object.hasOwn(levels, given.get("bits"))) change.bits = given.get("bits");
    if (whole_number("guess", neighbours + 1) !== null) change.guess = whole_number("guess", neighbours + 1);
    return change;
  }

  function set(change) {
    Object.assign(state, change);
    show();
  }

  window.addEventListener("hashchange", () => set(read()));
  set(read());
})();
