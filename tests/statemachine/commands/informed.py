"""INFO, as text and as fields."""

from disque_trio.statemachine.chores import ReadVitals, Vitals
from tests.rig import Rig
from tests.statemachine.commands.chores import asked, done


def text_of(rig: Rig, *section: str, vitals: Vitals | None = None) -> str:
    rig.request("INFO", *section)
    if rig.outboxes[-1].chores:
        assert asked(rig) == ReadVitals()
        done(rig, vitals or Vitals())
    reply = rig.reply()
    assert isinstance(reply, bytes)
    return reply.decode()


def fields_of(rig: Rig, section: str, vitals: Vitals | None = None) -> dict[str, str]:
    _title, *lines = text_of(rig, section, vitals=vitals).splitlines()
    return dict(line.split(":", 1) for line in lines)
