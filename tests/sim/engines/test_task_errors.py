"""What leaves the nurseries of an engine."""

import pytest

from disque_trio.sim.engines.task_errors import ungrouped


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ExceptionGroup("", [ExceptionGroup("", [KeyError()]), OSError()]), KeyError),
        (
            BaseExceptionGroup("", [BaseExceptionGroup("", [KeyboardInterrupt()])]),
            KeyboardInterrupt,
        ),
        (BaseExceptionGroup("", [KeyboardInterrupt(), KeyError()]), BaseExceptionGroup),
    ],
)
def test_an_error_is_raised_in_place_of_its_group(
    error: BaseException, raised: type[BaseException]
) -> None:
    with pytest.raises(raised) as caught, ungrouped():
        raise error

    assert type(caught.value) is raised
