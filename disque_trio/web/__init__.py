"""HTTP of a node: health, metrics and who may see them. `door` speaks the protocol, `site` answers,
`guard` decides who is answered.
"""
