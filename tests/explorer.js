// What `explorer.py` does on the explorer's page: STEPS are lists of [control, value], after each of which it looks.
// What it saw is written into the page.
const looks = [], box = document.querySelector(".explorer");
const numbers = path => path.getAttribute("d").match(/-?[\d.]+/g).map(Number);
const at = (element, ...names) => names.map(name => Number(element.getAttribute(name)));
function look() {
  const control = name => box.querySelector(`[name=${name}]`), all = selector => [...box.querySelectorAll(selector)];
  const slider = control("dim"), selects = all("select"), [goal] = all("path.goal").map(numbers);
  const [curve, bound] = ["path:not([class])", "path.low"].map(selector => numbers(box.querySelector(selector)));
  return {
    offered: Object.fromEntries(selects.map(select => [select.name, [...select.options].map(option => option.text)])),
    chosen: Object.fromEntries(selects.map(select => [select.name, select.value])),
    titles: all("label").map(label => label.firstChild.firstChild.textContent.trim()),
    slider: [slider.min, slider.max, slider.value].map(Number),
    dimensions: [box.querySelector("output").textContent, slider.getAttribute("aria-valuetext")],
    said: all(".explorer-said strong").map(term => [term.textContent, term.nextElementSibling.textContent]),
    chart: all("svg text").map(text => [text.textContent, ...at(text, "x", "y")]),
    best: all(".explorer-best :is(p, caption, tr)").map(line => line.children.length ? [...line.children].map(cell => cell.textContent) : line.textContent),
    link: box.querySelector("p > a[href]").getAttribute("href"),
    goal: goal[1], curve, bound, point: at(box.querySelector("circle"), "cx", "cy"),
  };
}
window.addEventListener("error", event => looks.push({error: event.message}));
looks.push(look());
for (const step of STEPS) {
  for (const [name, value] of step) {
    if (name === "best") { // a way of the list, where there are so many
      const buttons = box.querySelectorAll(".explorer-best button");
      if (buttons.length) buttons[Math.min(value, buttons.length - 1)].click();
      continue;
    }
    if (name === "open") { // a link, which the browser would tell of only after the walk
      location.hash = value;
      window.dispatchEvent(new Event("hashchange"));
      continue;
    }
    const control = box.querySelector(`[name=${name}]`);
    control.value = value;
    control.dispatchEvent(new Event("input", {bubbles: true}));
  }
  looks.push(look());
}
document.body.append(Object.assign(document.createElement("pre"), {id: "found", textContent: JSON.stringify(looks)}));
