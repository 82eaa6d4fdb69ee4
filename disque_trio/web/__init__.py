"""The web port of a node: console, HTTP API, health and metrics. `http_server` handles the
protocol, `site` answers requests, and `auth` checks who may send them."""
