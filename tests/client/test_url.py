import pytest

from disque_trio.client.address import Address, Cluster, Tls
from disque_trio.client.url import parse_url


@pytest.mark.parametrize(
    ("url", "nodes", "password"),
    [
        ("disque://127.0.0.1:7711", [Address()], None),
        ("disque://a,b:7712", [Address(host="a"), Address(host="b", port=7712)], None),
        ("disque://[::1]:7,[::2]", [Address(host="::1", port=7), Address(host="::2")], None),
        ("disque://:p%40ss@a/", [Address(host="a")], b"p@ss"),
        ("disque://anyone:secret@a", [Address(host="a")], b"secret"),
        ("disque+unix:///run/my%20disque.sock", [Address(path="/run/my disque.sock")], None),
        ("disque+unix://:pw@/run/d.sock", [Address(path="/run/d.sock")], b"pw"),
        ("disques://a:1", [Address(host="a", port=1, tls=Tls())], None),
        (
            "disques://a:1?tls_ca_file=ca.pem&tls_server_name=n",
            [Address(host="a", port=1, tls=Tls(cacert="ca.pem", server_name="n"))],
            None,
        ),
    ],
)
def test_a_url_names_nodes_and_password(
    url: str, nodes: list[Address], password: bytes | None
) -> None:
    assert parse_url(url) == Cluster(nodes, password)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:secret@a", "'a' is not the address of a cluster"),
        ("127.0.0.1:7711", "'127.0.0.1:7711' is not the address of a cluster"),
        ("disque://", "'' is not host:port"),
        ("disque://:secret@[::1", "'[::1' is not the address of a cluster: Invalid IPv6 URL"),
        ("disque://:secret#x@a", "'a': write / ? # and @ of the password as %2F %3F %23 and %40"),
        ("disque://:x?secret@a", "'a': write / ? # and @ of the password as %2F %3F %23 and %40"),
        (
            "disque://:secret/x@a:1",
            "'a:1': write / ? # and @ of the password as %2F %3F %23 and %40",
        ),
        ("disque://a#b", "'disque://a#b': write"),
        ("disque://a:0", "'a:0' is not host:port"),
        ("disque://a:b", "'a:b' is not host:port"),
        ("disque://a,,b", "'' is not host:port"),
        ("disque://a/0", "'/0': the address of a cluster has no path"),
        ("disque://a?tls_ca_file=x", "'tls_ca_file' is not an option of disque://"),
        ("disques://a?ca=x", "'ca' is not an option of disques://"),
        ("disques://a?tls_key_file=x", "tls_key_file is the key of a certificate"),
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_the_password(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_url(url)

    assert said in str(error.value)
    assert "secret" not in str(error.value)
