"""`/api/v1`: the data and operations of the console's pages, and jobs for programs without a Redis
client, as JSON over HTTP (docs/http.md)."""
