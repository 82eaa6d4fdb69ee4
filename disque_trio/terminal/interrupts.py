"""Ctrl-C, as commands see it."""


def is_interrupt(error: BaseException) -> bool:
    """Is it Ctrl-C, within the groups of nurseries or not?"""
    if isinstance(error, BaseExceptionGroup):
        return all(is_interrupt(each) for each in error.exceptions)
    return isinstance(error, KeyboardInterrupt)
