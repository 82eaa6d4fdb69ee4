"""The picture of a run, for people: a page, lines for a terminal, a log for another viewer.

`stands`, `curves`, `strips`, `links` and `findings` make of rows what is drawn, `table` packs it,
`page` puts it into one HTML file, which `sheet` makes. What then happens in the browser is in the
files beside: `run.js` unpacks; `axis.js`, `marks.js` and `scene.js` say what stands where;
`overview.js`, `arrows.js` and `diagram.js` draw; `replay.js` goes through the events; `main.js`
listens.
"""

from disque_trio.sim.picture.page import render

__all__ = ["render"]
