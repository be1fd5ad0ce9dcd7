from tests.app.conftest import same_threads  # noqa: F401 - commands choose how many threads torch has
