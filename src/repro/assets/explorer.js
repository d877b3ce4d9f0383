// The recorded ways to store a vector, by native controls: what a choice keeps, costs, and the first size that is sure.
(function () {
  const box = document.currentScript.closest(".explorer");
  const { ways, keep } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const neighbours = "ten neighbours kept", names = ["encoder", "use", "reducer", "code"];
  const titles = { encoder: "Encoder", use: "Use", reducer: "Reducer", code: "Numbers stored as" };
  const per = share => (100 * share).toFixed(1) + " %", control = {};
  const asked = share => +(100 * share).toPrecision(12) + " %"; // 57, not 56.99999999999999
  const lowest = Math.min(...keep);
  const element = (tag, fields, parent) => parent.appendChild(Object.assign(document.createElement(tag), fields));
  const form = element("form", { className: "explorer-form" }, box);
  function add(name, title, tag, fields) {
    const label = element("label", {}, form);
    element("span", { textContent: title }, label);
    control[name] = element(tag, { name, ...fields }, label);
    control[name].addEventListener("input", update);
    return label;
  }
  for (const name of names) add(name, titles[name], "select", {});
  const dimSaid = element("output", {}, add("dim", "Dimensions ", "input", { type: "range", min: 0, step: 1 }).firstChild);
  add("millions", "Million vectors", "input", { type: "number", min: 0.001, step: "any", value: 10 });
  form.addEventListener("submit", event => event.preventDefault());
  const chart = element("div", { className: "explorer-chart" }, box);
  const said = element("div", { className: "explorer-said" }, box);
  said.setAttribute("role", "status");
  said.setAttribute("aria-live", "polite");
  function offer(name, left) { // what is recorded for the choices before this one
    const values = [...new Set(left.map(way => way[name]))], before = control[name].value;
    control[name].replaceChildren(...values.map(value => new Option(value, value)));
    control[name].value = values.includes(before) ? before : values[0];
    return left.filter(way => way[name] === control[name].value);
  }
  let dim = 96;
  function update(event) {
    let line = ways;
    for (const name of names) line = offer(name, line);
    line.sort((a, b) => a.dim - b.dim);
    if (event && event.target === control.dim) dim = line[control.dim.value].dim;
    const nearest = line.reduce((a, b) => Math.abs(Math.log(b.dim / dim)) < Math.abs(Math.log(a.dim / dim)) ? b : a);
    control.dim.max = line.length - 1;
    control.dim.value = line.indexOf(nearest);
    control.dim.setAttribute("aria-valuetext", nearest.dim + " dimensions");
    dimSaid.textContent = nearest.dim;
    const full = Math.max(...ways.filter(way => way.encoder === nearest.encoder).map(way => way.dim));
    const others = ways.find(way => way.use === neighbours && ["encoder", "reducer", "code", "dim"].every(name => way[name] === nearest[name]));
    const millions = Math.max(0, Number(control.millions.value) || 0), size = bytes => +(bytes * millions / 1000).toPrecision(3) + " GB";
    const sure = keep.map(target => {
      let first = "none recorded up to " + line[line.length - 1].dim;
      for (let i = line.length - 1; i >= 0 && line[i].low >= target; i--) first = line[i].dim;
      return asked(target) + ": " + first;
    });
    said.replaceChildren();
    for (const [term, text] of [
      ["Score kept", per(nearest.share) + " of the full size, for sure " + per(nearest.low)],
      ["Neighbours kept", others ? per(others.share) + " of ten, for sure " + per(others.low) : "not recorded"],
      ["Memory", size(nearest.bytes) + " (" + nearest.bytes.toLocaleString("en") + " bytes a vector); float32 × " + full + ": " + size(4 * full)],
      ["First size that is sure to keep", sure.join("; ")],
    ]) {
      element("strong", { textContent: term }, said);
      element("span", { textContent: text }, said);
    }
    draw(line, nearest, full);
  }
  function draw(line, nearest, full) {
    const least = Math.min(...line.map(way => way.low), lowest) - 0.02, smallest = line[0].dim;
    const range = Math.log2(full / smallest) || 1; // of a line that is one point
    const x = way => 30 + 250 * Math.log2(way.dim / smallest) / range, y = share => 6 + 84 * (1.04 - share) / (1.04 - least);
    const path = key => line.map((way, i) => (i ? "L" : "M") + x(way).toFixed(1) + " " + y(way[key]).toFixed(1)).join("");
    const ticks = line.map(way => '<text text-anchor="middle" x="' + x(way) + '" y="102">' + way.dim + "</text>").join("");
    const marks = [1, lowest, Math.min(...line.map(way => way.share))].filter((at, i, all) => all.slice(0, i).every(other => Math.abs(y(at) - y(other)) > 7));
    const goal = '<path class="goal" d="M30 ' + y(lowest) + 'H285"/>' + marks.map(at => '<text x="2" y="' + (y(at) + 2) + '">' + per(at) + "</text>").join("");
    const axes = '<text x="2" y="5">share kept</text><text text-anchor="end" x="285" y="112">dimensions, log scale</text>';
    chart.innerHTML = '<svg viewBox="0 0 300 115" aria-hidden="true">' + goal + axes + ticks + '<path d="' + path("share") + '"/><path class="low" d="' + path("low") + '"/><circle cx="' + x(nearest) +
      '" cy="' + y(nearest.share) + '" r="3.5"/></svg>';
  }
  update();
})();
