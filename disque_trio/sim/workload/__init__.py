"""Producers, consumers and operators: they react to replies and to time.

This package imports plans and knows no engine. Engines import it.
"""
