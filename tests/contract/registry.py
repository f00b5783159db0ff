"""What every Registry does; an implementation's test inherits this and gives `make`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from quarry.errors import Conflict
from quarry.ports import Registry
from quarry.records import Generation
from tests.contract.rows import at

MakeRegistry = Callable[[], Registry]


def generation(name: str, hours: float = 0) -> Generation:
    return Generation(
        name=name,
        fingerprint={"embedder": {"model_id": "m", "dimension": 8}, "schema": 1},
        created_at=at(hours),
    )


class RegistryContract:
    @pytest.fixture
    def make(self) -> MakeRegistry:
        """Opens the registry; twice is the same one."""
        raise NotImplementedError

    @pytest.fixture
    def registry(self, make: MakeRegistry) -> Registry:
        return make()

    def test_at_first_there_is_nothing(self, registry: Registry) -> None:
        assert registry.generations() == []
        assert registry.live() is None

    def test_created_generations_are_listed_oldest_first_and_not_live(
        self, registry: Registry
    ) -> None:
        registry.create(generation("g2", hours=2))
        registry.create(generation("g1", hours=1))
        assert registry.generations() == [generation("g1", hours=1), generation("g2", hours=2)]
        assert registry.live() is None

    def test_a_name_is_taken_once(self, registry: Registry) -> None:
        registry.create(generation("g1"))
        with pytest.raises(Conflict):
            registry.create(generation("g1", hours=1))
        assert registry.generations() == [generation("g1")]

    def test_switching_makes_one_live(self, registry: Registry) -> None:
        registry.create(generation("g1"))
        registry.create(generation("g2", hours=1))
        registry.switch("g1", expected="")
        assert registry.live() == generation("g1")
        registry.switch("g2", expected="g1")
        assert registry.live() == generation("g2", hours=1)

    @pytest.mark.parametrize(("name", "expected"), [("g2", ""), ("g2", "g3"), ("g9", "g1")])
    def test_switching_from_another_one_or_to_none_is_a_conflict(
        self, registry: Registry, name: str, expected: str
    ) -> None:
        registry.create(generation("g1"))
        registry.create(generation("g2", hours=1))
        registry.switch("g1", expected="")
        with pytest.raises(Conflict):
            registry.switch(name, expected=expected)
        assert registry.live() == generation("g1")

    def test_removing_forgets_but_never_the_live_one(self, registry: Registry) -> None:
        registry.create(generation("g1"))
        registry.create(generation("g2", hours=1))
        registry.switch("g1", expected="")
        registry.remove("g2")
        registry.remove("never there")
        with pytest.raises(Conflict):
            registry.remove("g1")
        assert registry.generations() == [generation("g1")]
        assert registry.live() == generation("g1")

    def test_another_client_sees_the_switch(self, make: MakeRegistry, registry: Registry) -> None:
        other = make()
        registry.create(generation("g1"))
        registry.switch("g1", expected="")
        assert other.live() == generation("g1")

    def test_of_several_creators_and_switchers_exactly_one_wins(self, registry: Registry) -> None:
        def attempt(call: Callable[[], None]) -> bool:
            try:
                call()
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            for n in range(1, 9):
                name, before = f"g{n}", f"g{n - 1}" if n > 1 else ""
                new = generation(name)
                creating = [
                    pool.submit(attempt, functools.partial(registry.create, new)) for _ in range(4)
                ]
                assert sum(f.result() for f in creating) == 1
                switch = functools.partial(registry.switch, name, expected=before)
                switching = [pool.submit(attempt, switch) for _ in range(4)]
                assert sum(f.result() for f in switching) == 1
                live = registry.live()
                assert live is not None
                assert live.name == name
