"""A key that comes late holds up no other object, and its own is looked at as soon as it is there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from reconciler.api.content import DecryptedValues
from reconciler.api.fleet import Template
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from tests.fakes.sealed_documents import ciphertext, sealed, text_of
from tests.fakes.worlds import policy
from tests.unit.controller.test_loop import Running, running


class Late:
    """Has no values at first, and tells from another thread when it has."""

    def __init__(self) -> None:
        self.opened: DecryptedValues | None = None
        self.told: Callable[[Collection[Identity]], None] = lambda _: None
        self.asked_again = 0
        self.other_keys: list[Identity] = []
        self.closed = {Identity("", "Secret", "demo", "app"): None}

    def open(self, templates: Collection[Template], is_all: bool) -> Mapping[Identity, DecryptedValues | Problem]:
        return {
            one.identity: self.opened or Problem(source=one.source, path="sops", code="sops-no-key", message="not yet")
            for one in templates
        }

    def listen(self, told: Callable[[Collection[Identity]], None]) -> None:
        self.told = told

    def again(self) -> None:
        self.asked_again += 1

    def renewed(self) -> Collection[Identity]:
        given, self.other_keys = self.other_keys, []
        return given


def secret(scene: Running) -> object:
    live = scene.box["m1"].state.get("Secret", "demo", "app")
    return None if live is None else live["data"]


async def test_an_object_whose_key_comes_late_is_made_when_it_comes_and_holds_up_no_other(tmp_path: Path) -> None:
    late = Late()
    async with running(tmp_path) as scene:
        await scene.stop()
        scene.start(replace(scene.parts, access=replace(scene.parts.access, keys=late)))
        chosen = policy("Secret", "m1", name="secret")
        scene.put(sealed=text_of(sealed(a="value")), secret=[chosen])
        await scene.until(lambda: [found.code for found in scene.vitals.snapshot.problems] == ["sops-no-key"])
        scene.app("1", "m1")
        await scene.until(lambda: scene.value("m1") == "1")
        assert secret(scene) is None

        late.opened = DecryptedValues(values={(("data", "a"), ciphertext("value")): "dmFsdWU="})
        await scene.quiet()
        assert secret(scene) is None, "nobody has been told"
        thread = threading.Thread(target=late.told, args=([Identity("", "Secret", "demo", "app")],))
        thread.start()
        await scene.until(lambda: secret(scene) == {"a": "dmFsdWU="})
        await asyncio.to_thread(thread.join)
        await scene.until(lambda: scene.vitals.snapshot.problems == ())

        # A file of identities that is there again is told by nobody.
        late.opened = DecryptedValues(values={(("data", "a"), ciphertext("value")): "bmV3"})
        late.other_keys = [Identity("", "Secret", "demo", "app")]
        await scene.until(lambda: secret(scene) == {"a": "bmV3"})

        scene.loop.reload()
        assert late.asked_again == 1
    # Nobody runs any more: what is told then is of no matter.
    late.told([Identity("", "Secret", "demo", "app")])
