"""Time zones by name. A name that is wrong raises an error that says what is right."""

import difflib
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones


def zone_of(tz: object) -> ZoneInfo:
    """The zone of this name; a `ZoneInfo` stands for itself. Raises `TypeError` and
    `ValueError`."""
    if isinstance(tz, ZoneInfo) and tz.key is not None:
        return tz
    if not isinstance(tz, str):
        raise TypeError(f'tz={tz!r}: give the name of a time zone, such as "Europe/Berlin"')
    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, ZoneInfoNotFoundError) as error:  # a folder, a path, unknown
        raise ValueError(f"the time zone {tz!r:.80} is not known; {_hint(tz)}") from error


def _hint(name: str) -> str:
    known = {each.lower(): each for each in available_timezones()}
    inside = sorted(each for each in known.values() if each.startswith(f"{name}/"))
    near = difflib.get_close_matches(name.lower(), known, n=1)
    if near and not inside:
        return f"do you mean {known[near[0]]}?"
    return f"names are as {inside[0] if inside else 'Europe/Berlin'}"
