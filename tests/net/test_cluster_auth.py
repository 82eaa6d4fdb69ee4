"""The two ends of a bus link prove the secret to each other; forged proofs are refused."""

import hmac

import pytest

from disque_trio.net.cluster_auth import ANSWER, CHALLENGE, CONFIRMATION, Proof, ProofError

SECRET = b"a secret that the cluster shares"
OTHER = b"a secret of another cluster, and "


def dialler(*keys: bytes) -> Proof:
    return Proof(keys or (SECRET,), is_dialler=True)


def dialled(*keys: bytes) -> Proof:
    return Proof(keys or (SECRET,), is_dialler=False)


def test_two_nodes_that_know_the_secret_believe_each_other() -> None:
    us, them = dialler(), dialled()

    answer = us.feed(them.opening)
    confirmation = them.feed(answer)
    assert us.feed(confirmation + b"frames") == b""

    assert (us.rest, them.rest) == (b"frames", b"")


def test_it_comes_in_single_bytes() -> None:
    us, them = dialler(), dialled()

    answer = b"".join(us.feed(bytes([byte])) for byte in them.opening)
    confirmation = b"".join(them.feed(bytes([byte])) for byte in answer)
    for byte in confirmation:
        assert us.rest is None
        us.feed(bytes([byte]))

    assert (us.rest, them.rest) == (b"", b"")


def test_another_secret_is_refused_before_anything_is_given_in_return() -> None:
    us, them = dialler(OTHER), dialled()

    with pytest.raises(ProofError, match="its cluster secret differs"):
        them.feed(us.feed(them.opening))

    assert them.rest is None


def test_the_dialled_node_must_know_it_too() -> None:
    us, them = dialler(), dialled(OTHER)
    answer = us.feed(them.opening)
    forged = hmac.digest(OTHER, answer, "sha256")

    with pytest.raises(ProofError, match="its cluster secret differs"):
        us.feed(CONFIRMATION + forged)

    assert us.rest is None


def test_an_answer_is_worth_nothing_the_second_time() -> None:
    first, second = dialled(), dialled()
    answer = dialler().feed(first.opening)
    first.feed(answer)

    with pytest.raises(ProofError, match="its cluster secret differs"):
        second.feed(answer)


def test_a_confirmation_is_worth_nothing_the_second_time() -> None:
    us, them = dialler(), dialled()
    confirmation = them.feed(us.feed(them.opening))
    again = dialler()
    again.feed(them.opening)

    with pytest.raises(ProofError, match="its cluster secret differs"):
        again.feed(confirmation)


def test_a_proof_cannot_be_turned_around() -> None:
    us = dialler()
    answer = us.feed(dialled().opening)

    with pytest.raises(ProofError, match="its cluster secret differs"):
        us.feed(CONFIRMATION + answer[-32:])


def test_a_node_does_not_answer_its_own_challenge() -> None:
    ours = dialled()
    us = Proof([SECRET], is_dialler=True, own_challenges={ours.number: None})

    with pytest.raises(ProofError, match="own challenge"):
        us.feed(ours.opening)


def test_each_connection_has_a_challenge_of_its_own() -> None:
    assert len({dialled().opening for _ in range(100)}) == 100


def test_a_new_secret_may_be_known_before_it_is_used() -> None:
    ahead, behind = dialled(OTHER, SECRET), dialler(SECRET)

    confirmation = ahead.feed(behind.feed(ahead.opening))
    behind.feed(confirmation)

    assert (ahead.rest, behind.rest) == (b"", b"")


def test_a_node_without_a_secret_is_told_from_what_is_no_node() -> None:
    with pytest.raises(ProofError, match="it has no cluster-secret"):
        dialled().feed(b"DbuZ\0\0\0\x90")
    with pytest.raises(ProofError, match="it has no cluster-secret"):
        dialler().feed(b"DbuZ")
    with pytest.raises(ProofError, match="no proof"):
        dialled().feed(b"GET / HTTP/1.0\r\n")


@pytest.mark.parametrize("side", [dialler, dialled])
@pytest.mark.parametrize("noise", [b"\0", b"D" + b"i" * 100, b"\xff" * 10_000])
def test_noise_is_refused_at_once(side: type, noise: bytes) -> None:
    with pytest.raises(ProofError):
        side().feed(noise)


def test_neither_side_goes_on_before_the_other_is_sure() -> None:
    us, them = dialler(), dialled()

    with pytest.raises(ProofError, match="before it had the reply"):
        us.feed(them.opening + b"x")
    with pytest.raises(ProofError, match="before it had the reply"):
        them.feed(dialler().feed(them.opening) + b"x")


def test_what_is_said_is_as_short_as_this() -> None:
    us, them = dialler(), dialled()
    answer = us.feed(them.opening)

    assert (len(them.opening), len(answer), len(them.feed(answer))) == (40, 72, 40)
    assert (them.opening[:8], answer[:8]) == (CHALLENGE, ANSWER)
