"""A run as people see it: an HTML page, lines for a terminal, a log for the viewer ShiViz.

`job_states`, `curves`, `strips`, `links` and `findings` compute from rows what is drawn, `table`
packs it, and `page` puts it into one HTML file (`sheet`). In the browser `run.js` unpacks the data;
`axis.js`, `marks.js` and `scene.js` compute positions; `overview.js`, `arrows.js` and `diagram.js`
draw; `replay.js` steps through the events; `main.js` handles the controls. Import `render`.
"""

from disque_trio.sim.picture.page import render

__all__ = ["render"]
