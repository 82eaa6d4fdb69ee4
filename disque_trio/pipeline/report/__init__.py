"""The report: one page that shows what a lake has to tell (docs/pipeline.md).

`facts` asks the lake, `charts` draws, `page` puts the drawings together. The page needs nothing
from anywhere: no script, no font, no file.
"""
