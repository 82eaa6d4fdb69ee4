"""`disque-trio worker --check`: asks the health port of a worker that runs."""

import http.client
from http import HTTPStatus
from typing import Final

from disque_trio.cli.worker.options import Options
from disque_trio.terminal.output import say, say_lines

TIMEOUT_S: Final = 5.0
"""A worker whose event loop is blocked for longer than this is unhealthy."""


def check(options: Options) -> int:
    """Print the reply of each process. Return 0 if all are healthy, otherwise 1."""
    host, port = options.health or ("", 0)
    ports = range(port, port + options.processes)
    answers = [_is_healthy(host, each) for each in ports]  # all replies are printed
    return 0 if all(answers) else 1


def _is_healthy(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        reply = connection.getresponse()
        body = reply.read(1 << 20).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        say(f"no worker answers at {host}:{port}: {error or type(error).__name__}")
        return False
    finally:
        connection.close()
    say_lines(body)
    return reply.status == HTTPStatus.OK
