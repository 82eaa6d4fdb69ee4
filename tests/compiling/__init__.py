"""Tests of the lowering step, which need no compiler."""
