"""What a cluster says of itself, asked for by an ordinary client of all nodes: plain values for
`top` and for the console of the web port, which know no more than is told here.
"""
