"""The report: one page about the contents of a lake (docs/pipeline.md).

`facts` queries the lake, `charts` draws SVG, `page` writes the HTML. The page is self-contained: it
loads no script, font or other file.
"""
