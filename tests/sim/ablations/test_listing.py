import tomllib

from disque_trio.sim.checkers.properties import PROPERTIES
from tests.sim.ablations import listing
from tests.sim.test_ablations import FOUND, UNFOUND, named

HOW = "write it anew: python -m tests.sim.ablations.listing"


def test_the_list_of_ablations_is_up_to_date() -> None:
    text = listing.TOML.read_text("utf-8")

    assert text == listing.listed(), HOW
    assert list(tomllib.loads(text)["ablation"]) == [
        *(named(case) for case in FOUND),
        *(price.name for price in UNFOUND),
    ]


def test_every_ablation_says_what_it_breaks() -> None:
    assert all(row["breaks"] for row in tomllib.loads(listing.listed())["ablation"].values())


def test_every_property_is_shown_to_fail() -> None:
    assert [
        name for name in PROPERTIES if not any(listing.shows(case, name) for case in FOUND)
    ] == []


def test_the_page_says_by_what() -> None:
    text = listing.PAGE.read_text("utf-8")

    assert text == listing.page(text), HOW
