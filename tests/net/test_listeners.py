import os
import socket
from pathlib import Path

import pytest

from disque_trio.net.listeners import ListenError, listen
from disque_trio.statemachine.config import Config
from tests.cluster.processes import free_port


def test_the_bus_listens_ten_thousand_above() -> None:
    port = free_port()
    listeners = listen(Config(port=port, bind=("127.0.0.1", "127.0.0.2")))

    places = [sock.getsockname() for sock in listeners.clients + listeners.bus]
    listeners.close()

    bus = port + 10_000
    assert places[:2] == [("127.0.0.1", port), ("127.0.0.2", port)]
    assert places[2:] == [("127.0.0.1", bus), ("127.0.0.2", bus)]


def test_names_are_addresses_too() -> None:
    listeners = listen(Config(port=free_port(), bind=("localhost",)))
    assert listeners.clients[0].getsockname()[0] in {"127.0.0.1", "::1"}
    listeners.close()


def test_nothing_stays_open_when_a_port_is_taken() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port + 10_000)):
        with pytest.raises(ListenError, match=f"bus port {port + 10_000}: Address already in use"):
            listen(Config(port=port, bind=("127.0.0.1",)))

        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_port_without_room_for_the_bus_is_refused() -> None:
    with pytest.raises(ListenError, match="at most 55535"):
        listen(Config(port=55_536))


def test_a_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen()

        with pytest.raises(ListenError, match="another process listens on it"):
            listen(Config(port=free_port(), bind=("127.0.0.1",), unixsocket=path))


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")

    with pytest.raises(ListenError, match="Address already in use"):
        listen(Config(port=free_port(), bind=("127.0.0.1",), unixsocket=str(path)))

    assert path.read_text() == "data"


def test_a_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = os.path.join(tmp_path, "x" * 200)

    with pytest.raises(ListenError, match="too long"):
        listen(Config(port=free_port(), bind=("127.0.0.1",), unixsocket=path))
