"""Producers, consumers and operators: they react to replies and to time.

It imports plans and knows no engine. Engines import it.
"""
