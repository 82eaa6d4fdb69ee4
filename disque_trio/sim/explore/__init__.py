"""A model checker of small scopes over the production machines (docs/exploring.md).

`scope` is what is explored, `machines` runs one node and copies it, `canonical` compares states,
`world` knows all nodes and what may happen next, `judge` what must hold, `fairness` what must come
about, and `search` visits every state.
"""
