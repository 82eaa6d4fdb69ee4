"""The specification in docs/spec: an evaluator of its TLA+, and runs of the simulator held against
it."""
