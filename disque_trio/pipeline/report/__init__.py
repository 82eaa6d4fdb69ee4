"""The report: one page about the contents of a lake (docs/pipeline.md).

`facts` asks the lake, `charts` draws, `page` puts the drawings together. The page needs nothing
from anywhere: no script, no font, no file.
"""
