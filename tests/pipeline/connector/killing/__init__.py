"""Queries that are killed while jobs flow, and the account of what came through."""
