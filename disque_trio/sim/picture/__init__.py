"""Views of a run: an HTML page, lines for a terminal, a log for the viewer ShiViz.

`job_states`, `curves`, `strips`, `links` and `findings` derive the contents from rows, `table`
packs them into slices, and `page` puts them with the scripts (`scripts`) into one HTML file
(`sheet`). The modules in `timeline/` are the timeline, which the console uses as well:
`Timeline(host, run)` in `timeline.js`, for a `Run` (`run.js`) that takes slices. `axis.js`,
`marks.js` and `scene.js` compute positions; `arrows.js`, `bands.js`, `events.js` and `diagram.js`
draw; `player.js` and `moment.js` show the position of the playhead. The modules beside them are the
page of a saved picture: `overview.js` plots the whole run, `main.js` handles the controls.

Nothing is imported here, so users of the event words do not load the checkers.
"""
