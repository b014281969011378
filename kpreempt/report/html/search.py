"""The search of a page: a box that a small script brings to life. Without the script there is no box, and nothing less.

What can be found are cards, rows, items of lists and lanes. One that does not have all the words is hidden; what is
folded is searched as well. Findings can be kept to those of a standing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.report.html.markup import Html, join, tag, void

SCRIPT = """
(() => {
  const box = document.querySelector(".search");
  const [words, kind, told] = ["input", "select", "output"].map(each => box.querySelector(each));
  const found = [...document.querySelectorAll(".card, tbody tr, .tree > li, .clock > li, .lane, .map")];
  const texts = found.map(each => each.textContent.toLowerCase());
  const folds = [...document.querySelectorAll(".fold")];
  const closed = folds.filter(each => !each.open);
  const look = () => {
    const asked = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
    const wanted = kind ? kind.value : "";
    let shown = 0;
    found.forEach((each, place) => {
      const fits = asked.every(word => texts[place].includes(word));
      const stands = !wanted || !each.dataset.standing || each.dataset.standing === wanted;
      each.hidden = !(fits && stands);
      if (!each.hidden) shown += 1;
    });
    const searches = asked.length > 0 || wanted !== "";
    closed.forEach(each => { each.open = searches; });
    told.textContent = searches ? shown + " of " + found.length + " shown" : "";
  };
  words.addEventListener("input", look);
  if (kind) kind.addEventListener("change", look);
  box.hidden = false;
})();
""".strip()


def search_box(standings: Iterable[str]) -> Html:
    """The box, out of sight until the script runs; with a choice of findings where they are of several standings."""
    listed = list(standings)
    parts = [tag("label", "Search ", void("input", type="search", autocomplete="off"))]
    if len(listed) > 1:
        options = (tag("option", f"only: {each}", value=each) for each in listed)
        parts.append(tag("label", "Findings ", tag("select", Html('<option value="">all</option>'), *options)))
    parts.append(Html('<output aria-live="polite"></output>'))
    return Html('<div class="search" role="search" hidden>') + join(parts) + Html("</div>\n")
