from disque_trio.tracing.details import body, fields, jobs_in, number, numbers
from disque_trio.tracing.rows import Row


def test_fields_are_values_by_name_and_words_without_one() -> None:
    assert fields("nacks=1 tied retry=60") == {"nacks": "1", "tied": "", "retry": "60"}


def test_the_last_value_may_look_like_any_field() -> None:
    found = fields("token=a1 body=tied token=b2 body=c", "body")

    assert found == {"token": "a1", "body": "tied token=b2 body=c"}


def test_a_detail_may_begin_with_its_last_value_or_lack_it() -> None:
    assert fields("key=a b", "key") == {"key": "a b"}
    assert fields("nacks=1", "body") == {"nacks": "1"}


def test_numbers_may_be_negative_and_other_values_are_left_out() -> None:
    assert numbers("since=-5 state=queued wait-repl retry=60") == {"since": -5, "retry": 60}


def test_a_number_that_is_not_there_is_zero() -> None:
    assert number("redriven=2 left=30", "left") == 30
    assert number("redriven=2 left=30", "wait") == 0


def test_an_empty_body_is_a_body() -> None:
    assert body("nacks=0 body=") == ""
    assert body("nacks=0") is None


def test_a_row_is_about_its_job_or_those_that_it_lists() -> None:
    listing = "jobs=D-1,D-2 holders=n1,n2;n3"

    assert jobs_in(Row(0, "recv", job="D-3", detail=listing)) == ["D-3"]
    assert jobs_in(Row(0, "recv", detail=listing)) == ["D-1", "D-2"]
    assert jobs_in(Row(0, "hangup", detail="jobs=")) == []
