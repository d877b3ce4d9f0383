// Puts a live chart in the place of the static figure beside it: loads Vega once per page, from the book's own files.
// logLevel 1 keeps errors and drops the note that the vendored compiler writes specifications for a newer Vega.
// An AMD loader would make the three files register themselves instead of running: `define` is hidden meanwhile.
(function () {
  var here = document.currentScript;
  var box = here ? here.closest(".chart") : document.getElementById("__ID__");
  var styled = document.querySelector('link[href*="_static/"], script[src*="_static/"]');
  if (!box || !styled) return;
  var base = (styled.href || styled.src).replace(/_static\/.*$/, "_static/vega/");
  function load(name) {
    return new Promise(function (done, failed) {
      var tag = document.createElement("script");
      tag.src = base + name; tag.onload = done; tag.onerror = failed;
      document.head.appendChild(tag);
    });
  }
  if (!window.reproVega) {
    var define = window.define; window.define = undefined;
    window.reproVega = load("vega.min.js")
      .then(function () { return load("vega-lite.min.js"); })
      .then(function () { return load("vega-embed.min.js"); })
      .finally(function () { window.define = define; });
  }
  window.reproVega.then(function () {
    var spec = JSON.parse(box.querySelector("script[type='application/json']").textContent);
    return vegaEmbed(box.querySelector(".chart-live"), spec, {actions: false, renderer: "svg", logLevel: 1});
  }).then(function () {
    box.querySelector(".chart-still").style.display = "none";
    box.querySelector(".chart-hint").style.display = "";
  }).catch(function () { box.querySelector(".chart-live").style.display = "none"; });
})();
