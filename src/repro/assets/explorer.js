// The recorded ways to store a vector, by native controls: what a choice keeps, costs, the first size that is sure,
// and the best ways within a budget. A state is a link.
(function () {
  const box = document.currentScript.closest(".explorer");
  const { ways, keep } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const neighbours = "ten neighbours kept";
  const names = ["encoder", "use", "reducer", "code"];
  const titles = { encoder: "Encoder", use: "Use", reducer: "Reducer", code: "Numbers stored as" };
  const numbers = { millions: "Million vectors", graph: "Index, bytes a vector", budget: "Budget, GB", price: "Price of a GB" };
  const lowest = Math.min(...keep);
  const control = {};

  const percent = share => (100 * share).toFixed(1) + " %";
  const asked = share => +(100 * share).toPrecision(12) + " %"; // 57, not 56.99999999999999
  const short = number => String(+number.toPrecision(3));
  const element = (tag, fields, parent) => parent.appendChild(Object.assign(document.createElement(tag), fields));

  // ------------------------------------------------------------------ controls

  const form = element("form", { className: "explorer-form" }, box);
  form.addEventListener("submit", event => event.preventDefault());

  function add(name, title, tag, fields) {
    const label = element("label", {}, form);
    element("span", { textContent: title }, label);
    control[name] = element(tag, { name, ...fields }, label);
    control[name].addEventListener("input", () => act(name));
    return label;
  }

  for (const name of names) add(name, titles[name], "select", {});
  const slider = add("dim", "Dimensions ", "input", { type: "range", min: 0, step: 1 });
  const dimSaid = element("output", {}, slider.firstChild);
  for (const name in numbers) add(name, numbers[name], "input", { type: "number", min: 0, step: "any" });
  control.millions.value = 10;
  control.graph.value = 128; // of an HNSW graph of 32 links
  control.budget.value = 4;

  const chart = element("div", { className: "explorer-chart" }, box);
  const said = element("div", { className: "explorer-said" }, box);
  said.setAttribute("role", "status");
  said.setAttribute("aria-live", "polite");
  const best = element("div", { className: "explorer-best" }, box);
  const link = element("a", { textContent: "Link to this state" }, element("p", {}, box));

  // ------------------------------------------------------------------ what is chosen

  let wish = recommended();
  let line = [];

  function recommended() { // of the first encoder and use the fewest bytes that are sure to keep the lowest share
    const own = ways.filter(way => way.encoder === ways[0].encoder && way.use === ways[0].use);
    const sure = own.filter(way => way.low >= lowest).sort((a, b) => a.bytes - b.bytes || b.low - a.low);
    return { ...(sure[0] || ways[0]) };
  }

  function offer(name, left) { // what is recorded for the choices before this one
    const values = [...new Set(left.map(way => way[name]))];
    control[name].replaceChildren(...values.map(value => new Option(value, value)));
    if (!values.includes(wish[name])) wish[name] = values[0];
    control[name].value = wish[name];
    return left.filter(way => way[name] === wish[name]);
  }

  function act(name) {
    if (name === "dim") wish.dim = line[control.dim.value].dim;
    else if (names.includes(name)) wish[name] = control[name].value;
    update();
  }

  function update() {
    line = names.reduce((left, name) => offer(name, left), ways).sort((a, b) => a.dim - b.dim);
    const far = way => Math.abs(Math.log(way.dim / wish.dim));
    const nearest = line.reduce((a, b) => (far(b) < far(a) ? b : a));
    control.dim.max = line.length - 1;
    control.dim.value = line.indexOf(nearest);
    control.dim.setAttribute("aria-valuetext", nearest.dim + " dimensions");
    dimSaid.textContent = nearest.dim;
    const full = fullSize(nearest);
    tell(nearest, full);
    draw(nearest, full);
    list(nearest);
    link.href = "#" + written(nearest);
  }

  // ------------------------------------------------------------------ what is said

  const given = name => (Number(control[name].value) > 0 ? Number(control[name].value) : 0);
  const gigabytes = bytes => bytes * given("millions") / 1000;
  const inMemory = way => gigabytes(way.bytes + given("graph")); // in memory: the vector and its place in the index
  const fullSize = way => Math.max(...ways.filter(other => other.encoder === way.encoder).map(other => other.dim));
  const inWords = way => (way.reducer === "first columns" && way.dim === fullSize(way) ? "as they are" : way.reducer);

  function keptNeighbours(way) {
    return ways.find(other => other.use === neighbours &&
      ["encoder", "reducer", "code", "dim"].every(name => other[name] === way[name]));
  }

  function firstSure(target) {
    let first = "none";
    for (let i = line.length - 1; i >= 0 && line[i].low >= target; i--) first = line[i].dim;
    return asked(target) + ": " + first;
  }

  function memory(way, full) {
    const size = bytes => short(gigabytes(bytes)) + " GB";
    if (!given("millions")) return "give a number of vectors above 0";
    const index = given("graph") ? ` and ${size(given("graph"))} of index: ${short(inMemory(way))} GB` : "";
    const stored = `${size(way.bytes)} of vectors (${way.bytes.toLocaleString("en")} bytes each)`;
    return `${stored}${index}; float32 × ${full}: ${size(4 * full + given("graph"))}`;
  }

  function tell(way, full) {
    const others = keptNeighbours(way);
    const kept = (other, what) => `${percent(other.share)} of ${what}, for sure ${percent(other.low)}`;
    const score = ["Score kept", kept(way, "the full size")];
    said.replaceChildren();
    for (const [term, text] of [
      ...(way.use === neighbours ? [] : [score]),
      ["Neighbours kept", others ? kept(others, "ten") : "not recorded"],
      ["Memory", memory(way, full)],
      [`First size that is sure to keep, up to ${line[line.length - 1].dim}`, keep.map(firstSure).join("; ")],
    ]) {
      element("strong", { textContent: term }, said);
      element("span", { textContent: text }, said);
    }
  }

  function list(chosen) { // the five best ways within the budget, by what they are sure to keep
    best.replaceChildren();
    if (!given("budget") || !given("millions")) {
      element("p", { textContent: "Give a number of vectors and a budget above 0: the five best ways are listed." }, best);
      return;
    }
    const own = ways.filter(way => way.encoder === chosen.encoder && way.use === chosen.use);
    const fitting = own.filter(way => inMemory(way) <= given("budget"));
    fitting.sort((a, b) => b.low - a.low || b.share - a.share || a.bytes - b.bytes);
    if (!fitting.length) {
      const least = short(Math.min(...own.map(inMemory)));
      element("p", { textContent: `Nothing recorded fits: the smallest way takes ${least} GB.` }, best);
      return;
    }
    const table = element("table", {}, best);
    element("caption", { textContent: `The best ways within ${short(given("budget"))} GB, by what they keep for sure` }, table);
    const price = given("price") ? ["price"] : [];
    const head = element("tr", {}, element("thead", {}, table));
    const beside = chosen.use === neighbours ? [] : ["neighbours"];
    for (const title of ["way", "bytes", "GB", ...price, "kept", "for sure", ...beside]) {
      element("th", { textContent: title, scope: "col" }, head);
    }
    const body = element("tbody", {}, table);
    for (const way of fitting.slice(0, 5)) {
      const row = element("tr", {}, body);
      const text = `${way.code} × ${way.dim}, ${inWords(way)}`;
      const button = element("button", { type: "button", textContent: text }, element("td", {}, row));
      button.addEventListener("click", () => { wish = { ...way }; update(); });
      const others = keptNeighbours(way);
      const cost = price.map(() => short(inMemory(way) * given("price")));
      const cells = [way.bytes.toLocaleString("en"), short(inMemory(way)), ...cost, percent(way.share), percent(way.low)];
      for (const cell of [...cells, ...beside.map(() => (others ? percent(others.share) : "–"))]) {
        element("td", { textContent: cell, className: "number" }, row);
      }
    }
  }

  function draw(nearest, full) {
    const least = Math.min(...line.map(way => way.low), lowest) - 0.02;
    const smallest = line[0].dim;
    const range = Math.log2(full / smallest) || 1; // of a line that is one point
    const x = way => 30 + 250 * Math.log2(way.dim / smallest) / range;
    const y = share => 6 + 84 * (1.04 - share) / (1.04 - least);
    const path = key => line.map((way, i) => (i ? "L" : "M") + x(way).toFixed(1) + " " + y(way[key]).toFixed(1)).join("");
    const text = (content, at, height, anchor) => `<text${anchor ? ` text-anchor="${anchor}"` : ""} x="${at}" y="${height}">${content}</text>`;
    const ticks = line.map(way => text(way.dim, x(way), 102, "middle")).join("");
    const levels = [1, lowest, Math.min(...line.map(way => way.share))];
    const apart = (level, i) => levels.slice(0, i).every(other => Math.abs(y(level) - y(other)) > 7);
    const marks = levels.filter(apart).map(level => text(percent(level), 2, y(level) + 2)).join("");
    const goal = `<path class="goal" d="M30 ${y(lowest)}H285"/>`;
    const axes = text("share kept", 2, 5) + text("dimensions, log scale", 285, 112, "end");
    const curves = `<path d="${path("share")}"/><path class="low" d="${path("low")}"/>`;
    const point = `<circle cx="${x(nearest)}" cy="${y(nearest.share)}" r="3.5"/>`;
    chart.innerHTML = `<svg viewBox="0 0 300 115" aria-hidden="true">${goal}${marks}${axes}${ticks}${curves}${point}</svg>`;
  }

  // ------------------------------------------------------------------ a state is a link

  function written(way) {
    const chosen = [...names, "dim"].map(name => [name, way[name]]);
    const typed = Object.keys(numbers).map(name => [name, control[name].value]).filter(([, value]) => value !== "");
    return new URLSearchParams([...chosen, ...typed]).toString();
  }

  function read() { // what cannot be chosen here falls to what can
    const state = new URLSearchParams(location.hash.slice(1));
    for (const name of names) if (state.has(name)) wish[name] = state.get(name);
    if (Number(state.get("dim")) > 0 && Number.isFinite(Number(state.get("dim")))) wish.dim = Number(state.get("dim"));
    for (const name in numbers) {
      const typed = state.get(name);
      if (typed && Number(typed) >= 0) control[name].value = Number(typed);
      else if (state.has("dim")) control[name].value = ""; // a whole state, in which the field was empty
    }
    update();
  }

  window.addEventListener("hashchange", read);
  read();
})();
