from disque_trio.statemachine.commands.usage import forms, is_optional


def test_forms_are_written_as_they_were_read() -> None:
    usage = (
        "[cursor] [STATE s ...] queue [queue ...] | LEN [SOFT|HARD] | id[@t] [id[@t] ...] [A [b]]"
    )

    assert " | ".join(" ".join(map(str, form)) for form in forms(usage)) == usage


def test_a_command_may_stand_alone_where_all_its_forms_are_in_brackets() -> None:
    assert is_optional("[COUNT | INFO name ...]")
    assert not is_optional("GET [n] | LEN")
    assert [str(form[0]) for form in forms("[COUNT | INFO name ...]")] == ["COUNT", "INFO"]


def test_a_part_knows_the_words_that_open_it() -> None:
    [[queue, *_, bcast]] = forms("queue in|out [bcast]")
    [[_, choice, _]] = forms("queue in|out [bcast]")

    assert not queue.opens_with("queue")
    assert not bcast.opens_with("bcast")  # in lower case it may be any value
    assert choice.opens_with("OUT")


def test_a_bracket_ends_where_those_in_it_have_ended() -> None:
    [[one, more, dead]] = forms("id[@token] [id[@token] ...] [DEAD [reason]]")

    assert (one.words, more.words, dead.words) == (
        ("id[@token]",),
        ("id[@token]",),
        ("DEAD", "[reason]"),
    )
    assert (one.is_optional, more.is_optional, more.is_repeated) == (False, True, True)
