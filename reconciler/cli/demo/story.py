"""The story of the demo. Each step says its aim, does it, and checks its promise."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from reconciler.cli.demo.screen import Screen
from reconciler.cli.demo.sight import CONFIG_MAP, DEPLOYMENT, Key, Sight, is_ours, look, spec_replicas, watch
from reconciler.cli.demo.world import GPU, DemoWorld
from reconciler.sim import NodeSpec

SHOP_WEB: Final = ("shop", "web")
QWEN: Final = ("test", "qwen3")
_ALL: Final[frozenset[Key]] = frozenset()
_LOOKS: Final = 15
"""So many looks without progress, a second apart, end the waiting for a promise."""
_RETURN_LOOKS: Final = 40
"""A cluster that was silent is asked again after pauses that grow."""
_BUSY_S: Final = 10.0
_BEIJING: Final = "registry.cn-beijing.example.com"


class Promise(Struct, frozen=True, kw_only=True):
    """A sentence, a check of it, and the text to show when it fails."""

    text: str
    holds: Callable[[Sight], bool]
    found: Callable[[Sight], object] = lambda sight: ""


class Story:
    """The steps, in order, in one world."""

    def __init__(self, world: DemoWorld, screen: Screen) -> None:
        """Nothing happens before `tell`."""
        self._world = world
        self._screen = screen
        self._now_s = asyncio.get_running_loop().time

    async def tell(self) -> None:
        """Play all steps. A promise that does not hold is shown, and the story goes on."""
        steps: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
            ("First placement", self.first_placement),
            ("A commit, seen before it lands", self.a_commit),
            ("An override in one cluster", self.an_override),
            ("A hand edit, healed", self.a_hand_edit),
            ("A policy removed, its objects kept", self.a_policy_leaves),
            ("A cluster gone, and back", self.a_cluster_goes),
        )
        for number, (title, step) in enumerate(steps, 1):
            self._screen.heading(f"{number}/{len(steps)}  {title}")
            await step()

    async def first_placement(self) -> None:
        """Everything is placed for the first time."""
        screen = self._screen
        screen.say("""Nothing runs in the clusters yet. Access to them is checked, then the daemon starts: it follows
                   the branch main, and places every workload where its policy says.""")
        await screen.run("reconciler doctor .")
        screen.prompt("reconciler run . --rev main &")
        began_s = self._now_s()
        self._world.start_daemon()
        await self._show_until_kept(
            _ALL,
            _replicas("shop/web runs 4 : 2, as its static weights 2 : 1 say", SHOP_WEB, hangzhou=4, beijing=2),
            _replicas("inference/embedder fits into the data centre", ("inference", "embedder"), idc=4),
            Promise(
                text="test/qwen3 needs two GPUs; idc has one, so one replica overflows to beijing",
                holds=lambda sight: sight.replicas(QWEN) == {"idc": 1, "beijing": 1},
                found=lambda sight: sight.replicas(QWEN),
            ),
            Promise(
                text="everything else is ready",
                holds=lambda sight: all(sight.is_settled(key) for key, _, _ in sight.deployments() if key != QWEN),
            ),
            began_s=began_s,
        )
        screen.say("""That replica waits for a node, since its policy says ecsProvision. Beijing gets one with a GPU, as
                   the cloud's autoscaler would add it:""")
        began_s = self._now_s()
        self._world.box["beijing"].add_node(NodeSpec(name="bj-gpu-1", cpu="8", extended=((GPU, "1"),)))
        runs = _replicas("both replicas of test/qwen3 run", QWEN, idc=1, beijing=1)
        await self._show_until_kept(frozenset({QWEN}), runs, began_s=began_s)
        screen.say("Each decision can be asked for its reasons:")
        await screen.run("reconciler explain deploy/web -n shop")

    async def a_commit(self) -> None:
        """A pull request is looked at, then it lands."""
        screen = self._screen
        screen.say("""A pull request wants nine replicas of shop/web, of a newer image. What that would change is
                   computed from the two commits: a check on pull requests needs no access to the clusters. What is
                   known of their free capacity can be given to it as a file.""")
        text = self._read(_WEB).replace("replicas: 6", "replicas: 9").replace("nginx:1.27", "nginx:1.28")
        await screen.run("reconciler observe . -o ../observed.yaml")
        await self._propose("sell-more", _WEB, text, "Sell more, with nginx 1.28", author="Lin")
        await self._land(
            "sell-more",
            frozenset({SHOP_WEB}),
            _replicas("nine replicas run, 6 : 3", SHOP_WEB, hangzhou=6, beijing=3),
            _images("all of them have the new image", hangzhou="nginx:1.28", beijing=f"{_BEIJING}/nginx:1.28"),
        )

    async def an_override(self) -> None:
        """One cluster differs."""
        self._screen.say("""Beijing tries the next image before the others do. An OverridePolicy changes what one
                         cluster gets; it adds to the one that puts Beijing's own registry in front of the image.""")
        await self._propose("canary", "apps/shop/canary.yaml", _CANARY, "Try nginx 1.29 in Beijing", author="Mei")
        audit = self._world.box["hangzhou"].audit
        before = len(audit)
        await self._land(
            "canary",
            frozenset({SHOP_WEB}),
            _images("only beijing has the next image", hangzhou="nginx:1.28", beijing=f"{_BEIJING}/nginx:1.29"),
            Promise(text="nothing was written to hangzhou", holds=lambda sight: len(audit) == before),
        )

    async def a_hand_edit(self) -> None:
        """Somebody changes a live object."""
        screen, member = self._screen, self._world.members["hangzhou"]
        screen.say("""In the middle of the night somebody scales the shop down in one cluster. (The demo itself sends
                   the request that kubectl would send.)""")
        operation = {"op": "replace", "path": "/spec/replicas", "value": 1}
        screen.prompt(
            "kubectl --context hangzhou -n shop patch deployment web --type json "
            """-p '[{"op": "replace", "path": "/spec/replicas", "value": 1}]'"""
        )
        began_s = self._now_s()
        edited = await member.json_patch(DEPLOYMENT, *SHOP_WEB, [operation], manager="kubectl-patch")
        screen.show("deployment.apps/web patched")

        def is_undone(sight: Sight) -> bool:
            return sight.replicas(SHOP_WEB).get("hangzhou") != spec_replicas(edited.body)

        await watch(self._world, is_undone, _LOOKS, lambda _: None)
        healed_ms = round((self._now_s() - began_s) * 1000)
        await self._show_until_kept(
            frozenset({SHOP_WEB}),
            _replicas(f"the edit was undone after {healed_ms} ms", SHOP_WEB, hangzhou=6, beijing=3),
            began_s=began_s,
        )
        await screen.run("reconciler history deploy/web -n shop --store . --limit 3")

    async def a_policy_leaves(self) -> None:
        """A policy goes, its objects stay."""
        screen, key = self._screen, ("demo", "web-demo")
        screen.say("""The policy of demo/web-demo says preserveResourcesOnDeletion: true. When the policy goes, its
                   objects are released: they run on, and nobody manages them.""")
        pods = (await look(self._world)).pods(key)
        kept = [part for part in self._read(_STATIC).split("---\n") if "kind: PropagationPolicy" not in part]
        text = "---\n".join(kept)
        await self._propose("let-go", _STATIC, text, "Leave web-demo to its team", author="Mei", is_patch_shown=False)
        await self._land(
            "let-go",
            frozenset({key}),
            Promise(text="both copies are still there, and not ours any more", holds=_is_released),
            Promise(text="their pods are the same as before", holds=lambda sight: sight.pods(key) == pods != set()),
        )

    async def a_cluster_goes(self) -> None:
        """Take a cluster away for a while."""
        screen, server = self._screen, self._world.box.servers["beijing"]
        screen.say("""Beijing's API server stops, and a commit lands meanwhile. The other clusters take it up. What is
                   in Beijing is neither moved nor deleted: a cluster that cannot be reached may well be working.""")
        pods = (await look(self._world)).pods(SHOP_WEB, "beijing")
        await server.stop()
        text = self._read(_WEB).replace("replicas: 9", "replicas: 12")
        await self._propose("tills", _WEB, text, "Open more tills", author="Lin", is_diff=False)
        await self._land(
            "tills",
            frozenset({SHOP_WEB}),
            _replicas("hangzhou has its 8 of 12 replicas, and not one more", SHOP_WEB, hangzhou=8),
        )
        await screen.run("reconciler clusters .")
        screen.say("Beijing comes back, and catches up by itself:")
        began_s = self._now_s()
        await server.start()
        await self._show_until_kept(
            frozenset({SHOP_WEB}),
            _replicas("twelve replicas run, 8 : 4", SHOP_WEB, hangzhou=8, beijing=4),
            Promise(
                text="the pods that ran in beijing before run there still",
                holds=lambda sight: bool(pods) and pods <= sight.pods(SHOP_WEB, "beijing"),
            ),
            began_s=began_s,
            looks=_RETURN_LOOKS,
        )

    def _read(self, path: str) -> str:
        return self._world.repository.read(path)

    async def _propose(
        self,
        branch: str,
        path: str,
        text: str,
        subject: str,
        *,
        author: str,
        is_patch_shown: bool = True,
        is_diff: bool = True,
    ) -> None:
        """Commit one file on a branch, and show the difference."""
        screen, repository = self._screen, self._world.repository
        repository.propose(branch, path, text, subject, author=author)
        if is_patch_shown:
            screen.prompt(f"git diff main {branch}")
            screen.patch(repository.patch(branch))
        else:
            screen.prompt(f"git diff --stat main {branch}")
            screen.show(repository.stat(branch))
        if is_diff:
            await screen.run(f"reconciler diff . --base main --head {branch} --observations ../observed.yaml")

    async def _land(self, branch: str, names: frozenset[Key], *promises: Promise) -> None:
        """Merge, and wait until the promises hold."""
        self._screen.prompt(f"git switch main && git merge {branch}")
        began_s = self._now_s()
        self._world.repository.merge(branch)
        await self._show_until_kept(names, *promises, began_s=began_s)

    async def _show_until_kept(
        self, names: frozenset[Key], *promises: Promise, began_s: float, looks: int = _LOOKS
    ) -> None:
        """Show the clusters until every promise holds or nothing goes on any more, then print the result."""

        def is_enough(sight: Sight) -> bool:
            return all(promise.holds(sight) for promise in promises)

        with self._screen.table(names) as show:
            sight = await watch(self._world, is_enough, looks, show)
        took_s = self._now_s() - began_s
        for promise in promises:
            self._screen.promise(promise.text, is_kept=promise.holds(sight), found=str(promise.found(sight)))
        load, processors = os.getloadavg()[0], os.cpu_count() or 1
        is_busy = took_s > _BUSY_S and load > processors
        busy = f": this machine is busy, {load:.0f} programs share {processors} processors" if is_busy else ""
        self._screen.remark(f"after {took_s:.1f} s{busy}")


