"""A run as people see it: an HTML page, lines for a terminal, a log for the viewer ShiViz.

`job_states`, `curves`, `strips`, `links` and `findings` compute from rows what is drawn, `table`
packs it in slices, and `page` puts it with the scripts (`scripts`) into one HTML file (`sheet`).

The modules in `timeline/` are the timeline, which the console shows, too: `Timeline(host, run)` in
`timeline.js`, for a `Run` (`run.js`) that takes slices. `axis.js`, `marks.js` and `scene.js`
compute positions; `arrows.js`, `bands.js`, `events.js` and `diagram.js` draw; `player.js` and
`moment.js` show where the playhead is. The modules beside them are the page of a saved picture:
`overview.js` plots the whole run, `main.js` handles the controls.

Nothing is imported here: who needs the words of events need not load the checkers.
"""
