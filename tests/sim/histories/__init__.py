"""Tests of the judge of client histories."""
