"""One browser for all these tests: it takes seconds to start."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.web.chromium import devtools, scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake, serving


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    if devtools.CHROMIUM is None:
        pytest.skip("needs Chromium: `apt-get install chromium`")
    with devtools.chromium(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture
async def tab(browser: str) -> AsyncIterator[Tab]:
    """A new page. What it complains of fails the test."""
    async with devtools.tab(browser) as page:
        yield page
        # The policy lets a page ask its own server only (connect-src 'self'): a refused connection
        # means that the server has ended. What a test needs of it, the test waits for.
        assert [each for each in page.errors if "ERR_CONNECTION_REFUSED" not in each] == []


@pytest.fixture
async def fake() -> AsyncIterator[Fake]:
    """A server that tells of three nodes, one of them silent."""
    async with serving(scene.fake()) as server:
        yield server
