// What `browser.py` asks of every page: JOBS are pages with sizes, AXE is the address of axe.
// The answer is written into the page that asks.
const found = [], wait = ms => new Promise(done => setTimeout(done, ms));
const cut = e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0;
async function barriers(inner, doc) {
  const script = Object.assign(doc.createElement("script"), {src: AXE}), serious = [];
  doc.head.append(script);
  await new Promise(done => { script.onload = done; });
  doc.querySelectorAll("details").forEach(fold => { fold.open = true; });
  const still = "* { transition: none !important; animation: none !important; }"; // colours on their way mislead
  doc.head.append(Object.assign(doc.createElement("style"), {textContent: still}));
  const ground = e => e && [inner.getComputedStyle(e).backgroundColor, inner.getComputedStyle(e).opacity]
    + ground(e.parentElement);
  const look = e => { const s = inner.getComputedStyle(e);
    return e.tagName + e.getAttribute("class") + [s.color, s.fill, s.fontSize, s.fontWeight] + ground(e); };
  async function run(theme, where, options) {
    const said = await inner.axe.run(where, {...options, resultTypes: ["violations"]});
    for (const {id, impact, nodes} of said.violations) if (["serious", "critical"].includes(impact))
      serious.push(`${theme}: ${id} at ${nodes.map(node => node.target).join(", ")}`);
  }
  await run("light", doc, {rules: {"color-contrast": {enabled: false}}});
  for (const theme of ["light", "dark"]) { // of texts that look alike one is enough
    doc.documentElement.dataset.theme = theme;
    await wait(600);
    const texts = [...doc.body.querySelectorAll("*")].filter(e => e.checkVisibility()
      && [...e.childNodes].some(child => child.nodeType === 3 && child.data.trim()));
    const include = [...new Map(texts.map(e => [look(e), e])).values()];
    await run(theme, {include}, {runOnly: ["color-contrast"]});
    const bare = e => inner.getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)";
    if (![...doc.querySelectorAll("figure img")].every(bare)) serious.push(`${theme}: a figure on a plate`);
  }
  return serious;
}
async function beyond(src) { // what a figure says outside its own edges
  const frame = Object.assign(document.createElement("iframe"), {src});
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; });
  const svg = frame.contentDocument.documentElement, edge = svg.getBoundingClientRect();
  const out = [...svg.querySelectorAll("g[id^=text_]")].filter(text => {
    const own = text.getBoundingClientRect();
    return own.width && (own.left < edge.left - 1 || own.right > edge.right + 1 || own.top < edge.top - 1
      || own.bottom > edge.bottom + 1);
  }).map(text => `${src.split("/").at(-1)}: cut off: ${text.innerHTML.match(/<!--(.*?)-->/)?.[1]}`);
  frame.remove();
  return out;
}
// Letters of figures below this many pixels as they are shown. Matplotlib outlines a letter on a square of 100 units and
// scales that to its size; a figure that is no drawing does not tell.
const SMALLEST = 9, SQUARE = 100;
const scaled = (e, unit) => { const m = e.getScreenCTM(); return unit * Math.hypot(m.a, m.b); };
const inks = svg => [...svg.querySelectorAll("text, g[id*=text_] > g[transform*=scale]")].filter(e => e.ownerSVGElement === svg
  && (e.localName === "g" || e.textContent.trim()));