def _replicas(text: str, key: Key, **wanted: int) -> Promise:
    return Promise(
        text=text,
        holds=lambda sight: sight.replicas(key) == wanted and sight.is_settled(key),
        found=lambda sight: sight.replicas(key),
    )


def _images(text: str, **wanted: str) -> Promise:
    return Promise(
        text=text,
        holds=lambda sight: sight.images(SHOP_WEB) == wanted and sight.is_settled(SHOP_WEB),
        found=lambda sight: sight.images(SHOP_WEB),
    )


def _is_released(sight: Sight) -> bool:
    wanted = ((DEPLOYMENT, ("demo", "web-demo")), (CONFIG_MAP, ("demo", "cm-demo")))
    copies = [sight.find(cluster, gvk, key) for gvk, key in wanted for cluster in ("hangzhou", "beijing")]
    return all(copies) and not any(map(is_ours, copies))


_WEB: Final = "apps/shop/web.yaml"
_STATIC: Final = "pages/propagation-and-override/static-weights.yaml"
_CANARY: Final = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: OverridePolicy
metadata:
  name: canary
  namespace: shop
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: web
  overrideRules:
  - targetCluster:
      clusterNames: [beijing]
    overriders:
      imageOverrider:
      - component: Tag
        operator: replace
        value: "1.29"
"""
