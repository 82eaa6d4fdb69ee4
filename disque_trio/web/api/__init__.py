"""`/api/v1`: what the pages show and do, and jobs for programs without a Redis client, as JSON over
HTTP (docs/http.md)."""
