"""Imports Hypothesis, or raises an error that explains how to install it."""

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import (
        RuleBasedStateMachine,
        initialize,
        invariant,
        precondition,
        rule,
    )
except ImportError as error:
    raise ImportError(
        "this part of disque_trio.testing needs Hypothesis: pip install 'disque-trio[testing]'"
    ) from error

__all__ = ["RuleBasedStateMachine", "initialize", "invariant", "precondition", "rule", "st"]
