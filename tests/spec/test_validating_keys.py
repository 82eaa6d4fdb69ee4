import pytest

from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied
from tests.spec.validating_keys import rivals, validate

MUTANTS = ("asking-nobody", "not-waiting-for-others", "not-asking-again", "keys-not-kept")


@pytest.mark.parametrize("seed", [0, 1])
def test_each_question_and_answer_about_a_key_is_a_step_of_the_specification(seed: int) -> None:
    checked, findings = validate(rivals(seed))

    assert checked >= 6
    assert not findings


@pytest.mark.sample(4)
@pytest.mark.pure
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_about_keys_is_no_step_of_the_specification(name: str) -> None:
    with applied(all_mutants()[name]):
        _, findings = validate(rivals(0))

    assert findings
