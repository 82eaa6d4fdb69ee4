from disque_trio.statemachine import send
from disque_trio.statemachine.base import HANDSHAKE, OK, PENDING, SILENCE, Status
from disque_trio.statemachine.client import ReplyMode
from disque_trio.statemachine.messages import DelJob, Pong
from tests.rig import JOB, ME, N2, N3, N4, UNKNOWN, Rig


def test_a_message_to_many_stands_once_with_all_its_links() -> None:
    rig = Rig(peers=3)
    before = rig.node.cluster.messages_sent

    send.to_ids(rig.node, [N2, ME, N4, UNKNOWN], DelJob(JOB))

    nodes = rig.node.cluster.nodes
    assert rig.take().messages == [([nodes[N2].link, nodes[N4].link], DelJob(JOB))]
    assert rig.node.cluster.messages_sent == before + 2


def test_a_message_without_a_link_is_dropped() -> None:
    rig = Rig(peers=2)
    rig.lose_link(N2)

    assert not send.to_node(rig.node, rig.node.cluster.nodes[N2], DelJob(JOB))
    send.to_ids(rig.node, [N2], DelJob(JOB))
    send.to_ids(rig.node, [N2, N3], DelJob(JOB))

    assert rig.node.out.messages == [([rig.node.cluster.nodes[N3].link], DelJob(JOB))]


def test_a_node_is_sent_to_on_our_own_link() -> None:
    rig = Rig(peers=1)

    assert send.to_node(rig.node, rig.node.cluster.nodes[N2], DelJob(JOB))
    rig.take()

    assert rig.sent() == [(N2, DelJob(JOB))]


def test_an_answer_may_go_on_any_link() -> None:
    rig = Rig()
    link = rig.machine.accepted("127.0.0.1", "127.0.0.9", rig.now)

    send.on_link(rig.node, link, Pong())

    assert rig.take().messages == [((link,), Pong())]


def test_to_all_sends_to_every_member_with_a_link() -> None:
    rig = Rig(peers=3)
    rig.lose_link(N3)
    rig.node.cluster.nodes[N4].flags |= HANDSHAKE
    rig.node.cluster.size -= 1

    send.to_all(rig.node, DelJob(JOB))

    assert rig.node.out.messages == [([rig.node.cluster.nodes[N2].link], DelJob(JOB))]


def test_holders_are_told_except_this_node() -> None:
    rig = Rig(peers=2)
    job = rig.add("REPLICATE", 1)
    send.to_holders(rig.node, job, DelJob(job.id))
    assert rig.node.out.messages == []

    job.holders = (N3, ME)
    send.to_holders(rig.node, job, DelJob(job.id))
    rig.take()
    assert rig.sent() == [(N3, DelJob(job.id))]


def test_a_silenced_client_is_answered_nothing() -> None:
    rig = Rig()
    send.answer(rig.node, rig.client, SILENCE)
    for mode in (ReplyMode.OFF, ReplyMode.SKIP_NEXT):
        rig.client.reply_mode = mode
        send.answer(rig.node, rig.client, OK)
    assert rig.node.out.replies == []

    rig.client.reply_mode = ReplyMode.ON
    send.answer(rig.node, rig.client, OK)
    assert rig.node.out.replies == [(rig.client, Status(b"OK"))]


def test_a_reply_that_comes_later_is_not_sent_now() -> None:
    rig = Rig()

    send.answer_if_any(rig.node, rig.client, PENDING)
    send.answer_if_any(rig.node, rig.client, 7)

    assert rig.node.out.replies == [(rig.client, 7)]
