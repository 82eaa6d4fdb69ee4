import attrs

from disque_trio.cli.explain import PROGRAM
from disque_trio.cli.explain.asking import Asking, from_nodes
from disque_trio.observe.cluster import NodeFacts, PeerLine
from disque_trio.terminal.options import parse

NODE = NodeFacts(
    where="127.0.0.1:7711",
    info={"python_version": "3.11"},
    config={
        "appendonly": "yes",
        "appendfsync": "always",
        "delivery-lease": "yes",
        "replica-repair-after": "600",
        "cluster-node-timeout": "15000",
        "aof-format": "framed",
    },
)


def node(**config: str) -> NodeFacts:
    names = {name.replace("_", "-"): value for name, value in config.items()}
    return attrs.evolve(NODE, config={**NODE.config, **names})


def test_of_journals_the_weakest_counts() -> None:
    assert from_nodes([NODE, NODE]).journal == "always"
    assert from_nodes([NODE, node(appendfsync="everysec")]).journal == "everysec"
    assert from_nodes([NODE, node(appendonly="no")]).journal == "none"


def test_one_node_without_lease_or_repair_counts_for_all() -> None:
    assert not from_nodes([NODE, node(delivery_lease="no")]).has_lease
    assert from_nodes([NODE, node(replica_repair_after="0")]).repair_s == 0
    assert from_nodes([NODE, node(replica_repair_after="900")]).repair_s == 900


def test_a_node_that_does_not_answer_is_silent() -> None:
    refusing = NodeFacts(where="127.0.0.1:7712", error="refused")
    loading = NodeFacts(where="127.0.0.1:7713", info={"loading": "1"})
    facts = from_nodes([NODE, refusing, loading])

    assert (facts.nodes, facts.silent) == (1, 2)


def test_originals_and_their_file_format_keep_no_options_of_ours() -> None:
    original = attrs.evolve(NODE, info={}, config={})
    facts = from_nodes([NODE, original, node(aof_format="disque")])

    assert (facts.nodes, facts.originals) == (3, 2)
    assert not facts.has_lease


def test_zones_of_a_node_that_is_silent_are_told_by_the_others() -> None:
    line = PeerLine("b" * 40, "10.0.0.2", 7711, frozenset(), False, zone="y")
    silent = NodeFacts(where="10.0.0.2:7711", id="b" * 40, error="refused")
    one = attrs.evolve(NODE, id="a" * 40, info={**NODE.info, "replica_zone": "x"}, peers=(line,))
    asking = Asking(
        parse(
            PROGRAM, "", ["--job", "D-aaaaaaaa-" + "T5Z5SE0000000000000000/0" + "-05a1"], {}
        ).options,
        [one, silent],
    )

    assert [asking._zone(each) for each in asking.nodes] == ["x", "y"]


def test_facts_have_the_zone_of_each_node_if_any_names_one() -> None:
    assert from_nodes([NODE, NODE]).zones == ()
    assert from_nodes([NODE, node(replica_zone="x")]).zones == ("", "x")
