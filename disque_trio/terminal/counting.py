"""Numbers of things in sentences."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Such as "1 job" or "2,000 jobs"; nouns that do not take an s need their plural."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
