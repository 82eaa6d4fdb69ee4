"""Judges rows of apps: pure functions over what the app has seen, and what nodes say."""