const drawn = e => scaled(e, e.localName === "g" ? SQUARE : parseFloat(getComputedStyle(e).fontSize));
const label = e => e.localName === "g" ? e.parentNode.innerHTML.match(/<!--(.*?)-->/)?.[1].trim() : e.textContent.trim();
function tooSmall(name, letters) { // one line a figure, of its smallest letters
  const [size, said] = letters.reduce((least, each) => each[0] < least[0] ? each : least, [Infinity]);
  return size < SMALLEST - 0.05 ? [`${name}: letters of ${size.toFixed(1)} px: ${said}`] : [];
}
async function small(image) {
  const src = image.currentSrc, name = src.startsWith("data:") ? image.alt : src.split("/").at(-1);
  if (!/^data:image\/svg|\.svg(#|$)/.test(src)) return [`${name}: no drawing, so its letters cannot be measured`];
  const request = new XMLHttpRequest(), place = document.createElement("div");
  request.open("GET", src);
  await new Promise(done => { request.onload = done; request.send(); });
  place.innerHTML = request.responseText;
  document.body.append(place);
  const file = place.querySelector("svg"), view = src.split("#")[1];
  const shown = view ? file.querySelector(`[id="of-${view}"]`) : file, box = shown.viewBox.baseVal;
  const fit = Math.min(image.clientWidth / box.width, image.clientHeight / box.height) / scaled(file, 1);
  const letters = inks(shown).map(e => [fit * drawn(e), label(e)]);
  place.remove();
  return tooSmall(name, letters);
}
async function ask([page, size, width, height]) {
  const frame = document.createElement("iframe"), errors = [];
  Object.assign(frame.style, {width: width + "px", height: height + "px", border: 0});
  frame.src = page;
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; setTimeout(done, 20000); });
  const inner = frame.contentWindow, doc = frame.contentDocument;
  inner.addEventListener("error", event => errors.push(event.message));
  inner.console.error = (...said) => errors.push(said.join(" "));
  await wait(600);
  const open = e => !e.closest("details:not([open])");
  const body = doc.querySelector("article, main") || doc.body;
  const figures = [...body.querySelectorAll("img, svg[role=img], .output svg, figure, .vega-embed, canvas, .explorer, .playground")]
    .filter(e => e.getBoundingClientRect().height > 80);
  const top = Math.min(...figures.map(e => e.getBoundingClientRect().top + inner.scrollY));
  const lost = [...doc.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href").slice(1))
    .filter(id => id && !id.includes("=") && !doc.getElementById(decodeURIComponent(id))); // with "=" it is a state
  const silent = [...body.querySelectorAll(".explorer select")].filter(select => { // a choice must change what is said
    const said = doc.querySelector(".explorer-said"), before = said.textContent;
    if (select.options.length < 2) return false;
    select.selectedIndex = select.selectedIndex === 1 ? 0 : 1;
    select.dispatchEvent(new inner.Event("input"));
    return said.textContent === before;
  }).map(select => select.name);
  const links = [...body.querySelectorAll("a[href]")].map(a => a.href).filter(to => to.startsWith("file:"));
  found.push({page, size, errors, lost: [...new Set(lost)], links: [...new Set(links)], silent,
    bare: figures.filter(e => e.matches(".cell_output img") && !e.closest("figure:has(figcaption)")).length,
    screens: doc.documentElement.scrollHeight / height, figure: figures.length ? top / height : null,
    sideways: doc.documentElement.scrollWidth - doc.documentElement.clientWidth,
    tables: [...body.querySelectorAll("table")].filter(t => open(t) && cut(t.parentElement)).length,
    code: [...body.querySelectorAll("pre")].filter(e => open(e) && cut(e)).length,
    small: [], serious: size === "wide" && body !== doc.body ? await barriers(inner, doc) : []}); // index.html only leads on
  for (const {src} of size === "wide" ? body.querySelectorAll("img[src$='.svg']") : [])
    found.at(-1).serious.push(...await beyond(src));
  if (size === "narrow") {
    doc.querySelectorAll("details").forEach(fold => { fold.open = true; });
    await wait(100);
    const seen = e => e.getBoundingClientRect().width > 150;
    for (const image of [...body.querySelectorAll("img")].filter(seen)) found.at(-1).small.push(...await small(image));
    for (const svg of [...body.querySelectorAll("svg")].filter(seen))
      found.at(-1).small.push(...tooSmall(svg.getAttribute("aria-label") || "a drawing in the text",
        inks(svg).map(e => [drawn(e), label(e)])));
  }
  frame.remove();
}
(async () => {
  for (const job of JOBS) await ask(job);
  const out = document.createElement("pre");
  out.id = "found"; out.textContent = JSON.stringify(found);
  document.body.append(out);
})();
