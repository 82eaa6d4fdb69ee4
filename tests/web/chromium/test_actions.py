import pytest

from disque_trio.observe.operations import OPERATIONS
from tests.observe.arguments import sample
from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake
from tests.web.chromium.test_pages import opened

_JOB = f"#/job/{scene.JOB}"
DONE = [
    ("queues add", "#/queue/mail", "A"),
    ("queues pause", "#/queue/mail", "P"),
    ("queues limit", "#/queue/mail", "L"),
    ("queues unlimit", "#/queue/mail", "U"),
    ("queues purge", "#/queue/mail", "D"),
    ("queues requeue", "#/queue/mail", "Q"),
    ("queues cancel", "#/queue/mail", "K"),
    ("queues redrive", "#/queue/mail", "R"),
    ("queues drop", "#/queue/mail", "X"),
    ("queues resume", "#/queue/mail", "S"),
    ("jobs requeue", _JOB, "Q"),
    ("jobs nack", _JOB, "N"),
    ("jobs acknowledge", _JOB, "A"),
    ("jobs delete", _JOB, "D"),
    ("jobs redrive", "#/dead", "jR"),
    ("jobs drop", "#/dead", "jX"),
    ("jobs edit", "#/jobs", "jjE"),
    ("jobs trace", f"#/job/{scene.jobs(1, 'queued')[0]['id']}", "T"),
    ("flows retry", f"#/flow/{scene.FLOW}", "R"),
    ("flows cancel", "#/flows", "jX"),
    ("nodes leave", "#/cluster", "jL"),
    ("nodes forget", "#/cluster", "jjjF"),
    ("nodes stay", "#/cluster", "jS"),
    ("nodes meet", "#/cluster", "M"),
    ("workers quiet", "#/workers", "jQ"),
    ("workers resume", "#/workers", "jjS"),
    ("workers stop", "#/workers", "jE"),
    ("workers dump", "#/workers", "jT"),
    ("schedules add", "#/later", "A"),
    ("schedules pause", "#/later", "jjP"),
    ("schedules resume", "#/later", "jS"),
    ("schedules run", "#/later", "jR"),
    ("schedules remove", "#/later", "jX"),
    ("nodes kick", "#/workers", "kK"),
]
"""Operation, page and keys."""


def test_every_action_is_tried() -> None:
    assert {operation for operation, _, _ in DONE} == set(OPERATIONS)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("operation", "page", "keys"), DONE)
async def test_every_action_tells_its_plan_and_its_outcome(
    tab: Tab, fake: Fake, operation: str, page: str, keys: str
) -> None:
    fake.plans = {operation: {"says": [f"what {operation} would do"], "token": "t"}}
    if operation == "nodes stay":
        leaving = [{**each, "state": "leaving"} for each in scene.nodes()]
        fake.topics = {
            **fake.topics,
            "cluster": lambda args: {**scene.cluster(args), "nodes": leaving},
        }
    await opened(tab, fake, page)
    if operation == "jobs trace":  # the job of this page is at no node, so it has no table
        await tab.has("It is not traced")
    else:
        await tab.until("document.querySelector('tbody tr td:not(.empty)')")

    await tab.press(*keys)
    asked = [each for each in OPERATIONS[operation].arguments if each.is_asked]
    if asked:
        asked = [each for each in asked if each.name != "queue"]  # which the page knows
        await tab.has(asked[0].about)
        if asked[0].is_required:
            await tab.press(*str(sample(asked[0])))
        for each in asked[1:]:
            if each.is_required:
                field = f"document.querySelector('dialog [name={each.name}]')"
                await tab.run(f"{field}.value = '{sample(each)}'")
        await tab.click("dialog .main", "Show the plan")
    await tab.has(f"what {operation} would do")
    assert len(fake.done(operation)) == 1
    assert not [said for said in fake.asked if "token" in said]
    await tab.until("document.querySelector('dialog .main')")
    await tab.press("Enter")

    await tab.has(f"{scene.N1}: out", f"{scene.N3}: not reached")
    assert [said["token"] for said in fake.asked if "token" in said] == ["t"]


