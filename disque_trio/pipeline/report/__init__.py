"""The report: one page about the contents of a lake (docs/pipeline.md).

`facts` and `sweeps` query the lake, `charts` has Vega-Lite draw SVG, `markup` makes tables and
figures; `trends`, `curves` and `tables` are the parts of the page, which `page` writes. It is
self-contained: it loads no script, font or other file.
"""
