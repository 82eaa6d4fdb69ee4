"""A model checker of small scopes with the production machines (docs/exploring.md).

`scope` defines what is explored. `machines` runs one node and copies it, `canonical` compares
states, `world` has all nodes and the steps that may happen next, `judge` checks invariants,
`fairness` liveness, and `search` visits every state.
"""