async def test_a_plan_marks_the_nodes_that_it_leaves_out(tab: Tab, fake: Fake) -> None:
    line = "n3 is left out: no answer within 1 s"
    plan = {"says": ["it ends at 2 nodes", line], "unasked": [line], "token": "t"}
    fake.plans = {"queues resume": plan}
    await opened(tab, fake, "#/queue/mail", "Oldest (10)")

    await tab.click("h1 ~ .tools button", "Resume")

    await tab.has("it ends at 2 nodes")
    assert await tab.text(".plan .warn") == line


async def test_an_action_shows_its_plan_first_and_then_each_node(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queue/mail", "Oldest (10)")

    await tab.click("h1 ~ .tools button", "Pause")
    await tab.press("Enter")
    await tab.has("Pause: mail", "a restart forgets it")
    assert fake.done("queues pause") == [{"queue": "mail", "side": "all"}]
    assert [said for said in fake.asked if "token" in said] == []

    await tab.press("Enter")
    await tab.has(f"{scene.N1}: out", f"{scene.N3}: not reached")
    [carried] = [said for said in fake.asked if "token" in said]
    assert carried["token"] == "t1"
    bad = await tab.text(".outcome .bad")
    assert "7713: not reached" in bad
    await tab.click(".answers button", "Try again")
    await tab.until("document.querySelector('dialog .plan')")
    assert fake.done("queues pause") == [{"queue": "mail", "side": "all"}] * 2
    await tab.press("Enter")
    await tab.has("Try again")
    await tab.press("Enter")
    await tab.until("!document.querySelector('dialog').open")


@pytest.mark.parametrize(("page", "keys"), [(f"#/flow/{scene.FLOW}", "X"), (_JOB, "A")])
async def test_no_two_buttons_of_a_plan_have_the_same_name(
    tab: Tab, fake: Fake, page: str, keys: str
) -> None:
    plan = {"says": ["it ends"], "token": "t"}
    fake.plans |= {"flows cancel": plan, "jobs acknowledge": plan}
    await opened(tab, fake, page, "running")

    await tab.press(*keys)
    await tab.has("it ends")

    buttons = "[...document.querySelectorAll('dialog .answers button')]"
    names = await tab.run(f"{buttons}.map((each) => each.innerText)")
    assert len(names) == len(set(names)) == 2


async def test_an_action_that_cannot_be_undone_asks_for_a_word(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")

    await tab.press("j", "D")
    await tab.has("41,209 jobs end", "To confirm, type mail")
    await tab.press(*"mai", "Enter")
    assert await tab.run("document.querySelector('dialog .main').disabled")
    assert not [said for said in fake.asked if "token" in said]
    await tab.press("l", "Enter")
    await tab.has("not reached")
    assert [said["token"] for said in fake.asked if "token" in said] == ["t2"]


async def test_a_refusal_is_told(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, f"#/job/{scene.JOB}", "mail")

    await tab.press("Q")

    await tab.has("the job is done")
    assert not [said for said in fake.asked if "token" in said]


async def test_an_action_goes_to_all_rows_that_are_chosen(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")

    await tab.press("j", "x", "j", "x")
    await tab.has("2 selected")
    await tab.press(".")
    await tab.has("Pause")
    await tab.press("P", "Enter")
    await tab.has("Pause: 2 selected")
    await tab.until("document.querySelector('dialog .main')?.innerText === 'Pause'")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('ul.outcome').length === 2")
    assert [args["queue"] for args in fake.done("queues pause")] == ["mail", "sms"]


async def test_a_form_asks_for_what_an_action_has_to_know(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/dead", "no such user")

    await tab.click(".reasons button", "Redrive")
    await tab.has("maximum number of jobs")
    await tab.run("document.querySelector('[name=limit]').select()")
    await tab.press(*"20", "Enter")
    await tab.has("1 of 1,100 dead jobs is enqueued")

    assert fake.done("queues redrive") == [{"queue": "mail", "reason": "", "limit": 20, "rate": 50}]


async def test_the_form_of_limits_begins_with_those_of_the_queue(tab: Tab, fake: Fake) -> None:
    fake.plans["queues limit"] = {"says": ["it has these limits"], "token": "t"}
    await opened(
        tab, fake, "#/queue/sms", "20 leased, 100 per 60 s, burst 5", "waits because of its limits"
    )

    await tab.press("L")
    await tab.has("maximum number of leased jobs")
    await tab.run("void (document.querySelector('[name=burst]').value = '')")
    await tab.run("void (document.querySelector('[name=per]').value = '0.5')")
    await tab.click("dialog .main", "Show the plan")
    await tab.has("it has these limits")

    wanted = {"queue": "sms", "concurrency": 20, "rate": 100, "per": 0.5, "is_loose": True}
    assert fake.done("queues limit") == [wanted]


async def test_limits_are_removed_where_there_are_some(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queue/billing-00000", "Oldest (10)")

    assert await tab.run("document.body.innerText.includes('Limit')")
    assert not await tab.run("document.body.innerText.includes('Remove limits')")


async def test_a_client_is_kicked_from_its_row(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/workers", "checkout")

    await tab.run("[...document.querySelectorAll('button.more')].at(-1).click()")
    await tab.press("K")
    await tab.has("the connection of 10.0.0.9:53012 ends")

    assert fake.done("nodes kick") == [{"node": scene.N1, "client": 43}]


async def test_a_reader_sees_no_action(tab: Tab, fake: Fake) -> None:
    fake.hello |= {"role": "reader", "operations": []}

    await opened(tab, fake, "#/queues", "mail", "read only")
    await tab.press("j", ".", "D")

    assert await tab.run("document.querySelectorAll('button.more').length") == 0
    assert not await tab.run("document.querySelector('dialog').open")


async def test_a_job_is_added_with_a_body_and_options(tab: Tab, fake: Fake) -> None:
    fake.plans["queues add"] = {"says": ["a job is added"], "token": "t"}
    await opened(tab, fake, "#/queues", "mail")

    await tab.press("A")
    await tab.has("Add a job", "name of the queue")
    fields = {"queue": "new one", "body": '{"to": "eve"}', "retry": "60", "priority": "-5"}
    for name, value in fields.items():
        await tab.run(f"void (document.querySelector('[name={name}]').value = {value!r})")
    await tab.run("document.querySelector('[name=is_async]').click()")
    await tab.click("dialog .main", "Show the plan")
    await tab.has("a job is added")

    numbers = {"retry": 60, "priority": -5, "is_async": True}
    assert fake.done("queues add") == [{**fields, **numbers}]


async def test_a_body_is_edited_where_the_whole_of_it_is_known(tab: Tab, fake: Fake) -> None:
    fake.plans["jobs edit"] = {"says": ["a new job replaces it"], "token": "t"}
    found = scene.found(0, "dead", id=scene.JOB)
    told = scene.job({"id": scene.JOB}) | {"summary": found, "body": "é", "bytes": 2}
    fake.topics = {**fake.topics, "job": lambda _args: told}
    await opened(tab, fake, f"#/job/{scene.JOB}", "Redrive")

    await tab.click("h1 ~ .tools button", "Edit and retry")
    await tab.until("document.querySelector('dialog textarea').value === 'é'")
    await tab.press(*"xy")
    await tab.click("dialog .main", "Show the plan")
    await tab.has("a new job replaces it")
    await tab.press("Escape")
    told["bytes"] = 5000
    await fake.push("job")
    await tab.until(
        "![...document.querySelectorAll('.tools button')].some((each) =>"
        " each.innerText.includes('Edit'))"
    )

    [edited] = fake.done("jobs edit")
    assert sorted(edited["body"]) == sorted("éxy")
