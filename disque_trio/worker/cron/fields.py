"""Converts cron schedules as people write them to the five fields that `cronsim` parses."""

import re
from typing import Final

from disque_trio.terminal.counting import counted

NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS: Final = (
    "January February March April May June July August September October November December"
)
_LONG_NAMES: Final = {3: _MONTHS, 4: _DAYS}
"""By place of the field; cron uses the first three letters."""
_ANY_DAY: Final = (2, 4)
"""Places of the fields in which `?` stands for any day, as in Quartz."""


def plain(schedule: object) -> str:
    """The five fields of a schedule. Raises `TypeError` and `ValueError`."""
    if not isinstance(schedule, str):
        raise TypeError(
            f'{schedule!r} is not a schedule of cron: give text as "30 2 * * *", or every=seconds'
        )
    if schedule.strip().startswith("@"):
        found = NICKNAMES.get(schedule.strip().lower())
        if found is None:
            raise ValueError(
                f"{schedule!r} is not a schedule of cron: there are {', '.join(NICKNAMES)}, "
                "the five fields, and every=seconds"
            )
        return found
    parts = schedule.split()
    if len(parts) != 5:
        raise ValueError(
            f"{schedule!r} has {counted(len(parts), 'field')}; "
            "cron has 5: minute, hour, day, month, weekday"
        )
    for place in _ANY_DAY:
        parts[place] = "*" if parts[place] == "?" else parts[place]
    for place, names in _LONG_NAMES.items():
        long = "|".join(names.split())
        parts[place] = re.sub(
            rf"\b({long})\b", lambda name: name[0][:3], parts[place], flags=re.IGNORECASE
        )
    parts[4] = re.sub(r"-SUN\b", "-7", parts[4], flags=re.IGNORECASE)  # at the end of a range
    return " ".join(parts)
