// Puts a choice of document and verdict above the list of claims; without scripts all claims are listed.
(function () {
  const bar = document.currentScript.closest(".claim-bar"), chosen = {};
  const claims = [...document.querySelectorAll(".claims details.claim")];
  document.querySelector(".claims").before(bar);
  const said = document.createElement("output");
  function show() {
    const fits = claim => Object.entries(chosen).every(([key, value]) => !value || claim.dataset[key] === value);
    claims.forEach(claim => { claim.hidden = !fits(claim); });
    said.textContent = claims.filter(fits).length + " of " + claims.length + " claims";
  }
  for (const key of ["document", "verdict"]) {
    const label = document.createElement("label"), select = document.createElement("select");
    select.append(new Option("all", ""));
    new Set(claims.map(claim => claim.dataset[key])).forEach(value => select.append(new Option(value, value)));
    select.addEventListener("change", () => { chosen[key] = select.value; show(); });
    label.append(key[0].toUpperCase() + key.slice(1) + " ", select);
    bar.append(label);
  }
  said.setAttribute("aria-live", "polite");
  bar.append(said);
  show();
  // An address that ends in a claim's id opens it.
  function open() {
    const named = claims.find(claim => "#" + claim.id === location.hash);
    if (named) { named.open = true; named.scrollIntoView(); }
  }
  addEventListener("hashchange", open);
  open();
})();
