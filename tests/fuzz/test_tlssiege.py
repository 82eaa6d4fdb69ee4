"""A few seconds of what `python -m tests.fuzz tls` does for minutes."""

from tests.fuzz.tlssiege import besiege_tls


def test_hostile_clients_without_a_certificate_do_no_harm() -> None:
    outcome = besiege_tls(3, seed=1, clients=2)

    assert outcome.attacks > 10
    assert outcome.let_in == 0
